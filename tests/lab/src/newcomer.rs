//! A member that is laid out, and not there yet: its agent adds and starts it.

use std::fs;

use crate::{
    Error,
    cluster::{Layout, Member},
    member::name,
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

    /// The same member, as its host starts it once it has lost its disk.
    #[must_use]
    pub fn as_newcomer(&self) -> Self {
        let is_kept = |flag: &&String| !flag.starts_with("--initial-cluster");
        let flags = self.flags.iter().filter(is_kept).cloned().chain(joining()).collect();
        Self { flags, ..self.clone() }
    }
}

fn joining() -> [String; 2] {
    ["--initial-cluster={{initial_cluster}}".into(), "--initial-cluster-state=existing".into()]
}
