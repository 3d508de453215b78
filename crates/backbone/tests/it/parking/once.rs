//! Actions that carry an `Idempotency-Key`: once, whoever repeats the request, and as often as he likes.

use futures::future::join_all;
use tidings_backbone::{
    audit::Actor,
    idempotency::IdempotencyKey,
    parking::{self, Discard, Discarded, Filter, Redrive, Refusal, Which},
};
use tidings_testkit::{database::Engine, on_every_engine};

use super::site::{Site, versions};
use crate::world::{Fault, Recorder, quick};

on_every_engine!(
    a_repeated_request_is_answered_as_the_first_and_does_nothing,
    a_refusal_is_repeated_too_and_a_key_for_something_else_is_refused,
);

fn key(fingerprint: u8) -> IdempotencyKey {
    IdempotencyKey { scope: "admin/ada/parked".to_owned(), key: "k".to_owned(), fingerprint: [fingerprint; 32] }
}

/// A site with dead keys `a` and `b`, of three events each, whose projector does not run any more.
async fn dead(engine: Engine) -> Site {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, u32::MAX);
    recorder.fail("b", 1, Fault::Error, u32::MAX);
    let running = site.start(&recorder, quick(1));
    site.emit(versions("a", 1..=3).chain(versions("b", 1..=3))).await;
    running.settle().await;
    running.stop().await;
    site
}

impl Site {
    async fn redrive_once(&self, key: &IdempotencyKey, wanted: &str) -> Result<parking::Plan, Refusal> {
        let wanted = Redrive { filter: Filter::one("recorder", wanted), ..Redrive::default() };
        let redriven = parking::redrive(&self.db, &wanted, &Actor::new("ada"), Some(key), self.clock.now()).await;
        redriven.unwrap()
    }

    async fn discard_once(&self, key: &IdempotencyKey, which: Which) -> Result<Discarded, Refusal> {
        let (projector, reason) = ("recorder".to_owned(), "it is poison".parse().unwrap());
        let wanted = Discard { projector, key: "b".to_owned(), which, reason };
        parking::discard(&self.db, &wanted, &Actor::new("ada"), Some(key), self.clock.now()).await.unwrap()
    }
}

async fn a_repeated_request_is_answered_as_the_first_and_does_nothing(engine: Engine) {
    let site = dead(engine).await;
    let (redrive, discard) = (key(1), IdempotencyKey { key: "another".to_owned(), ..key(2) });
    let plans = join_all((0..5).map(|_| site.redrive_once(&redrive, "a"))).await;
    let plan = plans[0].clone().unwrap();
    assert_eq!((plan.count, plan.waiting, plan.keys[0].key.as_str()), (1, 3, "a"));
    assert!(plans.iter().all(|other| other.as_ref() == Ok(&plan)), "{plans:?}");
    assert_eq!(site.audit().await.len(), 1, "once, though five asked at once");

    let head = Which::Id(site.waiting("b").await[0].event_id.clone().unwrap());
    let discards = join_all((0..5).map(|_| site.discard_once(&discard, head.clone()))).await;
    let discarded = discards[0].clone().unwrap();
    assert!(discarded.was_head && discards.iter().all(|other| other.as_ref() == Ok(&discarded)), "{discards:?}");
    assert_eq!((site.waiting("b").await.len(), site.audit().await.len()), (2, 2));

    // Whatever has become of the keys since.
    site.execute("DELETE FROM parked_event").await;
    site.execute("DELETE FROM parked_key").await;
    assert_eq!(site.redrive_once(&redrive, "a").await, Ok(plan));
    assert_eq!(site.discard_once(&discard, head).await, Ok(discarded));
    assert_eq!(site.audit().await.len(), 2);
}

async fn a_refusal_is_repeated_too_and_a_key_for_something_else_is_refused(engine: Engine) {
    let site = dead(engine).await;
    assert_eq!(site.redrive_once(&key(1), "c").await, Err(Refusal::NoneParked));
    site.execute("UPDATE parked_key SET event_key = 'c' WHERE event_key = 'a'").await;
    assert_eq!(site.redrive_once(&key(1), "c").await, Err(Refusal::NoneParked), "as it was told before");
    assert_eq!(site.redrive_once(&key(2), "b").await, Err(Refusal::KeyReused));
    let head = Which::Id(site.waiting("b").await[0].event_id.clone().unwrap());
    assert_eq!(site.discard_once(&key(2), head).await, Err(Refusal::KeyReused));
    assert_eq!((site.waiting("b").await.len(), site.audit().await.len()), (3, 0));
}
