//! With which Go a program was built, and which of its refusals are switched off in it: the program says both itself. Who packs etcd may
//! take another Go than etcd does. Source: Go, `debug/buildinfo`, `internal/godebugs`.

use std::{collections::BTreeMap, fs::File, path::Path};

use object::{Object, ObjectSection, read::ReadCache};

const SECTION: &str = ".go.buildinfo";
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// Where the byte lies that says how strings are kept.
const FLAGS_AT: usize = 15;
/// They follow each other; before Go 1.18 they lay elsewhere.
const INLINE: u8 = 2;
const STRINGS_AT: usize = 32;
/// How much of a section is read, in bytes.
const MAX_SECTION: u64 = 4 << 20;
const DEFAULTS: &str = "build\tDefaultGODEBUG=";

/// How a program was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoBuild {
    /// The 25 of Go 1.25.
    pub minor: u32,
    defaults: BTreeMap<String, String>,
}

/// What a Go refuses.
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    /// From this one on.
    pub since: u32,
    /// Unless `GODEBUG` has this setting at this value; and from which Go on it has no such setting.
    pub unless: Option<(&'static str, &'static str, u32)>,
}

impl GoBuild {
    /// `None` of what is no Go program, or was built before Go 1.18.
    pub fn of(executable: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(executable).ok()?);
        let file = object::File::parse(&cache).ok()?;
        let section = file.section_by_name(SECTION).filter(|section| section.size() <= MAX_SECTION)?;
        read(section.data().ok()?)
    }

    #[cfg(test)]
    pub(crate) fn with(minor: u32, defaults: &str) -> Self {
        Self { minor, defaults: settings(defaults) }
    }

    /// Whether it refuses this, where its process has this `GODEBUG`.
    pub fn refuses(&self, what: Refused, environment: Option<&str>) -> bool {
        let is_set = what.unless.is_some_and(|(name, value, gone)| {
            let own = settings(environment.unwrap_or_default());
            let found = own.get(name).or_else(|| self.defaults.get(name));
            self.minor < gone && found.is_some_and(|found| found == value)
        });
        self.minor >= what.since && !is_set
    }
}

fn read(section: &[u8]) -> Option<GoBuild> {
    let is_inline = section.get(FLAGS_AT).is_some_and(|flags| flags & INLINE != 0);
    if !section.starts_with(MAGIC) || !is_inline {
        return None;
    }
    let (version, rest) = string(section.get(STRINGS_AT..)?)?;
    let (built, _) = string(rest).unwrap_or_default();
    let digits = std::str::from_utf8(version).ok()?.split_once("go1.")?.1;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    // Marks of sixteen bytes that are no text stand before and behind it.
    let built = String::from_utf8_lossy(built);
    let defaults = built.lines().find_map(|line| line.strip_prefix(DEFAULTS)).map(settings);
    Some(GoBuild { minor: digits[..end].parse().ok()?, defaults: defaults.unwrap_or_default() })
}

fn settings(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.trim().split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A string behind its length (a varint), and what follows.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let length = prost::encoding::decode_varint(&mut rest).ok()?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIAL: Refused = Refused { since: 23, unless: Some(("x509negativeserial", "1", u32::MAX)) };
    const SHA1: Refused = Refused { since: 18, unless: Some(("x509sha1", "1", 24)) };

    fn section(version: &str, built: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(FLAGS_AT, 8);
        bytes.push(INLINE);
        bytes.resize(STRINGS_AT, 0);
        for text in [version, built] {
            prost::encoding::encode_varint(text.len() as u64, &mut bytes);
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    #[test]
    fn a_program_says_with_which_go_it_was_built_and_what_that_lets_pass() {
        let build = |version, built| read(&section(version, built));
        let debian =
            "0123456789abcdef path\tx\nbuild\tDefaultGODEBUG=tlssha1=1,x509negativeserial=1\nbuild\t-trimpath=true\n";
        for (found, environment, minor, serial, sha1) in [
            (build("go1.19.8", ""), None, 19, false, true),
            (build("go1.26.4", debian), None, 26, false, true),
            (build("go1.26.4", debian), Some("x509negativeserial=0"), 26, true, true),
            (build("go1.26.8", "build\t-trimpath=true\n"), None, 26, true, true),
            (build("go1.26.8", ""), Some("a=b,x509negativeserial=1,x509sha1=1"), 26, false, true),
            (build("go1.23", ""), Some("x509sha1=1"), 23, true, false),
            (build("devel go1.27-1234abc Tue", ""), None, 27, true, true),
        ] {
            let found = found.unwrap();
            assert_eq!(found.minor, minor);
            assert_eq!(found.refuses(SERIAL, environment), serial, "{found:?}, {environment:?}");
            assert_eq!(found.refuses(SHA1, environment), sha1, "{found:?}, {environment:?}");
        }
    }

    #[test]
    fn what_is_no_go_program_or_is_torn_says_nothing() {
        let whole = section("go1.26.4", "build\tDefaultGODEBUG=a=b\n");
        // The second string may be missing.
        let version = STRINGS_AT + 1 + "go1.26.4".len();
        for length in 0..version {
            assert_eq!(read(&whole[..length]), None, "{length} bytes");
        }
        (version..whole.len())
            .for_each(|length| assert!(read(&whole[..length]).is_some_and(|found| found.minor == 26)));
        for section in [section("1.26", ""), section("go1.", ""), section("go1.99999999999", ""), vec![0xff; 64]] {
            assert_eq!(read(&section), None);
        }
        let own = std::env::current_exe().unwrap();
        assert_eq!(GoBuild::of(&own), None, "it is Rust");
        assert_eq!(GoBuild::of(Path::new("/")), None);
        assert_eq!(GoBuild::of(Path::new("/dev/null")), None);
    }
}
