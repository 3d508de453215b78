//! What is counted in the database, in the transaction of what it counts: whichever process does it, also one that
//! nobody scrapes because it is a command and ends. The metrics of every server tell it.

use crate::{Conn, Error, Result, db::Value};

/// What is counted so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counted {
    /// Actions that the audit notes; each by its name.
    Actions,
    /// Events that operators discarded; by the name of the projector.
    DiscardedEvents,
    /// Reconciliations; by how they ended.
    Reconciliations,
    /// Events that repairs have written.
    RepairedEvents,
}

impl Counted {
    const ALL: [Self; 4] = [Self::Actions, Self::DiscardedEvents, Self::Reconciliations, Self::RepairedEvents];

    fn name(self) -> &'static str {
        match self {
            Self::Actions => "actions",
            Self::DiscardedEvents => "discarded_events",
            Self::Reconciliations => "reconciliations",
            Self::RepairedEvents => "repaired_events",
        }
    }
}

/// Counts so many more.
pub(crate) async fn add(conn: &mut Conn<'_>, what: Counted, label: &str, number: u64) -> Result<()> {
    let more = format!("number = number + {}", conn.engine().inserted("number"));
    let sql = format!(
        "INSERT INTO counted (name, label, number) VALUES (?,?,?) {}",
        conn.engine().on_conflict("name, label", &more)
    );
    let args: Vec<Value> = vec![what.name().into(), label.into(), i64::try_from(number).unwrap_or(i64::MAX).into()];
    conn.execute("counting", sql, args).await.map(drop)
}

/// All that was ever counted, each with its label.
pub(crate) async fn all(conn: &mut Conn<'_>) -> Result<Vec<(Counted, String, u64)>> {
    let sql = "SELECT name, label, number FROM counted ORDER BY name, label";
    let mut found = Vec::new();
    for row in conn.fetch("reading what was counted", sql, Vec::new()).await? {
        let name = row.text(0)?;
        // What a newer program counts is none of ours.
        let Some(what) = Counted::ALL.into_iter().find(|what| what.name() == name) else { continue };
        let number = u64::try_from(row.int(2)?)
            .map_err(|_| Error::MalformedRow { table: "counted", reason: format!("`{name}` is negative") })?;
        found.push((what, row.text(1)?, number));
    }
    Ok(found)
}
