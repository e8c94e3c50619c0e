//! Taking and confirming at once, with a token that is guessed: where this process gave the lease back
//! itself, and nobody had it since, or still holds it and hands it on within itself, the next one follows on
//! its own. Two steps serve to find a token of which members know nothing higher; this one is it, or it is
//! confirmed by too few.
//!
//! It is as right as one that was found:
//! - A token is used only when a majority has confirmed it, and each of them only for the attempt that has it
//!   there. So no other term is under way, and all before are below.
//! - It is not floored by the clocks, which no one has seen: each member that confirms it sees that it is not
//!   further behind its own than `LAG_MS_MAX`. It is confirmed only in a member whose last term is the very
//!   one that it follows, and not in one that has forgotten what came after it by being emptied; and where
//!   members may lose what they have confirmed last, nothing is guessed. Whoever goes on with what was
//!   confirmed for the attempt keeps to that.
//!
//! And one that comes to nothing does no more harm than what was only taken:
//! - Of every term that others are granted since, the token is higher: whoever finds it in two steps leaves
//!   out the one that follows at once (see `token.rs`), and nobody else can guess from the same term. So the
//!   member that has confirmed the guess takes the other's term in with that one's next renewal, also if the
//!   process that guessed has died: as soon as the guess has run out, as any candidacy.
//! - Once another has the lease it is out of reach, and is let go of at once (see `remains.rs`). Until then
//!   it may come to a majority still, and whoever asks by the same attempt again goes on with it. Where too
//!   few answer to know, and one of them has a higher token, the guess gives way, and its attempt ends: only
//!   that could be granted it, and is not.
//! - So it does where too few of those that answer can confirm it, as one has missed the term before or finds
//!   it too old: each of these would say the same again, while those that have confirmed it keep everybody
//!   else out.
//! - Where the attempt is granted another token in the end, as members know of more, the guess is let go of,
//!   too, and the next renewal brings the term to the member that has confirmed it.

use super::Quorum;
use super::acquire::Round;
use super::candidacy::{Given, Offer, Taken, confirm, count_of, take_and_confirm};
use super::member::Progress;
use super::rivals::Order;
use super::token::{Mine, Standing};
use super::tries::Try;
use super::unsure;
use crate::fault::Deed;
use crate::site::Site;
use std::sync::Arc;
use tenure_core::{Acquire, Durability, FencingToken, Grant, StoreError};
use tokio::sync::watch;

/// How far a guess, or a token that another member has confirmed before, may be behind the clock of a member
/// that confirms it, in milliseconds. Whoever bumps the mark of a fence takes what the clock says, and
/// refuses for so long what follows a term from before.
pub(super) const LAG_MS_MAX: u64 = 1_000;

impl Quorum {
    /// The next term, for all that is known. Nothing where another request of the process is about, which may
    /// be one of the same attempt: each would ask for another token.
    pub(super) fn guess(&self, request: &Acquire, trying: &Try) -> Option<Offer> {
        // Whatever becomes of this request: what comes after it knows less.
        let before = self
            .rivals
            .own_before(request)
            .filter(|_| trying.is_alone && self.durability() == Durability::Safe)?;
        Some(Offer {
            token: FencingToken::successor(Some(before.token), 0)?,
            terms: before.terms.saturating_add(1).min(i64::MAX.unsigned_abs()),
            follows: Some(before.token),
        })
    }

    /// A round by a guess. Where others are in the way, or know of more, it comes to what any other round
    /// does, with members that have confirmed the guess.
    pub(super) async fn take_at_once(&self, request: &Acquire, guess: Offer, trying: &mut Try) -> Round {
        trying.asks(0..self.members.len());
        trying.confirms(guess.token);
        let confirmed = |answers: &[(usize, (Taken, Option<Given>))]| {
            let given = answers.iter().filter_map(|(_, (_, given))| given.as_ref());
            count_of(given, guess.token)
        };
        let (is_granted, granted) = watch::channel(false);
        let poll = self
            .ask(
                0..self.members.len(),
                Deed::Write,
                |site| take_by_guess(site, request.clone(), guess, granted.clone()),
                |answers, waiting| {
                    let mine = answers.iter().filter(|(_, (taken, _))| is_mine(taken)).count();
                    let confirmed = confirmed(answers);
                    let is_vain = confirmed + waiting.all < self.majority();
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
            return self
                .weigh(request, Order::AllAtOnce, taken.collect(), &poll.errors, trying)
                .await;
        }
        is_granted.send_replace(true);
        let given = poll.answers.iter().filter_map(|(_, (_, given))| given.as_ref());
        let grant = Grant {
            token: guess.token,
            ttl: request.ttl,
            terms: given.map(|given| given.terms).max().unwrap_or(guess.terms),
            again: false,
            predecessor: None,
        };
        let mine = poll.answers.into_iter().filter_map(|(place, (taken, _))| {
            let Taken::Mine(mine) = taken else { return None };
            Some((place, mine))
        });
        let mine: Vec<(usize, Mine)> = mine.collect();
        self.granted(request, &mine, grant, trying)
    }
}

/// Takes a member and has it confirm the guess. One that knows of another term before has the guess confirmed
/// once it is granted, so that it is one of those that hold the term; nobody waits for that.
async fn take_by_guess(
    site: Arc<Site>,
    request: Acquire,
    guess: Offer,
    mut granted: watch::Receiver<bool>,
) -> Result<(Taken, Option<Given>), StoreError> {
    let answer = take_and_confirm(Arc::clone(&site), request.clone(), guess).await?;
    if let (Taken::Mine(_), None) = &answer {
        tokio::spawn(async move {
            if granted.wait_for(|granted| *granted).await.is_ok() {
                let found = Offer {
                    follows: None,
                    ..guess
                };
                // The next renewal brings it, else.
                let _failed = confirm(site, request, found).await;
            }
        });
    }
    Ok(answer)
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
