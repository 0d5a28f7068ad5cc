//! What no client sees: every bucket of the members' databases, each as the member itself sends it, compared.
//!
//! Keys have a hash of their own, which is compared before. What is under `meta` is each member's: how far it has come, and compacted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{Seek as _, Write as _},
};

use agent::observe::database::bbolt::Database;
use lab::{
    Error,
    client::Client,
    system::System,
    wait::{self, GENEROUS},
};
use proto::etcdserverpb::{SnapshotRequest, maintenance_client::MaintenanceClient};

use super::stage::Stage;
use crate::plan::tree;

/// Not compared here.
const LEFT_OUT: [&str; 2] = ["key", "meta"];

/// Characters of a key or a value.
const SHOWN: usize = 200;

/// Of one database: the pairs of each bucket.
type Buckets = BTreeMap<String, BTreeSet<(Vec<u8>, Vec<u8>)>>;

/// Waits until the buckets of all members of one release are the same. The bundled node sends another form, which its hashes are of.
///
/// # Errors
/// They are not, and which differ.
pub(super) async fn agree(stage: &Stage) -> Result<(), Error> {
    if stage.from.system == System::Node {
        return Ok(());
    }
    Ok(wait::until("equal buckets on every member", GENEROUS, || async { all_agree(stage).await }).await?)
}

async fn all_agree(stage: &Stage) -> Result<(), String> {
    let mut first: BTreeMap<String, (String, Buckets)> = BTreeMap::new();
    for (host, client) in stage.hosts().into_iter().zip(stage.clients().map_err(|error| error.to_string())?) {
        let (name, release) = (tree::member(host), stage.release(host).release.to_string());
        let buckets = read(&client).await.map_err(|error| format!("{name}: {error}"))?;
        match first.get(&release) {
            None => drop(first.insert(release, (name, buckets))),
            Some((other, theirs)) => {
                if let Some(why) = difference(theirs, &buckets) {
                    return Err(format!("{other} and {name} of {release} differ in {why}"));
                }
            }
        }
    }
    Ok(())
}

async fn read(client: &Client) -> Result<Buckets, Error> {
    let mut file = tempfile::tempfile()?;
    let request = client.request(SnapshotRequest {}).await?;
    let answer = MaintenanceClient::new(client.channel()).snapshot(request).await;
    let mut parts = client.outcome(answer).await?;
    while let Some(part) = parts.message().await? {
        file.write_all(&part.blob)?;
    }
    file.rewind()?;
    Ok(tokio::task::block_in_place(|| of(file))?)
}

fn of(file: File) -> Result<Buckets, agent::observe::database::bbolt::Unread> {
    let database = Database::open(file)?;
    let mut buckets = Buckets::new();
    for name in database.names()?.into_iter().filter(|name| !LEFT_OUT.contains(&name.as_str())) {
        let pairs = database.bucket(&name)?.unwrap_or_default();
        buckets.insert(name, pairs.into_iter().collect());
    }
    Ok(buckets)
}

/// The first bucket that is not the same in both, and what only one of them has.
fn difference(one: &Buckets, other: &Buckets) -> Option<String> {
    let names: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let none = BTreeSet::new();
    names.into_iter().find_map(|name| {
        let (mine, theirs) = (one.get(name).unwrap_or(&none), other.get(name).unwrap_or(&none));
        let (key, value) = mine.symmetric_difference(theirs).next()?;
        let [key, value] =
            [key, value].map(|bytes| String::from_utf8_lossy(bytes).escape_debug().take(SHOWN).collect::<String>());
        Some(format!("`{name}`: {key} is {value} in one alone"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_one_has_is_named() {
        let of = |rows: &[(&str, &[(&str, &str)])]| -> Buckets {
            let pair = |(key, value): &(&str, &str)| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
            rows.iter().map(|(name, pairs)| ((*name).to_owned(), pairs.iter().map(pair).collect())).collect()
        };
        let one = of(&[("auth", &[("authEnabled", "1")]), ("lease", &[])]);
        assert_eq!(
            difference(&one, &of(&[("auth", &[("authEnabled", "1")])])),
            None,
            "an empty bucket is as good as none"
        );
        for (other, expected) in [
            (of(&[("auth", &[])]), "`auth`: authEnabled is 1 in one alone"),
            (of(&[("auth", &[("authEnabled", "1")]), ("lease", &[("7", "x")])]), "`lease`: 7 is x in one alone"),
        ] {
            assert_eq!(difference(&one, &other).as_deref(), Some(expected));
        }
    }
}
