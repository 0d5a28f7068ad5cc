//! The machine that this process runs on.

use std::{io, path::Path, sync::Arc, time::Duration};

use disk::Folder;
use futures_util::{FutureExt, future::BoxFuture};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::{TcpStream, UnixStream};
use wal::{Options, Wal, WalError};

use super::{Address, Host, Socket};

#[derive(Clone, Copy, Debug, Default)]
pub struct RealHost;

impl Host for RealHost {
    fn data_dir(&self, path: &Path) -> io::Result<Arc<dyn Folder>> {
        disk::real(path)
    }

    fn open_log(&self, folder: Arc<dyn Folder>) -> Result<Wal, WalError> {
        Wal::open_in(folder, Options::default())
    }

    fn connect(&self, to: &Address) -> BoxFuture<'static, io::Result<Box<dyn Socket>>> {
        let to = to.clone();
        async move {
            if let Address::Unix(path) = to {
                return Ok(Box::new(UnixStream::connect(path).await?) as Box<dyn Socket>);
            }
            let socket = TcpStream::connect(to.to_string()).await?;
            socket.set_nodelay(true)?;
            Ok(Box::new(socket) as Box<dyn Socket>)
        }
        .boxed()
    }

    fn uptime(&self) -> Duration {
        let now = clock_gettime(ClockId::Boottime);
        Duration::new(now.tv_sec.try_into().unwrap_or_default(), now.tv_nsec.try_into().unwrap_or_default())
    }
}
