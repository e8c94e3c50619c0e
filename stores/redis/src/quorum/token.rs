//! Which token an attempt asks for: what the members that it took have confirmed for it before, or a new one.

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
/// A member that has confirmed a token for an attempt confirms no other, so that a late duplicate changes nothing; and
/// any other confirms only what is above all that it knows, so that tokens rise whatever is asked for. What is asked for
/// decides whether there will be a majority: members that have confirmed different tokens for one attempt (as links
/// broke and healed meanwhile) would answer the wrong one for ever.
pub(super) fn choose(mine: &[(usize, Mine)]) -> Option<Choice> {
    let free = || mine.iter().filter(|(_, mine)| !mine.is_confirmed());
    let highest = free().filter_map(|(_, mine)| mine.token).max();
    let confirmed = mine.iter().filter(|(_, mine)| mine.is_confirmed());
    let before = confirmed.map(|(first, one)| Choice {
        token: one.token,
        terms: one.terms,
        again: true,
        first: *first,
        able: mine
            .iter()
            .filter(|(_, other)| other.can_confirm(one.token))
            .count(),
        highest,
    });
    let new = free().next().map(|(first, _)| {
        let clock_ms = mine.iter().map(|(_, mine)| mine.now_ms).max().unwrap_or(0);
        let terms = free().map(|(_, mine)| mine.terms).max().unwrap_or(0);
        Choice {
            token: FencingToken::successor(highest, clock_ms),
            terms: terms.saturating_add(1).min(i64::MAX.unsigned_abs()),
            again: false,
            first: *first,
            able: free().count(),
            highest,
        }
    });
    // Of two that as many can confirm, the new one, then the higher: the older has lost what it had elsewhere.
    before
        .chain(new)
        .max_by_key(|choice| (choice.able, !choice.again, choice.token))
}

impl Mine {
    pub(super) fn is_confirmed(&self) -> bool {
        self.standing == Standing::Confirmed
    }

    fn can_confirm(&self, token: Option<FencingToken>) -> bool {
        match self.is_confirmed() {
            true => self.token == token,
            false => self.token < token,
        }
    }
}
