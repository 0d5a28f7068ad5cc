//! One key, and very many who watch it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tests::{Error, cluster::Layout, much};
use tokio::task::JoinSet;

/// Writes the key again and again, each time when the last write is answered: how many events all watches together get a second.
pub async fn events_a_second(layout: &Layout, watches: usize, time: Duration) -> Result<f64, Error> {
    let events = Arc::new(AtomicU64::new(0));
    let mut readers = JoinSet::new();
    for (keep, mut answers) in much::watches_of(layout, watches, |_| "watched".into()).await?.into_streams() {
        let events = events.clone();
        readers.spawn(async move {
            let _keep = keep;
            while let Some(answer) = answers.message().await? {
                events.fetch_add(answer.events.len() as u64, Relaxed);
            }
            Ok::<_, tonic::Status>(())
        });
    }
    let client = layout.client(layout.members.first().ok_or("a cluster without members")?)?;
    let began = Instant::now();
    while began.elapsed() < time {
        client.put("watched", "again").await?;
        if let Some(ended) = readers.try_join_next() {
            ended??;
            return Err("a watch ended".into());
        }
    }
    Ok(events.load(Relaxed) as f64 / began.elapsed().as_secs_f64())
}
