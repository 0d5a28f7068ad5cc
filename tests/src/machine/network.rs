//! The network between hosts: a bridge, and what can go wrong with a host's way to it.
//!
//! Nothing leaves it: hosts have no default route. The bridge has an address of its own, so that a program of this
//! machine that looks for a host which is gone does not ask the world outside.

use std::{net::Ipv4Addr, sync::Arc};

use super::{lease::Lease, run};
use crate::Error;

/// A network without hosts. It ends once it and its hosts have.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) lease: Arc<Lease>,
}

impl Network {
    /// A network with addresses that nobody else uses on this machine.
    ///
    /// # Errors
    /// It can't be made.
    pub fn new() -> Result<Self, Error> {
        let lease = Lease::take()?;
        let network = Self { lease: Arc::new(lease) };
        let bridge = network.lease.bridge();
        run("ip", &["link", "add", &bridge, "type", "bridge"])?;
        run("ip", &["link", "set", &bridge, "up"])?;
        run("ip", &["addr", "add", &format!("{}/24", network.gateway()), "dev", &bridge])?;
        Ok(network)
    }

    /// This machine's own address in it.
    pub fn gateway(&self) -> Ipv4Addr {
        self.address(254)
    }

    fn address(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.lease.number, host)
    }
}

/// A host's way into its network; both end when the host does.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) address: Ipv4Addr,
    /// The network namespace, and the bridge's end of the link.
    name: String,
    network: Network,
}

impl Link {
    pub(super) fn new(network: &Network, host: u8) -> Result<Self, Error> {
        let name = network.lease.namespace(host);
        let link = Self { address: network.address(host), name, network: network.clone() };
        let (name, bridge) = (&*link.name, &*network.lease.bridge());
        run("ip", &["netns", "add", name])?;
        run("ip", &["link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name])?;
        run("ip", &["link", "set", name, "master", bridge, "up"])?;
        run("ip", &["-n", name, "link", "set", "lo", "up"])?;
        run("ip", &["-n", name, "link", "set", "eth0", "up"])?;
        run("ip", &["-n", name, "addr", "add", &format!("{}/24", link.address), "dev", "eth0"])?;
        Ok(link)
    }

    /// The file by which the namespace is entered.
    pub(super) fn namespace(&self) -> String {
        format!("/run/netns/{}", self.name)
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.network.lease
    }

    /// Pulls the cable, or plugs it in again.
    pub(super) fn plugged(&self, is_plugged: bool) -> Result<(), Error> {
        run("ip", &["link", "set", &self.name, if is_plugged { "up" } else { "down" }]).map(drop)
    }

    /// Lets no more than this through to the network; what is too much waits.
    pub(super) fn slow(&self, kbit_per_second: u32) -> Result<(), Error> {
        let rate = format!("{kbit_per_second}kbit");
        let limit = ["rate", &rate, "burst", "1540", "latency", "5s"];
        run("tc", &[&["-n", &self.name, "qdisc", "replace", "dev", "eth0", "root", "tbf"], &limit[..]].concat())
            .map(drop)
    }

    /// Lets everything through again.
    pub(super) fn fast(&self) -> Result<(), Error> {
        run("tc", &["-n", &self.name, "qdisc", "delete", "dev", "eth0", "root"]).map(drop)
    }

    /// Drops what comes from this address, or no longer; what goes there still goes.
    pub(super) fn deaf_to(&self, other: Ipv4Addr, is_deaf: bool) -> Result<(), Error> {
        let rule = if is_deaf { "-A" } else { "-D" };
        let in_namespace = ["netns", "exec", &self.name, "iptables", "-w"];
        run("ip", &[&in_namespace[..], &[rule, "INPUT", "-s", &other.to_string(), "-j", "DROP"]].concat()).map(drop)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The kernel ends a namespace when it finds the time, and its links with it; a name is to be free at once.
        let _ = run("ip", &["link", "delete", &self.name]);
        let _ = run("ip", &["netns", "delete", &self.name]);
    }
}
