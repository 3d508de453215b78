//! The identity of a user.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use tidings_backbone::db::{Row, Value};
use tidings_event::payload::{Id, InvalidId};

/// The identity of a user: 0 to 2^63 - 1, a string of digits in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(Id);

impl UserId {
    /// The identity as the database's BIGINT holds it; never negative.
    pub fn get(self) -> i64 {
        self.0.get()
    }

    /// Reads a column of `table` that holds a user.
    pub(crate) fn read(row: &Row, column: usize, table: &'static str) -> tidings_backbone::Result<Self> {
        let number = row.int(column)?;
        Self::try_from(number)
            .map_err(|_| tidings_backbone::Error::MalformedRow { table, reason: format!("{number} is no user id") })
    }
}

impl TryFrom<i64> for UserId {
    type Error = InvalidId;

    fn try_from(number: i64) -> Result<Self, InvalidId> {
        Id::try_from(number).map(Self)
    }
}

impl FromStr for UserId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.parse().map(Self)
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Id> for UserId {
    fn from(id: Id) -> Self {
        Self(id)
    }
}

impl From<UserId> for Id {
    fn from(user: UserId) -> Self {
        user.0
    }
}

impl From<UserId> for Value {
    fn from(user: UserId) -> Self {
        Self::Int(user.get())
    }
}
