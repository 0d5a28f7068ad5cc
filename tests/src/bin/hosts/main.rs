//! Hosts for hands-on work: `scripts/hosts up`, `down`.
//!
//! The hosts end with the process that has them, so `up` leaves one behind: the keeper (`keeper.rs`). `down` ends it.
//! What a host is: `tests::machine`. What runs on them: `fleet.rs`. What is written for whoever uses them: `folder.rs`.

mod fleet;
mod folder;
mod keeper;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};
use tests::{
    Error, agent,
    command::end_of,
    machine, releases,
    system::{Build, System},
};

use crate::{folder::Folder, keeper::Keep};

/// Hosts on this machine for hands-on work: each has a disk, an address, a systemd and sshd of its own, one member of a
/// cluster as a service, the agent, and a playbook for it. The disk that they boot from is made by scripts/fetch-hosts.
#[derive(Parser)]
#[command(name = "hosts")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Boot hosts with a cluster, and return when it serves. Prints what to type next.
    ///
    /// D gets a key and a configuration for ssh, and an inventory and a play for Ansible. The hosts run on until `down`.
    Up(Up),
    /// End the hosts. Their disks go with them, and so do the files in D.
    Down(Place),
    #[command(hide = true)]
    Keep(Keep),
}

#[derive(Args)]
struct Place {
    /// The folder for what is written [default: hosts in cargo's target folder].
    #[arg(long, value_name = "D")]
    dir: Option<PathBuf>,
}

#[derive(Args)]
struct Up {
    #[command(flatten)]
    place: Place,
    /// How many hosts, with one member each.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    size: u8,
    /// What the members are.
    #[arg(long, value_enum, default_value_t = System::Node)]
    system: System,
    /// The release that they start with [default: 3.5 of node, 3.4 of etcd].
    #[arg(long, value_name = "V")]
    release: Option<String>,
    /// The release that the playbooks lead to [default: the next minor].
    #[arg(long, value_name = "V")]
    to: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Up(options) => up(&options),
        Verb::Down(place) => down(&place),
        Verb::Keep(keep) => return end_of(keep.keep()).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn up(options: &Up) -> Result<(), Error> {
    only_root()?;
    let dir = folder(&options.place)?;
    if keeper::running(&dir)?.is_some() {
        return Err(format!("hosts of {} are up already; {} ends them", dir.display(), to_end(&options.place)).into());
    }
    if !Folder::of(&dir).is_ours() {
        return Err(format!("{} has files of somebody else; --dir wants a folder of its own", dir.display()).into());
    }
    // Had first: what can't be had should leave nothing behind.
    agent::executable()?;
    let disk = machine::disk()?;
    let (from, to) = builds(options)?;
    eprintln!("booting hosts: {}, with a member of {from} each", options.size);
    let keep = Keep { dir: dir.clone(), disk, size: options.size, system: options.system, from: from.bin, to: to.bin };
    keep.leave_running()?;
    print!("{}", Folder::of(&dir).read_me()?);
    println!("\n{} ends them", to_end(&options.place));
    Ok(())
}

fn builds(options: &Up) -> Result<(Build, Build), Error> {
    let from = releases::get(options.system, options.release.as_deref().unwrap_or(options.system.main_job().0))?;
    let version = from.release.cluster_version();
    let next = format!("{}.{}", version.major, version.minor + 1);
    let to = releases::get(options.system, options.to.as_deref().unwrap_or(&next))
        .map_err(|error| format!("no release to go to; --to names another: {error}"))?;
    Ok((from, to))
}

fn down(place: &Place) -> Result<(), Error> {
    only_root()?;
    let dir = folder(place)?;
    let was_up = keeper::end(&dir)?;
    // Where the keeper was killed its hosts are still there.
    machine::clear_left_over()?;
    if !Folder::of(&dir).clear()? && !was_up {
        return Err(format!("no hosts of {} are up", dir.display()).into());
    }
    Ok(())
}

fn only_root() -> Result<(), Error> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err("only root can make hosts with systemd and a network of their own".into()),
    }
}

fn folder(place: &Place) -> Result<PathBuf, Error> {
    match &place.dir {
        Some(dir) => Ok(std::path::absolute(dir)?),
        // This program is in the folder of its profile, in the target folder.
        None => Ok(env::current_exe()?.parent().and_then(Path::parent).ok_or("no target folder")?.join("hosts")),
    }
}

/// The command that ends the hosts of this folder.
fn to_end(place: &Place) -> String {
    let dir = place.dir.iter().map(|dir| format!(" --dir {}", dir.display())).collect::<String>();
    format!("scripts/hosts down{dir}")
}
