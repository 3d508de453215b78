//! What a rebuild is asked to be: of whom, from where, up to where.

use std::{sync::Arc, time::Duration};

use tidings_backbone::{
    Error,
    projector::rebuild::{Refusal, Source, Start, State, Wish},
};
use tidings_event::Timestamp;
use tidings_testkit::database::Engine;

use super::lamps::{Lamps, NAME, Projection, actor, until};
use crate::world::{Recorder, quick};

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

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_begins_at_an_offset_or_a_time_and_ends_where_it_is_told_to() {
    let lamps = Arc::new(Lamps::on(Engine::Sqlite).await);
    let projection = Projection::new();
    let running = lamps.start(&projection);
    lamps.turn(0..20).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let later = lamps.world.clock.now();
    lamps.turn(20..40).await;
    running.settle().await;
    lamps.world.execute("DELETE FROM lamp_view").await;
    let rebuilds = running.handle.rebuilds();
    let replay = async |source: Source, until_: Option<Source>| {
        let wish = Wish { source, until: until_, in_place: true };
        rebuilds.start(NAME, Start { wish, ..Start::default() }, &actor(), None).await.unwrap();
        until(&rebuilds, State::Done).await;
        lamps.shown().await.1.len()
    };
    assert_eq!(replay(Source::Offset(31), Some(Source::Offset(36))).await, 5);
    assert_eq!(replay(Source::Time(later), None).await, 20);
    assert_eq!(replay(Source::Beginning, Some(Source::Time(later))).await, 40);
    // Readers would be given nothing of what is committed before the log comes there.
    for (source, why) in [
        (Source::Offset(41), "the log ends before this offset"),
        (Source::Time(Timestamp(i64::MAX / 2)), "this moment is yet to come"),
    ] {
        let wish = Wish { source, ..Wish::default() };
        let refused = rebuilds.start(NAME, Start { wish, ..Start::default() }, &actor(), None).await;
        let is_refused = matches!(&refused, Err(Error::Rebuild { refusal: Refusal::Wish(said), .. }) if said == why);
        assert!(is_refused, "{refused:?}");
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
