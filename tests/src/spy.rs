//! A program in ELF form that answers `--version` and writes down as whom it was run: what an attacker would have run as
//! root. With two ports it listens at the first and passes on to the second, as what stands in a member's place does.

use std::{
    fs,
    net::{Ipv4Addr, TcpStream},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{Error, skip::skip, wait};

/// The user `nobody`.
pub const NOBODY: u32 = 65534;

/// The program, in a folder that everybody may enter.
pub struct Spy {
    folder: TempDir,
}

impl Spy {
    /// One that says this release; `None` is a skip.
    ///
    /// # Errors
    /// Its folder cannot be made.
    pub fn make(release: &str) -> Result<Option<Self>, Error> {
        if !rustix::process::geteuid().is_root() {
            skip("another user takes root");
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let spy = Self { folder };
        fs::write(spy.told_at(), "")?;
        fs::set_permissions(spy.told_at(), fs::Permissions::from_mode(0o666))?;
        let source = spy.at("spy.c");
        let text = SOURCE.replace("TOLD", &spy.told_at().display().to_string()).replace("RELEASE", release);
        fs::write(&source, text)?;
        match Command::new("cc").arg("-o").arg(spy.program()).arg(&source).status() {
            Ok(built) if built.success() => Ok(Some(spy)),
            Ok(_) => Err("the spy cannot be built".into()),
            Err(_) => {
                skip("there is no C compiler");
                Ok(None)
            }
        }
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn program(&self) -> PathBuf {
        self.at("spy")
    }

    fn told_at(&self) -> PathBuf {
        self.at("told")
    }

    /// As whom it was run, and with how many variables: `euid 0 env 12`, a line for each time.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn told(&self) -> Result<String, Error> {
        Ok(fs::read_to_string(self.told_at())?)
    }

    /// Copies it to a place of another user's.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn give(&self, to: &Path, user: u32) -> Result<(), Error> {
        crate::process::copy_program(&self.program(), to)?;
        Ok(chown(to, Some(user), Some(user))?)
    }

    /// Has another user listen with it, under this name. When this returns it does.
    ///
    /// # Errors
    /// It cannot be copied or started, or does not listen.
    pub fn listen(&self, name: &str, user: u32, at: u16, to: u16) -> Result<Listening, Error> {
        use std::os::unix::process::CommandExt;
        if self.at(name) != self.program() {
            self.give(&self.at(name), 0)?;
        }
        let mut command = Command::new(self.at(name));
        command.uid(user).gid(user).args([at.to_string(), to.to_string()]).process_group(0);
        let listening = Listening(command.stdin(Stdio::null()).spawn()?);
        wait::until_blocking("the spy to listen", wait::GENEROUS, || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, at)).map(drop).map_err(|error| error.to_string())
        })?;
        Ok(listening)
    }
}

/// A spy that listens, until this value goes.
pub struct Listening(Child);

impl Listening {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Its connections have processes of their own.
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

const SOURCE: &str = r#"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
extern char **environ;
static struct sockaddr_in at(const char *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}
static void pass_on(int from, int to) {
    struct pollfd both[2] = {{from, POLLIN, 0}, {to, POLLIN, 0}};
    char bytes[65536];
    for (;;) {
        if (poll(both, 2, -1) < 0) exit(0);
        for (int i = 0; i < 2; i++) {
            if (!both[i].revents) continue;
            ssize_t count = read(both[i].fd, bytes, sizeof bytes);
            if (count <= 0) exit(0);
            for (ssize_t done = 0, now; done < count; done += now)
                if ((now = write(both[1 - i].fd, bytes + done, count - done)) <= 0) exit(0);
        }
    }
}
int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        int variables = 0;
        for (char **variable = environ; *variable; variable++) variables++;
        FILE *told = fopen("TOLD", "a");
        fprintf(told, "euid %d env %d\n", geteuid(), variables);
        fclose(told);
        puts("etcd Version: RELEASE");
        return 0;
    }
    if (argc != 3) return 2;
    signal(SIGCHLD, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    struct sockaddr_in here = at(argv[1]), there = at(argv[2]);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 64)) return 1;
    for (;;) {
        int from = accept(listener, 0, 0);
        if (from < 0) continue;
        if (!fork()) {
            int to = socket(AF_INET, SOCK_STREAM, 0);
            close(listener);
            if (!connect(to, (struct sockaddr *)&there, sizeof there)) pass_on(from, to);
            exit(0);
        }
        close(from);
    }
}
"#;
