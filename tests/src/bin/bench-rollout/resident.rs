//! What processes hold in memory while they run.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::JoinHandle,
    time::Duration,
};

/// The most that any of some processes was resident, as the kernel counts it.
pub struct Peak {
    stop: Arc<AtomicBool>,
    most_kb: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Peak {
    /// Looks at these processes until [`Peak::end`].
    pub fn watch(pids: Vec<i32>) -> Self {
        let (stop, most_kb) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, most) = (stop.clone(), most_kb.clone());
        let thread = std::thread::spawn(move || {
            while !until.load(SeqCst) {
                let now = pids.iter().filter_map(|pid| resident_kb(*pid)).max();
                most.fetch_max(now.unwrap_or(0), SeqCst);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Self { stop, most_kb, thread }
    }

    /// The most, in megabytes.
    pub fn end(self) -> f64 {
        self.stop.store(true, SeqCst);
        // A panicking thread has shown itself on stderr already.
        let _ = self.thread.join();
        self.most_kb.load(SeqCst) as f64 / 1_024.0
    }
}

fn resident_kb(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
