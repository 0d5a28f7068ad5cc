//! etcdctl of other releases, as people still have it: typed all the time while a step goes on, and once more behind it.
//!
//! While members restart a command may fail. What one says that has done its work must be right.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lab::{
    Error,
    cluster::Layout,
    system::Build,
    wait::{self, GENEROUS},
};
use tokio::{io::AsyncWriteExt as _, task::JoinHandle};

use super::stage::Stage;
use crate::etcdctl::command;

const PAUSE: Duration = Duration::from_millis(500);
/// In seconds; what is granted is taken back at once.
const LEASE: &str = "600";

/// One for each release.
pub(super) struct Tools {
    over: Arc<AtomicBool>,
    typing: Vec<JoinHandle<(Tool, Result<(), String>)>>,
}

struct Tool {
    /// For a person.
    name: String,
    path: PathBuf,
    /// What its keys begin with.
    prefix: String,
    /// How often it was gone through: each time with a key of its own, as a write that had no answer may come late.
    turn: AtomicU64,
}

/// What came of typing all of it once.
enum Said {
    Right,
    /// A command did not do its work, and why.
    Failed(String),
    Wrong(String),
}

impl Tools {
    /// Begins to type.
    pub(super) fn begin(stage: &Stage, step: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let begun = |build: &Build| {
            let release = &build.release;
            let tool = Tool {
                name: format!("etcdctl {release}"),
                path: build.bin.join("etcdctl"),
                prefix: format!("typed/{step}/{release}"),
                turn: AtomicU64::new(0),
            };
            tokio::spawn(until_over(tool, stage.layout().clone(), Arc::clone(&over)))
        };
        let typing = stage.tools.iter().map(begun).collect();
        Self { over, typing }
    }

    /// Types all of it once more, now that every member serves.
    ///
    /// # Errors
    /// One of them said something wrong, or does not do its work.
    pub(super) async fn judge(self, layout: &Layout) -> Result<(), Error> {
        self.over.store(true, Ordering::Relaxed);
        for typing in self.typing {
            let (tool, said) = typing.await?;
            said?;
            let what = format!("{} to do its work", tool.name);
            let last = wait::until(&what, GENEROUS, || async {
                match tool.type_all(layout).await {
                    Said::Right => Ok(Ok(())),
                    Said::Wrong(why) => Ok(Err(why)),
                    Said::Failed(why) => Err(why),
                }
            });
            last.await??;
        }
        Ok(())
    }
}

async fn until_over(tool: Tool, layout: Layout, over: Arc<AtomicBool>) -> (Tool, Result<(), String>) {
    while !over.load(Ordering::Relaxed) {
        if let Said::Wrong(why) = tool.type_all(&layout).await {
            return (tool, Err(why));
        }
        tokio::time::sleep(PAUSE).await;
    }
    (tool, Ok(()))
}

impl Tool {
    async fn type_all(&self, layout: &Layout) -> Said {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let (key, value) = (format!("{}/{turn}", self.prefix), format!("turn {turn}"));
        // The last of them reads what the first has written.
        let transaction = format!("value(\"{key}\") = \"{value}\"\n\nget {key}\n\nput {key} nothing\n\n");
        let typed: [(&[&str], &str, &str); 5] = [
            (&["put", &key, &value], "", "OK"),
            (&["get", &key, "--print-value-only"], "", &value),
            (&["txn"], &transaction, "SUCCESS"),
            (&["member", "list"], "", ", started, "),
            (&["lease", "grant", LEASE], "", "lease "),
        ];
        let mut last = String::new();
        for (words, input, expected) in typed {
            match self.once(layout, words, input).await {
                Err(why) => return Said::Failed(format!("{} {}: {why}", self.name, words[0])),
                Ok(said) if !said.contains(expected) => {
                    return Said::Wrong(format!("{} {} said {said:?}", self.name, words.join(" ")));
                }
                Ok(said) => last = said,
            }
        }
        let lease = last.split_ascii_whitespace().nth(1).unwrap_or_default().to_owned();
        match self.once(layout, &["lease", "revoke", &lease], "").await {
            Ok(_) => Said::Right,
            Err(why) => Said::Failed(format!("{} lease revoke: {why}", self.name)),
        }
    }

    async fn once(&self, layout: &Layout, words: &[&str], input: &str) -> Result<String, String> {
        let typed = async {
            let mut command = command(&self.path, layout, &layout.endpoints());
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                // One that does not listen is told nothing.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
            child.wait_with_output().await
        };
        let done = typed.await.map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }
}
