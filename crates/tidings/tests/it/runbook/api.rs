//! More requests than one process takes, or than it has connections for.

use futures::future::{join, join_all};
use serde_json::json;
use tidings_testkit::{Kind, Options, Part, World, model::Change};

use super::{Section, Watch, until, until_metric};
use crate::database::Hand;

/// Requests that one process serves at once.
const PLACES: usize = 10;

/// One process of the API, and nobody else.
async fn world(settings: &[(&str, &str)]) -> World {
    let options = Options::new(crate::BINARY).on(Kind::distributed()).apart().with_all(settings);
    let world = World::unstarted(options).await;
    world.start_part(Part::Api(1), &[]).await;
    world.register(1..=2).await;
    world
}

/// Sends follows while the database lets nobody write, and looks once all have their place or were turned away.
/// Answers how many were turned away.
async fn follows_at_once(world: &World, watch: &mut Watch, hand: &mut Hand, count: usize) -> usize {
    let caller = world.user(1).await;
    let in_flight = async || world.metric("tidings_http_requests_in_flight").await as usize;
    let apis = world.addresses().len();
    hand.run("LOCK TABLES account WRITE").await;
    let answers = join_all((0..count).map(|_| caller.change(Change::Follow, 2)));
    let looking = async {
        // Whoever asks for the metrics is one too.
        until("their places to be taken", async || in_flight().await == count.min(PLACES * apis) + apis).await;
        watch.look(world, 10).await;
        hand.run("UNLOCK TABLES").await;
    };
    let (answers, ()) = join(answers, looking).await;
    answers.iter().filter(|answer| answer.status == 503 && answer.problem() == "busy").count()
}

#[tokio::test]
async fn requests_shed_and_requests_near_limit() {
    let (shed, near) = (Section::of("requests-shed"), Section::of("requests-near-limit"));
    let places = PLACES.to_string();
    let world = world(&[("http.requests_in_flight_max", places.as_str()), ("rate.follow_capacity", "100000")]).await;
    let mut hand = Hand::in_database_of(&world).await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    let turned_away = follows_at_once(&world, &mut watch, &mut hand, PLACES + 100).await;
    assert_eq!(turned_away, 100);
    watch.fires(&["TidingsRequestsNearLimit", "TidingsRequestsShed"]);

    shed.start(&world, "tidings api", Part::Api(2)).await;
    watch.look(&world, 10).await;
    let turned_away = follows_at_once(&world, &mut watch, &mut hand, PLACES + 2).await;
    assert_eq!(turned_away, 0, "two have room for what was too much for one");
    watch.is_quiet(&["TidingsRequestsNearLimit", "TidingsRequestsShed"]);
    let (status, _) = near.ask(&world, "curl http://ADDRESS/health/ready", Part::Api(2)).await;
    assert_eq!(status, 200);
}

/// Two transactions of two ledgers, while neither can end.
async fn two_writers(world: &World, watch: &mut Watch, hand: &mut Hand, user: u64) {
    let (caller, admin) = (world.user(1).await, world.admin().await);
    let body = json!({ "user_id": user.to_string(), "handle": format!("u{user}") });
    hand.run("LOCK TABLES account WRITE").await;
    let looking = async {
        // One of them reads.
        until_metric(world, "tidings_database_connections", |connections| connections >= 2.0).await;
        watch.look(world, 15).await;
        hand.run("UNLOCK TABLES").await;
    };
    let (_, (), registered) =
        futures::future::join3(caller.change(Change::Follow, 2), looking, admin.post("/v1/admin/users", &body)).await;
    assert_eq!(registered.status, 201, "{registered:?}");
}

#[tokio::test]
async fn database_connections_used_up() {
    let _it = Section::of("database-connections-used-up");
    let world = world(&[("database.writers_max", "2")]).await;
    let mut hand = Hand::in_database_of(&world).await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    watch.is_quiet(&["TidingsDatabaseConnectionsUsedUp"]);
    two_writers(&world, &mut watch, &mut hand, 3).await;
    watch.fires(&["TidingsDatabaseConnectionsUsedUp"]);
    world.stop_part(Part::Api(1)).await;
    world.start_part(Part::Api(1), &[("TIDINGS__DATABASE__WRITERS_MAX", "8")]).await;
    two_writers(&world, &mut watch, &mut hand, 4).await;
    watch.is_quiet(&["TidingsDatabaseConnectionsUsedUp"]);
}
