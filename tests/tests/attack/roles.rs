//! Whom etcd answers. The agent's own table of it is asked of real etcd, call by call and user by user; and a user who
//! may write every key is kept off Baton's as it is printed. Of etcd alone: the bundled node has no users.

use std::collections::BTreeMap;

use proto::{
    Release,
    etcdserverpb::{
        AuthUserGetRequest, AuthenticateRequest, DowngradeRequest, HashKvRequest, LeaseGrantRequest,
        LeaseKeepAliveRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest, MemberAddRequest, MemberListRequest,
        MemberPromoteRequest, MemberRemoveRequest, MoveLeaderRequest, PutRequest, RangeRequest, RequestOp,
        SnapshotRequest, StatusRequest, TxnRequest, WatchCreateRequest, WatchRequest, auth_client::AuthClient,
        cluster_client::ClusterClient, downgrade_request::DowngradeAction, kv_client::KvClient,
        lease_client::LeaseClient, maintenance_client::MaintenanceClient, request_op::Request as Op,
        watch_client::WatchClient, watch_request::RequestUnion,
    },
};
use serde_json::Value;
use tests::{
    client::{Access, Client},
    cluster::{Cluster, Spec},
    roles::Shell,
    skip::build_or_skip,
    system::System,
};
use tokio_stream::StreamExt as _;
use tonic::{
    Code, Request, Status,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

const KEY: &str = "/baton/run";

/// One member with auth, and a user of each kind, from nobody to root's equal.
struct Server {
    _cluster: Cluster,
    shell: Shell,
    release: Release,
    channel: Channel,
    tokens: BTreeMap<&'static str, MetadataValue<Ascii>>,
}

/// Each kind, as the table calls it, and who is of it here.
const KINDS: [(&str, &str); 5] =
    [("anyone", ""), ("user", "guest"), ("reader", "baton-viewer"), ("writer", "keeper"), ("root", "baton")];

impl Server {
    async fn of(minor: &str) -> Option<Self> {
        let build = build_or_skip(System::Etcd, minor)?;
        let cluster = Cluster::up(&Spec { size: 1, ..Spec::new(build.clone()) }).await.expect("up");
        let shell = Shell::of(&cluster.layout, &build);
        shell.makes_users();
        shell.adds("guest", &[]);
        shell.adds("keeper", &["readwrite /baton/ --prefix=true"]);
        let url = &cluster.layout.members[0].client_url;
        let channel = Client::new(url, &Access::default()).expect("a client").channel();
        let mut server = Self { _cluster: cluster, shell, release: build.release, channel, tokens: BTreeMap::new() };
        for (kind, user) in KINDS.into_iter().skip(1) {
            server.tokens.insert(kind, server.token(user).await);
        }
        Some(server)
    }

    async fn token(&self, user: &str) -> MetadataValue<Ascii> {
        let request = AuthenticateRequest { name: user.into(), password: self.shell.password(user) };
        let answer = AuthClient::new(self.channel.clone()).authenticate(request).await.expect("a token");
        answer.into_inner().token.parse().expect("a header")
    }

    fn request<T>(&self, kind: &str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = self.tokens.get(kind) {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }

    /// A lease that holds one of Baton's keys.
    async fn lease(&self) -> i64 {
        let grant = self.request("root", LeaseGrantRequest { ttl: 600, id: 0 });
        let lease = LeaseClient::new(self.channel.clone()).lease_grant(grant).await.expect("granted").into_inner().id;
        let put = PutRequest { key: "/baton/baton".into(), value: "{}".into(), lease, ..PutRequest::default() };
        KvClient::new(self.channel.clone()).put(self.request("root", put)).await.expect("put");
        lease
    }

    /// What etcd says to this kind of user.
    async fn asks(&self, kind: &str, call: &str) -> Result<(), Status> {
        let channel = || self.channel.clone();
        match call {
            "Authenticate" => {
                let request = AuthenticateRequest { name: "guest".into(), password: self.shell.password("guest") };
                AuthClient::new(channel()).authenticate(self.request(kind, request)).await.map(drop)
            }
            "MemberList" => {
                let request = self.request(kind, MemberListRequest { linearizable: false });
                ClusterClient::new(channel()).member_list(request).await.map(drop)
            }
            "Status" => MaintenanceClient::new(channel()).status(self.request(kind, StatusRequest {})).await.map(drop),
            "Range" => {
                let all =
                    RangeRequest { key: "/baton/".into(), range_end: "/baton0".into(), ..RangeRequest::default() };
                KvClient::new(channel()).range(self.request(kind, all)).await.map(drop)
            }
            "Watch" => self.watches(kind).await,
            "Txn" => {
                let put = PutRequest { key: KEY.into(), value: "{}".into(), ..PutRequest::default() };
                let success = vec![RequestOp { request: Some(Op::RequestPut(put)) }];
                let txn = TxnRequest { success, ..TxnRequest::default() };
                KvClient::new(channel()).txn(self.request(kind, txn)).await.map(drop)
            }
            "LeaseGrant" => {
                let request = self.request(kind, LeaseGrantRequest { ttl: 600, id: 0 });
                LeaseClient::new(channel()).lease_grant(request).await.map(drop)
            }
            "LeaseKeepAlive" => {
                let once = tokio_stream::once(LeaseKeepAliveRequest { id: self.lease().await });
                let answers = LeaseClient::new(channel()).lease_keep_alive(self.request(kind, once)).await?;
                answers.into_inner().message().await?.map(drop).ok_or_else(|| Status::unavailable("no answer"))
            }
            "LeaseTimeToLive" => {
                let request = LeaseTimeToLiveRequest { id: self.lease().await, keys: false };
                LeaseClient::new(channel()).lease_time_to_live(self.request(kind, request)).await.map(drop)
            }
            "LeaseRevoke" => {
                let request = LeaseRevokeRequest { id: self.lease().await };
                LeaseClient::new(channel()).lease_revoke(self.request(kind, request)).await.map(drop)
            }
            "UserGet" => {
                let own = KINDS.iter().find(|(name, _)| *name == kind).map_or("guest", |(_, user)| *user);
                let request = AuthUserGetRequest { name: if own.is_empty() { "guest" } else { own }.into() };
                AuthClient::new(channel()).user_get(self.request(kind, request)).await.map(drop)
            }
            "HashKV" => {
                MaintenanceClient::new(channel()).hash_kv(self.request(kind, HashKvRequest::default())).await.map(drop)
            }
            "Snapshot" => {
                let parts = MaintenanceClient::new(channel()).snapshot(self.request(kind, SnapshotRequest {})).await?;
                parts.into_inner().message().await.map(drop)
            }
            // To nobody: whoever may ask hears that this is no member.
            "MoveLeader" => {
                let request = self.request(kind, MoveLeaderRequest { target_id: 1 });
                MaintenanceClient::new(channel()).move_leader(request).await.map(drop)
            }
            "Downgrade" => {
                for action in [DowngradeAction::Validate, DowngradeAction::Enable, DowngradeAction::Cancel] {
                    let request = DowngradeRequest { action: action.into(), version: "9.9.0".into() };
                    match MaintenanceClient::new(channel()).downgrade(self.request(kind, request)).await {
                        Err(status) if is_refusal(&status) || status.code() == Code::Unimplemented => {
                            return Err(status);
                        }
                        _ => {} // there is no such version, and nothing to cancel
                    }
                }
                Ok(())
            }
            // A learner that nobody starts; it costs no quorum.
            "MemberAdd" => {
                let request = MemberAddRequest { peer_urls: vec!["http://127.0.0.1:1".into()], is_learner: true };
                ClusterClient::new(channel()).member_add(self.request(kind, request)).await.map(drop)
            }
            // Whoever may ask hears that this is no member.
            "MemberPromote" => {
                let request = self.request(kind, MemberPromoteRequest { id: 1 });
                ClusterClient::new(channel()).member_promote(request).await.map(drop)
            }
            "MemberRemove" => {
                let request = self.request(kind, MemberRemoveRequest { id: 1 });
                ClusterClient::new(channel()).member_remove(request).await.map(drop)
            }
            // Then the table has what nobody answers, and the test fails.
            other => Err(Status::unimplemented(format!("{other} is not tried here"))),
        }
    }

    /// A watch that may not be is made and ended at once.
    async fn watches(&self, kind: &str) -> Result<(), Status> {
        let all = WatchCreateRequest { key: "/baton/".into(), range_end: "/baton0".into(), ..Default::default() };
        let requests = tokio_stream::once(WatchRequest { request_union: Some(RequestUnion::CreateRequest(all)) });
        // A stream that has ended ends the watch: this one goes on.
        let requests = requests.chain(tokio_stream::pending());
        let answers = WatchClient::new(self.channel.clone()).watch(self.request(kind, requests)).await?;
        match answers.into_inner().message().await? {
            Some(first) if first.canceled => Err(Status::permission_denied(first.cancel_reason)),
            first => first.map(drop).ok_or_else(|| Status::unavailable("no answer")),
        }
    }
}

/// Whether it is about who asks. Anything else was thought about. `HashKV` of 3.4 and 3.5 says so in words alone.
fn is_refusal(status: &Status) -> bool {
    let words = ["etcdserver: user name is empty", "auth: user name is empty", "auth: permission denied"];
    matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated) || words.contains(&status.message())
}

/// Whom this release answers, as the agent says; `None` where it has no such call.
fn documented(call: &Value, release: &Release) -> Option<String> {
    let since = |entry: &Value| entry["since"].as_str()?.parse::<Release>().ok();
    let entries = call["who"].as_array()?.iter().rev();
    let found = entries.into_iter().find(|entry| since(entry).is_some_and(|since| since <= *release))?;
    found["who"].as_str().map(str::to_owned)
}

async fn etcd_answers_whom_the_table_says(minor: &str) {
    let Some(server) = Server::of(minor).await else { return };
    let calls = server.shell.printed()["calls"].as_array().expect("a table").clone();
    assert!(calls.len() > 10, "{calls:?}");
    let mut wrong = Vec::new();
    for call in &calls {
        let name = call["call"].as_str().expect("a name");
        let documented = documented(call, &server.release);
        let mut least = None;
        for (kind, _) in KINDS {
            let answer = server.asks(kind, name).await;
            let is_unknown = matches!(&answer, Err(status) if status.code() == Code::Unimplemented);
            let may = !is_unknown && !matches!(&answer, Err(status) if is_refusal(status));
            least = least.or(may.then_some(kind));
            // Whoever has more is answered, too.
            if may != (least.is_some()) {
                wrong.push(format!("{name} as {kind}: {answer:?}, though {least:?} was answered"));
            }
        }
        if documented.as_deref() != least {
            wrong.push(format!("{name}: the table says {documented:?}, etcd answers {least:?}"));
        }
    }
    assert!(wrong.is_empty(), "etcd {}: {wrong:#?}", server.release);
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_3_4_answers_whom_the_table_says() {
    etcd_answers_whom_the_table_says("3.4").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_3_5_answers_whom_the_table_says() {
    etcd_answers_whom_the_table_says("3.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_3_6_answers_whom_the_table_says() {
    etcd_answers_whom_the_table_says("3.6").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.7 is built from source"]
async fn etcd_3_7_answers_whom_the_table_says() {
    etcd_answers_whom_the_table_says("3.7").await;
}

/// An application that has every key has Baton's, too, until its role is narrowed as it is printed.
async fn an_application_is_kept_off_batons_keys(minor: &str) {
    let Some(server) = Server::of(minor).await else { return };
    let shell = &server.shell;
    shell.adds("app", &["readwrite '' --prefix=true"]);
    let url = &server._cluster.layout.members[0].client_url;
    let app = Access { user: Some(("app".into(), shell.password("app"))), ..Access::default() };
    let app = Client::new(url, &app).expect("a client");
    app.put(KEY, "{}").await.expect("it may write every key");

    let listed = shell.types_as_root(&shell.block("list"));
    assert!(listed.contains("Role app") && listed.contains("<open ended>"), "{listed}");
    assert!(listed.contains("User: baton") && listed.contains("Roles: root"), "{listed}");
    shell.types_as_root(&shell.block("narrow"));

    for key in [KEY, "/baton/", "/baton/agents/x", "/baton/abandoned/1"] {
        let refused = app.put(key, "{}").await.expect_err("one of Baton's");
        assert_eq!(refused.code(), Code::PermissionDenied, "{key}: {refused}");
    }
    for key in [" ", "/app/a", "/baton", "/baton0", "zebra", "ä"] {
        app.put(key, "mine").await.expect(key);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_kept_off_batons_keys_on_3_4() {
    an_application_is_kept_off_batons_keys("3.4").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_kept_off_batons_keys_on_3_6() {
    an_application_is_kept_off_batons_keys("3.6").await;
}
