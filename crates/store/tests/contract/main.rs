//! The contract: what every backend promises, as tests that run on each of them.
//!
//! A test takes a fresh [`Backend`] and knows nothing else about it. To add one, write it in the module it belongs to
//! and name it in the list below.

mod compaction;
mod expiry;
mod followers;
mod life;
mod reads;
mod transactions;
mod watches;

use store::{Outcome, Result, Revision, Store, Txn};
use testkit::backend::Backend;
use testkit::etcd::{Cluster, Version, available_versions};

/// Commits what must succeed.
async fn commit(store: &dyn Store, txn: Txn) -> Revision {
    match store.commit(txn).await.expect("the commit is answered") {
        Outcome::Committed(revision) => revision,
        conflict @ Outcome::Conflict { .. } => panic!("unexpected {conflict:?}"),
    }
}

macro_rules! on {
    ($backend:ident, $open:expr, $($module:ident::$test:ident,)*) => {
        mod $backend {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(backend) = $open.await {
                    super::$module::$test(backend).await;
                }
            })*
        }
    };
}

macro_rules! contract {
    ($($module:ident::$test:ident,)*) => {
        on!(memory, async { Some(Backend::memory()) }, $($module::$test,)*);
        on!(sqlite, async { Some(Backend::sqlite().await) }, $($module::$test,)*);
        on!(etcd_debian, Backend::etcd(Version::Debian), $($module::$test,)*);
        on!(etcd_v3_5, Backend::etcd(Version::V3_5), $($module::$test,)*);

        /// All of it on one cluster, each test under a root of its own, and members are lost on the way.
        async fn on_cluster(mut cluster: Cluster) {
            let mut done = 0;
            $(
                let root = concat!("/", stringify!($test), "/");
                $module::$test(Backend::etcd_at(cluster.endpoints(), root).await).await;
                done += 1;
                lose_a_member(&mut cluster, done).await;
            )*
        }
    };
}

/// Every few tests the member that is down comes back and the next one goes.
async fn lose_a_member(cluster: &mut Cluster, done: usize) {
    const TESTS_PER_MEMBER: usize = 8;
    if !done.is_multiple_of(TESTS_PER_MEMBER) {
        return;
    }
    let round = done / TESTS_PER_MEMBER;
    if round > 1 {
        cluster.members[(round - 1) % 3].restart().await;
    }
    cluster.members[round % 3].kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_on_three_members_of_which_one_is_down() {
    for version in available_versions() {
        on_cluster(Cluster::start(version, 3).await).await;
    }
}

contract!(
    transactions::every_changing_commit_gets_the_next_revision,
    transactions::a_key_counts_its_versions_and_starts_over_after_deletion,
    transactions::create_conflicts_with_a_present_key,
    transactions::update_conflicts_with_a_newer_value,
    transactions::a_conflict_shows_every_condition_and_changes_nothing,
    transactions::all_changes_of_a_transaction_share_one_revision,
    transactions::deleting_an_absent_key_is_no_change,
    transactions::what_can_never_work_is_refused_without_a_trace,
    transactions::a_value_at_the_size_limit_is_kept_whole,
    transactions::concurrent_increments_are_never_lost,
    reads::ranges_are_ordered_and_end_with_their_prefix,
    reads::pages_follow_each_other_and_count_what_is_left,
    reads::the_past_can_be_read_at_every_kept_revision,
    reads::the_past_is_there_after_reopening,
    reads::a_future_revision_is_refused,
    watches::a_watch_delivers_every_change_once_and_in_order,
    watches::a_watch_sees_only_its_prefix,
    watches::a_transaction_is_never_split,
    watches::previous_values_come_on_request,
    watches::a_watch_resumes_after_any_kept_revision,
    watches::a_watch_resumes_after_reopening,
    watches::a_watch_that_is_never_read_delays_nobody_and_loses_nothing,
    watches::ten_thousand_watchers_each_get_their_own_change,
    watches::a_cancelled_wait_loses_nothing,
    watches::progress_covers_changes_that_did_not_matter,
    watches::a_reader_that_saw_a_change_finds_it_in_the_state,
    followers::a_follower_is_handed_every_commit_once_and_in_order,
    followers::a_follower_that_comes_late_is_handed_what_it_missed,
    followers::whoever_stops_following_is_handed_nothing_more,
    followers::a_follower_learns_that_the_store_is_closed,
    followers::nobody_follows_from_what_was_compacted,
    compaction::what_was_compacted_cannot_be_read_or_watched,
    compaction::the_compacted_revision_itself_stays_readable,
    compaction::compaction_keeps_current_values_however_old,
    compaction::compacting_the_future_or_the_past_is_refused,
    compaction::a_watcher_that_is_up_to_date_survives_compaction,
    compaction::compaction_holds_after_reopening,
    expiry::a_key_with_a_ttl_goes_away_by_itself_and_not_early,
    expiry::putting_again_replaces_the_ttl,
    expiry::a_deadline_survives_reopening,
    life::a_closed_store_refuses_and_ends_its_watches,
    life::figures_follow_what_is_stored,
    life::everything_acknowledged_is_there_after_reopening,
);

/// The compacted revision an error names.
fn compacted_in<T: std::fmt::Debug>(result: Result<T>) -> Revision {
    match result {
        Err(store::Error::Compacted { compacted, .. }) => compacted,
        other => panic!("expected Compacted, got {other:?}"),
    }
}
