//! Identities in JSON.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A 63-bit identity. In JSON it is a string of digits, since a JavaScript number holds 53 bits
/// only (the proto3 JSON mapping writes 64-bit integers as strings for the same reason). A JSON
/// number is accepted when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(i64);

/// The text or number is not an identity.
#[derive(Debug, thiserror::Error)]
#[error("an id is a whole number from 0 to 9223372036854775807")]
pub struct InvalidId;

impl Id {
    /// The identity as the database's BIGINT holds it; never negative.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for Id {
    type Error = InvalidId;

    fn try_from(number: i64) -> Result<Self, InvalidId> {
        if number < 0 { Err(InvalidId) } else { Ok(Self(number)) }
    }
}

impl FromStr for Id {
    type Err = InvalidId;

    /// Digits only: no sign, no space, no leading zero, so that one id has one text.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let digits_only = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let canonical = text == "0" || !text.starts_with('0');
        if !digits_only || !canonical {
            return Err(InvalidId);
        }
        text.parse().map(Self).map_err(|_| InvalidId)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl de::Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 9223372036854775807, or its digits as a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
        i64::try_from(number).map(Id).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Id, E> {
        Id::try_from(number).map_err(E::custom)
    }
}
