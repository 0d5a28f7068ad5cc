//! Whether anybody who knows the protocol has answered over a connection. Something may listen at a member's URL and be no member: it
//! takes connections, and says nothing, or nothing of use.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use futures_util::FutureExt;
use http::HeaderMap;
use tonic::{Code, Status, body::Body, codegen::Service};

use super::handshake::KEY;

/// Of the last connection of one channel: set when it is dialled, taken back with the first answer. Every clone is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Unanswered(Arc<AtomicBool>);

impl Unanswered {
    /// The channel gets another connection. Whether nobody has answered over the last one, which was dialled.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    /// It was dialled.
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A channel, and what is known of its connection.
#[derive(Clone, Debug)]
pub(crate) struct Noting<S> {
    channel: S,
    unanswered: Unanswered,
}

impl<S> Noting<S> {
    pub(super) fn new(channel: S, unanswered: Unanswered) -> Self {
        Self { channel, unanswered }
    }
}

impl<S, B> Service<http::Request<Body>> for Noting<S>
where
    S: Service<http::Request<Body>, Response = http::Response<B>>,
    S::Future: Unpin,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answer<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.channel.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Answer { answer: self.channel.call(request), unanswered: self.unanswered.clone() }
    }
}

/// An answer to come.
pub(crate) struct Answer<F> {
    answer: F,
    unanswered: Unanswered,
}

impl<F, B, E> Future for Answer<F>
where
    F: Future<Output = Result<http::Response<B>, E>> + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answer.poll_unpin(context));
        if answer.as_ref().is_ok_and(|answer| is_of_a_member(answer.headers())) {
            self.unanswered.take();
        }
        Poll::Ready(answer)
    }
}

/// A member shakes hands in every answer; where it only says what is wrong, it knows what it was asked for.
fn is_of_a_member(headers: &HeaderMap) -> bool {
    let says_what_is_wrong = || Status::from_header_map(headers).is_some_and(|said| said.code() != Code::Unimplemented);
    headers.contains_key(KEY) || says_what_is_wrong()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn who_shakes_no_hands_and_knows_no_call_is_no_member() {
        for (headers, expected) in [
            (&[][..], false),
            (&[("content-type", "text/html")], false),
            (&[("grpc-status", "12")], false),
            (&[("grpc-status", "14")], true),
            (&[(KEY, "AAAA")], true),
            (&[(KEY, "AAAA"), ("grpc-status", "12")], true),
        ] {
            let map = headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
            assert_eq!(is_of_a_member(&map.collect()), expected, "{headers:?}");
        }
    }
}
