//! A play: the real `ansible-playbook` over real ssh, and what it says of every task on every host.

use std::{
    env, fs,
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use tests::{
    fetched,
    skip::skip,
    wait::{self, GENEROUS},
};

use crate::site::{Site, template};

/// Longer than any play of these takes on a loaded machine. What hangs is ended.
const LIMIT: Duration = Duration::from_secs(900);

/// The folder with `ansible-playbook`; `None` is a skip.
pub fn ansible_or_skip() -> Option<PathBuf> {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    if let Ok(reason) = env::var("BATON_NO_ANSIBLE") {
        skip(&reason);
        return None;
    }
    let fetch = || fetched::by_script("fetch-ansible", &[]).expect("Ansible can be had");
    Some(PROGRAMS.get_or_init(|| env::var_os("BATON_ANSIBLE").map_or_else(fetch, PathBuf::from)).clone())
}

/// A folder in which Ansible finds the collection by its name.
pub fn collections(home: &Path) -> PathBuf {
    let namespace = home.join("collections/ansible_collections/baton");
    if fs::create_dir_all(&namespace).is_ok() {
        let collection = Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/ansible");
        let _ = std::os::unix::fs::symlink(collection.canonicalize().expect("it is there"), namespace.join("rollout"));
    }
    home.join("collections")
}

/// What is played on a site: the role of the collection, on all hosts.
pub struct Stage<'a> {
    site: &'a Site,
    ansible: PathBuf,
    /// Whether tasks come through ssh's pipe (Ansible's `pipelining`), or each in a terminal of its own, as is the default.
    pub pipelining: bool,
}

/// One task on one host.
#[derive(Clone, Debug, Deserialize)]
pub struct Task {
    /// `ok`, `failed`, `unreachable`
    pub status: String,
    /// The host.
    pub host: String,
    /// Its module.
    pub action: String,
    /// What it said.
    pub result: Value,
}

/// A play that is over.
#[derive(Debug)]
pub struct Played {
    /// How `ansible-playbook` ended.
    pub code: Option<i32>,
    /// All that was done.
    pub tasks: Vec<Task>,
    /// What a person read.
    pub text: String,
}

/// A play at work. It is ended with this value.
pub struct Playing {
    child: Child,
    record: PathBuf,
    output: PathBuf,
}

impl<'a> Stage<'a> {
    /// A stage with the site's hosts, and the key to them.
    pub fn new(site: &'a Site) -> Option<Self> {
        let stage = Self { site, ansible: ansible_or_skip()?, pipelining: true };
        let home = site.home.path();
        let key = home.join("key");
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
        assert!(made.expect("there is ssh").success());
        let public = fs::read(key.with_extension("pub")).expect("made");
        site.hosts.iter().for_each(|host| host.write("/root/.ssh/authorized_keys", &public).expect("written"));
        let status = json!({ "agent": "{{ baton_agent }}", "playbook": "{{ baton_playbook }}" });
        let play = json!([{
            "name": "Upgrade", "hosts": "all", "gather_facts": false, "serial": "{{ serial | default('100%') }}",
            "roles": ["baton.rollout.baton"],
            "post_tasks": [{
                "name": "Look", "baton.rollout.baton_status": status, "when": "look | default(false) | bool",
            }, {
                "name": "Hold", "when": "hold | default(false) | bool",
                "ansible.builtin.include_role": { "name": "baton.rollout.baton", "tasks_from": "adopt" },
            }, {
                "name": "Drain", "when": "inventory_hostname in (drained | default([]))",
                "ansible.builtin.include_role": { "name": "baton.rollout.baton", "tasks_from": "drain" },
            }],
        }]);
        fs::write(home.join("play.yml"), play.to_string()).expect("written");
        let restore = json!([{
            "name": "Restore", "hosts": "all", "gather_facts": false,
            "tasks": [{
                "name": "Restore", "ansible.builtin.include_role": { "name": "baton.rollout.baton", "tasks_from": "restore" },
            }],
        }]);
        fs::write(home.join("restore.yml"), restore.to_string()).expect("written");
        stage.invite(|_, _| {});
        Some(stage)
    }

    /// Writes the inventory; the variables of a host, from 1 on, may be others than they are.
    pub fn invite(&self, change: impl Fn(usize, &mut Value)) {
        let hosts = self.site.hosts.iter().enumerate().map(|(index, host)| {
            let mut facts = self.site.host_facts(index);
            change(index + 1, &mut facts);
            (host.name.clone(), facts)
        });
        let hosts: serde_json::Map<_, _> = hosts.collect();
        let home = self.site.home.path();
        // A connection that is cut must not hold up a play: Ansible's own time-out is for connecting alone.
        let ssh = "-F /dev/null -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
                   -o ServerAliveInterval=1 -o ServerAliveCountMax=5";
        let mut facts = self.site.facts();
        let more = json!({
            "ansible_user": "root", "ansible_ssh_private_key_file": home.join("key"), "ansible_ssh_common_args": ssh,
            "ansible_python_interpreter": "/usr/bin/python3", "baton_playbook_template": template(),
        });
        if let (Value::Object(facts), Value::Object(more)) = (&mut facts, more) {
            facts.extend(more);
        }
        let inventory = json!({ "all": { "hosts": hosts, "vars": facts } });
        fs::write(home.join("inventory.json"), inventory.to_string()).expect("written");
    }

    /// Plays to the end.
    pub async fn play(&self, arguments: &[&str]) -> Played {
        self.begin(arguments).ended().await
    }

    /// Plays the entry point `restore` of the role to the end.
    pub async fn restore(&self, arguments: &[&str]) -> Played {
        self.begin_file("restore.yml", arguments).ended().await
    }

    /// Begins to play.
    pub fn begin(&self, arguments: &[&str]) -> Playing {
        self.begin_file("play.yml", arguments)
    }

    fn begin_file(&self, file: &str, arguments: &[&str]) -> Playing {
        let home = self.site.home.path();
        let (record, output) = (home.join("record"), home.join("output"));
        let _ = fs::remove_file(&record);
        let printed = File::create(&output).expect("made");
        let mut play = Command::new(self.ansible.join("ansible-playbook"));
        play.arg("-i").arg(home.join("inventory.json")).arg(home.join(file)).args(arguments).current_dir(home);
        play.env("HOME", home).env("ANSIBLE_COLLECTIONS_PATH", collections(home)).env("BATON_RECORD", &record);
        play.env("ANSIBLE_CALLBACK_PLUGINS", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ansible"));
        play.env("ANSIBLE_CALLBACKS_ENABLED", "record").env("ANSIBLE_FORKS", "5").env("ANSIBLE_TIMEOUT", "5");
        play.env("ANSIBLE_SSH_ARGS", "-o ControlMaster=auto -o ControlPersist=5s").env("ANSIBLE_NOCOLOR", "1");
        play.env("ANSIBLE_PIPELINING", self.pipelining.to_string());
        play.env("PYTHONDONTWRITEBYTECODE", "1").env("LC_ALL", "C.UTF-8");
        play.stdin(Stdio::null()).stdout(printed.try_clone().expect("cloned")).stderr(printed);
        // A terminal's Ctrl-C goes to all of a group.
        let child = play.process_group(0).spawn().expect("it starts");
        Playing { child, record, output }
    }
}

impl Playing {
    /// What a terminal's Ctrl-C does.
    pub fn interrupt(&self) {
        let group = format!("-{}", self.child.id());
        assert!(Command::new("kill").args(["-s", "INT", "--", &group]).status().expect("there is kill").success());
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> Played {
        let status = wait::until("the end of a play", LIMIT, || {
            let ended = self.child.try_wait().map_err(|error| error.to_string());
            let said = fs::read_to_string(&self.output).unwrap_or_default();
            std::future::ready(ended.and_then(|ended| ended.ok_or(said)))
        });
        let code = status.await.expect("it ends").code();
        let lines = fs::read_to_string(&self.record).unwrap_or_default();
        let tasks = lines.lines().map(|line| serde_json::from_str(line).expect("a task")).collect();
        let text = fs::read_to_string(&self.output).expect("it said something");
        Played { code, tasks, text }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
            let _ = wait::until_blocking("its end", GENEROUS, || match self.child.try_wait() {
                Ok(Some(_)) => Ok(()),
                other => Err(format!("{other:?}")),
            });
        }
    }
}

impl Played {
    /// It went well on every host.
    #[track_caller]
    pub fn must_succeed(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{}", self.text);
        self
    }

    /// What the agent's last run on this host came to.
    #[track_caller]
    pub fn run_on(&self, host: usize) -> &Value {
        let run = self.runs(host).next_back();
        assert!(run.is_some(), "no agent ran on h{host}: {}", self.text);
        &run.expect("it ran").result
    }

    /// What a look at the cluster from this host came to.
    #[track_caller]
    pub fn look_from(&self, host: usize) -> &Value {
        let host = format!("h{host}");
        let is_look = |task: &&Task| task.action == "baton.rollout.baton_status" && task.host == host;
        let task = self.tasks.iter().find(is_look);
        assert!(task.is_some(), "nobody looked from {host}: {}", self.text);
        &task.expect("it looked").result
    }

    /// How often the agent ran on this host.
    pub fn runs_on(&self, host: usize) -> usize {
        self.runs(host).count()
    }

    fn runs(&self, host: usize) -> impl DoubleEndedIterator<Item = &Task> {
        let host = format!("h{host}");
        self.tasks.iter().filter(move |task| task.action == "baton.rollout.baton_run" && task.host == host)
    }

    /// How tasks ended on this host: `ok`, `failed`, `unreachable`.
    pub fn verdicts_on(&self, host: usize) -> Vec<&str> {
        let host = format!("h{host}");
        self.tasks.iter().filter(|task| task.host == host).map(|task| &*task.status).collect()
    }

    /// Whether an agent ran anywhere.
    pub fn has_run(&self) -> bool {
        self.tasks.iter().any(|task| task.action == "baton.rollout.baton_run")
    }

    /// The hosts on which something was changed, by any task.
    pub fn changed(&self) -> Vec<&str> {
        let mut hosts: Vec<_> =
            self.tasks.iter().filter(|task| task.result["changed"] == true).map(|task| &*task.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// The sentences of tasks that failed.
    pub fn complaints(&self) -> Vec<&str> {
        self.tasks
            .iter()
            .filter(|task| task.status == "failed")
            .filter_map(|task| task.result["msg"].as_str())
            .collect()
    }
}
