//! A member that is laid out, and not there yet: its agent adds and starts it.

use std::{fs, path::PathBuf};

use crate::{
    Error,
    cluster::{Layout, Member},
    member::name,
    playbook::quoted,
    system::Build,
};

impl Layout {
    /// Lays a newcomer out beside these members: release, folder, flags, and no data.
    ///
    /// # Errors
    /// Its folder cannot be made.
    pub fn newcomer(&self, build: &Build, index: usize, ports: (u16, u16)) -> Result<Member, Error> {
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        let mut member = Member::new(self.system, &self.dir, index, ports, scheme);
        fs::create_dir_all(&member.dir)?;
        member.install(build)?;
        member.flags.retain(|flag| !flag.starts_with("--initial-cluster-state="));
        member.flags.push(format!("--initial-advertise-peer-urls={scheme}://127.0.0.1:{}", ports.1));
        member.flags.extend(joining());
        member.flags.extend(self.certificates.iter().flat_map(crate::cluster::tls_flags));
        debug_assert_eq!(member.name, name(index));
        Ok(member)
    }
}

impl Member {
    /// Where the others reach it.
    pub fn peer_url(&self) -> String {
        let given = self.flags.iter().find_map(|flag| flag.strip_prefix("--initial-advertise-peer-urls="));
        given.unwrap_or_default().to_owned()
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The same member, as its host starts it once it has lost its disk.
    #[must_use]
    pub fn as_newcomer(&self) -> Self {
        let is_kept = |flag: &&String| !flag.starts_with("--initial-cluster");
        let flags = self.flags.iter().filter(is_kept).cloned().chain(joining()).collect();
        Self { flags, ..self.clone() }
    }

    /// The same member once its agent has begun it: with the arguments that it was given.
    ///
    /// # Errors
    /// No agent has begun it.
    pub fn joined(&self) -> Result<Self, Error> {
        let file = self.state_dir().join("nodes").join(format!("{}.initial-cluster", self.name));
        let list = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut member = self.clone();
        member.flags.iter_mut().for_each(|flag| *flag = flag.replace("{{initial_cluster}}", &list));
        Ok(member)
    }
}

/// The lines of a node that say where its member is reached and has its data.
pub fn place(member: &Member) -> Vec<String> {
    let urls = quoted(&member.peer_url());
    vec![format!("peer_urls: [{urls}]"), format!("data_dir: {}", quoted(&member.data().to_string_lossy()))]
}

fn joining() -> [String; 2] {
    ["--initial-cluster={{initial_cluster}}".into(), "--initial-cluster-state=existing".into()]
}
