//! Settings that a newer etcd would pass over: it stops for a flag that it does not know, only logs a variable, and says nothing at all
//! of a key of its configuration file. Then a check of the data, or a lease's checkpoint, is off, and nobody has switched it off.
//! Source: etcd v3.7.1, `pkg/flags/flag.go` and `server/embed/config.go`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    error::ActError,
    node::{OwnNode, Side},
};
use crate::{
    host::{
        files::etcd_config::{self, Unread},
        program::{executable, flags},
        runtime::same_node::value,
    },
    playbook,
    regular_file::{self, ReadError},
    words::with_causes,
};

/// How long a configuration file may be, in bytes.
const MAX_FILE: usize = 1024 * 1024;
/// What variables begin with that etcd reads.
pub(super) const PREFIX: &str = "ETCD_";
/// What Go itself reads.
pub(super) const GODEBUG: &str = "GODEBUG";
/// Asked for these, a program looks at nothing else.
const NOT_ASKED: [&str; 3] = ["h", "help", "version"];
const CONFIG_FILE: &str = "config-file";
/// What is known of it.
const ID: &str = "setting-lost";

impl OwnNode {
    /// Refuses a release that passes over what a variable or the configuration file says, and the release before does not.
    ///
    /// # Errors
    /// Which settings, where the playbook does not accept it.
    pub(super) async fn check_settings(
        &self,
        (old, new): (&Side, &Side),
        accepted: &BTreeSet<String>,
    ) -> Result<(), ActError> {
        let (Some(before), Some(after)) = (&old.executable, &new.executable) else { return Ok(()) };
        if before == after || accepted.contains(ID) {
            return Ok(());
        }
        let settings = self.settings(new).await?;
        let user = self.runs_as(after).await?;
        if settings.is_empty() || !executable::is_etcd(after, &user).await? {
            return Ok(());
        }
        let undefined = flags::undefined(after, &user, &settings.keys().cloned().collect()).await?;
        // What neither knows was never a setting.
        let unknown = flags::undefined(before, &user, &undefined).await?;
        let lost: Vec<_> = undefined.difference(&unknown).filter_map(|name| settings.get(name)).cloned().collect();
        match lost.is_empty() {
            true => Ok(()),
            false => Err(ActError::KnownHazard {
                node: self.node.name.clone(),
                id: ID,
                shown: format!(", which is given {}", lost.join(", ")),
            }),
        }
    }

    /// Refuses a configuration file that a start at this side would end on: it would keep the member down, and the old binary, too.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) async fn check_config_file(&self, side: &Side) -> Result<(), ActError> {
        let arguments = self.arguments(side).await?.unwrap_or_default();
        let variables = self.variables(side).await?;
        let Some(file) = config_file(&arguments, &variables) else { return Ok(()) };
        let path = self.cwd().join(file);
        // Of a unit it lies in a folder that is not known here.
        if path.is_relative() {
            return Ok(());
        }
        let refused = |why: &str| {
            let node = &self.node.name;
            Err(ActError::from(format!(
                "{node}: its configuration file {} {why}, so it would not start",
                path.display()
            )))
        };
        let bytes = match regular_file::read(&self.put_for(&path, side)?, MAX_FILE) {
            Ok(bytes) => bytes,
            Err(ReadError::TooLarge(_)) => return Ok(()),
            Err(error) => return refused(&format!("cannot be read ({})", with_causes(&error))),
        };
        match faulty(&bytes) {
            true => refused("is not YAML"),
            false => Ok(()),
        }
    }

    pub(super) fn cwd(&self) -> PathBuf {
        match &self.node.runtime {
            playbook::Runtime::Process(process) => process.cwd.clone().unwrap_or_else(|| PathBuf::from("/")),
            playbook::Runtime::Systemd(_) | playbook::Runtime::Command(_) => PathBuf::new(),
        }
    }

    /// What lies at this path once the release was switched to.
    pub(super) fn put_for(&self, path: &Path, side: &Side) -> Result<PathBuf, ActError> {
        let files = self.node.files_for(&side.release)?;
        let switched = files.iter().find(|file| file.path == path).map(|file| file.source.clone());
        Ok(switched.unwrap_or_else(|| path.to_owned()))
    }

    /// By the flag of the same name, how each is given that is no flag.
    async fn settings(&self, side: &Side) -> Result<BTreeMap<String, String>, ActError> {
        let arguments = self.arguments(side).await?.unwrap_or_default();
        let variables = self.variables(side).await?;
        let read = |path: &Path| {
            let path = self.put_for(&self.cwd().join(path), side).ok()?;
            String::from_utf8(regular_file::read(&path, MAX_FILE).ok()?).ok()
        };
        Ok(settings(&arguments, &variables, read))
    }

    /// The names and values that begin with `ETCD_`, and `GODEBUG`.
    pub(super) async fn variables(&self, side: &Side) -> Result<BTreeMap<String, String>, ActError> {
        let all = match &self.node.runtime {
            playbook::Runtime::Process(process) => {
                process.environment(&self.node.context(&side.release))?.into_iter().collect()
            }
            playbook::Runtime::Systemd(_) => {
                self.unit_start(Some(side)).await?.map(|start| start.variables).unwrap_or_default()
            }
            playbook::Runtime::Command(_) => BTreeMap::new(),
        };
        Ok(all.into_iter().filter(|(name, _)| name.starts_with(PREFIX) || name == GODEBUG).collect())
    }
}

/// The flag that such a variable stands for.
pub(super) fn flag_of(variable: &str) -> String {
    variable.strip_prefix(PREFIX).unwrap_or_default().to_lowercase().replace('_', "-")
}

/// The variable that stands for such a flag.
pub(super) fn variable_of(flag: &str) -> String {
    format!("{PREFIX}{}", flag.to_uppercase().replace('-', "_"))
}

pub(super) fn config_file<'a>(arguments: &'a [String], variables: &'a BTreeMap<String, String>) -> Option<&'a str> {
    let variable = || variables.get("ETCD_CONFIG_FILE").map(String::as_str);
    value(arguments, CONFIG_FILE).or_else(variable).filter(|file| !file.is_empty())
}

/// Whether etcd cannot parse it.
fn faulty(bytes: &[u8]) -> bool {
    etcd_config::settings(bytes) == Err(Unread::NotYaml)
}

fn settings(
    arguments: &[String],
    variables: &BTreeMap<String, String>,
    read: impl Fn(&Path) -> Option<String>,
) -> BTreeMap<String, String> {
    // With a file that alone counts.
    if let Some(file) = config_file(arguments, variables) {
        let keys = read(Path::new(file)).map(|text| keys(&text)).unwrap_or_default();
        return keys.into_iter().map(|key| (key.clone(), format!("`{key}` in {file}"))).collect();
    }
    let is_flag = |name: &String| value(arguments, name).is_some();
    // etcd reads a variable that is written as it writes it.
    let is_written_so = |name: &str| name.bytes().all(|byte| !byte.is_ascii_lowercase());
    let said = variables.iter().filter(|(name, _)| name.starts_with(PREFIX));
    let said = said.filter(|(name, value)| is_written_so(name) && says_something(&flag_of(name), value));
    let named = said.map(|(name, _)| (flag_of(name), format!("`{name}`")));
    named.filter(|(name, _)| is_a_flags_name(name) && !is_flag(name)).collect()
}

/// The keys at the top that say something. etcd does not regard their case. Of a long file they are read by line, and without their values:
/// a nest of brackets costs libyaml the square of its length.
fn keys(text: &str) -> BTreeSet<String> {
    let found: Vec<(String, String)> = match etcd_config::settings(text.as_bytes()) {
        Ok(settings) => {
            settings.iter().filter_map(|(key, value)| Some((key.as_str()?.to_owned(), scalar(value)))).collect()
        }
        Err(_) => {
            let key = |line: &str| Some(line.split_once(':')?.0.trim_matches(['"', '\'']).to_lowercase());
            text.lines().filter_map(key).map(|key| (key, "?".to_owned())).collect()
        }
    };
    found
        .into_iter()
        .filter(|(key, value)| is_a_flags_name(key) && says_something(key, value))
        .map(|(key, _)| key)
        .collect()
}

fn scalar(value: &serde_yaml::Value) -> String {
    match value {
        serde_yaml::Value::String(text) => text.clone(),
        serde_yaml::Value::Bool(flag) => flag.to_string(),
        serde_yaml::Value::Null => String::new(),
        _ => "?".to_owned(),
    }
}

/// Nothing is lost with what is empty, nor with what was off: the API of v2, and the proxy with all that is about it.
fn says_something(name: &str, value: &str) -> bool {
    let is_off = match name {
        "enable-v2" => value == "false",
        "proxy" => value == "off",
        _ => name.starts_with("proxy-"),
    };
    !is_off && !value.is_empty()
}

/// Nothing else is put on a command line.
fn is_a_flags_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_short = name.len() <= 64 && !NOT_ASKED.contains(&name);
    name.starts_with(|first: char| first.is_ascii_lowercase()) && is_short && name.bytes().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_etcd_cannot_parse_either_is_called_faulty() {
        for (text, is_faulty) in [
            (&b""[..], false),
            (b"name: m1\n", false),
            (b"name: m1\nname: m2\n", false),
            (b"\xff\xfen\0", false),
            (b"{\"name\": \"m1\"}", false),
            (b"\xef\xbb\xbfname: m1\n", false),
            (b"---\nname: m1\n---\nname: m2\n", false),
            (b"name: {{{", true),
            (b"name: [a\n", true),
            (b"name: \"a\n", true),
        ] {
            assert_eq!(faulty(text), is_faulty, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn what_is_set_elsewhere_than_by_a_flag_is_found() {
        let yaml = "name: m1\n# enable-v2: true\nenable-v2: true\n'cors': x\npeer-transport-security:\n  cert-file: c\nBad Key: 1\n";
        for (arguments, variables, file, expected) in [
            ("--name m1", &[][..], "", ""),
            ("--name m1", &["ETCD_ENABLE_V2", "ETCD_NAME", "ETCD_X;Y", "PATH"], "", "enable-v2"),
            ("--enable-v2=true", &["ETCD_ENABLE_V2"], "", ""), // the flag counts, and is tried as it is
            ("--config-file /c", &["ETCD_ENABLE_V2"], yaml, "cors enable-v2 name peer-transport-security"),
            ("--config-file=/c", &[], "{\"enable-v2\": true, \"name\": {\"x\": 1}}", "enable-v2 name"),
            ("", &["ETCD_CONFIG_FILE"], yaml, "cors enable-v2 name peer-transport-security"),
            ("--config-file /gone", &[], "", ""),
            ("--config-file /c", &[], "{name: x, Enable-V2 : true, help: 1}", "enable-v2 name"),
            ("--config-file /c", &[], " name: x\n ? enable-v2\n : true\n", "enable-v2 name"),
            (
                "--config-file /c",
                &[],
                "x: \"a\n\nenable-v2: b\"\nenable-v2: false\nproxy: 'off'\nproxy-read-timeout: 0\n",
                "x",
            ),
            ("--config-file /c", &[], "proxy: on\nproxy-read-timeout: 0\n", "proxy"),
            ("--name m1", &["ETCD_enable_v2"], "", ""),
        ] {
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            let variables = variables.iter().map(|name| ((*name).to_owned(), "/c".to_owned()));
            let variables: BTreeMap<_, _> = variables.filter(|(name, _)| name.starts_with(PREFIX)).collect();
            let read = |path: &Path| (path == Path::new("/c")).then(|| file.to_owned());
            let found: Vec<_> = settings(&arguments, &variables, read).into_keys().collect();
            assert_eq!(found.join(" "), expected, "{arguments:?} {variables:?}");
        }
        let told = settings(&["--config-file=/c".into()], &BTreeMap::new(), |_| Some("a: 1".into()));
        assert_eq!(told["a"], "`a` in /c");
    }
}
