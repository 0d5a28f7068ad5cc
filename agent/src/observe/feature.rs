//! One feature of the cluster, by the word of any member: all of them answer alike (KEP-4647, "Client APIs Changes").

use proto::etcdserverpb::{FeatureGateStatusRequest, maintenance_client::MaintenanceClient};
use tonic::Code;

use super::{
    Observer,
    error::{CallError, ObserveError},
};

/// What the cluster says of a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureAnswer {
    On,
    Off,
    /// It is off, as it is everywhere: the cluster version has no such feature.
    Unknown {
        there_are: Vec<String>,
    },
    /// Nobody who answers has gates.
    NoGates,
    /// Members are there, and none of them could say.
    NotSaid {
        reasons: Vec<String>,
    },
}

impl Observer {
    /// Whether this feature is on. One member's answer is enough, and it needs a quorum.
    ///
    /// # Errors
    /// [`ObserveError`]: nobody is reached at the endpoints, or the user is refused.
    pub async fn feature(&self, name: &str) -> Result<FeatureAnswer, ObserveError> {
        let access = self.access();
        drop(access.log_in().await?);
        let (mut reasons, mut has_none) = (Vec::new(), false);
        for address in access.directory().routes(None) {
            match self.feature_at(&address, name).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.code() == Some(Code::Unimplemented) => has_none = true,
                Err(error) => reasons.push(format!("{address}: {error}")),
            }
        }
        // Whoever did not answer may have them.
        Ok(if has_none && reasons.is_empty() { FeatureAnswer::NoGates } else { FeatureAnswer::NotSaid { reasons } })
    }

    async fn feature_at(&self, address: &str, name: &str) -> Result<FeatureAnswer, CallError> {
        let ask = async |question: FeatureGateStatusRequest| {
            let answer = self.access().ask(address, question, |channel, request| async move {
                MaintenanceClient::new(channel).feature_gate_status(request).await
            });
            Ok::<_, CallError>(answer.await?.by_name())
        };
        if ask(FeatureGateStatusRequest::of([name])).await?.get(name) == Some(&true) {
            return Ok(FeatureAnswer::On);
        }
        let known = ask(FeatureGateStatusRequest::of([""; 0])).await?;
        Ok(match known.contains_key(name) {
            true => FeatureAnswer::Off,
            false => FeatureAnswer::Unknown { there_are: known.into_keys().collect() },
        })
    }
}
