//! What one replacement is measured by.

use tests::{Error, cluster::Layout, system::Build, witness::Witness, workload::Load};

use crate::scene::Scene;

pub struct Figures {
    /// The longest time between two acknowledged writes.
    pub gap_ms: f64,
    /// Attempts of clients that had to be repeated.
    pub failed: f64,
    /// From the first command until the last one has ended, or both agents have.
    pub took_s: f64,
    /// Acknowledged writes that the cluster does not have.
    pub lost: usize,
    /// When what was done, in milliseconds since the first command; the same names each time.
    pub marks: Vec<(&'static str, f64)>,
}

impl Figures {
    /// From the newcomer's start until it serves clients, which both ways wait for. It is etcd's own, and one of two: where the entry
    /// that names it came in a snapshot, it names itself again after seven seconds, and serves only then.
    pub fn newcomer_s(&self) -> f64 {
        let at = |what: &str| self.marks.iter().find(|(name, _)| *name == what).map(|(_, at)| at / 1e3);
        // Baton promotes nobody who does not serve.
        let serves = at("serves").or_else(|| at("promoted"));
        serves.zip(at("started")).map_or(0.0, |(serves, started)| serves - started)
    }

    /// All else.
    pub fn rest_s(&self) -> f64 {
        self.took_s - self.newcomer_s()
    }
}

/// What was done, and when.
pub struct Done {
    pub took_s: f64,
    pub marks: Vec<(&'static str, f64)>,
}

/// Watches while it is done.
pub async fn of(scene: &Scene, replace: impl AsyncFnOnce(&Scene) -> Result<Done, Error>) -> Result<Figures, Error> {
    let witness = begin(scene.layout(), &scene.build).await?;
    let Done { took_s, marks } = replace(scene).await?;
    let seen = witness.end().await?;
    has_gone(scene).await?;
    Ok(Figures {
        gap_ms: seen.longest_write_gap.as_secs_f64() * 1e3,
        failed: seen.failed_attempts as f64,
        took_s,
        lost: seen.lost.len(),
        marks,
    })
}

async fn begin(layout: &Layout, build: &Build) -> Result<Witness, Error> {
    Witness::begin(layout, &Load::default(), build.release.cluster_version()).await
}

/// The one votes, and the other is no member and does not run: else nothing was measured.
async fn has_gone(scene: &Scene) -> Result<(), Error> {
    let by = scene.staying().next().ok_or("nobody stays")?;
    let listed = scene.layout().client(by)?.members().await?;
    let votes = listed.iter().any(|one| one.name == scene.newcomer.name && !one.is_learner);
    let is_gone = listed.iter().all(|one| one.name != scene.leaver.name) && !scene.leaver.is_running();
    match votes && is_gone {
        true => Ok(()),
        false => Err(format!("{} is not replaced: {listed:?}", scene.leaver.name).into()),
    }
}
