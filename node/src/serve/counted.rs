//! Calls on their way, with their bytes and their end: which code a call ends with stands in the head of its answer or behind its
//! body.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use ::http::{HeaderMap, Response};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tonic::{Code, Status, body::Body};

use super::{
    calls::{Call, Calls},
    long_answer::Rest,
    messages::Messages,
    request_stats::REMOTE,
};

/// What is asked.
#[derive(Debug)]
pub(super) struct Asked {
    body: Incoming,
    calls: Arc<Calls>,
    /// Of which method, where that is one of etcd's.
    method: Option<usize>,
    messages: Messages,
}

impl Asked {
    pub(super) fn new(body: Incoming, calls: Arc<Calls>, method: Option<usize>) -> Self {
        Self { body, calls, method, messages: Messages::default() }
    }
}

impl HttpBody for Asked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            this.calls.received_bytes.add(data.len() as u64);
            let ended = this.messages.ended(data);
            if let Some(method) = this.method.filter(|_| ended > 0) {
                this.calls.note_received(method, ended);
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer that is being found.
pub(super) struct Answer {
    answer: BoxFuture<'static, Result<Response<Body>, Infallible>>,
    adapt: fn(Response<Body>) -> Response<Body>,
    call: Option<Call>,
    remote: Option<SocketAddr>,
}

impl Answer {
    /// With what is done to it before it is counted; `None` for what is no call.
    pub(super) fn new(
        answer: BoxFuture<'static, Result<Response<Body>, Infallible>>,
        adapt: fn(Response<Body>) -> Response<Body>,
        call: Option<Call>,
        remote: Option<SocketAddr>,
    ) -> Self {
        Self { answer, adapt, call, remote }
    }
}

impl Future for Answer {
    type Output = Result<Response<CountedBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let polled = REMOTE.sync_scope(this.remote, || this.answer.poll_unpin(context));
        let answer = ready!(polled).map(this.adapt);
        Poll::Ready(answer.map(|answer| counted(answer, this.call.take())))
    }
}

fn counted(answer: Response<Body>, call: Option<Call>) -> Response<CountedBody> {
    let code = code(answer.headers());
    let mut answer =
        answer.map(|body| CountedBody { body, rest: Rest::default(), call, messages: Messages::default() });
    if let Some(code) = code {
        answer.body_mut().end(code);
    }
    answer
}

fn code(headers: &HeaderMap) -> Option<Code> {
    headers.get("grpc-status").map(|code| Code::from_bytes(code.as_bytes()))
}

/// What is answered.
#[derive(Debug)]
pub(super) struct CountedBody {
    body: Body,
    /// Of the piece that is being sent.
    rest: Rest,
    /// Until it has ended.
    call: Option<Call>,
    messages: Messages,
}

impl CountedBody {
    fn end(&mut self, code: Code) {
        self.call.take().into_iter().for_each(|call| call.end(code));
    }

    fn note(&mut self, frame: Option<&Result<Frame<Bytes>, Status>>) {
        match frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(call)) = (frame.data_ref(), &self.call) {
                    call.calls.sent_bytes.add(data.len() as u64);
                    let ended = self.messages.ended(data);
                    if ended > 0 {
                        call.note_sent(ended);
                    }
                }
                if let Some(code) = frame.trailers_ref().and_then(code) {
                    self.end(code);
                }
            }
            Some(Err(status)) => self.end(status.code()),
            // An answer that is none of gRPC's.
            None => self.end(Code::Unknown),
        }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if let Some(data) = this.rest.next() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        this.note(frame.as_ref());
        Poll::Ready(frame.map(|frame| Ok(this.rest.cut(frame?))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(most) = hint.upper() {
            hint.set_upper(most.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}
