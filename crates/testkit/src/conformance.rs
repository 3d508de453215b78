//! The conformance suite: what every world must do, written once against the public API.
//!
//! A case is an `async fn(&World)`, named after what it proves. Cases live in modules, each with the
//! configuration it wants. [`conformance_suite!`](crate::conformance_suite) makes a test of every
//! case; since the list is here, no world can leave one out.

pub mod counters;
pub mod events;
pub mod idempotency;
pub mod lists;
pub mod process;
pub mod rate;
pub mod registry;
pub mod relation;

/// Makes a `#[tokio::test]` of every case on every world, as `on_embedded::CASE`, `on_mariadb::CASE` and
/// `on_mysql::CASE`. `$world` is an `async fn(Kind, &[(&str, &str)]) -> World` that starts a world with some keys
/// of the configuration set.
#[macro_export]
macro_rules! conformance_suite {
    ($world:path) => {
        $crate::conformance_suite! { @worlds $world; on_embedded Embedded, on_mariadb Mariadb, on_mysql Mysql; [
            registry: registering_again_changes_nothing, registry: an_id_and_a_handle_belong_to_one_user,
            registry: a_user_without_an_id_gets_the_next_one, registry: users_are_found_by_id_and_by_handle,
            relation: following_is_idempotent_and_versions_rise_with_each_change,
            relation: a_thousand_concurrent_identical_follows_are_one_row_one_event_and_one_count,
            relation: what_cannot_be_followed_is_refused_and_leaves_no_event,
            relation: unfollowing_somebody_never_followed_changes_nothing,
            relation: a_writer_sees_his_own_write_at_once,
            relation: the_status_of_a_hundred_users_is_told_in_the_order_asked,
            lists: lists_are_newest_first_by_offset_and_by_cursor, lists: a_refollow_is_new_again,
            lists: common_follows_are_those_of_both_and_page_by_id,
            lists: a_cold_top_page_after_one_new_follow_is_the_whole_page,
            lists: a_cursor_holds_for_its_own_list_alone,
            counters: counters_are_the_lengths_of_the_lists,
            counters: many_users_toggling_at_once_end_with_everything_agreeing,
            rate: the_bucket_holds_its_capacity_and_says_when_to_retry,
            rate: each_user_has_a_bucket_of_his_own,
            idempotency: a_repeated_key_gets_the_first_answer_even_after_the_state_changed,
            idempotency: a_key_with_another_body_is_refused_and_changes_nothing,
            idempotency: concurrent_requests_of_one_key_have_one_effect_and_one_answer,
            idempotency: the_key_of_another_caller_is_another_key,
            idempotency: a_repeated_registration_is_one_user,
            events: an_event_says_all_that_its_consumer_needs, events: events_page_in_the_order_of_their_commits,
            process: everything_acknowledged_is_there_after_an_orderly_restart,
            process: a_frozen_part_goes_on_where_it_was,
        ] }
    };
    (@worlds $world:path; $($name:ident $kind:ident),+; $cases:tt) => {
        $(
            mod $name {
                $crate::conformance_suite! { @cases $world; $kind; $cases }
            }
        )+
    };
    (@cases $world:path; $kind:ident; [$($module:ident: $case:ident),* $(,)?]) => {
        $(
            #[tokio::test]
            async fn $case() {
                let kind = $crate::Kind::$kind;
                if kind.is_left_out() {
                    eprintln!("not run: this world was left out");
                    return;
                }
                let world = $world(kind, $crate::conformance::$module::SETTINGS).await;
                $crate::conformance::$module::$case(&world).await;
            }
        )*
    };
}

/// Room for tests that write faster than people do.
const NO_RATE_LIMIT: &[(&str, &str)] = &[("rate.follow_capacity", "100000")];
