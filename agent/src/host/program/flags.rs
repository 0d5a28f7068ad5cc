//! Which flags a program of etcd does not know, asked of itself: one that is only asked for its version reads its flags first, and
//! names the first that is wrong (Go, package `flag`). No value is shown to it: arguments are seen by every user of the host.

use std::{collections::BTreeSet, path::Path};

use super::{
    executable::{ExecutableError, run},
    launcher, path_owner,
};
use crate::host::process::credentials::Credentials;

/// How many flags of one program are asked for.
const MAX: usize = 512;

/// Those of these names that it does not define. A program whose words are not understood is taken to define all that are left.
///
/// # Errors
/// Somebody else than root and that user may change it.
pub async fn undefined(
    program: &Path,
    user: &Credentials,
    names: &BTreeSet<String>,
) -> Result<BTreeSet<String>, ExecutableError> {
    let mut left: BTreeSet<_> = names.iter().take(MAX).cloned().collect();
    let mut undefined = BTreeSet::new();
    while !left.is_empty() {
        let opened = path_owner::open(program, &user.writers())?;
        let arguments: Vec<_> = left.iter().map(|name| format!("--{name}=")).collect();
        let Ok(ended) = run(&launcher::own(), opened, program, user, &arguments).await else { break };
        let fault = ended.output().lines().find_map(|line| fault(line.trim()));
        let Some((name, is_defined)) = fault.filter(|_| !ended.is_success()) else { break };
        if !left.remove(name) {
            break;
        }
        if !is_defined {
            undefined.insert(name.to_owned());
        }
    }
    Ok(undefined)
}

/// The flag that a program's words are about, and whether it defines it.
fn fault(words: &str) -> Option<(&str, bool)> {
    match words.strip_prefix("flag provided but not defined: -") {
        Some(name) => Some((name.trim(), false)),
        None => {
            let (_, after) = words.strip_prefix("invalid ")?.split_once(" -")?;
            Some((after.split_once(':')?.0, true))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_which_flag_is_wrong_and_how() {
        for (words, expected) in [
            ("flag provided but not defined: -enable-v2", Some(("enable-v2", false))),
            ("invalid value \"\" for flag -snapshot-count: parse error", Some(("snapshot-count", true))),
            ("invalid boolean value \"\" for -enable-v2: parse error", Some(("enable-v2", true))),
            ("error: --x: there is no such setting", None),
            ("", None),
        ] {
            assert_eq!(fault(words), expected, "{words}");
        }
    }
}
