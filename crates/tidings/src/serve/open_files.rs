//! The system's limit of open files: every connection is one, and the database needs some too.

/// Files that are kept for everything but connections. Of a small limit it is half.
const RESERVE: u64 = 128;

/// Raises the limit as far as the system allows without asking, and answers how many of the
/// `wanted` connections fit below it. One more would be refused by the system, again and again.
pub(super) fn connections_max(wanted: usize) -> usize {
    let Some(open_files_max) = raised() else { return wanted };
    let connections_max = fitting(wanted, open_files_max);
    if connections_max < wanted {
        tracing::warn!(connections_max, wanted, open_files_max, "fewer connections than configured fit the open files");
    } else {
        tracing::debug!(connections_max, open_files_max, "connections are limited");
    }
    connections_max
}

fn fitting(wanted: usize, open_files_max: u64) -> usize {
    let room = open_files_max - RESERVE.min(open_files_max / 2);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1)
}

/// The limit in effect, raised to the hard one; nothing where there is none.
#[cfg(unix)]
fn raised() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let soft = current?;
    if maximum == Some(soft) {
        return Some(soft);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::debug!(%error, "the limit of open files stays as it is");
            Some(soft)
        }
    }
}

#[cfg(not(unix))]
fn raised() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_rest() {
        assert_eq!(fitting(8_192, 1_048_576), 8_192);
        assert_eq!(fitting(8_192, 1_024), 896);
        assert_eq!(fitting(8_192, 100), 50);
        assert_eq!(fitting(8_192, 0), 1);
    }
}
