//! A cluster for hands-on work: `scripts/cluster up`, `status`, `down`.
//!
//! Only the command line is here; what a cluster is and how it is laid out is `tests::cluster`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser, Subcommand};
use rustix::process::Signal;
use tests::{
    Error,
    cluster::{Cluster, Layout, Member, Spec},
    playbook::Upgrade,
    releases,
    system::System,
};

/// A cluster of real members on this machine, for hands-on work. Each member lives in D/<name>/: its
/// executable bin/node, a symlink that an upgrade switches, its data, its node.log; or etcd's likewise.
#[derive(Parser)]
#[command(name = "cluster")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Start a cluster, or start one again that is there, and return when it is healthy.
    ///
    /// Prints the client endpoints alone on stdout. The members run on until `down`.
    Up(Box<Up>),
    /// Say of each member whether it serves, and what. Exits 1 unless all do.
    Status(Place),
    /// Stop every member. Data and logs stay; remove the folder to be rid of them.
    Down(Place),
}

#[derive(Args)]
struct Place {
    /// The folder of the cluster.
    #[arg(long, value_name = "D")]
    dir: PathBuf,
}

#[derive(Args)]
struct Up {
    #[command(flatten)]
    place: Place,
    /// What the members are [default: node].
    #[arg(long, value_enum)]
    system: Option<System>,
    /// The release to start with, such as 3.5 or, of etcd, 3.4.23 [default: 3.5].
    #[arg(long, value_name = "V")]
    release: Option<String>,
    /// Write playbooks for an upgrade, or a downgrade, to this release: D/<name>/upgrade.yaml, one per member, which
    /// `agent run` takes as they are.
    #[arg(long, value_name = "V")]
    to: Option<String>,
    /// How many members [default: 3].
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Member i, from 0, gets client port P+2i and peer port P+2i+1 [default: free ports].
    #[arg(long, value_name = "P")]
    base_port: Option<u16>,
    /// Use TLS for clients and peers; the certificates are made in D/tls.
    #[arg(long)]
    tls: bool,
    /// More flags for every member.
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Up(options) => up(&options).await,
        Verb::Status(place) => status(&place).await,
        Verb::Down(place) => down(&place),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

async fn up(options: &Up) -> Result<ExitCode, Error> {
    // Fetched first: a release that can't be had should not leave a cluster behind.
    let found = Layout::load(&options.place.dir).ok();
    let system = found.as_ref().map(|layout| layout.system).or(options.system).unwrap_or(System::Node);
    let to = options.to.as_deref().map(|to| releases::get(system, to)).transpose()?;
    let cluster = match found {
        Some(layout) => again(layout, options).await?,
        None => anew(system, options).await?,
    };
    if let Some(to) = to {
        for playbook in Upgrade::new(&cluster.layout, &to).write(&cluster.layout)? {
            eprintln!("agent run {}", playbook.display());
        }
    }
    println!("{}", cluster.leave_running().endpoints().join(","));
    Ok(ExitCode::SUCCESS)
}

async fn anew(system: System, options: &Up) -> Result<Cluster, Error> {
    let build = releases::get(system, options.release.as_deref().unwrap_or("3.5"))?;
    let spec = Spec {
        size: options.size.unwrap_or(3),
        dir: Some(options.place.dir.clone()),
        base_port: options.base_port,
        tls: options.tls,
        flags: options.flags.clone(),
        ..Spec::new(build)
    };
    Cluster::up(&spec).await
}

/// Starts the members that are down, as they were; what they were made with is not up for change.
async fn again(layout: Layout, options: &Up) -> Result<Cluster, Error> {
    let is_other = options.system.is_some_and(|system| system != layout.system)
        || options.size.is_some_and(|size| size != layout.members.len())
        || options.base_port.is_some_and(|port| Some(port) != layout.members.first().map(|first| first.client_port))
        || (options.tls && layout.certificates.is_none())
        || !options.flags.is_empty();
    if is_other {
        return Err(format!("{} has another cluster; remove the folder for a new one", layout.dir.display()).into());
    }
    eprintln!("{} has a cluster: it is started again as it was", layout.dir.display());
    Cluster::again(layout).await
}

async fn status(place: &Place) -> Result<ExitCode, Error> {
    let layout = Layout::load(&place.dir)?;
    let mut all_serve = true;
    for member in &layout.members {
        match look(&layout, member).await {
            Ok(line) => println!("{}  {}  {line}", member.name, member.client_url),
            Err(error) => {
                all_serve = false;
                println!("{}  {}  does not serve: {error}", member.name, member.client_url);
            }
        }
    }
    Ok(if all_serve { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn look(layout: &Layout, member: &Member) -> Result<String, Error> {
    let process = member.process().ok_or_else(|| format!("it does not run ({})", member.log().display()))?;
    let client = layout.client(member)?;
    let look = async {
        let (status, versions) = (client.status().await?, client.versions().await?);
        client.get("baton-is-it-ready").await?;
        let header = status.header.unwrap_or_default();
        let role = if status.leader == header.member_id { "leader" } else { "follower" };
        let (release, cluster) = (status.version, versions.cluster);
        Ok::<_, Error>(format!("pid {}  {role}  release {release}  cluster version {cluster}", process.pid))
    };
    tokio::time::timeout(Duration::from_secs(5), look).await.map_err(|_| "it does not answer within 5 s")?
}

fn down(place: &Place) -> Result<ExitCode, Error> {
    let layout = Layout::load(&place.dir)?;
    for member in &layout.members {
        member.ask_to_end()?;
    }
    for member in &layout.members {
        member.end(Signal::TERM).or_else(|_| member.end(Signal::KILL))?;
    }
    Ok(ExitCode::SUCCESS)
}
