//! Members among themselves: one gRPC service, with a handshake on every call.

mod answered;
mod call_back;
pub mod compatible;
mod dial;
mod frame;
mod fuzzing;
mod handshake;
mod joining;
mod letting_in;
mod links;
mod sending;
mod server;
mod traffic;
mod unapplied;

/// The messages and the service of `proto/peer.proto`.
#[allow(clippy::all)]
pub(crate) mod wire {
    tonic::include_proto!("baton.peer");
}

pub(crate) use call_back::CONNECTIONS;
pub use call_back::CallBacks;
pub use fuzzing::{fuzz, seeds};
pub use handshake::{Handshake, Remote, Told};
pub use joining::{JoinError, Joined, join};
pub use links::Links;
pub use server::{Answers, serve};
pub use traffic::{PeerTraffic, Traffic};
pub use unapplied::Unapplied;

/// No message between members is larger, in bytes: a batch of entries, each below what clients may send.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;
