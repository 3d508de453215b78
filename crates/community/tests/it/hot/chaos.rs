//! A real Redis that is killed, frozen, restarted and flushed while everything goes on.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use tidings_backbone::{
    clock::Stopwatch,
    projector::Projector,
    redis::{Options as RedisOptions, Script},
};
use tidings_community::relation::{hot::Options, read::Page};
use tokio::{process::Command, sync::Mutex};
use tokio_util::sync::CancellationToken;

use super::{HotWorld, QUICK};
use crate::{
    redis,
    world::{World, block_on, follow, unfollow},
};

/// One test at a time has the server.
static SERVER: Mutex<()> = Mutex::const_new(());
/// A server beside those that all tests share.
const SET: &str = "redis-chaos";
/// An answer may take this long on a busy machine. Each of its calls of a frozen Redis is cut short long before.
const PATIENCE_SECONDS: f64 = 5.0;

async fn services(command: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services");
    let output = Command::new(script).args([command, "--set", SET, "redis"]).output().await.unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The server, running, with a prefix of one's own.
async fn start() -> Option<RedisOptions> {
    let shared = redis::options()?;
    services("up").await;
    let url = services("env").await.trim().split_once('=').unwrap().1.to_owned();
    Some(RedisOptions::new(url, shared.key_prefix))
}

async fn fault(hot: &HotWorld, name: &str) {
    if name == "flush" {
        // Whether it arrives or not.
        let script = Script::new("redis.call('FLUSHALL')");
        drop(hot.redis.call::<()>("testing", &script.call()).await);
    } else {
        services(name).await;
    }
}

#[test]
fn every_answer_is_the_databases_while_redis_is_killed_frozen_restarted_and_flushed() {
    block_on(async {
        let _turn = SERVER.lock().await;
        let Some(at) = start().await else { return };
        let hot = HotWorld::at(World::new(12).await, at, QUICK);
        let faults = ["flush", "pause", "resume", "kill", "up", "restart", "pause", "kill", "up", "flush", "restart"];
        for (round, name) in (0_i64..).zip(faults) {
            // What is kept is whole and new when the fault comes, if Redis is there.
            hot.check(1).await;
            fault(&hot, name).await;
            for to in [2 + round % 3, 5] {
                let stopwatch = Stopwatch::start();
                hot.world.tick(1);
                let change = if round % 2 == 0 { follow } else { unfollow };
                hot.decide(&[change(1, to), change(to, 1), follow(6 + round % 6, 1)]).await;
                hot.check(1).await;
                assert!(stopwatch.seconds() < PATIENCE_SECONDS, "{name}: {} s", stopwatch.seconds());
            }
            if round % 4 == 3 {
                // The projector dies after its commit.
                hot.apply(1).await;
            }
            hot.drain().await;
            for id in 1..=12 {
                hot.check(id).await;
            }
        }
        back(&hot).await;
        hot.warm(1).await;
        hot.check(1).await;
    });
}

/// Waits until the connection is there again.
async fn back(hot: &HotWorld) {
    while hot.redis.server().await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Numbers that look random and come again.
struct Lot(u64);

impl Lot {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

const WRITERS: i64 = 3;
const USERS: i64 = 10;
/// Longer than a commit takes here, so that it stands for what the fence is in a product.
const FENCED: Options = Options { fence_time: Duration::from_millis(1_500), ..QUICK };

/// Each writer is a process of its own, and reads what he has written through another.
async fn write(processes: Arc<Vec<HotWorld>>, writer: usize, ended: CancellationToken) -> usize {
    let mut lot = Lot(writer as u64);
    let (me, others) = (&processes[writer], &processes[(writer + 1) % processes.len()]);
    let from = writer as i64 + 1;
    let mut followed = BTreeSet::new();
    let mut reads = 0;
    while !ended.is_cancelled() {
        let to = WRITERS + 1 + lot.below((USERS - WRITERS) as u64) as i64;
        me.world.tick(1);
        if followed.remove(&to) {
            me.decide(&[unfollow(from, to)]).await;
        } else {
            followed.insert(to);
            me.decide(&[follow(from, to)]).await;
        }
        // Now and then long enough for the list to be loaded again.
        let pause = if lot.below(6) == 0 { 2_000 } else { 30 };
        let stopwatch = Stopwatch::start();
        while stopwatch.seconds() * 1_000.0 < f64::from(pause) && !ended.is_cancelled() {
            let list = others.followings(from, &Page::first(100)).await.unwrap();
            let seen: BTreeSet<i64> = list.entries.iter().map(|entry| entry.user_id.get()).collect();
            assert_eq!(seen, followed, "whom {from} follows");
            others.followers(from + WRITERS, &Page::first(5)).await;
            reads += 1;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    reads
}

async fn project(processes: Arc<Vec<HotWorld>>, ended: CancellationToken) {
    let hot = &processes[0];
    let mut lot = Lot(77);
    while !ended.is_cancelled() {
        match hot.apply(1 + lot.below(5) as usize).await {
            Some((_, events)) if lot.below(5) > 0 => hot.projector.committed(&events).await,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[test]
fn writers_see_their_own_writes_through_any_process_while_redis_comes_and_goes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let _turn = SERVER.lock().await;
        let Some(at) = start().await else { return };
        let world = Arc::new(World::new(USERS).await);
        let processes = (0..WRITERS).map(|_| HotWorld::at(Arc::clone(&world), at.clone(), FENCED));
        let processes: Arc<Vec<HotWorld>> = Arc::new(processes.collect());
        let ended = CancellationToken::new();
        let writers: Vec<_> = (0..WRITERS as usize)
            .map(|writer| tokio::spawn(write(Arc::clone(&processes), writer, ended.clone())))
            .collect();
        let projector = tokio::spawn(project(Arc::clone(&processes), ended.clone()));
        let mut lot = Lot(5);
        for name in ["pause", "resume", "kill", "up", "flush", "restart", "pause", "resume", "kill", "up"] {
            tokio::time::sleep(Duration::from_millis(300 + lot.below(1_700))).await;
            fault(&processes[0], name).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        ended.cancel();
        for writer in writers {
            assert!(writer.await.unwrap() > 100, "lists were read");
        }
        projector.await.unwrap();
        processes[0].drain().await;
        for id in 1..=USERS {
            processes[1].check(id).await;
        }
    });
}
