//! Another transaction is in the way: the server ends the ledger's for its sake, and the ledger decides anew.

use std::sync::{Arc, Mutex};

use tidings_backbone::{
    Conn, Durability, Error, Tx,
    ledger::{Decide, Ledger, SubmitError},
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_server};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{EVENTS, FACTS};
use crate::world::{PATIENCE, Switches, World};

on_every_server!(
    a_command_outlives_a_deadlock_that_the_server_ends_at_its_cost,
    a_command_outlives_a_wait_for_a_row_that_lasts_longer_than_it_may,
);

/// Turns switches, then locks the one called `last`; tells how far it is.
struct Deciding {
    switches: Switches,
    told: Told,
}

#[derive(Clone, Default)]
struct Told {
    /// Decisions begun, and those of them that have turned their switches.
    decisions: Arc<watch::Sender<(u32, u32)>>,
    failures: Arc<Mutex<Vec<String>>>,
}

impl Decide for Deciding {
    type Command = (String, i64);
    type Outcome = bool;
    type Refusal = String;

    const NAME: &'static str = "contended switch";

    async fn decide(
        &self,
        commands: &[&(String, i64)],
        at: Timestamp,
        conn: Conn<'_>,
    ) -> tidings_backbone::Result<Vec<Result<bool, String>>> {
        self.told.decisions.send_modify(|(begun, _)| *begun += 1);
        let decided = self.try_decide(commands, at, conn).await;
        self.told.failures.lock().unwrap().extend(decided.as_ref().err().map(|error| Error::chain(error)));
        decided
    }
}

impl Deciding {
    async fn try_decide(
        &self,
        commands: &[&(String, i64)],
        at: Timestamp,
        mut conn: Conn<'_>,
    ) -> tidings_backbone::Result<Vec<Result<bool, String>>> {
        let decided = self.switches.decide(commands, at, conn.reborrow()).await?;
        self.told.decisions.send_modify(|(_, turned)| *turned += 1);
        conn.fetch("locking", LOCK_LAST, vec![]).await?;
        Ok(decided)
    }
}

const LOCK_LAMP: &str = "SELECT is_on FROM switch WHERE name = 'lamp' FOR UPDATE";
const LOCK_LAST: &str = "SELECT is_on FROM switch WHERE name = 'last' FOR UPDATE";

/// The answer to a command, under way.
type Answering = JoinHandle<Result<Result<bool, String>, SubmitError>>;

/// A database whose switches are off, with a ledger that is asked to turn one on.
struct Site {
    world: World,
    ledger: Ledger<Deciding>,
    told: Told,
    _shutdown: CancellationToken,
}

impl Site {
    async fn on(engine: Engine) -> Self {
        let world = World::on(engine).await;
        world.execute("INSERT INTO switch (name, is_on) VALUES ('lamp', 0), ('last', 0)").await;
        let told = Told::default();
        let deciding = Deciding { switches: Switches { ids: world.ids.clone() }, told: told.clone() };
        let (ledger, worker) = Ledger::new(deciding, world.db.clone(), world.clock.clone());
        let shutdown = CancellationToken::new();
        tokio::spawn(worker.run(shutdown.clone()));
        Self { world, ledger, told, _shutdown: shutdown }
    }

    async fn other(&self) -> Tx {
        self.world.db.write(Durability::Full).await.unwrap()
    }

    fn turn_on(&self) -> Answering {
        let ledger = self.ledger.clone();
        tokio::spawn(async move { ledger.submit(("lamp".to_owned(), 1), None).await })
    }

    /// Waits until the ledger has begun and turned so often; it must not answer before.
    async fn until(&self, decisions: (u32, u32), answering: &mut Answering) {
        let mut told = self.told.decisions.subscribe();
        tokio::select! {
            answer = answering => panic!("{answer:?} instead of {decisions:?}: {:?}", self.failures()),
            held = tokio::time::timeout(PATIENCE, told.wait_for(|told| *told == decisions)) => drop(held.unwrap()),
        }
    }

    fn failures(&self) -> Vec<String> {
        self.told.failures.lock().unwrap().clone()
    }

    /// The command failed once, with this number, and is then done, once.
    async fn assert_done_after(&self, code: &str, answering: Answering) {
        let answer = tokio::time::timeout(PATIENCE, answering).await.unwrap().unwrap();
        let failures = self.failures();
        assert_eq!(answer.unwrap(), Ok(true), "{failures:?}");
        assert!(failures.len() == 1 && failures[0].contains(code), "{failures:?}");
        assert_eq!((self.world.count(FACTS).await, self.world.count(EVENTS).await), (1, 1));
    }
}

async fn a_command_outlives_a_deadlock_that_the_server_ends_at_its_cost(engine: Engine) {
    let site = Site::on(engine).await;
    let mut other = site.other().await;
    // The server ends the one that has done less.
    let rows: Vec<String> = (0..200).map(|number| format!("('{number}', 0)")).collect();
    let insert = format!("INSERT INTO switch (name, is_on) VALUES {}", rows.join(", "));
    other.conn().execute("doing much", insert, vec![]).await.unwrap();
    other.conn().fetch("locking", LOCK_LAST, vec![]).await.unwrap();
    let mut answering = site.turn_on();
    site.until((1, 1), &mut answering).await;
    other.conn().fetch("locking", LOCK_LAMP, vec![]).await.unwrap();
    other.rollback().await.unwrap();
    site.assert_done_after("1213", answering).await;
}

async fn a_command_outlives_a_wait_for_a_row_that_lasts_longer_than_it_may(engine: Engine) {
    let site = Site::on(engine).await;
    let mut other = site.other().await;
    other.conn().fetch("locking", LOCK_LAMP, vec![]).await.unwrap();
    let mut answering = site.turn_on();
    site.until((2, 0), &mut answering).await;
    other.rollback().await.unwrap();
    site.assert_done_after("1205", answering).await;
}
