//! The identities of a cluster and of its members.

use std::{fmt, num::ParseIntError, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Printed as etcdctl prints it: hexadecimal, without padding.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// The form used inside keys: exactly 16 hexadecimal digits, so that keys sort as ids do.
            pub fn key_form(self) -> String {
                format!("{:016x}", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:x})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                u64::from_str_radix(text, 16).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    };
}

hex_id!(
    /// The id that raft knows a member by; a member that is removed and added again has a new one.
    MemberId
);
hex_id!(
    /// The id that all members of one cluster share; two clusters never have the same.
    ClusterId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_as_etcdctl_prints_it() {
        let id = MemberId(0x8e9e_05c5_2164_694d);
        assert_eq!(id.to_string(), "8e9e05c52164694d");
        assert_eq!("8e9e05c52164694d".parse(), Ok(id));
        assert_eq!(MemberId(0xf).key_form(), "000000000000000f");
    }
}
