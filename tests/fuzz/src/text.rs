//! What people and programs write for the agent: playbooks, settings of etcd, events of other agents.

use std::path::Path;

use agent::{host::files::etcd_config, playbook::Playbook, report::page};

pub fn playbook(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = Playbook::parse(text, Path::new("/playbook.yaml")) {
        // It points at a place in the text.
        let _ = error.to_string();
    }
}

pub fn playbook_seeds() -> Vec<Vec<u8>> {
    [
        &include_bytes!("../../../playbooks/upgrade.yaml")[..],
        include_bytes!("../../../playbooks/upgrade-command.yaml"),
        include_bytes!("../../../playbooks/upgrade-hops.yaml"),
        include_bytes!("../../../playbooks/upgrade-systemd.yaml"),
        include_bytes!("../../../playbooks/downgrade.yaml"),
        include_bytes!("../../../playbooks/replace.yaml"),
        include_bytes!("../../../playbooks/restart.yaml"),
        include_bytes!("../../../playbooks/scale.yaml"),
    ]
    .map(Vec::from)
    .into()
}

pub fn settings(bytes: &[u8]) {
    let _ = etcd_config::settings(bytes);
}

pub fn settings_seeds() -> Vec<Vec<u8>> {
    let typical = "name: m1\ndata-dir: /var/lib/etcd\ninitial-cluster: 'm1=http://127.0.0.1:2380'\nclient-transport-security:\n  cert-file: /c.pem\n";
    [typical, "a: &a { b: 1 }\n<<: *a\n? [x]\n: !!str 1e3\n", "{\"name\": \"m1\", \"log-outputs\": [stderr]}"]
        .map(Vec::from)
        .into()
}

pub fn events(bytes: &[u8]) {
    let _ = page::of_one_run(bytes);
}

pub fn events_seeds() -> Vec<Vec<u8>> {
    vec![include_bytes!("../seeds/events").to_vec()]
}
