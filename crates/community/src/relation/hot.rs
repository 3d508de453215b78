//! What is hot, in Redis: lists of users and counters, shared by all processes.
//!
//! Nothing here is the truth, and nothing here has to be believed: Redis may be flushed, killed,
//! frozen, or come back from an old file, and every answer is still the one the database would give,
//! only later. Three rules make it so.
//!
//! **A list is whole and has a number.** It is kept with the number of its owner's changes
//! (`user_counter.changes`) that stood in the snapshot it was read in, and is served only while the
//! database names the same number. So a list that missed a change, for whatever reason, is not
//! served; and what a list holds is told by its own head, so a part never looks like the whole. Of a
//! list longer than [`limits::HOT_LIST_ENTRIES_MAX`] the beginning is kept, and served where it
//! reaches.
//!
//! **Followings are fenced.** They are read from facts, which change before the projector counts, so
//! their number comes too late: the writer would not see his own write. Therefore the decision, in its
//! transaction and before the commit, ends the list and every load of it that is under way, and lets no
//! new load begin for [`Options::fence_time`]. A load that began before the fence finds its token gone; one that
//! begins after it reads after the commit. Where Redis cannot be told, the decision raises the number
//! in the same transaction instead ([`facts`](super::facts)). A Redis that has forgotten its fences (flushed,
//! restarted, another replica) begins a new epoch: what it remembers of an older one is not
//! served, and nothing is loaded before a forgotten fence would have ended. What is left: a commit that takes
//! longer than the fence stands shows in a list only once the projector has applied it.
//!
//! **A counter is asked of the database once a second.** Its row there is one look-up by primary key, just what
//! it would take to check the copy; so a copy is served unchecked for [`Options::counters_time`] after the
//! database was last asked, on Redis's clock, and then asked for anew. A user who is looked at a
//! thousand times a second costs one look-up; a counter is never later than the projector by more.
//!
//! | key | holds |
//! |---|---|
//! | `uf:fans:{id}`, `uf:flws:{id}` | sorted set: followers, followings |
//! | ... `:load`, `:fence` | the token of a load under way; whether one may begin |
//! | `uf:epoch` | which Redis this is, and since when |
//! | `ucnt:{id}` | five counters in 40 bytes |

mod counters;
mod list;
mod look;
mod projector;
mod refresh;

use std::{sync::Arc, time::Duration};

use tidings_backbone::{
    EventIds, Redis, Result,
    redis::{self, Script},
};
use tidings_event::Timestamp;

pub use projector::RefreshingProjector;

pub(super) use counters::KeptCounters;
pub(super) use list::{Found, Line, ListName};
pub(super) use look::{Kept, KeptList};

use crate::limits;

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Lines of a list that are kept.
    pub list_entries_max: usize,
    /// Time after which a list or a counter that nobody renews goes; a tenth more or less, by lot.
    pub keep_time: Duration,
    /// Time after a change of facts in which the list they make is not loaded: longer than any commit.
    pub fence_time: Duration,
    /// Time for which a counter is believed after the database was asked.
    pub counters_time: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            list_entries_max: limits::HOT_LIST_ENTRIES_MAX,
            keep_time: limits::HOT_KEEP_TIME,
            fence_time: limits::HOT_FENCE_TIME,
            counters_time: limits::HOT_COUNTERS_TIME,
        }
    }
}

/// What is hot. Cheap to clone; clones share their connection.
#[derive(Clone, Debug)]
pub struct Hot(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    redis: Redis,
    ids: EventIds,
    options: Options,
    read_list: Script,
    store_list: Script,
    fence_lists: Script,
    read_counters: Script,
    store_counters: Script,
    kept: Script,
    refresh: Script,
    look: Script,
    drop: Script,
}

impl Hot {
    /// In `redis`, with tokens from `ids`, which must be other ones in each process.
    pub fn new(redis: Redis, ids: EventIds) -> Self {
        Self::with_options(redis, ids, Options::default())
    }

    /// In the Redis at `url`, all keys with `key_prefix`.
    ///
    /// # Errors
    /// When the address is none.
    pub fn open(url: &str, key_prefix: &str, ids: EventIds) -> Result<Self> {
        Ok(Self::new(Redis::open(&redis::Options::new(url, key_prefix))?, ids))
    }

    /// As [`Hot::new`], with times and sizes of one's own.
    pub fn with_options(redis: Redis, ids: EventIds, options: Options) -> Self {
        Self(Arc::new(Shared {
            redis,
            ids,
            options,
            read_list: Script::new(include_str!("lua/read_list.lua")),
            store_list: Script::new(include_str!("lua/store_list.lua")),
            fence_lists: Script::new(include_str!("lua/fence_lists.lua")),
            read_counters: Script::new(include_str!("lua/read_counters.lua")),
            store_counters: Script::new(include_str!("lua/store_counters.lua")),
            kept: Script::new(include_str!("lua/kept.lua")),
            refresh: Script::new(include_str!("lua/refresh.lua")),
            look: Script::new(include_str!("lua/look.lua")),
            drop: Script::new(include_str!("lua/drop.lua")),
        }))
    }

    /// The connection, for other things that are kept there.
    pub fn redis(&self) -> &Redis {
        &self.0.redis
    }

    /// Sixteen bytes that no other call of any process has.
    fn token(&self) -> [u8; 16] {
        *self.0.ids.next(Timestamp(0)).as_bytes()
    }

    /// How long something is kept, in milliseconds: things that were made together do not go together.
    fn keep_ms(&self) -> i64 {
        let keep = millis(self.0.options.keep_time);
        let lot = i64::from(self.token()[15]);
        keep - keep / 10 + keep / 5 * lot / 255
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
