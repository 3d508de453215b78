//! Events as consumers get them.

use std::collections::BTreeSet;

use serde_json::json;

use crate::{World, caller::sent, model::Change};

/// Room for more than a hundred follows.
pub const SETTINGS: &[(&str, &str)] = super::NO_RATE_LIMIT;

/// CloudEvents 1.0: who, what, in which order, and where it came from; a removal says what was before.
pub async fn an_event_says_all_that_its_consumer_needs(world: &World) {
    world.register(1..=2).await;
    let ada = world.user(1).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = ada.change_request(Change::Follow, 2);
    sent(request.header("traceparent", trace).header("x-request-id", "request-7")).await.json(200);
    ada.unfollow(2).await;

    let events = world.events(0).await.split_off(2);
    let [followed, unfollowed] = &events[..] else { panic!("two changes are two events: {events:?}") };
    assert_eq!(
        (&followed["specversion"], &followed["type"], &followed["partitionkey"], &followed["traceparent"]),
        (&json!("1.0"), &json!("relation.followed"), &json!("1"), &json!(trace)),
        "{followed}"
    );
    assert_eq!((&followed["data"]["from"], &followed["data"]["to"]), (&json!("1"), &json!("2")), "{followed}");
    assert!(followed.to_string().contains("request-7"), "{followed}");
    assert_eq!(unfollowed["type"], "relation.unfollowed");
    let since = followed["data"]["followed_at"].to_string();
    assert!(unfollowed["data"].to_string().contains(&since), "the before-image: {unfollowed}");
    assert!(followed["id"] != unfollowed["id"]);

    let admin = world.admin().await;
    let one = admin.read(&format!("/v1/admin/events/{}", followed["id"].as_str().unwrap())).await;
    let all = admin.read("/v1/admin/events").await;
    assert_eq!((&one["event"], &one), (followed, &all["items"][2]));
    admin.get("/v1/admin/events/019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c").await.is_problem(404, "not-found");
    admin.get("/v1/admin/events/nonsense").await.is_bad("event_id");
}

/// No offset is left out and none comes twice, from the beginning or from the end.
pub async fn events_page_in_the_order_of_their_commits(world: &World) {
    world.register(1..=30).await;
    for user in 1..=5 {
        let caller = world.user(user).await;
        for to in 6..=30 {
            caller.follow(to).await;
        }
    }
    let admin = world.admin().await;
    let offsets = |items: &[serde_json::Value]| -> Vec<u64> {
        items.iter().map(|item| item["offset"].as_u64().unwrap()).collect()
    };
    let all = admin.pages("/v1/admin/events", 7).await;
    let numbers = offsets(&all);
    assert!(numbers.is_sorted_by(|one, next| one < next) && numbers.len() == 155, "{numbers:?}");
    if world.capabilities().has_dense_offsets {
        assert_eq!(numbers, (1..=155).collect::<Vec<u64>>());
    }
    let distinct: BTreeSet<&str> = all.iter().map(|item| item["event"]["id"].as_str().unwrap()).collect();
    assert_eq!(distinct.len(), 155);
    let latest = admin.read("/v1/admin/events?latest=10").await;
    assert_eq!(latest["items"], json!(all[145..]));
    let before = admin.read(&format!("/v1/admin/events?before={}&limit=10", numbers[145])).await;
    assert_eq!(before["items"], json!(all[135..145]));
}
