//! Paging while the list changes.

use std::{
    cell::Cell,
    collections::{BTreeSet, HashSet},
};

use futures::future::{join, join_all};
use tidings_testkit::{
    Caller, Kind, World,
    caller::ids,
    graph,
    model::{Change, User},
    on_every_world,
};

use crate::world_on;

/// The largest account of the graph that the product is shown with.
const FOLLOWERS: u64 = 9_458;
const CHANGING: u64 = 40;

/// Follows and unfollows until told to end; what stays in the end does not matter.
async fn keep_changing(caller: &Caller<'_>, center: User, mut following: bool, ended: &Cell<bool>) {
    while !ended.get() {
        let change = if following { Change::Unfollow } else { Change::Follow };
        following = caller.change(change, center).await.outcome().following;
    }
}

async fn page_while_changing(world: &World, callers: &[(User, Caller<'_>)], limit: u32) -> Vec<User> {
    let ended = Cell::new(false);
    let admin = world.admin().await;
    let paging = async {
        let items = admin.pages("/v1/users/1/followers", limit).await;
        ended.set(true);
        ids(&items, "user_id")
    };
    // The first half are followers already.
    let changing =
        join_all(callers.iter().map(|(user, caller)| keep_changing(caller, 1, *user < 2 + FOLLOWERS, &ended)));
    join(paging, changing).await.0
}

on_every_world!(a_list_of_9458_pages_to_its_end_without_skip_or_repeat_while_people_come_and_go,);

async fn a_list_of_9458_pages_to_its_end_without_skip_or_repeat_while_people_come_and_go(kind: Kind) {
    let world = world_on(kind, &[("rate.follow_capacity", "1000000")]).await;
    let file = graph::write_csv(world.scratch_folder(), &graph::star(1, 2, FOLLOWERS));
    world.run(&["import", "follows", file.to_str().unwrap()]).await;
    let outsiders = 2 + FOLLOWERS..2 + FOLLOWERS + CHANGING / 2;
    world.register(outsiders.start..=outsiders.end - 1).await;
    world.drain().await;
    assert_eq!(world.counters(1).await, (0, FOLLOWERS));
    assert_eq!(world.followers(1).await.len() as u64, FOLLOWERS);

    let leaving = (0..CHANGING / 2).map(|n| 2 + n * (FOLLOWERS / CHANGING * 2));
    let changing: Vec<User> = leaving.chain(outsiders).collect();
    let tokens = join_all(changing.iter().map(|user| world.user(*user))).await;
    let callers: Vec<(User, Caller<'_>)> = changing.iter().copied().zip(tokens).collect();
    for limit in [100, 37] {
        let listed = page_while_changing(&world, &callers, limit).await;
        let distinct: HashSet<User> = listed.iter().copied().collect();
        assert_eq!(distinct.len(), listed.len(), "nobody comes twice");
        let stayed: BTreeSet<User> = (2..2 + FOLLOWERS).filter(|user| !changing.contains(user)).collect();
        let skipped: Vec<&User> = stayed.iter().filter(|user| !distinct.contains(user)).collect();
        assert_eq!(skipped, [] as [&User; 0], "nobody who stayed is left out");
        // The next round begins with the followers following again.
        for (user, caller) in &callers {
            let change = if *user < 2 + FOLLOWERS { Change::Follow } else { Change::Unfollow };
            caller.change(change, 1).await.outcome();
        }
    }
    world.drain().await;
    assert_eq!(world.counters(1).await, (0, FOLLOWERS));
    world.verify().await;
}
