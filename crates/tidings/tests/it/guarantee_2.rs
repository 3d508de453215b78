//! Guarantee 2: an event is written only when the fact really changed. Following twice is one event.

use futures::future::join_all;
use serde_json::json;
use tidings_testkit::{Kind, graph, model::Change, on_every_world};

use crate::world_on;

on_every_world!(
    what_is_asked_for_again_by_any_path_is_no_second_event,
    everything_that_is_refused_is_no_event,
    opposite_wishes_at_once_are_as_many_events_as_changes,
);

async fn what_is_asked_for_again_by_any_path_is_no_second_event(kind: Kind) {
    let world = world_on(kind, &[("rate.follow_capacity", "100000")]).await;
    let follows = graph::star(1, 2, 50);
    let file = graph::write_csv(world.scratch_folder(), &follows);
    let file = file.to_str().unwrap();
    world.run(&["import", "follows", file]).await;
    let imported = world.head().await;
    assert_eq!(imported, 51 + 50, "a user and a follow is an event each");

    world.run(&["import", "follows", file]).await;
    assert_eq!(world.head().await, imported, "the same file again");
    let callers = join_all((2..=51).map(|user| world.user(user))).await;
    for answer in join_all(callers.iter().map(|caller| caller.change(Change::Follow, 1))).await {
        assert!(!answer.outcome().changed, "over HTTP what was imported");
    }
    world.restart().await;
    for answer in join_all(callers.iter().map(|caller| caller.change(Change::Follow, 1))).await {
        assert!(!answer.outcome().changed, "after a restart");
    }
    assert_eq!(world.head().await, imported);
}

async fn everything_that_is_refused_is_no_event(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=2).await;
    let head = world.head().await;
    let ada = world.user(1).await;
    ada.change(Change::Follow, 1).await.is_problem(422, "yourself");
    ada.change(Change::Follow, 3).await.is_problem(404, "unknown-user");
    ada.change(Change::Unfollow, 2).await.outcome();
    world.user(3).await.change(Change::Follow, 2).await.is_problem(404, "unknown-user");
    let admin = world.admin().await;
    admin.post("/v1/admin/users", &json!({ "user_id": "1", "handle": "u1" })).await.json(200);
    admin.post("/v1/admin/users", &json!({ "user_id": "1", "handle": "u9" })).await.is_problem(409, "user-exists");
    while ada.change(Change::Unfollow, 2).await.status != 429 {}
    assert_eq!(world.head().await, head);
}

async fn opposite_wishes_at_once_are_as_many_events_as_changes(kind: Kind) {
    let world = world_on(kind, &[("rate.follow_capacity", "100000")]).await;
    world.register(1..=2).await;
    let head = world.head().await;
    let ada = world.user(1).await;
    let change = |n: u32| if n.is_multiple_of(2) { Change::Follow } else { Change::Unfollow };
    let answers = join_all((0..400).map(|n| ada.change(change(n), 2))).await;
    let mut versions: Vec<u64> =
        answers.iter().map(|answer| answer.outcome()).filter(|outcome| outcome.changed).map(|it| it.version).collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=versions.len() as u64).collect::<Vec<_>>(), "each change was told to one caller");
    let events = world.events(head).await;
    assert_eq!(events.len(), versions.len());
    for (event, version) in events.iter().zip(1..) {
        let expected = if version % 2 == 1 { "relation.followed" } else { "relation.unfollowed" };
        assert_eq!((&event["type"], version_of(event)), (&json!(expected), version), "{event}");
    }
}

/// The version of an event's aggregate.
pub(crate) fn version_of(event: &serde_json::Value) -> u64 {
    let sequence = event["sequence"].as_str().and_then(|text| text.parse().ok());
    sequence.unwrap_or_else(|| panic!("no version in {event}"))
}
