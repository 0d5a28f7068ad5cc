//! An address as etcd writes it: `http://10.0.0.1:2379`.

use std::{fmt, str::FromStr};

/// A URL with a port and without a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Url {
    is_https: bool,
    host: String,
    port: u16,
}

/// A text that is no such URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(pub &'static str);

impl Url {
    /// Host and port as sockets are given them; an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Whether nobody but this machine comes there.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (is_https, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(UrlError("a URL such as http://10.0.0.1:2379")),
        };
        let (host, port) = rest.rsplit_once(':').ok_or(UrlError("a URL with a port, such as http://10.0.0.1:2379"))?;
        let port = port.trim_end_matches('/').parse().map_err(|_| UrlError("a port from 1 to 65535 and no path"))?;
        let is_name = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
        let is_v6 = host.starts_with('[') && host.ends_with(']');
        match port {
            1.. if is_name && (is_v6 || !host.contains(':')) => Ok(Self { is_https, host: host.to_owned(), port }),
            0 => Err(UrlError("a port from 1 to 65535 and no path")),
            _ => Err(UrlError("a host, and an IPv6 address in brackets")),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
