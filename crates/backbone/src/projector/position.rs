//! How far a projector has come. Its effects and its position change in one transaction, and the
//! position is moved by compare-and-set: a projector that is no longer alone fails instead of writing.

use tidings_event::Timestamp;

use crate::{
    Conn, Error, Result,
    db::Value,
    log::{Offset, Part},
};

/// The stored position of a projector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The projector's name; it may belong to no projector of this program.
    pub projector: String,
    /// The part of the log it is a position in.
    pub part: Part,
    /// Offset of the last event it has applied, passed over or parked.
    pub offset: Offset,
    /// When it last moved.
    pub updated_at: Timestamp,
}

/// Every stored position, by name.
pub async fn positions(mut conn: Conn<'_>) -> Result<Vec<Position>> {
    let sql = "SELECT projector, part, log_offset, updated_at FROM projector_position ORDER BY projector, part";
    let rows = conn.fetch("reading positions", sql, Vec::new()).await?;
    rows.iter()
        .map(|row| {
            Ok(Position {
                projector: row.text(0)?,
                part: Part::read(&row.text(1)?, "projector_position")?,
                offset: Offset(row.int(2)?),
                updated_at: Timestamp(row.int(3)?),
            })
        })
        .collect()
}

/// The position of one projector in one part of the log, if it ever had one.
pub async fn position(conn: &mut Conn<'_>, projector: &str, part: &Part) -> Result<Option<Offset>> {
    let sql = "SELECT log_offset FROM projector_position WHERE projector = ? AND part = ?";
    let row = conn.fetch_optional("reading a position", sql, vec![projector.into(), part.to_string().into()]).await?;
    row.map(|row| row.int(0).map(Offset)).transpose()
}

/// The same, and since when it is there.
pub(crate) async fn place(conn: &mut Conn<'_>, projector: &str, part: &Part) -> Result<Option<(Offset, Timestamp)>> {
    let sql = "SELECT log_offset, updated_at FROM projector_position WHERE projector = ? AND part = ?";
    let row = conn.fetch_optional("reading a position", sql, vec![projector.into(), part.to_string().into()]).await?;
    row.map(|row| Ok((Offset(row.int(0)?), Timestamp(row.int(1)?)))).transpose()
}

/// A position, and up to where the log was seen to hold no event behind it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) part: Part,
    pub(super) offset: Offset,
    clear_to: Option<Offset>,
}

impl Place {
    /// The last offset up to which nothing of the log is needed any more.
    pub(super) fn reached(&self) -> Offset {
        self.clear_to.map_or(self.offset, |clear| clear.max(self.offset))
    }
}

/// Every place of one projector.
pub(super) async fn places(conn: &mut Conn<'_>, projector: &str) -> Result<Vec<Place>> {
    // What was noted of another position says nothing of this one.
    let sql = "SELECT part, log_offset, CASE WHEN clear_from = log_offset THEN clear_to END \
               FROM projector_position WHERE projector = ? ORDER BY part";
    let rows = conn.fetch("reading the places of a projector", sql, vec![projector.into()]).await?;
    rows.iter()
        .map(|row| {
            Ok(Place {
                part: Part::read(&row.text(0)?, "projector_position")?,
                offset: Offset(row.int(1)?),
                clear_to: row.int_or_null(2)?.map(Offset),
            })
        })
        .collect()
}

/// Up to where a projector needs nothing of the log any more, in each part.
pub(super) async fn reached(conn: &mut Conn<'_>, projector: &str) -> Result<Vec<(Part, Offset)>> {
    let places = places(conn, projector).await?;
    Ok(places.into_iter().map(|place| (place.part.clone(), place.reached())).collect())
}

/// The same in one part.
pub(super) async fn reached_in(conn: &mut Conn<'_>, projector: &str, part: &Part) -> Result<Option<Offset>> {
    let all = reached(conn, projector).await?;
    Ok(all.into_iter().find(|(other, _)| other == part).map(|(_, offset)| offset))
}

/// Notes that the log holds no event behind a place up to `clear`, unless it has been left since.
pub(super) async fn note_clear(conn: &mut Conn<'_>, projector: &str, place: &Place, clear: Offset) -> Result<()> {
    let sql = "UPDATE projector_position SET clear_from = log_offset, clear_to = ? \
               WHERE projector = ? AND part = ? AND log_offset = ? \
               AND (clear_from IS NULL OR clear_from <> log_offset OR clear_to < ?)";
    let (part, offset) = (place.part.to_string(), place.offset.0);
    let args = vec![clear.0.into(), projector.into(), part.into(), offset.into(), clear.0.into()];
    conn.execute("noting up to where the log is clear", sql, args).await.map(drop)
}

/// Every position of one projector.
pub(super) async fn of(conn: &mut Conn<'_>, projector: &str) -> Result<Vec<(Part, Offset)>> {
    read(conn, projector, "").await
}

/// The same, which then get no further before the end of the transaction.
pub(super) async fn of_to_write(conn: &mut Conn<'_>, projector: &str) -> Result<Vec<(Part, Offset)>> {
    let lock = conn.engine().for_update();
    read(conn, projector, lock).await
}

async fn read(conn: &mut Conn<'_>, projector: &str, lock: &str) -> Result<Vec<(Part, Offset)>> {
    let sql = format!("SELECT part, log_offset FROM projector_position WHERE projector = ? ORDER BY part {lock}");
    let rows = conn.fetch("reading the positions of a projector", sql, vec![projector.into()]).await?;
    rows.iter().map(|row| Ok((Part::read(&row.text(0)?, "projector_position")?, Offset(row.int(1)?)))).collect()
}

/// Removes all positions of a projector: whoever still wants to move one fails.
pub(super) async fn remove(conn: &mut Conn<'_>, projector: &str) -> Result<()> {
    let sql = "DELETE FROM projector_position WHERE projector = ?";
    conn.execute("removing positions", sql, vec![projector.into()]).await.map(drop)
}

/// Sets the position of a projector, whatever it was.
pub(super) async fn set(conn: &mut Conn<'_>, projector: &str, part: &Part, to: Offset, at: Timestamp) -> Result<()> {
    let upsert = conn.engine().on_conflict("projector, part", "log_offset = ?, updated_at = ?");
    let sql =
        format!("INSERT INTO projector_position (projector, part, log_offset, updated_at) VALUES (?,?,?,?) {upsert}");
    let args = vec![projector.into(), part.to_string().into(), to.0.into(), at.0.into(), to.0.into(), at.0.into()];
    conn.execute("setting a position", sql, args).await.map(drop)
}

/// Moves the position from `from` to `to`, or fails if it is not at `from`.
pub(super) async fn advance(
    conn: &mut Conn<'_>,
    projector: &str,
    part: &Part,
    from: Offset,
    to: Offset,
    at: Timestamp,
) -> Result<()> {
    let sql = "UPDATE projector_position SET log_offset = ?, updated_at = ? \
               WHERE projector = ? AND part = ? AND log_offset = ?";
    let args = vec![to.0.into(), at.0.into(), projector.into(), part.to_string().into(), from.0.into()];
    let moved = conn.execute("moving a position", sql, args).await?;
    if moved == 1 { Ok(()) } else { Err(Error::PositionMoved { projector: projector.to_owned() }) }
}

/// Says of positions that this transaction has moved to these offsets that they came there at `at`: one statement, that
/// only updates, since all rows are there and kept.
pub(super) async fn date<'p>(
    conn: &mut Conn<'_>,
    projector: &str,
    moved: impl Iterator<Item = (&'p Part, Offset)>,
    at: Timestamp,
) -> Result<()> {
    let row = |(part, to): (&Part, Offset)| -> [Value; 4] {
        [projector.into(), part.to_string().into(), to.0.into(), at.0.into()]
    };
    let set = format!("updated_at = {}", conn.engine().inserted("updated_at"));
    let tail = conn.engine().on_conflict("projector, part", &set);
    let head = "INSERT INTO projector_position (projector, part, log_offset, updated_at) VALUES";
    conn.execute_rows("dating positions", head, moved.map(row).collect(), &tail).await.map(drop)
}

/// Holds the position where it is until the end of this transaction; answers where.
pub(crate) async fn hold(conn: &mut Conn<'_>, projector: &str, part: &Part) -> Result<Option<Offset>> {
    let for_update = conn.engine().for_update();
    let sql = format!("SELECT log_offset FROM projector_position WHERE projector = ? AND part = ? {for_update}");
    let row = conn.fetch_optional("holding a position", sql, vec![projector.into(), part.to_string().into()]).await?;
    row.map(|row| row.int(0).map(Offset)).transpose()
}

/// As [`hold`], and fails unless the position is at `at`.
pub(super) async fn hold_at(conn: &mut Conn<'_>, projector: &str, part: &Part, at: Offset) -> Result<()> {
    let stored = hold(conn, projector, part).await?;
    if stored == Some(at) { Ok(()) } else { Err(Error::PositionMoved { projector: projector.to_owned() }) }
}
