//! `cluster`: how the members are reached.

use std::{collections::BTreeMap, path::Path};

use super::value;
use crate::playbook::{
    cluster::{Auth, Cluster, Tls},
    fault::Fault,
    fields::Fields,
    tree::{Entry, Tree},
};

const KEYS: [&str; 6] = ["name", "endpoints", "election_timeout", "tls", "auth", "http"];
const URL: &str = "a base URL, such as `http://10.0.0.1:2379`, or `https://…` with `cluster.tls`";

pub(super) fn cluster(tree: &Tree, folder: &Path) -> Result<Cluster, Fault> {
    let fields = Fields::of(tree, "`cluster`", &KEYS)?;
    let name = fields.need("name", "`name`, what people call the cluster")?;
    let endpoints = fields.need("endpoints", "`endpoints`, the client URLs of all members")?;
    let tls = fields.maybe("tls", |tree| tls(tree, folder))?;
    Ok(Cluster {
        name: value::name(name, "the cluster's name")?.into(),
        endpoints: endpoint_list(endpoints)?,
        election_timeout: fields.or("election_timeout", Cluster::DEFAULT_ELECTION_TIMEOUT, value::deadline)?,
        auth: fields.maybe("auth", |tree| auth(tree, folder))?,
        http: fields.or("http", BTreeMap::new(), |tree| http(tree, tls.is_some()))?,
        tls,
    })
}

fn endpoint_list(tree: &Tree) -> Result<Vec<String>, Fault> {
    let endpoints = tree.list("a list of client URLs")?;
    if endpoints.is_empty() {
        return Err(tree.fault("an empty list, so no cluster", "the client URLs of all members"));
    }
    endpoints.iter().map(base_url).collect()
}

/// `http://host:port` or `https://host:port`, nothing after it.
fn base_url(tree: &Tree) -> Result<String, Fault> {
    let text = tree.text(URL)?;
    if text.contains(',') {
        return Err(tree.fault(
            format!("`{text}` has more than one URL in it"),
            "a list with a text for each: `[\"http://a:2379\", \"http://b:2379\"]`",
        ));
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(tree.fault(
            format!("`{text}` has no scheme"),
            format!("`http://{text}`, or `https://{text}` with `cluster.tls`"),
        ));
    };
    if !matches!(scheme, "http" | "https") {
        return Err(tree.fault(format!("`{scheme}` is no scheme of the etcd API"), URL));
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if !authority.contains(['[', '@']) && authority.matches(':').count() > 1 {
        let problem = format!("`{text}` has an IPv6 address without brackets");
        return Err(tree.fault(problem, "`http://[2001:db8::1]:2379`"));
    }
    if reqwest::Url::parse(text).is_err() || authority.contains(['/', '?', '#', '@']) {
        return Err(tree.fault(format!("`{text}` is no base URL"), URL));
    }
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    match port.is_some_and(|port| port > 0) {
        true => Ok(format!("{scheme}://{authority}")),
        false => Err(tree.fault(format!("`{text}` names no port"), URL)),
    }
}

fn tls(tree: &Tree, folder: &Path) -> Result<Tls, Fault> {
    let fields = Fields::of(tree, "`cluster.tls`", &["ca", "cert", "key"])?;
    let path = |tree: &Tree| value::path(tree, folder);
    let tls = Tls {
        ca: path(fields.need("ca", "`ca`, the authority that signed the members' certificates")?)?,
        cert: fields.maybe("cert", path)?,
        key: fields.maybe("key", path)?,
    };
    for (one, other) in [("cert", "key"), ("key", "cert")] {
        if let (Some(given), None) = (fields.get(one), fields.get(other)) {
            return Err(given.fault(format!("`{one}` without `{other}`"), "`cert` and `key` together, or neither"));
        }
    }
    Ok(tls)
}

fn auth(tree: &Tree, folder: &Path) -> Result<Auth, Fault> {
    let fields = Fields::of(tree, "`cluster.auth`", &["user", "password_file"])?;
    let user = fields.need("user", "`user`, who has the root role")?;
    let file = fields.need("password_file", "`password_file`, a file that holds the password")?;
    Ok(Auth { user: user.text("a user's name")?.into(), password_file: value::path(file, folder)? })
}

/// Where `/version` is served, by member. Plain http is fine beside `cluster.tls`: etcd may serve it so.
fn http(tree: &Tree, has_tls: bool) -> Result<BTreeMap<String, String>, Fault> {
    let entries = tree.map("a mapping from member to base URL, such as `orders-1: http://10.0.0.1:2381`")?;
    let read = |entry: &Entry| match base_url(&entry.value)? {
        url if url.starts_with("https://") && !has_tls => {
            Err(entry.value.fault("an https URL without `cluster.tls`", "`cluster.tls: { ca: … }`, or `http://…`"))
        }
        url => Ok((value::key(entry, "a member's name")?, url)),
    };
    entries.iter().map(read).collect()
}
