//! Which generation of the projection a statement is about.
//!
//! Readers name the live one by a subquery: it is of the snapshot that the rows are of, so a reader sees one
//! generation whole, and it costs one look-up in a table of a few rows for each statement. Whoever writes for an
//! event says which one.

use tidings_backbone::{db::Value, projector::Generation};

/// A generation, as a statement names it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// The one that readers are given.
    Live,
    /// This one.
    One(Generation),
}

/// As [`tidings_backbone::projector::generation::live_sql`] has it, for the projector of this feature.
pub(super) const LIVE: &str = "(SELECT live FROM projector_generation WHERE projector = 'relation')";

impl Of {
    /// The number, as an expression.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Live => LIVE,
            Self::One(_) => "?",
        }
    }

    /// The argument of [`Of::sql`], if it has one.
    pub(super) fn args(self) -> Vec<Value> {
        match self {
            Self::Live => Vec::new(),
            Self::One(generation) => vec![generation.0.into()],
        }
    }
}

/// What a statement that calls a table of lists `r` says first in its conditions: of the mirror, the rows that
/// readers are given. Facts have no generations.
pub(super) fn of_live(table: &str) -> String {
    if table == "follower" { format!("r.generation = {LIVE} AND") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::LIVE;
    use crate::relation::projection;

    #[test]
    fn readers_ask_as_the_backbone_says() {
        assert_eq!(LIVE, tidings_backbone::projector::generation::live_sql(projection::NAME));
    }
}
