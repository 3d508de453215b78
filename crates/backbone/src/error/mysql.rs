//! What the numbers of MySQL's and MariaDB's errors say of whose fault they are. A number that is in
//! no list is nobody's: a missing table, a right that was not granted.

use sqlx::{error::DatabaseError, mysql::MySqlDatabaseError};

/// MariaDB's number for a broken CHECK; MySQL uses it for something else, with another SQLSTATE.
const MARIADB_CHECK: u16 = 4025;
/// MySQL's number for a broken CHECK, which stands here for both.
const CHECK: u16 = 3819;

/// The server is gone, going, or serves reads alone since another one took its place. Nothing was
/// done, and no connection to it is of use.
const LOST: [u16; 17] = [
    1053, // shutdown in progress
    1152, 1158, 1159, 1160, 1161, 1184, // the network failed the server
    1290, 1836, // read-only
    1927, // MariaDB: connection was killed
    2006, 2013, // gone away, lost
    3100, // MySQL group replication: a member that may not commit
    3168, // not available
    4031, // MySQL: closed for its silence
    1047, // Galera: not ready
    1317, // interrupted: the query or its connection was killed
];

/// The same may succeed later: contention, or a server in trouble.
const TRANSIENT: [u16; 27] = [
    1205, // lock wait timed out
    1213, // deadlock
    1020, 1412, 1637, // the record or table changed meanwhile; too many transactions
    3101, // MySQL group replication: another member was faster
    1615, 1461, // statement to be prepared anew; too many are prepared
    3024, 1969, // statement took too long: MySQL, MariaDB
    1040, 1203, 1226, // too many connections, of one user, within an hour
    1129, 1135, // host blocked; no thread
    1021, 1114, 1028, // disk or table full
    1037, 1038, 1041, // out of memory
    1030, 1180, 1181, 1206, 1015, 1026, // storage engine: general, commit, rollback, lock table, lock, write
];

/// The values break a rule. A statement that leaves out a column (1364) is older than its table, whatever its values.
const DATA: [u16; 29] = [
    1022, 1062, 1169, 1586, // a unique value is there already
    1048, // NULL
    1216, 1217, 1451, 1452, // a referenced row
    1264, 1690, // out of range
    1265, 1292, 1366, 1367, 1411, // not of its type
    1406, // too long
    1118, 1153, 1301, 1162, // too large: row, packet, result, text
    1300, 3854, // not of its character set
    1365, 1441, // division by zero, date overflow
    3140, 3141, 3157, // no JSON, or too deep
    CHECK,
];

/// The number of an error of MySQL's or MariaDB's; other engines have none.
pub(crate) fn code(error: &dyn DatabaseError) -> Option<u16> {
    let error = error.try_downcast_ref::<MySqlDatabaseError>()?;
    match (error.number(), error.code()) {
        (MARIADB_CHECK, Some("23000")) => Some(CHECK),
        (number, _) => Some(number),
    }
}

pub(crate) fn is_lost(code: u16) -> bool {
    LOST.contains(&code)
}

pub(crate) fn is_transient(code: u16) -> bool {
    is_lost(code) || TRANSIENT.contains(&code)
}

pub(crate) fn is_fault_of_data(code: u16) -> bool {
    DATA.contains(&code)
}

/// Whether a unique value was there already.
pub(crate) fn is_duplicate(code: u16) -> bool {
    DATA[..4].contains(&code)
}

/// Whether another transaction holds a row: waited for in vain, or not waited for as was asked (MySQL, MariaDB).
pub(crate) fn is_locked(code: u16) -> bool {
    [1205, 3572].contains(&code)
}

/// Whether a COMMIT that was answered so may have been made all the same: its connection was ended
/// in the middle. A server that turned read-only, or lost the commit to another member, says "no".
pub(crate) fn leaves_commit_open(code: u16) -> bool {
    is_lost(code) && ![1290, 1836, 3100].contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_both_the_data_s_fault_and_transient() {
        assert!(DATA.iter().all(|code| !is_transient(*code)));
    }
}
