//! However much waits, what is read at once and held at once has a bound.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tidings_backbone::{
    Conn,
    limits::{EVENT_PAYLOAD_BYTES_MAX, PROJECTOR_BATCH_BYTES_MAX},
    log::{self, Offset, Recorded},
    parking,
    projector::{ApplyError, Options, Projector, Target},
};
use tidings_event::Event;
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};

use crate::{
    kafka::Broker,
    world::{Fault, Recorder, World, quick},
};

on_every_server!(a_page_of_a_long_backlog_reads_its_own_rows_and_no_others);
on_every_engine!(a_backlog_is_handed_over_in_batches_bounded_by_events_and_by_bytes);

const TURNED: &str = "switch.turned";

fn events(keys: u64, versions: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = (String, u64)> {
    versions.flat_map(move |version| (0..keys).map(move |key| (format!("k{key}"), version)))
}

/// Rows that this connection's statements have read so far, as its server counts them.
async fn rows_read(conn: &mut Conn<'_>) -> i64 {
    let rows = conn.fetch("counting", "SHOW SESSION STATUS LIKE 'Handler_read%'", vec![]).await.unwrap();
    rows.iter().map(|row| row.text(1).unwrap().parse::<i64>().unwrap()).sum()
}

async fn a_page_of_a_long_backlog_reads_its_own_rows_and_no_others(engine: Engine) {
    const EVENTS: u64 = 12_000;
    const PAGE: usize = 50;
    let world = World::on(engine).await;
    // Of two keys one is dead, and half of all waits behind it. The lease is a file that tests share.
    let name = format!("backlog-{engine:?}").leak();
    let recorder = Recorder::new(name);
    recorder.fail("k1", 1, Fault::Error, u32::MAX);
    for part in 0..3 {
        let versions = EVENTS / 2 / 3;
        world.emit(TURNED, events(2, part * versions + 1..=(part + 1) * versions)).await;
    }
    let running = world.start(&recorder, quick(1));
    running.settle().await;
    running.stop().await;
    let middle = Offset(i64::try_from(EVENTS / 2).unwrap());
    let part = world.parked().await[0].part.clone();
    assert_eq!(world.parked().await[0].waiting, EVENTS / 2);

    let mut tx = world.db.read().await.unwrap();
    let mut conn = tx.conn();
    // Asking is counted as well.
    let before = rows_read(&mut conn).await;
    let asking = rows_read(&mut conn).await - before;
    let mut before = rows_read(&mut conn).await;
    let page = log::read_after(&mut conn, middle, PAGE).await.unwrap();
    let mut read = Vec::new();
    let mut note = async |what, conn: &mut Conn<'_>| {
        let now = rows_read(conn).await;
        read.push((what, now - before - asking));
        before = now;
    };
    note("a page of the outbox", &mut conn).await;
    let extent = log::extent(&mut conn).await.unwrap();
    note("the extent of the outbox", &mut conn).await;
    let (waiting, _) = parking::events(conn.reborrow(), name, "k1", Some((&part, middle)), PAGE).await.unwrap();
    note("a page of what waits behind a key", &mut conn).await;
    assert_eq!((page.len(), extent.head.0, waiting.len()), (PAGE, i64::try_from(EVENTS).unwrap(), PAGE));
    let rows_max = i64::try_from(PAGE).unwrap() + 10;
    assert!(read.iter().all(|(_, rows)| (1..=rows_max).contains(rows)), "{read:?}");
}

/// Notes the largest of the batches that it is given.
struct Measuring {
    inner: Arc<Recorder>,
    events: AtomicUsize,
    bytes: AtomicUsize,
}

#[async_trait::async_trait]
impl Projector for Measuring {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn event_types(&self) -> &'static [&'static str] {
        self.inner.event_types()
    }

    async fn apply(&self, batch: &[Recorded], target: Target, conn: Conn<'_>) -> Result<(), ApplyError> {
        self.events.fetch_max(batch.len(), Ordering::SeqCst);
        let bytes = batch.iter().map(|recorded| recorded.event.payload.get().len()).sum();
        self.bytes.fetch_max(bytes, Ordering::SeqCst);
        self.inner.apply(batch, target, conn).await
    }
}

async fn a_backlog_is_handed_over_in_batches_bounded_by_events_and_by_bytes(engine: Engine) {
    const BATCH: usize = 300;
    let world = World::on(engine).await;
    world.record_order().await;
    let large = serde_json::value::to_raw_value(&"x".repeat(EVENT_PAYLOAD_BYTES_MAX - 2)).unwrap();
    let large = |event: Event| Event { payload: large.clone(), ..event };
    // 10 MiB in 40 events, and many small ones.
    let mut backlog: Vec<Event> = world.events(TURNED, events(1, 1..=40)).into_iter().map(large).collect();
    backlog.extend(world.events(TURNED, events(3, 41..=1_000)));
    let count = backlog.len();
    let world = if engine == Engine::Sqlite {
        let mut tx = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
        tidings_backbone::outbox::emit(tx.conn(), backlog).await.unwrap();
        tx.commit().await.unwrap();
        world
    } else {
        let broker = Broker::new(1).await;
        tokio::task::block_in_place(|| broker.append(backlog));
        world.reading(&broker).await
    };
    let inner = Recorder::new("recorder");
    let measuring = Arc::new(Measuring { inner, events: AtomicUsize::new(0), bytes: AtomicUsize::new(0) });
    let options = Options { batch_events_max: BATCH, apply_time_max: Duration::from_secs(60), ..quick(1) };
    let running = world.start_as(Arc::clone(&measuring) as Arc<dyn Projector>, options);
    running.settle().await;
    running.stop().await;
    assert_eq!(world.count("SELECT COUNT(*) FROM applied").await, i64::try_from(count).unwrap());
    let (events, bytes) = (measuring.events.load(Ordering::SeqCst), measuring.bytes.load(Ordering::SeqCst));
    // The event that goes over the bound is the last.
    let most = PROJECTOR_BATCH_BYTES_MAX + EVENT_PAYLOAD_BYTES_MAX;
    assert!(events <= BATCH && bytes < most, "{events} events, {bytes} bytes at once");
    // What has come from a broker by then may be less.
    if engine == Engine::Sqlite {
        assert!(events == BATCH && bytes >= PROJECTOR_BATCH_BYTES_MAX, "{events} events, {bytes} bytes at once");
    }
}
