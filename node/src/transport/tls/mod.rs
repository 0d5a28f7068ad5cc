//! TLS on both ports. The files are read again whenever one has changed, so that a certificate is renewed, or revoked, without a
//! restart; what cannot be used then leaves the old ones in use, with a warning (etcd reads them at each connection).
//!
//! Nothing is resumed: each connection shows its certificate anew, and one that is revoked is refused at once.

mod allowed;
mod client;
mod files;
mod secured;
mod server;
mod validity;
mod words;

pub use client::ClientTls;
pub use files::TlsError;
pub use server::ServerTls;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tls_test;
