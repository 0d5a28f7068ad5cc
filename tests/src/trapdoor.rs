//! A way to one member that shuts at a moment the scenario names, before another byte goes through.

use std::{net::Ipv4Addr, sync::Arc};

use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use crate::{Error, wait};

/// Whether it is time to shut.
type Moment = Arc<dyn Fn() -> bool + Send + Sync>;

/// A way that is open, or has shut; it ends with the value.
pub struct Trapdoor {
    pub port: u16,
    shut: watch::Receiver<bool>,
    task: AbortHandle,
}

impl Trapdoor {
    /// Passes on to this port of 127.0.0.1 what comes from clients, a piece at a time, and asks before each whether it is
    /// time to shut. From then on nothing goes through, and every connection breaks.
    ///
    /// # Errors
    /// There is no port.
    pub async fn to(member: u16, moment: impl Fn() -> bool + Send + Sync + 'static) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (shuts, mut shut) = watch::channel(false);
        let is_shut = shut.clone();
        let moment: Moment = Arc::new(moment);
        let task = tokio::spawn(async move {
            // Ended with the task, and its connections with it.
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((client, _)) => drop(connections.spawn(pass(client, member, moment.clone(), shuts.clone()))),
                        Err(_) => return,
                    },
                    _ = shut.wait_for(|shut| *shut) => return,
                }
            }
        });
        Ok(Self { port, shut: is_shut, task: task.abort_handle() })
    }

    /// Waits until it has shut.
    ///
    /// # Errors
    /// It is open still after [`wait::GENEROUS`].
    pub async fn shuts(&self) -> Result<(), Error> {
        let has_shut = || std::future::ready(self.shut.borrow().then_some(()).ok_or_else(|| "it is open".to_owned()));
        Ok(wait::until("the trapdoor to shut", wait::GENEROUS, has_shut).await?)
    }
}

impl Drop for Trapdoor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection. That it breaks is what the scenario is about.
async fn pass(client: TcpStream, member: u16, moment: Moment, shuts: watch::Sender<bool>) {
    let Ok(member) = TcpStream::connect((Ipv4Addr::LOCALHOST, member)).await else { return };
    let ((mut asks, mut hears), (mut answers, mut listens)) = (client.into_split(), member.into_split());
    let forth = async {
        let mut piece = vec![0; 64 << 10];
        while let Ok(length @ 1..) = asks.read(&mut piece).await {
            if moment() {
                shuts.send_replace(true);
                return;
            }
            if listens.write_all(&piece[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = forth => {}
        _ = io::copy(&mut answers, &mut hears) => {}
    }
}
