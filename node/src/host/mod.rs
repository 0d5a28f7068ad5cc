//! What a member needs of the machine that it runs on: files, connections, a clock. Everything that a simulation has another of
//! goes through here, or through tokio's clock.

mod address;
mod descriptors;
mod real;
mod socket;
mod socket_file;

use std::{io, path::Path, sync::Arc, time::Duration};

use disk::Folder;
use futures_util::future::BoxFuture;
use wal::{Wal, WalError};

pub use address::Address;
pub use descriptors::Descriptors;
pub use real::RealHost;
pub(crate) use socket::writes_through;
pub use socket::{Listener, Socket, tcp, unix};
pub use socket_file::SocketFile;

/// A machine.
pub trait Host: Send + Sync + 'static {
    /// Opens a data directory; makes it where there is none.
    fn data_dir(&self, path: &Path) -> io::Result<Arc<dyn Folder>>;

    /// Opens the log in a folder.
    fn open_log(&self, folder: Arc<dyn Folder>) -> Result<Wal, WalError>;

    /// Connects to whoever listens there.
    fn connect(&self, to: &Address) -> BoxFuture<'static, io::Result<Box<dyn Socket>>>;

    /// How long it has been running, the time included in which it slept.
    fn uptime(&self) -> Duration;
}
