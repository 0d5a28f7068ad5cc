//! A connection over which something is said soon, or that is closed.
//!
//! tonic goes on with a connection that is being made only while somebody waits for the first call over it. Where that call is given up in
//! between, the connection stands open and nothing was sent over it: before such a one etcd does not end (`host/process/connections.rs`).

use std::{
    io,
    net::Shutdown,
    os::fd::AsFd as _,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Whoever dials speaks at once.
const SILENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Spoken {
    stream: TcpStream,
    /// Until something was sent.
    silent: Option<Arc<std::net::TcpStream>>,
}

impl Spoken {
    /// # Errors
    /// There are no descriptors left.
    pub(super) fn over(stream: TcpStream) -> io::Result<Self> {
        let silent = Arc::new(stream.as_fd().try_clone_to_owned()?.into());
        let watched: Weak<std::net::TcpStream> = Arc::downgrade(&silent);
        tokio::spawn(async move {
            tokio::time::sleep(SILENCE).await;
            if let Some(silent) = watched.upgrade() {
                // One that is closed by now is as good.
                let _ = silent.shutdown(Shutdown::Both);
            }
        });
        Ok(Self { stream, silent: Some(silent) })
    }
}

impl AsyncRead for Spoken {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Spoken {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.silent = None;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.silent = None;
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use proto::etcdserverpb::{StatusRequest, maintenance_client::MaintenanceClient};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        time::timeout,
    };

    use super::*;
    use crate::observe::line::Line;

    async fn pair() -> (Spoken, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (dialled, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (Spoken::over(dialled.unwrap()).unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn a_connection_over_which_nothing_is_said_is_closed() {
        let (silent, mut other) = pair().await;
        let mut bytes = [0; 8];
        assert_eq!(timeout(Duration::from_secs(30), other.read(&mut bytes)).await.unwrap().unwrap(), 0);
        drop(silent);
    }

    /// Wherever a call is given up, its connection speaks or ends.
    #[tokio::test]
    async fn a_call_that_is_given_up_leaves_no_silent_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut lines = Vec::new();
        for turn in 0..60 {
            let line = Line::to(&url, None, 0).unwrap();
            let mut client = MaintenanceClient::new(line.channel.clone());
            // Polled so often, and no more.
            let mut call = Box::pin(client.status(StatusRequest::default()));
            for _ in 0..turn % 12 {
                tokio::select! { biased; _ = &mut call => {}, () = std::future::ready(()) => {} }
                tokio::task::yield_now().await;
            }
            drop(call);
            lines.push(line);
        }
        while let Ok(Ok((mut other, _))) = timeout(Duration::from_millis(200), listener.accept()).await {
            let mut bytes = [0; 8];
            timeout(Duration::from_secs(30), other.read(&mut bytes)).await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn one_over_which_something_was_said_stays() {
        let (mut spoken, mut other) = pair().await;
        let mut bytes = [0; 8];
        spoken.write_all(b"hello").await.unwrap();
        assert_eq!(other.read(&mut bytes).await.unwrap(), 5);
        tokio::time::sleep(2 * SILENCE).await;
        other.write_all(b"good").await.unwrap();
        assert_eq!(spoken.read(&mut bytes).await.unwrap(), 4);
        drop(spoken);
        assert_eq!(other.read(&mut bytes).await.unwrap(), 0, "nothing keeps it open");
    }
}
