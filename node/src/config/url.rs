//! An address as etcd writes it: `http://10.0.0.1:2379`, `unix://localhost:2379` (etcd, `types.NewURLs`).

use std::{fmt, net::IpAddr, path::Path, str::FromStr};

use crate::host::Address;

/// As long may the path of a socket be (unix(7)).
const LONGEST_PATH_BYTES: usize = 107;

/// A URL with a port and without a path, or of a Unix socket.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Url {
    is_tls: bool,
    address: Address,
}

/// A text that is no such URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(pub &'static str);

impl Url {
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The name that a certificate is looked at for. That of a socket is the last part of its path, as etcd's clients have it.
    pub fn host(&self) -> &str {
        match &self.address {
            Address::Tcp { host, .. } => host,
            Address::Unix(path) => {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                name.rsplit_once(':').map_or(name, |(host, _)| host)
            }
        }
    }

    /// Whether whoever connects shakes hands.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Whether the system chooses a port.
    pub fn is_any_port(&self) -> bool {
        matches!(self.address, Address::Tcp { port: 0, .. })
    }

    /// Whether nobody but this machine comes there.
    pub fn is_loopback(&self) -> bool {
        match &self.address {
            Address::Tcp { host, .. } => host == "localhost" || self.ip().is_some_and(|address| address.is_loopback()),
            Address::Unix(_) => true,
        }
    }

    /// Its address, where that is written as one.
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.address {
            Address::Tcp { host, .. } => host.trim_matches(['[', ']']).parse().ok(),
            Address::Unix(_) => None,
        }
    }

    /// What stands before `://`.
    pub fn scheme(&self) -> &'static str {
        match (&self.address, self.is_tls) {
            (Address::Tcp { .. }, false) => "http",
            (Address::Tcp { .. }, true) => "https",
            (Address::Unix(_), false) => "unix",
            (Address::Unix(_), true) => "unixs",
        }
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let unknown = UrlError("a URL such as http://10.0.0.1:2379");
        let (scheme, rest) = text.split_once(':').ok_or_else(|| unknown.clone())?;
        let after_slashes = rest.strip_prefix("//");
        match (scheme, after_slashes) {
            ("http" | "https", Some(rest)) => Ok(Self { is_tls: scheme == "https", address: tcp(rest)? }),
            // `unix:/path` is a path from the root, too.
            ("unix" | "unixs", after) if after.is_some() || rest.starts_with('/') => {
                Ok(Self { is_tls: scheme == "unixs", address: unix(after.unwrap_or(rest))? })
            }
            _ => Err(unknown),
        }
    }
}

fn tcp(rest: &str) -> Result<Address, UrlError> {
    let (host, port) = rest.rsplit_once(':').ok_or(UrlError("a URL with a port, such as http://10.0.0.1:2379"))?;
    let port = port.trim_end_matches('/').parse().map_err(|_| UrlError("a port up to 65535 and no path"))?;
    let is_name = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
    let is_v6 = host.starts_with('[') && host.ends_with(']');
    match is_name && (is_v6 || !host.contains(':')) {
        true => Ok(Address::Tcp { host: host.to_owned(), port }),
        false => Err(UrlError("a host, and an IPv6 address in brackets")),
    }
}

/// What stands for a host is a part of the path, as with etcd: `unix://localhost:2379` is a file in the working directory.
fn unix(path: &str) -> Result<Address, UrlError> {
    let is_file = Path::new(path).file_name().is_some() && !path.ends_with('/');
    match is_file && path.len() <= LONGEST_PATH_BYTES && !path.contains(['?', '#', '%', '\0']) {
        true => Ok(Address::Unix(path.into())),
        false => Err(UrlError("the path of a socket: at most 107 octets, without ? # %, and not a folder's")),
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.address)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_written_as_etcd_does() {
        for (text, written, host) in [
            ("http://127.0.0.1:2379", "http://127.0.0.1:2379", "127.0.0.1"),
            ("https://[::1]:2379/", "https://[::1]:2379", "[::1]"),
            ("http://0.0.0.0:0", "http://0.0.0.0:0", "0.0.0.0"),
            ("unix://localhost:2379", "unix://localhost:2379", "localhost"),
            ("unixs://localhost:2379", "unixs://localhost:2379", "localhost"),
            ("unix:///run/etcd/m1.sock", "unix:///run/etcd/m1.sock", "m1.sock"),
            ("unix:/run/etcd/m1.sock", "unix:///run/etcd/m1.sock", "m1.sock"),
            ("unixs://etcd/m1:0", "unixs://etcd/m1:0", "m1"),
        ] {
            let url: Result<Url, _> = text.parse();
            let read = url.as_ref().map(|url| (url.to_string(), url.host()));
            assert_eq!(read, Ok((written.to_owned(), host)), "{text}");
        }
        let long = format!("unix:///{}", "a".repeat(107));
        for wrong in [
            "",
            "http",
            "http:/h:1",
            "http://h",
            "ftp://h:1",
            "http://h:65536",
            "http://h:1/x",
            "http://:1",
            "http://::1:1",
        ] {
            assert!(wrong.parse::<Url>().is_err(), "{wrong}");
        }
        for wrong in ["unix://", "unix:a", "unix:///", "unix://a/", "unix://..", "unix://a?b", "unix://a%20b", &long] {
            assert!(wrong.parse::<Url>().is_err(), "{wrong}");
        }
        let parsed = |text: &str| text.parse::<Url>().map(|url| (url.is_any_port(), url.is_loopback(), url.is_tls()));
        assert_eq!(parsed("http://0.0.0.0:0"), Ok((true, false, false)));
        assert_eq!(parsed("unixs:///run/m1"), Ok((false, true, true)));
    }
}
