//! What one member shows of the record by itself, as of now.

use proto::{
    MemberId,
    etcdserverpb::{RangeRequest, kv_client::KvClient},
};

use super::{reading, stored};
use crate::{
    keys::StepLock,
    observe::{access::Access, error::CallError},
};

/// The step lock by a linearizable read through this member alone; `None` where there is none, or none that can be
/// understood.
///
/// # Errors
/// [`CallError`], also where another member answers at this address.
pub async fn record_by(access: &Access, member: MemberId, address: &str) -> Result<Option<StepLock>, CallError> {
    let question = RangeRequest { key: reading::full("step"), ..Default::default() };
    let answer = access
        .ask(address, question, |channel, request| async move {
            KvClient::new(channel).max_decoding_message_size(reading::MOST_ANSWERED).range(request).await
        })
        .await?;
    let answered = answer.header.map(|header| MemberId(header.member_id));
    if answered != Some(member) {
        return Err(CallError::Unusable(format!("another member answers at {address}")));
    }
    let raw = answer.kvs.into_iter().find_map(reading::raw_key);
    Ok(raw.and_then(|raw| stored::record(&raw)))
}
