//! Members that something else than the cluster lists, such as a member's own data: asked as well, where the playbook's endpoints do not
//! lead to all of them. They are as bounded as a list that was answered, and are told no more than one who advertises himself.

use std::collections::BTreeMap;

use proto::{ClusterId, etcdserverpb::Member};

use super::{Observer, directory::Findings, listed};

impl Observer {
    /// From now on all of this is about that cluster, and these count as its members until one of them answers.
    pub fn settle_with(&self, cluster: ClusterId, members: Vec<Member>) {
        let access = self.access();
        access.directory().settle(cluster);
        // A list that is not believed makes nobody more to be asked.
        let members = listed::members(members, access.has_tls()).unwrap_or_default();
        access.directory().learn(Findings { cluster, members, answered: BTreeMap::new(), chosen: BTreeMap::new() });
    }
}
