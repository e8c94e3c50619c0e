//! How old a record is, by the servers' clock: for people.

use std::time::Duration;
use tenure_core::{Ages, Entry};

/// The ages of what was stored then, where the leader's clock shows this now. A clock that was set back makes
/// them shorter, down to nothing.
pub(crate) fn ages(entry: &Entry, stored_ms: u64, now_ms: u64) -> Ages {
    let since = |then_ms: u64| Duration::from_millis(now_ms.saturating_sub(then_ms));
    let token_ms = entry.token.number();
    let is_first = entry.renewals == 0 && !entry.released && !entry.asked_to_step_down;
    // No other time is in a record than its token: the clock when the term began, unless an earlier token was
    // ahead of that.
    let began_ms = match is_first || token_ms > stored_ms {
        true => stored_ms,
        false => token_ms,
    };
    Ages {
        held_for: since(began_ms),
        // Or since somebody asked the holder to step down, which is a write as well.
        renewed_ago: since(stored_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::ages;
    use std::time::Duration;
    use tenure_core::{Ages, Attempt, Candidate, CandidateId, Entry, FencingToken, Incarnation, Note, Ttl};

    #[test]
    fn a_term_began_when_its_token_says_unless_that_was_ahead_of_the_clock() {
        let entry = |token, renewals| Entry {
            holder: Candidate {
                id: CandidateId::new("ada").unwrap(),
                incarnation: Incarnation::from_bits(1),
            },
            token: FencingToken::new(token).unwrap(),
            attempt: Attempt::FIRST,
            terms: 1,
            ttl: Ttl::MIN,
            renewals,
            released: false,
            asked_to_step_down: false,
            note: Note::default(),
        };
        let (began, stored) = (1_795_295_290_000, 1_795_295_293_000);
        for (token, renewals, now, expected) in [
            (began, 3, stored + 500, [3_500, 500]),
            (began, 0, stored + 500, [500, 500]),
            (stored + 40, 3, stored + 500, [500, 500]),
            // Set back since.
            (began, 3, stored - 1_000, [2_000, 0]),
            (began, 3, 7, [0, 0]),
        ] {
            let [held_for, renewed_ago] = expected.map(Duration::from_millis);
            let told = ages(&entry(token, renewals), stored, now);
            assert_eq!(
                told,
                Ages {
                    held_for,
                    renewed_ago
                },
                "{token} at {now}"
            );
        }
    }
}
