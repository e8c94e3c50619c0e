//! `tenure history`.

use super::look::answer;
use crate::arguments::{Form, HistoryArguments};
use crate::exit::Failure;
use crate::output::{self, clean, columns, in_json, short};
use serde_json::{Value, json};
use tenure::core::Occupancy;
use tenure::{FencingToken, History, LeaseName, PastTerm};

/// Shows the last terms of a lease, the latest first.
pub(crate) async fn history(
    arguments: &HistoryArguments,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let name = LeaseName::new(&arguments.name)?;
    let store = super::open(store).await?;
    let terms = answer(History::new(store.clone(), name.clone()).read()).await?;
    let present = answer(store.get(&name)).await?;
    let present = present
        .filter(|lease| lease.occupancy() == Occupancy::Held)
        .map(|lease| lease.token);
    output::print(&match form {
        Form::Text if terms.is_empty() => format!("lease \"{name}\": no term was noted\n"),
        Form::Text => table(&terms, present),
        Form::Json => {
            let terms: Vec<Value> = terms.iter().map(|term| in_json_of(term, present)).collect();
            format!("{}\n", json!({"name": name.as_str(), "terms": terms}))
        }
    })?;
    Ok(0)
}

fn table(terms: &[PastTerm], present: Option<FencingToken>) -> String {
    let mut lines = vec![["TOKEN", "HOLDER", "BEGAN", "LED FOR", "END"].map(str::to_owned)];
    lines.extend(terms.iter().map(|term| {
        let (led, end) = match &term.end {
            Some((led, end)) => (short(*led), clean(end)),
            None if present == Some(term.token) => (short(term.began_ago), "leads".to_owned()),
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

fn in_json_of(term: &PastTerm, present: Option<FencingToken>) -> Value {
    json!({
        "token": term.token.number(),
        "holder": term.holder.as_str(),
        "began_ago_ms": in_json(term.began_ago),
        "led_for_ms": term.end.as_ref().map(|(led, _)| in_json(*led)),
        "end": term.end.as_ref().map(|(_, end)| end.as_str()),
        "leads": present == Some(term.token),
    })
}
