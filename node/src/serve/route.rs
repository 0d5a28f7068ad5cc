//! Which service a request is for.
//!
//! By hand, since it is done for every request: a path names the service, and whatever is no call is for HTTP.

use std::{convert::Infallible, net::SocketAddr};

use ::http::{Request, Response};
use futures_util::future::{BoxFuture, FutureExt};
use hyper::{body::Incoming, service::Service};
use proto::{
    batonpb::{counters_server::CountersServer, members_server::MembersServer},
    etcdserverpb::{
        auth_server::AuthServer, cluster_server::ClusterServer, kv_server::KvServer, lease_server::LeaseServer,
        maintenance_server::MaintenanceServer, watch_server::WatchServer,
    },
};
use tonic::{Code, Status, body::Body, codegen::Service as _};

use super::{
    calls::{Call, is_call},
    context::ServiceContext,
    counted::{Answer, Asked, CountedBody},
    http,
    long_answer::in_pieces,
    standard::Standard,
};

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Both,
    /// HTTP has another port.
    Grpc,
}

/// All services of a member; to clone it is cheap.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    context: ServiceContext,
    spoken: Spoken,
    kv: KvServer<ServiceContext>,
    watch: WatchServer<ServiceContext>,
    lease: LeaseServer<ServiceContext>,
    cluster: ClusterServer<ServiceContext>,
    maintenance: MaintenanceServer<ServiceContext>,
    auth: AuthServer<ServiceContext>,
    counters: CountersServer<ServiceContext>,
    members: MembersServer<ServiceContext>,
    standard: Standard,
    /// Who calls.
    remote: Option<SocketAddr>,
}

impl Routes {
    pub(super) fn new(context: ServiceContext, spoken: Spoken) -> Self {
        let longest = context.options.longest_message_bytes();
        Self {
            kv: KvServer::new(context.clone()).max_decoding_message_size(longest),
            watch: WatchServer::new(context.clone()).max_decoding_message_size(longest),
            lease: LeaseServer::new(context.clone()).max_decoding_message_size(longest),
            cluster: ClusterServer::new(context.clone()).max_decoding_message_size(longest),
            maintenance: MaintenanceServer::new(context.clone()).max_decoding_message_size(longest),
            counters: CountersServer::new(context.clone()).max_decoding_message_size(longest),
            auth: AuthServer::new(context.clone()).max_decoding_message_size(longest),
            members: MembersServer::new(context.clone()),
            standard: Standard::new(),
            spoken,
            context,
            remote: None,
        }
    }

    /// For a connection from there.
    pub(super) fn called_by(self, remote: Option<SocketAddr>) -> Self {
        Self { remote, ..self }
    }
}

impl Service<Request<Incoming>> for Routes {
    type Response = Response<CountedBody>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let calls = &self.context.calls;
        let call = calls.begin(request.uri().path(), request.headers(), self.remote);
        let method = call.as_ref().map(Call::method);
        let counted = |request: Request<Incoming>| request.map(|body| Asked::new(body, calls.clone(), method));
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        let answer = match service {
            "etcdserverpb.KV" => self.kv.clone().call(counted(request)),
            "etcdserverpb.Watch" => self.watch.clone().call(counted(request)),
            "etcdserverpb.Lease" => self.lease.clone().call(counted(request)),
            "etcdserverpb.Cluster" => self.cluster.clone().call(counted(request)),
            "etcdserverpb.Maintenance" => self.maintenance.clone().call(counted(request)),
            "batonpb.Counters" => self.counters.clone().call(counted(request)),
            "etcdserverpb.Auth" => self.auth.clone().call(counted(request)),
            "batonpb.Members" => self.members.clone().call(counted(request)),
            other if is_call(request.headers()) => match self.standard.named(other) {
                Some(mut service) => service.call(request),
                None => {
                    let unknown = Status::unimplemented(format!("unknown service {other}"));
                    std::future::ready(Ok(unknown.into_http())).boxed()
                }
            },
            _ if self.spoken == Spoken::Grpc => std::future::ready(Ok(http::only_grpc())).boxed(),
            _ => {
                let context = self.context.clone();
                async move { Ok(http::answer(&context, request).await) }.boxed()
            }
        };
        Answer::new(answer, adapted, call, self.remote)
    }
}

/// HTTP alone: all of it, or metrics and health.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    context: ServiceContext,
    is_all: bool,
}

impl Pages {
    pub(super) fn all(context: ServiceContext) -> Self {
        Self { context, is_all: true }
    }

    pub(super) fn of_probes(context: ServiceContext) -> Self {
        Self { context, is_all: false }
    }
}

impl Service<Request<Incoming>> for Pages {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if is_call(request.headers()) {
            let elsewhere = Status::unimplemented("HTTP alone is served here; gRPC is at --listen-client-urls");
            return std::future::ready(Ok(elsewhere.into_http())).boxed();
        }
        let Self { context, is_all } = self.clone();
        async move {
            Ok(match is_all {
                true => http::answer(&context, request).await,
                false => http::answer_probe(&context, request).await,
            })
        }
        .boxed()
    }
}

fn adapted(answer: Response<Body>) -> Response<Body> {
    in_pieces(in_etcds_words(answer))
}

/// What tonic says itself, as grpc-go says it for etcd: clients know that code.
fn in_etcds_words(answer: Response<Body>) -> Response<Body> {
    match Status::from_header_map(answer.headers()).as_ref().and_then(too_long) {
        Some(status) => status.into_http(),
        None => answer,
    }
}

/// For a request of which no more than its length was read.
fn too_long(said: &Status) -> Option<Status> {
    let rest = said.message().strip_prefix("Error, decoded message length too large: found ");
    let (bytes, most) = rest.filter(|_| said.code() == Code::OutOfRange)?.split_once(" bytes, the limit is: ")?;
    let most = most.strip_suffix(" bytes")?;
    let text = format!("grpc: received message larger than max ({bytes} vs. {most})");
    Some(Status::resource_exhausted(text))
}
