//! Reads whose answers are not looked at: a client that takes them apart would keep the processors from the member.

use std::marker::PhantomData;

use bytes::{Buf, BufMut};
use prost::Message;
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};

/// Sends a message, and counts the bytes of the answer.
struct Counted<M>(PhantomData<M>);

struct Sent<M>(PhantomData<M>);

struct Count;

impl<M: Message + Send + 'static> Codec for Counted<M> {
    type Encode = M;
    type Decode = u64;
    type Encoder = Sent<M>;
    type Decoder = Count;

    fn encoder(&mut self) -> Sent<M> {
        Sent(PhantomData)
    }

    fn decoder(&mut self) -> Count {
        Count
    }
}

impl<M: Message> Encoder for Sent<M> {
    type Item = M;
    type Error = Status;

    fn encode(&mut self, message: M, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message.encode_to_vec());
        Ok(())
    }
}

impl Decoder for Count {
    type Item = u64;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<u64>, Status> {
        let bytes = buffer.remaining();
        buffer.advance(bytes);
        Ok(Some(bytes as u64))
    }
}

/// How many bytes the answer to a call has.
pub async fn ask<M: Message + Send + 'static>(
    channel: &Channel,
    path: &'static str,
    message: M,
) -> Result<u64, Status> {
    let mut client = Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = PathAndQuery::from_static(path);
    Ok(client.unary(Request::new(message), path, Counted(PhantomData)).await?.into_inner())
}
