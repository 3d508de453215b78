//! Lamps: facts with a version, and a projection of them in generations that finds out by itself whether an event
//! was lost or counted twice.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use tidings_backbone::{
    Clock, Conn, Db, Durability, Error, Result,
    audit::Actor,
    db::Engine as DbEngine,
    log::{KafkaLog, Log, Offset, Part, Recorded},
    outbox,
    projector::{
        ApplyError, Generation, Options, Projector, Runtime, Target, position,
        rebuild::{Check, Checked, Generations, Rebuild, Rebuilds, Seeded, Start, State},
    },
};
use tidings_event::EventId;
use tidings_testkit::database::Engine;
use tokio_util::sync::CancellationToken;

use crate::{
    kafka::Broker,
    world::{PATIENCE, Running, World, quick},
};

pub(crate) const NAME: &str = "lamps";
const TURNED: &str = "switch.turned";

/// A database with facts, and the log that their events go to: the outbox, or topics where there is a server.
pub(crate) struct Lamps {
    pub(crate) world: World,
    pub(crate) broker: Option<Broker>,
    /// One writer at a time: the order of events is that of commits.
    turn: tokio::sync::Mutex<()>,
}

/// Keeps for each lamp the version that it is at, and how many events brought it there.
#[derive(Default)]
pub(crate) struct Projection {
    /// Events of a generation that fail, by lamp and version.
    pub(crate) faults: Mutex<Vec<(Generation, String, i64)>>,
    /// Whether the projection says that it cannot be made from facts.
    pub(crate) lacks_facts: bool,
    /// Facts copied in one step.
    pub(crate) seed_rows: AtomicI64,
    /// Held by whoever applies an event of generation 1.
    pub(crate) gate: tokio::sync::Mutex<()>,
    /// Held by whoever checks a generation.
    pub(crate) check_gate: tokio::sync::Mutex<()>,
}

impl Lamps {
    pub(crate) async fn on(engine: Engine) -> Self {
        let mut world = World::on_with_clock(engine, Clock::system()).await;
        let broker = match engine {
            Engine::Sqlite => None,
            Engine::Mariadb | Engine::Mysql => Some(Broker::new(3).await),
        };
        if let Some(broker) = &broker {
            world.log = Log::Kafka(KafkaLog::new(world.db.clone(), broker.options.clone()));
        }
        let text = if engine == Engine::Sqlite { "TEXT" } else { "VARBINARY(64)" };
        let mut tx = world.db.write(Durability::Full).await.unwrap();
        for table in [
            format!("CREATE TABLE lamp (name {text} PRIMARY KEY, version BIGINT NOT NULL)"),
            format!(
                "CREATE TABLE lamp_view (generation BIGINT NOT NULL, name {text} NOT NULL, version BIGINT NOT NULL, \
                 effects BIGINT NOT NULL, PRIMARY KEY (generation, name))"
            ),
        ] {
            tx.conn().execute("making a table", table, vec![]).await.unwrap();
        }
        tx.commit().await.unwrap();
        Self { world, broker, turn: tokio::sync::Mutex::default() }
    }

    /// Turns lamps, each once more: fact and event. Answers the events' ids.
    pub(crate) async fn turn(&self, lamps: impl IntoIterator<Item = usize>) -> Vec<EventId> {
        let _turn = self.turn.lock().await;
        let mut events = Vec::new();
        let mut tx = self.world.db.write(Durability::Full).await.unwrap();
        for lamp in lamps {
            let name = format!("lamp {lamp}");
            let upsert = tx.conn().engine().on_conflict("name", "version = lamp.version + 1");
            let sql = format!("INSERT INTO lamp (name, version) VALUES (?, 1) {upsert}");
            tx.conn().execute("turning", sql, vec![name.as_str().into()]).await.unwrap();
            let sql = "SELECT version FROM lamp WHERE name = ?";
            let row = tx.conn().fetch_optional("turning", sql, vec![name.as_str().into()]).await.unwrap().unwrap();
            events.push(self.world.event(TURNED, &name, row.int(0).unwrap().unsigned_abs()));
        }
        let ids = events.iter().map(|event| event.id).collect();
        match &self.broker {
            None => {
                outbox::emit(tx.conn(), events).await.unwrap();
                tx.commit().await.unwrap();
            }
            Some(broker) => {
                tx.commit().await.unwrap();
                tokio::task::block_in_place(|| broker.append(events));
            }
        }
        ids
    }

    pub(crate) fn start(&self, projection: &Arc<Projection>) -> Running {
        self.start_on(self.world.db.clone(), projection, quick(2))
    }

    /// Runs the projector as another process would.
    pub(crate) fn start_on(&self, db: Db, projection: &Arc<Projection>, options: Options) -> Running {
        let log = match &self.broker {
            None => Log::Embedded(db.clone()),
            Some(broker) => Log::Kafka(KafkaLog::new(db.clone(), broker.options.clone())),
        };
        let runtime =
            Runtime::new(db, log, self.world.clock.clone()).with(Arc::clone(projection) as Arc<dyn Projector>, options);
        let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
        Running { handle, task: tokio::spawn(runtime.run(shutdown.clone())), shutdown }
    }

    pub(crate) async fn facts(&self) -> BTreeMap<String, i64> {
        self.world.rows("SELECT name, version FROM lamp").await.into_iter().collect()
    }

    /// What readers are given, and which generation that is.
    pub(crate) async fn shown(&self) -> (i64, BTreeMap<String, i64>) {
        let sql = "SELECT name, version, generation FROM lamp_view \
                   WHERE generation = (SELECT live FROM projector_generation WHERE projector = 'lamps')";
        let mut tx = self.world.db.read().await.unwrap();
        let rows = tx.conn().fetch("looking", sql, vec![]).await.unwrap();
        let generation = rows.first().map_or(0, |row| row.int(2).unwrap());
        let row = |row: &tidings_backbone::db::Row| (row.text(0).unwrap(), row.int(1).unwrap());
        (generation, rows.iter().map(row).collect())
    }

    /// Everything is applied once, nobody reads or keeps an old generation, and nothing is left to do.
    pub(crate) async fn assert_whole(&self, generation: i64) {
        let (shown, lamps) = self.shown().await;
        assert_eq!((shown, lamps), (generation, self.facts().await));
        let odd = "SELECT COUNT(*) FROM lamp_view WHERE effects <> version";
        assert_eq!(self.world.count(odd).await, 0, "an event had its effect twice, or not at all");
        let mut tx = self.world.db.read().await.unwrap();
        let sql = "SELECT COUNT(*) FROM lamp_view WHERE generation <> ?";
        let row = tx.conn().fetch_optional("looking", sql, vec![generation.into()]).await.unwrap().unwrap();
        assert_eq!(row.int(0).unwrap(), 0, "rows of other generations are left");
        let live = Generation(generation).identity(NAME);
        for position in tidings_backbone::projector::positions(tx.conn()).await.unwrap() {
            assert_eq!(position.projector, live, "positions of other generations are left");
        }
        let trail = "SELECT COUNT(*) FROM projector_trail WHERE projector <> ?";
        let row = tx.conn().fetch_optional("looking", trail, vec![live.into()]).await.unwrap().unwrap();
        assert_eq!(row.int(0).unwrap(), 0, "trails of other generations are left");
    }

    pub(crate) async fn positions(&self, identity: &str) -> Vec<Offset> {
        let parts = match &self.broker {
            None => vec![Part::outbox()],
            Some(broker) => {
                let topic: Arc<str> = broker.options.topic("switch").into();
                (0..3).map(|number| Part { topic: Arc::clone(&topic), number }).collect()
            }
        };
        let mut found = Vec::new();
        let mut tx = self.world.db.read().await.unwrap();
        for part in parts {
            found.extend(position(&mut tx.conn(), identity, &part).await.unwrap());
        }
        found
    }
}

/// Who asks for it.
pub(crate) fn actor() -> Actor {
    Actor::new("cli:ada")
}

/// Waits until a rebuild is in a state.
pub(crate) async fn until(rebuilds: &Rebuilds, wanted: State) -> Rebuild {
    let waiting = async {
        loop {
            let found = rebuilds.find(NAME).await.unwrap();
            if let Some(rebuild) = found.filter(|rebuild| rebuild.state == wanted) {
                return rebuild;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(rebuild) => rebuild,
        Err(_) => panic!("never {wanted:?}: {:?}", rebuilds.find(NAME).await),
    }
}

/// Rebuilds from the beginning, to the end.
pub(crate) async fn rebuild(rebuilds: &Rebuilds) -> Rebuild {
    rebuilds.start(NAME, Start::default(), &actor(), None).await.unwrap();
    until(rebuilds, State::Done).await
}

impl Projection {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { seed_rows: AtomicI64::new(7), ..Self::default() })
    }

    fn is_faulty(&self, generation: Generation, name: &str, version: i64) -> bool {
        let is_it = |(of, lamp, at): &(Generation, String, i64)| *of == generation && lamp == name && *at == version;
        self.faults.lock().unwrap().iter().any(is_it)
    }
}

#[async_trait::async_trait]
impl Projector for Projection {
    fn name(&self) -> &'static str {
        NAME
    }

    fn event_types(&self) -> &'static [&'static str] {
        &[TURNED]
    }

    async fn apply(&self, batch: &[Recorded], target: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        let _gate = if target.generation == Generation::FIRST { Some(self.gate.lock().await) } else { None };
        for Recorded { event, .. } in batch {
            let (name, version) = (event.key.as_str(), i64::try_from(event.version).unwrap());
            if self.is_faulty(target.generation, name, version) {
                return Err(ApplyError::event("told to fail"));
            }
            let sql = "SELECT version FROM lamp_view WHERE generation = ? AND name = ?";
            let args = vec![target.generation.0.into(), name.into()];
            let row = conn.fetch_optional("reading a lamp", sql, args).await?;
            let seen = row.map_or(Ok(0), |row| row.int(0))?;
            if version <= seen {
                continue;
            }
            if version > seen + 1 {
                return Err(ApplyError::event(format!("{name} is at {seen}, and this is {version}")));
            }
            let upsert = conn.engine().on_conflict("generation, name", "version = ?, effects = effects + 1");
            let sql = format!("INSERT INTO lamp_view (generation, name, version, effects) VALUES (?,?,1,1) {upsert}");
            let args = vec![target.generation.0.into(), name.into(), version.into()];
            conn.execute("keeping a lamp", sql, args).await?;
        }
        Ok(())
    }

    fn generations(&self) -> Option<&dyn Generations> {
        Some(self)
    }

    fn is_replayable(&self) -> bool {
        true
    }
}

#[async_trait::async_trait]
impl Generations for Projection {
    async fn remove(&self, generation: Generation, limit: usize, mut conn: Conn<'_>) -> Result<u64> {
        let limit = i64::try_from(limit).unwrap().min(9);
        let (sql, args) = match conn.engine() {
            DbEngine::Sqlite => (
                "DELETE FROM lamp_view WHERE generation = ? AND name IN \
                 (SELECT name FROM lamp_view WHERE generation = ? LIMIT ?)",
                vec![generation.0.into(), generation.0.into(), limit.into()],
            ),
            DbEngine::Mysql | DbEngine::Mariadb => {
                ("DELETE FROM lamp_view WHERE generation = ? LIMIT ?", vec![generation.0.into(), limit.into()])
            }
        };
        conn.execute("removing lamps", sql, args).await
    }

    fn has_facts(&self) -> bool {
        !self.lacks_facts
    }

    async fn seed(
        &self,
        generation: Generation,
        after: Option<&str>,
        limit: usize,
        mut conn: Conn<'_>,
    ) -> Result<Seeded> {
        let limit = i64::try_from(limit).unwrap().min(self.seed_rows.load(Ordering::SeqCst));
        let sql = "SELECT name, version FROM lamp WHERE name > ? ORDER BY name LIMIT ?";
        let rows = conn.fetch("reading lamps", sql, vec![after.unwrap_or_default().into(), limit.into()]).await?;
        let mut next = None;
        for row in &rows {
            let sql = "INSERT INTO lamp_view (generation, name, version, effects) VALUES (?,?,?,?)";
            let (name, version) = (row.text(0)?, row.int(1)?);
            let args = vec![generation.0.into(), name.as_str().into(), version.into(), version.into()];
            conn.execute("copying lamps", sql, args).await?;
            next = Some(name);
        }
        Ok(Seeded { rows: rows.len() as u64, next })
    }

    async fn check(&self, check: &Check<'_>) -> Result<Checked> {
        let _gate = self.check_gate.lock().await;
        // What is on its way is lag: a lamp that is ahead of its fact, or has other effects than its version, is not.
        let sql = "SELECT COUNT(*) FROM lamp_view v LEFT JOIN lamp l ON l.name = v.name \
                   WHERE v.generation = ? AND (l.name IS NULL OR v.version > l.version OR v.effects <> v.version)";
        let mut tx = check.db.read().await?;
        let row = tx.conn().fetch_optional("checking", sql, vec![check.generation.0.into()]).await?;
        let row = row.ok_or_else(|| Error::Invariant { message: "no count".to_owned() })?;
        let differences = row.int(0)?.unsigned_abs();
        Ok(Checked { differences, in_flight: 0, report: format!("{differences} lamps differ") })
    }
}
