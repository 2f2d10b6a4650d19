//! Expands every conformance case for every store.

use crate::world::{Database, World};
use crate::{cases_events, cases_flights, cases_inputs, cases_leases, cases_shared, cases_whole};
use convoke_journal::Location;

macro_rules! journal_suite {
    ($($group:ident: [$($case:ident),* $(,)?])*) => {
        mod memory {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$group::$case(super::World::memory().await).await;
                }
            )*)*
        }
        mod sqlite {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$group::$case(super::World::sqlite()).await;
                }
            )*)*
        }
        mod postgres {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let name = concat!("postgres::", stringify!($case));
                    let Some(database) = super::Database::create(name).await else { return };
                    let world = super::World::at(super::Location::Postgres(database.url.clone()));
                    // In a task of its own, so that the database goes away also when the case fails.
                    let done = tokio::spawn(super::$group::$case(world)).await;
                    database.remove().await;
                    done.unwrap();
                }
            )*)*
        }
    };
}

journal_suite! {
    cases_leases: [
        a_lost_lease_cannot_append,
        two_processes_cannot_own_one_stream,
        of_many_who_want_a_stream_one_gets_it,
        one_process_cannot_own_a_stream_twice,
        a_dropped_lease_can_be_had_again_and_fences_the_old_one,
        a_provably_dead_owner_is_replaced_at_once,
        an_expired_lease_is_replaced_and_the_old_owner_is_fenced,
        a_silent_owner_of_another_boot_is_respected_until_it_expires,
        a_heartbeat_makes_an_owner_young_again,
        a_released_stream_is_free_and_its_lease_is_worthless,
        releasing_a_lost_lease_takes_nothing_from_the_new_owner,
        every_lease_has_a_greater_epoch_even_after_a_prune,
        closing_gives_up_the_leases_and_ends_the_handle,
        a_lease_is_held_until_it_is_lost_or_released,
    ]
    cases_events: [
        appended_events_come_back_as_they_were,
        a_stale_sequence_changes_nothing,
        an_append_without_events_keeps_the_sequence,
        long_text_survives_and_is_stored_once,
        odd_text_survives,
        a_raw_nul_is_refused_and_changes_nothing,
        tail_returns_at_once_what_is_there,
        tail_wakes_up_for_an_append_of_this_process,
        tail_wakes_up_for_an_append_of_another_process,
    ]
    cases_inputs: [
        a_key_submitted_twice_is_one_input_even_after_its_acknowledgement,
        the_same_key_in_two_streams_is_two_inputs,
        inputs_wait_in_order_and_looking_does_not_consume,
        an_acknowledgement_is_atomic_with_its_append,
        inputs_for_other_streams_travel_with_the_append,
        a_message_is_delivered_once_however_often_it_is_sent,
        an_input_can_be_put_back_under_a_new_key,
        agents_that_write_to_each_other_do_not_block_each_other,
    ]
    cases_shared: [
        an_update_begins_from_nothing_and_goes_on_from_what_the_last_one_left,
        updates_travel_with_the_append_and_their_states_come_back_in_order,
        a_declined_update_changes_nothing_of_its_batch,
        no_update_is_asked_for_behind_the_fence,
        a_change_that_panics_is_declined_and_the_journal_goes_on,
        what_a_change_says_is_kept_whole_or_refused,
        prune_removes_the_state_of_a_shared_stream,
        an_append_may_update_its_own_stream,
        tail_wakes_up_for_an_update,
        of_many_updates_by_many_none_is_lost,
    ]
    cases_flights: [
        one_at_a_time_has_the_flight_of_a_key,
        equal_work_is_done_once,
        a_flight_that_lands_or_is_dropped_is_followed_by_the_next_of_this_process,
        another_process_waits_until_the_flight_has_landed,
        a_dropped_flight_is_free_for_others_after_the_next_heartbeat,
        a_waiter_that_is_dropped_keeps_nobody_from_flying,
        a_dead_or_silent_holder_is_replaced,
        closing_ends_the_flights_of_a_process,
        every_text_is_a_key_of_its_own,
        flights_are_not_listed_and_leave_streams_alone,
    ]
    cases_whole: [
        results_are_found_by_key_and_the_newest_counts,
        any_number_of_results_are_found_in_one_query,
        results_are_forgotten_by_age,
        streams_are_listed_newest_first,
        a_prefix_is_taken_literally,
        a_dead_owner_is_not_listed,
        prune_removes_everything_of_a_stream_but_its_results,
        prune_leaves_streams_of_live_owners_alone,
        sixty_four_writers_to_sixty_four_streams_all_commit,
        one_failing_append_among_many_disturbs_nobody,
        a_dropped_append_is_done_whole_or_not_at_all,
    ]
}
