//! What the playbook's user may do in etcd, told by one linearizable read of a key of ours.

use tokio::time::timeout;
use tonic::Code;

use super::{access::CALL, cluster::Observer};

/// What etcd says to a read of Baton's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Given,
    Denied,
    UserWanted,
}

impl Observer {
    /// Whether the keys may be read; `None` where nobody says so within the time of one call.
    pub async fn reads_keys(&self) -> Option<Permission> {
        timeout(CALL, self.ask_for_keys()).await.ok().flatten()
    }

    async fn ask_for_keys(&self) -> Option<Permission> {
        let access = &self.connections.access;
        for address in access.directory().routes(None) {
            match access.linearizable(&address, &self.connections.key).await {
                Ok(_) => return Some(Permission::Given),
                Err(error) if error.code() == Some(Code::PermissionDenied) => return Some(Permission::Denied),
                Err(error) if error.says("etcdserver: user name is empty") => return Some(Permission::UserWanted),
                Err(_) => {}
            }
        }
        None
    }
}
