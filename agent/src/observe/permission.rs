//! What the playbook's user may do in etcd.

use tonic::Code;

use super::cluster::Observer;

impl Observer {
    /// Whether the user may read Baton's keys; `None` where nobody says.
    pub async fn reads_keys(&self) -> Option<bool> {
        let access = &self.means.access;
        for address in access.directory().routes(None) {
            match access.linearizable(&address, &self.means.key).await {
                Ok(_) => return Some(true),
                Err(error) if error.code() == Some(Code::PermissionDenied) => return Some(false),
                Err(_) => {}
            }
        }
        None
    }
}
