//! Rows of a result.

use sqlx::{Row as _, sqlite::SqliteRow};

use crate::{Error, Result};

/// One row; columns are read by their position in the query, from 0.
#[derive(Debug)]
pub enum Row {
    /// A row of SQLite.
    #[doc(hidden)]
    Sqlite(SqliteRow),
}

const READING: &str = "reading a column";

impl Row {
    /// A BIGINT.
    pub fn int(&self, column: usize) -> Result<i64> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
        }
    }

    /// A BIGINT that may be NULL.
    pub fn int_or_null(&self, column: usize) -> Result<Option<i64>> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
        }
    }

    /// UTF-8 text.
    pub fn text(&self, column: usize) -> Result<String> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
        }
    }

    /// UTF-8 text that may be NULL.
    pub fn text_or_null(&self, column: usize) -> Result<Option<String>> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
        }
    }

    /// Bytes, of whatever type the column holds.
    pub fn bytes(&self, column: usize) -> Result<Vec<u8>> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
        }
    }
}
