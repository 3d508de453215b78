//! Random interleavings, over HTTP, against the model; the server ends and begins on the way.

use std::collections::BTreeSet;

use futures::future::join_all;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tidings_testkit::{
    World,
    caller::ids,
    model::{Change, Graph, User},
};
use tokio::{runtime::Runtime, sync::Mutex};

use crate::world;

/// Users of one case.
const USERS: u64 = 6;

#[derive(Clone, Debug)]
enum Step {
    /// Changes sent together: by each user at most one, so that their order has no meaning.
    Changes(Vec<Option<(Change, User)>>),
    /// The server ends in order and begins again.
    Restart,
    /// The server is killed and begins again.
    Kill,
    /// Everything derived is compared.
    Compare,
}

fn step() -> impl Strategy<Value = Step> {
    let change = prop_oneof![3 => Just(Change::Follow), 2 => Just(Change::Unfollow)];
    let one = proptest::option::weighted(0.7, (change, 0..USERS));
    let changes = proptest::collection::vec(one, USERS as usize).prop_map(Step::Changes);
    prop_oneof![24 => changes, 1 => Just(Step::Restart), 1 => Just(Step::Kill), 2 => Just(Step::Compare)]
}

/// One world for all cases; each has users of its own.
struct Bench {
    runtime: Runtime,
    world: World,
    next_user: Mutex<User>,
}

impl Bench {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let world = runtime.block_on(world(&[
            ("rate.follow_capacity", "1000000"),
            ("relation.top_page_followers_min", "2"),
            ("relation.counter_check_every", "2"),
        ]));
        Self { runtime, world, next_user: Mutex::new(1) }
    }

    async fn run(&self, steps: &[Step]) {
        let first = {
            let mut next = self.next_user.lock().await;
            *next += USERS;
            *next - USERS
        };
        self.world.register(first..=first + USERS - 1).await;
        let mut graph = Graph::default();
        for step in steps {
            match step {
                Step::Changes(changes) => self.change(&mut graph, first, changes).await,
                Step::Restart => self.world.restart().await,
                Step::Kill => {
                    self.world.kill().await;
                    self.world.start().await;
                }
                Step::Compare => self.compare(&graph, first).await,
            }
        }
        self.compare(&graph, first).await;
        assert_eq!(self.world.metric("tidings_counter_drift_total").await, 0.0);
    }

    async fn change(&self, graph: &mut Graph, first: User, changes: &[Option<(Change, User)>]) {
        let wanted = changes.iter().zip(first..).filter_map(|(change, from)| {
            let (change, to) = (*change)?;
            (first + to != from).then_some((change, from, first + to))
        });
        let wanted: Vec<(Change, User, User)> = wanted.collect();
        let answers =
            join_all(wanted.iter().map(|&(change, from, to)| async move {
                self.world.user(from).await.change(change, to).await.outcome()
            }))
            .await;
        for ((change, from, to), answer) in wanted.into_iter().zip(answers) {
            assert_eq!(answer, graph.change(change, (from, to)), "{change:?} {from} -> {to}");
        }
    }

    async fn compare(&self, graph: &Graph, first: User) {
        let (world, users) = (&self.world, first..first + USERS);
        // A user's own writes are seen at once; the rest after the projector.
        for user in users.clone() {
            let caller = world.user(user).await;
            let followings = ids(&caller.pages(&format!("/v1/users/{user}/following"), 2).await, "user_id");
            assert_eq!(followings.into_iter().collect::<BTreeSet<_>>(), graph.followings(user), "user {user}");
            for other in users.clone().filter(|other| *other != user) {
                let status = caller.read(&format!("/v1/me/relations?ids={other}")).await;
                let expected = graph.state((user, other)).following;
                assert_eq!(status["items"][0]["following"], expected, "{user} -> {other}");
            }
        }
        world.drain().await;
        for user in users {
            let (followers, followings) = (graph.followers(user), graph.followings(user));
            let listed = world.followers(user).await;
            assert_eq!(listed.len(), followers.len(), "no repeat");
            assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), followers, "user {user}");
            let counts = (followings.len() as u64, followers.len() as u64);
            assert_eq!(world.counters(user).await, counts, "user {user}");
            let next = if user + 1 < first + USERS { user + 1 } else { first };
            let common = format!("/v1/users/{user}/following/common?with={next}");
            let common = ids(&world.admin().await.pages(&common, 2).await, "user_id");
            let expected: Vec<User> = followings.intersection(&graph.followings(next)).copied().collect();
            assert_eq!(common, expected, "common of {user} and {next}");
        }
    }
}

#[test]
fn any_interleaving_is_answered_as_the_model_answers_it() {
    let bench = Bench::new();
    let config = Config { cases: 12, max_shrink_iters: 40, failure_persistence: None, ..Config::default() };
    let steps = proptest::collection::vec(step(), 4..40);
    let run = |steps: Vec<Step>| {
        bench.runtime.block_on(bench.run(&steps));
        Ok(())
    };
    TestRunner::new(config).run(&steps, run).unwrap();
}
