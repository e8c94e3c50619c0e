//! What a candidate asks of one member: to take the record, and to confirm its token.

use super::Effect;
use super::guess::LAG_MS_MAX;
use super::token::{Mine, Standing};
use crate::fault::Deed;
use crate::read::Sighting;
use crate::record::predecessor;
use crate::reply::{Reply, misunderstood};
use crate::script::{Arguments, CONFIRM, Script, TAKE};
use crate::site::{Site, subject};
use futures_util::future::join;
use std::sync::Arc;
use tenure_core::{Acquire, FencingToken, LeaseName, StoreError};

/// What one member says to a candidate.
pub(super) enum Taken {
    /// The record is the candidate's, here.
    Mine(Mine),
    /// It is somebody else's.
    Held(Sighting),
    Superseded,
    Exhausted,
    Unreadable(StoreError),
}

/// How many members have the record as the candidate's.
pub(super) fn count_mine(answers: &[(usize, Taken)]) -> usize {
    let mine = answers
        .iter()
        .filter(|(_, taken)| matches!(taken, Taken::Mine(_)));
    mine.count()
}

pub(super) async fn take(site: Arc<Site>, request: Acquire) -> Result<Taken, StoreError> {
    let key = site.keys.record(&request.name);
    let keys = [
        site.keys.index(),
        key.clone(),
        site.keys.removed(),
        site.keys.membership(),
    ];
    let arguments = Arguments::on(keys)
        .with(&request.candidate.id)
        .with(request.candidate.incarnation)
        .with(request.attempt)
        .with(request.ttl.as_millis())
        .with(&request.note)
        .with(&request.name);
    let mut reply = run_as_member(&site, &TAKE, arguments, &request.name).await?;
    let (verdict, now_ms) = (reply.word()?, reply.number()?);
    let name = request.name.as_str();
    Ok(match verdict.as_str() {
        "taken" | "pending" | "again" => {
            let (token, terms) = (reply.number()?, reply.number()?);
            Taken::Mine(Mine {
                now_ms,
                token: FencingToken::new(token).ok(),
                terms,
                standing: match verdict.as_str() {
                    "taken" => Standing::Taken,
                    "pending" => Standing::Pending,
                    _ => Standing::Confirmed,
                },
                predecessor: predecessor(&key, name, &mut reply, now_ms)?,
            })
        }
        "held" => {
            let fields = reply.fields()?;
            Taken::Held(Sighting::read(&key, name, fields.as_ref(), now_ms)?)
        }
        "superseded" => Taken::Superseded,
        "exhausted" => Taken::Exhausted,
        "unreadable" => Taken::Unreadable(site.cannot_read(&key, name, reply.fields()?.as_ref(), now_ms)),
        _ => return Err(misunderstood()),
    })
}

/// What a member has confirmed for an attempt.
pub(super) struct Given {
    pub(super) token: FencingToken,
    pub(super) terms: u64,
    /// Whether it was just now.
    pub(super) is_new: bool,
}

pub(super) fn count_of<'a>(given: impl IntoIterator<Item = &'a Given>, token: FencingToken) -> usize {
    given.into_iter().filter(|given| given.token == token).count()
}

/// What members are asked to confirm.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub(super) token: FencingToken,
    pub(super) terms: u64,
    /// Only where this is the token of the term before: it was guessed.
    pub(super) follows: Option<FencingToken>,
}

/// None where the record is not the attempt's any more, or knows of another term than the offer follows, or
/// of a later one.
pub(super) async fn confirm(
    site: Arc<Site>,
    request: Acquire,
    offer: Offer,
) -> Result<Option<Given>, StoreError> {
    let follows = offer.follows.map_or(0, FencingToken::number);
    let mut arguments = on_record(&site, &request.name);
    arguments.keys.push(site.keys.membership());
    let arguments = arguments
        .with(request.candidate.incarnation)
        .with(request.attempt)
        .with(offer.token)
        .with(offer.terms)
        .with(request.ttl.as_millis())
        .with(site.keys.channel(&request.name))
        .with(follows)
        .with(LAG_MS_MAX);
    let mut reply = run_as_member(&site, &CONFIRM, arguments, &request.name).await?;
    let verdict = reply.word()?;
    match verdict.as_str() {
        "confirmed" | "already" => Ok(Some(Given {
            token: FencingToken::new(reply.number()?).map_err(|_| misunderstood())?,
            terms: reply.number()?,
            is_new: verdict == "confirmed",
        })),
        "gone" | "unreadable" => Ok(None),
        _ => Err(misunderstood()),
    }
}

/// Both at once, with a token that was guessed: the confirming is carried out behind the taking, on the same
/// connection.
pub(super) async fn take_and_confirm(
    site: Arc<Site>,
    request: Acquire,
    offer: Offer,
) -> Result<(Taken, Option<Given>), StoreError> {
    let taking = take(Arc::clone(&site), request.clone());
    let (taken, given) = join(taking, confirm(site, request, offer)).await;
    match taken? {
        // What is taken may be confirmed, whatever was not heard.
        Taken::Mine(mine) => match given {
            Ok(given) => Ok((Taken::Mine(mine), given)),
            Err(error) => Err(Effect::Possible.told_in(error)),
        },
        other => Ok((other, None)),
    }
}

/// Runs a script whose last argument says which member it is for, in the time of one request, however newly
/// that is met.
async fn run_as_member(
    site: &Site,
    script: &Script,
    arguments: Arguments,
    name: &LeaseName,
) -> Result<Reply, StoreError> {
    let subject = subject(name);
    let running = async {
        let arguments = arguments.with(site.told_member_id().await?);
        let requests = &site.requests;
        requests
            .run(script, &arguments, Deed::Write, &subject, &site.place)
            .await
    };
    site.in_time(Deed::Write, &subject, running).await
}

pub(super) fn on_record(site: &Site, name: &LeaseName) -> Arguments {
    Arguments::on([site.keys.index(), site.keys.record(name)])
}
