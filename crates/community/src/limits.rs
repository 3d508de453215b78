//! Every limit of this crate, with its unit in its name.

use std::time::Duration;

/// Characters of a handle.
pub const HANDLE_CHARS_MAX: usize = 32;

/// Entries of one page of a list.
pub const PAGE_ENTRIES_MAX: u32 = 100;
/// Entries an offset may skip. Whoever needs more uses the cursor, which costs the same anywhere.
pub const PAGE_OFFSET_MAX: u32 = 10_000;
/// Users whose relation to one user is told at once.
pub const STATUS_TARGETS_MAX: usize = 100;

/// Follows and unfollows that a user may make at once.
pub const FOLLOW_BUCKET_CAPACITY: u32 = 100;
/// Time in which one of them is given back.
pub const FOLLOW_BUCKET_REFILL: Duration = Duration::from_secs(1);
/// Buckets below which memory is not worth tidying.
pub const FOLLOW_BUCKETS_KEPT_MIN: usize = 1_024;

/// Followers from which an account's first page is kept in memory.
pub const TOP_PAGE_FOLLOWERS_MIN: u32 = 1_000;
/// Accounts whose first page is kept in memory; one takes some 8 KB.
pub const TOP_PAGE_ACCOUNTS_MAX: u64 = 1_000;

/// Lines of a list that Redis keeps; of a longer list, the first.
pub const HOT_LIST_ENTRIES_MAX: usize = 5_000;
/// Time for which Redis keeps what nobody renews; a tenth more or less.
pub const HOT_KEEP_TIME: Duration = Duration::from_hours(2);
/// Time after a change in which a list of facts is not loaded. No commit takes longer.
pub const HOT_FENCE_TIME: Duration = Duration::from_secs(30);
/// Time that loading a list may take; what comes later is not kept.
pub const HOT_LOAD_TIME_MAX: Duration = Duration::from_secs(5);
/// Time for which a counter is answered from Redis without asking the database.
pub const HOT_COUNTERS_TIME: Duration = Duration::from_secs(1);
/// Users whose lists and counters one call of Redis changes.
pub const HOT_CALL_USERS_MAX: usize = 128;
/// Users of whom one call of Redis finds out whether anything is kept.
pub const HOT_KEPT_USERS_MAX: usize = 512;
/// Batches of a projector that wait to be known as committed.
pub const HOT_APPLIED_MAX: usize = 256;

/// One read of a counter in this many recounts it.
pub const COUNTER_CHECK_EVERY_READS: u32 = 100;

/// Rows of a table that one statement of the verification looks at.
pub const VERIFY_STEP_ROWS: i64 = 20_000;
/// Differences that a report shows in full; all are counted.
pub const VERIFY_EXAMPLES_MAX: usize = 20;
/// Users whose counters are kept at once where they are compared one by one.
pub const VERIFY_USERS_MAX: u64 = 1_000_000;
/// Pairs and users with differences that can be looked at again.
pub const VERIFY_SUSPECTS_MAX: usize = 100_000;
/// How often a reconciliation looks again at what differs and is not the same from look to look.
pub const RECONCILE_LOOKS_MAX: usize = 12;
/// The highest version that a pair is stated anew at. A damaged row with a higher one is left to a rebuild: from there,
/// a pair could soon not change any more.
pub const RESTATED_VERSION_MAX: i64 = i64::MAX / 2;
/// Users of whom a reconciliation asks what Redis keeps.
pub const RECONCILE_CACHE_USERS_MAX: usize = 8_192;
/// Users whose kept lists and counters it compares.
pub const RECONCILE_CACHE_SAMPLE_MAX: usize = 200;
/// How often a rebuild looks again at pairs that differ, while their facts change from look to look.
pub const REBUILD_LOOKS_MAX: usize = 30;
