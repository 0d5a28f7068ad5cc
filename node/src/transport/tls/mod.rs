//! TLS on both ports. The files are read again whenever one has changed, so that a certificate is renewed, or revoked, without a
//! restart; what cannot be used then leaves the old ones in use, with a warning (etcd reads them at each connection).
//!
//! Nothing is resumed: each connection shows its certificate anew, and one that is revoked is refused at once.

mod allowed;
mod anybody;
mod client;
mod files;
mod secured;
mod self_signed;
mod server;
mod validity;
mod words;

use rustls::{
    SupportedProtocolVersion,
    version::{TLS12, TLS13},
};

use crate::config::TlsVersions;

pub use client::ClientTls;
pub use files::TlsError;
pub use self_signed::{SelfSignedError, make_where_needed};
pub use server::ServerTls;

fn spoken(versions: TlsVersions) -> &'static [&'static SupportedProtocolVersion] {
    const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
    match versions {
        TlsVersions::Both => BOTH,
        TlsVersions::Only12 => &BOTH[1..],
        TlsVersions::Only13 => &BOTH[..1],
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tls_test;
