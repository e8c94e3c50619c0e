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
            expiry {
                take_over_happens_after_the_ttl_and_not_before
                take_over_happens_after_the_last_renewal_and_not_before
                expired_lease_is_granted_at_once
                predecessor_that_expired_is_reported
                expired_record_stays
                short_ttl_of_the_asker_does_not_shorten_the_lease
                long_ttl_of_the_asker_does_not_lengthen_the_lease
                remaining_time_falls
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
pub const CASES: &[Case] = for_each_case! { (as_list) [] };
