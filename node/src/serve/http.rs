//! etcd's HTTP paths, which probes and monitoring read.

use std::time::Duration;

use ::http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use proto::etcdserverpb::FeatureGateStatusRequest;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tonic::{Code, Status, body::Body};

use super::{
    context::ServiceContext,
    health::{self, Probe},
    metrics,
};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// One that never ends would be kept for ever.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Where KEP-4647 has `FeatureGateStatus` for those who speak no gRPC ("Client APIs Changes").
const FEATURE_GATE: &str = "/v3/maintenance/featuregate";

/// An answer: status, kind of content, content.
pub(super) type Answer = (StatusCode, &'static str, String);

/// What is served over HTTP.
enum Place {
    Version,
    Metrics,
    Health,
    Probe(Probe),
    FeatureGate,
}

impl Place {
    fn of(context: &ServiceContext, path: &str) -> Option<Self> {
        match path {
            "/version" => Some(Self::Version),
            "/metrics" => Some(Self::Metrics),
            "/health" => Some(Self::Health),
            FEATURE_GATE => context.has_gates().then_some(Self::FeatureGate),
            _ => Probe::of(path).map(Self::Probe),
        }
    }

    fn method(&self) -> Method {
        if matches!(self, Self::FeatureGate) { Method::POST } else { Method::GET }
    }
}

/// Answers those who ask for metrics and health alone (etcd, `--listen-metrics-urls`).
pub(super) async fn answer_probe(context: &ServiceContext, request: Request<Incoming>) -> Response<Body> {
    match Place::of(context, request.uri().path()) {
        Some(Place::Metrics | Place::Health | Place::Probe(_)) => answer(context, request).await,
        _ => not_found(),
    }
}

/// Answers whatever is no gRPC call where nothing else is spoken. grpc-go hangs up on HTTP/1, and has this status for the rest.
pub(super) fn only_grpc() -> Response<Body> {
    let text = "gRPC alone is served here; HTTP is at --listen-client-http-urls\n".to_owned();
    response((StatusCode::UNSUPPORTED_MEDIA_TYPE, TEXT, text))
}

/// Answers whatever is no gRPC call.
pub(super) async fn answer(context: &ServiceContext, request: Request<Incoming>) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default();
    let Some(place) = Place::of(context, request.uri().path()) else {
        return not_found();
    };
    if *request.method() != place.method() {
        return not_allowed(&place.method());
    }
    response(match place {
        Place::Version => (StatusCode::OK, JSON, version(context)),
        Place::Metrics => (StatusCode::OK, METRICS, metrics::text(context)),
        Place::Health => health::health(context, query).await,
        Place::Probe(probe) => probe.answer(context, query).await,
        Place::FeatureGate => feature_gate(context, request.into_body()).await,
    })
}

fn response((status, kind, content): Answer) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::from(content)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn not_found() -> Response<Body> {
    response((StatusCode::NOT_FOUND, TEXT, "404 page not found\n".to_owned()))
}

fn not_allowed(expected: &Method) -> Response<Body> {
    let mut response = response((StatusCode::METHOD_NOT_ALLOWED, TEXT, "Method Not Allowed\n".to_owned()));
    response.headers_mut().extend(HeaderValue::from_str(expected.as_str()).map(|method| (ALLOW, method)));
    response
}

/// etcd's `GET /version`; the storage's from the release on that tells of it.
#[derive(Serialize)]
struct Versions {
    etcdserver: String,
    etcdcluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<String>,
}

fn version(context: &ServiceContext) -> String {
    let (cluster, storage) = context.member.read(|state| (state.cluster.version, context.storage_version(state)));
    let versions = Versions {
        etcdserver: context.member.identity().release.to_string(),
        etcdcluster: cluster.map_or_else(|| "not_decided".to_owned(), |version| format!("{version}.0")),
        storage: context.has_storage_version().then(|| storage.unwrap_or_else(|| "unknown".to_owned())),
    };
    json(&versions)
}

/// As etcd's gateway writes it: numbers of 64 bits as text.
#[derive(Serialize)]
struct Gate {
    header: Header,
    features: Vec<Feature>,
}

#[derive(Serialize)]
struct Header {
    cluster_id: String,
    member_id: String,
    revision: String,
    raft_term: String,
}

#[derive(Serialize)]
struct Feature {
    name: String,
    enabled: bool,
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    features: Vec<String>,
}

async fn feature_gate(context: &ServiceContext, body: Incoming) -> Answer {
    let bytes = match timeout(BODY_TIMEOUT, Limited::new(body, context.options.longest_message_bytes()).collect()).await
    {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return (StatusCode::BAD_REQUEST, TEXT, format!("{error}\n")),
        Err(_) => return (StatusCode::REQUEST_TIMEOUT, TEXT, "the body did not come in time\n".to_owned()),
    };
    let asked = match &bytes[..] {
        [] => Ok(Asked { features: Vec::new() }),
        bytes => serde_json::from_slice(bytes),
    };
    let Asked { features } = match asked {
        Ok(asked) => asked,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, TEXT, format!("expected {{\"features\": [\"NAME\"]}}: {error}\n"));
        }
    };
    match context.feature_gate(&[], &FeatureGateStatusRequest { features }).await {
        Ok(found) => {
            let header = found.header.unwrap_or_default();
            let features = found.features.into_iter();
            let gate = Gate {
                header: Header {
                    cluster_id: header.cluster_id.to_string(),
                    member_id: header.member_id.to_string(),
                    revision: header.revision.to_string(),
                    raft_term: header.raft_term.to_string(),
                },
                features: features.map(|one| Feature { name: one.name, enabled: one.enabled }).collect(),
            };
            (StatusCode::OK, JSON, json(&gate))
        }
        Err(status) => (status_code(&status), TEXT, format!("{}\n", status.message())),
    }
}

fn status_code(status: &Status) -> StatusCode {
    match status.code() {
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::FailedPrecondition => StatusCode::PRECONDITION_FAILED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Text of our own structures: nothing in them can fail.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The values of one key of a query.
pub(super) fn values<'a>(query: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(move |(name, _)| *name == key).map(|(_, value)| value)
}
