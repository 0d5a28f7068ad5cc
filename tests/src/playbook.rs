//! The playbooks that scenarios hand to agents: one per member, as its host would have it.

use std::{fmt::Write as _, fs, path::PathBuf};

use proto::Release;

use crate::{Error, cluster::Layout, etcd::Etcd};

/// An upgrade of a whole cluster, of which each member's playbook is a part.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// `from`: what members must run before.
    pub from: String,
    /// `to`.
    pub to: Release,
    /// `artifact.source`: the executable of the new release.
    pub source: PathBuf,
    /// More lines under `artifact`, such as `sha256: …`.
    pub artifact: Vec<String>,
    /// More lines of every node, such as `stop: { timeout: 1s }`.
    pub node: Vec<String>,
    /// Lines under `strategy`, such as `soak: 0s`.
    pub strategy: Vec<String>,
    /// More top-level lines.
    pub extra: Vec<String>,
}

impl Upgrade {
    /// From whatever patch the cluster was started with to this release, without a soak.
    pub fn new(layout: &Layout, to: &Etcd) -> Self {
        let now = layout.release.cluster_version();
        Self {
            from: format!(">={}, <{}.{}", layout.release, now.major, now.minor + 1),
            to: to.release.clone(),
            source: to.executable(),
            artifact: Vec::new(),
            node: Vec::new(),
            strategy: vec!["soak: 0s".into()],
            extra: Vec::new(),
        }
    }

    /// Writes every member's playbook, `D/<member>/upgrade.yaml`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, layout: &Layout) -> Result<Vec<PathBuf>, Error> {
        (0..layout.members.len()).map(|index| self.write_one(layout, index)).collect()
    }

    /// Writes one member's playbook.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_one(&self, layout: &Layout, index: usize) -> Result<PathBuf, Error> {
        let path = layout.members[index].dir.join("upgrade.yaml");
        fs::write(&path, self.text(layout, index)?)?;
        Ok(path)
    }

    fn text(&self, layout: &Layout, index: usize) -> Result<String, Error> {
        let member = &layout.members[index];
        let mut text = String::from("apiVersion: baton/v1\nkind: Upgrade\n");
        writeln!(text, "cluster:\n  name: local\n  endpoints:")?;
        for url in layout.endpoints() {
            writeln!(text, "    - {url}")?;
        }
        if let Some(files) = &layout.certificates {
            writeln!(text, "  tls:")?;
            for (key, path) in [("ca", &files.ca), ("cert", &files.client.cert), ("key", &files.client.key)] {
                writeln!(text, "    {key}: {}", quoted(&path.to_string_lossy()))?;
            }
        }
        writeln!(text, "from: {}\nto: {}", quoted(&self.from), self.to)?;
        writeln!(text, "artifact:\n  source: {}", quoted(&self.source.to_string_lossy()))?;
        self.artifact.iter().try_for_each(|line| writeln!(text, "  {line}"))?;
        writeln!(text, "state_dir: {}", quoted(&member.dir.join("baton").to_string_lossy()))?;
        writeln!(text, "nodes:\n  - name: {}", member.name)?;
        writeln!(text, "    runtime:\n      kind: process\n      argv:\n        - \"{{{{binary}}}}\"")?;
        for flag in &member.flags {
            writeln!(text, "        - {}", quoted(flag))?;
        }
        writeln!(text, "      log: {}", quoted(&member.log().to_string_lossy()))?;
        writeln!(text, "    binary: {}", quoted(&member.binary().to_string_lossy()))?;
        self.node.iter().try_for_each(|line| writeln!(text, "    {line}"))?;
        writeln!(text, "strategy:")?;
        self.strategy.iter().try_for_each(|line| writeln!(text, "  {line}"))?;
        self.extra.iter().try_for_each(|line| writeln!(text, "{line}"))?;
        Ok(text)
    }
}

/// A YAML string that means exactly this: JSON's strings are YAML's double-quoted ones.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
