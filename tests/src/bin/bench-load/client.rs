//! A client that costs little, so that what is measured are the servers: a message, one gRPC call, and whether it went well.

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, Method, Request, Uri, Version, header};
use prost::Message;
use tests::Error;
use tokio::net::TcpStream;

/// A connection to one member. Every clone sends on the same.
#[derive(Clone)]
pub struct Client {
    send: SendRequest<Bytes>,
    url: String,
}

impl Client {
    /// To this member, `http://host:port`.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let stream = TcpStream::connect(url.trim_start_matches("http://")).await?;
        stream.set_nodelay(true)?;
        let (send, connection) = h2::client::handshake(stream).await?;
        tokio::spawn(connection);
        Ok(Self { send, url: url.to_owned() })
    }

    /// Where a method is called, such as `/etcdserverpb.KV/Put`.
    pub fn method(&self, path: &str) -> Result<Uri, Error> {
        Ok(format!("{}{path}", self.url).parse()?)
    }

    /// Calls a method and waits for its answer, which is not read.
    pub async fn call(&self, method: &Uri, message: &impl Message) -> Result<(), Error> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = method.clone();
        *request.version_mut() = Version::HTTP_2;
        request.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/grpc"));
        request.headers_mut().insert(header::TE, header::HeaderValue::from_static("trailers"));
        let mut send = self.send.clone().ready().await?;
        let (answer, mut body) = send.send_request(request, false)?;
        body.send_data(frame(message)?, true)?;
        outcome(answer).await
    }
}

/// A message as gRPC frames it.
fn frame(message: &impl Message) -> Result<Bytes, Error> {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(length + 5);
    bytes.put_u8(0);
    bytes.put_u32(length as u32);
    message.encode(&mut bytes)?;
    Ok(bytes.freeze())
}

async fn outcome(answer: ResponseFuture) -> Result<(), Error> {
    let (head, mut body) = answer.await?.into_parts();
    while let Some(data) = body.data().await {
        body.flow_control().release_capacity(data?.len())?;
    }
    let trailers = body.trailers().await?;
    let status = |headers: &HeaderMap| headers.get("grpc-status").cloned();
    match trailers.as_ref().and_then(status).or_else(|| status(&head.headers)) {
        Some(status) if status == "0" => Ok(()),
        other => Err(format!("the answer to a call is {:?}, its status {other:?}", head.status).into()),
    }
}
