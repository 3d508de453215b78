//! Counters of a generation that is made from facts: counted from its mirror, which nobody else writes.

use tidings_backbone::{Conn, Result, db::Engine, projector::Generation};
use tidings_event::Timestamp;

use super::{Counters, first_changes, in_place, recount, store};
use crate::{UserId, relation::generation::Of};

/// Counts for `users` and stores what is not nothing: who has no relations has no row yet.
pub(in crate::relation) async fn seed(conn: &mut Conn<'_>, generation: Generation, users: &[UserId]) -> Result<()> {
    let mut counted: Vec<(UserId, Counters)> = recount(conn, Of::One(generation), users).await?.into_iter().collect();
    counted.retain(|(_, counters)| *counters != Counters::default());
    counted.sort_unstable_by_key(|(user, _)| *user);
    // The beginning of its generation's range: no row was read at a number of it yet.
    let changes = first_changes(generation, Timestamp(0));
    match conn.engine() {
        Engine::Sqlite => {
            let rows = counted.into_iter().map(|(user, counters)| (user, counters, Some(changes)));
            store::write(conn, generation, rows).await
        }
        Engine::Mysql | Engine::Mariadb => in_place::write(conn, generation, &counted, changes).await,
    }
}
