//! One connection to one address: it is made once, and who is there is known of it alone.
//!
//! A channel of tonic's connects again by itself, and whoever has come to be at the address then gets what was meant
//! for another. This one does not: where its connection has ended a call fails before anything of it is sent, and who
//! is there is asked anew over the next one.

use std::{
    error::Error,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tonic::{
    ConnectError, Status,
    codegen::{BoxFuture, Service, StdError, http::Uri},
    transport::{Channel, ClientTlsConfig, Endpoint},
};

use super::{access::CALL, introduction::Peer, spoken::Spoken, tls::TlsFiles};

/// How long a connection may take to be made; below [`CALL`], so that a dead host is told from a slow one.
pub const CONNECT: Duration = Duration::from_secs(2);
/// How often an open stream is checked for life; etcd closes a connection that asks more often than each 5 s.
const PING: Duration = Duration::from_secs(10);

/// One connection, made when it is first used.
#[derive(Debug)]
pub(crate) struct Line {
    pub address: String,
    /// What calls are sent over.
    pub channel: Channel,
    /// Which state of the TLS files it was made with.
    pub(super) generation: u64,
    pub(super) peer: OnceLock<Peer>,
}

impl Line {
    /// A line that is not open yet, or what was expected of the address instead.
    pub(super) fn to(address: &str, tls: Option<&TlsFiles>, generation: u64) -> Result<Self, &'static str> {
        let mut dialer = HttpConnector::new();
        dialer.enforce_http(false);
        dialer.set_nodelay(true);
        dialer.set_connect_timeout(Some(CONNECT));
        let once = Once { dialer, is_made: Arc::default() };
        let channel = endpoint(address, tls.map(TlsFiles::for_grpc))?.connect_with_connector_lazy(once);
        Ok(Self { address: address.to_owned(), channel, generation, peer: OnceLock::new() })
    }
}

/// What to connect to, or what was expected of the address instead.
pub(super) fn endpoint(address: &str, tls: Option<ClientTlsConfig>) -> Result<Endpoint, &'static str> {
    let url = Endpoint::from_shared(address.to_owned()).map_err(|_| "expected a URL such as https://10.0.0.1:2379")?;
    let endpoint = url.connect_timeout(CONNECT).http2_keep_alive_interval(PING).keep_alive_timeout(CALL);
    match (endpoint.uri().scheme_str(), tls) {
        (Some("http"), None) => Ok(endpoint),
        (Some("http"), Some(_)) => Err("with `cluster.tls` no http address is used"),
        (Some("https"), Some(tls)) => {
            endpoint.tls_config(tls).map_err(|_| "the files of `cluster.tls` do not fit together")
        }
        (Some("https"), None) => Err("an https address needs `cluster.tls`"),
        _ => Err("expected http:// or https://"),
    }
}

/// Makes one connection, and no second one.
struct Once {
    dialer: HttpConnector,
    is_made: Arc<AtomicBool>,
}

/// The connection of a line is over, and nothing was sent.
#[derive(Debug, thiserror::Error)]
#[error("the connection was closed")]
struct Ended;

impl Service<Uri> for Once {
    type Response = TokioIo<Spoken>;
    type Error = StdError;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.dialer.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        if self.is_made.load(SeqCst) {
            return Box::pin(async { Err(Ended.into()) });
        }
        let (dialled, is_made) = (self.dialer.call(address), Arc::clone(&self.is_made));
        // By itself, as a call that is given up is waited for by nobody, and its connection may be made all the same.
        let dialled = tokio::spawn(async move {
            let connection = Spoken::over(dialled.await?.into_inner())?;
            Ok::<_, StdError>(TokioIo::new(connection))
        });
        Box::pin(async move {
            let connection = dialled.await??;
            is_made.store(true, SeqCst);
            Ok(connection)
        })
    }
}

/// Whether nothing was sent, as the connection of the line was over before.
pub(super) fn had_ended(status: &Status) -> bool {
    has_cause::<Ended>(status)
}

/// Whether no connection was made, so that trying again at once is of no use.
pub(super) fn is_unconnected(status: &Status) -> bool {
    has_cause::<ConnectError>(status)
}

fn has_cause<E: Error + 'static>(status: &Status) -> bool {
    std::iter::successors(status.source(), |error| (*error).source()).any(|error| error.is::<E>())
}
