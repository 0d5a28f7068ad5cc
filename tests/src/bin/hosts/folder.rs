//! What is written for whoever uses the hosts: the way in by ssh, and what Ansible wants.
//!
//! ```text
//! D/key, D/key.pub, D/ssh_config      ssh -F D/ssh_config h1
//! D/inventory.yml, D/upgrade.yml      the hosts, and a play of the role baton.rollout.baton on all of them
//! D/ansible.cfg, D/collections        so that Ansible finds both, when it is started in D
//! D/README                            what to type
//! D/keeper, D/keeper.log              see keeper.rs
//! ```

use std::{
    fmt::Write as _,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use tests::{Error, machine::Host};

use crate::{
    fleet::{Fleet, PLAYBOOK, member, url},
    keeper::{LOCK, LOG},
};

/// Where Ansible finds the collections of our namespace.
const COLLECTIONS: &str = "collections/ansible_collections/baton";

/// All that is written beside that. The lock is the last to go: by it the rest is known for ours.
const FILES: [&str; 9] =
    ["key", "key.pub", "ssh_config", "inventory.yml", "upgrade.yml", "ansible.cfg", "README", LOG, LOCK];

pub struct Folder {
    dir: PathBuf,
}

impl Folder {
    pub fn of(dir: &Path) -> Self {
        Self { dir: dir.into() }
    }

    /// Writes everything, and lets the key in on every host.
    pub fn write(&self, fleet: &Fleet<'_>) -> Result<(), Error> {
        self.make_key(fleet.hosts)?;
        for (name, text) in [
            ("ssh_config", self.ssh_config(fleet.hosts)?),
            ("inventory.yml", self.inventory(fleet.hosts)?),
            ("upgrade.yml", PLAY.into()),
            ("ansible.cfg", SETTINGS.into()),
            ("README", self.what_to_type(fleet)?),
        ] {
            fs::write(self.path(name), text)?;
        }
        self.link_collection()
    }

    /// What to type.
    pub fn read_me(&self) -> Result<String, Error> {
        Ok(fs::read_to_string(self.path("README"))?)
    }

    /// Whether nobody else's files are in it: it is not there yet, or empty, or has had a keeper.
    pub fn is_ours(&self) -> bool {
        self.path(LOCK).exists()
            || fs::read_dir(&self.dir).is_ok_and(|mut files| files.next().is_none())
            || !self.dir.exists()
    }

    /// Removes what was written, and the folder where nothing else is in it; whether there was anything.
    pub fn clear(&self) -> Result<bool, Error> {
        if !self.path(LOCK).exists() {
            return Ok(false);
        }
        let _ = fs::remove_file(self.path(COLLECTIONS).join("rollout"));
        // Folders that have something else stay.
        for folder in Path::new(COLLECTIONS).ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            let _ = fs::remove_dir(self.dir.join(folder));
        }
        for name in FILES {
            match fs::remove_file(self.path(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        let _ = fs::remove_dir(&self.dir);
        Ok(true)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn make_key(&self, hosts: &[Host]) -> Result<(), Error> {
        let key = self.path("key");
        // One that is there was left by a keeper that was killed; ssh-keygen would ask.
        let _ = fs::remove_file(&key);
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).output();
        let made = made.map_err(|error| format!("ssh-keygen: {error}"))?;
        if !made.status.success() {
            return Err(format!("ssh-keygen: {}", String::from_utf8_lossy(&made.stderr).trim()).into());
        }
        let public = fs::read(self.path("key.pub"))?;
        hosts.iter().try_for_each(|host| host.write("/root/.ssh/authorized_keys", &public))
    }

    fn ssh_config(&self, hosts: &[Host]) -> Result<String, Error> {
        let mut text = String::new();
        for host in hosts {
            let address = host.address();
            writeln!(text, "Host {} {address}\n    HostName {address}", host.name)?;
        }
        writeln!(
            text,
            "Host *\n    User root\n    IdentityFile \"{}\"\n    IdentitiesOnly yes\n    \
             # The next hosts with these addresses are others, and nobody else is on this network.\n    \
             StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n    LogLevel ERROR\n    \
             ServerAliveInterval 5\n    ServerAliveCountMax 3",
            self.path("key").display()
        )?;
        Ok(text)
    }

    fn inventory(&self, hosts: &[Host]) -> Result<String, Error> {
        let mut text = "orders:\n  hosts:\n".to_owned();
        for host in hosts {
            let (name, address, member) = (&host.name, host.address(), member(host));
            writeln!(text, "    {name}:\n      ansible_host: {address}\n      baton_members: [{member}]")?;
        }
        let ssh = format!("-F \"{}\"", self.path("ssh_config").display());
        writeln!(
            text,
            "  vars:\n    ansible_ssh_common_args: {}\n    ansible_python_interpreter: /usr/bin/python3\n    \
             # Agent and playbook are on the hosts already.\n    baton_agent: /usr/local/bin/agent\n    \
             baton_playbook: {PLAYBOOK}",
            tests::playbook::quoted(&ssh)
        )?;
        Ok(text)
    }

    /// A folder in which Ansible finds the collection by its name.
    fn link_collection(&self) -> Result<(), Error> {
        let namespace = self.path(COLLECTIONS);
        fs::create_dir_all(&namespace)?;
        match symlink(collection()?, namespace.join("rollout")) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn what_to_type(&self, fleet: &Fleet<'_>) -> Result<String, Error> {
        let dir = self.dir.display();
        let (size, unit, from, to) = (fleet.hosts.len(), fleet.unit(), &fleet.from, &fleet.to.release);
        let mut text = match size {
            1 => format!("The host is up. It has a member of {from} as {unit}, and the agent.\n\n"),
            _ => format!("{size} hosts are up. Each has a member of {from} as {unit}, and the agent.\n\n"),
        };
        for host in fleet.hosts {
            writeln!(text, "{}  {}  {}  {}", host.name, host.address(), member(host), url(host))?;
        }
        let playbook = match is_in_path("ansible-playbook") {
            true => "ansible-playbook".into(),
            false => format!("$({}/fetch-ansible)/ansible-playbook", scripts()?.display()),
        };
        writeln!(
            text,
            "\nBy hand, to {to}, on every host: at once, or one after the other\n  \
             ssh -F {dir}/ssh_config h1\n  agent plan {PLAYBOOK}\n  agent run {PLAYBOOK}\n\n\
             By Ansible, on all of them: the plan, then the upgrade\n  \
             cd {dir}\n  {playbook} -i inventory.yml upgrade.yml --check\n  {playbook} -i inventory.yml upgrade.yml"
        )?;
        Ok(text)
    }
}

const PLAY: &str = "---
- name: Change the release on all hosts at once
  hosts: orders
  gather_facts: false
  roles:
    - role: baton.rollout.baton
      vars:
        baton_require_complete: true
";

/// The next hosts may have these addresses: a connection to one that is gone is not kept for long.
const SETTINGS: &str = "[defaults]
inventory = inventory.yml
collections_path = collections
[ssh_connection]
ssh_args = -o ControlMaster=auto -o ControlPersist=5s
";

fn scripts() -> io::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").canonicalize()
}

fn collection() -> io::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/ansible").canonicalize()
}

fn is_in_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).exists()))
}
