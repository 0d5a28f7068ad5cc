//! This process, as the kernel sees it (proc(5)).

use std::fs;

use rustix::process::{Resource, getrlimit};

/// Ticks of a second in `/proc`, on every Linux there is.
const TICKS_PER_S: f64 = 100.0;
/// Fields of `/proc/self/stat` after the name, counted from 0.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const START_TICKS: usize = 19;
const RESIDENT_PAGES: usize = 21;

/// What monitoring asks of any process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) resident_bytes: u64,
    pub(super) started_unix_s: f64,
    pub(super) cpu_s: f64,
    pub(super) descriptors: usize,
    /// As many may be open; `None`: any number.
    pub(super) most_descriptors: Option<u64>,
}

impl Process {
    /// `None` where the kernel does not say.
    pub(super) fn look() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name may have anything in it, and ends with the last bracket.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
        let ticks = |field: usize| Some(number(field)? as f64 / TICKS_PER_S);
        Some(Self {
            resident_bytes: number(RESIDENT_PAGES)? * PAGE_BYTES,
            started_unix_s: booted_unix_s()? + ticks(START_TICKS)?,
            cpu_s: ticks(USER_TICKS)? + ticks(SYSTEM_TICKS)?,
            descriptors: fs::read_dir("/proc/self/fd").ok()?.count(),
            most_descriptors: getrlimit(Resource::Nofile).current,
        })
    }
}

/// Of the machines that etcd runs on.
const PAGE_BYTES: u64 = 4096;

fn booted_unix_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}
