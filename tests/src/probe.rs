//! The client that is kept waiting, while members are busy with something else.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use proto::etcdserverpb::{PutRequest, kv_client::KvClient};
use tonic::transport::{Channel, Endpoint};

use crate::{Error, cluster::Layout};

/// Between two puts.
pub const INTERVAL: Duration = Duration::from_millis(10);

/// A connection to the member that leads now.
///
/// # Errors
/// None does.
pub async fn at_leader(layout: &Layout) -> Result<Channel, Error> {
    let url = layout.leader().await?.client_url.clone();
    Ok(Endpoint::from_shared(url)?.tcp_nodelay(true).connect_lazy())
}

/// Puts once; how long it took.
///
/// # Errors
/// The member refuses.
pub async fn put(client: &mut KvClient<Channel>) -> Result<Duration, Error> {
    let began = Instant::now();
    client.put(PutRequest { key: b"probe".into(), value: b"x".into(), ..PutRequest::default() }).await?;
    Ok(began.elapsed())
}

/// The longest that a put at the leader took, in milliseconds, while something else goes on for so long.
///
/// # Errors
/// A put is refused, or what else goes on fails.
pub async fn slowest_ms(
    layout: &Layout,
    time: Duration,
    busy: impl Future<Output = Result<(), Error>>,
) -> Result<f64, Error> {
    let mut client = KvClient::new(at_leader(layout).await?);
    put(&mut client).await?;
    let probing = async {
        let (began, mut slowest) = (Instant::now(), Duration::ZERO);
        while began.elapsed() < time {
            slowest = slowest.max(put(&mut client).await?);
            tokio::time::sleep(INTERVAL).await;
        }
        Ok::<_, Error>(slowest.as_secs_f64() * 1e3)
    };
    tokio::pin!(probing, busy);
    tokio::select! {
        slowest = &mut probing => slowest,
        outcome = &mut busy => {
            outcome?;
            probing.await
        }
    }
}

/// The same, for as long as something else takes.
///
/// # Errors
/// A put is refused, or what else goes on fails.
pub async fn slowest_until(layout: &Layout, busy: impl Future<Output = Result<(), Error>>) -> Result<f64, Error> {
    let mut client = KvClient::new(at_leader(layout).await?);
    put(&mut client).await?;
    let mut slowest = Duration::ZERO;
    tokio::pin!(busy);
    loop {
        let probing = put(&mut client);
        tokio::pin!(probing);
        tokio::select! {
            // A put that is under way when it ends counts, too.
            outcome = &mut busy => {
                outcome?;
                return Ok(slowest.max(probing.await?).as_secs_f64() * 1e3);
            }
            took = &mut probing => slowest = slowest.max(took?),
        }
        tokio::select! {
            outcome = &mut busy => return outcome.map(|()| slowest.as_secs_f64() * 1e3),
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}
