//! What an import did.

use super::batches::Batch;
use crate::load::Loaded;

/// Bad lines that are shown; all are counted.
const BAD_LINES_SHOWN_MAX: u64 = 20;

/// Counts of one run.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Lines read that are not blank, without the header.
    pub(super) lines: u64,
    /// The first bad line and its reason.
    pub(super) first_bad: Option<(u64, String)>,
    follows: u64,
    loaded: Loaded,
    bad_lines: u64,
    last_bad_line: u64,
}

impl Summary {
    pub(super) fn add(&mut self, batch: &Batch, follows: usize, loaded: &Loaded) {
        self.lines += batch.lines() as u64;
        self.follows += follows as u64;
        self.loaded.users_added += loaded.users_added;
        self.loaded.changed += loaded.changed;
        self.loaded.unchanged += loaded.unchanged;
    }

    /// Counts a bad line; answers what to say of it. A line may be bad for two reasons.
    pub(super) fn add_bad(&mut self, line: u64, reason: String) -> Option<String> {
        if self.last_bad_line != line {
            self.last_bad_line = line;
            self.bad_lines += 1;
        }
        let text = match self.bad_lines {
            ..=BAD_LINES_SHOWN_MAX => Some(format!("line {line}: {reason}")),
            _ => None,
        };
        self.first_bad.get_or_insert((line, reason));
        text
    }

    /// One count a line, `name number`, for people and for scripts.
    pub(super) fn table(&self, seconds: f64) -> String {
        let Loaded { users_added, changed, unchanged, .. } = self.loaded;
        // A user or a follow that is new is one event, in the same transaction.
        let events = users_added + changed;
        let rate = self.follows as f64 / seconds;
        let hidden = self.bad_lines.saturating_sub(BAD_LINES_SHOWN_MAX);
        let mut text = String::new();
        for (name, count) in [
            ("lines", self.lines.to_string()),
            ("follows", self.follows.to_string()),
            ("changed", changed.to_string()),
            ("unchanged", unchanged.to_string()),
            ("bad lines", self.bad_lines.to_string()),
            ("users added", users_added.to_string()),
            ("events", events.to_string()),
            ("seconds", format!("{seconds:.1}")),
            ("follows/s", format!("{rate:.0}")),
        ] {
            text.push_str(&format!("{name:<12}{count:>12}\n"));
        }
        if hidden > 0 {
            text.push_str(&format!("{hidden} of the bad lines are not shown above\n"));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_twenty_bad_lines_are_shown_and_all_are_counted() {
        let mut summary = Summary::default();
        let shown = (2..=31).filter(|line| summary.add_bad(*line, "bad".to_owned()).is_some()).count();
        assert_eq!(shown, 20);
        assert_eq!(summary.first_bad, Some((2, "bad".to_owned())));
        let table = summary.table(1.0);
        assert!(table.contains("bad lines             30\n"), "{table}");
        assert!(table.ends_with("10 of the bad lines are not shown above"), "{table}");
    }

    #[test]
    fn a_line_that_is_bad_twice_is_counted_once() {
        let mut summary = Summary::default();
        assert!(summary.add_bad(2, "one".to_owned()).is_some());
        assert!(summary.add_bad(2, "two".to_owned()).is_some());
        assert_eq!(summary.bad_lines, 1);
    }
}
