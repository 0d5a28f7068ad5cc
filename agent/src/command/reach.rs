//! How a cluster is reached that no playbook describes: by what was typed, under the playbook's own rules.

use std::path::{Path, PathBuf};

use crate::{
    cli,
    event::trouble::Trouble,
    playbook::{Auth, Cluster, Tls},
};

/// The cluster behind these endpoints.
///
/// # Errors
/// An endpoint does not fit `--ca`, as in a playbook.
pub(super) fn cluster(endpoints: &[String], typed: &cli::Reach) -> Result<Cluster, Trouble> {
    let tls = match &typed.ca {
        Some(ca) => {
            let [cert, key] = [&typed.cert, &typed.key].map(|path| path.as_deref().map(absolute).transpose());
            Some(Tls { ca: absolute(ca)?, cert: cert?, key: key? })
        }
        None => None,
    };
    let auth = match typed.user.clone().zip(typed.password_file.as_deref()) {
        Some((user, file)) => Some(Auth { user, password_file: absolute(file)? }),
        None => None,
    };
    // As they are typed with a blank behind each comma.
    let endpoints: Vec<_> = endpoints.iter().map(|endpoint| endpoint.trim().to_owned()).collect();
    let host = |endpoint: &String| endpoint.trim_start_matches("http://").trim_start_matches("https://").to_owned();
    if endpoints.iter().any(|endpoint| host(endpoint).is_empty()) {
        let expected = "expected URLs such as `http://10.0.0.1:2379`, with commas between several";
        return Err(Trouble::Usage(format!("--endpoints: one of them names no host; {expected}")));
    }
    let is_other =
        |endpoint: &&String| endpoint.split_once("://").is_some_and(|(scheme, _)| !matches!(scheme, "http" | "https"));
    if let Some(endpoint) = endpoints.iter().find(is_other) {
        let expected = "expected http:// or https://; Unix sockets are not spoken to";
        return Err(Trouble::Usage(format!("--endpoints {endpoint}: {expected}")));
    }
    if let Some(endpoint) = endpoints.iter().find(|endpoint| host(endpoint).trim_end_matches('/').contains('/')) {
        let problem = "a path; expected a member's URL alone, such as `http://10.0.0.1:2379`";
        return Err(Trouble::Usage(format!("--endpoints {endpoint}: {problem}")));
    }
    if let Some(endpoint) = endpoints.iter().find(|endpoint| lacks_brackets(endpoint)) {
        let problem = "an IPv6 address without brackets; expected one as `http://[2001:db8::1]:2379`";
        return Err(Trouble::Usage(format!("--endpoints {endpoint}: {problem}")));
    }
    if let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.starts_with("https://") != tls.is_some()) {
        let remedy = if tls.is_some() { "certificates are for https" } else { "https wants --ca" };
        return Err(Trouble::Usage(format!("--endpoints {endpoint}: {remedy}")));
    }
    Ok(Cluster {
        name: String::new(),
        endpoints: endpoints.iter().map(|endpoint| endpoint.trim_end_matches('/').to_owned()).collect(),
        election_timeout: Cluster::DEFAULT_ELECTION_TIMEOUT,
        tls,
        auth,
        http: Default::default(),
    })
}

/// As the playbook says of its endpoints. Hosts with a name or an IPv4 address have one colon at most.
pub(crate) fn lacks_brackets(endpoint: &str) -> bool {
    let authority = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    !authority.contains(['[', '@']) && authority.matches(':').count() > 1
}

/// A path is the caller's, and not relative to wherever a playbook comes to lie.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Trouble> {
    std::path::absolute(path).map_err(|error| Trouble::System(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_fit_the_certificates() {
        let ca = || cli::Reach { ca: Some("ca.pem".into()), ..Default::default() };
        for (endpoint, typed, fits) in [
            ("http://h:1/", cli::Reach::default(), true),
            ("https://h:1", ca(), true),
            ("https://h:1", cli::Reach::default(), false),
            ("http://h:1", ca(), false),
            ("h:1", ca(), false),
            ("unix:///run/m1.sock", cli::Reach::default(), false),
            ("http://h:1/v3/kv", cli::Reach::default(), false),
            ("http://", cli::Reach::default(), false),
            ("", cli::Reach::default(), false),
            ("::1:2379", cli::Reach::default(), false),
            ("http://::1:2379", cli::Reach::default(), false),
            ("http://[::1]:2379", cli::Reach::default(), true),
        ] {
            let found = cluster(&[endpoint.to_owned()], &typed);
            assert_eq!(found.is_ok(), fits, "{endpoint} {typed:?}");
            assert!(found.is_err() || found.is_ok_and(|cluster| cluster.endpoints == [endpoint.trim_end_matches('/')]));
        }
    }
}
