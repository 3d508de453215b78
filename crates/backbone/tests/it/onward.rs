//! Reading on where several writers work: a lower number may be committed after a higher one.

use std::time::Duration;

use tidings_backbone::{
    Durability, Tx,
    log::{Offset, Recorded},
    outbox,
};
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};

use crate::world::World;

const TURNED: &str = "switch.turned";

fn offsets(events: &[Recorded]) -> Vec<i64> {
    events.iter().map(|recorded| recorded.offset.0).collect()
}

/// A transaction that has written ten events and is still open.
async fn open_insert(world: &World) -> Tx {
    let mut tx = world.db.write(Durability::Full).await.unwrap();
    let events = world.events(TURNED, (1..=10).map(|version| ("late".to_owned(), version)));
    outbox::emit(tx.conn(), events).await.unwrap();
    tx
}

async fn ten_more(world: &World) {
    world.emit(TURNED, (1..=10).map(|version| ("soon".to_owned(), version))).await;
}

on_every_engine!(whoever_reads_on_is_told_every_event_once_whatever_was_removed);

async fn whoever_reads_on_is_told_every_event_once_whatever_was_removed(engine: Engine) {
    let world = World::on(engine).await;
    ten_more(&world).await;
    world.execute("DELETE FROM outbox WHERE seq < 3 OR seq = 7").await;
    // A row that is no event is passed over.
    world.execute("UPDATE outbox SET payload = '{' WHERE seq = 5").await;
    let mut seen = Vec::new();
    loop {
        let after = seen.last().copied().unwrap_or(0);
        let events = world.log.read_on(Offset(after), 3).await.unwrap();
        if events.is_empty() {
            break;
        }
        seen.extend(offsets(&events));
    }
    assert_eq!(seen, [3, 4, 6, 8, 9, 10]);
    assert_eq!(world.log.steady_head().await.unwrap(), Offset(10));
}

on_every_server!(
    what_is_committed_late_below_is_not_passed,
    what_was_rolled_back_is_passed,
    whoever_begins_at_the_steady_head_misses_nothing_that_comes,
    an_insert_that_ends_soon_is_waited_for,
);

async fn what_is_committed_late_below_is_not_passed(engine: Engine) {
    let world = World::on(engine).await;
    ten_more(&world).await;
    let late = open_insert(&world).await;
    ten_more(&world).await;
    // As it shows now, and for somebody who goes on from there.
    assert_eq!(world.log.read(Offset(0), 100).await.unwrap().len(), 20);
    assert_eq!(offsets(&world.log.read_on(Offset(0), 100).await.unwrap()), (1..=10).collect::<Vec<_>>());
    assert!(world.log.read_on(Offset(10), 100).await.unwrap().is_empty());
    late.commit().await.unwrap();
    assert_eq!(offsets(&world.log.read_on(Offset(10), 100).await.unwrap()), (11..=30).collect::<Vec<_>>());
}

async fn what_was_rolled_back_is_passed(engine: Engine) {
    let world = World::on(engine).await;
    let late = open_insert(&world).await;
    ten_more(&world).await;
    late.rollback().await.unwrap();
    assert_eq!(offsets(&world.log.read_on(Offset(0), 100).await.unwrap()), (11..=20).collect::<Vec<_>>());
}

async fn whoever_begins_at_the_steady_head_misses_nothing_that_comes(engine: Engine) {
    let world = World::on(engine).await;
    ten_more(&world).await;
    let late = open_insert(&world).await;
    ten_more(&world).await;
    let head = world.log.steady_head().await.unwrap();
    assert_eq!(head, Offset(10));
    late.commit().await.unwrap();
    assert_eq!(world.log.read_on(head, 100).await.unwrap().len(), 20);
    assert_eq!(world.log.steady_head().await.unwrap(), Offset(30));
}

async fn an_insert_that_ends_soon_is_waited_for(engine: Engine) {
    let world = World::on(engine).await;
    let late = open_insert(&world).await;
    ten_more(&world).await;
    let ends = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        late.commit().await.unwrap();
    };
    let (events, ()) = tokio::join!(world.log.read_on(Offset(0), 100), ends);
    assert_eq!(events.unwrap().len(), 20);
}
