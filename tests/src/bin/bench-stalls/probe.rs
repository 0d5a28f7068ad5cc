//! The client that is kept waiting.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use proto::etcdserverpb::{PutRequest, kv_client::KvClient};
use tests::{Error, cluster::Layout};
use tonic::transport::{Channel, Endpoint};

/// Between two puts.
pub const INTERVAL: Duration = Duration::from_millis(10);

pub async fn at_leader(layout: &Layout) -> Result<Channel, Error> {
    let url = layout.leader().await?.client_url.clone();
    Ok(Endpoint::from_shared(url)?.tcp_nodelay(true).connect_lazy())
}

/// Puts once; how long it took.
pub async fn put(client: &mut KvClient<Channel>) -> Result<Duration, Error> {
    let began = Instant::now();
    client.put(PutRequest { key: b"probe".into(), value: b"x".into(), ..PutRequest::default() }).await?;
    Ok(began.elapsed())
}

/// The longest that a put at the leader took, in milliseconds, while something else goes on for so long.
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
