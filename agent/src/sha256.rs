//! The SHA-256 digest of an artifact: 32 bytes, written as 64 hexadecimal digits.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The digest that an artifact's bytes must have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    #[error("it has {0} characters, not 64")]
    Length(usize),
    /// A character that is no hexadecimal digit.
    #[error("it contains `{0}`, which is no hexadecimal digit")]
    Digit(char),
}

impl FromStr for Sha256 {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        if let Some(other) = text.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(DigestError::Digit(other));
        }
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(DigestError::Length(text.len()));
        }
        let nibble = |digit: u8| (digit as char).to_digit(16).unwrap_or_default() as u8;
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = pair.iter().fold(0, |high, &digit| high << 4 | nibble(digit));
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_in_either_case_and_written_in_lower_case() {
        let text = "0123456789abcdef".repeat(4);
        let digest: Sha256 = text.to_uppercase().parse().unwrap();
        assert_eq!(digest.0[..4], [0x01, 0x23, 0x45, 0x67]);
        assert_eq!(digest.to_string(), text);
    }

    #[test]
    fn a_text_that_is_no_digest_says_why() {
        for (text, error) in [
            (String::new(), DigestError::Length(0)),
            ("a".repeat(63), DigestError::Length(63)),
            ("a".repeat(65), DigestError::Length(65)),
            ("g".repeat(64), DigestError::Digit('g')),
            ("é".repeat(32), DigestError::Digit('é')),
        ] {
            assert_eq!(text.parse::<Sha256>(), Err(error), "{text}");
        }
    }
}
