//! `tenure step-down`.

mod told;

use super::look::{Viewed, answer};
use super::successor;
use crate::arguments::{Form, StepDownArguments, TTL_DEFAULT};
use crate::exit::{Code, Failure};
use crate::output::{self, Voice, clean, short};
use clap::ArgMatches;
use serde_json::json;
use std::time::{Duration, Instant};
use tenure::contract::{Ask, Asked, Interest, Lease, Occupancy, Release, Released, Scope, Watch};
use tenure::{FencingToken, LeaseName, LeaseStore, SharedStore};
use told::{Ended, How, never_taken, not_taken_over, told};

/// How long to wait for the successor once the term has ended: a standby takes over within milliseconds.
const SUCCESSOR_WAIT: Duration = Duration::from_secs(1);

/// Longest time between two looks at the record, where the store's watch says nothing.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How often to begin anew where a term ended by itself before its holder was asked.
const BEGINNINGS_MAX: u32 = 8;

/// Ends the current term of a lease, by asking its holder or by force, and says who took over.
pub(crate) async fn step_down(
    arguments: &StepDownArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    form: Form,
    voice: Voice,
) -> Result<u8, Failure> {
    let name = LeaseName::new(&arguments.name)?;
    let wanted = match arguments.wanted_token(matches).map(FencingToken::new) {
        None => None,
        Some(Ok(token)) => Some(token),
        Some(Err(error)) => return Err(Failure::new(Code::Configuration, format!("--token: {error}"))),
    };
    let viewed = Viewed::open(store).await?;
    let Some(opened) = &viewed.store else {
        // There is nobody, and so neither this term nor this candidate.
        return match (wanted, &arguments.to) {
            (Some(wanted), _) => Err(no(&name, &not_current(wanted, "nobody ever has"))),
            (None, Some(to)) => Err(successor::waits_not(&name, to, &[])),
            (None, None) => {
                output::print(&never_taken(&name, &viewed, form))?;
                Ok(0)
            }
        };
    };
    let wish = Wish {
        store: opened.clone(),
        name,
        wanted,
        arguments,
        voice,
    };
    let mut before = None;
    for _beginning in 0..BEGINNINGS_MAX {
        match wish.try_once(before.take()).await? {
            Outcome::Done { ended, successor } => {
                output::print(&told(&wish.name, ended.as_ref(), successor.as_ref(), form))?;
                return Ok(0);
            }
            Outcome::NeverTaken => {
                output::print(&never_taken(&wish.name, &viewed, form))?;
                return Ok(0);
            }
            Outcome::Anew(lease) => before = Some(lease),
        }
    }
    Err(Failure::new(
        Code::No,
        format!(
            "lease \"{}\": {BEGINNINGS_MAX} terms ended before their holders could be asked; try again",
            wish.name
        ),
    ))
}

/// Which term is to end, and who is to have the next.
struct Wish<'a> {
    store: SharedStore,
    name: LeaseName,
    wanted: Option<FencingToken>,
    arguments: &'a StepDownArguments,
    voice: Voice,
}

/// What came of it.
enum Outcome {
    /// It is so.
    Done {
        ended: Option<Ended>,
        successor: Option<Lease>,
    },
    /// Nobody ever has: most often the name is mistyped, or the store is another.
    NeverTaken,
    /// This term ended by itself, and another than the one who was called may have begun the next: it was not
    /// asked.
    Anew(Lease),
}

impl Wish<'_> {
    /// `before` is a term that has ended by itself since the wish came.
    async fn try_once(&self, before: Option<Lease>) -> Result<Outcome, Failure> {
        let lease = answer(self.store.get(&self.name)).await?;
        let ended = before.map(|before| Ended::judge(before, lease.as_ref()));
        match held(lease.clone()) {
            None => self.of_nobody(lease, ended).await,
            Some(lease) if ended.is_some() && self.is_called(&lease) => Ok(Outcome::Done {
                ended,
                successor: Some(lease),
            }),
            Some(lease) => self.of_holder(lease).await,
        }
    }

    /// Nobody need be asked; who is called must come.
    async fn of_nobody(&self, last: Option<Lease>, ended: Option<Ended>) -> Result<Outcome, Failure> {
        let is_last = |wanted: &FencingToken| last.as_ref().is_some_and(|last| last.token == *wanted);
        if let Some(wanted) = self.wanted.filter(|wanted| !is_last(wanted)) {
            let last = last.map_or("nobody ever has".to_owned(), |last| {
                format!("the last who did had token {}", last.token)
            });
            return Err(self.no(not_current(wanted, &last)));
        }
        let Some(to) = &self.arguments.to else {
            return Ok(match (&last, &ended) {
                (None, None) => Outcome::NeverTaken,
                _ => Outcome::Done {
                    ended,
                    successor: None,
                },
            });
        };
        let mut watch = self.watch().await;
        let called = successor::call(&self.store, &self.name, to).await;
        let now = answer(self.store.get(&self.name)).await?;
        // Who has taken it meanwhile waits no more, and cannot be called.
        if !now.as_ref().is_some_and(|now| self.is_called(now)) {
            called?;
        }
        let ttl = last.map_or(TTL_DEFAULT, |last| last.ttl.duration());
        let successor = self.successor(now, &mut watch, to, ttl, ended.as_ref()).await?;
        Ok(Outcome::Done {
            ended,
            successor: Some(successor),
        })
    }

    async fn of_holder(&self, lease: Lease) -> Result<Outcome, Failure> {
        if let Some(wanted) = self.wanted.filter(|wanted| *wanted != lease.token) {
            return Err(self.no(format!(
                "token {wanted} is not the current one; {} holds it with token {}",
                lease.holder, lease.token
            )));
        }
        if let Some(to) = &self.arguments.to {
            if self.is_called(&lease) {
                return Err(self.no(format!("{to} holds it already, token {}", lease.token)));
            }
            // First: whoever is next now, and takes the lease all the same, sees it and gives the lease back.
            successor::call(&self.store, &self.name, to).await?;
        }
        // Watched from before the wish: what follows cannot be missed.
        let mut watch = self.watch().await;
        let is_forced = self.arguments.force && self.vacate(&lease).await?;
        if !self.arguments.force {
            let ask = Ask {
                name: self.name.clone(),
                token: lease.token,
            };
            match answer(self.store.ask(&ask)).await? {
                Asked::NotHeld if self.arguments.to.is_some() => return Ok(Outcome::Anew(lease)),
                Asked::Noted | Asked::NotHeld => {}
            }
        }
        let wait = self.wait(lease.ttl.duration());
        let is_over = |now: Option<&Lease>| !is_same_term(now, &lease);
        let after = match until(&*self.store, &self.name, &mut watch, wait, is_over).await {
            Seen::Wished(after) => after,
            Seen::Not => {
                return Err(self.no(format!(
                    "{} was asked, but term {} has not ended after {}; it ends when its holder hears of it: wait longer with \
                     --wait, or vacate it with --force if its holder is dead",
                    lease.holder,
                    lease.token,
                    short(wait)
                )));
            }
            Seen::Nothing(failure) => {
                let wish = match is_forced {
                    true => format!("term {} of {} was vacated", lease.token, lease.holder),
                    false => format!("{} was asked to end term {}", lease.holder, lease.token),
                };
                return Err(self.unseen(&wish, failure));
            }
        };
        let ttl = lease.ttl.duration();
        let mut ended = Ended::judge(lease, after.as_ref());
        if is_forced {
            ended.how = How::Vacated;
        }
        let successor = match &self.arguments.to {
            None => {
                let store = &*self.store;
                let next = next_holder(store, after, &self.name, &mut watch, SUCCESSOR_WAIT, |_| true);
                match next.await {
                    Seen::Wished(successor) => Some(successor),
                    // It has ended, as was wished; who is next is told where it can be.
                    Seen::Not | Seen::Nothing(_) => None,
                }
            }
            Some(to) => Some(self.successor(after, &mut watch, to, ttl, Some(&ended)).await?),
        };
        let ended = Some(ended);
        Ok(Outcome::Done { ended, successor })
    }

    /// Waits until the one who was called leads.
    async fn successor(
        &self,
        after: Option<Lease>,
        watch: &mut Option<Box<dyn Watch>>,
        to: &str,
        ttl: Duration,
        ended: Option<&Ended>,
    ) -> Result<Lease, Failure> {
        let (store, wait) = (&*self.store, self.wait(ttl));
        let is_called = |now: &Lease| self.is_called(now);
        let failure = match next_holder(store, after, &self.name, watch, wait, is_called).await {
            Seen::Wished(successor) => return Ok(successor),
            Seen::Not => match answer(store.get(&self.name)).await {
                Ok(now) => {
                    return Err(self.no(not_taken_over(ended, to, &short(wait), held(now).as_ref())));
                }
                Err(error) => error.into(),
            },
            Seen::Nothing(failure) => failure,
        };
        let ended = ended.map_or(String::new(), |ended| format!("{ended}, and "));
        Err(self.unseen(&format!("{ended}{} was called", clean(to)), failure))
    }

    /// What was wished, and was not seen to come true, as the store does not answer.
    fn unseen(&self, wish: &str, failure: Failure) -> Failure {
        let message = format!(
            "lease \"{}\": {wish}, but the store has not answered since: {}",
            self.name, failure.message
        );
        Failure { message, ..failure }
    }

    /// Ends the term without its holder; whether it was there to be ended.
    async fn vacate(&self, lease: &Lease) -> Result<bool, Failure> {
        let releases = [Release {
            name: lease.name.clone(),
            incarnation: lease.holder.incarnation,
            token: lease.token,
            attempt: lease.attempt,
        }];
        let releasing = async { self.store.release(&releases).await.into_iter().next().transpose() };
        let is_vacated = answer(releasing).await? == Some(Released::Vacated);
        if is_vacated {
            let text = format!(
                "lease \"{}\": vacated; {} may not know it yet, and only a fence that refuses token {} protects the data \
                 from it",
                lease.name, lease.holder, lease.token
            );
            let fields = json!({"lease": lease.name.as_str(), "token": lease.token.number()});
            self.voice.say("vacated", &text, fields);
        }
        Ok(is_vacated)
    }

    async fn watch(&self) -> Option<Box<dyn Watch>> {
        self.store
            .watch(&Scope::Name(self.name.clone()), Interest::Everything)
            .await
            .ok()
    }

    fn is_called(&self, lease: &Lease) -> bool {
        let called = self.arguments.to.as_deref();
        lease.occupancy() == Occupancy::Held && called == Some(lease.holder.id.as_str())
    }

    fn wait(&self, ttl: Duration) -> Duration {
        self.arguments.wait.unwrap_or(ttl * 2)
    }

    fn no(&self, what: String) -> Failure {
        no(&self.name, &what)
    }
}

fn no(name: &LeaseName, what: &str) -> Failure {
    Failure::new(Code::No, format!("lease \"{name}\": {what}"))
}

/// Where nobody holds the lease.
fn not_current(wanted: FencingToken, last: &str) -> String {
    format!("token {wanted} is not the current one; nobody holds it, and {last}")
}

/// What was seen of a record by the end of the wait.
enum Seen<T> {
    /// It was as wished.
    Wished(T),
    /// It was not.
    Not,
    /// The last looks have failed: nobody knows.
    Nothing(Failure),
}

/// Waits for a holder as wished, at most for `wait`.
async fn next_holder(
    store: &dyn LeaseStore,
    after: Option<Lease>,
    name: &LeaseName,
    watch: &mut Option<Box<dyn Watch>>,
    wait: Duration,
    is_wished: impl Fn(&Lease) -> bool,
) -> Seen<Lease> {
    if let Some(holder) = held(after).filter(|holder| is_wished(holder)) {
        return Seen::Wished(holder);
    }
    let is_there = |now: Option<&Lease>| held(now.cloned()).is_some_and(|now| is_wished(&now));
    match until(store, name, watch, wait, is_there).await {
        Seen::Wished(now) => held(now).map_or(Seen::Not, Seen::Wished),
        Seen::Not => Seen::Not,
        Seen::Nothing(failure) => Seen::Nothing(failure),
    }
}

/// Reads the record until it is as wished, at most for `wait`. A look that fails is made again: the holder
/// has heard of the wish already, and what becomes of it does not hang on who looks.
async fn until(
    store: &dyn LeaseStore,
    name: &LeaseName,
    watch: &mut Option<Box<dyn Watch>>,
    wait: Duration,
    wished: impl Fn(Option<&Lease>) -> bool,
) -> Seen<Option<Lease>> {
    let began = Instant::now();
    loop {
        let seen = match answer(store.get(name)).await {
            Ok(lease) if wished(lease.as_ref()) => return Seen::Wished(lease),
            Ok(_) => Seen::Not,
            Err(error) => Seen::Nothing(error.into()),
        };
        let left = wait.saturating_sub(began.elapsed());
        if left.is_zero() {
            return seen;
        }
        let pause = tokio::time::sleep(left.min(LOOK_EVERY));
        let Some(watching) = watch else {
            pause.await;
            continue;
        };
        let broken = tokio::select! {
            event = watching.next() => event.is_err(),
            () = pause => false,
        };
        if broken {
            *watch = None;
        }
    }
}

fn is_same_term(now: Option<&Lease>, lease: &Lease) -> bool {
    now.is_some_and(|now| now.token == lease.token && now.occupancy() == Occupancy::Held)
}

fn held(lease: Option<Lease>) -> Option<Lease> {
    lease.filter(|lease| lease.occupancy() == Occupancy::Held)
}
