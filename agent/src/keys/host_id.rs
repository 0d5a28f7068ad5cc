//! [`HostId`]: which host an agent speaks for, in keys and records.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A host, by its machine and by the state directory that its agent keeps there.
///
/// The host's name is not part of it: names are changed and reused. Two state directories on one machine
/// are two hosts to the protocol, and a state directory that was lost is a new one on the same machine.
/// Written `<machine>-<instance>` in 32 hexadecimal digits each; a host without a machine id says `none`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId {
    /// `/etc/machine-id`; `None` where there is none, as in most containers.
    pub machine: Option<u128>,
    /// Chosen at random when the state directory was made.
    pub instance: u128,
}

/// A text that is no host id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host id: expected `<machine>-<instance>`, 32 hexadecimal digits each, or `none` for the machine")]
pub struct HostIdError(String);

impl FromStr for HostId {
    type Err = HostIdError;

    fn from_str(text: &str) -> Result<Self, HostIdError> {
        let parts = text.split_once('-').and_then(|(machine, instance)| {
            let machine = if machine == "none" { None } else { Some(hex_32(machine)?) };
            Some(Self { machine, instance: hex_32(instance)? })
        });
        parts.ok_or_else(|| HostIdError(text.into()))
    }
}

/// Reads exactly 32 lower-case hexadecimal digits: one host id has one text, since the text is a key.
pub(crate) fn hex_32(text: &str) -> Option<u128> {
    let digits = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if digits { u128::from_str_radix(text, 16).ok() } else { None }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.machine {
            Some(machine) => write!(f, "{machine:032x}-{:032x}", self.instance),
            None => write!(f, "none-{:032x}", self.instance),
        }
    }
}

impl fmt::Debug for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostId({self})")
    }
}

impl Serialize for HostId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_id_has_one_text_and_is_read_back_from_it() {
        for machine in [Some(0x3d12_19c7), None, Some(u128::MAX)] {
            let id = HostId { machine, instance: 7 };
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(serde_json::from_str::<HostId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
        }
        assert_eq!(HostId { machine: None, instance: 0xab }.to_string(), "none-000000000000000000000000000000ab",);
    }

    #[test]
    fn what_is_no_host_id_is_refused() {
        let hex = "000000000000000000000000000000ab";
        for bad in [
            "",
            "-",
            "none",
            &format!("none-{}", &hex[1..]),
            &format!("{hex}{hex}"),
            &format!("-{hex}"),
            &format!("{hex}-{}", hex.to_uppercase()),
            &format!("{hex}-+{}", &hex[1..]),
            &format!("{hex}-{hex}-"),
        ] {
            assert!(bad.parse::<HostId>().is_err(), "{bad}");
        }
    }
}
