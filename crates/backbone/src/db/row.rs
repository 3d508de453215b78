//! Rows of a result.

use sqlx::{Row as _, mysql::MySqlRow, sqlite::SqliteRow};

use super::mysql;
use crate::{Error, Result};

/// One row; columns are read by their position in the query, from 0.
#[derive(Debug)]
pub enum Row {
    /// A row of SQLite.
    #[doc(hidden)]
    Sqlite(SqliteRow),
    /// A row of MySQL or MariaDB.
    #[doc(hidden)]
    Mysql(MySqlRow),
}

const READING: &str = "reading a column";
const IS_NULL: &str = "NULL where a number was expected";

impl Row {
    /// A BIGINT.
    pub fn int(&self, column: usize) -> Result<i64> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
            Self::Mysql(row) => match mysql::int(row, column) {
                Ok(number) => {
                    number.ok_or(sqlx::Error::ColumnDecode { index: column.to_string(), source: IS_NULL.into() })
                }
                Err(error) => Err(error),
            }
            .map_err(Error::database(READING)),
        }
    }

    /// A BIGINT that may be NULL.
    pub fn int_or_null(&self, column: usize) -> Result<Option<i64>> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
            Self::Mysql(row) => mysql::int(row, column).map_err(Error::database(READING)),
        }
    }

    /// UTF-8 text.
    pub fn text(&self, column: usize) -> Result<String> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
            Self::Mysql(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
        }
    }

    /// UTF-8 text that may be NULL.
    pub fn text_or_null(&self, column: usize) -> Result<Option<String>> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
            Self::Mysql(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
        }
    }

    /// Bytes, of whatever type the column holds.
    pub fn bytes(&self, column: usize) -> Result<Vec<u8>> {
        match self {
            Self::Sqlite(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
            Self::Mysql(row) => row.try_get_unchecked(column).map_err(Error::database(READING)),
        }
    }
}
