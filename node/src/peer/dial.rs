//! Connects to a member at whichever of its peer URLs lets it first: all are its own. Where none does, over what it has opened
//! itself.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, select_ok},
};
use http::Uri;
use hyper_util::rt::TokioIo;
use proto::MemberId;
use tokio::time::timeout;
use tonic::codegen::Service;

use crate::{
    config::{Url, UrlError},
    host::{Address, Host, Socket},
    transport::{log_throttle::LogThrottle, tls::ClientTls},
};

use super::{
    answered::Unanswered,
    call_back::{CallBack, CallBacks},
};

/// A host that does not answer at all is given up after this.
const CONNECT: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Dial {
    host: Arc<dyn Host>,
    tls: Option<Arc<ClientTls>>,
    /// Where the member is now; with commas between.
    urls: Arc<dyn Fn() -> String + Send + Sync>,
    /// Where it may have opened one itself.
    call_backs: Option<(MemberId, CallBacks)>,
    unanswered: Unanswered,
    log_throttle: Arc<LogThrottle>,
}

/// What a request says of whom it is for: the first of these URLs. Nobody looks at it.
pub(super) fn authority(urls: &str) -> String {
    let first = read(urls).ok().and_then(|urls| urls.into_iter().next());
    first.map_or_else(String::new, |url| match url.address() {
        address @ Address::Tcp { .. } => address.to_string(),
        Address::Unix(_) => "localhost".into(),
    })
}

fn read(urls: &str) -> Result<Vec<Url>, UrlError> {
    urls.split(',').map(str::parse).collect()
}

impl Dial {
    pub(super) fn new(
        host: Arc<dyn Host>,
        tls: Option<Arc<ClientTls>>,
        urls: Arc<dyn Fn() -> String + Send + Sync>,
        log_throttle: Arc<LogThrottle>,
    ) -> Self {
        Self { host, tls, urls, call_backs: None, unanswered: Unanswered::default(), log_throttle }
    }

    /// Over what this member has opened, where it cannot be dialled, or nobody has answered who was.
    pub(super) fn or_over(mut self, member: MemberId, call_backs: CallBacks, unanswered: Unanswered) -> Self {
        self.call_backs = Some((member, call_backs));
        self.unanswered = unanswered;
        self
    }

    fn reach(&self, url: &Url) -> BoxFuture<'static, io::Result<Box<dyn Socket>>> {
        let connecting = self.host.connect(url.address());
        if !url.is_tls() {
            return connecting;
        }
        let (tls, host) = (self.tls.clone(), url.host().to_owned());
        async move {
            let none = "it is reached by TLS, and this member has neither --peer-cert-file nor --peer-auto-tls";
            let tls = tls.ok_or_else(|| io::Error::other(none))?;
            tls.connect(&host, connecting.await?).await
        }
        .boxed()
    }
}

impl Service<Uri> for Dial {
    type Response = TokioIo<Box<dyn Socket>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        // All at once: one that swallows what is sent to it would take all the time that there is for a vote.
        let urls = (self.urls)();
        let tries = read(&urls).map(|urls| urls.iter().map(|url| self.reach(url)).collect::<Vec<_>>());
        let (call_backs, log_throttle) = (self.call_backs.clone(), self.log_throttle.clone());
        let unanswered = self.unanswered.clone();
        async move {
            let take = |take: fn(&CallBacks, MemberId) -> Option<CallBack>| {
                let (member, call_backs) = call_backs.as_ref()?;
                Some(Box::new(take(call_backs, *member)?) as Box<dyn Socket>)
            };
            let is_unanswered = unanswered.take();
            if let Some(socket) = take(if is_unanswered { CallBacks::take } else { CallBacks::take_better }) {
                if is_unanswered {
                    log_throttle.say("somebody listens at a member's URL and does not answer", &urls);
                }
                return Ok(TokioIo::new(socket));
            }
            let tries = tries.map_err(|error| io::Error::other(format!("`{urls}`: {error}")))?;
            let dialled = match timeout(CONNECT, select_ok(tries)).await {
                Ok(Ok((socket, _))) => {
                    unanswered.begin();
                    return Ok(TokioIo::new(socket));
                }
                Ok(Err(error)) => error,
                Err(_) => io::Error::new(io::ErrorKind::TimedOut, "it does not answer"),
            };
            log_throttle.say("cannot reach a member", &format!("{urls}: {dialled}"));
            take(CallBacks::take).map(TokioIo::new).ok_or(dialled)
        }
        .boxed()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpSocket,
    };

    use super::*;
    use crate::host::RealHost;

    async fn reached(at: &[SocketAddr]) -> io::Result<SocketAddr> {
        let urls: Vec<_> = at.iter().map(|address| format!("http://{address}")).collect();
        let mut dial = Dial::new(Arc::new(RealHost::default()), None, Arc::new(move || urls.join(",")), Arc::default());
        let mut socket = dial.call(Uri::default()).await?.into_inner();
        // Whoever listens says where.
        let mut port = [0; 2];
        socket.read_exact(&mut port).await?;
        Ok((Ipv4Addr::LOCALHOST, u16::from_be_bytes(port)).into())
    }

    #[tokio::test]
    async fn a_member_is_reached_at_any_of_its_urls() {
        let bound = || {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
            (socket.local_addr().unwrap(), socket)
        };
        // Where nobody listens, the port is held all the same, and whoever calls is turned away.
        let ((closed, _held), (open, socket)) = (bound(), bound());
        let listens = socket.listen(8).unwrap();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listens.accept().await {
                let _ = socket.write_all(&open.port().to_be_bytes()).await;
            }
        });
        for urls in [&[open][..], &[closed, open], &[open, closed]] {
            assert_eq!(reached(urls).await.unwrap(), open);
        }
        assert_eq!(reached(&[closed, closed]).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
