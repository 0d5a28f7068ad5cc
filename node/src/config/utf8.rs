//! Arguments and variables as the system has them, which is bytes. Settings are text, and one that is none is named.

use std::ffi::OsString;

use super::{
    setting::setting_of,
    source::{ConfigError, FILE, Origin, name_of_variable},
};

/// The arguments as text.
///
/// # Errors
/// [`ConfigError`]: which flag has another value.
pub fn arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Vec<String>, ConfigError> {
    let mut read: Vec<String> = Vec::new();
    for argument in arguments {
        match argument.into_string() {
            Ok(text) => read.push(text),
            Err(argument) => return Err(wrong(read.last(), &argument.to_string_lossy())),
        }
    }
    Ok(read)
}

/// Its value stands behind its name, or is the next argument.
fn wrong(before: Option<&String>, argument: &str) -> ConfigError {
    let name = |argument: &str| {
        let name = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))?;
        Some(name.to_owned()).filter(|name| name == FILE || setting_of(name).is_some())
    };
    let (flag, found) = match argument.split_once('=') {
        Some((flag, value)) if argument.starts_with('-') => (name(flag), value),
        _ => (before.and_then(|before| name(before)), argument),
    };
    match flag {
        Some(flag) => ConfigError::NotUtf8 { origin: Origin::Flag(flag), found: found.to_owned() },
        None => ConfigError::Stray(argument.to_owned()),
    }
}

/// The variables that are text; of the others only those matter that are settings.
///
/// # Errors
/// [`ConfigError`]: which setting has another value.
pub fn variables(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let named = variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let read = |(name, value): (String, OsString)| match value.into_string() {
        Ok(value) => Some(Ok((name, value))),
        Err(value) => {
            let setting = name_of_variable(&name)?;
            let found = value.to_string_lossy().into_owned();
            let is_ours = setting == FILE || setting_of(&setting).is_some();
            is_ours.then_some(Err(ConfigError::NotUtf8 { origin: Origin::Variable(name), found }))
        }
    };
    named.filter_map(read).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn text(bytes: &[u8]) -> OsString {
        OsString::from_vec(bytes.to_vec())
    }

    #[test]
    fn an_argument_that_is_not_utf_8_is_named_and_a_flag_s_fault() {
        for (given, words) in [
            (&[&b"--name=\xff\xfe"[..]][..], "--name: `\u{fffd}\u{fffd}` is not UTF-8"),
            (&[b"--log-level=info", b"-name", b"a\xff"], "--name: `a\u{fffd}` is not UTF-8"),
            (&[b"--config-file", b"\xff=1"], "--config-file: `\u{fffd}=1` is not UTF-8"),
            (&[b"\xff"], "`\u{fffd}`: expected a flag such as --name"),
            (&[b"--name=m1", b"--n\xff=1"], "`--n\u{fffd}=1`: expected a flag such as --name"),
        ] {
            let error = arguments(given.iter().map(|bytes| text(bytes))).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.is_of_a_flag()), (words, true));
        }
        assert_eq!(arguments([text(b"--name"), text("ü".as_bytes())]).unwrap(), ["--name", "ü"]);
    }

    #[test]
    fn a_variable_that_is_not_utf_8_matters_where_it_is_a_setting() {
        for name in ["ETCD_NAME", "ETCD_CONFIG_FILE"] {
            let error = variables([(name.into(), text(b"m\xff"))]).unwrap_err();
            let words = format!("{name}: `m\u{fffd}` is not UTF-8");
            assert_eq!((error.to_string(), error.is_of_a_flag()), (words, true));
        }
        let others = [("PATH", &b"\xff"[..]), ("ETCD_UNSUPPORTED_ARCH", b"\xff"), ("ETCD_NAME", b"m1")];
        let given = others.map(|(name, value)| (name.into(), text(value))).into_iter();
        let read = variables(given.chain([(text(b"ETCD_NAM\xff"), text(b"m2"))])).unwrap();
        assert_eq!(read, [("ETCD_NAME".to_owned(), "m1".to_owned())]);
    }
}
