//! The file of a Unix socket. Its mode is what the umask leaves, as with etcd: whoever may write to it connects.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use tokio::net::{UnixSocket, UnixStream};

/// One that is listened at. It is removed with this value, as with etcd (`unixListener`), unless it is another's by then. Drop it
/// before its socket: once that is closed, another's file may get the same number.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    /// Makes the file, in the place of one that nobody listens at any more. etcd removes whatever is there, a member's that runs and
    /// a file of another kind, too.
    ///
    /// # Errors
    /// Something else is there, or it cannot be made.
    pub async fn bind(path: &Path) -> io::Result<(Self, UnixSocket)> {
        remove_left_over(path).await?;
        let socket = UnixSocket::new_stream()?;
        socket.bind(path)?;
        let file = Self { path: path.to_owned(), inode: fs::symlink_metadata(path)?.ino() };
        Ok((file, socket))
    }

    /// Whether it is still there. Until somebody listens, another process takes it for one that was left.
    pub fn is_own(&self) -> bool {
        // While the socket is open, no other file has its number.
        fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_own() {
            // Else the next one finds it left over.
            let _ = fs::remove_file(&self.path);
        }
    }
}

async fn remove_left_over(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file is there that is no socket"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Err(io::Error::new(io::ErrorKind::AddrInUse, "somebody listens there")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_process_left_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("localhost:2379");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "it is left over");
        let (file, socket) = SocketFile::bind(&path).await.unwrap();
        let listener = socket.listen(1).unwrap();
        let error = SocketFile::bind(&path).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::AddrInUse, "somebody listens there".into()));
        drop((file, listener));
        assert!(!path.exists(), "it is gone with its listener");

        fs::write(&path, "data").unwrap();
        let error = SocketFile::bind(&path).await.unwrap_err();
        assert_eq!(error.to_string(), "a file is there that is no socket");
        assert_eq!(fs::read(&path).unwrap(), b"data");
        fs::remove_file(&path).unwrap();

        let (earlier, _) = SocketFile::bind(&path).await.unwrap();
        // Both files are there at once, so that their numbers differ.
        let other = folder.path().join("other");
        drop(std::os::unix::net::UnixListener::bind(&other).unwrap());
        fs::rename(&other, &path).unwrap();
        drop(earlier);
        assert!(path.exists(), "it is another's");
    }
}
