//! The races, each with what must hold in every order.

mod campaigning;
mod leaving;
mod locking;
mod terms;
mod watching;

/// A race.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// One execution: everything in it is chosen by shuttle's scheduler. Panics where something does not
    /// hold.
    pub run: fn(),
}

macro_rules! scenarios {
    ($($room:ident: $($name:ident),+;)+) => {
        /// Every scenario.
        pub const ALL: &[Scenario] = &[$($(Scenario { name: stringify!($name), run: $room::$name }),+),+];
    };
}

scenarios! {
    terms: step_down_against_renewal, drop_against_loss, authority_is_read_elsewhere,
        deadline_is_seen_as_a_renewal_is_taken_in, progress_against_stuck, last_clone_is_dropped_late, candidates_hand_over;
    campaigning: cancelled_campaign_against_grant, second_campaign_against_first, campaign_after_a_loss;
    leaving: close_against_watch, close_while_a_request_hangs, leadership_outlives_its_election,
        drop_against_close;
    locking: waiter_leaves_about_its_turn, winner_takes_up_about_when_it_is_given_back, last_handle_goes_about_when_one_is_taken,
        two_handles_are_released_at_once, bound_handle_is_released_about_when_its_task_ends,
        whoever_asks_drives_and_nobody_is_forgotten,
        manager_goes_while_locks_are_held, those_in_a_line_leave_or_keep_the_turn;
    watching: subscriber_lags, observer_is_dropped;
}
