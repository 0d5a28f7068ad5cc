//! Judges a cluster that is left alone: every member is asked for itself, and all that clients can see is compared.
//!
//! Hashes are compared among members of one release: a later patch may leave out on purpose what an earlier one counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use lab::{
    client::{Access, Client},
    wait,
};
use proto::{
    etcdserverpb::{
        AuthRoleListRequest, AuthStatusRequest, AuthUserListRequest, HashKvRequest, HashKvResponse, LeaseLeasesRequest,
        MemberListRequest, RangeRequest, auth_client::AuthClient, cluster_client::ClusterClient, kv_client::KvClient,
        lease_client::LeaseClient, maintenance_client::MaintenanceClient,
    },
    mvccpb::KeyValue,
};
use tonic::{Code, Status};

use super::{Broken, Symptom, stage::Stage, users};
use crate::plan::{Host, tree::member};

/// For so long members may take to agree, and watches to be told. A newcomer tries each 7 s to say its name (etcd, server.go, `publishV3`).
const LIMIT: Duration = Duration::from_secs(45);
/// So often in a row members must be seen at the same place with different data.
const SIGHTINGS: usize = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// A member that was sent a snapshot does not say so before its next entry.
const STALE: Duration = Duration::from_secs(2);

pub(super) async fn judge(stage: &mut Stage) -> Result<(), Broken> {
    for host in stage.hosts() {
        stage.serves(host).await?;
    }
    let revision = same_revision(stage).await?;
    membership(stage).await?;
    users(stage).await?;
    contents(stage).await?;
    hashes(stage, revision).await?;
    watches(stage, revision).await
}

/// The revision of all members at one place of the log.
async fn same_revision(stage: &Stage) -> Result<i64, Broken> {
    let began = Instant::now();
    // The same all the time: each new one logs in, which is an entry of the log.
    let clients: Vec<_> =
        stage.hosts().into_iter().map(|host| Ok((host, stage.client(host)?))).collect::<Result<_, Broken>>()?;
    let (mut differed, mut entries) = (0, 0);
    loop {
        let mut places = BTreeMap::new();
        for (host, client) in &clients {
            let status = client.status().await?;
            let revision = status.header.unwrap_or_default().revision;
            places.insert(member(*host), (status.raft_applied_index, revision));
        }
        let indexes: BTreeSet<_> = places.values().map(|(index, _)| *index).collect();
        let revisions: BTreeSet<_> = places.values().map(|(_, revision)| *revision).collect();
        match (indexes.len(), revisions.first()) {
            (1, Some(revision)) if revisions.len() == 1 => return Ok(*revision),
            (1, _) => differed += 1,
            _ => {}
        }
        if indexes.len() > 1 && began.elapsed() > STALE * (entries + 1) {
            entries += 1;
            // Not through the same each time: one that believes itself far behind refuses.
            let _ = clients[entries as usize % clients.len()].1.put("judged", "once more").await;
        }
        if differed >= SIGHTINGS || began.elapsed() > LIMIT {
            let text = format!("index and revision by member: {places:?}");
            return Err(Broken::new(Symptom::Data, text));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Each member's own list of members: those that there are, all of them voters.
async fn membership(stage: &Stage) -> Result<(), Broken> {
    let expected: BTreeSet<_> = stage.layout().members.iter().map(|one| (one.name.clone(), false)).collect();
    for host in stage.hosts() {
        let client = stage.client(host)?;
        let what = format!("{} to list {expected:?}", member(host));
        let listed = wait::until(&what, LIMIT, || async {
            let request = client.request(MemberListRequest { linearizable: false }).await;
            let answer = ClusterClient::new(client.channel()).member_list(request.map_err(words)?).await;
            let listed = client.outcome(answer).await.map_err(words)?.members;
            let names: BTreeSet<_> = listed.iter().map(|one| (one.name.clone(), one.is_learner)).collect();
            if names == expected && listed.len() == expected.len() { Ok(()) } else { Err(format!("{listed:?}")) }
        });
        listed.await.map_err(|late| Broken::new(Symptom::Membership, late.to_string()))?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Users {
    /// Whether authentication is on, and how often users have changed; 3.4 does not say.
    status: Option<(bool, u64)>,
    users: Vec<String>,
    roles: Vec<String>,
}

/// Each member lets clients in as they are, and knows the same users.
async fn users(stage: &Stage) -> Result<(), Broken> {
    let wanted = stage.layout().user.is_some();
    let asked = wait::until("members to agree on users", LIMIT, || async {
        let mut known = BTreeMap::new();
        for host in stage.hosts() {
            // A client of its own: with no token from before.
            let client = stage.client(host).map_err(|broken| broken.text)?;
            let said = users_of(&client).await.map_err(|status| format!("{}: {}", member(host), words(status)))?;
            known.insert(member(host), said);
        }
        let first = known.values().next();
        let agree = known.values().all(|other| Some(other) == first);
        let is_as_wanted = first.is_none_or(|users| users.status.is_none_or(|(on, _)| on == wanted));
        if agree && is_as_wanted { Ok(()) } else { Err(format!("{known:?}")) }
    });
    asked.await.map_err(|late| Broken::new(Symptom::Auth, late.to_string()))?;
    if wanted { permissions(stage).await } else { Ok(()) }
}

/// Each user may do on every member what its role allows.
async fn permissions(stage: &Stage) -> Result<(), Broken> {
    for (number, grants) in stage.users.iter().enumerate() {
        for host in stage.hosts() {
            let access = Access { user: Some(users::account(number)), ..stage.layout().access() };
            let client = Client::new(&stage.member(host)?.client_url, &access)?;
            let what = format!("user {number} to read through {}", member(host));
            let keys = (0..*grants).map(|grant| users::granted(number, grant)).chain(["k/00000".into()]);
            for key in keys {
                let read = wait::until(&what, LIMIT, || async { client.get(&key).await.map_err(words) });
                read.await.map_err(|late| Broken::new(Symptom::Auth, late.to_string()))?;
            }
        }
    }
    Ok(())
}

async fn users_of(client: &Client) -> Result<Users, Status> {
    let mut auth = AuthClient::new(client.channel());
    let status = auth.auth_status(client.request(AuthStatusRequest {}).await?).await;
    let status = match client.outcome(status).await {
        Err(status) if status.code() == Code::Unimplemented => None,
        status => status.map(|said| Some((said.enabled, said.auth_revision)))?,
    };
    let users = auth.user_list(client.request(AuthUserListRequest {}).await?).await?.into_inner().users;
    let roles = auth.role_list(client.request(AuthRoleListRequest {}).await?).await?.into_inner().roles;
    Ok(Users { status, users, roles })
}

/// Hashes at one revision, of members of one release that have compacted as far.
async fn hashes(stage: &Stage, revision: i64) -> Result<(), Broken> {
    let mut differed = 0;
    loop {
        let mut hashes: BTreeMap<_, BTreeMap<u32, Vec<String>>> = BTreeMap::new();
        for host in stage.hosts() {
            let client = stage.client(host)?;
            let version = client.versions().await?.server;
            let answer = match hash(&client, revision).await {
                // What was compacted up to here some releases only hash as the newest.
                Err(status) if status.code() == Code::OutOfRange => hash(&client, 0).await?,
                answer => answer?,
            };
            let alike = hashes.entry((version, answer.compact_revision)).or_default();
            alike.entry(answer.hash).or_default().push(member(host));
        }
        if hashes.values().all(|alike| alike.len() == 1) {
            return Ok(());
        }
        differed += 1;
        if differed == SIGHTINGS {
            return Err(Broken::new(Symptom::Data, format!("hashes at revision {revision}: {hashes:?}")));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn hash(client: &Client, revision: i64) -> Result<HashKvResponse, Status> {
    let request = client.request(HashKvRequest { revision }).await?;
    client.outcome(MaintenanceClient::new(client.channel()).hash_kv(request).await).await
}

/// Every key of every member, and every lease; and of each key what clients were told.
async fn contents(stage: &Stage) -> Result<(), Broken> {
    let mut first: Option<(Host, Vec<KeyValue>, BTreeSet<i64>)> = None;
    for host in stage.hosts() {
        let client = stage.client(host)?;
        let (keys, leases) = (keys_of(&client).await?, leases_of(&client).await?);
        let Some((other, expected, held)) = &first else {
            first = Some((host, keys, leases));
            continue;
        };
        if let Some(text) = difference(&keys, expected) {
            let text = format!("{} and {}: {text}", member(host), member(*other));
            return Err(Broken::new(Symptom::Data, text));
        }
        if leases != *held {
            let text = format!("{} has {} leases, {} has {}", member(host), leases.len(), member(*other), held.len());
            return Err(Broken::new(Symptom::Data, text));
        }
    }
    let found: BTreeMap<_, _> = first.into_iter().flat_map(|(_, keys, _)| keys).map(|kv| (kv.key, kv.value)).collect();
    for (key, value) in &stage.written.known {
        if !stage.written.unknown.contains(key) && found.get(key.as_bytes()) != value.as_ref() {
            let held = found.get(key.as_bytes()).map(Vec::len);
            let text = format!("{key} holds {held:?} bytes, and {:?} were acknowledged", value.as_ref().map(Vec::len));
            return Err(Broken::new(Symptom::LostWrite, text));
        }
    }
    Ok(())
}

/// The first key that is not the same in both.
fn difference(keys: &[KeyValue], expected: &[KeyValue]) -> Option<String> {
    let short = |kv: &KeyValue| {
        let key = String::from_utf8_lossy(&kv.key);
        format!(
            "{key} of revision {}, version {}, created at {}, lease {:x}",
            kv.mod_revision, kv.version, kv.create_revision, kv.lease
        )
    };
    let differs = keys.iter().zip(expected).find(|(one, other)| one != other);
    match differs {
        Some((one, other)) => Some(format!("{} and {}", short(one), short(other))),
        None if keys.len() != expected.len() => Some(format!("{} keys and {}", keys.len(), expected.len())),
        None => None,
    }
}

async fn keys_of(client: &Client) -> Result<Vec<KeyValue>, Status> {
    let all = vec![0];
    let range = RangeRequest { key: all.clone(), range_end: all, serializable: true, ..RangeRequest::default() };
    let mut kv = KvClient::new(client.channel()).max_decoding_message_size(usize::MAX);
    let answer = kv.range(client.request(range).await?).await;
    Ok(client.outcome(answer).await?.kvs)
}

async fn leases_of(client: &Client) -> Result<BTreeSet<i64>, Status> {
    let request = client.request(LeaseLeasesRequest {}).await?;
    let answer = LeaseClient::new(client.channel()).lease_leases(request).await;
    Ok(client.outcome(answer).await?.leases.into_iter().map(|lease| lease.id).collect())
}

/// Each watch was told of everything up to here.
async fn watches(stage: &Stage, revision: i64) -> Result<(), Broken> {
    for (host, watch) in &stage.watches {
        let what = format!("the watch through {} to come to revision {revision}", member(*host));
        let told = wait::until(&what, LIMIT, || {
            std::future::ready(match watch.last() {
                Err(fault) => Ok(Err(fault)),
                Ok(last) if last >= revision => Ok(Ok(())),
                Ok(last) => Err(format!("it is at {last}")),
            })
        });
        let told = told.await.map_err(|late| Broken::new(Symptom::Watch, late.to_string()))?;
        told.map_err(|fault| Broken::new(Symptom::Watch, format!("{}: {fault}", member(*host))))?;
    }
    Ok(())
}

fn words(status: Status) -> String {
    status.message().to_owned()
}
