//! Long answers. What tonic makes of a message is one piece of memory with all of it, which keeps a thread from everybody else while
//! it is written, and goes before whatever a watch of the same connection has to say. So a long one is encoded piece by piece, as its
//! client takes it, and every answer is sent in pieces that take turns.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use ::http::{HeaderMap, HeaderName, HeaderValue, Response};
use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Body as HttpBody, Frame};
use proto::etcdserverpb::RangeResponse;
use tonic::{Status, body::Body};

use super::context::ServiceContext;
use crate::mvcc::{Listing, Pieces};

/// A shorter answer is made in one go.
const LONG_BYTES: usize = 64 << 10;
/// The longest that is sent (etcd, `maxSendBytes` in server/etcdserver/api/v3rpc/grpc.go).
const MOST_BYTES: usize = i32::MAX as usize;
/// As much of one answer is sent before another has its turn: two frames of HTTP/2.
const TURN_BYTES: usize = 32 << 10;
/// What gRPC puts before a message: that it is not compressed, and its length.
const PREFIX_BYTES: usize = 5;

impl ServiceContext {
    /// The answer to a read. A long one goes beside the message, which is empty then, and takes the place of its body
    /// in [`in_pieces`].
    pub(super) fn listed(&self, mut listing: Listing) -> Result<tonic::Response<RangeResponse>, Status> {
        self.sign(&mut listing.header);
        match listing.bytes() {
            ..LONG_BYTES => Ok(tonic::Response::new(listing.into_response())),
            LONG_BYTES..=MOST_BYTES => {
                let mut answer = tonic::Response::new(RangeResponse::default());
                answer.extensions_mut().insert(listing);
                Ok(answer)
            }
            bytes => {
                let words = format!("grpc: trying to send message larger than max ({bytes} vs. {MOST_BYTES})");
                Err(Status::resource_exhausted(words))
            }
        }
    }
}

/// The answer, with the body that it was given beside its message.
pub(super) fn in_pieces(mut answer: Response<Body>) -> Response<Body> {
    match answer.extensions_mut().remove::<Listing>() {
        Some(listing) => answer.map(|_| Body::new(Encoded::new(listing))),
        None => answer,
    }
}

/// A message on its way, and that it was all that was asked for.
struct Encoded {
    prefix: Option<Bytes>,
    pieces: Pieces,
    trailers: Option<HeaderMap>,
}

impl Encoded {
    fn new(listing: Listing) -> Self {
        let mut prefix = BytesMut::with_capacity(PREFIX_BYTES);
        prefix.put_u8(0);
        // No longer than what fits, as was seen to.
        prefix.put_u32(u32::try_from(listing.bytes()).unwrap_or(u32::MAX));
        let trailers = HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"))]);
        Self { prefix: Some(prefix.freeze()), pieces: listing.pieces(), trailers: Some(trailers) }
    }
}

impl HttpBody for Encoded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let data = this.prefix.take().or_else(|| this.pieces.next()).map(Frame::data);
        Poll::Ready(data.or_else(|| this.trailers.take().map(Frame::trailers)).map(Ok))
    }
}

/// What is still to be sent of a piece that was too long for one turn.
#[derive(Debug, Default)]
pub(super) struct Rest(Bytes);

impl Rest {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What goes with this turn, if there is something left.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let length = self.0.len().min(TURN_BYTES);
        (length > 0).then(|| self.0.split_to(length))
    }

    /// The part of this frame that goes with this turn; what is longer is kept for the next ones.
    pub(super) fn cut(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_data() {
            Ok(mut data) => {
                self.0 = data.split_off(data.len().min(TURN_BYTES));
                Frame::data(data)
            }
            Err(frame) => frame,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http_body_util::BodyExt;
    use prost::Message;
    use proto::etcdserverpb::{PutRequest, RangeRequest};

    use super::*;
    use crate::mvcc::Store;

    #[test]
    fn a_frame_takes_no_more_than_its_turn() {
        let long: Vec<u8> = (0..=255).cycle().take(2 * TURN_BYTES + 5).collect();
        let mut rest = Rest::default();
        let first = rest.cut(Frame::data(Bytes::from(long.clone()))).into_data().unwrap();
        assert_eq!((first.len(), rest.len()), (TURN_BYTES, TURN_BYTES + 5));
        let turns: Vec<_> = [first].into_iter().chain(std::iter::from_fn(|| rest.next())).collect();
        assert_eq!(turns.iter().map(Bytes::len).collect::<Vec<_>>(), [TURN_BYTES, TURN_BYTES, 5]);
        assert_eq!(turns.concat(), long);
        assert!(rest.is_empty());
        assert!(rest.cut(Frame::trailers(HeaderMap::new())).is_trailers());
        assert!(rest.cut(Frame::data(Bytes::new())).is_data() && rest.is_empty());
    }

    #[tokio::test]
    async fn an_answer_in_pieces_is_a_message_of_grpc_and_its_end() {
        let mut store = Store::default();
        for key in 0..5 {
            let put = PutRequest { key: vec![key], value: vec![key; 40_000], ..PutRequest::default() };
            store.put(put).unwrap();
        }
        let all = RangeRequest { key: vec![0], range_end: vec![0], ..RangeRequest::default() };
        let mut answer = Response::new(Body::empty());
        answer.extensions_mut().insert(store.list(&all).unwrap());
        let collected = in_pieces(answer).into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap().get("grpc-status").unwrap(), "0");
        let bytes = collected.to_bytes();
        let (prefix, message) = bytes.split_at(PREFIX_BYTES);
        assert_eq!(prefix, [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes()].concat());
        assert_eq!(RangeResponse::decode(message).unwrap(), store.range(&all).unwrap());
    }
}
