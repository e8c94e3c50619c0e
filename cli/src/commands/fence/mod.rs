//! `tenure fence`.

mod bump;
mod leases;
mod place;
mod table;

pub(crate) use place::{FencePlace, Making, Opened};

use super::look::answer;
use crate::arguments::{FenceArguments, FenceDeed, FencePlaceArguments, Form, TableArguments, TermArguments};
use crate::exit::{Code, Failure};
use crate::output::{self, Voice, json_of_listed, short, table_of_marks};
use clap::ArgMatches;
use clap::parser::ValueSource;
use place::close;
use serde_json::{Value, json};
use std::future::Future;
use std::time::{Duration, Instant};
use tenure::contract::Cursor;
use tenure::{
    Bump, Claimed, Fence, FenceError, FencingToken, LeaseName, Leases, ListedMark, MarkPage, ResourceName,
    StoreError, Term,
};

/// Does what was asked of the fence.
pub(crate) async fn fence(
    arguments: &FenceArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    voice: Voice,
) -> Result<u8, Failure> {
    let form = voice.form();
    let (_, matches) = matches.subcommand().expect("a subcommand is required");
    match &arguments.deed {
        FenceDeed::Claim { term, wait } => claim(term, *wait, matches, store, voice).await,
        FenceDeed::Check(arguments) => check(arguments, matches, store, voice).await,
        FenceDeed::Show { resources, place } => show(resources, place, store, form).await,
        FenceDeed::Bump {
            resource,
            above,
            lease,
            place,
        } => {
            let bump = Bump {
                resource: ResourceName::new(resource)?,
                above: above.map(|above| token("--above", above)).transpose()?,
                lease: lease.as_ref().map(LeaseName::new).transpose()?,
            };
            bump::bump(bump, place, store, form).await
        }
        FenceDeed::Guard { resource, table } => {
            guard(&ResourceName::new(resource)?, table, store, form).await
        }
        FenceDeed::Unguard { table } => unguard(table, store, form).await,
    }
}

async fn claim(
    arguments: &TermArguments,
    wait: Option<Duration>,
    matches: &ArgMatches,
    store: Option<&str>,
    voice: Voice,
) -> Result<u8, Failure> {
    let (resource, term) = term_of(arguments, matches)?;
    let place = FencePlace::find(&arguments.place, store)?;
    leases::tell_if_nobody_named_them(&place, store, &term, voice);
    let claim = async || claim_once(&place, store, &resource, &term).await;
    let claimed = patiently(claim, &resource, wait.unwrap_or_default(), voice).await?;
    let how = match claimed {
        Claimed::Already => "had claimed it already".to_owned(),
        // Nobody has led by the number of a bumped mark before.
        Claimed::Raised { from: Some(from) } if from == term.token => {
            "has claimed it, where its mark was bumped to".to_owned()
        }
        Claimed::Raised { from: Some(from) } => format!("has claimed it, after term {from}"),
        Claimed::Raised { from: None } => "has claimed it, as the first".to_owned(),
        _ => "has claimed it".to_owned(),
    };
    admitted(&resource, &term, voice, how)
}

async fn claim_once(
    place: &FencePlace,
    store: Option<&str>,
    resource: &ResourceName,
    term: &Term,
) -> Result<Claimed, Failure> {
    let leases = place.leases(store);
    let fence = place.open(leases, Making::WhereMissing).await?;
    let fence = fence.expect("it was made where it was missing");
    if let (Leases::Elsewhere, Some(store)) = (leases, leases::named(store)) {
        leases::bound(&*fence, resource, term, store).await?;
    }
    let claimed = match decided(fence.claim(resource, term)).await {
        Err(failure) => Err(of_bumped(failure, &*fence, resource).await),
        claimed => claimed,
    };
    close(fence).await;
    claimed
}

/// How long after a claim that was kept out the next one is made; most fences have waited for seconds
/// themselves.
const CLAIM_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Claims, and again for so long unless that is useless.
async fn patiently(
    claim: impl AsyncFn() -> Result<Claimed, Failure>,
    resource: &ResourceName,
    wait: Duration,
    voice: Voice,
) -> Result<Claimed, Failure> {
    let began = Instant::now();
    let mut is_told = false;
    loop {
        let failure = match claim().await {
            Err(failure) if !failure.ends_a_claim() => failure,
            decided => return decided,
        };
        if began.elapsed() + CLAIM_AGAIN_AFTER > wait {
            return Err(failure);
        }
        if !is_told {
            is_told = true;
            let text = format!(
                "resource {resource:?}: claiming again for up to {}: {}",
                short(wait),
                failure.message
            );
            let fields = json!({ "resource": resource.as_str(), "error": failure.message });
            voice.warn("claim_waits", &text, fields);
        }
        tokio::time::sleep(CLAIM_AGAIN_AFTER).await;
    }
}

async fn check(
    arguments: &TermArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    voice: Voice,
) -> Result<u8, Failure> {
    let (resource, term) = term_of(arguments, matches)?;
    let place = FencePlace::find(&arguments.place, store)?;
    let Some(fence) = place.open(place.leases(store), Making::Never).await? else {
        return Err(refusal(FenceError::Unclaimed {
            resource,
            token: term.token,
        }));
    };
    let checked = match decided(fence.check(&resource, &term)).await {
        Err(failure) => Err(of_bumped(failure, &*fence, &resource).await),
        checked => checked,
    };
    close(fence).await;
    checked?;
    admitted(&resource, &term, voice, "holds the mark".to_owned())
}

/// The same failure; where an operator has raised the mark that a token is below, with what helps a term that
/// is new all the same.
async fn of_bumped(failure: Failure, fence: &dyn Fence, resource: &ResourceName) -> Failure {
    if failure.code != Code::Stale.number() {
        return failure;
    }
    // What cannot be looked at adds nothing.
    let Ok(Some(mark)) = decided(fence.mark(resource)).await else {
        return failure;
    };
    if !mark.bumped {
        return failure;
    }
    let message = format!(
        "{}; no term has claimed {}: an operator has raised the mark to it (tenure fence bump), and if yours is the newest term, \
         a later one may claim as soon as the leases' store grants a token above it",
        failure.message, mark.token
    );
    Failure { message, ..failure }
}

/// The code says it as well: in a script of cron's a line that all is well would be mailed.
fn admitted(resource: &ResourceName, term: &Term, voice: Voice, how: String) -> Result<u8, Failure> {
    output::print(&match voice.form() {
        Form::Text if voice.is_quiet() => String::new(),
        Form::Text => output::line(&format!("resource \"{resource}\": {term} {how}")),
        Form::Json => {
            let (lease, token) = (term.lease.as_str(), term.token.number());
            format!(
                "{}\n",
                json!({"resource": resource.as_str(), "lease": lease, "token": token, "admitted": true})
            )
        }
    })?;
    Ok(0)
}

async fn show(
    resources: &[String],
    place: &FencePlaceArguments,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let names: Result<Vec<_>, _> = resources.iter().map(ResourceName::new).collect();
    let names = names?;
    let mut marks = Vec::new();
    let place = FencePlace::find(place, store)?;
    if let Some(fence) = place.open(place.leases(store), Making::OnlyLooks).await? {
        if names.is_empty() {
            marks = all(&*fence).await?;
        }
        for name in &names {
            marks.extend(one(&*fence, name).await?);
        }
        close(fence).await;
    }
    output::print(&shown(&marks, form))?;
    Ok(code_of_marks(&marks))
}

fn shown(marks: &[ListedMark], form: Form) -> String {
    match form {
        Form::Text => table_of_marks(marks),
        Form::Json => {
            let marks: Vec<Value> = marks.iter().map(json_of_listed).collect();
            format!("{}\n", json!({ "fences": marks }))
        }
    }
}

/// The exit code after showing these marks.
pub(crate) fn code_of_marks(marks: &[ListedMark]) -> u8 {
    match marks.iter().all(|listed| listed.understood().is_some()) {
        true => 0,
        false => Code::Unreadable.number(),
    }
}

async fn one(fence: &dyn Fence, resource: &ResourceName) -> Result<Option<ListedMark>, Failure> {
    let looking = async {
        match fence.mark(resource).await {
            Err(FenceError::Store(error)) => {
                Ok(Some(ListedMark::from_read(|| resource.to_string(), Err(error))?))
            }
            found => Ok(found?.map(ListedMark::Mark)),
        }
    };
    decided(looking).await
}

/// Every mark. However many: where some were left out, nobody could tell.
pub(crate) async fn all(fence: &dyn Fence) -> Result<Vec<ListedMark>, Failure> {
    let (mut marks, mut after) = (Vec::new(), None);
    loop {
        let page = page(fence, after.as_ref()).await?;
        marks.extend(page.marks);
        if page.next.is_none() {
            return Ok(marks);
        }
        after = page.next;
    }
}

/// The marks after `after`.
pub(crate) async fn page(fence: &dyn Fence, after: Option<&Cursor>) -> Result<MarkPage, Failure> {
    decided(fence.marks(after)).await
}

async fn guard(
    resource: &ResourceName,
    table: &TableArguments,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let place = FencePlace::find(&table.place, store)?;
    let (told, told_in_json) = place.guard(resource, table).await?;
    output::print(&match form {
        Form::Text => output::line(&told),
        Form::Json => format!("{told_in_json}\n"),
    })?;
    Ok(0)
}

async fn unguard(table: &TableArguments, store: Option<&str>, form: Form) -> Result<u8, Failure> {
    FencePlace::find(&table.place, store)?.unguard(table).await?;
    output::print(&match form {
        Form::Text => output::line(&format!("table \"{}\": is not guarded", table.table)),
        Form::Json => format!("{}\n", json!({"table": table.table, "guarded": false})),
    })?;
    Ok(0)
}

/// The term that is meant: the environment's token is of the environment's lease, and of no other.
fn term_of(arguments: &TermArguments, matches: &ArgMatches) -> Result<(ResourceName, Term), Failure> {
    let resource = ResourceName::new(&arguments.resource)?;
    let inherited = |id| matches.value_source(id) == Some(ValueSource::EnvVariable);
    let others = std::env::var("TENURE_NAME").is_ok_and(|name| !name.is_empty() && name != arguments.lease);
    if inherited("token") && others {
        return Err(Failure::new(
            Code::Usage,
            format!(
                "resource \"{resource}\": the token in TENURE_TOKEN is of the lease in TENURE_NAME, not of \"{}\"; give \
                 --token, too",
                arguments.lease
            ),
        ));
    }
    if arguments.lease.is_empty() {
        return Err(Failure::new(
            Code::Usage,
            format!("resource \"{resource}\": whose token is it? give --lease NAME, or set TENURE_NAME"),
        ));
    }
    let lease = LeaseName::new(&arguments.lease)?;
    let Some(number) = arguments.token else {
        return Err(Failure::new(
            Code::Usage,
            format!(
                "resource \"{resource}\": by which token? run it as the command of tenure run, which sets TENURE_TOKEN, or give \
                 --token"
            ),
        ));
    };
    Ok((resource, Term::new(lease, token("--token", number)?)))
}

fn token(option: &str, number: u64) -> Result<FencingToken, Failure> {
    FencingToken::new(number)
        .map_err(|error| Failure::new(Code::Configuration, format!("{option} {number}: {error}")))
}

/// Waits for the fence, but not for ever.
async fn decided<T>(deciding: impl Future<Output = Result<T, FenceError>>) -> Result<T, Failure> {
    let mut decided = None;
    let waiting = async {
        decided = Some(deciding.await);
        Ok::<(), StoreError>(())
    };
    answer(waiting).await?;
    decided.expect("it was waited for").map_err(refusal)
}

/// How a refusal ends the command.
pub(crate) fn refusal(error: FenceError) -> Failure {
    let code = match &error {
        FenceError::Stale { .. } => Code::Stale,
        FenceError::Unclaimed { .. } => Code::Unclaimed,
        FenceError::Foreign { .. } | FenceError::Future { .. } => Code::Configuration,
        FenceError::Store(error) => Code::from(error.fault),
        _ => Code::Internal,
    };
    Failure::new(code, error.to_string())
}
