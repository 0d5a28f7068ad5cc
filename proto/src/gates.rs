//! What a client of KEP-4647 needs: which features of the cluster are on, and requests that want one to be on.
//! Source: KEP-4647, "Client APIs Changes" (`FeatureGateStatus`, `WithRequireFeature`).

use std::collections::BTreeMap;

use tonic::{
    Request, Status,
    body::Body,
    client::GrpcService,
    codegen::{Body as HttpBody, Bytes, StdError},
    metadata::{Ascii, MetadataValue},
};

use crate::etcdserverpb::{FeatureGateStatusRequest, FeatureGateStatusResponse, maintenance_client::MaintenanceClient};

/// The key of a request's metadata that names a feature which must be on; it may come any number of times.
pub const REQUIRE_FEATURE: &str = "require-feature";

/// A text that can be no feature's name: metadata holds visible ASCII alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a feature: expected letters and digits")]
pub struct FeatureNameError(String);

impl FeatureGateStatusRequest {
    /// Asks about these; about none by name, for all that are known at the cluster's version.
    pub fn of<N: Into<String>>(features: impl IntoIterator<Item = N>) -> Self {
        Self { features: features.into_iter().map(Into::into).collect() }
    }
}

impl FeatureGateStatusResponse {
    /// Each feature, on or off. Of a name that comes twice, off wins.
    pub fn by_name(self) -> BTreeMap<String, bool> {
        let mut features = BTreeMap::new();
        for feature in self.features {
            features.entry(feature.name).and_modify(|on| *on &= feature.enabled).or_insert(feature.enabled);
        }
        features
    }
}

/// Whether these features are on for the whole cluster, by any member's word: all of them answer alike. Without names, all
/// that are known at the cluster's version.
///
/// # Errors
/// Those of the call; `Unimplemented` from a server that has no gates.
pub async fn feature_gate_status<T, N>(
    client: &mut MaintenanceClient<T>,
    features: impl IntoIterator<Item = N>,
) -> Result<BTreeMap<String, bool>, Status>
where
    T: GrpcService<Body>,
    T::Error: Into<StdError>,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    N: Into<String>,
{
    let answer = client.feature_gate_status(FeatureGateStatusRequest::of(features)).await?;
    Ok(answer.into_inner().by_name())
}

/// Has the request served only while this feature is on, as the member sees it where it serves it. What was asked before
/// may have changed by then.
///
/// # Errors
/// [`FeatureNameError`]
pub fn require_feature<T>(request: &mut Request<T>, feature: &str) -> Result<(), FeatureNameError> {
    let name: MetadataValue<Ascii> = feature.parse().map_err(|_| FeatureNameError(feature.to_owned()))?;
    request.metadata_mut().append(REQUIRE_FEATURE, name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcdserverpb::Feature;

    #[test]
    fn of_a_name_that_comes_twice_off_wins() {
        let feature = |(name, enabled): (&str, bool)| Feature { name: name.into(), enabled };
        for (said, found) in [
            (&[][..], &[][..]),
            (&[("A", true), ("B", false)], &[("A", true), ("B", false)]),
            (&[("A", true), ("A", false), ("A", true)], &[("A", false)]),
        ] {
            let answer =
                FeatureGateStatusResponse { header: None, features: said.iter().copied().map(feature).collect() };
            let expected: BTreeMap<_, _> = found.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect();
            assert_eq!(answer.by_name(), expected);
        }
    }

    #[test]
    fn a_request_requires_each_feature_that_is_named() {
        let mut request = Request::new(());
        require_feature(&mut request, "A").unwrap();
        require_feature(&mut request, "B").unwrap();
        let names: Vec<_> = request.metadata().get_all(REQUIRE_FEATURE).iter().collect();
        assert_eq!(names, ["A", "B"]);
        assert_eq!(require_feature(&mut request, "a\nb"), Err(FeatureNameError("a\nb".into())));
    }
}
