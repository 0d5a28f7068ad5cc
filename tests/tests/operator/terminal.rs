//! A terminal with an agent in its foreground, and whoever types at it.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use tests::{agent::executable, wait};

/// What ^C and ^D are typed as.
pub const INTERRUPT: &str = "\x03";
pub const END: &str = "\x04";

/// An agent at a terminal. It is killed with this value.
pub struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Types `agent VERB playbook` with more arguments at a new terminal.
    pub fn start(verb: &str, playbook: &Path, more: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let side = || open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other side");
        // In a session of its own, with this terminal for its terminal.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(executable().expect("an agent")).arg(verb).arg(playbook).args(more);
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("setsid");
        drop(command);
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        let screen = Arc::clone(&shown);
        let mut reader = File::from(master.try_clone().expect("another handle"));
        let reader = std::thread::spawn(move || {
            let mut block = [0; 4096];
            // The end of the last one at the other side is an error here.
            while let Ok(length @ 1..) = reader.read(&mut block) {
                screen.lock().unwrap_or_else(PoisonError::into_inner).extend(&block[..length]);
            }
        });
        Self { child, keyboard: File::from(master), shown, reader: Some(reader) }
    }

    /// All that was shown so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Waits until this is shown.
    pub async fn until_shown(&self, text: &str) {
        let what = format!("`{text}` at the terminal");
        let look = || std::future::ready(self.shown().contains(text).then_some(()).ok_or_else(|| self.shown()));
        wait::until(&what, Duration::from_secs(120), look).await.expect("shown");
    }

    /// Types.
    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits for the agent's end: its exit code, and all that was shown.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let ended = wait::until("the agent at the terminal to end", tests::rollout::LIMIT, || {
            let status: Result<Option<ExitStatus>, _> = self.child.try_wait();
            std::future::ready(status.map_err(|e| e.to_string()).and_then(|s| s.ok_or_else(|| self.shown())))
        });
        let status = ended.await.expect("it ended");
        // What it wrote last may still be on its way here.
        self.reader.take().map(JoinHandle::join).transpose().expect("read to its end");
        (status.code(), self.shown())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Nothing when it has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
