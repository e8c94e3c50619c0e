use crate::run::Case;

/// Names every case once, for whatever macro is given. A case that is not listed here does not exist for the
/// stores; a test of this crate checks that none is missing.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_case {
    (($($callback:tt)+) [$($argument:tt)*]) => {
        $($callback)+! {
            [$($argument)*]
            acquire {
                first_acquire_is_granted
                grant_stands_in_the_record
                second_candidate_is_told_who_holds
                losing_request_writes_nothing
                same_attempt_gets_the_same_token_again
                same_attempt_extends_the_lease
                later_attempt_takes_over_at_once
                earlier_attempt_is_superseded_while_held
                earlier_attempt_is_superseded_while_vacant
                same_attempt_is_superseded_once_released
                earlier_attempt_is_superseded_after_expiry
                later_attempt_is_granted_after_release
                same_attempt_gets_a_new_token_after_expiry
                later_attempt_is_granted_after_expiry
                same_id_with_another_incarnation_is_another_candidate
                attempts_of_other_incarnations_are_not_compared
                leases_are_independent_of_each_other
                one_process_holds_many_leases
                terms_are_counted
                granted_ttl_is_reported
            }
            ask {
                wish_reaches_the_holder_with_its_renewal
                wish_is_seen_by_readers
                asking_twice_is_as_asking_once
                asking_changes_nothing_else
                wish_is_gone_after_a_release
                wish_is_gone_after_an_expiry
                wish_is_gone_after_a_later_attempt
                asking_another_term_changes_nothing
                asking_a_vacant_lease_changes_nothing
                asking_an_expired_lease_changes_nothing
                asking_a_missing_lease_makes_no_record
            }
            batch {
                renewals_are_judged_one_by_one
                releases_are_judged_one_by_one
                renewals_of_a_large_batch_are_judged_one_by_one
                releases_of_a_large_batch_are_judged_one_by_one
                large_batch_of_renewals
                large_batch_of_releases
                empty_batch_has_no_answers
                batch_may_name_a_lease_twice
            }
            cancel {
                dropped_acquire_is_resolved_by_asking_again
                dropped_acquire_never_haunts
                dropped_renewal_leaves_the_term
                dropped_release_is_resolved_by_releasing_again
                dropped_reads_and_wishes_lock_nothing
            }
            clean_up {
                unused_records_are_removed_and_their_tokens_rise
                records_in_use_outlive_a_clean_up
                record_of_an_old_term_that_was_just_used_outlives_a_clean_up
                records_that_must_be_kept_outlive_a_clean_up
                looking_for_unused_records_removes_none
                page_of_a_clean_up_outside_its_range_is_refused
            }
            expiry {
                take_over_happens_after_the_ttl_and_not_before
                take_over_happens_after_the_last_renewal_and_not_before
                take_over_waits_for_the_last_of_several_renewals
                expired_lease_is_granted_at_once
                predecessor_that_expired_is_reported
                expired_record_stays
                short_ttl_of_the_asker_does_not_shorten_the_lease
                long_ttl_of_the_asker_does_not_lengthen_the_lease
                remaining_time_falls
            }
            list {
                leases_are_listed_in_the_order_of_their_bytes
                pages_join_without_loss_or_duplicate
                last_page_says_so
                page_may_begin_after_an_absent_name
                prefix_selects_names
                what_is_held_is_listed_as_held
                prefix_is_text_and_no_pattern
                empty_prefix_lists_everything
                limit_outside_its_range_is_refused
                leases_are_listed_whatever_their_state
                unreadable_record_is_listed_and_hides_no_other
                what_is_no_name_hides_no_lease
            }
            race {
                one_of_sixteen_wins_a_new_lease
                one_of_sixteen_wins_a_vacant_lease
                one_of_sixteen_wins_an_expired_lease
                duplicates_at_once_get_one_token
                attempts_at_once_end_with_the_latest
                renewal_and_release_at_once_end_vacant
                release_and_request_at_once_agree
                wishes_and_end_of_a_term_at_once_leave_the_next_alone
                wishes_and_renewal_at_once_both_count
                renewals_and_later_attempt_at_once_leave_the_new_term_alone
                releases_and_later_attempt_at_once_leave_the_new_term_alone
            }
            read {
                missing_lease_is_none
                reading_writes_nothing
                reads_see_the_latest_write
                time_since_the_term_began_is_told
                time_since_the_last_renewal_is_told
            }
            release {
                release_vacates_and_the_next_is_granted_at_once
                predecessor_that_released_is_reported
                release_keeps_the_record
                release_is_idempotent
                release_by_another_incarnation_changes_nothing
                release_with_another_token_changes_nothing
                release_with_another_attempt_changes_nothing
                late_duplicate_of_a_release_never_ends_a_later_term
                release_after_a_take_over_names_the_new_holder
                release_of_an_older_term_of_a_vacant_lease_is_not_yours
                expired_unclaimed_term_can_be_released
                release_of_a_missing_lease_makes_no_record
            }
            renew {
                renewal_extends_the_lease
                renewal_with_a_shorter_ttl_counts_from_now
                renewal_changes_neither_holder_nor_token
                renewal_never_revives_an_expired_lease
                renewal_never_revives_a_released_lease
                renewal_by_another_incarnation_is_lost
                renewal_with_another_token_is_lost
                renewal_with_another_attempt_is_lost
                renewal_of_a_missing_lease_is_lost
                renewal_after_a_take_over_names_the_new_holder
                renewal_never_brings_a_removed_record_back
            }
            store {
                traits_are_constant
                ends_of_the_ttl_range_are_granted
                acquire_outside_the_ttl_range_is_refused
                renewal_outside_the_ttl_range_is_refused
                examination_leaves_nothing_behind
            }
            text {
                hostile_names_come_back_as_they_were
                hostile_candidate_ids_come_back_as_they_were
                hostile_notes_come_back_as_they_were
                note_of_another_hand_that_is_too_long_ends_nobodys_term
                longest_texts_fit
                names_that_look_alike_are_different_leases
                extreme_numbers_come_back_as_they_were
            }
            token {
                token_is_at_least_the_store_clock
                tokens_rise_over_two_hundred_terms
                tokens_rise_through_every_kind_of_end
                token_rises_after_a_clean_up
                token_rises_after_a_held_record_was_removed
                last_token_has_no_successor
            }
            unreadable {
                damaged_vacant_record_is_left_alone
                damaged_expired_record_is_left_alone
                damage_to_one_record_disturbs_no_other
                negative_token_is_left_alone
                zero_token_is_left_alone
                huge_token_is_left_alone
                token_beyond_the_last_is_left_alone
                token_that_is_text_is_left_alone
                missing_token_is_left_alone
                holder_that_is_a_number_is_left_alone
                malformed_holder_is_left_alone
                missing_holder_is_left_alone
                malformed_incarnation_is_left_alone
                negative_attempt_is_left_alone
                attempt_that_is_text_is_left_alone
                expiry_that_is_text_is_left_alone
                missing_expiry_is_left_alone
                expiry_far_off_is_left_alone
                expiry_far_off_is_mended_by_the_holders_renewal
                expiry_far_off_keeps_no_holder_from_giving_back
                expiry_far_off_keeps_no_later_attempt_out
                zero_ttl_is_left_alone
                ttl_that_is_text_is_left_alone
                record_of_another_application_is_left_alone
            }
            watch {
                watch_tells_of_a_release
                watch_tells_of_changes_through_its_own_client
                watch_tells_of_every_new_term
                watch_tells_of_a_wish
                watch_of_ends_tells_of_a_wish_and_of_a_release
                watch_of_every_end_tells_of_one_that_was_followed_at_once
                watch_tells_of_the_release_of_an_expired_term
                watch_tells_of_a_removed_record
                watch_is_in_place_when_it_answers
                watch_is_silent_about_renewals
                watch_of_one_lease_tells_of_no_other
                watch_of_a_prefix_tells_of_what_is_under_it
                watch_of_everything_tells_of_every_lease
                dropping_the_wait_for_an_event_loses_none
                watch_tells_terms_in_their_order
                watches_are_independent
            }
        }
    };
}

macro_rules! as_list {
    ([] $($group:ident { $($name:ident)* })*) => {
        &[$($(
            Case {
                group: stringify!($group),
                name: stringify!($name),
                run: |fixture| Box::pin(crate::cases::$group::$name(fixture)),
            },
        )*)*]
    };
}

/// Every case of the suite, by subject.
///
/// One place in memory, not a constant: the cases are compiled once, with this crate, instead of with each
/// crate that names the list.
pub static CASES: &[Case] = for_each_case! { (as_list) [] };
