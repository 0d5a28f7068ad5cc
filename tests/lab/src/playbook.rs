//! The playbooks that scenarios hand to agents: one per host, with the members that run on it.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use proto::Release;

use crate::{
    Error,
    cluster::{Layout, Member},
    system::Build,
};

/// An upgrade of a whole cluster, of which each host's playbook is a part; or a downgrade, where `to` is lower than what
/// the cluster was started with.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// `from`: what members must run before.
    pub from: String,
    /// `to`.
    pub to: Release,
    /// `artifact.source`: a path, or a URL.
    pub source: PathBuf,
    /// The releases that are gone over on the way: with one, `artifacts` has them all.
    pub between: Vec<Build>,
    /// `cluster.endpoints`; every member's own where there are none.
    pub endpoints: Vec<String>,
    /// More lines under `cluster`, such as `auth: { … }`.
    pub cluster: Vec<String>,
    /// `restart.id`: with one this is a `kind: Restart`, and says nothing of releases.
    pub restart: Option<String>,
    /// A change of members: the kind, and its line, such as `members: [m1]`. With one this says nothing of releases.
    pub members: Option<(&'static str, String)>,
    /// More lines under `artifact`, such as `sha256: …`.
    pub artifact: Vec<String>,
    /// The lines of a member's `runtime`.
    pub runtime: fn(&Member) -> Vec<String>,
    /// More lines of each node, such as `files: …`.
    pub node: fn(&Member) -> Vec<String>,
    /// More lines of every node, whichever it is, such as `stop: { timeout: 1s }`.
    pub every_node: Vec<String>,
    /// Lines under `strategy`, such as `soak: 0s`.
    pub strategy: Vec<String>,
    pub extra: Vec<String>,
}

impl Upgrade {
    /// Time for agents that start slowly, where none is left out.
    pub fn everybody_comes(&mut self) {
        self.strategy.retain(|line| !line.starts_with("join_window"));
        self.strategy.push("join_window: 60s".into());
    }

    /// From whatever patch the cluster was started with to this release, without a soak.
    pub fn new(layout: &Layout, to: &Build) -> Self {
        let now = layout.release.cluster_version();
        Self {
            from: format!(">={}, <{}.{}", layout.release, now.major, now.minor + 1),
            to: to.release.clone(),
            source: to.executable(),
            between: Vec::new(),
            endpoints: Vec::new(),
            cluster: Vec::new(),
            restart: None,
            members: None,
            artifact: Vec::new(),
            runtime: started_by_the_agent,
            node: |_| Vec::new(),
            every_node: Vec::new(),
            strategy: vec!["soak: 0s".into()],
            extra: Vec::new(),
        }
    }

    /// Writes a playbook per member, `D/<member>/upgrade.yaml`: each member is on a host of its own.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, layout: &Layout) -> Result<Vec<PathBuf>, Error> {
        layout.members.iter().map(|member| self.write_host(layout, &[member])).collect()
    }

    /// Writes one member's playbook.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_one(&self, layout: &Layout, index: usize) -> Result<PathBuf, Error> {
        self.write_host(layout, &[&layout.members[index]])
    }

    /// Writes the playbook of the host that these members run on, into the first one's folder.
    ///
    /// # Errors
    /// The file cannot be written, or there is no member.
    pub fn write_host(&self, layout: &Layout, members: &[&Member]) -> Result<PathBuf, Error> {
        let path = members.first().ok_or("a host without members")?.dir.join("upgrade.yaml");
        fs::write(&path, self.text(layout, members)?)?;
        Ok(path)
    }

    fn text(&self, layout: &Layout, members: &[&Member]) -> Result<String, Error> {
        let kind = match (&self.members, &self.restart) {
            (Some((kind, _)), _) => kind,
            (None, Some(_)) => "Restart",
            (None, None) if self.to < layout.release => "Downgrade",
            (None, None) => "Upgrade",
        };
        let mut text = format!("apiVersion: baton/v1\nkind: {kind}\n");
        writeln!(text, "cluster:\n  name: local\n  endpoints:")?;
        let endpoints = if self.endpoints.is_empty() { layout.endpoints() } else { self.endpoints.clone() };
        for url in endpoints {
            writeln!(text, "    - {url}")?;
        }
        if let Some(files) = &layout.certificates {
            writeln!(text, "  tls:")?;
            for (key, path) in [("ca", &files.ca), ("cert", &files.client.cert), ("key", &files.client.key)] {
                writeln!(text, "    {key}: {}", quoted(&path.to_string_lossy()))?;
            }
        }
        lines(&mut text, "  ", &self.cluster)?;
        match (&self.members, &self.restart) {
            (Some((_, line)), _) => writeln!(text, "{line}")?,
            (None, Some(id)) => writeln!(text, "restart: {{ id: {} }}", quoted(id))?,
            (None, None) => self.releases(&mut text)?,
        }
        let state = members.iter().map(|member| member.state_dir()).next().unwrap_or_default();
        writeln!(text, "state_dir: {}\nnodes:", quoted(&state.to_string_lossy()))?;
        for member in members {
            writeln!(text, "  - name: {}\n    runtime:", member.name)?;
            lines(&mut text, "      ", &(self.runtime)(member))?;
            writeln!(text, "    binary: {}", quoted(&member.binary().to_string_lossy()))?;
            lines(&mut text, "    ", &(self.node)(member))?;
            lines(&mut text, "    ", &self.every_node)?;
        }
        writeln!(text, "strategy:")?;
        lines(&mut text, "  ", &self.strategy)?;
        if !self.strategy.iter().any(|line| line.starts_with("join_window")) {
            // Of agents that begin at once, some come late where many tests run.
            writeln!(text, "  join_window: 10s")?;
        }
        lines(&mut text, "", &self.extra)?;
        Ok(text)
    }

    fn releases(&self, text: &mut String) -> Result<(), Error> {
        writeln!(text, "from: {}\nto: {}", quoted(&self.from), self.to)?;
        let source = |path: &Path| quoted(&path.to_string_lossy());
        if self.between.is_empty() {
            writeln!(text, "artifact:\n  source: {}", source(&self.source))?;
            return Ok(lines(text, "  ", &self.artifact)?);
        }
        writeln!(text, "artifacts:")?;
        for build in &self.between {
            writeln!(text, "  {}: {{ source: {} }}", build.release, source(&build.executable()))?;
        }
        Ok(writeln!(text, "  {}: {{ source: {} }}", self.to, source(&self.source))?)
    }
}

/// `kind: process`, with the member's own flags.
pub fn started_by_the_agent(member: &Member) -> Vec<String> {
    let flags = member.flags.iter().map(|flag| format!("  - {}", quoted(flag)));
    ["kind: process".into(), "argv:".into(), "  - \"{{binary}}\"".into()]
        .into_iter()
        .chain(flags)
        .chain([format!("log: {}", quoted(&member.log().to_string_lossy()))])
        .collect()
}

/// A YAML string that means exactly this: JSON's strings are YAML's double-quoted ones.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn lines(text: &mut String, indent: &str, lines: &[String]) -> std::fmt::Result {
    lines.iter().try_for_each(|line| writeln!(text, "{indent}{line}"))
}
