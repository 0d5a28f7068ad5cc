//! What of a line may be a secret, taken out: the line goes into the run's mark, where more people read it than the log.

/// What stands for one.
const HIDDEN: &str = "***";

/// The same line; what follows a word for a secret is hidden, and so is whoever an URL logs in as.
pub(crate) fn without_secrets(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut is_secret = false;
    for word in line.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        let end = &word[bare.len()..];
        match (std::mem::take(&mut is_secret) && !bare.is_empty(), split_value(bare)) {
            (true, _) => shown.push_str(HIDDEN),
            (false, Some((name, ""))) => {
                is_secret = true;
                shown.push_str(name);
            }
            (false, Some((name, _))) => {
                shown.push_str(name);
                shown.push_str(HIDDEN);
            }
            (false, None) => {
                is_secret = bare.eq_ignore_ascii_case("bearer");
                shown.push_str(&without_login(bare));
            }
        }
        shown.push_str(end);
    }
    shown
}

/// A word that names a secret, with its `=` or `:`, and what follows that.
fn split_value(word: &str) -> Option<(&str, &str)> {
    let at = word.find(['=', ':'])?;
    let (name, value) = word.split_at(at + 1);
    let lower = name.to_ascii_lowercase();
    let names = ["password", "passwd", "secret", "private-key"];
    let is_it = names.iter().any(|known| lower.contains(known)) || lower.ends_with("token=");
    (is_it && !name.contains('/')).then_some((name, value))
}

/// An URL without its user and password (RFC 3986, "User Information").
fn without_login(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match host.rfind('@') {
        Some(at) => format!("{scheme}://{HIDDEN}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_all_else_stays() {
        for (line, expected) in [
            ("no space left on device", "no space left on device"),
            ("  two  spaces ", "  two  spaces "),
            ("--discovery-password=x --name a", "--discovery-password=*** --name a"),
            ("password: hunter2 is wrong", "password: *** is wrong"),
            ("AUTH_TOKEN=abc", "AUTH_TOKEN=***"),
            ("invalid auth token", "invalid auth token"),
            ("token: expired", "token: expired"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
            ("dial http://user:word@host:1/x?y refused", "dial http://***@host:1/x?y refused"),
            ("dial http://host:1/@x refused", "dial http://host:1/@x refused"),
            ("open /etc/etcd/password:file", "open /etc/etcd/password:file"),
        ] {
            assert_eq!(without_secrets(line), expected);
        }
    }
}
