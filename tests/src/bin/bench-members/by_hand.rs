//! The bare commands, as one types them who looks at the newcomer alone: it is to serve before anybody goes.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::{
    Error,
    cluster::{Layout, Member},
    etcdctl::Etcdctl,
    system::Build,
    wait::GENEROUS,
};

use crate::{
    figures::{self, Done, Figures},
    scene::Scene,
};

/// Before a command that was refused is typed again.
const PAUSE: Duration = Duration::from_millis(100);

pub async fn replace(scene: &Scene, etcd: &Build) -> Result<Figures, Error> {
    figures::of(scene, async |scene| commands(scene, etcd).await).await
}

async fn commands(scene: &Scene, etcd: &Build) -> Result<Done, Error> {
    let layout = scene.layout();
    let etcdctl = Etcdctl::new(etcd, layout.certificates.as_ref());
    let (leaver, stays) = (id(layout, &scene.leaver).await?, scene.staying().next().ok_or("nobody stays")?);
    let next_leader = id(layout, stays).await?;
    // A follower turns a refusal to promote into a time-out.
    let leader = layout.leader().await?.clone();
    let ask = async |member: &Member, arguments: &[&str]| until_taken(&etcdctl, member, arguments).await;

    let began = Instant::now();
    let mut marks = Vec::new();
    let mut mark = |what| marks.push((what, began.elapsed().as_secs_f64() * 1e3));
    let newcomer = &scene.newcomer;
    let urls = format!("--peer-urls={}", newcomer.peer_url());
    let said = ask(&leader, &["member", "add", &newcomer.name, "--learner", &urls]).await?;
    mark("added");
    let (added, list) = of_the_added(&said).ok_or_else(|| format!("etcdctl member add said {said}"))?;
    let mut started = newcomer.clone();
    started.flags.iter_mut().for_each(|flag| *flag = flag.replace("{{initial_cluster}}", list));
    started.start()?;
    mark("started");
    ask(&leader, &["member", "promote", added]).await?;
    mark("promoted");
    // It votes before it serves anybody: where the entry that names it came in a snapshot, etcd waits for seven seconds until it
    // publishes itself again.
    ask(newcomer, &["endpoint", "health"]).await?;
    mark("serves");
    let leads = leader.name == scene.leaver.name;
    if leads {
        ask(&leader, &["move-leader", &next_leader]).await?;
        mark("handed over");
    }
    ask(if leads { stays } else { &leader }, &["member", "remove", &leaver]).await?;
    mark("removed");
    scene.leaver.end(Signal::TERM)?;
    mark("stopped");
    Ok(Done { took_s: began.elapsed().as_secs_f64(), marks })
}

/// As etcdctl has it: in hexadecimal.
async fn id(layout: &Layout, member: &Member) -> Result<String, Error> {
    let header = layout.client(member)?.status().await?.header;
    Ok(format!("{:x}", header.ok_or("a status without a header")?.member_id))
}

/// The id, and who `--initial-cluster` is to name, by what `etcdctl member add` prints.
fn of_the_added(said: &str) -> Option<(&str, &str)> {
    let id = said.split_once("Member ")?.1.split_whitespace().next()?;
    let list = said.lines().find_map(|line| line.strip_prefix("ETCD_INITIAL_CLUSTER=\""))?;
    Some((id, list.trim_end_matches('"')))
}

async fn until_taken(etcdctl: &Etcdctl, member: &Member, arguments: &[&str]) -> Result<String, Error> {
    let began = Instant::now();
    loop {
        let endpoint = [member.client_url.clone()];
        let output = etcdctl.command(&endpoint, arguments).output().await?;
        match output.status.success() {
            true => return Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false if began.elapsed() > GENEROUS => {
                return Err(format!("etcdctl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
            }
            false => tokio::time::sleep(PAUSE).await,
        }
    }
}
