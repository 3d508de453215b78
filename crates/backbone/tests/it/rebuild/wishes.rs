//! What a rebuild is asked to be: of whom, from where, up to where.

use std::{collections::BTreeSet, sync::Arc};

use tidings_backbone::{
    Error,
    projector::rebuild::{Rebuilds, Refusal, Source, Start, State, Wish},
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};

use super::lamps::{Lamps, NAME, Projection, actor, until};
use crate::world::{Recorder, quick};

on_every_engine!(from_a_time_until_a_time_exactly_the_events_between_are_applied);
on_every_server!(an_offset_is_no_place_in_partitions_and_refused_with_what_to_say_instead);

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_rebuilt_says_so() {
    let world = crate::world::World::new().await;
    let running = world.start(&Recorder::new("recorder"), quick(1));
    let rebuilds = running.handle.rebuilds();
    let refusal = async |projector: &str, wish: Wish| {
        let refused = rebuilds.start(projector, Start { wish, ..Start::default() }, &actor(), None).await;
        match refused {
            Err(Error::Rebuild { refusal, .. }) => refusal,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal("nobody", Wish::default()).await, Refusal::UnknownProjector);
    assert_eq!(refusal("recorder", Wish::default()).await, Refusal::NotRebuildable);
    assert_eq!(refusal("recorder", Wish { in_place: true, ..Wish::default() }).await, Refusal::NotReplayable);
    running.stop().await;
}

/// A moment after all that was committed before, and before all that comes.
async fn moment(lamps: &Lamps) -> Timestamp {
    let last = lamps.world.clock.now();
    loop {
        let now = lamps.world.clock.now();
        if now > last {
            return now;
        }
        tokio::task::yield_now().await;
    }
}

/// Asks for it, and waits until it is done.
async fn done(rebuilds: &Rebuilds, wish: Wish) {
    rebuilds.start(NAME, Start { wish, ..Start::default() }, &actor(), None).await.unwrap();
    until(rebuilds, State::Done).await;
}

async fn refusal(rebuilds: &Rebuilds, wish: Wish) -> String {
    match rebuilds.start(NAME, Start { wish, ..Start::default() }, &actor(), None).await {
        Err(Error::Rebuild { refusal: Refusal::Wish(said), .. }) => said.into_owned(),
        other => panic!("{other:?}"),
    }
}

fn in_place(source: Source, until: Option<Source>) -> Wish {
    Wish { source, until, in_place: true }
}

/// The numbers of the lamps that readers are shown, and of which generation they are.
async fn shown(lamps: &Lamps) -> (i64, BTreeSet<usize>) {
    let (generation, lamps) = lamps.shown().await;
    (generation, lamps.keys().map(|name| name.strip_prefix("lamp ").unwrap().parse().unwrap()).collect())
}

async fn from_a_time_until_a_time_exactly_the_events_between_are_applied(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let running = lamps.start(&Projection::new());
    let mut moments = Vec::new();
    for begin in [0, 20, 40] {
        lamps.turn(begin..begin + 20).await;
        moments.push(Source::Time(moment(&lamps).await));
    }
    let [first, second, third] = moments[..] else { unreachable!("three of them") };
    running.settle().await;
    lamps.world.execute("DELETE FROM lamp_view").await;
    let rebuilds = running.handle.rebuilds();
    for (source, until, expected) in [
        (first, Some(second), 20..40),
        // Nothing was committed since, in any part of the log.
        (third, None, 20..40),
        (second, Some(third), 20..60),
        (first, Some(second), 20..60),
        (Source::Beginning, Some(first), 0..60),
    ] {
        done(&rebuilds, in_place(source, until)).await;
        assert_eq!(shown(&lamps).await, (1, expected.collect()), "{source:?} {until:?}");
    }
    assert_eq!(lamps.world.count("SELECT COUNT(*) FROM lamp_view WHERE effects <> 1").await, 0);
    // Beside what readers are given, it goes on to the present.
    done(&rebuilds, Wish { source: first, ..Wish::default() }).await;
    assert_eq!(shown(&lamps).await, (2, (20..60).collect()));
    // Readers would be given nothing of what is committed before the log comes there.
    let far = Source::Time(Timestamp(i64::MAX / 2));
    for wish in [in_place(far, None), in_place(first, Some(far)), Wish { source: far, ..Wish::default() }] {
        assert_eq!(refusal(&rebuilds, wish).await, "this moment is yet to come");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_ends_before_it_begins_or_would_wait_for_a_switch_is_refused() {
    let lamps = Arc::new(Lamps::on(Engine::Sqlite).await);
    let projection = Projection::new();
    let running = lamps.start(&projection);
    lamps.turn(0..20).await;
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    let (offset, turned) = (Source::Offset, lamps.world.clock.now());
    while lamps.world.clock.now() == turned {
        tokio::task::yield_now().await;
    }
    // Before the first event, and behind the last one.
    let (early, late) = (Source::Time(Timestamp(1)), Source::Time(lamps.world.clock.now()));
    let would = async |source: Source, until: Source, hold: bool| {
        let wish = Wish { source, until: Some(until), in_place: true };
        match rebuilds.would_start(NAME, Start { wish, hold, ..Start::default() }).await {
            Ok(_) => None,
            Err(Error::Rebuild { refusal, .. }) => Some(refusal),
            Err(error) => panic!("{error}"),
        }
    };
    for (source, until) in [(offset(9), offset(8)), (late, early), (offset(2), early), (late, offset(20))] {
        let refused = would(source, until, false).await;
        assert_eq!(refused, Some(Refusal::EndsBeforeItBegins), "{source:?} until {until:?}");
    }
    for (source, until) in [(offset(8), offset(9)), (early, late), (offset(1), late), (early, offset(20))] {
        assert_eq!(would(source, until, false).await, None, "{source:?} until {until:?}");
        assert_eq!(would(source, until, true).await, Some(Refusal::NothingToHold));
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_an_offset_until_an_offset_the_events_between_are_applied() {
    let lamps = Arc::new(Lamps::on(Engine::Sqlite).await);
    let running = lamps.start(&Projection::new());
    lamps.turn(0..40).await;
    running.settle().await;
    lamps.world.execute("DELETE FROM lamp_view").await;
    let rebuilds = running.handle.rebuilds();
    done(&rebuilds, in_place(Source::Offset(31), Some(Source::Offset(36)))).await;
    assert_eq!(shown(&lamps).await.1.len(), 5);
    let wish = Wish { source: Source::Offset(41), ..Wish::default() };
    assert_eq!(refusal(&rebuilds, wish).await, "the log ends before this offset");
    running.stop().await;
}

async fn an_offset_is_no_place_in_partitions_and_refused_with_what_to_say_instead(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let running = lamps.start(&Projection::new());
    lamps.turn(0..40).await;
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    let (offset, time) = (Source::Offset(2), Source::Time(moment(&lamps).await));
    for wish in [
        in_place(offset, None),
        in_place(Source::Beginning, Some(offset)),
        in_place(time, Some(offset)),
        Wish { source: offset, ..Wish::default() },
    ] {
        assert_eq!(refusal(&rebuilds, wish).await, "offsets of partitions differ; say a time instead");
    }
    assert!(rebuilds.find(NAME).await.unwrap().is_none(), "nothing was begun");
    done(&rebuilds, in_place(Source::Beginning, Some(time))).await;
    running.stop().await;
    lamps.assert_whole(1).await;
}
