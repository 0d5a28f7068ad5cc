//! Clusters with a past, at rest, each in a folder: raised once, and copied for every plan that begins there.
//!
//! ```text
//! D/<name>-<what it is made of>/<n>/cluster.json     members know each other by their ports, so each copy needs its own
//!                                  /known.json       what clients know of its keys
//! ```

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use lab::{
    Error,
    cluster::{Cluster, Layout, sha256},
    ports::Ports,
};
use tokio::sync::Mutex;

use super::{
    ancestry::Ancestry,
    run::{Bench, Builds, raise},
};

const KNOWN: &str = "known.json";
/// Of a digest: enough that no two are the same.
const SHORT: usize = 12;

/// What keys hold that clients know; nothing where they were deleted.
pub type Known = BTreeMap<String, Option<String>>;

/// Where they are kept.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
    /// One is raised at a time, so that the next plan may find it kept.
    raising: Arc<Mutex<()>>,
}

impl Kept {
    /// In this folder, which is made when it is needed.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder, raising: Arc::default() }
    }

    /// A cluster of this past in the folder `to`, at rest; and what clients know of it.
    ///
    /// # Errors
    /// It cannot be raised: which step of its past failed, and why.
    pub async fn copy(
        &self,
        of: &Ancestry,
        (size, tls): (usize, bool),
        builds: &Builds,
        to: &Path,
    ) -> Result<(Cluster, Known), Error> {
        let plan = of.plan(size, tls);
        let _alone = self.raising.lock().await;
        let made_of = made_of(&plan.to_string(), tls, builds, &plan.ground.way)?;
        let all = self.folder.join(format!("{}-{made_of}", of.name));
        let mut number = 1;
        while all.join(number.to_string()).exists() {
            if let Some(found) = found(&all.join(number.to_string()), to)? {
                return Ok(found);
            }
            number += 1;
        }
        let bench = Bench { builds: builds.clone(), agent: None };
        let raised = raise(&plan, &bench, to).await.map_err(|failure| {
            let (step, why) = (failure.step, &failure.broken.text);
            let said: String = failure.last_lines.iter().map(|line| format!("\n  {line}")).collect();
            format!("the past `{}` cannot be had: {why}, in its step {step}{said}", of.name)
        })?;
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let known: Known = raised.known.iter().map(|(key, value)| (key.clone(), value.as_ref().map(text))).collect();
        let kept = all.join(number.to_string());
        fs::create_dir_all(&all)?;
        raised.cluster.layout.copied(&kept)?;
        // What has it is whole.
        fs::write(kept.join(KNOWN), serde_json::to_vec(&known)?)?;
        Ok((raised.cluster, known))
    }
}

/// A copy of the one that is kept here, unless another plan runs on its ports, or it was never finished.
fn found(kept: &Path, to: &Path) -> Result<Option<(Cluster, Known)>, Error> {
    if !kept.join(KNOWN).exists() {
        return Ok(None);
    }
    let layout = Layout::load(kept)?;
    let ports: Vec<_> = layout.members.iter().flat_map(|member| [member.client_port, member.peer_port]).collect();
    let Some(ports) = Ports::lease_these(&ports)? else { return Ok(None) };
    let known = serde_json::from_slice(&fs::read(kept.join(KNOWN))?)?;
    Ok(Some((Cluster::at_rest(layout.copied(to)?, ports), known)))
}

/// Of all that makes one past another: what is done, and by which executables.
fn made_of(plan: &str, tls: bool, builds: &Builds, way: &[proto::Release]) -> Result<String, Error> {
    let mut text = format!("{plan}{tls}");
    for release in way {
        let build = builds.get(release).ok_or_else(|| format!("etcd {release} is not there"))?;
        text += &sha256(&build.executable())?;
    }
    // FNV-1a, which will be the same tomorrow.
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, mix));
    Ok(hash[..SHORT].to_owned())
}
