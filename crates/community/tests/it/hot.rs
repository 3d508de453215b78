//! Lists and counters in Redis: always what the database would answer.

mod chaos;
mod counters;
mod faults;
mod lists;
mod scripts;

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use tidings_backbone::{EventIds, Redis, log::Recorded, projector::Projector, redis::Options as RedisOptions};
use tidings_community::relation::{
    counters::CounterReader,
    facts::{Command, Relation},
    hot::{Hot, Options, RefreshingProjector},
    lists::Lists,
    projection::RelationProjector,
    read::{List, Page, Start},
    top_page::TopPages,
};
use tidings_testkit::database::Engine;

use crate::{
    redis,
    world::{World, user},
};

/// A world whose lists and counters are kept in Redis as well.
pub(crate) struct HotWorld {
    pub(crate) world: Arc<World>,
    pub(crate) redis: Redis,
    pub(crate) at: RedisOptions,
    pub(crate) relation: Relation,
    /// The decisions of a process that cannot reach Redis.
    pub(crate) cut_off: Relation,
    pub(crate) projector: RefreshingProjector,
    pub(crate) lists: Lists,
    pub(crate) counters: CounterReader,
}

/// Fences that are gone at the next call, and counters that are never believed.
pub(crate) const QUICK: Options = Options {
    list_entries_max: 1_000,
    keep_time: Duration::from_secs(600),
    fence_time: Duration::from_millis(1),
    counters_time: Duration::ZERO,
};

impl HotWorld {
    pub(crate) async fn new(users: i64, options: Options) -> Option<Self> {
        Self::on(Engine::Sqlite, users, options).await
    }

    pub(crate) async fn on(engine: Engine, users: i64, options: Options) -> Option<Self> {
        Some(Self::at(World::on(engine, users).await, redis::options()?, options))
    }

    pub(crate) fn at(world: impl Into<Arc<World>>, at: RedisOptions, options: Options) -> Self {
        let world = world.into();
        let redis = Redis::open(&at).unwrap();
        let hot = Hot::with_options(redis.clone(), EventIds::from_os(), options);
        let nowhere = Hot::open("redis://127.0.0.1:1", "", EventIds::from_os()).unwrap();
        let top_pages = TopPages::new(u32::MAX);
        Self {
            relation: Relation::new(world.ids.clone()).with_cache(hot.clone()),
            cut_off: Relation::new(world.ids.clone()).with_cache(nowhere),
            projector: RelationProjector.with_cache(hot.clone()),
            lists: Lists::new(world.db.clone(), top_pages).with_cache(hot.clone()),
            counters: CounterReader::checking_every(world.db.clone(), NonZeroU32::MAX).with_cache(hot),
            world,
            redis,
            at,
        }
    }

    pub(crate) async fn decide(&self, commands: &[Command]) {
        self.world.decide_by(&self.relation, commands).await;
    }

    /// Applies everything, and tells the projector of its commits.
    pub(crate) async fn drain(&self) {
        while let Some((_, events)) = self.apply(1_000).await {
            self.projector.committed(&events).await;
        }
    }

    /// Applies some, as a projector that dies before it is told of the commit.
    pub(crate) async fn apply(&self, limit: usize) -> Option<(usize, Vec<Recorded>)> {
        self.world.apply_next_by(&self.projector, limit).await
    }

    pub(crate) async fn followers(&self, id: i64, page: &Page) -> Option<List> {
        self.lists.followers(user(id), page).await.unwrap()
    }

    pub(crate) async fn followings(&self, id: i64, page: &Page) -> Option<List> {
        self.lists.followings(user(id), page).await.unwrap()
    }

    /// Asks until the list is in Redis: the first asks of a new epoch, and those before a fence is gone, are
    /// not for loading.
    pub(crate) async fn warm(&self, id: i64) {
        for _ in 0..1_000 {
            self.followers(id, &Page::first(1)).await;
            self.followings(id, &Page::first(1)).await;
            if self.number("EXISTS", &format!("uf:fans:{id}")).await == 1
                && self.number("EXISTS", &format!("uf:flws:{id}")).await == 1
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("the lists of {id} are not kept");
    }

    pub(crate) async fn number(&self, command: &str, key: &str) -> i64 {
        redis::number(&self.redis, command, key, &[]).await
    }

    /// Compares both lists of `id`, each page of several ways to page, and the counters with the database.
    pub(crate) async fn check(&self, id: i64) {
        for page in self.pages(id).await {
            let (followers, followings) =
                (self.world.followers(user(id), &page).await, self.world.followings(user(id), &page).await);
            assert_eq!(self.followers(id, &page).await, followers, "followers of {id}, {page:?}");
            assert_eq!(self.followings(id, &page).await, followings, "followings of {id}, {page:?}");
        }
        let counted = CounterReader::new(self.world.db.clone()).read(user(id)).await.unwrap();
        assert_eq!(self.counters.read(user(id)).await.unwrap(), counted, "counters of {id}");
    }

    async fn pages(&self, id: i64) -> Vec<Page> {
        let mut pages: Vec<Page> = [(0, 1), (0, 100), (2, 3), (7, 2), (50, 10)]
            .map(|(offset, limit)| Page::new(limit, Start::Offset(offset)).unwrap())
            .into();
        for list in [
            self.world.followers(user(id), &Page::first(4)).await,
            self.world.followings(user(id), &Page::first(3)).await,
        ] {
            pages.extend(list.and_then(|list| list.next).map(|mark| Page::new(2, Start::After(mark)).unwrap()));
        }
        pages
    }
}
