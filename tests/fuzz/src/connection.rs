//! What clients send before it is a request.

pub fn decode(bytes: &[u8]) {
    node::transport::authority::fuzz(bytes);
}

pub fn seeds() -> Vec<Vec<u8>> {
    node::transport::authority::seeds()
}
