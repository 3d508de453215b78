//! Who may touch a key: an operator beside the projector's task, and a former owner beside the new one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidings_backbone::{
    Conn, Durability,
    audit::Actor,
    log::Recorded,
    parking::{self, Filter, Redrive, State, Which},
    projector::{ApplyError, Options, Projector, Runtime, Target},
};
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::site::{Site, versions};
use crate::world::{Fault, PATIENCE, Recorder, Running, quick};

on_every_engine!(an_operator_beside_the_projector_never_loses_or_doubles_an_event,);
on_every_server!(
    a_former_owner_that_was_frozen_while_it_tried_a_key_changes_nothing,
    what_is_appended_while_somebody_frees_its_key_is_not_left_behind,
    whoever_frees_a_key_while_another_has_taken_over_changes_nothing,
);

async fn an_operator_beside_the_projector_never_loses_or_doubles_an_event(engine: Engine) {
    const KEYS: u64 = 4;
    const LAST: u64 = 150;
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    for version in (1..=LAST).step_by(9) {
        for key in 0..KEYS {
            recorder.fail(&format!("k{key}"), version + key, Fault::Error, 2);
        }
    }
    let running = site.start(&recorder, Options { batch_events_max: 16, ..quick(2) });
    let writing = async {
        for version in 1..=LAST {
            site.emit((0..KEYS).map(|key| (format!("k{key}"), version))).await;
            // Kafka's client is waited for without awaiting.
            tokio::task::yield_now().await;
        }
    };
    // Redrives whatever is parked all the time, and takes out the head or the last that waits, in turn.
    let done = AtomicBool::new(false);
    let operating = async {
        let mut round = 0_usize;
        while !done.load(Ordering::SeqCst) {
            round += 1;
            for parked in site.parked().await {
                if round.is_multiple_of(3) {
                    let waiting = site.waiting(&parked.key).await;
                    let chosen = if round.is_multiple_of(2) { waiting.first() } else { waiting.last() };
                    let Some(chosen) = chosen else { continue };
                    // It may have been applied meanwhile: then it is refused.
                    let at = Which::At(Some(chosen.part.clone()), chosen.offset);
                    is_done_or_may_be_repeated(site.discard(&parked.key, at).await);
                } else {
                    let wanted = Redrive { filter: Filter::one("recorder", &parked.key), ..Redrive::default() };
                    let (actor, now) = (Actor::new("cli:ada"), site.clock.now());
                    is_done_or_may_be_repeated(parking::redrive(&site.db, &wanted, &actor, None, now).await);
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let working = async {
        writing.await;
        tokio::time::timeout(PATIENCE, async {
            while !(running.handle.settle(PATIENCE).await.unwrap() && site.parked().await.is_empty()) {}
        })
        .await
        .unwrap();
        done.store(true, Ordering::SeqCst);
    };
    tokio::join!(operating, working);
    running.stop().await;

    each_is_applied_or_discarded_once(&site, KEYS, LAST).await;
}

/// Whoever meets another at a row may be sent away, and nothing is changed then.
fn is_done_or_may_be_repeated<T: std::fmt::Debug>(done: tidings_backbone::Result<T>) {
    assert!(done.as_ref().err().is_none_or(tidings_backbone::Error::is_transient), "{done:?}");
}

async fn each_is_applied_or_discarded_once(site: &Site, keys: u64, last: u64) {
    assert_eq!(site.count("SELECT COUNT(*) FROM parked_event").await, 0, "nothing is left behind under a free key");
    let applied = site.applied().await;
    let discarded: Vec<(String, i64)> = site
        .audit()
        .await
        .into_iter()
        .filter(|record| record.action == "parking.discard")
        .map(|record| {
            let details: serde_json::Value = serde_json::from_str(&record.details).unwrap();
            let event = tidings_event::cloudevents::json::decode(details["event"].to_string().as_bytes()).unwrap();
            (event.key, i64::try_from(event.version).unwrap())
        })
        .collect();
    for key in (0..keys).map(|key| format!("k{key}")) {
        assert!(applied[&key].is_sorted(), "{key} is applied in order: {:?}", applied[&key]);
        let mut all = applied[&key].clone();
        all.extend(discarded.iter().filter(|(of, _)| *of == key).map(|(_, version)| version));
        all.sort_unstable();
        let last = i64::try_from(last).unwrap();
        assert_eq!(all, (1..=last).collect::<Vec<_>>(), "{key}: each event is applied or discarded, once");
    }
}

/// A projector that stands still once, after it has written the effects of a batch of one key.
struct Gate {
    recorder: Arc<Recorder>,
    key: &'static str,
    is_armed: AtomicBool,
    reached: Notify,
    open: Notify,
}

#[async_trait::async_trait]
impl Projector for Gate {
    fn name(&self) -> &'static str {
        self.recorder.name()
    }

    fn event_types(&self) -> &'static [&'static str] {
        self.recorder.event_types()
    }

    async fn apply(&self, batch: &[Recorded], target: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        self.recorder.apply(batch, target, conn.reborrow()).await?;
        let is_meant = batch.iter().any(|recorded| recorded.event.key == self.key);
        if is_meant && self.is_armed.swap(false, Ordering::SeqCst) {
            self.reached.notify_one();
            self.open.notified().await;
        }
        Ok(())
    }
}

/// A runtime as another process would have it, whose projector can be made to stand still.
async fn gated(site: &Site, recorder: &Arc<Recorder>) -> (Arc<Gate>, Running) {
    let (reached, open) = Default::default();
    let gate = Gate { recorder: Arc::clone(recorder), key: "a", is_armed: AtomicBool::new(false), reached, open };
    let gate = Arc::new(gate);
    let options = Options { apply_time_max: Duration::from_mins(10), ..quick(1) };
    let runtime = Runtime::new(site.reopen().await, site.log.clone(), site.clock.clone())
        .with(Arc::clone(&gate) as Arc<dyn Projector>, options);
    let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
    (gate, Running { handle, task: tokio::spawn(runtime.run(shutdown.clone())), shutdown })
}

async fn a_former_owner_that_was_frozen_while_it_tried_a_key_changes_nothing(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 1);
    let (gate, former) = gated(&site, &recorder).await;
    site.emit(versions("a", 1..=3)).await;
    former.settle().await;
    assert_eq!(site.only_parked().await.state, State::Dead);

    // It stands still in the middle of the key's transaction. Kafka takes its partitions from it, since it does not
    // answer any more; those that come to another one are read on from the position in the database.
    gate.is_armed.store(true, Ordering::SeqCst);
    site.redrive_key("a").await;
    gate.reached.notified().await;
    former.shutdown.cancel();
    let new = site.start(&recorder, quick(1));
    let others: Vec<String> = (0..50).map(|number| format!("b{number}")).collect();
    site.emit(others.iter().flat_map(|key| versions(key, 1..=2)).chain(versions("a", 4..=5))).await;
    let applied = async || site.count("SELECT COUNT(*) FROM applied WHERE event_key LIKE 'b%'").await;
    site.until("the other keys' events are applied although the key is held", async || applied().await == 100).await;
    assert_eq!(site.only_parked().await.waiting, 5, "later events of the key wait behind it");

    gate.open.notify_one();
    former.stop().await;
    new.settle().await;
    new.stop().await;
    assert_eq!(site.parked().await, []);
    assert_eq!(site.applied().await["a"], [1, 2, 3, 4, 5], "once each, by whoever owned the part at the end");
}

/// Waits until a transaction of this database waits for a row.
async fn until_one_waits(site: &Site) {
    let waiting = "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p \
                   ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()";
    let one_waits = async || {
        let mut tx = site.db.read().await.unwrap();
        // MySQL tells nothing while some statement that is under way has bytes that are no text.
        let told = tx.conn().fetch("looking who waits", waiting, vec![]).await;
        told.is_ok_and(|rows| rows[0].int(0).unwrap() > 0)
    };
    let waits = async {
        while !one_waits().await {
            // The server tells nothing new to whoever asks more often than ten times a second.
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.unwrap_or_else(|_| panic!("no transaction came to wait"));
}

async fn what_is_appended_while_somebody_frees_its_key_is_not_left_behind(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, u32::MAX);
    let running = site.start(&recorder, quick(1));
    site.emit(versions("a", 1..=1)).await;
    running.settle().await;

    // As somebody does who frees the key: he holds the position, and has not committed yet.
    let mut tx = site.db.write(Durability::Full).await.unwrap();
    for sql in
        ["SELECT log_offset FROM projector_position FOR UPDATE", "DELETE FROM parked_event", "DELETE FROM parked_key"]
    {
        tx.conn().fetch("freeing", sql, vec![]).await.unwrap();
    }
    site.emit(versions("a", 2..=3)).await;
    until_one_waits(&site).await;
    tx.commit().await.unwrap();
    running.settle().await;
    running.stop().await;
    assert_eq!(site.count("SELECT COUNT(*) FROM parked_event").await, 0);
    assert_eq!(site.applied().await["a"], [2, 3]);
}

async fn whoever_frees_a_key_while_another_has_taken_over_changes_nothing(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 1);
    let (gate, former) = gated(&site, &recorder).await;
    site.emit(versions("a", 1..=3)).await;
    former.settle().await;
    gate.is_armed.store(true, Ordering::SeqCst);
    site.redrive_key("a").await;
    gate.reached.notified().await;

    // As somebody does who has taken over the part of the log: he appends once more what came last, moves the
    // position past it, and has not committed yet.
    let mut tx = site.db.write(Durability::Full).await.unwrap();
    for sql in [
        "INSERT INTO parked_event (projector, part, event_key, log_offset, occurred_at, event) \
         SELECT projector, part, event_key, log_offset + 1, occurred_at, event FROM parked_event \
         ORDER BY log_offset DESC LIMIT 1",
        "UPDATE projector_position SET log_offset = log_offset + 1 \
         WHERE part IN (SELECT part FROM parked_key)",
    ] {
        tx.conn().execute("taking over", sql, vec![]).await.unwrap();
    }
    gate.open.notify_one();
    until_one_waits(&site).await;
    tx.commit().await.unwrap();
    former.settle().await;
    former.stop().await;
    assert_eq!(
        recorder.tries_alone("a", 1),
        3,
        "it failed, was tried in vain by a former owner, and then as it should"
    );
    assert_eq!(site.applied().await["a"], [1, 2, 3, 3]);
    assert_eq!(site.count("SELECT COUNT(*) FROM parked_event").await, 0);
}
