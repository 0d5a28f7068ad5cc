//! What the executable does with a disk or a file where nobody runs on it.

use std::error::Error;

use proto::Release;
use tokio::runtime::Builder;

use super::take_too_large;
use crate::{
    host::RealHost,
    migrate,
    restore::{self, HashCheck, Restored},
};

type Said = Result<String, Box<dyn Error + Send + Sync>>;

/// `node snapshot …`; what it has to say.
pub(super) fn snapshot(release: &str, arguments: &[String]) -> Said {
    let release: Release = release.parse()?;
    match restore::Command::read(arguments.iter().cloned())? {
        restore::Command::Help => Ok(restore::usage()),
        restore::Command::Status { file, format } => {
            Ok(restore::Status::of(&restore::read(&file, HashCheck::Done)?).text(format))
        }
        restore::Command::Restore(restoring) => {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let _too_large = take_too_large(&runtime)?;
            let Restored { cluster, member, revision, leases } = restore::restore(&restoring, &release)?;
            let (name, data_dir) = (&restoring.config.name, restoring.config.data_dir.display());
            Ok(format!(
                "{data_dir}: member {name} ({member}) of the new cluster {cluster}, at revision {revision}, with {leases} leases\n\
                 next: restore the other members from the same file, then start all with the same --initial-cluster and \
                 --initial-cluster-token\n"
            ))
        }
    }
}

/// `node migrate …`; what it has to say.
pub(super) fn migrate(release: &str, arguments: &[String]) -> Said {
    let release: Release = release.parse()?;
    match migrate::Command::read(arguments)? {
        migrate::Command::Help => Ok(migrate::USAGE.to_owned()),
        migrate::Command::Migrate { data_dir, target } => {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let _too_large = take_too_large(&runtime)?;
            let done = migrate::migrate(&RealHost::default(), &data_dir, target, &release)?;
            Ok(format!("{}: {done}\n", data_dir.display()))
        }
    }
}
