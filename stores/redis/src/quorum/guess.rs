//! Taking and confirming at once, with a token that is guessed: where this process gave the lease back itself a moment ago, it knows
//! what the next one is.
//!
//! It is right whatever the guess: a token is used only when a majority has confirmed it, and a member confirms only what is above all
//! that it knows, and only for the attempt that has it. Two steps serve to find a token of which that is true.

use super::Quorum;
use super::acquire::Round;
use super::candidacy::{Given, Taken, count_of, take_and_confirm};
use super::member::Progress;
use super::remains::Try;
use super::rivals::Order;
use super::token::{Mine, Standing};
use super::unsure;
use crate::fault::Deed;
use std::time::Instant;
use tenure_core::{Acquire, FencingToken, Grant};

/// The next term, for all that is known.
pub(super) struct Guess {
    token: FencingToken,
    terms: u64,
}

impl Quorum {
    /// Nothing where another request of the process is about, which may be one of the same attempt: each would guess another token.
    pub(super) fn guess(&self, request: &Acquire, trying: &Try) -> Option<Guess> {
        let before = self
            .rivals
            .given_back(&request.name, request.candidate.incarnation)
            .filter(|_| trying.is_alone)?;
        Some(Guess {
            token: before.next_token()?,
            terms: before.terms.saturating_add(1).min(i64::MAX.unsigned_abs()),
        })
    }

    /// A round by a guess. Where others are in the way, or know of more, it comes to what any other round does, with members that have
    /// confirmed the guess.
    pub(super) async fn take_at_once(&self, request: &Acquire, guess: Guess, trying: &mut Try) -> Round {
        let asked_at = Instant::now();
        let Guess { token, terms } = guess;
        trying.asks(0..self.members.len());
        trying.guesses(token);
        let confirmed = |answers: &[(usize, (Taken, Option<Given>))]| {
            count_of(answers.iter().filter_map(|(_, (_, given))| given.as_ref()), token)
        };
        let poll = self
            .ask(
                0..self.members.len(),
                Deed::Write,
                |site| take_and_confirm(site, request.clone(), token, terms),
                |answers, waiting| {
                    let mine = answers.iter().filter(|(_, (taken, _))| is_mine(taken)).count();
                    let confirmed = confirmed(answers);
                    let is_vain = confirmed + waiting < self.majority();
                    let is_settled = is_vain && self.is_settled(mine, answers.len() - mine, waiting);
                    Progress::complete_if(confirmed >= self.majority(), Progress::decided_if(is_settled))
                },
            )
            .await;
        let answered = poll
            .answers
            .iter()
            .map(|(place, (taken, _))| (*place, is_mine(taken)));
        trying.hears(answered.chain(poll.unheard.iter().map(|place| (*place, true))));
        if confirmed(&poll.answers) < self.majority() {
            trying.effect.add(poll.late + unsure(&poll.errors));
            let taken = poll.answers.into_iter();
            let taken = taken.map(|(place, (taken, given))| (place, with(taken, given)));
            let asked = (Order::AllAtOnce, asked_at);
            return self
                .weigh(request, asked, taken.collect(), &poll.errors, trying)
                .await;
        }
        let given = poll.answers.iter().filter_map(|(_, (_, given))| given.as_ref());
        let grant = Grant {
            token,
            ttl: request.ttl,
            terms: given.map(|given| given.terms).max().unwrap_or(terms),
            again: false,
            predecessor: None,
        };
        let mine = poll.answers.into_iter().filter_map(|(place, (taken, _))| {
            let Taken::Mine(mine) = taken else { return None };
            Some((place, mine))
        });
        let mine: Vec<(usize, Mine)> = mine.collect();
        self.granted(request, asked_at, &mine, grant, trying)
    }
}

fn is_mine(taken: &Taken) -> bool {
    matches!(taken, Taken::Mine(_))
}

/// A member that has confirmed a token for an attempt confirms no other.
fn with(taken: Taken, given: Option<Given>) -> Taken {
    match (taken, given) {
        (Taken::Mine(mine), Some(given)) => Taken::Mine(Mine {
            token: Some(given.token),
            terms: given.terms,
            standing: Standing::Confirmed,
            ..mine
        }),
        (taken, _) => taken,
    }
}
