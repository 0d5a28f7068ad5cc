//! Leases that end while a plan runs: what one holds is there until its time is over, and gone on every member some time later.
//!
//! A lease may live longer than it was granted for: whoever leads from now on counts it anew (etcd, lessor, `Promote`). It never ends
//! sooner.

use std::time::{Duration, Instant};

use lab::{
    Error,
    client::Client,
    wait::{self, GENEROUS},
};
use proto::etcdserverpb::{LeaseGrantRequest, PutRequest, kv_client::KvClient, lease_client::LeaseClient};

use super::stage::Stage;

/// In seconds, of each step: one that ends within most steps, and one that outlives many.
const TIMES: [i64; 2] = [3, 12];

/// What was granted so far.
#[derive(Debug, Default)]
pub(super) struct Leases(Vec<Brief>);

/// A key, and the lease that holds it.
#[derive(Debug)]
struct Brief {
    key: String,
    lease: i64,
    /// It is there until then at least.
    until: Instant,
}

impl Leases {
    /// Grants leases to keys of this step.
    pub(super) async fn grant(&mut self, step: usize, members: &[Client]) -> Result<(), Error> {
        for (ttl, member) in TIMES.into_iter().zip(members.iter().cycle()) {
            let key = format!("brief/{step}/{ttl}");
            let began = Instant::now();
            let grant = member.request(LeaseGrantRequest { ttl, ..LeaseGrantRequest::default() }).await?;
            let granted = member.outcome(LeaseClient::new(member.channel()).lease_grant(grant).await).await?;
            let put = PutRequest { key: key.clone().into(), lease: granted.id, ..PutRequest::default() };
            let put = KvClient::new(member.channel()).put(member.request(put).await?).await;
            let until = began + Duration::from_secs(u64::try_from(ttl).unwrap_or_default());
            match member.outcome(put).await {
                Ok(_) => self.0.push(Brief { key, lease: granted.id, until }),
                // It was over before this machine came to it.
                Err(_) if Instant::now() >= until => {}
                Err(status) => return Err(status.into()),
            }
        }
        Ok(())
    }

    /// Reads what must be there yet, through one member after the other.
    pub(super) async fn hold(&self, members: &[Client]) -> Result<(), Error> {
        for (brief, member) in self.0.iter().zip(members.iter().cycle()) {
            let found = member.get(&brief.key).await?;
            // Where the answer took longer nothing is known.
            if found.is_none() && Instant::now() < brief.until {
                let Brief { key, lease, .. } = brief;
                return Err(format!("{key} is gone, and its lease {lease:x} had not ended").into());
            }
        }
        Ok(())
    }

    /// Waits until all have ended, on every member.
    pub(super) async fn end(&self, stage: &Stage) -> Result<(), Error> {
        let members = stage.clients()?;
        let all_gone = || async {
            for (member, host) in members.iter().zip(stage.hosts()) {
                let left = member.under("brief/").await.map_err(|status| status.to_string())?;
                if let Some(kv) = left.first() {
                    let (key, name) = (String::from_utf8_lossy(&kv.key).into_owned(), crate::plan::tree::member(host));
                    return Err(format!("{name} still has {key}, of lease {:x}", kv.lease));
                }
            }
            Ok(())
        };
        Ok(wait::until("every lease that was granted for seconds to end", GENEROUS, all_gone).await?)
    }
}
