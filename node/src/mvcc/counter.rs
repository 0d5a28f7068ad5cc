//! Keys that count: a number is added to in one entry, so that nobody reads first and tries again.

use bytes::Bytes;
use proto::{
    LeaseId,
    batonpb::{AddRequest, AddResponse},
};

use super::{Store, header};
use crate::api_error::ApiError;

impl Store {
    /// Adds to the number that a key holds; one that is not there holds 0. Its lease stays.
    ///
    /// # Errors
    /// The key holds no number; the sum has more than 64 bits.
    pub fn counter_add(&mut self, request: AddRequest) -> Result<AddResponse, ApiError> {
        let found = self.head(&request.key);
        let lease = found.as_ref().map_or(LeaseId(0), |found| found.live.lease);
        let held = found.map_or(Ok(0), |found| number(&found.live.value))?;
        let value = held.checked_add(request.by).ok_or(ApiError::CounterTooLarge)?;
        let mut write = self.write();
        write.put(request.key.into(), Bytes::from(value.to_string()), lease);
        Ok(AddResponse { header: header(write.end()), value })
    }
}

fn number(value: &[u8]) -> Result<i64, ApiError> {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(ApiError::NoCounter)
}
