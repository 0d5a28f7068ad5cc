//! The users and roles that `agent init --print-role` says Baton wants, typed as they are printed.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{
    agent,
    case::sure,
    cluster::Layout,
    system::{Build, System},
};

/// A person at a shell, with the etcdctl of a release.
pub struct Shell {
    /// Where passwords come to lie.
    pub dir: PathBuf,
    bin: PathBuf,
    printed: Value,
}

impl Shell {
    /// In a folder beside the cluster's members.
    ///
    /// # Panics
    /// The agent prints nothing, or not what its object says.
    pub fn of(layout: &Layout, build: &Build) -> Self {
        assert_eq!(build.system, System::Etcd, "no other has an etcdctl");
        let dir = layout.dir.join("etc-baton");
        sure(fs::create_dir_all(&dir));
        let endpoints = layout.endpoints().join(",");
        let files = layout.certificates.as_ref();
        let files =
            files.map(|files| [("--ca", &files.ca), ("--cert", &files.client.cert), ("--key", &files.client.key)]);
        let files: Vec<_> =
            files.iter().flatten().flat_map(|(flag, file)| [flag, file.to_str().expect("UTF-8")]).collect();
        let mut printed = print(&[&["--endpoints", &endpoints, "--output", "json"][..], &files].concat());
        let shell = Self { dir, bin: build.bin.clone(), printed: printed["roles"].take() };
        let text = printed["text"].as_str().unwrap_or_default();
        for command in shell.block("environment").iter().chain(&shell.block("enable")).chain(&shell.block("narrow")) {
            assert!(text.lines().any(|line| line == command), "{command} is not in\n{text}");
        }
        shell
    }

    /// What was printed, as an object.
    pub fn printed(&self) -> &Value {
        &self.printed
    }

    /// Switches auth on and makes both users; from then on this is root's shell.
    pub fn makes_users(&self) {
        let lines: Vec<_> = ["enable", "root", "viewer"].iter().flat_map(|name| self.block(name)).collect();
        self.types("", &lines);
    }

    /// A printed block.
    ///
    /// # Panics
    /// There is none of this name.
    pub fn block(&self, name: &str) -> Vec<String> {
        let commands = self.printed["commands"][name].as_array().expect("a block");
        commands.iter().map(|command| command.as_str().expect("a command").to_owned()).collect()
    }

    /// Types these lines as root of etcd, once there is one, the way that is printed: the password on stdin.
    pub fn types_as_root(&self, lines: &[String]) -> String {
        self.types(&self.password("root"), &[&self.block("login"), lines].concat())
    }

    /// Types these lines one after the other; the first that fails is the last.
    ///
    /// # Panics
    /// One fails.
    fn types(&self, keys: &str, lines: &[String]) -> String {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin.display());
        let mut shell = Command::new("bash");
        let lines = [&self.block("environment"), lines].concat();
        shell.args(["-e", "-c", &lines.join("\n")]).current_dir(&self.dir).env("PATH", path);
        // etcdctl gives a call 5 s, and passwords are made expensive on purpose.
        shell.env("ETCDCTL_COMMAND_TIMEOUT", "60s").env("ETCDCTL_DIAL_TIMEOUT", "60s");
        let mut child =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bash");
        let typed = child.stdin.take().map(|mut stdin| stdin.write_all(format!("{keys}\n").as_bytes()));
        // Whoever reads nothing may have ended before.
        drop(typed);
        let done = child.wait_with_output().expect("it ended");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{lines:#?}\n{said}{}", String::from_utf8_lossy(&done.stderr));
        said
    }

    /// The file with a user's password.
    pub fn password_file(&self, user: &str) -> PathBuf {
        self.dir.join(format!("{user}.password"))
    }

    pub fn password(&self, user: &str) -> String {
        sure(fs::read_to_string(self.password_file(user))).trim_end().to_owned()
    }

    /// A user with some role of other keys, or with none.
    pub fn adds(&self, user: &str, grants: &[&str]) {
        sure(fs::write(self.password_file(user), "welcome\n"));
        sure(fs::set_permissions(self.password_file(user), fs::Permissions::from_mode(0o600)));
        let mut lines = vec![format!("etcdctl user add {user} --interactive=false < {user}.password")];
        if !grants.is_empty() {
            lines.push(format!("etcdctl role add {user}"));
            lines.extend(grants.iter().map(|grant| format!("etcdctl role grant-permission {user} {grant}")));
            lines.push(format!("etcdctl user grant-role {user} {user}"));
        }
        self.types_as_root(&lines);
    }

    /// The playbook's line for this user.
    pub fn auth(&self, user: &str) -> String {
        let file = crate::playbook::quoted(&self.password_file(user).to_string_lossy());
        format!("auth: {{ user: {user}, password_file: {file} }}")
    }
}

/// Types `agent init --print-role` with more arguments.
fn print(more: &[&str]) -> Value {
    let mut command = Command::new(sure(agent::executable()));
    let done = command.args(["init", "--print-role"]).args(more).output().expect("it ran");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    serde_json::from_slice(&done.stdout).expect("an object")
}
