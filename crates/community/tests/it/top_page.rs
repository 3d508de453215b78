//! The first page in memory: always what the database would answer, from whatever process.

use tidings_community::relation::{
    lists::Lists,
    read::{List, Page, Start},
    top_page::TopPages,
};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::world::{World, follow, unfollow, user};

on_every_engine!(
    a_page_is_served_from_memory_until_the_list_changes,
    every_page_is_the_one_the_database_would_answer,
    a_list_that_keeps_its_length_but_not_its_people_is_read_again,
    an_account_below_the_threshold_or_without_counters_is_not_kept,
    a_projector_in_another_process_is_noticed,
    an_unknown_user_has_no_page,
);

async fn read(world: &World, pages: &TopPages, id: i64, page: &Page) -> Option<List> {
    Lists::new(world.db.clone(), pages.clone()).followers(user(id), page).await.unwrap()
}

/// User 1 has the followers 2 to `fans` + 1, each of another moment.
async fn world(engine: Engine, fans: i64) -> World {
    let world = World::on(engine, fans + 5).await;
    for from in 2..=fans + 1 {
        world.done(follow(from, 1)).await;
        world.tick(1);
    }
    world.drain().await;
    world
}

/// Changes a name behind everybody's back, so that a page from memory can be told from one that
/// was read.
async fn rename(world: &World, id: i64, handle: &str) {
    let args = vec![handle.into(), id.into()];
    assert_eq!(world.tamper("UPDATE account SET handle = ? WHERE id = ?", args).await, 1);
}

async fn a_page_is_served_from_memory_until_the_list_changes(engine: Engine) {
    let world = world(engine, 20).await;
    let pages = TopPages::new(10);
    let first = read(&world, &pages, 1, &Page::first(5)).await.unwrap();
    rename(&world, first.entries[0].user_id.get(), "renamed").await;
    assert_eq!(read(&world, &pages, 1, &Page::first(5)).await.unwrap(), first, "it is in memory");
    world.done(follow(22, 1)).await;
    assert_eq!(read(&world, &pages, 1, &Page::first(5)).await.unwrap(), first, "the event is not applied yet");
    world.drain().await;
    let fresh = read(&world, &pages, 1, &Page::first(5)).await.unwrap();
    assert_eq!(fresh.entries[0].user_id, user(22));
    assert_eq!(fresh.entries[1].handle.as_str(), "renamed");
}

async fn every_page_is_the_one_the_database_would_answer(engine: Engine) {
    for fans in [12, 99, 100, 101, 130] {
        let world = world(engine, fans).await;
        let pages = TopPages::new(10);
        for _ in 0..2 {
            for (offset, limit) in [(0, 1), (0, 20), (0, 100), (7, 5), (95, 5), (90, 10), (99, 1), (99, 2), (60, 100)] {
                let page = Page::new(limit, Start::Offset(offset)).unwrap();
                let expected = world.followers(user(1), &page).await;
                assert_eq!(read(&world, &pages, 1, &page).await, expected, "{fans} fans, {page:?}");
            }
            let mark = world.followers(user(1), &Page::first(4)).await.unwrap().next.unwrap();
            let page = Page::new(4, Start::After(mark)).unwrap();
            assert_eq!(read(&world, &pages, 1, &page).await, world.followers(user(1), &page).await);
        }
    }
}

async fn a_list_that_keeps_its_length_but_not_its_people_is_read_again(engine: Engine) {
    let world = world(engine, 12).await;
    let pages = TopPages::new(10);
    read(&world, &pages, 1, &Page::first(5)).await.unwrap();
    world.decide(&[unfollow(2, 1), follow(15, 1)]).await;
    world.drain().await;
    assert_eq!(read(&world, &pages, 1, &Page::first(5)).await, world.followers(user(1), &Page::first(5)).await);
}

async fn an_account_below_the_threshold_or_without_counters_is_not_kept(engine: Engine) {
    let world = world(engine, 9).await;
    let pages = TopPages::new(10);
    let first = read(&world, &pages, 1, &Page::first(5)).await.unwrap();
    let shown = first.entries[0].user_id.get();
    rename(&world, shown, "renamed").await;
    assert_eq!(read(&world, &pages, 1, &Page::first(5)).await.unwrap().entries[0].handle.as_str(), "renamed");

    world.decide(&[follow(11, 1), follow(12, 1)]).await;
    world.drain().await;
    read(&world, &pages, 1, &Page::first(5)).await.unwrap();
    world.tamper("DELETE FROM user_counter WHERE user_id = 1", vec![]).await;
    rename(&world, shown, "again").await;
    let list = read(&world, &pages, 1, &Page::first(5)).await.unwrap();
    assert!(list.entries.iter().any(|entry| entry.handle.as_str() == "again"));
}

async fn a_projector_in_another_process_is_noticed(engine: Engine) {
    let world = world(engine, 12).await;
    let pages = TopPages::new(10);
    read(&world, &pages, 1, &Page::first(5)).await.unwrap();
    world.done(follow(15, 1)).await;
    let other = World { db: world.reopen().await, ..world };
    other.drain().await;
    let list = read(&other, &pages, 1, &Page::first(5)).await.unwrap();
    assert_eq!(list.entries[0].user_id, user(15));
}

async fn an_unknown_user_has_no_page(engine: Engine) {
    let world = world(engine, 12).await;
    assert_eq!(read(&world, &TopPages::new(0), 99, &Page::first(5)).await, None);
}
