//! Lists, their pages, and status.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidings_community::{
    UserId,
    relation::{
        facts::Command,
        read::{InvalidPage, List, Mark, Page, Start},
        status::status,
    },
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine};

use crate::world::{START, World, block_on, follow, unfollow, user};

on_every_engine!(
    lists_are_newest_first_and_name_handle_and_time,
    a_writer_sees_his_own_follow_at_once,
    an_unknown_user_has_no_list_and_a_known_one_may_have_an_empty_one,
    offset_pages_cut_the_list_without_gap_or_overlap,
    a_list_that_ends_with_its_page_has_no_next,
    marks_that_nobody_gave_out_are_only_places_in_the_order,
    a_list_of_many_follows_of_one_moment_pages_to_its_end,
    status_answers_both_directions_in_the_order_asked,
    status_has_a_limit,
);

fn ids(list: &List) -> Vec<i64> {
    list.entries.iter().map(|entry| entry.user_id.get()).collect()
}

async fn lists_are_newest_first_and_name_handle_and_time(engine: Engine) {
    let world = World::on(engine, 4).await;
    for to in [3, 2, 4] {
        world.done(follow(1, to)).await;
        world.done(follow(to, 1)).await;
        world.tick(10);
    }
    world.drain().await;
    let followings = world.followings(user(1), &Page::first(10)).await.unwrap();
    let followers = world.followers(user(1), &Page::first(10)).await.unwrap();
    assert_eq!(ids(&followings), [4, 2, 3]);
    assert_eq!(followers, followings);
    assert_eq!(followers.entries[0].handle.as_str(), "user4");
    assert_eq!(followers.entries[0].followed_at, Timestamp(START.0 + 20));
    assert_eq!(followers.next, None);
}

async fn a_writer_sees_his_own_follow_at_once(engine: Engine) {
    let world = World::on(engine, 2).await;
    world.done(follow(1, 2)).await;
    assert_eq!(ids(&world.followings(user(1), &Page::first(10)).await.unwrap()), [2]);
    world.done(unfollow(1, 2)).await;
    assert!(world.followings(user(1), &Page::first(10)).await.unwrap().entries.is_empty());
}

async fn an_unknown_user_has_no_list_and_a_known_one_may_have_an_empty_one(engine: Engine) {
    let world = World::on(engine, 1).await;
    assert_eq!(world.followers(user(7), &Page::first(10)).await, None);
    assert_eq!(world.followings(user(7), &Page::first(10)).await, None);
    assert!(world.followers(user(1), &Page::first(10)).await.unwrap().entries.is_empty());
}

async fn offset_pages_cut_the_list_without_gap_or_overlap(engine: Engine) {
    let world = World::on(engine, 8).await;
    for to in 2..=8 {
        world.done(follow(1, to)).await;
        world.tick(1);
    }
    let mut seen = Vec::new();
    for offset in [0, 3, 6] {
        let page = Page::new(3, Start::Offset(offset)).unwrap();
        seen.extend(ids(&world.followings(user(1), &page).await.unwrap()));
    }
    assert_eq!(seen, [8, 7, 6, 5, 4, 3, 2]);
    let past = Page::new(3, Start::Offset(7)).unwrap();
    let list = world.followings(user(1), &past).await.unwrap();
    assert_eq!((list.entries.len(), list.next), (0, None));
}

async fn a_list_that_ends_with_its_page_has_no_next(engine: Engine) {
    let world = World::on(engine, 4).await;
    world.decide(&[follow(1, 2), follow(1, 3), follow(1, 4)]).await;
    assert_eq!(world.followings(user(1), &Page::first(3)).await.unwrap().next, None);
    let two = world.followings(user(1), &Page::first(2)).await.unwrap();
    assert_eq!(two.next, Some(two.entries[1].mark()));
}

#[test]
fn a_page_is_within_its_limits() {
    assert_eq!(Page::new(0, Start::Offset(0)), Err(InvalidPage::Limit));
    assert_eq!(Page::new(101, Start::Offset(0)), Err(InvalidPage::Limit));
    assert_eq!(Page::new(1, Start::Offset(10_001)), Err(InvalidPage::Offset));
    assert!(Page::new(100, Start::Offset(10_000)).is_ok());
    assert_eq!(Page::first(0).limit(), 1);
    assert_eq!(Page::first(u32::MAX).limit(), 100);
}

async fn marks_that_nobody_gave_out_are_only_places_in_the_order(engine: Engine) {
    let world = World::on(engine, 3).await;
    world.decide(&[follow(1, 2), follow(1, 3)]).await;
    for (at, id, expected) in [
        (i64::MIN, 0, vec![]),
        (i64::MAX, i64::MAX, vec![3, 2]),
        (START.0, 3, vec![2]),
        (START.0, i64::MAX, vec![3, 2]),
    ] {
        let mark = Mark { at: Timestamp(at), user: user(id) };
        let page = Page::new(10, Start::After(mark)).unwrap();
        assert_eq!(ids(&world.followings(user(1), &page).await.unwrap()), expected);
    }
}

/// Pages through the followers of `owner`, doing something between pages.
async fn page_through(world: &World, owner: UserId, limit: u32, between: &[Vec<Command>]) -> Vec<i64> {
    let mut seen = Vec::new();
    let mut between = between.iter();
    let mut page = Page::first(limit);
    loop {
        let list = world.followers(owner, &page).await.unwrap();
        seen.extend(ids(&list));
        assert!(seen.len() < 10_000, "paging comes to an end");
        let Some(mark) = list.next else { return seen };
        page = Page::new(limit, Start::After(mark)).unwrap();
        if let Some(commands) = between.next() {
            world.tick(1);
            world.decide(commands).await;
            world.drain().await;
        }
    }
}

async fn a_list_of_many_follows_of_one_moment_pages_to_its_end(engine: Engine) {
    let world = World::on(engine, 1_001).await;
    let commands: Vec<_> = (2..=1_001).map(|from| follow(from, 1)).collect();
    world.decide(&commands).await;
    world.drain().await;
    let seen = page_through(&world, user(1), 37, &[]).await;
    assert_eq!(seen, (2..=1_001).rev().collect::<Vec<_>>());
}

const FANS: i64 = 24;

/// The fans 2 to 13 follow user 1 all the time; the others come and go.
fn comings_and_goings() -> impl Strategy<Value = Vec<Vec<Command>>> {
    let one = (any::<bool>(), 14..=FANS + 1)
        .prop_map(|(follows, from)| if follows { follow(from, 1) } else { unfollow(from, 1) });
    proptest::collection::vec(proptest::collection::vec(one, 1..5), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whoever follows all the time is seen exactly once, in order, whoever else comes and goes.
    #[test]
    fn paging_neither_skips_nor_repeats_a_follow_that_stays(
        spread in proptest::collection::vec(0_u64..2, FANS as usize),
        limit in 1_u32..7,
        between in comings_and_goings(),
    ) {
        block_on(async {
            let world = World::new(FANS + 1).await;
            for (ms, from) in spread.iter().zip(2..=FANS + 1) {
                world.tick(*ms);
                world.done(follow(from, 1)).await;
            }
            world.drain().await;
            let all = world.followers(user(1), &Page::first(100)).await.unwrap();
            let staying = |id: &i64| *id <= 13;
            let expected: Vec<i64> = ids(&all).into_iter().filter(staying).collect();

            let seen = page_through(&world, user(1), limit, &between).await;
            prop_assert_eq!(seen.iter().copied().filter(staying).collect::<Vec<_>>(), expected);
            let distinct: BTreeSet<i64> = seen.iter().copied().collect();
            prop_assert_eq!(distinct.len(), seen.len(), "nobody is seen twice");
            Ok(())
        })?;
    }
}

async fn status_answers_both_directions_in_the_order_asked(engine: Engine) {
    let world = World::on(engine, 5).await;
    world.decide(&[follow(1, 2), follow(3, 1), follow(1, 4), follow(4, 1), follow(1, 5), unfollow(1, 5)]).await;
    let mut tx = world.db.read().await.unwrap();
    let asked = [4, 99, 2, 3, 5, 1, 4].map(user);
    let answers = status(&mut tx.conn(), user(1), &asked).await.unwrap();
    let told: Vec<_> = answers.iter().map(|s| (s.user_id.get(), s.following, s.followed_by, s.mutual())).collect();
    assert_eq!(
        told,
        [
            (4, true, true, true),
            (99, false, false, false),
            (2, true, false, false),
            (3, false, true, false),
            (5, false, false, false),
            (1, false, false, false),
            (4, true, true, true),
        ]
    );
}

async fn status_has_a_limit(engine: Engine) {
    let world = World::on(engine, 1).await;
    let mut tx = world.db.read().await.unwrap();
    let asked: Vec<_> = (0..101).map(user).collect();
    assert_eq!(status(&mut tx.conn(), user(1), &asked[..100]).await.unwrap().len(), 100);
    status(&mut tx.conn(), user(1), &asked).await.unwrap_err();
}
