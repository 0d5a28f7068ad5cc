//! A foreign program is asked for its version as somebody who may be trusted with that.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use agent::host::{
    process::credentials::Credentials,
    program::executable::{ExecutableError, release_by},
};
use proto::Release;
use tempfile::TempDir;

use crate::process::AGENT;

const NOBODY: u32 = 65534;

fn launcher() -> Vec<String> {
    vec![AGENT.into(), "__launch".into()]
}

fn nobody() -> Credentials {
    Credentials { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY] }
}

/// A folder that everybody may enter.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A program in ELF form that says a version and writes down what it is: as a shell script could not, as that is refused.
fn spy(folder: &Path, more: &str) -> Option<PathBuf> {
    let told = folder.join("told");
    fs::write(&told, "").unwrap();
    fs::set_permissions(&told, fs::Permissions::from_mode(0o666)).unwrap();
    let source = SPY.replace("TOLD", &told.display().to_string()).replace("MORE", more);
    fs::write(folder.join("spy.c"), source).unwrap();
    let built = Command::new("cc").arg("-o").arg(folder.join("spy")).arg(folder.join("spy.c")).status();
    match built {
        Ok(built) => {
            assert!(built.success(), "the program is sound, but cannot be built");
            Some(folder.join("spy"))
        }
        Err(_) => {
            eprintln!("skipped: there is no C compiler");
            None
        }
    }
}

const SPY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
    uid_t r, e, s; gid_t groups[64];
    getresuid(&r, &e, &s);
    FILE *told = fopen("TOLD", "w");
    int count = getgroups(64, groups), zero = 0, variables = 0, inherited = 0;
    for (int i = 0; i < count; i++) zero += groups[i] == 0;
    for (char **at = environ; *at; at++) variables++;
    for (int fd = 3; fd < 256; fd++) inherited += fcntl(fd, F_GETFD) >= 0 && fd != fileno(told);
    char cwd[4096]; getcwd(cwd, sizeof cwd);
    int tty = open("/dev/tty", O_RDWR);
    fprintf(told, "uids %d %d %d gid %d zero %d env %d fds %d cwd %s leader %d tty %d in %d\n", r, e, s, getegid(), zero,
        variables, inherited, cwd, getsid(0) == getpid(), tty >= 0, getchar());
    fclose(told);
    MORE
    puts("etcd Version: 3.5.30");
    return 0;
}
"#;

#[tokio::test]
async fn a_program_is_asked_as_another_user_with_nothing_of_roots() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: another user takes root");
    }
    let folder = folder();
    let Some(spy) = spy(folder.path(), "") else { return };
    for (owner, user, uid) in [(0, nobody(), NOBODY), (NOBODY, nobody(), NOBODY), (0, Credentials::own(), 0)] {
        chown(&spy, Some(owner), Some(owner)).unwrap();
        assert_eq!(release_by(&launcher(), &spy, &user).await.unwrap(), Release::new(3, 5, 30));
        let told = fs::read_to_string(folder.path().join("told")).unwrap();
        let expected = format!("uids {uid} {uid} {uid} gid {uid} zero ");
        assert!(told.starts_with(&expected), "{told}");
        assert!(told.ends_with(" env 0 fds 0 cwd / leader 1 tty 0 in -1\n"), "{told}");
        assert!(uid == 0 || told.contains(" zero 0 "), "{told}");
    }
    // Root does not run what nobody may change, and a set-id bit brings nobody back to root.
    let error = release_by(&launcher(), &spy, &Credentials::own()).await.map(drop);
    chown(&spy, Some(NOBODY), Some(NOBODY)).unwrap();
    assert!(error.is_ok());
    let error = release_by(&launcher(), &spy, &Credentials::own()).await.unwrap_err();
    assert!(matches!(error, ExecutableError::Owner(_)), "{error}");
    chown(&spy, Some(0), Some(0)).unwrap();
    fs::set_permissions(&spy, fs::Permissions::from_mode(0o4755)).unwrap();
    release_by(&launcher(), &spy, &nobody()).await.unwrap();
    let told = fs::read_to_string(folder.path().join("told")).unwrap();
    assert!(told.starts_with(&format!("uids {NOBODY} {NOBODY} {NOBODY} ")), "{told}");
}

#[tokio::test]
async fn a_program_that_others_may_change_is_not_asked() {
    let folder = folder();
    let Some(spy) = spy(folder.path(), "") else { return };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = release_by(&launcher(), &spy, &Credentials::own()).await.unwrap_err();
    assert!(error.to_string().ends_with(&format!("type: chmod go-w {}", folder.path().display())), "{error}");
    assert_eq!(fs::read_to_string(folder.path().join("told")).unwrap(), "", "it was not run");
}

#[tokio::test]
async fn what_it_says_is_bounded_and_what_it_is_not_is_said() {
    let cargo = Path::new(env!("CARGO"));
    assert!(release_by(&launcher(), cargo, &Credentials::own()).await.unwrap() >= Release::new(1, 88, 0));
    let error = release_by(&launcher(), Path::new("/bin/false"), &Credentials::own()).await.unwrap_err();
    assert!(matches!(error, ExecutableError::NoVersion { .. }), "{error}");

    let folder = folder();
    let loud = "for (int i = 0; i < 3000000; i++) putchar('x'); puts(\"\");";
    let Some(spy) = spy(folder.path(), loud) else { return };
    assert_eq!(release_by(&launcher(), &spy, &Credentials::own()).await.unwrap(), Release::new(3, 5, 30));
    // A file that is no program after all.
    fs::write(folder.path().join("cut"), b"\x7fELF").unwrap();
    fs::set_permissions(folder.path().join("cut"), fs::Permissions::from_mode(0o755)).unwrap();
    let error = release_by(&launcher(), &folder.path().join("cut"), &Credentials::own()).await.unwrap_err();
    assert!(matches!(error, ExecutableError::NotRun { .. }), "{error}");
}
