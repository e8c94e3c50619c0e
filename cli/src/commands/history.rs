//! `tenure history`.

use super::ends::code_in;
use super::look::{Viewed, answer};
use crate::arguments::{Form, HistoryArguments};
use crate::exit::{Code, Failure};
use crate::output::{self, clean, columns, in_json, short};
use serde_json::{Value, json};
use tenure::contract::{Lease, Occupancy, Timekeeper};
use tenure::tooling::{History, PastTerm};
use tenure::{FencingToken, LeaseName, SharedStore};

/// What the record of the lease tells of its latest term.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Latest {
    Leads(FencingToken),
    /// It is held for whoever has only just looked, and by the servers' clocks it was not renewed within its
    /// ttl: its holder was killed, or these are not set alike.
    NotRenewed(FencingToken),
    /// It was given back, and within a ttl it was still renewed: how it ended is noted beside, and may not be
    /// there yet.
    JustReleased(FencingToken),
    /// Nothing that the history does not.
    #[default]
    Unknown,
}

impl Latest {
    fn of(lease: &Lease, timekeeper: Timekeeper) -> Self {
        match lease.occupancy() {
            Occupancy::Held
                if timekeeper == Timekeeper::Observer && lease.renewed_ago > lease.ttl.duration() =>
            {
                Self::NotRenewed(lease.token)
            }
            Occupancy::Held => Self::Leads(lease.token),
            Occupancy::Vacant if lease.renewed_ago < lease.ttl.duration() => Self::JustReleased(lease.token),
            Occupancy::Vacant | Occupancy::Expired => Self::Unknown,
        }
    }
}

/// Shows the last terms of a lease, the latest first.
pub(crate) async fn history(
    arguments: &HistoryArguments,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let name = LeaseName::new(&arguments.name)?;
    let viewed = Viewed::open(store).await?;
    let Known {
        latest,
        terms,
        unreadable,
    } = match &viewed.store {
        Some(store) => read(store, &name).await?,
        None => Known::default(),
    };
    output::print(&match form {
        Form::Text if terms.is_empty() => output::line(&format!(
            "lease \"{name}\": no term is noted in {} (tenure run notes them; tenure lock does not, nor programs without Election::keep_history; tenure gc removes those that ended long ago)",
            viewed.shown()
        )),
        Form::Text => table(&terms, latest),
        Form::Json => {
            let terms: Vec<Value> = terms.iter().map(|term| in_json_of(term, latest)).collect();
            format!(
                "{}\n",
                json!({"store": viewed.in_json(), "name": name.as_str(), "terms": terms})
            )
        }
    })?;
    match unreadable.first() {
        None => Ok(0),
        Some(first) => Err(Failure::new(
            Code::Unreadable,
            format!(
                "lease \"{name}\": terms may be missing above, as records of its history cannot be understood ({}, the first is \"{}\"); \
                 tenure doctor tells why",
                unreadable.len(),
                clean(first)
            ),
        )),
    }
}

#[derive(Default)]
struct Known {
    latest: Latest,
    terms: Vec<PastTerm>,
    unreadable: Vec<String>,
}

async fn read(store: &SharedStore, name: &LeaseName) -> Result<Known, Failure> {
    // First: a term that ends meanwhile has its word, or is shown to lead.
    let lease = answer(store.get(name)).await?;
    let history = History::new(name.clone(), store.clone());
    let timekeeper = store.traits().timekeeper;
    Ok(Known {
        latest: lease.map_or(Latest::Unknown, |lease| Latest::of(&lease, timekeeper)),
        terms: answer(history.read()).await?,
        unreadable: answer(history.unreadable()).await?,
    })
}

fn table(terms: &[PastTerm], latest: Latest) -> String {
    let mut lines = vec![["TOKEN", "HOLDER", "BEGAN", "LED FOR", "END"].map(str::to_owned)];
    lines.extend(terms.iter().map(|term| {
        let (led, end) = match &term.end {
            Some(end) => (short(end.led), clean(&end.words)),
            None if latest == Latest::Leads(term.token) => (short(term.began_ago), "leads".to_owned()),
            None if latest == Latest::NotRenewed(term.token) => (
                "?".to_owned(),
                "no word, and not renewed: killed, or cut off?".to_owned(),
            ),
            None if latest == Latest::JustReleased(term.token) => ("?".to_owned(), "no word yet".to_owned()),
            None => ("?".to_owned(), "no word: killed, or cut off".to_owned()),
        };
        let began = format!("{} ago", short(term.began_ago));
        [
            term.token.to_string(),
            clean(term.holder.as_str()),
            began,
            led,
            end,
        ]
    }));
    columns(&lines)
}

fn in_json_of(term: &PastTerm, latest: Latest) -> Value {
    json!({
        "token": term.token.number(),
        "holder": term.holder.as_str(),
        "began_ago_ms": in_json(term.began_ago),
        "led_for_ms": term.end.as_ref().map(|end| in_json(end.led)),
        "end": term.end.as_ref().map(|end| end.words.as_str()),
        "exit_code": term.end.as_ref().and_then(|end| end.exit_code.or_else(|| code_in(&end.words))),
        "left": term.end.as_ref().and_then(|end| end.left),
        "leads": leads(term, latest),
    })
}

/// `None` where only the ages of its record tell, which decide nothing.
fn leads(term: &PastTerm, latest: Latest) -> Option<bool> {
    (latest != Latest::NotRenewed(term.token)).then(|| latest == Latest::Leads(term.token))
}
