//! Every scenario, in as many orders as each known mistake was found within; the command tries more.

use std::path::Path;
use tenure_shell::{ALL, Choice, explore};

/// Of each kind of choice.
const SCHEDULES: usize = 60;

/// The seed that the command begins with, too.
const SEED: u64 = 1;

fn holds(name: &str) {
    let scenario = ALL
        .iter()
        .find(|scenario| scenario.name == name)
        .expect("a scenario of this name");
    for choice in [Choice::Random, Choice::Pct(4)] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let outcome = explore(*scenario, choice, SCHEDULES, SEED, folder);
        assert_eq!(
            outcome.failure, None,
            "{name}, {choice:?}, schedule {}",
            outcome.schedules
        );
    }
}

macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })+

        #[test]
        fn every_scenario_is_a_test() {
            let tested = [$(stringify!($name)),+];
            let all: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
            assert_eq!(all, tested);
        }
    };
}

tests![
    step_down_against_renewal,
    drop_against_loss,
    authority_is_read_elsewhere,
    deadline_is_seen_as_a_renewal_is_taken_in,
    progress_against_stuck,
    last_clone_is_dropped_late,
    candidates_hand_over,
    cancelled_campaign_against_grant,
    second_campaign_against_first,
    campaign_after_a_loss,
    close_against_watch,
    close_while_a_request_hangs,
    leadership_outlives_its_election,
    drop_against_close,
    waiter_leaves_about_its_turn,
    winner_takes_up_about_when_it_is_given_back,
    last_handle_goes_about_when_one_is_taken,
    two_handles_are_released_at_once,
    bound_handle_is_released_about_when_its_task_ends,
    whoever_asks_drives_and_nobody_is_forgotten,
    manager_goes_while_locks_are_held,
    those_in_a_line_leave_or_keep_the_turn,
    subscriber_lags,
    observer_is_dropped,
];
