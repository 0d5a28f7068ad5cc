//! Files of the log, with their names for messages.

use std::{path::PathBuf, sync::Arc};

use disk::{File, Folder};

use crate::error::{At, WalError};

/// An open file that says which one it is when something fails.
#[derive(Clone)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    file: Arc<dyn File>,
}

impl NamedFile {
    pub(crate) fn create(folder: &dyn Folder, name: &str) -> Result<Self, WalError> {
        let path = folder.path(name);
        let file = folder.create(name).at("create", &path)?;
        Ok(Self { path, file })
    }

    pub(crate) fn open(folder: &dyn Folder, name: &str) -> Result<Self, WalError> {
        let path = folder.path(name);
        let file = folder.open(name).at("open", &path)?;
        Ok(Self { path, file })
    }

    /// The same file, by the name it has now.
    pub(crate) fn renamed(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    pub(crate) fn length(&self) -> Result<u64, WalError> {
        self.file.length().at("read the length of", &self.path)
    }

    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, WalError> {
        let mut bytes = vec![0; length];
        self.file.read_at(&mut bytes, offset).at("read", &self.path)?;
        Ok(bytes)
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), WalError> {
        self.file.write_at(bytes, offset).at("write", &self.path)
    }

    pub(crate) fn sync(&self) -> Result<(), WalError> {
        self.file.sync().at("sync", &self.path)
    }

    /// The error of a place in this file that is not as it was written.
    pub(crate) fn damaged(&self, offset: u64, expected: impl Into<String>) -> WalError {
        WalError::Damaged { path: self.path.clone(), offset, expected: expected.into() }
    }
}
