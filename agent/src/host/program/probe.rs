//! A foreign program, asked for its version, with a member's arguments or without any, by a process that has become another user for good.
//!
//! The launcher gets the program's file as its stdin, opened and judged by the agent, so that what runs is what was
//! looked at. It begins a session of its own, so that the program has no terminal to type on; closes what it inherited;
//! becomes the user with that user's groups; gives up every way to more rights (prctl(2), `PR_SET_NO_NEW_PRIVS`); and
//! executes the file with an empty environment in `/`. It dies with the agent.

use std::{
    convert::Infallible,
    env,
    ffi::{CStr, CString},
    fs::File,
    io::{self, stdin},
    iter,
    os::fd::{AsFd, RawFd},
    path::Path,
    thread::sleep,
    time::Duration,
};

use nix::{
    fcntl::AtFlags,
    unistd::{Gid, Uid},
};
use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, Signal},
};

use super::launcher;
use crate::host::process::credentials::Credentials;

/// The launcher's argument for it.
pub(crate) const ARGUMENT: &str = "version";

/// What could not be done on the way.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing}")]
pub(crate) struct ProbeError {
    doing: &'static str,
    source: io::Error,
}

fn failed<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> ProbeError {
    move |source| ProbeError { doing, source: source.into() }
}

/// The command line of the launcher, for a program that shows itself by this path and gets these arguments before
/// `--version`.
pub(crate) fn argv(launcher: &[String], program: &Path, user: &Credentials, arguments: &[String]) -> Vec<String> {
    let groups: Vec<_> = user.groups.iter().map(u32::to_string).collect();
    let words = [ARGUMENT.to_owned(), user.uid.to_string(), user.gid.to_string(), groups.join(",")];
    let shown = program.to_string_lossy().replace('\0', "");
    launcher.iter().cloned().chain(words).chain([shown]).chain(arguments.iter().cloned()).collect()
}

/// What [`argv`] has after [`ARGUMENT`].
struct Order {
    user: Credentials,
    program: CString,
    arguments: Vec<CString>,
}

impl Order {
    fn read(words: &[String]) -> Option<Self> {
        let [uid, gid, groups, program, arguments @ ..] = words else { return None };
        let groups =
            groups.split(',').filter(|word| !word.is_empty()).map(str::parse).collect::<Result<_, _>>().ok()?;
        let user = Credentials { uid: uid.parse().ok()?, gid: gid.parse().ok()?, groups };
        let text = |word: &String| CString::new(word.as_str()).ok();
        Some(Self { user, program: text(program)?, arguments: arguments.iter().map(text).collect::<Option<_>>()? })
    }
}

/// Returns only when the program was not executed; `answer` is kept open for saying so, and closed by the execution.
pub(crate) fn become_program(answer: RawFd) -> Result<Infallible, ProbeError> {
    launcher::close_inherited(answer).map_err(failed("close inherited descriptors"))?;
    let words: Vec<String> = env::args().skip_while(|word| word != ARGUMENT).skip(1).collect();
    let order = Order::read(&words).ok_or(io::ErrorKind::InvalidInput).map_err(failed("read the order"))?;
    rustix::process::setsid().map_err(failed("begin a session"))?;
    let program = rustix::io::fcntl_dupfd_cloexec(stdin(), 3).map_err(failed("take the program"))?;
    let nothing = File::open("/dev/null").map_err(failed("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&nothing).map_err(failed("redirect stdin"))?;
    env::set_current_dir("/").map_err(failed("enter /"))?;
    rustix::process::umask(Mode::from_bits_truncate(0o077));
    let no_core = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, no_core).map_err(failed("forbid core files"))?;
    become_user(&order.user)?;
    rustix::thread::set_no_new_privs(true).map_err(failed("give up further rights"))?;
    // After the user has changed, which would take it back.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("die with the agent"))?;
    execute(&program, &order)
}

/// Groups first: once the user has changed, there is no right to change them.
fn become_user(user: &Credentials) -> Result<(), ProbeError> {
    if !Uid::effective().is_root() {
        let is_own = user.uid == Uid::effective().as_raw();
        return if is_own { Ok(()) } else { Err(failed("become the user")(nix::errno::Errno::EPERM)) };
    }
    let groups: Vec<Gid> = user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    nix::unistd::setgroups(&groups).map_err(failed("take the user's groups"))?;
    let (gid, uid) = (Gid::from_raw(user.gid), Uid::from_raw(user.uid));
    nix::unistd::setresgid(gid, gid, gid).map_err(failed("take the user's group"))?;
    nix::unistd::setresuid(uid, uid, uid).map_err(failed("become the user"))
}

/// A file that was unpacked a moment ago may still be open for writing in a process that is just being started elsewhere
/// (ETXTBSY, execve(2)); that is over in a moment.
fn execute(program: impl AsFd, order: &Order) -> Result<Infallible, ProbeError> {
    let nothing: [&CStr; 0] = [];
    let arguments = order.arguments.iter().map(CString::as_c_str);
    let words: Vec<&CStr> = iter::once(order.program.as_c_str()).chain(arguments).chain([c"--version"]).collect();
    for _ in 0..100 {
        match nix::unistd::execveat(&program, c"", &words, &nothing, AtFlags::AT_EMPTY_PATH) {
            Err(nix::errno::Errno::ETXTBSY) => sleep(Duration::from_millis(10)),
            executed => return executed.map_err(failed("run it")),
        }
    }
    Err(failed("run it")(nix::errno::Errno::ETXTBSY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_given() {
        for groups in [vec![], vec![7], vec![7, 8]] {
            let user = Credentials { uid: 5, gid: 6, groups };
            let given = ["--name=m1".to_owned(), "--x".to_owned()];
            let words = argv(&["agent".into()], Path::new("/opt/a b"), &user, &given);
            let order = Order::read(&words[2..]).unwrap();
            assert_eq!(order.arguments, [c"--name=m1".to_owned(), c"--x".to_owned()]);
            assert_eq!((order.user, order.program.as_c_str()), (user, c"/opt/a b"));
        }
        for bad in [&["1", "2", "3"][..], &["x", "2", "", "p"], &["1", "2", "3;4", "p"], &["1", "2", "", "p", "a\0b"]] {
            let words: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert!(Order::read(&words).is_none(), "{bad:?}");
        }
    }
}
