//! How soon a member is there again, and what it holds in memory.

use std::{fs, time::Instant};

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
