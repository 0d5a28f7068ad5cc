//! A TCP balancer: one address, a different member for each connection.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

use crate::Error;

/// A balancer at work; it ends with the value.
#[derive(Debug)]
pub struct Balancer {
    task: AbortHandle,
}

impl Balancer {
    /// Listens on this port of 127.0.0.1, and passes each connection on to the next of these ports.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start(port: u16, members: Vec<u16>) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let task = tokio::spawn(async move {
            // Ended with the task, and its connections with it.
            let mut connections = JoinSet::new();
            for member in members.iter().cycle() {
                let Ok((mut client, _)) = listener.accept().await else { return };
                let member = SocketAddr::from((Ipv4Addr::LOCALHOST, *member));
                connections.spawn(async move {
                    if let Ok(mut member) = TcpStream::connect(member).await {
                        // A connection that breaks is the two ends' matter.
                        let _ = copy_bidirectional(&mut client, &mut member).await;
                    }
                });
            }
        });
        Ok(Self { task: task.abort_handle() })
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
