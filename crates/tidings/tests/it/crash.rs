//! Servers that end badly while clients write.
//!
//! Each client owns its user, so it knows what every answer must be: it repeats a change until that
//! is acknowledged, and then the pair must be as wanted, at exactly the version that follows.

mod apart;
mod chaos;
mod freeze;
mod import;
#[cfg(feature = "failpoints")]
mod points;
mod rebuild;
mod shutdown;
mod under_load;

use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap},
};

use futures::future::join_all;
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use serde_json::Value;
use tidings_testkit::{
    Caller, World,
    caller::try_send,
    model::{Change, Graph, Pair, User},
    world,
};
use tokio::sync::watch;

use crate::{database::Hand, guarantee_2::version_of};

/// Clients that toggle follows at random, and what was acknowledged to them.
struct Togglers<'w> {
    world: &'w World,
    clients: Vec<Toggler<'w>>,
    targets: Vec<User>,
    /// Acknowledged changes, of all clients together.
    acknowledged: watch::Sender<u64>,
    ended: Cell<bool>,
}

struct Toggler<'w> {
    user: User,
    caller: Caller<'w>,
    rng: StdRng,
    graph: Graph,
    /// Changes so far, if each carries an `Idempotency-Key`: then the answer to a repetition is the first one.
    keys: Option<u64>,
}

impl<'w> Togglers<'w> {
    /// A client for each of `users`, who are registered here. They follow `targets` and each other.
    async fn new(world: &'w World, users: std::ops::RangeInclusive<User>, targets: &[User], rng: &mut StdRng) -> Self {
        world.register(users.clone()).await;
        let callers = join_all(users.clone().map(|user| world.user(user))).await;
        let client = |(user, caller)| Toggler {
            user,
            caller,
            rng: StdRng::seed_from_u64(rng.next_u64()),
            graph: Graph::default(),
            keys: None,
        };
        Self {
            world,
            clients: users.clone().zip(callers).map(client).collect(),
            targets: targets.iter().copied().chain(users).collect(),
            acknowledged: watch::Sender::new(0),
            ended: Cell::new(false),
        }
    }

    /// Every other client sends an `Idempotency-Key` with each change.
    fn half_with_keys(mut self) -> Self {
        self.clients.iter_mut().step_by(2).for_each(|client| client.keys = Some(0));
        self
    }

    /// Toggles until `work` is done; whatever was begun by then is still acknowledged.
    async fn toggle_during<T>(&mut self, work: impl AsyncFnOnce(&watch::Sender<u64>) -> T) -> T {
        self.ended.set(false);
        let Self { world, clients, targets, acknowledged, ended } = self;
        let toggling = join_all(clients.iter_mut().map(|client| client.run(world, targets, acknowledged, ended)));
        let work = async {
            let done = work(acknowledged).await;
            ended.set(true);
            done
        };
        futures::future::join(toggling, work).await.1
    }

    /// What was acknowledged in the end must be what the server says now.
    async fn everything_acknowledged_holds(&self) {
        for client in &self.clients {
            let asked: Vec<User> = self.targets.iter().copied().filter(|to| *to != client.user).collect();
            for some in asked.chunks(100) {
                let ids: Vec<String> = some.iter().map(User::to_string).collect();
                let answer = client.caller.read(&format!("/v1/me/relations?ids={}", ids.join(","))).await;
                for (to, status) in some.iter().zip(answer["items"].as_array().unwrap()) {
                    let expected = client.graph.state((client.user, *to)).following;
                    assert_eq!(status["following"], expected, "{} -> {to}", client.user);
                }
            }
        }
    }

    /// The version of every pair that a client has changed.
    fn versions(&self) -> HashMap<Pair, u64> {
        self.clients.iter().flat_map(|client| client.graph.versions()).collect()
    }
}

impl Toggler<'_> {
    async fn run(&mut self, world: &World, targets: &[User], acknowledged: &watch::Sender<u64>, ended: &Cell<bool>) {
        while !ended.get() {
            let to = targets[self.rng.random_range(0..targets.len())];
            if to == self.user {
                continue;
            }
            let pair = (self.user, to);
            // Mostly the opposite of what is, sometimes the same again.
            let following = self.graph.state(pair).following != self.rng.random_bool(0.8);
            let change = if following { Change::Follow } else { Change::Unfollow };
            self.keys = self.keys.map(|changes| changes + 1);
            let (outcome, first_try) = self.until_acknowledged(world, change, to).await;
            let mut expected = self.graph.change(change, pair);
            if !first_try && !outcome.changed && self.keys.is_none() {
                // An earlier try was committed and its answer lost.
                expected.changed = false;
            }
            assert_eq!(outcome, expected, "{change:?} {pair:?}");
            acknowledged.send_modify(|count| *count += 1);
            if self.rng.random_bool(0.02) {
                look_at_counters(&self.caller, to).await;
            }
        }
    }

    /// Repeats a change until it is answered, through however many ends of the server.
    async fn until_acknowledged(
        &self,
        world: &World,
        change: Change,
        to: User,
    ) -> (tidings_testkit::model::Outcome, bool) {
        let mut first_try = true;
        loop {
            let mut request = self.caller.change_request(change, to);
            if let Some(number) = self.keys {
                request = request.header("idempotency-key", format!("change-{number}"));
            }
            match try_send(request).await {
                Ok(answer) if answer.status == 503 => {}
                Ok(answer) => return (answer.outcome(), first_try),
                Err(_gone) => world.is_up().await,
            }
            first_try = false;
        }
    }
}

/// Below zero would be huge. A server that is gone, or without its database, is no answer, and no fault here.
async fn look_at_counters(caller: &Caller<'_>, user: User) {
    let request = caller.request(reqwest::Method::GET, &format!("/v1/users/{user}/counters"));
    if let Some(answer) = try_send(request).await.ok().filter(|answer| answer.status != 503) {
        let counters = answer.json(200);
        for counter in ["followings", "followers"] {
            assert!(counters[counter].as_u64().unwrap() < 10_000_000, "{counters}");
        }
    }
}

/// What must hold when all is quiet again: no difference, no gap, no event too many, lists as long
/// as their counters say.
async fn nothing_is_lost_or_doubled(world: &World, expected: &HashMap<Pair, u64>, looked_at: &[User]) {
    world.drain().await;
    world.verify().await;
    assert_eq!(world.parked().await.len(), 0);
    assert_eq!(Hand::in_database_of(world).await.uneven_pairs().await, 0);

    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    for event in world.events(0).await {
        if event["aggregatetype"] != "relation" {
            continue;
        }
        let newest = versions.entry(event["subject"].as_str().unwrap().to_owned()).or_default();
        *newest += 1;
        assert_eq!(version_of(&event), *newest, "no gap and no repeat: {event}");
        let event_type = if newest.is_multiple_of(2) { "relation.unfollowed" } else { "relation.followed" };
        assert_eq!(event["type"], event_type, "{event}");
    }
    let expected: BTreeMap<String, u64> =
        expected.iter().map(|((from, to), version)| (format!("{from}:{to}"), *version)).collect();
    assert!(versions == expected, "{:?}", first_difference(&versions, &expected));

    for user in looked_at {
        let lists = (world.followings(*user).await.len() as u64, world.followers(*user).await.len() as u64);
        assert_eq!(world.counters(*user).await, lists, "user {user}");
    }
}

/// What the topic of follows has, looked at record by record.
#[derive(Default)]
struct Published {
    versions: HashMap<Pair, u64>,
    partitions: HashMap<String, i32>,
    /// Ids of the events of each key.
    keys: BTreeMap<String, Vec<String>>,
}

impl Published {
    /// The next record: in the partition of its key, its pair's next version.
    fn take(&mut self, record: &world::Published) {
        let partition = *self.partitions.entry(record.key.clone()).or_insert(record.partition);
        assert_eq!(partition, record.partition, "{record:?}");
        let (from, to) = record.event["subject"].as_str().unwrap().split_once(':').unwrap();
        let version = self.versions.entry((from.parse().unwrap(), to.parse().unwrap())).or_default();
        *version += 1;
        assert_eq!(version_of(&record.event), *version, "no gap and no repeat: {record:?}");
        self.keys.entry(record.key.clone()).or_default().push(record.event["id"].as_str().unwrap().to_owned());
    }
}

fn first_difference(left: &BTreeMap<String, u64>, right: &BTreeMap<String, u64>) -> Option<(String, Value)> {
    let pairs = left.keys().chain(right.keys());
    let mut differing = pairs.filter(|pair| left.get(*pair) != right.get(*pair));
    differing.next().map(|pair| (pair.clone(), serde_json::json!([left.get(pair), right.get(pair)])))
}

/// Waits until `more` further changes were acknowledged.
async fn progress(acknowledged: &watch::Sender<u64>, more: u64) {
    let goal = *acknowledged.borrow() + more;
    acknowledged.subscribe().wait_for(|count| *count >= goal).await.unwrap();
}
