//! `tenure step-down`.

use super::look::answer;
use super::successor;
use crate::arguments::{Form, StepDownArguments};
use crate::exit::{Code, Failure};
use crate::output::{self, Voice, short};
use clap::ArgMatches;
use serde_json::json;
use std::time::{Duration, Instant};
use tenure::core::{Ask, Asked, Lease, Occupancy, Release, Released, Scope, Watch};
use tenure::{FencingToken, LeaseName, LeaseStore};

/// How long to wait for the successor once the term has ended: a standby takes over within milliseconds.
const SUCCESSOR_WAIT: Duration = Duration::from_secs(1);

/// Longest time between two looks at the record, where the store's watch says nothing.
const LOOK_EVERY: Duration = Duration::from_millis(500);

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
        Some(Err(error)) => return Err(Failure::new(Code::Usage, format!("--token: {error}"))),
    };
    let store = super::open(store).await?;
    let lease = answer(store.get(&name)).await?;
    let Some(lease) = lease.filter(|lease| lease.occupancy() == Occupancy::Held) else {
        if let Some(candidate) = &arguments.to {
            // It need not be asked for by anybody; it must be there.
            successor::call(&store, &name, candidate).await?;
        }
        output::print(&match form {
            Form::Text => format!("lease \"{name}\": nobody holds it\n"),
            Form::Json => format!(
                "{}\n",
                json!({"name": name.as_str(), "ended": null, "successor": null})
            ),
        })?;
        return Ok(0);
    };
    if let Some(wanted) = wanted.filter(|wanted| *wanted != lease.token) {
        return Err(Failure::new(
            Code::No,
            format!(
                "lease \"{name}\": token {wanted} is not the current one; {} holds it with token {}",
                lease.holder, lease.token
            ),
        ));
    }
    if let Some(candidate) = &arguments.to {
        if lease.holder.id.as_str() == candidate {
            return Err(Failure::new(
                Code::No,
                format!(
                    "lease \"{name}\": {candidate} holds it already, token {}",
                    lease.token
                ),
            ));
        }
        // First: whoever is next now, and takes the lease all the same, sees it and gives the lease back.
        successor::call(&store, &name, candidate).await?;
    }
    // Watched from before the wish: what follows cannot be missed.
    let mut watch = store.watch(&Scope::Name(name.clone())).await.ok();
    if arguments.force {
        vacate(&*store, &lease, voice).await?;
    } else {
        let ask = Ask {
            name: name.clone(),
            token: lease.token,
        };
        match answer(store.ask(&ask)).await? {
            Asked::Noted | Asked::NotHeld => {}
        }
    }
    let wait = arguments.wait.unwrap_or(lease.ttl.duration() * 2);
    let after = until(&*store, &name, &mut watch, wait, |now| !is_same_term(now, &lease)).await?;
    let Some(after) = after else {
        return Err(Failure::new(
            Code::No,
            format!(
                "lease \"{name}\": {} was asked, but term {} has not ended after {}; wait longer with --wait, or \
                 vacate it with --force if its holder is dead",
                lease.holder,
                lease.token,
                short(wait)
            ),
        ));
    };
    let successor = match &arguments.to {
        None => next_holder(&*store, after, &name, &mut watch, SUCCESSOR_WAIT, |_| true).await?,
        Some(to) => {
            let is_wanted = |now: &Lease| now.holder.id.as_str() == to;
            let wanted = next_holder(&*store, after, &name, &mut watch, wait, is_wanted).await?;
            Some(match wanted {
                Some(wanted) => wanted,
                None => return Err(not_taken_over(&*store, &lease, to, wait).await?),
            })
        }
    };
    output::print(&told(&lease, successor.as_ref(), form))?;
    Ok(0)
}

async fn vacate(store: &dyn LeaseStore, lease: &Lease, voice: Voice) -> Result<(), Failure> {
    let release = Release {
        name: lease.name.clone(),
        incarnation: lease.holder.incarnation,
        token: lease.token,
        attempt: lease.attempt,
    };
    let releases = [release];
    let released = answer(async { store.release(&releases).await.into_iter().next().transpose() }).await?;
    if let Some(Released::Vacated) = released {
        let text = format!(
            "lease \"{}\": vacated; {} may not know it yet, and only a fence that refuses token {} protects the data \
             from it",
            lease.name, lease.holder, lease.token
        );
        voice.say(
            "vacated",
            &text,
            json!({"lease": lease.name.as_str(), "token": lease.token.number()}),
        );
    }
    Ok(())
}

/// Waits for a holder as wished, at most for `wait`.
async fn next_holder(
    store: &dyn LeaseStore,
    after: Option<Lease>,
    name: &LeaseName,
    watch: &mut Option<Box<dyn Watch>>,
    wait: Duration,
    is_wished: impl Fn(&Lease) -> bool,
) -> Result<Option<Lease>, Failure> {
    if let Some(holder) = held(after).filter(|holder| is_wished(holder)) {
        return Ok(Some(holder));
    }
    let is_there = |now: Option<&Lease>| held(now.cloned()).is_some_and(|now| is_wished(&now));
    Ok(until(store, name, watch, wait, is_there).await?.and_then(held))
}

/// What to say when another than the one who was called has the lease, or nobody.
async fn not_taken_over(
    store: &dyn LeaseStore,
    before: &Lease,
    to: &str,
    wait: Duration,
) -> Result<Failure, Failure> {
    let now = held(answer(store.get(&before.name)).await?);
    let now = now.map_or("nobody holds it".to_owned(), |now| {
        format!("{} holds it, token {}", now.holder, now.token)
    });
    let Lease {
        name, holder, token, ..
    } = before;
    Ok(Failure::new(
        Code::No,
        format!(
            "lease \"{name}\": {holder} (token {token}) has stepped down, but {to} has not taken over after {}; {now}",
            short(wait)
        ),
    ))
}

/// Reads the record until it is as wished, at most for `wait`; `None` when it never was.
async fn until(
    store: &dyn LeaseStore,
    name: &LeaseName,
    watch: &mut Option<Box<dyn Watch>>,
    wait: Duration,
    wished: impl Fn(Option<&Lease>) -> bool,
) -> Result<Option<Option<Lease>>, Failure> {
    let began = Instant::now();
    loop {
        let lease = answer(store.get(name)).await?;
        if wished(lease.as_ref()) {
            return Ok(Some(lease));
        }
        let left = wait.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(None);
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

fn told(before: &Lease, successor: Option<&Lease>, form: Form) -> String {
    match form {
        Form::Json => {
            let successor = successor.map(
                |successor| json!({"holder": successor.holder.id.as_str(), "token": successor.token.number()}),
            );
            let ended = json!({"holder": before.holder.id.as_str(), "token": before.token.number()});
            format!(
                "{}\n",
                json!({"name": before.name.as_str(), "ended": ended, "successor": successor})
            )
        }
        Form::Text => {
            let (name, holder, token) = (&before.name, &before.holder, before.token);
            match successor {
                Some(successor) => format!(
                    "lease \"{name}\": {holder} (token {token}) has stepped down; {} holds it now, token {}\n",
                    successor.holder, successor.token
                ),
                None => format!(
                    "lease \"{name}\": {holder} (token {token}) has stepped down; nobody has taken it yet\n"
                ),
            }
        }
    }
}
