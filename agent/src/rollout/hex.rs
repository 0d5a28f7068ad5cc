//! 128-bit ids as 32 hexadecimal digits in stored text.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

pub(super) fn serialize<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{id:032x}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    u128::from_str_radix(&String::deserialize(deserializer)?, 16).map_err(D::Error::custom)
}
