//! A database with users, and the parts on it, moved step by step.

use std::collections::BTreeMap;

use tidings_backbone::{
    Clock, Conn, Db, Durability, EventIds,
    db::{BACKBONE_MIGRATIONS, MysqlOptions, Value},
    ledger::Decide,
    log::{Log, Offset, Recorded},
    projector::{ApplyError, Generation, Projector, Target, position},
};
use tidings_community::{
    MIGRATIONS, Pair, UserId,
    relation::{
        facts::{Change, Command, Outcome, Refusal, Relation},
        projection::{self, RelationProjector},
        read::{List, Page},
        verify::{Report, verify},
    },
    user::facts::{Register, Registered, Registry},
};
use tidings_event::{Metadata, Timestamp};
use tidings_testkit::database::{Database, Engine, Place};

pub(crate) const START: Timestamp = Timestamp(1_700_000_000_000);

/// What is written before anything is rebuilt.
pub(crate) const FIRST: Target = Target { generation: Generation::FIRST, is_live: true };

/// What a pair's row says: status, version, created_at, updated_at.
pub(crate) type RowState = (bool, i64, i64, i64);

pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: EventIds,
    pub(crate) engine: Engine,
    pub(crate) database: Database,
}

pub(crate) fn user(id: i64) -> UserId {
    UserId::try_from(id).unwrap()
}

pub(crate) fn pair(from: i64, to: i64) -> Pair {
    Pair { from: user(from), to: user(to) }
}

pub(crate) fn command(change: Change, from: i64, to: i64) -> Command {
    Command { change, from: user(from), to: user(to), metadata: Metadata::default() }
}

pub(crate) fn follow(from: i64, to: i64) -> Command {
    command(Change::Follow, from, to)
}

pub(crate) fn unfollow(from: i64, to: i64) -> Command {
    command(Change::Unfollow, from, to)
}

/// Runs a test's future on a runtime of its own; for property tests, whose body is not async.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

impl World {
    /// A world with the users 1 to `users`, at [`START`].
    pub(crate) async fn new(users: i64) -> Self {
        Self::on(Engine::Sqlite, users).await
    }

    pub(crate) async fn on(engine: Engine, users: i64) -> Self {
        let database = Database::new(engine).await;
        let db = open(&database.place).await;
        db.migrate(&[BACKBONE_MIGRATIONS, MIGRATIONS].concat()).await.unwrap();
        let world = Self { db, clock: Clock::manual(START), ids: EventIds::from_seed(1), engine, database };
        for chunk in (1..=users).collect::<Vec<_>>().chunks(1_000) {
            let registers: Vec<Register> = chunk.iter().map(|id| register(Some(*id), &format!("user{id}"))).collect();
            assert!(world.register(&registers).await.iter().all(Result::is_ok));
        }
        world
    }

    /// The same database through a handle of its own, as another process would have it.
    pub(crate) async fn reopen(&self) -> Db {
        open(&self.database.place).await
    }

    pub(crate) fn tick(&self, ms: u64) {
        self.clock.advance(std::time::Duration::from_millis(ms));
    }

    pub(crate) async fn register(
        &self,
        commands: &[Register],
    ) -> Vec<Result<Registered, tidings_community::user::facts::Refusal>> {
        self.decide_by(&Registry::new(self.ids.clone()), commands).await
    }

    /// Decides commands in one batch and commits it.
    pub(crate) async fn decide(&self, commands: &[Command]) -> Vec<Result<Outcome, Refusal>> {
        self.decide_by(&Relation::new(self.ids.clone()), commands).await
    }

    /// Decides one command that is not refused.
    pub(crate) async fn done(&self, command: Command) -> Outcome {
        self.decide(&[command]).await.remove(0).unwrap()
    }

    pub(crate) async fn decide_by<D: Decide>(
        &self,
        decider: &D,
        commands: &[D::Command],
    ) -> Vec<Result<D::Outcome, D::Refusal>> {
        let mut tx = self.db.write(Durability::Rebuildable).await.unwrap();
        let commands: Vec<&D::Command> = commands.iter().collect();
        let answers = decider.decide(&commands, self.clock.now(), tx.conn()).await.unwrap();
        tx.commit().await.unwrap();
        answers
    }

    /// All events of the log, in order.
    pub(crate) async fn events(&self) -> Vec<Recorded> {
        Log::Embedded(self.db.clone()).read(Offset(0), usize::MAX).await.unwrap()
    }

    /// The events of the follow graph, in order.
    pub(crate) async fn relation_events(&self) -> Vec<Recorded> {
        let mut events = self.events().await;
        events.retain(|recorded| recorded.event.event_type.starts_with("relation."));
        events
    }

    /// The same as [`World::apply`], where it may fail for others who write at the same time.
    pub(crate) async fn try_apply(&self, batch: &[Recorded]) -> Result<(), ApplyError> {
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        RelationProjector.apply(batch, FIRST, tx.conn()).await?;
        Ok(tx.commit().await?)
    }

    /// Applies events as one batch, without moving the position.
    pub(crate) async fn apply(&self, batch: &[Recorded]) -> Result<(), ApplyError> {
        let mut tx = self.db.write(Durability::Rebuildable).await.unwrap();
        RelationProjector.apply(batch, FIRST, tx.conn()).await?;
        tx.commit().await.unwrap();
        Ok(())
    }

    /// Applies the next `limit` events of the log with their position, as the runtime does.
    pub(crate) async fn apply_next(&self, limit: usize) -> usize {
        self.apply_next_by(&RelationProjector, limit).await.map_or(0, |(passed, _)| passed)
    }

    /// The same, by a projector that is not told of the commit; answers how many events were passed, and
    /// those that were applied.
    pub(crate) async fn apply_next_by(
        &self,
        projector: &dyn Projector,
        limit: usize,
    ) -> Option<(usize, Vec<Recorded>)> {
        let mut tx = self.db.write(Durability::Rebuildable).await.unwrap();
        let mut conn = tx.conn();
        let at = position(&mut conn, projection::NAME, &tidings_backbone::log::Part::outbox())
            .await
            .unwrap()
            .unwrap_or_default();
        let batch = tidings_backbone::log::read_after(&mut conn, at, limit).await.unwrap();
        let last = batch.last()?.offset.0;
        let mine: Vec<Recorded> =
            batch.iter().filter(|recorded| recorded.event.event_type.starts_with("relation.")).cloned().collect();
        projector.apply(&mine, FIRST, conn.reborrow()).await.unwrap();
        set_position(conn, last).await;
        tx.commit().await.unwrap();
        Some((batch.len(), mine))
    }

    /// Says that everything up to `offset` is applied.
    pub(crate) async fn move_to(&self, offset: Offset) {
        let mut tx = self.db.write(Durability::Rebuildable).await.unwrap();
        set_position(tx.conn(), offset.0).await;
        tx.commit().await.unwrap();
    }

    /// Applies everything that is committed.
    pub(crate) async fn drain(&self) {
        while self.apply_next(1_000).await > 0 {}
    }

    pub(crate) async fn facts(&self) -> BTreeMap<Pair, RowState> {
        self.rows("following").await
    }

    pub(crate) async fn mirror(&self) -> BTreeMap<Pair, RowState> {
        self.rows("follower WHERE generation = (SELECT live FROM projector_generation)").await
    }

    async fn rows(&self, table: &str) -> BTreeMap<Pair, RowState> {
        let sql = format!("SELECT from_user_id, to_user_id, rel_status, version, created_at, updated_at FROM {table}");
        let mut rows = BTreeMap::new();
        for row in self.query(&sql, vec![]).await {
            rows.insert(pair(row[0], row[1]), (row[2] != 0, row[3], row[4], row[5]));
        }
        rows
    }

    /// Runs a query of BIGINT columns.
    pub(crate) async fn query(&self, sql: &str, args: Vec<Value>) -> Vec<Vec<i64>> {
        let columns = sql.split(" FROM ").next().unwrap().matches(',').count() + 1;
        let mut tx = self.db.read().await.unwrap();
        let rows = tx.conn().fetch("testing", sql.to_owned(), args).await.unwrap();
        rows.iter().map(|row| (0..columns).map(|column| row.int(column).unwrap()).collect()).collect()
    }

    /// Runs a statement behind everybody's back; answers the number of rows it changed.
    pub(crate) async fn tamper(&self, sql: &str, args: Vec<Value>) -> u64 {
        let mut tx = self.db.write(Durability::Rebuildable).await.unwrap();
        let changed = tx.conn().execute("tampering", sql.to_owned(), args).await.unwrap();
        tx.commit().await.unwrap();
        changed
    }

    pub(crate) async fn followers(&self, user: UserId, page: &Page) -> Option<List> {
        let mut tx = self.db.read().await.unwrap();
        tidings_community::relation::read::followers(&mut tx.conn(), user, page).await.unwrap()
    }

    pub(crate) async fn followings(&self, user: UserId, page: &Page) -> Option<List> {
        let mut tx = self.db.read().await.unwrap();
        tidings_community::relation::read::followings(&mut tx.conn(), user, page).await.unwrap()
    }

    pub(crate) async fn verify(&self) -> Report {
        verify(&self.db).await.unwrap()
    }
}

async fn set_position(mut conn: Conn<'_>, offset: i64) {
    let upsert = conn.engine().on_conflict("projector, part", "log_offset = ?");
    let sql = format!(
        "INSERT INTO projector_position (projector, part, log_offset, updated_at) \
         VALUES ('relation', 'outbox/0', ?, 0) {upsert}"
    );
    conn.execute("moving on", sql, vec![offset.into(), offset.into()]).await.unwrap();
}

async fn open(place: &Place) -> Db {
    match place {
        Place::File(file) => Db::open_sqlite(file).await.unwrap(),
        Place::Url(url) => Db::open_mysql(MysqlOptions::from_url(url).unwrap()).await.unwrap(),
    }
}

pub(crate) fn register(id: Option<i64>, handle: &str) -> Register {
    Register { id: id.map(user), handle: handle.parse().unwrap(), metadata: Metadata::default() }
}
