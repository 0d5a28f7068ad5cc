//! From which of this machine's addresses other members are called (etcd, `InferLocalAddr` in embed/config.go).

use std::net::IpAddr;

use super::{Config, Url};
use crate::features::SET_MEMBER_LOCAL_ADDR;

impl Config {
    /// The first address that other members reach this one at, by `SetMemberLocalAddr`; else the system chooses. A name, an address of
    /// the machine alone and one of any interface are none.
    pub fn local_address(&self) -> Option<IpAddr> {
        let is_wanted = self.server_features.get(SET_MEMBER_LOCAL_ADDR) == Some(true);
        is_wanted.then(|| first(&self.initial_advertise_peer_urls)).flatten()
    }
}

fn first(urls: &[Url]) -> Option<IpAddr> {
    urls.iter().filter_map(Url::ip).find(|address| !address.is_loopback() && !address.is_unspecified())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::features::FEATURES;

    #[test]
    fn it_is_the_first_address_that_others_reach_if_it_is_wanted() {
        for (gate, urls, found) in [
            ("true", "http://10.0.0.1:2380", Some("10.0.0.1")),
            (
                "true",
                "http://127.0.0.1:2380,http://m1:2380,http://10.0.0.2:2380,http://10.0.0.3:2380",
                Some("10.0.0.2"),
            ),
            ("true", "https://[fd00::1]:2380", Some("fd00::1")),
            ("true", "http://m1:2380", None),
            ("true", "http://127.0.0.1:2380", None),
            ("false", "http://10.0.0.1:2380", None),
        ] {
            let flags = [
                format!("--feature-gates=SetMemberLocalAddr={gate}"),
                format!("--initial-advertise-peer-urls={urls}"),
                format!("--initial-cluster=default={}", urls.replace(',', ",default=")),
            ];
            let config = Config::read(flags, [], FEATURES).unwrap();
            assert_eq!(config.local_address(), found.map(|address| address.parse().unwrap()), "{gate} {urls}");
        }
    }
}
