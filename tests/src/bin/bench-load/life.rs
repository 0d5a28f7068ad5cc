//! How soon a member is there again, and what it holds in memory.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tests::{Error, cluster::Layout, wait};

/// Ends a follower and starts it: milliseconds until it says that it is healthy, which takes a quorum.
pub async fn start_to_healthy(layout: &Layout) -> Result<f64, Error> {
    let member = layout.members.last().ok_or("a cluster without members")?;
    member.end(Signal::TERM)?;
    let (client, began) = (reqwest::Client::new(), Instant::now());
    member.start()?;
    let deadline = began + wait::GENEROUS;
    while Instant::now() < deadline {
        let answer = client.get(format!("{}/health", member.client_url)).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return Ok(began.elapsed().as_secs_f64() * 1e3);
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    Err(format!("{} did not become healthy", member.name).into())
}

/// The most that a member has resident, in megabytes.
pub fn resident_mb(layout: &Layout) -> Result<f64, Error> {
    let mut most = 0;
    for member in &layout.members {
        let process = member.process().ok_or_else(|| format!("{} does not run", member.name))?;
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        most = most.max(line.split_whitespace().next().and_then(|kb| kb.parse().ok()).unwrap_or(0));
    }
    Ok(most as f64 / 1_024.0)
}

/// What all members have had of the processors since they started. In steps of 10 ms (proc(5), `USER_HZ`).
pub fn processor_time(layout: &Layout) -> Result<Duration, Error> {
    let mut ticks = 0;
    for member in &layout.members {
        let process = member.process().ok_or_else(|| format!("{} does not run", member.name))?;
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid))?;
        // Its name may hold spaces; what follows is from the third field on.
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default().split_whitespace();
        ticks += fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(Duration::from_millis(10 * ticks))
}
