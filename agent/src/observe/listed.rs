//! What is taken from a member list: members within bounds, and of what they advertise the URLs that may be asked.
//!
//! Pure. A list is a claim of whoever sent it, so its size and its words are bounded here, before anybody is asked.

use proto::{MemberId, etcdserverpb::Member as ListedOnWire};

use super::{directory::Listed, view::Role};

/// How many members a list may have; etcd advises seven.
const MAX_MEMBERS: usize = 64;
/// How many of a member's URLs are asked.
const MAX_URLS: usize = 4;
/// How long a member's name may be, in bytes.
const MAX_NAME: usize = 256;
/// How long a URL may be, in bytes.
const MAX_URL: usize = 512;

/// The members of a list, by id.
///
/// # Errors
/// Why the list as a whole is not believed: a part of a membership is none, as every member counts for the quorum. What a
/// member says of itself is no reason: so it would have all others' lists refused.
pub(super) fn members(list: Vec<ListedOnWire>, has_tls: bool) -> Result<Vec<Listed>, String> {
    if list.len() > MAX_MEMBERS {
        return Err(format!("it lists {} members, and more than {MAX_MEMBERS} are not believed", list.len()));
    }
    let mut members: Vec<_> = list.into_iter().map(|member| listed(member, has_tls)).collect::<Result<_, _>>()?;
    members.sort_by_key(|member| member.id);
    match members.windows(2).find(|pair| pair[0].id == pair[1].id) {
        Some(pair) => Err(format!("it lists member {} twice", pair[0].id)),
        None => Ok(members),
    }
}

fn listed(member: ListedOnWire, has_tls: bool) -> Result<Listed, String> {
    let id = MemberId(member.id);
    if id.0 == 0 {
        return Err("it lists a member without an id".to_owned());
    }
    let (mut client_urls, mut unused) = (Vec::new(), Vec::new());
    for url in &member.client_urls {
        match usable(url, has_tls) {
            Ok(url) if client_urls.contains(&url) => {}
            Ok(url) if client_urls.len() < MAX_URLS => client_urls.push(url),
            Ok(_) => {
                unused.push(format!(
                    "it advertises {} URLs; no more than {MAX_URLS} are asked",
                    member.client_urls.len()
                ));
                break;
            }
            // One sentence for each of a few; a list of thousands says nothing more.
            Err(why) if unused.len() < MAX_URLS => unused.push(why),
            Err(_) => {}
        }
    }
    let role = if member.is_learner { Role::Learner } else { Role::Voter };
    let mut name = member.name;
    if name.len() > MAX_NAME {
        unused.push(format!("its name has {} bytes; the first {MAX_NAME} are used", name.len()));
        let end = (0..=MAX_NAME).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
        name.truncate(end);
    }
    let scheme = if has_tls { "https" } else { "http" };
    let is_client_url = |url: &String| client_urls.contains(&normal_form(url, scheme));
    let serves_at_a_peer_url = member.peer_urls.iter().any(is_client_url);
    Ok(Listed { id, name, role, client_urls, unused, serves_at_a_peer_url })
}

/// The URL in its one spelling, or why it is not used.
fn usable(url: &str, has_tls: bool) -> Result<String, String> {
    if url.len() > MAX_URL {
        return Err(format!("a URL of {} bytes that it advertises is not used", url.len()));
    }
    let normal = normal_form(url, if has_tls { "https" } else { "http" });
    let not_used = |why: &str| Err(format!("{} is not used: {why}", url.escape_debug()));
    let Ok(parsed) = reqwest::Url::parse(&normal) else { return not_used("it is no URL") };
    match parsed.scheme() {
        _ if !parsed.has_host() || normal.chars().any(|c| c.is_control() || c.is_whitespace()) => {
            not_used("it is no URL")
        }
        "http" if has_tls => not_used("with `cluster.tls` only https URLs are"),
        "https" if !has_tls => not_used("https needs `cluster.tls`"),
        "http" | "https" if parsed.path() != "/" || parsed.query().is_some() || parsed.fragment().is_some() => {
            not_used("it is more than scheme, host and port")
        }
        "http" | "https" if !parsed.username().is_empty() || parsed.password().is_some() => {
            Err("a URL that it advertises is not used: there is a user in it".to_owned())
        }
        "http" | "https" => Ok(normal),
        _ => not_used("it is neither http nor https"),
    }
}

/// One spelling for one address: no trailing slash, and a scheme where none was written.
pub fn normal_form(address: &str, scheme: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, name: &str, urls: &[&str]) -> ListedOnWire {
        let client_urls = urls.iter().map(|url| (*url).to_owned()).collect();
        ListedOnWire { id, name: name.to_owned(), client_urls, ..Default::default() }
    }

    #[test]
    fn a_member_may_say_that_it_serves_clients_where_it_serves_members() {
        for (peer, has_tls, expected) in [
            ("http://h:2380", false, false),
            ("http://h:2379/", false, true),
            ("https://h:2379", true, true),
            ("", false, false),
        ] {
            let mut one = member(1, "m1", &["h:2379"]);
            one.peer_urls = vec![peer.to_owned()];
            let found = members(vec![one], has_tls).unwrap();
            assert_eq!(found[0].serves_at_a_peer_url, expected, "{peer}");
        }
    }

    #[test]
    fn a_url_is_used_only_where_it_may_be_asked() {
        for (url, has_tls, expected) in [
            ("http://h:2379", false, Ok("http://h:2379")),
            ("http://h:2379/", false, Ok("http://h:2379")),
            ("h:2379", true, Ok("https://h:2379")),
            ("https://h:2379", true, Ok("https://h:2379")),
            ("https://[::1]:2379", true, Ok("https://[::1]:2379")),
            ("http://h:2379", true, Err("http://h:2379 is not used: with `cluster.tls` only https URLs are")),
            ("HTTP://h:2379", true, Err("HTTP://h:2379 is not used: with `cluster.tls` only https URLs are")),
            ("https://h:2379", false, Err("https://h:2379 is not used: https needs `cluster.tls`")),
            ("ftp://h", false, Err("ftp://h is not used: it is neither http nor https")),
            ("unix:///run/etcd", false, Err("unix:///run/etcd is not used: it is no URL")),
            ("http://h/a", false, Err("http://h/a is not used: it is more than scheme, host and port")),
            ("http://me:pw@h", false, Err("a URL that it advertises is not used: there is a user in it")),
            ("http://h\u{1b}]0;x", false, Err("http://h\\u{1b}]0;x is not used: it is no URL")),
            ("", false, Err(" is not used: it is no URL")),
        ] {
            assert_eq!(usable(url, has_tls), expected.map(str::to_owned).map_err(str::to_owned), "{url}");
        }
        assert!(usable(&format!("http://{}", "h".repeat(MAX_URL)), false).is_err());
    }

    #[test]
    fn no_more_than_a_few_urls_of_a_member_are_asked_and_that_is_said() {
        let urls: Vec<_> = (0..12_000).map(|port| format!("http://127.0.0.1:{port}")).collect();
        let urls: Vec<_> = urls.iter().map(String::as_str).collect();
        let list = members(vec![member(1, "m1", &urls)], false).unwrap();
        assert_eq!(list[0].client_urls, urls[..MAX_URLS]);
        assert_eq!(list[0].unused, ["it advertises 12000 URLs; no more than 4 are asked"]);
        let wrong: Vec<_> = urls.iter().map(|_| "ftp://h").collect();
        assert_eq!(members(vec![member(1, "m1", &wrong)], false).unwrap()[0].unused.len(), MAX_URLS);
        let twice = members(vec![member(1, "m1", &["http://a", "http://a/", "http://b"])], false).unwrap();
        assert_eq!(twice[0].client_urls, ["http://a", "http://b"]);
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_that_is_said() {
        let long = "é".repeat(150);
        for (name, cut) in [(long.clone(), "é".repeat(128)), (format!("a{long}"), format!("a{}", "é".repeat(127)))] {
            let found = members(vec![member(1, &name, &["http://a"]), member(2, "m2", &[])], false).unwrap();
            assert_eq!((found.len(), &found[0].name), (2, &cut));
            assert_eq!(found[0].unused, [format!("its name has {} bytes; the first 256 are used", name.len())]);
        }
    }

    #[test]
    fn half_a_membership_is_none() {
        let many: Vec<_> = (1..=65).map(|id| member(id, "m", &[])).collect();
        for (list, expected) in [
            (many, "it lists 65 members, and more than 64 are not believed"),
            (vec![member(7, "a", &[]), member(1, "c", &[]), member(7, "b", &[])], "it lists member 7 twice"),
            (vec![member(0, "a", &[])], "it lists a member without an id"),
        ] {
            assert_eq!(members(list, false).unwrap_err(), expected);
        }
    }

    #[test]
    fn an_address_has_one_spelling() {
        for (written, normal) in
            [("http://h:2379/", "http://h:2379"), ("h:2379", "http://h:2379"), (" https://h:1 ", "https://h:1")]
        {
            assert_eq!(normal_form(written, "http"), normal);
        }
    }
}
