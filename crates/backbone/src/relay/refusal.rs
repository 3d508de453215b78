//! Why a source does not give its binlog.

use std::fmt;

use crate::Error;

/// Why a source does not give its binlog from where the relay stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What comes next was purged.
    Purged,
    /// The source has never had, or has not yet, what the relay has read: it lags behind the server that
    /// the relay read before, or has another history.
    Ahead,
    /// The position lies in the middle of an event or beyond the end of its file, or the source may not send what it
    /// finds there for its size, which it says in the same words.
    BadPosition,
    /// Another replica presents itself under the relay's number.
    Evicted,
    /// An event is damaged on the source's disk.
    Unreadable,
}

/// Error codes of both servers.
const BINLOG_FATAL: u16 = 1236;
const PURGED_GTIDS: u16 = 1789;
const MARIADB_EVICTED: u16 = 4052;

impl Refusal {
    /// What a source's answer means. Everything about the binlog has the same code in both servers, so
    /// here, and only here, the text must tell.
    fn of(code: u16, message: &str) -> Option<Self> {
        match code {
            PURGED_GTIDS => return Some(Self::Purged),
            MARIADB_EVICTED => return Some(Self::Evicted),
            BINLOG_FATAL => {}
            _ => return None,
        }
        const TEXTS: [(&str, Refusal); 16] = [
            ("same server_uuid/server_id", Refusal::Evicted),
            ("same server_id", Refusal::Evicted),
            ("have been purged", Refusal::Purged),
            ("has purged", Refusal::Purged),
            ("purged required", Refusal::Purged),
            ("could not find first log file", Refusal::Purged),
            ("could not find gtid state", Refusal::Purged),
            ("not in the master's binlog", Refusal::Ahead),
            ("not in the source's binlog", Refusal::Ahead),
            ("more gtids than the", Refusal::Ahead),
            ("impossible position", Refusal::BadPosition),
            ("position > file size", Refusal::BadPosition),
            ("truncated in the middle", Refusal::BadPosition),
            ("bogus data in log event", Refusal::BadPosition),
            ("exceeded max_allowed_packet", Refusal::BadPosition),
            ("log file wasn't properly closed", Refusal::Unreadable),
        ];
        let message = message.to_ascii_lowercase();
        TEXTS.iter().find(|(text, _)| message.contains(text)).map(|(_, refusal)| *refusal)
    }

    /// The error of a stream that was asked for from `position`.
    pub(super) fn error(position: &str, source: mysql_async::Error) -> Error {
        let refusal = match &source {
            mysql_async::Error::Server(error) => Self::of(error.code, &error.message),
            _ => None,
        };
        match refusal {
            Some(refusal) => Error::BinlogRefused { position: position.to_owned(), refusal, source },
            None => Error::Source { doing: "reading the stream of the binlog", source },
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Purged => "what comes next was purged",
            Self::Ahead => "the source does not have what the relay has read",
            Self::BadPosition => "the position is not one between two events",
            Self::Evicted => "another replica has the relay's number",
            Self::Unreadable => "the source cannot read it",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_both_servers_are_told_apart() {
        let told = [
            (
                1236,
                "Error: connecting slave requested to start from GTID 0-1-5, which is not in the master's binlog. \
             Since the master's binlog contains GTIDs with higher sequence numbers, it probably means that the slave \
             has diverged due to executing extra erroneous transactions",
                Refusal::Ahead,
            ),
            (
                1236,
                "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too \
             old and required binlog files have been purged.",
                Refusal::Purged,
            ),
            (1236, "Could not find first log file name in binary log index file", Refusal::Purged),
            (1236, "Cannot replicate because the source purged required binary logs.", Refusal::Purged),
            (1236, "Client requested source to start replication from position > file size", Refusal::BadPosition),
            (1236, "Client requested master to start replication from impossible position", Refusal::BadPosition),
            (
                1236,
                "binlog truncated in the middle of event; consider out of disk space on master",
                Refusal::BadPosition,
            ),
            (
                1236,
                "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master; the first event \
             'mysql-bin.000001' at 4, the last event read from 'mysql-bin.000003' at 343",
                Refusal::BadPosition,
            ),
            (
                1236,
                "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on source; the first event \
             'mysql-bin.000001' at 4, the last event read from './mysql-bin.000003' at 343",
                Refusal::BadPosition,
            ),
            (1789, "", Refusal::Purged),
            (4052, "A slave with the same server_uuid/server_id as this slave has connected", Refusal::Evicted),
        ];
        for (code, message, refusal) in told {
            assert_eq!(Refusal::of(code, message), Some(refusal), "{message}");
        }
        assert_eq!(Refusal::of(1045, "have been purged"), None);
        assert_eq!(Refusal::of(1236, "something else"), None);
    }
}
