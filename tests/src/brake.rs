//! A `before_node` hook that holds its agent, with the baton in its hand, until the test lets it go.

use std::{fs, path::PathBuf};

use crate::{Error, cluster::Layout, playbook::quoted, wait};

/// It lets go with this value, too: no agent outlives a test that failed.
#[derive(Debug)]
pub struct Brake {
    go: PathBuf,
}

impl Brake {
    pub fn new(layout: &Layout) -> Self {
        Self { go: layout.dir.join("go") }
    }

    /// The playbook's line that holds every step of a host.
    pub fn hook(&self) -> String {
        self.hook_that("")
    }

    /// The playbook's line that lets one step pass, and holds the next ones.
    pub fn hook_after_one_step(&self) -> String {
        // Of all that try, only the first makes the folder.
        self.hook_that(&format!("mkdir '{}' 2>/dev/null && exit; ", self.go.with_extension("passed").display()))
    }

    fn hook_that(&self, first: &str) -> String {
        // Never longer than the longest test, should that one die.
        let (go, held) = (self.go.display(), self.held().display().to_string());
        let wait = format!("{first}: > '{held}'; for i in $(seq 3000); do [ -e '{go}' ] && exit; sleep 0.1; done");
        format!("hooks: {{ before_node: [[sh, -c, {}]] }}", quoted(&wait))
    }

    /// Waits until it holds an agent.
    ///
    /// # Errors
    /// It holds nobody in time.
    pub async fn holds(&self) -> Result<(), Error> {
        let is_held = || std::future::ready(self.held().exists().then_some(()).ok_or_else(|| "nobody".to_owned()));
        Ok(wait::until("the brake to hold an agent", wait::GENEROUS, is_held).await?)
    }

    fn held(&self) -> PathBuf {
        self.go.with_extension("held")
    }

    /// Lets the agent go on.
    ///
    /// # Errors
    /// The file that it looks for cannot be written.
    pub fn release(&self) -> Result<(), Error> {
        Ok(fs::write(&self.go, "")?)
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        // The folder may be gone already, and every agent with it.
        let _ = self.release();
    }
}
