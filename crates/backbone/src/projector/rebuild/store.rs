//! The row of a rebuild.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, Serialize};
use tidings_event::Timestamp;

use crate::{
    Conn, Db, Error, Result,
    db::{Row, Value},
    log::{Offset, Part},
    projector::Generation,
};

/// Where a rebuild stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was asked for.
    Wished,
    /// Facts are being copied.
    Seeding,
    /// Events are being applied.
    Applying,
    /// It is being compared with facts, and readers are given it if it is right.
    Checking,
    /// It was found right and waits for an operator's word.
    Ready,
    /// It cannot go on by itself; the report says why.
    Failed,
    /// Readers are given it, and the old generation is being removed.
    Removing,
    /// It was given up, and what was built is being removed.
    Cancelling,
    /// Nothing is left to do.
    Done,
    /// It was given up.
    Cancelled,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 10] = [
        Self::Wished,
        Self::Seeding,
        Self::Applying,
        Self::Checking,
        Self::Ready,
        Self::Failed,
        Self::Removing,
        Self::Cancelling,
        Self::Done,
        Self::Cancelled,
    ];

    /// Its name: in the database, the API and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wished => "wished",
            Self::Seeding => "seeding",
            Self::Applying => "applying",
            Self::Checking => "checking",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Removing => "removing",
            Self::Cancelling => "cancelling",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether there is nothing more to come.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }

    /// Whether events are applied to what is built.
    pub(in crate::projector) fn applies(self) -> bool {
        matches!(self, Self::Applying | Self::Checking | Self::Ready | Self::Failed)
    }

    /// Whether an operator may hold it up.
    pub(super) fn can_pause(self) -> bool {
        matches!(self, Self::Wished | Self::Seeding) || self.applies()
    }
}

/// From where a projection is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The log from its beginning, or facts where it does not reach back to it.
    #[default]
    Beginning,
    /// Facts, whatever the log holds.
    Facts,
    /// The log from the first event that was committed at this moment or later.
    Time(Timestamp),
    /// The log from this offset on: only where it is the outbox.
    Offset(i64),
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// From where.
    pub source: Source,
    /// The last event of a replay in place; all that is committed now unless given.
    pub until: Option<Source>,
    /// Whether events are applied to the live generation once more, instead of to a new one.
    pub in_place: bool,
}

/// What is to be applied of one part of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartPlan {
    /// The part, as text.
    pub part: String,
    /// The position that the generation begins with.
    pub start: i64,
    /// Where the part ended when the rebuild began; of a replay in place, its last event.
    pub end: i64,
}

/// Where the log stood when the rebuild began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Noted {
    /// Whether facts are read.
    pub(super) from_facts: bool,
    pub(super) parts: Vec<PartPlan>,
}

impl Noted {
    pub(super) fn ends(&self) -> Result<BTreeMap<Part, Offset>> {
        self.parts.iter().map(|plan| Ok((Part::read(&plan.part, "rebuild")?, Offset(plan.end)))).collect()
    }
}

/// A rebuild, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// The projector.
    pub projector: String,
    /// The generation that is written: a new one, or the live one where events are replayed in place.
    pub generation: Generation,
    /// Where it stands.
    pub state: State,
    /// Whether an operator holds it up.
    pub is_paused: bool,
    /// Whether it waits for an operator's word before readers are given it.
    pub is_held: bool,
    /// Whether readers are given it whatever the check says.
    pub is_forced: bool,
    /// Events, or rows of facts, of one second; 0 for no limit.
    pub events_per_second: u64,
    /// What was asked for.
    pub wish: Wish,
    /// Rows of facts that have been copied.
    pub seeded: u64,
    /// Rows of facts there were, as far as known.
    pub seed_rows: Option<u64>,
    /// The generation whose rows are being removed.
    pub removes: Option<Generation>,
    /// How many rows of it are gone.
    pub removed: u64,
    /// What the check found, or why it failed; empty before there is something to say.
    pub report: String,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// When its state last changed, or it last made a step.
    pub updated_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    pub(super) noted: Noted,
    pub(super) seed_cursor: Option<String>,
    pub(super) foreman: String,
}

impl Rebuild {
    /// The name under which positions and parking lot of what is built are stored.
    pub fn identity(&self) -> String {
        if self.wish.in_place { replay_identity(&self.projector) } else { self.generation.identity(&self.projector) }
    }

    /// What is to be applied of each part of the log; empty before that is known.
    pub fn parts(&self) -> &[PartPlan] {
        &self.noted.parts
    }

    /// Whether facts are read; false before that is known.
    pub fn is_from_facts(&self) -> bool {
        self.noted.from_facts
    }

    /// Where it stands, as metrics tell it: held up before anything else that goes on by itself.
    pub(in crate::projector) fn told_state(&self) -> &'static str {
        let is_held_up = self.is_paused && self.state.can_pause() && self.state != State::Failed;
        if is_held_up { PAUSED } else { self.state.name() }
    }

    /// The ends of a replay in place.
    pub(in crate::projector) fn replay_ends(&self) -> Result<Option<BTreeMap<Part, Offset>>> {
        if self.wish.in_place { self.noted.ends().map(Some) } else { Ok(None) }
    }

    /// Whether there is something for a foreman to do.
    pub(in crate::projector) fn needs_foreman(&self) -> bool {
        match self.state {
            State::Wished | State::Seeding | State::Applying | State::Checking => !self.is_paused,
            State::Removing | State::Cancelling => true,
            State::Ready | State::Failed | State::Done | State::Cancelled => false,
        }
    }
}

/// What metrics call a rebuild that an operator holds up.
const PAUSED: &str = "paused";

/// Every word of [`Rebuild::told_state`].
pub(in crate::projector) fn told_states() -> impl Iterator<Item = &'static str> {
    State::ALL.into_iter().map(State::name).chain([PAUSED])
}

/// The name under which positions of a replay in place are stored.
pub(in crate::projector) fn replay_identity(projector: &str) -> String {
    format!("{projector}@replay")
}

/// What a process needs to know of a projector's generations.
#[derive(Clone, Debug)]
pub(in crate::projector) struct Look {
    pub(in crate::projector) live: Generation,
    pub(in crate::projector) rebuild: Option<Rebuild>,
}

const COLUMNS: &str = "r.projector, r.generation, r.state, r.is_paused, r.is_held, r.is_forced, r.events_per_second, \
    r.wish, r.plan, r.seed_cursor, r.seeded, r.seed_rows, r.removes, r.removed, r.report, r.foreman, r.started_at, \
    r.updated_at, r.finished_at";
const COUNT: usize = 19;

/// Looks at the generations of a projector.
pub(in crate::projector) async fn look(db: &Db, projector: &str) -> Result<Option<Look>> {
    let sql = format!(
        "SELECT {COLUMNS}, g.live FROM projector_generation g LEFT JOIN rebuild r ON r.projector = g.projector \
         WHERE g.projector = ?"
    );
    let mut tx = db.glance().await?;
    let row = tx.conn().fetch_optional("looking at generations", sql, vec![projector.into()]).await?;
    row.map(|row| {
        let rebuild = if row.text_or_null(0)?.is_some() { Some(read(&row)?) } else { None };
        Ok(Look { live: Generation(row.int(COUNT)?), rebuild })
    })
    .transpose()
}

/// The last rebuild of each projector, by name.
pub(super) async fn all(conn: &mut Conn<'_>) -> Result<Vec<Rebuild>> {
    let sql = format!("SELECT {COLUMNS} FROM rebuild r ORDER BY r.projector");
    conn.fetch("reading rebuilds", sql, Vec::new()).await?.iter().map(read).collect()
}

/// The last rebuild of a projector, kept for this transaction, which may change it.
pub(super) async fn find_to_write(conn: &mut Conn<'_>, projector: &str) -> Result<Option<Rebuild>> {
    let lock = conn.engine().for_update();
    let sql = format!("SELECT {COLUMNS} FROM rebuild r WHERE r.projector = ? {lock}");
    let row = conn.fetch_optional("reading a rebuild", sql, vec![projector.into()]).await?;
    row.as_ref().map(read).transpose()
}

/// The names under which what is being built has its positions.
pub(in crate::projector) async fn names_of_unfinished(conn: &mut Conn<'_>) -> Result<Vec<String>> {
    let all = all(conn).await?;
    Ok(all.iter().filter(|rebuild| rebuild.state.applies()).map(Rebuild::identity).collect())
}

/// The last rebuild of each projector that was replayed in place, where that is so: events have been or are being
/// applied to the generation that is read, once more.
pub(crate) async fn replays(conn: &mut Conn<'_>) -> Result<Vec<Rebuild>> {
    let mut replays = all(conn).await?;
    let has_begun = |state: State| state.applies() || matches!(state, State::Removing | State::Done);
    replays.retain(|rebuild| rebuild.wish.in_place && has_begun(rebuild.state));
    Ok(replays)
}

fn read(row: &Row) -> Result<Rebuild> {
    let malformed = |reason: String| Error::MalformedRow { table: "rebuild", reason };
    let state = row.text(2)?;
    let number = |column: usize| row.int(column).map(|number| u64::try_from(number).unwrap_or(0));
    let moment = |column: usize| row.int(column).map(Timestamp);
    let json = |text: String, what: &str| malformed(format!("{what} is `{text}`"));
    let (wish, noted) = (row.text(7)?, row.text(8)?);
    Ok(Rebuild {
        projector: row.text(0)?,
        generation: Generation(row.int(1)?),
        state: state.parse().map_err(|()| malformed(format!("state is `{state}`")))?,
        is_paused: row.int(3)? != 0,
        is_held: row.int(4)? != 0,
        is_forced: row.int(5)? != 0,
        events_per_second: number(6)?,
        wish: serde_json::from_str(&wish).map_err(|_| json(wish, "wish"))?,
        noted: serde_json::from_str(&noted).map_err(|_| json(noted, "plan"))?,
        seed_cursor: row.text_or_null(9)?,
        seeded: number(10)?,
        seed_rows: row.int_or_null(11)?.map(|rows| u64::try_from(rows).unwrap_or(0)),
        removes: Some(row.int(12)?).filter(|removes| *removes > 0).map(Generation),
        removed: number(13)?,
        report: row.text(14)?,
        foreman: row.text(15)?,
        started_at: moment(16)?,
        updated_at: moment(17)?,
        finished_at: row.int_or_null(18)?.map(Timestamp),
    })
}

impl FromStr for State {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|state| state.name() == text).ok_or(())
    }
}

/// Stores a new rebuild over the last one.
pub(super) async fn insert(conn: &mut Conn<'_>, rebuild: &Rebuild) -> Result<()> {
    conn.execute(
        "replacing a rebuild",
        "DELETE FROM rebuild WHERE projector = ?",
        vec![rebuild.projector.as_str().into()],
    )
    .await?;
    let sql = "INSERT INTO rebuild (projector, generation, state, is_paused, is_held, is_forced, events_per_second, \
               wish, plan, seeded, removes, removed, report, foreman, foreman_until, started_at, updated_at) \
               VALUES (?,?,?,0,?,0,?,?,?,0,0,0,'','',0,?,?)";
    let args: Vec<Value> = vec![
        rebuild.projector.as_str().into(),
        rebuild.generation.0.into(),
        rebuild.state.name().into(),
        i64::from(rebuild.is_held).into(),
        i64::try_from(rebuild.events_per_second).unwrap_or(i64::MAX).into(),
        to_json(&rebuild.wish)?.into(),
        to_json(&rebuild.noted)?.into(),
        rebuild.started_at.0.into(),
        rebuild.updated_at.0.into(),
    ];
    conn.execute("storing a rebuild", sql, args).await.map(drop)
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(Error::json("writing a rebuild"))
}

/// Changes columns of a rebuild that is still in the state it was read in; answers whether it was. For a foreman
/// it also must still be his, and nobody may have held it up since.
pub(super) async fn change(
    conn: &mut Conn<'_>,
    rebuild: &Rebuild,
    at: Timestamp,
    mut columns: Vec<(&'static str, Value)>,
    foreman: Option<&str>,
) -> Result<bool> {
    columns.push(("updated_at", at.0.into()));
    let set: Vec<String> = columns.iter().map(|(column, _)| format!("{column} = ?")).collect();
    let mut sql = format!(
        "UPDATE rebuild SET {} WHERE projector = ? AND generation = ? AND started_at = ? AND state = ?",
        set.join(", ")
    );
    let mut args: Vec<Value> = columns.into_iter().map(|(_, value)| value).collect();
    args.extend([
        rebuild.projector.as_str().into(),
        rebuild.generation.0.into(),
        rebuild.started_at.0.into(),
        rebuild.state.name().into(),
    ]);
    if let Some(foreman) = foreman {
        sql.push_str(" AND foreman = ?");
        args.push(foreman.into());
        if rebuild.state.can_pause() {
            sql.push_str(" AND is_paused = 0");
        }
    }
    Ok(conn.execute("changing a rebuild", sql, args).await? > 0)
}

/// Makes a process the foreman until then, unless another one is.
pub(in crate::projector) async fn take_lead(
    conn: &mut Conn<'_>,
    projector: &str,
    foreman: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool> {
    // A lease that ends further ahead than any is given was written by a clock that was set back since.
    let sql = "UPDATE rebuild SET foreman = ?, foreman_until = ? \
               WHERE projector = ? AND (foreman = ? OR foreman_until < ? OR foreman_until > ?)";
    let args = vec![
        foreman.into(),
        until.0.into(),
        projector.into(),
        foreman.into(),
        now.0.into(),
        (until.0 + until.0 - now.0).into(),
    ];
    Ok(conn.execute("leading a rebuild", sql, args).await? > 0)
}
