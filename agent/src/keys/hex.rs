//! 128-bit ids as 32 hexadecimal digits in stored text.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

use super::host_id::hex_32;

pub(super) fn serialize<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{id:032x}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    let text = String::deserialize(deserializer)?;
    hex_32(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is not 32 hexadecimal digits")))
}
