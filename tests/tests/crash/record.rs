//! The take-down record, read and changed from outside as an operator's command would.

use proto::etcdserverpb::{
    Compare, DeleteRangeRequest, PutRequest, RequestOp, TxnRequest,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op::Request,
};
use serde_json::Value;
use tests::wait::{self, GENEROUS};

use crate::rollout::Rollout;

const DOWN: &str = "/baton/down";

impl Rollout {
    /// The take-down record that stands.
    pub async fn record(&self, through: usize) -> Value {
        let kv = self.client(through).get(DOWN).await.expect("an answer").expect("a record stands");
        serde_json::from_slice(&kv.value).expect("JSON")
    }

    /// Writes another record over the one that stands.
    pub async fn put_record(&self, through: usize, record: &Value) {
        self.client(through).put(DOWN, &record.to_string()).await.expect("written");
    }

    /// What `agent abandon` does, as one transaction: the record goes, a sign of it stays.
    pub async fn abandon(&self, through: usize) -> String {
        let kv = self.client(through).get(DOWN).await.expect("an answer").expect("a record stands");
        let record: Value = serde_json::from_slice(&kv.value).expect("JSON");
        let lost = format!("/baton/lost/{}", record["member"].as_str().expect("an id"));
        let created = Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Create.into(),
            key: DOWN.into(),
            target_union: Some(TargetUnion::CreateRevision(kv.create_revision)),
            range_end: vec![],
        };
        let delete = DeleteRangeRequest { key: DOWN.into(), ..Default::default() };
        let put = PutRequest { key: lost.clone().into(), value: kv.value, ..Default::default() };
        let success = [Request::RequestDeleteRange(delete), Request::RequestPut(put)]
            .map(|request| RequestOp { request: Some(request) })
            .into();
        let transaction = TxnRequest { compare: vec![created], success, failure: vec![] };
        let answer = self.client(through).txn(transaction).await.expect("an answer");
        assert!(answer.succeeded, "the record changed meanwhile");
        lost
    }

    /// Waits until this key is gone.
    pub async fn is_gone(&self, through: usize, key: &str) {
        let client = self.client(through);
        wait::until(&format!("{key} to be cleared"), GENEROUS, || async {
            match client.get(key).await {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err("it stands".to_owned()),
                Err(status) => Err(status.to_string()),
            }
        })
        .await
        .expect("its own host clears it");
    }
}
