//! A setting that a process was started with, where it was started as a member: its name, its folders.
//!
//! etcd takes it from its configuration file alone where there is one, else from its flags, else from its environment
//! (etcd, "Configuration options"). So does the bundled node.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde_yaml::Value;

use super::process_id::{bounded, command_line, read_bounded};
use crate::{
    host::{files::etcd_config, runtime::same_node::value},
    regular_file,
};

/// A configuration file is smaller, in bytes.
const MAX_FILE: usize = 1 << 20;
/// Only a member is started with one of these: the `--name` of a container's client is none.
const OF_A_MEMBER: [&str; 5] =
    ["data-dir", "listen-client-urls", "advertise-client-urls", "listen-peer-urls", "initial-cluster"];
const PREFIX: &str = "ETCD_";
/// A value is shorter, in bytes. Brackets in a long line cost libyaml the square of their number.
const MAX_VALUE: usize = 1024;

/// The name that this process was started with; `None` where it was given none, is no member, or cannot be looked at.
pub fn member_name(pid: u32) -> Option<String> {
    member_setting(pid, "name")
}

/// A folder that this process was told to use, by a path that leads there from here, too: the process may have a root and
/// mounts of its own.
pub fn member_folder(pid: u32, flag: &str) -> Option<PathBuf> {
    Some(from_here(pid, Path::new(&member_setting(pid, flag)?)))
}

/// Where etcd keeps its data that was told no folder: `NAME.etcd` where it was started, where that is a folder.
pub fn default_data_folder(pid: u32) -> Option<PathBuf> {
    let name = member_name(pid).unwrap_or_else(|| "default".into());
    // A name with a slash in it leads where etcd would go, too, and nothing of it is shown.
    Some(from_here(pid, Path::new(&format!("{name}.etcd")))).filter(|folder| folder.is_dir())
}

/// As [`member_name`], of any flag that takes a value.
pub fn member_setting(pid: u32, flag: &str) -> Option<String> {
    let arguments = command_line(pid).ok()?;
    let environment = read_bounded(&format!("/proc/{pid}/environ")).unwrap_or_default();
    given(flag, &arguments, &variables(&environment), |file| read_file(pid, file))
}

/// Those of etcd, without their prefix.
fn variables(environment: &[u8]) -> Vec<(&str, &str)> {
    environment
        .split(|byte| *byte == 0)
        .filter_map(|variable| std::str::from_utf8(variable).ok()?.strip_prefix(PREFIX)?.split_once('='))
        .collect()
}

fn read_file(pid: u32, file: &Path) -> Option<String> {
    let file = from_here(pid, file);
    let path = file.clone();
    let read = bounded(&file.to_string_lossy(), move || Ok(regular_file::read(&path, MAX_FILE)?));
    String::from_utf8(read.ok()?).ok()
}

/// Where this process was told that a flag of two values is on, in words; `None` where it is off, or nothing is known of it.
pub fn switched_on(pid: u32, flag: &str) -> Option<String> {
    let arguments = command_line(pid).ok()?;
    let environment = read_bounded(&format!("/proc/{pid}/environ")).unwrap_or_default();
    switched(flag, &arguments, &variables(&environment), |file| read_file(pid, file))
}

/// The variables that this process was started with.
///
/// # Errors
/// It has ended, or this user may not see it.
pub fn variables_of(pid: u32) -> io::Result<BTreeMap<String, String>> {
    let environment = read_bounded(&format!("/proc/{pid}/environ"))?;
    let variable = |bytes: &[u8]| {
        let (name, value) = std::str::from_utf8(bytes).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    Ok(environment.split(|byte| *byte == 0).filter_map(variable).collect())
}

fn from_here(pid: u32, path: &Path) -> PathBuf {
    let folder = if path.is_absolute() { "root" } else { "cwd" };
    Path::new("/proc").join(pid.to_string()).join(folder).join(path.strip_prefix("/").unwrap_or(path))
}

fn variable<'a>(variables: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| *value)
}

fn config_file<'a>(arguments: &'a [String], variables: &[(&str, &'a str)]) -> Option<&'a str> {
    let file = value(arguments, "config-file").or_else(|| variable(variables, "CONFIG_FILE"));
    file.filter(|file| !file.is_empty())
}

/// Variables come without their prefix.
fn given(
    flag: &str,
    arguments: &[String],
    variables: &[(&str, &str)],
    read: impl FnOnce(&Path) -> Option<String>,
) -> Option<String> {
    let variable = |name: &str| variable(variables, name);
    if let Some(file) = config_file(arguments, variables) {
        return configured(&read(&PathBuf::from(file))?, flag);
    }
    let is_member = OF_A_MEMBER.iter().any(|flag| value(arguments, flag).is_some()) || !variables.is_empty();
    let in_capitals = flag.to_uppercase().replace('-', "_");
    let given = value(arguments, flag).or_else(|| variable(&in_capitals));
    given.filter(|given| is_member && !given.is_empty()).map(str::to_owned)
}

/// Where a flag of two values is on, in words. Variables come without their prefix.
pub fn switched(
    flag: &str,
    arguments: &[String],
    variables: &[(&str, &str)],
    read: impl FnOnce(&Path) -> Option<String>,
) -> Option<String> {
    let variable = |name: &str| variable(variables, name);
    if let Some(file) = config_file(arguments, variables) {
        return is_configured_on(&read(Path::new(file))?, flag).then(|| format!("`{flag}` in its configuration file"));
    }
    let named = |word: &String| {
        let word = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
        let (name, value) = word.split_once('=').unwrap_or((word, "true"));
        (name == flag).then(|| is_true(value))
    };
    let in_capitals = flag.to_uppercase().replace('-', "_");
    match arguments.iter().filter_map(named).next_back() {
        Some(is_on) => is_on.then(|| format!("`--{flag}`")),
        None => variable(&in_capitals).filter(|value| is_true(value)).map(|_| format!("`{PREFIX}{in_capitals}`")),
    }
}

/// As Go reads it (`strconv.ParseBool`).
fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// As YAML 1.1 may write it; on one line, where the file as a whole cannot be read.
fn is_configured_on(config: &str, key: &str) -> bool {
    if let Ok(settings) = etcd_config::settings(config.as_bytes()) {
        return match settings.get(key) {
            Some(Value::Bool(is_on)) => *is_on,
            Some(Value::String(word)) => matches!(&*word.to_lowercase(), "true" | "yes" | "on" | "y"),
            _ => false,
        };
    }
    let is_on = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let value = value.split_once(" #").map_or(value, |(value, _)| value).trim().to_lowercase();
        let is_it = name.trim_end().trim_matches(['"', '\'']).eq_ignore_ascii_case(key);
        is_it.then(|| matches!(&*value, "true" | "yes" | "on" | "y"))
    };
    config.lines().filter_map(is_on).next_back().unwrap_or(false)
}

/// A setting in a configuration file, which its member's user writes: YAML as a whole may be made of aliases that have no end.
pub fn configured(config: &str, key: &str) -> Option<String> {
    if let Ok(settings) = etcd_config::settings(config.as_bytes()) {
        return settings.get(key)?.as_str().map(str::to_owned);
    }
    // As YAML may write the key.
    let keys = [format!("{key}:"), format!("\"{key}\":"), format!("'{key}':")];
    let value = config.lines().find_map(|line| keys.iter().find_map(|key| line.strip_prefix(key.as_str())))?;
    serde_yaml::from_str(Some(value).filter(|value| value.len() <= MAX_VALUE)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_etcd_reads_it() {
        let list = |of: usize| format!("l{of}: &l{of} [{}]\n", format!("*l{},", of - 1).repeat(50));
        let bomb = format!("l0: &l0 [{}]\n{}name: m1\n", "x,".repeat(50), (1..6).map(list).collect::<String>());
        let brackets = format!("name: {}", "[? ".repeat(300_000));
        for (line, variables, file, expected) in [
            ("etcd --name m1 --data-dir /d", vec![], None, Some("m1")),
            ("etcd -name=m1 -data-dir=/d", vec![("NAME", "m2")], None, Some("m1")),
            ("etcd", vec![("NAME", "m1")], None, Some("m1")),
            ("etcd --name m1", vec![("DATA_DIR", "/d")], None, Some("m1")),
            ("etcd --data-dir /d", vec![], None, None),
            ("etcd --name m1 --config-file /c", vec![], Some("name: m2\ndata-dir: /d\n"), Some("m2")),
            ("etcd", vec![("CONFIG_FILE", "/c"), ("NAME", "m1")], Some("{\"name\": \"m2\"}"), Some("m2")),
            ("etcd --name m1 --config-file /c", vec![], None, None),
            ("etcd --config-file /c", vec![], Some("data-dir: /d"), None),
            ("etcd --config-file /c", vec![], Some("[\"name\"]"), None),
            ("etcd --config-file /c", vec![], Some("name: m1\ncors: '*'\n"), Some("m1")),
            ("etcd --config-file /c", vec![], Some(&bomb), Some("m1")),
            ("etcd --config-file /c", vec![], Some(&brackets), None),
            ("etcd --config-file /c", vec![], Some("\"name\": m1\ncors: '*'\n"), Some("m1")),
            // What runs a container, alone and with the member's own line.
            ("docker run --name c1 etcd", vec![], None, None),
            ("docker run --name c1 etcd --name m1 --data-dir /d", vec![], None, Some("m1")),
        ] {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let found = given("name", &arguments, &variables, |_| file.map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{line} {variables:?} {file:?}");
        }
        for (line, variables, file, expected) in [
            ("etcd --name m1 --data-dir /d", vec![], None, Some("/d")),
            ("etcd --name m1", vec![("DATA_DIR", "/d")], None, Some("/d")),
            ("etcd --config-file /c", vec![], Some("name: m1\ndata-dir: '/d'\n"), Some("/d")),
            ("etcd --name m1", vec![], None, None),
        ] {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let found = given("data-dir", &arguments, &variables, |_| file.map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{line} {variables:?} {file:?}");
        }
    }

    #[test]
    fn a_switch_is_read_as_etcd_reads_it() {
        for (line, variables, file, expected) in [
            ("etcd --enable-v2", vec![], None, "`--enable-v2`"),
            ("etcd --enable-v2 --name m1", vec![], None, "`--enable-v2`"),
            ("etcd -enable-v2=1 --name m1", vec![], None, "`--enable-v2`"),
            ("etcd --enable-v2=false", vec![("ENABLE_V2", "true")], None, ""), // the flag counts
            ("etcd --enable-v2=false --enable-v2", vec![], None, "`--enable-v2`"),
            ("etcd --name m1", vec![("ENABLE_V2", "true")], None, "`ETCD_ENABLE_V2`"),
            ("etcd --name m1", vec![("ENABLE_V2", "False")], None, ""),
            ("etcd --name m1", vec![], None, ""),
            ("etcd --enable-v2 --config-file /c", vec![("ENABLE_V2", "true")], Some("name: m1"), ""),
            (
                "etcd --config-file /c",
                vec![],
                Some("name: m1\nenable-v2: true # yet\n"),
                "`enable-v2` in its configuration file",
            ),
            ("etcd", vec![("CONFIG_FILE", "/c")], Some("'Enable-V2': Yes"), "`enable-v2` in its configuration file"),
            ("etcd --config-file=/c", vec![], Some("{\"enable-v2\": true}"), "`enable-v2` in its configuration file"),
            ("etcd --config-file=/c", vec![], Some("{\"enable-v2\": false}"), ""),
            ("etcd --config-file=/c", vec![], Some("# enable-v2: true\nenable-v2: false"), ""),
            ("etcd --config-file=/c --enable-v2", vec![], None, ""),
        ] {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let found = switched("enable-v2", &arguments, &variables, |_| file.map(str::to_owned));
            assert_eq!(found.unwrap_or_default(), expected, "{line} {variables:?} {file:?}");
        }
    }

    #[test]
    fn a_member_that_was_told_no_folder_has_one_where_it_was_started() {
        let folder = tempfile::tempdir().unwrap();
        let start = |arguments: &str| {
            let script = "read _ # \"$@\"";
            let mut command = std::process::Command::new("/bin/sh");
            command.args(["-c", script, "etcd"]).args(arguments.split(' ')).current_dir(folder.path());
            command.stdin(std::process::Stdio::piped()).spawn().unwrap()
        };
        std::fs::create_dir(folder.path().join("m1.etcd")).unwrap();
        for (arguments, expected) in [
            ("--name m1 --listen-peer-urls http://h:1", Some("m1.etcd")),
            ("--name m2 --listen-peer-urls http://h:1", None), // there is no such folder
            ("--listen-peer-urls http://h:1", None),
        ] {
            let mut child = start(arguments);
            // The kernel shows its command line a moment after it has become the shell.
            while command_line(child.id()).unwrap().is_empty() {
                std::thread::yield_now();
            }
            let found = default_data_folder(child.id()).map(|folder| folder.canonicalize().unwrap());
            let wanted = expected.map(|name| folder.path().join(name).canonicalize().unwrap());
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(found, wanted, "{arguments}");
        }
    }
}
