//! Where settings come from: arguments, environment, a file; and what is wrong with one, by its place.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{
    etcd_flag::ETCD_FLAGS,
    setting::{Kind, SETTINGS, Setting, setting_of},
};

/// The text of each setting that was given, and by what.
pub(super) type Given = BTreeMap<&'static str, (Origin, String)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag(String),
    Variable(String),
    /// A key of the configuration file.
    Key(PathBuf, String),
    /// Nobody: it is the default, or missing.
    Nobody(String),
}

impl Origin {
    /// Where this setting has its value from.
    pub(super) fn of(given: &Given, name: &str) -> Self {
        given.get(name).map_or_else(|| Self::Nobody(name.to_owned()), |(origin, _)| origin.clone())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Nobody(name) => write!(f, "--{name}"),
            Self::Variable(name) => write!(f, "{name}"),
            Self::Key(file, key) => write!(f, "{}: `{key}`", file.display()),
        }
    }
}

/// A set-up that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{origin}: `{found}` is wrong: expected {expected}")]
    Value { origin: Origin, found: String, expected: String },
    /// An https URL, and nothing to show there; in etcd's words, which tell those who know them what is missing.
    #[error("{origin}: {words}")]
    NoCertificate { origin: Origin, words: String },
    /// One of etcd's that cannot be carried out.
    #[error("{origin}: not here: {why}")]
    Refused { origin: Origin, why: &'static str },
    /// A flag or key that there is not.
    #[error("{origin}: there is no such setting{}", nearest.map_or_else(String::new, |name| format!("; is it `{name}`?")))]
    Unknown {
        origin: Origin,
        /// The setting that looks most like it.
        nearest: Option<&'static str>,
    },
    /// A flag without its value.
    #[error("{origin}: expected a value")]
    Bare { origin: Origin },
    /// No text: arguments and variables are bytes.
    #[error("{origin}: `{found}` is not UTF-8")]
    NotUtf8 { origin: Origin, found: String },
    /// An argument that is no flag.
    #[error("`{0}`: expected a flag such as --name")]
    Stray(String),
    /// A file that cannot be used.
    #[error("--config-file {}: {why}", file.display())]
    File { file: PathBuf, why: String },
}

impl ConfigError {
    /// Whether a flag itself is wrong. etcd ends with 2 then, and with 1 for what it finds later.
    pub fn is_of_a_flag(&self) -> bool {
        match self {
            Self::Value { origin, .. }
            | Self::NoCertificate { origin, .. }
            | Self::Unknown { origin, .. }
            | Self::Refused { origin, .. }
            | Self::Bare { origin } => {
                matches!(origin, Origin::Flag(_))
            }
            Self::Stray(_) | Self::NotUtf8 { .. } => true,
            Self::File { .. } => false,
        }
    }
}

pub(super) const FILE: &str = "config-file";
/// More is no configuration.
const MOST_BYTES: u64 = 1 << 20;

pub(super) fn gather(
    arguments: impl IntoIterator<Item = String>,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Given, ConfigError> {
    let (variables, named) = of_environment(environment);
    let (flags, file) = of_arguments(arguments)?;
    match file.or(named) {
        Some(file) => of_file(file),
        None => Ok(variables.into_iter().chain(flags).collect()),
    }
}

/// What the flags alone say, and the file that they name.
pub(super) fn of_arguments(
    arguments: impl IntoIterator<Item = String>,
) -> Result<(Given, Option<PathBuf>), ConfigError> {
    let mut flags = Given::new();
    let mut file = None;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let name = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')).filter(|name| !name.is_empty());
        let Some(name) = name else { return Err(ConfigError::Stray(argument)) };
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (name.to_owned(), None),
        };
        let origin = Origin::Flag(name.clone());
        let setting = if name == FILE { None } else { Some(known(&name, &origin)?) };
        let alone = setting.filter(|setting| setting.kind == Kind::Flag).map(|_| "true".to_owned());
        let value =
            value.or(alone).or_else(|| arguments.next()).ok_or_else(|| ConfigError::Bare { origin: origin.clone() })?;
        match setting {
            Some(setting) => drop(flags.insert(setting.name, (origin, value))),
            // As with etcd: without a name there is none.
            None => file = Some(value.into()).filter(|file: &PathBuf| !file.as_os_str().is_empty()),
        }
    }
    Ok((flags, file))
}

/// Variables of other names are others' affair.
fn of_environment(environment: impl IntoIterator<Item = (String, String)>) -> (Given, Option<PathBuf>) {
    let (mut given, mut file) = (Given::new(), None);
    for (variable, value) in environment {
        let Some(name) = name_of_variable(&variable) else { continue };
        // As if it were not there (etcd, `SetFlagsFromEnv`): a unit file may set it to nothing.
        if value.is_empty() {
            continue;
        }
        if name == FILE {
            file = Some(value.into());
        } else if let Some(setting) = setting_of(&name) {
            given.insert(setting.name, (Origin::Variable(variable), value));
        }
    }
    (given, file)
}

/// The setting, as after `--`, that a variable of this name would be.
pub(super) fn name_of_variable(variable: &str) -> Option<String> {
    variable.strip_prefix("ETCD_").map(|name| name.to_lowercase().replace('_', "-"))
}

/// A pipe without a writer would be waited for, and a device need not end.
fn read(file: &Path) -> io::Result<String> {
    let file = fs::OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other("it is larger than 1 MiB")),
        false => Ok(text),
    }
}

fn of_file(file: PathBuf) -> Result<Given, ConfigError> {
    let wrong = |why: String| ConfigError::File { file: file.clone(), why };
    let text = read(&file).map_err(|error| wrong(error.to_string()))?;
    // Some editors write a mark of the byte order.
    let text = text.trim_start_matches('\u{feff}');
    // A mapping refuses a key that comes twice.
    let values: serde_yaml::Mapping = serde_yaml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let mut given = Given::new();
    for (key, name, value) in flat(&file, values)? {
        let origin = Origin::Key(file.clone(), key);
        let setting = known(&name, &origin)?;
        // A key without a value stands in etcd's own sample.
        if value.is_null() {
            continue;
        }
        let text = match &value {
            // As Go reads a duration from a file; etcd refuses `10m` there.
            serde_yaml::Value::Number(nanoseconds) if setting.kind == Kind::Duration => {
                Some(format!("{nanoseconds}ns"))
            }
            value => as_text(value),
        };
        let text = text.ok_or_else(|| ConfigError::Value {
            origin: origin.clone(),
            found: format!("{value:?}"),
            expected: setting.kind.expected(),
        })?;
        given.insert(setting.name, (origin, text));
    }
    Ok(given)
}

/// A key of the file, with the setting that it is and its value.
type Found = (String, String, serde_yaml::Value);

/// What etcd's file says of TLS stands in sections of their own (etcd, `securityConfig`).
fn flat(file: &Path, values: serde_yaml::Mapping) -> Result<Vec<Found>, ConfigError> {
    let mut found = Vec::new();
    for (key, value) in values {
        let key = as_text(&key).unwrap_or_default();
        let section = match &*key {
            "client-transport-security" => CLIENT_SECTION,
            "peer-transport-security" => PEER_SECTION,
            _ => {
                found.push((key.clone(), key, value));
                continue;
            }
        };
        let values = match value {
            serde_yaml::Value::Mapping(values) => values,
            serde_yaml::Value::Null => continue,
            _ => {
                let origin = Origin::Key(file.to_owned(), key);
                return Err(ConfigError::Value {
                    origin,
                    found: as_text(&value).unwrap_or_default(),
                    expected: "a mapping".into(),
                });
            }
        };
        for (inner, value) in values {
            let inner = as_text(&inner).unwrap_or_default();
            let place = format!("{key}.{inner}");
            let name = section.iter().find(|(there, _)| *there == inner).map(|(_, name)| (*name).to_owned());
            found.push((place.clone(), name.unwrap_or(place), value));
        }
    }
    Ok(found)
}

/// Each key of a section, and the flag that says the same.
const CLIENT_SECTION: &[(&str, &str)] = &[
    ("cert-file", "cert-file"),
    ("key-file", "key-file"),
    ("client-cert-file", "client-cert-file"),
    ("client-key-file", "client-key-file"),
    ("client-cert-auth", "client-cert-auth"),
    ("trusted-ca-file", "trusted-ca-file"),
    ("auto-tls", "auto-tls"),
    ("allowed-hostname", "client-cert-allowed-hostname"),
];
const PEER_SECTION: &[(&str, &str)] = &[
    ("cert-file", "peer-cert-file"),
    ("key-file", "peer-key-file"),
    ("client-cert-file", "peer-client-cert-file"),
    ("client-key-file", "peer-client-key-file"),
    ("client-cert-auth", "peer-client-cert-auth"),
    ("trusted-ca-file", "peer-trusted-ca-file"),
    ("auto-tls", "peer-auto-tls"),
    ("allowed-cn", "peer-cert-allowed-cn"),
    ("allowed-hostname", "peer-cert-allowed-hostname"),
    ("skip-client-san-verification", "peer-skip-client-san-verification"),
];

/// As it would stand after a flag; a list with commas.
fn as_text(value: &serde_yaml::Value) -> Option<String> {
    match value {
        serde_yaml::Value::String(text) => Some(text.clone()),
        serde_yaml::Value::Number(number) => Some(number.to_string()),
        serde_yaml::Value::Bool(is) => Some(is.to_string()),
        serde_yaml::Value::Sequence(items) => Some(items.iter().map(as_text).collect::<Option<Vec<_>>>()?.join(",")),
        _ => None,
    }
}

fn known(name: &str, origin: &Origin) -> Result<&'static Setting, ConfigError> {
    setting_of(name).ok_or_else(|| {
        let near =
            SETTINGS.iter().chain(ETCD_FLAGS).map(|setting| (strsim::jaro_winkler(name, setting.name), setting.name));
        let nearest = near.filter(|(alike, _)| *alike > 0.85).max_by(|a, b| a.0.total_cmp(&b.0));
        ConfigError::Unknown { origin: origin.clone(), nearest: nearest.map(|(_, name)| name) }
    })
}
