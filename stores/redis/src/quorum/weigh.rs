//! What became of a round of an acquisition, and letting go of what it leaves.

use super::Quorum;
use super::acquire::Round;
use super::agree::Agreed;
use super::candidacy::Taken;
use super::member::Progress;
use super::rivals::Order;
use super::token::{Mine, Standing};
use super::tries::Try;
use crate::fault::Deed;
use crate::read::Sighting;
use crate::site::subject;
use tenure_core::{Acquire, Acquired, Fault, FencingToken, StoreError};

impl Quorum {
    /// What became of a round that was asked in this order.
    pub(super) async fn weigh(
        &self,
        request: &Acquire,
        order: Order,
        taken: Vec<(usize, Taken)>,
        errors: &[StoreError],
        trying: &mut Try,
    ) -> Round {
        let answered = taken.len();
        let (mut mine, mut held, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        let (mut superseded, mut exhausted) = (false, false);
        for (place, answer) in taken {
            match answer {
                Taken::Mine(answer) => mine.push((place, answer)),
                Taken::Held(sighting) => held.push(sighting),
                Taken::Superseded => superseded = true,
                Taken::Exhausted => exhausted = true,
                Taken::Unreadable(error) => unreadable.push(error),
            }
        }
        if !held.is_empty() {
            self.rivals.are_met();
        }
        if !superseded && !exhausted && mine.len() >= self.majority() {
            let is_pending = |(_, mine): &(usize, Mine)| mine.standing == Standing::Pending;
            if order == Order::AllAtOnce && mine.iter().any(is_pending) {
                // A duplicate may be about to have its token confirmed: then that is this one's, too.
                return Round::Again;
            }
            return self.confirm(request, order, &mine, trying).await;
        }
        trying.is_nothing_below(self.lowest_in_reach(&mine, &held));
        // What it was given before, and may have a majority.
        let given = mine.iter().filter(|(_, mine)| !trying.lets_go_of(mine));
        let (given, highest) = (
            given.clone().count(),
            given.filter_map(|(_, mine)| mine.token).max(),
        );
        trying.effect.add(given);
        self.undo(&mine, trying).await;
        let is_higher =
            |held: &Sighting| held.confirmed && highest.is_some_and(|token| held.lease.token > token);
        if answered < self.members.len()
            && held.iter().any(is_higher)
            && mine.iter().any(|(_, mine)| mine.is_guess())
            && let Some(answer) = trying.gives_way()
        {
            return Round::Decided(Ok(answer));
        }
        if superseded {
            return Round::Decided(Ok(Acquired::Superseded));
        }
        if exhausted {
            return Round::Decided(Err(StoreError::not_applied(
                Fault::Internal,
                format!(
                    "{}: its tokens are used up at {}; use another name",
                    subject(&request.name),
                    FencingToken::MAX
                ),
            )));
        }
        if self.blocks(unreadable.len()) {
            return Round::Decided(Err(unreadable.remove(0)));
        }
        if answered < self.majority() {
            return Round::Decided(Err(self.undecided(
                &subject(&request.name),
                answered,
                errors,
                trying.effect,
            )));
        }
        // That, too, may be a majority's with those that were not heard.
        let unheard = match given {
            0 => self.members.len() - answered,
            _ => 0,
        };
        match self.agreed(&held, unheard) {
            Agreed::Term(lease) if !lease.remaining.is_zero() => Round::Decided(Ok(Acquired::Held(lease))),
            // It stays so while those are away.
            Agreed::Open(_) => Round::Decided(Err(self.not_agreed(&request.name))),
            Agreed::Term(_) | Agreed::Never => Round::Again,
        }
    }

    /// The lowest token that may ever have a majority, or nothing where any may: what so many members know
    /// of, or of more, that no majority is without one of them. None of these confirms a lower one any more.
    fn lowest_in_reach(&self, mine: &[(usize, Mine)], held: &[Sighting]) -> Option<FencingToken> {
        let mine = mine.iter().filter_map(|(_, mine)| mine.token);
        let mut known: Vec<_> = mine.chain(held.iter().map(|held| held.lease.token)).collect();
        known.sort_unstable_by(|one, other| other.cmp(one));
        known.get(self.members.len() - self.majority()).copied()
    }

    /// Lets go of what was taken, and waits for it: who asks next is not held up.
    pub(super) async fn undo(&self, mine: &[(usize, Mine)], trying: &mut Try) {
        let pending = mine
            .iter()
            .filter(|(_, mine)| trying.lets_go_of(mine))
            .map(|(place, _)| *place);
        let places: Vec<usize> = pending.collect();
        if places.is_empty() {
            return;
        }
        let taken = places.len();
        let undone = self
            .ask(
                places,
                Deed::Write,
                |site| trying.undo(site),
                |_, _| Progress::Decided,
            )
            .await;
        trying.effect.add(taken - undone.answers.len());
        trying.hears(undone.answers.iter().map(|(place, ())| (*place, false)));
    }
}
