//! For checkers: give every number of an engine's state another name, so that states which differ only in
//! the hour, in how many terms there have been, or in what was told to people, become one.

use super::dice::Dice;
use super::seat::{Campaign, Gate, Hint, Hold, Leaving, Left, Search, Seat, Term};
use super::{Engine, InFlight, RequestId};
use crate::{Attempt, FencingToken, Moment, StoreError};

/// New names for the numbers of an engine's state.
///
/// # To ensure correctness
/// An engine renamed behaves as before, in the new names, as long as every method keeps the order of what it
/// maps and equal numbers stay equal, and as long as the inputs and the moments given from then on are in the
/// new names too. What may be changed beyond that:
/// - [`due`](Self::due) may give the present for any moment in the past: such a moment is only ever asked
///   whether it has come;
/// - [`since`](Self::since) may give a moment `horizon` before the present for any earlier one, where
///   `horizon` is at least the longest ttl that the store grants and the longest progress gate;
/// - what is only told to people may be forgotten: [`reported`](Self::reported), [`error`](Self::error).
///   Events then differ in that, and in no other way;
/// - the state of the dice, and with it how often a campaign has failed, decide only about pauses.
pub trait Rename {
    /// A moment at which something is due.
    fn due(&mut self, moment: Moment) -> Moment;
    /// A moment from which something is counted.
    fn since(&mut self, moment: Moment) -> Moment;
    /// A token.
    fn token(&mut self, token: FencingToken) -> FencingToken;
    /// An attempt, the next one included.
    fn attempt(&mut self, attempt: Attempt) -> Attempt;
    /// The number of a request that is under way or that a seat waits for, and of the next one. Keeps the
    /// order.
    fn request(&mut self, number: u64) -> u64;
    /// The state of the dice, from which all further pauses are drawn.
    fn dice(&mut self, state: u64) -> u64;
    /// How often a campaign has failed in a row, which widens its pauses: zero stays zero.
    fn failures(&mut self, failures: u32) -> u32;
    /// The token of others that was last reported, so that it is not reported again; `None` forgets it.
    fn reported(&mut self, token: FencingToken) -> Option<FencingToken>;
    /// An error kept for a later report; `None` forgets it.
    fn error(&mut self, error: StoreError) -> Option<StoreError>;
}

impl RequestId {
    /// This request under its new name, for the answers that are still on their way to a renamed engine.
    #[must_use]
    pub fn renamed(self, names: &mut impl Rename) -> Self {
        Self(names.request(self.0))
    }
}

impl Engine {
    /// Renames every number of the state: see [`Rename`]. For checkers; no driver needs it.
    ///
    /// The candidate, the timing, the phase of the beats and the lease names stay.
    pub fn rename(&mut self, names: &mut impl Rename) {
        // Taken apart in full, here and below, so that no new field is forgotten.
        let Self {
            candidate: _,
            timing: _,
            batch_max: _,
            releases_together: _,
            phase: _,
            dice,
            next_attempt,
            next_request,
            seats,
            in_flight,
        } = self;
        *dice = Dice::new(names.dice(dice.state()));
        *next_attempt = names.attempt(*next_attempt);
        *next_request = names.request(*next_request);
        seats.change_all(|seat| match seat {
            Seat::Campaign(campaign) => rename_campaign(campaign, names),
            Seat::Term(term) => rename_term(term, names),
            Seat::Departure(leaving) => rename_leaving(leaving, names),
            Seat::Search(search) => rename_search(search, names),
        });
        in_flight.change_all(|id, sent| (id.renamed(names), renamed_in_flight(sent, names)));
    }

    /// Whether an answer to this request would be taken in: it was sent, and neither answered nor given up.
    /// For checkers; a driver just hands the answer over.
    #[must_use]
    pub fn awaits(&self, request: RequestId) -> bool {
        self.in_flight.contains(request)
    }
}

fn renamed_in_flight(sent: InFlight, names: &mut impl Rename) -> InFlight {
    let InFlight {
        sent_at,
        give_up_at,
        kind,
        names: leases,
    } = sent;
    InFlight {
        sent_at: names.since(sent_at),
        give_up_at: names.due(give_up_at),
        kind,
        names: leases,
    }
}

fn rename_campaign(campaign: &mut Campaign, names: &mut impl Rename) {
    let Campaign {
        wanted: _,
        attempt,
        request,
        next_at,
        failures,
        unresolved: _,
        reported,
        hint,
        heir_of,
    } = campaign;
    *attempt = names.attempt(*attempt);
    *request = request.map(|id| id.renamed(names));
    *next_at = names.due(*next_at);
    *failures = names.failures(*failures);
    *reported = reported.and_then(|token| names.reported(token));
    *hint = hint.map(|hint| match hint {
        Hint::Vacated(token) => Hint::Vacated(names.token(token)),
        Hint::Anything => Hint::Anything,
    });
    *heir_of = heir_of.map(|left| renamed_left(left, names));
}

fn renamed_left(left: Left, names: &mut impl Rename) -> Left {
    Left {
        token: names.token(left.token),
        attempt: names.attempt(left.attempt),
        give_up_at: names.due(left.give_up_at),
        is_doubtful: left.is_doubtful,
    }
}

fn rename_term(term: &mut Term, names: &mut impl Rename) {
    let Term {
        token,
        attempt,
        granted: _,
        sent_at,
        until,
        renew_at,
        request,
        doubted: _,
        ending_since,
        gate,
        hold,
        last_error,
    } = term;
    *token = names.token(*token);
    *attempt = names.attempt(*attempt);
    // The deadline was counted from it already; from now on it only matters that it has passed.
    *sent_at = names.due(*sent_at);
    *until = names.due(*until);
    *renew_at = names.due(*renew_at);
    *request = request.map(|id| id.renamed(names));
    *ending_since = ending_since.map(|since| names.due(since));
    if let Some(Gate {
        within: _,
        last_progress,
        reported: _,
    }) = gate
    {
        *last_progress = names.since(*last_progress);
    }
    if let Some(Hold { max: _, until }) = hold {
        *until = names.due(*until);
    }
    *last_error = last_error.take().and_then(|error| names.error(error));
}

fn rename_leaving(leaving: &mut Leaving, names: &mut impl Rename) {
    let Leaving {
        token,
        attempt,
        request,
        next_at,
        give_up_at,
        has_failed: _,
        unresolved: _,
        then: _,
    } = leaving;
    *token = names.token(*token);
    *attempt = names.attempt(*attempt);
    *request = request.map(|id| id.renamed(names));
    *next_at = names.due(*next_at);
    *give_up_at = names.due(*give_up_at);
}

fn rename_search(search: &mut Search, names: &mut impl Rename) {
    let Search {
        attempt,
        request,
        unresolved: _,
        next_at,
        give_up_at,
        then: _,
        heir_of,
        error,
    } = search;
    *attempt = names.attempt(*attempt);
    *request = request.map(|id| id.renamed(names));
    *next_at = names.due(*next_at);
    *give_up_at = names.due(*give_up_at);
    *heir_of = heir_of.map(|left| renamed_left(left, names));
    *error = error.take().and_then(|error| names.error(error));
}
