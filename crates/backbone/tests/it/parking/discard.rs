//! Discarding an event: it is kept in the audit, and the rest of its key goes on.

use serde_json::Value;
use tidings_backbone::{
    log::{Offset, Part},
    parking::{Refusal, State, Which},
};
use tidings_testkit::{database::Engine, on_every_engine};

use super::site::{Site, version, versions};
use crate::world::{Fault, Recorder, quick};

on_every_engine!(
    the_head_of_a_dead_key_is_discarded_and_the_rest_is_applied,
    an_event_in_the_middle_is_discarded_and_its_key_stays_dead,
    a_key_whose_only_event_is_discarded_is_free,
    what_is_no_event_is_discarded_by_its_offset_and_kept_as_far_as_it_could_be_read,
    what_is_not_there_or_not_one_is_refused,
    a_discard_and_its_audit_are_one_transaction,
);

/// A site with a dead key `a` of so many events.
async fn dead(engine: Engine, last: u64) -> (Site, crate::world::Running, std::sync::Arc<Recorder>) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, u32::MAX);
    let running = site.start(&recorder, quick(2));
    site.emit(versions("a", 1..=last)).await;
    running.settle().await;
    (site, running, recorder)
}

async fn id_of(site: &Site, wanted: u64) -> Which {
    let events = site.waiting("a").await;
    let event = events.iter().find(|event| version(event) == wanted).unwrap();
    Which::Id(event.event_id.clone().unwrap())
}

async fn the_head_of_a_dead_key_is_discarded_and_the_rest_is_applied(engine: Engine) {
    let (site, running, recorder) = dead(engine, 5).await;
    recorder.fail("a", 2, Fault::Error, 1);
    let events = site.waiting("a").await;
    let discarded = site.discard("a", id_of(&site, 1).await).await.unwrap().unwrap();
    assert_eq!((discarded.was_head, discarded.freed), (true, false));
    running.settle().await;
    assert_eq!(site.applied().await["a"], [2, 3, 4, 5], "the next one has fresh attempts");
    site.emit(versions("a", 6..=6)).await;
    running.settle().await;
    running.stop().await;
    assert_eq!(site.applied().await["a"], [2, 3, 4, 5, 6]);

    let record = site.audit().await.remove(0);
    assert_eq!((record.actor.as_str(), record.action.as_str()), ("cli:ada", "parking.discard"));
    assert_eq!((record.projector.as_deref(), record.key.as_deref()), (Some("recorder"), Some("a")));
    assert_eq!((record.event_id, record.reason.as_deref()), (events[0].event_id.clone(), Some("it is poison")));
    assert!(record.details.contains(&events[0].event), "the event is kept to the letter: {}", record.details);
    let details: Value = serde_json::from_str(&record.details).unwrap();
    assert_eq!(details["offset"], events[0].offset.0);
}

async fn an_event_in_the_middle_is_discarded_and_its_key_stays_dead(engine: Engine) {
    let (site, running, recorder) = dead(engine, 5).await;
    let before = site.only_parked().await;
    let discarded = site.discard("a", id_of(&site, 3).await).await.unwrap().unwrap();
    assert_eq!((discarded.was_head, discarded.freed), (false, false));
    let after = site.only_parked().await;
    assert_eq!((after.state, after.attempts, after.waiting), (State::Dead, before.attempts, 4));
    recorder.fail("a", 1, Fault::Error, 0);
    site.redrive_key("a").await;
    running.settle().await;
    running.stop().await;
    assert_eq!(site.applied().await["a"], [1, 2, 4, 5]);
}

async fn a_key_whose_only_event_is_discarded_is_free(engine: Engine) {
    let (site, running, _) = dead(engine, 1).await;
    let discarded = site.discard("a", id_of(&site, 1).await).await.unwrap().unwrap();
    assert_eq!((discarded.was_head, discarded.freed), (true, true));
    assert_eq!(site.parked().await, []);
    site.emit(versions("a", 2..=3)).await;
    running.settle().await;
    running.stop().await;
    assert_eq!(site.applied().await["a"], [2, 3]);
}

async fn what_is_no_event_is_discarded_by_its_offset_and_kept_as_far_as_it_could_be_read(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    site.emit(versions("a", 1..=1)).await;
    match &site.broker {
        None => {
            site.emit(versions("a", 2..=2)).await;
            site.execute("UPDATE outbox SET payload = X'ff' WHERE seq = 2").await;
        }
        Some(broker) => broker.append_raw("switch", b"a", b"no event"),
    }
    site.emit(versions("a", 3..=3)).await;
    let running = site.start(&recorder, quick(2));
    running.settle().await;
    let waiting = site.waiting("a").await;
    assert_eq!((waiting[0].is_event(), waiting[1].is_event(), waiting.len()), (false, true, 2));
    assert_eq!(waiting[0].event_id, None);
    let at = Which::At(Some(waiting[0].part.clone()), waiting[0].offset);
    site.discard("a", at).await.unwrap().unwrap();
    running.settle().await;
    running.stop().await;
    assert_eq!(site.applied().await["a"], [1, 3]);
    assert!(site.audit().await[0].details.contains(&waiting[0].event));
}

async fn what_is_not_there_or_not_one_is_refused(engine: Engine) {
    let (site, running, _) = dead(engine, 3).await;
    running.stop().await;
    let event = site.waiting("a").await.remove(0);
    let id = Which::Id(event.event_id.clone().unwrap());
    assert_eq!(site.discard("b", id.clone()).await.unwrap(), Err(Refusal::NoneParked));
    let elsewhere = Part { topic: "elsewhere".into(), number: 7 };
    for which in [
        Which::Id("019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c".to_owned()),
        Which::At(None, Offset(999_999)),
        Which::At(Some(elsewhere.clone()), event.offset),
    ] {
        assert_eq!(site.discard("a", which).await.unwrap(), Err(Refusal::NoSuchEvent));
    }
    // The same event once more, as it may stand in a log twice, and in another part.
    for table in ["parked_event", "parked_key"] {
        let columns = match table {
            "parked_event" => {
                "projector, 'elsewhere/7', event_key, log_offset, occurred_at, event, event_type, event_id"
            }
            _ => "projector, 'elsewhere/7', event_key, state, attempts, next_attempt_at, error, parked_at",
        };
        let names = columns.replace("'elsewhere/7'", "part");
        let sql = format!("INSERT INTO {table} ({names}) SELECT {columns} FROM {table}");
        let mut tx = site.db.write(tidings_backbone::Durability::Full).await.unwrap();
        tx.conn().execute("doubling", sql, vec![]).await.unwrap();
        tx.commit().await.unwrap();
    }
    let mut at = vec![(elsewhere.clone(), event.offset), (event.part.clone(), event.offset)];
    at.sort_by_key(|(part, _)| part.to_string());
    for which in [id, Which::At(None, event.offset)] {
        let refused = site.discard("a", which).await.unwrap();
        assert_eq!(refused, Err(Refusal::SeveralEvents { at: at.clone() }));
    }
    assert_eq!(site.audit().await, [], "what was refused is no action");
    site.discard("a", Which::At(Some(elsewhere), event.offset)).await.unwrap().unwrap();
    assert_eq!(site.waiting("a").await.len(), 5);
}

async fn a_discard_and_its_audit_are_one_transaction(engine: Engine) {
    let (site, running, _) = dead(engine, 3).await;
    let (before, events) = (site.only_parked().await, site.waiting("a").await);
    let which = id_of(&site, 1).await;
    site.execute("ALTER TABLE audit RENAME TO gone").await;
    site.discard("a", which.clone()).await.unwrap_err();
    assert_eq!((site.only_parked().await, site.waiting("a").await), (before, events));
    site.execute("ALTER TABLE gone RENAME TO audit").await;
    site.discard("a", which).await.unwrap().unwrap();
    running.settle().await;
    running.stop().await;
    assert_eq!(site.applied().await["a"], [2, 3]);
}
