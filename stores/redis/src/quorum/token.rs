//! Which token an attempt asks for: what the members that it took have confirmed for it before, or a new one.

use super::candidacy::Offer;
use super::guess::LAG_MS_MAX;
use tenure_core::{FencingToken, Predecessor};

/// What one member says whose record is the attempt's.
pub(super) struct Mine {
    pub(super) now_ms: u64,
    /// Of the term before; of this one, if it was confirmed before.
    pub(super) token: Option<FencingToken>,
    pub(super) terms: u64,
    pub(super) standing: Standing,
    pub(super) predecessor: Option<Predecessor>,
}

/// What became of the attempt in a member that has its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It was taken just now.
    Taken,
    /// It was taken before, by an earlier request of the attempt or by a duplicate, and not confirmed yet.
    Pending,
    /// The member has confirmed a token for it, and has held it since.
    Confirmed,
}

/// What the members are to confirm.
pub(super) struct Choice {
    /// None where the tokens are used up.
    pub(super) token: Option<FencingToken>,
    pub(super) terms: u64,
    /// The term that it follows at once, if it was guessed.
    pub(super) follows: Option<FencingToken>,
    /// Whether a member has confirmed it before.
    pub(super) again: bool,
    /// The member to ask first: one that can confirm this token, as no other decides between duplicates.
    pub(super) first: usize,
    /// How many of these members can confirm it.
    pub(super) able: usize,
    /// The highest token that those know who have confirmed none for the attempt.
    pub(super) highest: Option<FencingToken>,
}

/// The token that most of `mine` can confirm; nothing if there are none.
///
/// A member that has confirmed a token for an attempt confirms no other, so that a late duplicate changes
/// nothing; and any other confirms only what is above all that it knows, so that tokens rise whatever is
/// asked for. What is asked for decides whether there will be a majority: members that have confirmed
/// different tokens for one attempt (as links broke and healed meanwhile) would answer the wrong one for
/// ever. One that was guessed stays so, whoever asks for it: members that know of another term before it do
/// not confirm it. And none counts in members that have yet to confirm it once it is further behind their
/// clocks than a guess may be, as after an outage for which one member alone had it: there may have been
/// terms with higher tokens that they have forgotten, or a mark was bumped above it.
pub(super) fn choose(mine: &[(usize, Mine)], majority: usize) -> Option<Choice> {
    let free = || mine.iter().filter(|(_, mine)| !mine.is_confirmed());
    let highest = free().filter_map(|(_, mine)| mine.token).max();
    let confirmed = mine.iter().filter(|(_, mine)| mine.is_confirmed());
    let before = confirmed.map(|(first, one)| {
        let follows = one.token.and_then(|token| one.guessed_from(token));
        let able = mine
            .iter()
            .filter(|(_, other)| other.can_confirm(one.token, follows));
        Choice {
            token: one.token,
            terms: one.terms,
            follows,
            again: true,
            first: *first,
            able: able.count(),
            highest,
        }
    });
    let new = free().next().map(|(first, _)| {
        let clock_ms = reached(mine.iter().map(|(_, mine)| mine.now_ms), majority);
        let terms = free().map(|(_, mine)| mine.terms).max().unwrap_or(0);
        Choice {
            token: new_token(highest, clock_ms),
            terms: terms.saturating_add(1).min(i64::MAX.unsigned_abs()),
            follows: None,
            again: false,
            first: *first,
            able: free().count(),
            highest,
        }
    });
    // Of two that as many can confirm, the new one, then the higher: the older has lost what it had
    // elsewhere.
    before
        .chain(new)
        .max_by_key(|choice| (choice.able, !choice.again, choice.token))
}

/// The time that the clocks of a majority have reached. As a token never falls, one that a minority's clocks
/// were ahead for would stay ahead of all others' for good.
fn reached(clocks_ms: impl Iterator<Item = u64>, majority: usize) -> u64 {
    let mut clocks_ms: Vec<u64> = clocks_ms.collect();
    clocks_ms.sort_unstable_by(|one, other| other.cmp(one));
    clocks_ms.get(majority - 1).copied().unwrap_or(0)
}

/// The token of a term that follows others, of which this is the highest. The one after it is left to whoever
/// guesses.
fn new_token(highest: Option<FencingToken>, clock_ms: u64) -> Option<FencingToken> {
    let token = FencingToken::successor(highest, clock_ms)?;
    match highest.is_some() && FencingToken::successor(highest, 0) == Some(token) {
        // The very last is drawn all the same.
        true => FencingToken::successor(Some(token), 0).or(Some(token)),
        false => Some(token),
    }
}

impl Choice {
    pub(super) fn offer(&self) -> Option<Offer> {
        Some(Offer {
            token: self.token?,
            terms: self.terms,
            follows: self.follows,
        })
    }
}

impl Mine {
    pub(super) fn is_confirmed(&self) -> bool {
        self.standing == Standing::Confirmed
    }

    /// Whether a token is too far behind its clock to be confirmed here first.
    fn is_past(&self, token: FencingToken) -> bool {
        token.number().saturating_add(LAG_MS_MAX) < self.now_ms
    }

    /// The term before, if this token was guessed from it.
    pub(super) fn guessed_from(&self, token: FencingToken) -> Option<FencingToken> {
        let before = self.predecessor.as_ref()?.token;
        (FencingToken::successor(Some(before), 0) == Some(token)).then_some(before)
    }

    /// Whether it has confirmed a token that was guessed.
    pub(super) fn is_guess(&self) -> bool {
        self.is_confirmed() && self.token.is_some_and(|token| self.guessed_from(token).is_some())
    }

    fn can_confirm(&self, token: Option<FencingToken>, follows: Option<FencingToken>) -> bool {
        if self.is_confirmed() {
            return self.token == token;
        }
        let is_next = match follows {
            Some(_) => self.token == follows,
            None => self.token < token,
        };
        is_next && token.is_some_and(|token| !self.is_past(token))
    }
}

#[cfg(test)]
mod tests {
    use super::{new_token, reached};
    use tenure_core::FencingToken;

    #[test]
    fn clocks_count_as_far_as_a_majority_has_come() {
        const AHEAD: u64 = 1_000_000;
        for (clocks_ms, majority, expected) in [
            (&[50, 51, 52][..], 2, 51),
            (&[50, AHEAD, 52][..], 2, 52),
            (&[50, AHEAD][..], 2, 50),
            (&[AHEAD, 50, 51, AHEAD, 52][..], 3, 52),
            (&[AHEAD, AHEAD, 50][..], 3, 50),
            (&[1, 2, 50, 51, 52][..], 3, 50),
        ] {
            let counted = reached(clocks_ms.iter().copied(), majority);
            assert_eq!(counted, expected, "{clocks_ms:?}");
        }
    }

    #[test]
    fn new_token_leaves_one_to_whoever_guesses_and_is_not_behind_the_clock() {
        let token = |number| FencingToken::new(number).unwrap();
        let max = FencingToken::MAX.number();
        for (highest, clock_ms, expected) in [
            (None, 5, Some(5)),
            (Some(7), 5, Some(9)),
            (Some(7), 8, Some(9)),
            (Some(7), 9, Some(9)),
            (Some(7), 20, Some(20)),
            (Some(max - 1), 5, Some(max)),
            (Some(max), 5, None),
        ] {
            let chosen = new_token(highest.map(token), clock_ms);
            assert_eq!(chosen, expected.map(token), "{highest:?} at {clock_ms}");
        }
    }
}
