//! Lists: their order, their paging, and that a page is whole or not served.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{World, caller::ids};

/// Ten followers make an account whose first page is kept in memory.
pub const SETTINGS: &[(&str, &str)] = &[("rate.follow_capacity", "100000"), ("relation.top_page_followers_min", "10")];

/// The place of a line in its list: newest first, and of one moment the higher id first.
fn place(item: &Value) -> (String, u64) {
    let at = item["followed_at"].as_str().unwrap().to_owned();
    (at, item["user_id"].as_str().unwrap().parse().unwrap())
}

fn is_newest_first(items: &[Value]) -> bool {
    items.is_sorted_by(|one, next| place(one) > place(next))
}

/// The same list, cut in whatever way.
pub async fn lists_are_newest_first_by_offset_and_by_cursor(world: &World) {
    world.register(1..=48).await;
    let ada = world.user(1).await;
    for other in 2..=48 {
        ada.follow(other).await;
        world.user(other).await.follow(1).await;
    }
    world.drain().await;
    for path in ["/v1/users/1/following", "/v1/users/1/followers"] {
        let whole = ada.read(&format!("{path}?limit=100")).await;
        assert!(whole["next_cursor"].is_null(), "{whole}");
        let whole = whole["items"].as_array().unwrap().clone();
        assert_eq!(whole.len(), 47);
        assert!(is_newest_first(&whole), "{whole:?}");
        assert_eq!(whole[0]["handle"], format!("u{}", whole[0]["user_id"].as_str().unwrap()));
        for limit in [1, 7, 20, 47, 48] {
            assert_eq!(ada.pages(path, limit).await, whole, "by cursor, {limit} at a time");
            let mut offset = 0;
            let mut paged = Vec::new();
            while offset <= whole.len() {
                let page = ada.read(&format!("{path}?limit={limit}&offset={offset}")).await;
                paged.extend(page["items"].as_array().unwrap().clone());
                offset += limit as usize;
            }
            assert_eq!(paged, whole, "by offset, {limit} at a time");
        }
        assert_eq!(ada.read(path).await["items"].as_array().unwrap().len(), 20, "unless asked otherwise");
        assert_eq!(ada.read(&format!("{path}?offset=10000")).await["items"], serde_json::json!([]));
    }
}

/// Who is followed again stands at the top.
pub async fn a_refollow_is_new_again(world: &World) {
    world.register(1..=6).await;
    let ada = world.user(1).await;
    for to in 2..=6 {
        ada.follow(to).await;
    }
    let before = ada.read("/v1/users/1/following").await;
    ada.unfollow(2).await;
    let since = ada.follow(2).await;
    assert_eq!(since.version, 3);
    world.drain().await;
    let after = ada.read("/v1/users/1/following").await;
    let (before, after) = (before["items"].as_array().unwrap(), after["items"].as_array().unwrap());
    assert_eq!(after[0]["user_id"], "2");
    assert!(after[0]["followed_at"].as_str() >= before[0]["followed_at"].as_str());
    assert!(is_newest_first(after));
    let mirrored = ada.read("/v1/users/2/followers").await;
    assert_eq!(mirrored["items"][0]["followed_at"], after[0]["followed_at"], "the mirror tells the same time");
}

/// As the sets say, in both orders of asking.
pub async fn common_follows_are_those_of_both_and_page_by_id(world: &World) {
    world.register(1..=40).await;
    let (ada, bob) = (world.user(1).await, world.user(2).await);
    for to in 3..=40 {
        if to % 2 == 0 {
            ada.follow(to).await;
        }
        if to % 3 == 0 {
            bob.follow(to).await;
        }
    }
    ada.unfollow(12).await;
    let expected: Vec<u64> = (3..=40).filter(|id| id % 6 == 0 && *id != 12).collect();
    for (path, limit) in [
        ("/v1/users/1/following/common?with=2", 1),
        ("/v1/users/1/following/common?with=2", 2),
        ("/v1/users/2/following/common?with=1", 100),
    ] {
        assert_eq!(ids(&ada.pages(path, limit).await, "user_id"), expected, "{path}");
    }
    ada.get("/v1/users/1/following/common?with=99").await.is_problem(404, "unknown-user");
    ada.get("/v1/users/99/following/common?with=1").await.is_problem(404, "unknown-user");
    ada.get("/v1/users/1/following/common?with=2&offset=1").await.is_bad("offset");
}

/// A cache that is filled by the event, instead of read whole, would hide the rest of the list.
pub async fn a_cold_top_page_after_one_new_follow_is_the_whole_page(world: &World) {
    world.register(1..=130).await;
    for from in 2..=121 {
        world.user(from).await.follow(1).await;
    }
    world.drain().await;
    world.restart().await;
    world.user(130).await.follow(1).await;
    world.drain().await;
    let ada = world.user(1).await;
    // Cold, then warm, then changed again while it is warm.
    for expected in [121, 121] {
        let page = ada.read("/v1/users/1/followers?limit=100").await;
        let page = page["items"].as_array().unwrap();
        assert_eq!((page.len(), &page[0]["user_id"]), (100, &"130".into()));
        assert_eq!(world.followers(1).await.len(), expected);
    }
    world.user(129).await.follow(1).await;
    world.user(120).await.unfollow(1).await;
    world.drain().await;
    let page = ids(ada.read("/v1/users/1/followers?limit=100").await["items"].as_array().unwrap(), "user_id");
    assert_eq!((page.len(), page[0], page[1]), (100, 129, 130));
    assert!(!page.contains(&120));
    let whole: BTreeSet<u64> = world.followers(1).await.into_iter().collect();
    assert_eq!(whole, (2..=121).filter(|id| *id != 120).chain([129, 130]).collect());
}

/// Another list, another user, a change of a letter: refused, naming the cursor.
pub async fn a_cursor_holds_for_its_own_list_alone(world: &World) {
    world.register(1..=5).await;
    let ada = world.user(1).await;
    for to in 2..=5 {
        ada.follow(to).await;
        world.user(to).await.follow(1).await;
    }
    world.drain().await;
    let page = ada.read("/v1/users/1/following?limit=2").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    ada.read(&format!("/v1/users/1/following?cursor={cursor}")).await;
    let mut changed = cursor.to_owned();
    let last = if changed.pop() == Some('A') { 'B' } else { 'A' };
    changed.push(last);
    for path in [
        format!("/v1/users/1/followers?cursor={cursor}"),
        format!("/v1/users/2/following?cursor={cursor}"),
        format!("/v1/users/1/following/common?with=2&cursor={cursor}"),
        format!("/v1/users/1/following?cursor={changed}"),
        format!("/v1/users/1/following?cursor={}", &cursor[1..]),
        "/v1/users/1/following?cursor=".to_owned(),
    ] {
        ada.get(&path).await.is_bad("cursor");
    }
    ada.get(&format!("/v1/users/1/following?cursor={cursor}&offset=1")).await.is_bad("offset");
    world.admin().await.get(&format!("/v1/admin/events?cursor={cursor}")).await.is_bad("cursor");
}
