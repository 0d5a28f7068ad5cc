//! gRPC's own services, for whoever knows no etcd: health for load balancers, reflection for `grpcurl`.
//!
//! A member that listens for clients is healthy, as with etcd (`newHealthNotifier`); whether there is a quorum says `/readyz`.

use std::{convert::Infallible, sync::Arc};

use ::http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic_health::{
    pb::health_server::HealthServer,
    server::{HealthReporter, HealthService},
};
use tonic_reflection::server::{Builder, Error};
use tower::util::BoxCloneSyncService;

pub(super) type Boxed = BoxCloneSyncService<Request<Incoming>, Response<Body>, Infallible>;

/// Each by its name in a path.
#[derive(Clone, Debug)]
pub(super) struct Standard(Arc<[(&'static str, Boxed)]>);

impl Standard {
    pub(super) fn new() -> Self {
        let health = HealthServer::new(HealthService::from_health_reporter(HealthReporter::new()));
        let mut services = vec![("grpc.health.v1.Health", Boxed::new(health))];
        match reflection() {
            Ok(reflection) => services.extend(reflection),
            Err(error) => tracing::error!(%error, "there is no reflection"),
        }
        Self(services.into())
    }

    /// The service of this name.
    pub(super) fn named(&self, name: &str) -> Option<Boxed> {
        self.0.iter().find(|(there, _)| *there == name).map(|(_, service)| service.clone())
    }
}

/// In its final form, and in the one before it, which older tools speak.
fn reflection() -> Result<[(&'static str, Boxed); 2], Error> {
    let builder = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    Ok([
        ("grpc.reflection.v1.ServerReflection", Boxed::new(builder().build_v1()?)),
        ("grpc.reflection.v1alpha.ServerReflection", Boxed::new(builder().build_v1alpha()?)),
    ])
}
