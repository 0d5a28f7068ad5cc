//! How many calls of each method there were, how they ended and how long they took, as etcd has it counted (go-grpc-middleware,
//! providers/prometheus/server_metrics.go).
//!
//! Only what is in etcd's services is counted: whoever asks for something else could make as many series as he likes.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use ::http::{HeaderMap, header::CONTENT_TYPE};
use instruments::{Counter, Histogram};
use tokio::time::Instant;
use tonic::Code;

use super::{
    client_versions::ClientVersions,
    request_stats::{self, Stats},
};
use crate::slow::Slow;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Prometheus' own (`DefBuckets`).
static BOUNDS: [Duration; 11] =
    [ms(5), ms(10), ms(25), ms(50), ms(100), ms(250), ms(500), ms(1000), ms(2500), ms(5000), ms(10_000)];

/// How grpc-go names the codes, by number.
pub(super) const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// A client whose deadline has come gives its call up a little earlier or later than it is counted here.
const DEADLINE_SLACK: Duration = ms(10);

/// One of etcd's methods: its service, its name, and grpc's name of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Method {
    pub(super) service: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
}

const fn unary(service: &'static str, name: &'static str) -> Method {
    Method { service, name, kind: "unary" }
}

const KV: &str = "etcdserverpb.KV";
const WATCH: &str = "etcdserverpb.Watch";
const LEASE: &str = "etcdserverpb.Lease";
const CLUSTER: &str = "etcdserverpb.Cluster";
const MAINTENANCE: &str = "etcdserverpb.Maintenance";
const AUTH: &str = "etcdserverpb.Auth";

/// Those of `proto/etcd/rpc.proto`, what is asked for most first.
const METHODS: [Method; 35] = [
    unary(KV, "Range"),
    unary(KV, "Put"),
    unary(KV, "Txn"),
    unary(KV, "DeleteRange"),
    unary(KV, "Compact"),
    Method { service: KV, name: "RangeStream", kind: "server_stream" },
    Method { service: WATCH, name: "Watch", kind: "bidi_stream" },
    unary(LEASE, "LeaseGrant"),
    unary(LEASE, "LeaseRevoke"),
    Method { service: LEASE, name: "LeaseKeepAlive", kind: "bidi_stream" },
    unary(LEASE, "LeaseTimeToLive"),
    unary(LEASE, "LeaseLeases"),
    unary(CLUSTER, "MemberAdd"),
    unary(CLUSTER, "MemberRemove"),
    unary(CLUSTER, "MemberUpdate"),
    unary(CLUSTER, "MemberList"),
    unary(CLUSTER, "MemberPromote"),
    unary(MAINTENANCE, "Alarm"),
    unary(MAINTENANCE, "Status"),
    unary(MAINTENANCE, "Defragment"),
    unary(MAINTENANCE, "Hash"),
    unary(MAINTENANCE, "HashKV"),
    Method { service: MAINTENANCE, name: "Snapshot", kind: "server_stream" },
    unary(MAINTENANCE, "MoveLeader"),
    unary(MAINTENANCE, "Downgrade"),
    unary(MAINTENANCE, "FeatureGateStatus"),
    unary(AUTH, "AuthEnable"),
    unary(AUTH, "AuthStatus"),
    unary(AUTH, "Authenticate"),
    unary(AUTH, "UserAdd"),
    unary(AUTH, "UserGet"),
    unary(AUTH, "UserList"),
    unary(AUTH, "UserGrantRole"),
    unary(AUTH, "RoleAdd"),
    unary(AUTH, "RoleList"),
];

/// What is counted of one method.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) started: Counter,
    pub(super) messages_received: Counter,
    pub(super) messages_sent: Counter,
    /// By code.
    pub(super) handled: [Counter; CODES.len()],
    pub(super) handling: Histogram,
}

/// What is counted of all calls since this process started.
#[derive(Debug)]
pub(super) struct Calls {
    /// Those that take too long are logged.
    pub(super) slow: Slow,
    pub(super) clients: ClientVersions,
    /// As the methods stand.
    by_method: Vec<Counts>,
    /// Of messages, each with the five bytes that gRPC puts before it.
    pub(super) received_bytes: Counter,
    pub(super) sent_bytes: Counter,
}

impl Calls {
    /// With how long a call may take.
    pub(super) fn new(limit: Duration) -> Self {
        let counts = || Counts {
            started: Counter::default(),
            messages_received: Counter::default(),
            messages_sent: Counter::default(),
            handled: Default::default(),
            handling: Histogram::new(&BOUNDS),
        };
        let by_method = METHODS.iter().map(|_| counts()).collect();
        Self {
            slow: Slow::after(limit),
            clients: ClientVersions::default(),
            by_method,
            received_bytes: Counter::default(),
            sent_bytes: Counter::default(),
        }
    }
}

impl Calls {
    /// Counts a call as started; `None` where it is no call, or none of etcd's.
    pub(super) fn begin(self: &Arc<Self>, path: &str, headers: &HeaderMap, remote: Option<SocketAddr>) -> Option<Call> {
        if !is_call(headers) {
            return None;
        }
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        let method = METHODS.iter().position(|method| method.name == name && method.service == service)?;
        self.by_method[method].started.inc();
        self.clients.note(headers, METHODS[method].kind != "unary");
        let allowed = headers.get("grpc-timeout").and_then(|value| timeout(value.as_bytes()));
        Some(Call { calls: self.clone(), method, remote, began: Instant::now(), allowed, code: None })
    }

    /// So many messages of this call's method came in.
    pub(super) fn note_received(&self, method: usize, messages: u64) {
        self.by_method[method].messages_received.add(messages);
    }

    /// Each method with what was counted of it.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static Method, &Counts)> {
        METHODS.iter().zip(&self.by_method)
    }
}

/// A call under way; dropped, it has ended.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) calls: Arc<Calls>,
    method: usize,
    remote: Option<SocketAddr>,
    began: Instant,
    /// How much time the client gives it.
    allowed: Option<Duration>,
    code: Option<Code>,
}

impl Call {
    pub(super) fn method(&self) -> usize {
        self.method
    }

    /// So many messages were sent.
    pub(super) fn note_sent(&self, messages: u64) {
        self.calls.by_method[self.method].messages_sent.add(messages);
    }

    /// It ends so.
    pub(super) fn end(mut self, code: Code) {
        self.code = Some(code);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let (counts, took) = (&self.calls.by_method[self.method], self.began.elapsed());
        let code = self.code.unwrap_or_else(|| given_up(took, self.allowed));
        counts.handled[code as usize].inc();
        counts.handling.observe(took);
        let (method, slow) = (&METHODS[self.method], &self.calls.slow);
        // Those of KV say more of themselves.
        if method.kind == "unary" && method.service != KV && slow.is_slow(took) {
            let name = format!("/{}/{}", method.service, method.name);
            request_stats::say(slow, took, self.remote, &name, &Stats::of_other());
        }
    }
}

/// Why a client waits no more.
fn given_up(took: Duration, allowed: Option<Duration>) -> Code {
    match allowed.is_some_and(|allowed| took + DEADLINE_SLACK >= allowed) {
        true => Code::DeadlineExceeded,
        false => Code::Cancelled,
    }
}

/// As gRPC writes it (PROTOCOL-HTTP2, "Timeout"): at most eight digits and a unit.
fn timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    let count: u64 = std::str::from_utf8(digits).ok().filter(|digits| digits.len() <= 8)?.parse().ok()?;
    match unit {
        b'H' => Some(Duration::from_secs(count * 3600)),
        b'M' => Some(Duration::from_secs(count * 60)),
        b'S' => Some(Duration::from_secs(count)),
        b'm' => Some(Duration::from_millis(count)),
        b'u' => Some(Duration::from_micros(count)),
        b'n' => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

/// Whether it is a gRPC call.
pub(super) fn is_call(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What `rpc.proto` declares, as service, name and type.
    fn declared() -> BTreeSet<(String, String, &'static str)> {
        let (mut service, mut declared) = (String::new(), BTreeSet::new());
        for line in include_str!("../../../proto/etcd/rpc.proto").lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix("service ") {
                service = format!("etcdserverpb.{}", rest.split(' ').next().unwrap());
            } else if let Some((name, rest)) = line.strip_prefix("rpc ").and_then(|rest| rest.split_once('(')) {
                let kind = match (rest.starts_with("stream "), rest.contains("(stream ")) {
                    (false, false) => "unary",
                    (false, true) => "server_stream",
                    (true, false) => "client_stream",
                    (true, true) => "bidi_stream",
                };
                declared.insert((service.clone(), name.to_owned(), kind));
            }
        }
        declared
    }

    #[test]
    fn every_method_that_is_declared_is_counted() {
        let counted = METHODS.iter().map(|method| (method.service.to_owned(), method.name.to_owned(), method.kind));
        assert_eq!(counted.collect::<BTreeSet<_>>(), declared());
    }

    #[test]
    fn codes_stand_at_their_numbers() {
        for (code, name) in [
            (Code::Ok, "OK"),
            (Code::Cancelled, "Canceled"),
            (Code::DeadlineExceeded, "DeadlineExceeded"),
            (Code::FailedPrecondition, "FailedPrecondition"),
            (Code::Unavailable, "Unavailable"),
            (Code::Unauthenticated, "Unauthenticated"),
        ] {
            assert_eq!(CODES[code as usize], name);
        }
    }

    #[test]
    fn who_gives_up_at_its_deadline_has_not_cancelled() {
        for (took, allowed, expected) in [
            (ms(50), None, Code::Cancelled),
            (ms(50), Some(ms(5000)), Code::Cancelled),
            (ms(4995), Some(ms(5000)), Code::DeadlineExceeded),
            (ms(5001), Some(ms(5000)), Code::DeadlineExceeded),
        ] {
            assert_eq!(given_up(took, allowed), expected, "{took:?} of {allowed:?}");
        }
        for (text, expected) in [
            ("5S", Some(ms(5000))),
            ("4999877u", Some(Duration::from_micros(4_999_877))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("999999999m", None),
            ("m", None),
            ("", None),
            ("5", None),
        ] {
            assert_eq!(timeout(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_call_of_etcds_is_not_counted() {
        let calls = Arc::new(Calls::new(ms(300)));
        let headers = |kind: &'static str| [(CONTENT_TYPE, kind.parse().unwrap())].into_iter().collect::<HeaderMap>();
        for (path, kind, is_counted) in [
            ("/etcdserverpb.KV/Put", "application/grpc", true),
            ("/etcdserverpb.KV/Put", "application/grpc+proto", true),
            ("/etcdserverpb.KV/Put", "application/json", false),
            ("/etcdserverpb.KV/Unheard", "application/grpc", false),
            ("/etcdserverpb.Lease/Put", "application/grpc", false),
            ("/metrics", "application/grpc", false),
            ("/", "application/grpc", false),
        ] {
            assert_eq!(calls.begin(path, &headers(kind), None).is_some(), is_counted, "{path} {kind}");
        }
        let (_, put) = calls.all().find(|(method, _)| method.name == "Put").unwrap();
        assert_eq!((put.started.get(), put.handled[Code::Cancelled as usize].get()), (2, 2), "both were dropped");
        assert_eq!(calls.all().map(|(_, counts)| counts.started.get()).sum::<u64>(), 2);
    }
}
