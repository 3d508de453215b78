//! Any sequence of follows, unfollows and faults, on one Redis that loses and remembers as it likes.

use proptest::{prelude::*, test_runner::TestRunner};
use tidings_backbone::{projector::Projector, redis::Script};
use tidings_community::relation::{facts::Command, hot::Options};
use tidings_testkit::database::Engine;

use super::{HotWorld, QUICK};
use crate::model::{USERS, commands};

#[derive(Clone, Debug)]
enum Step {
    /// Decided by a process that can, or cannot, tell Redis.
    Decide(Vec<Command>, bool),
    /// Applied by a projector that is told of its commit, or dies before.
    Apply(usize, bool),
    /// All keys are gone.
    Flush,
    /// Followers and counters of a user are as they were at the last such step. (Whom he follows cannot come
    /// back without a restart, which another test has.)
    Remember(i64),
    /// A line goes from the set behind everybody's back.
    Damage(i64),
    Look(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (commands(4), prop::bool::weighted(0.8)).prop_map(|(commands, told)| Step::Decide(commands, told)),
        4 => (1..6_usize, prop::bool::weighted(0.8)).prop_map(|(limit, told)| Step::Apply(limit, told)),
        1 => Just(Step::Flush),
        2 => (1..=USERS).prop_map(Step::Remember),
        1 => (1..=USERS).prop_map(Step::Damage),
        8 => (1..=USERS).prop_map(Step::Look),
    ];
    proptest::collection::vec(step, 1..40)
}

/// Puts back what was copied last time, and copies what is there.
const REMEMBER: &str = "for _, key in ipairs(KEYS) do \
    local old, now = redis.call('GET', key .. ':old'), redis.call('DUMP', key) \
    if old then redis.call('RESTORE', key, 600000, old, 'REPLACE') end \
    if now then redis.call('SET', key .. ':old', now) end end";
const FLUSH: &str = "for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do redis.call('DEL', key) end";

impl HotWorld {
    async fn run(&self, script: &str, keys: &[String]) {
        let script = Script::new(script);
        let call = keys.iter().fold(script.call(), |call, key| call.key(self.redis.key(key)));
        self.redis.call::<()>("testing", &call).await.unwrap();
    }

    async fn step(&self, step: Step) {
        match step {
            Step::Decide(commands, true) => self.decide(&commands).await,
            Step::Decide(commands, false) => drop(self.world.decide_by(&self.cut_off, &commands).await),
            Step::Apply(limit, told) => {
                if let Some((_, events)) = self.apply(limit).await
                    && told
                {
                    self.projector.committed(&events).await;
                }
            }
            Step::Flush => self.run(FLUSH, &[String::new()]).await,
            Step::Remember(id) => self.run(REMEMBER, &[format!("uf:fans:{id}"), format!("ucnt:{id}")]).await,
            Step::Damage(id) => {
                self.run("redis.call('ZREMRANGEBYRANK', KEYS[1], 0, 0)", &[format!("uf:fans:{id}")]).await;
            }
            Step::Look(id) => self.check(id).await,
        }
        self.world.tick(1);
    }
}

#[test]
fn every_page_and_counter_is_the_databases_whatever_redis_loses_or_remembers() {
    try_out(Engine::Sqlite, 24);
}

#[test]
fn so_they_are_where_numbers_are_added_in_place() {
    if !Engine::Mariadb.is_left_out() {
        try_out(Engine::Mariadb, 4);
    }
}

fn try_out(engine: Engine, cases: u32) {
    if crate::redis::options().is_none() {
        return;
    }
    for list_entries_max in [3, 1_000] {
        let options = Options { list_entries_max, ..QUICK };
        TestRunner::new(ProptestConfig { cases, max_shrink_iters: 200, ..ProptestConfig::default() })
            .run(&steps(), |steps| {
                crate::world::block_on(async {
                    let hot = HotWorld::on(engine, USERS, options).await.unwrap();
                    // The first ask begins the epoch; a millisecond later lists are loaded.
                    hot.check(1).await;
                    for step in steps {
                        hot.step(step).await;
                    }
                    for id in 1..=USERS {
                        hot.check(id).await;
                    }
                });
                Ok(())
            })
            .unwrap();
    }
}
