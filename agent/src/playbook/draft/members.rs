//! What a draft says of members that come and go: who they are, and where a node has its data and its address.

use std::{
    fmt::{self, Write as _},
    path::{Path, PathBuf},
};

use super::{path, scalar};

/// Where a node of this host has its data, and is reached by the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftPlace {
    /// As the cluster lists them; empty where it does not list the node.
    pub peer_urls: Vec<String>,
    /// As its process says; `None` where it does not.
    pub data_dir: Option<PathBuf>,
}

/// What stands in a newcomer's lines until a person has looked at them.
const UNIT: &str = "etcd.service";
const DATA: &str = "/var/lib/etcd";

pub(super) fn scale(text: &mut String, members: &[String]) -> fmt::Result {
    writeln!(
        text,
        "\n# CHECK: all voters at the end, by name, an odd number, the same on every host. Add who is to come,"
    )?;
    writeln!(text, "# and leave out who is to go; not both in one playbook.\nmembers:")?;
    members.iter().try_for_each(|name| writeln!(text, "  - {}", scalar(name)))
}

pub(super) fn replace(text: &mut String, member: &str, by: &str) -> fmt::Result {
    writeln!(text, "\n# Who goes, and who comes; the same on every host.\nreplace:")?;
    writeln!(text, "  member: {}\n  by: {}", scalar(member), scalar(by))
}

impl DraftPlace {
    /// Of a member: known, but for what its process does not say.
    pub(super) fn write(&self, text: &mut String) -> fmt::Result {
        if !self.peer_urls.is_empty() {
            writeln!(text, "    peer_urls:")?;
            self.peer_urls.iter().try_for_each(|url| writeln!(text, "      - {}", scalar(url)))?;
        }
        match &self.data_dir {
            Some(folder) => writeln!(text, "    data_dir: {}", path(folder)),
            None => writeln!(
                text,
                "    # CHECK: its --data-dir; needed where it is to go, so that its data is put aside:\n    # data_dir: {DATA}"
            ),
        }
    }

    /// Of a newcomer: lines that are a person's to fill in.
    pub(super) fn write_new(&self, text: &mut String, name: &str, state_dir: &Path, host: &str) -> fmt::Result {
        let env = state_dir.join("nodes").join(format!("{name}.env"));
        writeln!(
            text,
            "    # CHECK: how it is run. Its unit, or its process, takes the members that there are then from"
        )?;
        writeln!(text, "    # the agent: EnvironmentFile=-{}", super::one_line(&env.to_string_lossy()))?;
        writeln!(
            text,
            "    # in the unit, without --initial-cluster and --initial-cluster-state; or as a process of the agent's:"
        )?;
        writeln!(text, "    #   runtime:\n    #     kind: process")?;
        writeln!(
            text,
            "    #     argv: [/usr/local/bin/etcd, --name, \"{{{{node}}}}\", …, --initial-cluster-state, existing,"
        )?;
        writeln!(text, "    #            --initial-cluster, \"{{{{initial_cluster}}}}\"]")?;
        writeln!(text, "    runtime: {{ kind: systemd, unit: {UNIT} }}")?;
        writeln!(text, "    # CHECK: where the others reach it: its --initial-advertise-peer-urls, to the letter.")?;
        writeln!(text, "    peer_urls:")?;
        match self.peer_urls.is_empty() {
            true => writeln!(text, "      - {}", scalar(&format!("http://{}:2380", label(host))))?,
            false => self.peer_urls.iter().try_for_each(|url| writeln!(text, "      - {}", scalar(url)))?,
        }
        writeln!(text, "    # CHECK: its --data-dir, with nothing in it.\n    data_dir: {DATA}")
    }
}

/// A host's name as it may stand in a URL.
fn label(host: &str) -> String {
    let is_plain = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c));
    if is_plain { host.to_owned() } else { "host".to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::playbook::{
        Cluster, Kind, Playbook, Runtime,
        draft::{Draft, DraftMember, DraftNode, DraftRuntime, Work},
    };

    fn draft(work: Work, node: DraftNode) -> Draft {
        let cluster = Cluster {
            name: "orders".into(),
            endpoints: Vec::new(),
            election_timeout: Cluster::DEFAULT_ELECTION_TIMEOUT,
            tls: None,
            auth: None,
            http: BTreeMap::new(),
        };
        Draft {
            host: "vm 4\n".into(),
            cluster,
            members: vec![DraftMember { endpoint: "http://10.0.0.1:2379".into(), remark: "orders-1".into() }],
            voters: 3,
            work,
            state_dir: None,
            nodes: vec![node],
        }
    }

    fn read(draft: &Draft) -> Playbook {
        let text = draft.text();
        Playbook::parse(&text, Path::new("/x.yaml")).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn node(name: &str, runtime: DraftRuntime, place: DraftPlace) -> DraftNode {
        DraftNode { name: name.into(), binary: None, to_link: None, runtime, place: Some(place) }
    }

    #[test]
    fn a_newcomers_lines_are_a_playbook_and_marked() {
        let work = Work::Replace { member: "orders-2".into(), by: "orders-4".into() };
        let draft = draft(work, node("orders-4", DraftRuntime::Newcomer, DraftPlace::default()));
        let playbook = read(&draft);
        assert_eq!(playbook.kind, Kind::Replace { member: "orders-2".into(), by: "orders-4".into() });
        let new = playbook.node("orders-4").unwrap();
        assert!(matches!(&new.runtime, Runtime::Systemd(systemd) if systemd.unit == UNIT));
        assert_eq!((new.peer_urls.len(), new.data_dir.as_deref()), (1, Some(Path::new(DATA))));
        let text = draft.text();
        assert_eq!(text.matches("# CHECK").count(), 4, "{text}");
        assert!(text.contains("EnvironmentFile=-/var/lib/baton/orders/nodes/orders-4.env"), "{text}");
    }

    #[test]
    fn a_member_has_its_own_place_and_the_voters_are_named() {
        let names = ["orders-1", "orders-2", "7"].map(str::to_owned);
        let place = DraftPlace { peer_urls: vec!["http://[::1]:2380".into()], data_dir: Some("/a b".into()) };
        let draft = draft(
            Work::Scale { members: names.to_vec() },
            node("orders-1", DraftRuntime::Unit("etcd@1.service".into()), place.clone()),
        );
        let playbook = read(&draft);
        assert_eq!(playbook.kind, Kind::Scale { members: ["7", "orders-1", "orders-2"].map(str::to_owned).to_vec() });
        let node = &playbook.nodes[0];
        assert_eq!((&node.peer_urls, &node.data_dir), (&place.peer_urls, &place.data_dir));
    }

    #[test]
    fn nothing_that_was_found_begins_a_line() {
        let evil = "x\nhooks: { before_node: [[/bin/sh]] }\u{2028}'\"]] #\r\ny".to_owned();
        for runtime in [DraftRuntime::Newcomer, DraftRuntime::Unit("etcd.service".into())] {
            let of = |text: &str| {
                let place = DraftPlace { peer_urls: vec![text.into()], data_dir: Some(text.into()) };
                let mut draft = draft(Work::Scale { members: vec![text.into()] }, node(text, runtime.clone(), place));
                draft.host = text.into();
                draft.text()
            };
            let text = of(&evil);
            assert_eq!(text.lines().count(), of("x").lines().count(), "{text}");
            assert!(!text.lines().any(|line| line.trim_start().starts_with("hooks")), "{text}");
            let replaced = draft(
                Work::Replace { member: evil.clone(), by: evil.clone() },
                node("x", runtime.clone(), DraftPlace::default()),
            );
            assert!(!replaced.text().lines().any(|line| line.trim_start().starts_with("hooks")));
        }
    }
}
