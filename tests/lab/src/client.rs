//! One member's etcd v3 client: just the calls that the workload and the scenarios make.
//!
//! Nothing is repeated here and no other member is tried: who calls wants to know what this one said.

use std::{fs, sync::Arc, time::Duration};

use proto::{
    Revision,
    etcdserverpb::{
        AlarmRequest, AlarmType, AuthEnableRequest, AuthRoleAddRequest, AuthUserAddRequest, AuthUserGrantRoleRequest,
        AuthenticateRequest, HashKvRequest, Member, MemberListRequest, MoveLeaderRequest, PutRequest, RangeRequest,
        StatusRequest, StatusResponse, alarm_request::AlarmAction, auth_client::AuthClient,
        cluster_client::ClusterClient, kv_client::KvClient, maintenance_client::MaintenanceClient,
    },
    mvccpb::KeyValue,
};
use serde::Deserialize;
use tokio::sync::Mutex;
use tonic::{
    Code, Request, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};

use crate::{Error, certificates::Certificates, metrics::Metrics};

const CONNECT: Duration = Duration::from_secs(1);

/// How a client proves who it is.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// TLS, with a certificate of its own.
    pub certificates: Option<Certificates>,
    /// User and password, where auth is on.
    pub user: Option<(String, String)>,
}

/// A client of one member; clones share a connection. It connects when it is first used, and again whenever it has to.
#[derive(Clone)]
pub struct Client {
    url: String,
    channel: Channel,
    access: Access,
    token: Arc<Mutex<Option<MetadataValue<Ascii>>>>,
    http: reqwest::Client,
}

/// What `GET /version` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Versions {
    /// The member's own release.
    #[serde(rename = "etcdserver")]
    pub server: String,
    /// The cluster version it knows; `not_decided` for the first seconds.
    #[serde(rename = "etcdcluster")]
    pub cluster: String,
}

impl Client {
    /// A client of the member at this URL.
    ///
    /// # Errors
    /// The URL is none, or the certificates cannot be read.
    pub fn new(url: &str, access: &Access) -> Result<Self, Error> {
        let mut endpoint = Endpoint::from_shared(url.to_owned())?.connect_timeout(CONNECT).tcp_nodelay(true);
        if let Some(files) = &access.certificates {
            let identity = Identity::from_pem(fs::read(&files.client.cert)?, fs::read(&files.client.key)?);
            let authority = Certificate::from_pem(fs::read(&files.ca)?);
            endpoint = endpoint.tls_config(ClientTlsConfig::new().ca_certificate(authority).identity(identity))?;
        }
        let (channel, token, http) = (endpoint.connect_lazy(), Arc::default(), http(access)?);
        Ok(Self { url: url.into(), channel, access: access.clone(), token, http })
    }

    /// The connection, for calls that few scenarios make.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The member's hash of all that it held at a revision.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn hash(&self, revision: Revision) -> Result<u32, Status> {
        let request = self.request(HashKvRequest { revision: revision.0 }).await?;
        let answer = MaintenanceClient::new(self.channel.clone()).hash_kv(request).await;
        Ok(self.outcome(answer).await?.hash)
    }

    /// Writes; the revision is that of this write.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn put(&self, key: &str, value: &str) -> Result<Revision, Status> {
        let request = PutRequest { key: key.into(), value: value.into(), ..PutRequest::default() };
        let request = self.request(request).await?;
        let answer = self.outcome(KvClient::new(self.channel.clone()).put(request).await).await?;
        Ok(Revision(answer.header.unwrap_or_default().revision))
    }

    /// Reads linearizably.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn get(&self, key: &str) -> Result<Option<KeyValue>, Status> {
        self.get_at(key, Revision(0)).await
    }

    /// Reads what the key was at a revision; 0 is now.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn get_at(&self, key: &str, revision: Revision) -> Result<Option<KeyValue>, Status> {
        let request = RangeRequest { key: key.into(), revision: revision.0, ..RangeRequest::default() };
        let request = self.request(request).await?;
        let answer = self.outcome(KvClient::new(self.channel.clone()).range(request).await).await?;
        Ok(answer.kvs.into_iter().next())
    }

    /// The newest revision, by a linearizable read.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn newest(&self) -> Result<Revision, Status> {
        let request = self.request(RangeRequest { key: vec![0], count_only: true, ..RangeRequest::default() }).await?;
        let answer = self.outcome(KvClient::new(self.channel.clone()).range(request).await).await?;
        Ok(Revision(answer.header.unwrap_or_default().revision))
    }

    /// Every key that begins with this, with its value.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn under(&self, prefix: &str) -> Result<Vec<KeyValue>, Status> {
        let mut end = prefix.as_bytes().to_vec();
        // The first key after all that begin so; no prefix used here ends in 0xff.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let request = RangeRequest { key: prefix.into(), range_end: end, ..RangeRequest::default() };
        let request = self.request(request).await?;
        Ok(self.outcome(KvClient::new(self.channel.clone()).range(request).await).await?.kvs)
    }

    /// The member's own report.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn status(&self) -> Result<StatusResponse, Status> {
        let request = self.request(StatusRequest::default()).await?;
        self.outcome(MaintenanceClient::new(self.channel.clone()).status(request).await).await
    }

    /// The membership.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn members(&self) -> Result<Vec<Member>, Status> {
        let request = self.request(MemberListRequest::default()).await?;
        let answer = ClusterClient::new(self.channel.clone()).member_list(request).await;
        Ok(self.outcome(answer).await?.members)
    }

    /// Asks this member, the leader, to hand over.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn move_leader(&self, target: u64) -> Result<(), Status> {
        let request = self.request(MoveLeaderRequest { target_id: target }).await?;
        self.outcome(MaintenanceClient::new(self.channel.clone()).move_leader(request).await).await.map(drop)
    }

    /// Raises the alarm that the space is used up, as a member does itself, or takes it back.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn alarm_no_space(&self, is_raised: bool) -> Result<(), Status> {
        let member_id = self.status().await?.header.unwrap_or_default().member_id;
        let action = if is_raised { AlarmAction::Activate } else { AlarmAction::Deactivate };
        let alarm = AlarmRequest { action: action.into(), member_id, alarm: AlarmType::Nospace.into() };
        let request = self.request(alarm).await?;
        self.outcome(MaintenanceClient::new(self.channel.clone()).alarm(request).await).await.map(drop)
    }

    /// Switches auth on, with `root` and one more user who has no role.
    ///
    /// # Errors
    /// Whatever the member or the transport answered.
    pub async fn enable_auth(&self, root_password: &str, other: (&str, &str)) -> Result<(), Status> {
        let mut auth = AuthClient::new(self.channel.clone());
        for (name, password) in [("root", root_password), other] {
            let (name, password) = (name.into(), password.into());
            auth.user_add(AuthUserAddRequest { name, password, ..AuthUserAddRequest::default() }).await?;
        }
        auth.role_add(AuthRoleAddRequest { name: "root".into() }).await?;
        auth.user_grant_role(AuthUserGrantRoleRequest { user: "root".into(), role: "root".into() }).await?;
        auth.auth_enable(AuthEnableRequest {}).await.map(drop)
    }

    /// What the member answers on `GET /version`.
    ///
    /// # Errors
    /// It does not answer, or something else.
    pub async fn versions(&self) -> Result<Versions, Error> {
        let answer = self.http.get(format!("{}/version", self.url)).send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&answer.bytes().await?)?)
    }

    /// Asks the v2 API for something, below `/v2/keys/`.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn v2(&self, method: &str, path: &str) -> Result<(), Error> {
        let request = self.http.request(method.parse()?, format!("{}/v2/keys/{path}", self.url));
        request.send().await?.error_for_status()?;
        Ok(())
    }

    /// What the member tells on `GET /metrics`.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn metrics(&self) -> Result<Metrics, Error> {
        let answer = self.http.get(format!("{}/metrics", self.url)).send().await?.error_for_status()?;
        Ok(Metrics(String::from_utf8_lossy(&answer.bytes().await?).into_owned()))
    }

    /// A figure of `GET /metrics`.
    ///
    /// # Errors
    /// It does not answer, or without that figure.
    pub async fn metric(&self, name: &str) -> Result<f64, Error> {
        self.metrics().await?.figure(name)
    }

    /// A message with this client's token, for calls that few scenarios make.
    ///
    /// # Errors
    /// Whatever the member answered that was asked for a token.
    pub async fn request<T>(&self, message: T) -> Result<Request<T>, Status> {
        let mut request = Request::new(message);
        if let Some((name, password)) = &self.access.user {
            let mut token = self.token.lock().await;
            if token.is_none() {
                let (name, password) = (name.clone(), password.clone());
                let mut auth = AuthClient::new(self.channel.clone());
                let answer = auth.authenticate(AuthenticateRequest { name, password }).await?.into_inner();
                *token = Some(answer.token.parse().map_err(|_| Status::internal("a token that is no header"))?);
            }
            token.iter().for_each(|token| drop(request.metadata_mut().insert("token", token.clone())));
        }
        Ok(request)
    }

    /// What came of such a call. A member forgets its tokens when it restarts, so a refused one is forgotten here too.
    ///
    /// # Errors
    /// That of the answer.
    pub async fn outcome<T>(&self, answer: Result<tonic::Response<T>, Status>) -> Result<T, Status> {
        if matches!(&answer, Err(status) if status.code() == Code::Unauthenticated) {
            *self.token.lock().await = None;
        }
        answer.map(tonic::Response::into_inner)
    }
}

fn http(access: &Access) -> Result<reqwest::Client, Error> {
    // Fails when somebody was faster, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Without certificates nothing is spoken that needs any, and to read all of the machine's takes its time.
    let mut builder = reqwest::Client::builder()
        .timeout(CONNECT)
        .no_proxy()
        .tls_certs_only([])
        // A pool keeps connections that were opened and not needed, and etcd does not end before one that has sent nothing.
        .pool_max_idle_per_host(0);
    if let Some(files) = &access.certificates {
        let identity = [fs::read(&files.client.cert)?, fs::read(&files.client.key)?].concat();
        builder = builder
            .tls_certs_only([reqwest::Certificate::from_pem(&fs::read(&files.ca)?)?])
            .identity(reqwest::Identity::from_pem(&identity)?);
    }
    Ok(builder.build()?)
}

/// Whether an attempt surely had no effect: it never reached a member, or every member refuses what writes, as one of them has
/// no room (etcd's alarm NOSPACE, judged as an entry of the log is applied).
pub fn had_no_effect(status: &Status) -> bool {
    was_never_sent(status) || has_no_room(status)
}

/// Whether writes are refused for as long as the alarm NOSPACE stands.
pub fn has_no_room(status: &Status) -> bool {
    status.code() == Code::ResourceExhausted && status.message().contains("database space exceeded")
}

/// Whether an attempt surely never reached a member: its connection was refused. Anything else may have
/// had its effect, whatever the member answered.
pub fn was_never_sent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::ConnectionRefused;
        }
        cause = error.source();
    }
    false
}
