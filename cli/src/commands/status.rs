//! `tenure status`.

use super::fence::{self, FencePlace, Making};
use super::look::{Chosen, code_of};
use crate::arguments::{FencePlaceArguments, Form, Selection, StatusArguments};
use crate::exit::Failure;
use crate::output::{self, Rows, json_of, json_of_mark, table_of, table_of_marks};
use clap::ArgMatches;
use serde_json::{Value, json};
use tenure::Mark;

/// Shows the leases once, and the marks of their fences.
pub(crate) async fn status(
    arguments: &StatusArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let selection = arguments.select.selection(matches)?;
    let every = matches!(&selection, Selection::Prefix { prefix, .. } if prefix.is_empty());
    let chosen = Chosen::new(selection)?;
    let leases = async {
        let opened = super::open(store).await?;
        let rows = chosen.read(&*opened).await?;
        Ok::<_, Failure>((opened, rows))
    };
    // At once: what remains of a lease is older with everything that is read after it.
    let (marks, leases) = tokio::join!(marks(&arguments.place, store), leases);
    let ((opened, rows), mut marks) = (leases?, marks?);
    marks.retain(|mark| every || is_of(mark, &rows));
    output::print(&match form {
        Form::Text if marks.is_empty() => table_of(&rows),
        Form::Text => format!("{}\n{}", table_of(&rows), table_of_marks(&marks)),
        Form::Json => {
            let leases: Vec<Value> = rows.iter().map(json_of).collect();
            let fences: Vec<Value> = marks.iter().map(json_of_mark).collect();
            let location = opened.traits().location;
            format!(
                "{}\n",
                json!({"store": location, "leases": leases, "fences": fences})
            )
        }
    })?;
    Ok(code_of(&rows))
}

/// The marks at the place that was given. Beside the leases there need not be any, nor the right to look.
async fn marks(place: &FencePlaceArguments, store: Option<&str>) -> Result<Vec<Mark>, Failure> {
    let place = FencePlace::find(place, store)?;
    let read = async {
        let Some(opened) = place.open(Making::Never).await? else {
            return Ok(Vec::new());
        };
        fence::all(opened.fence()).await
    };
    match (read.await, place) {
        (Err(_), FencePlace::BesideLeases(_)) => Ok(Vec::new()),
        (read, _) => read,
    }
}

fn is_of(mark: &Mark, rows: &Rows) -> bool {
    mark.lease
        .as_ref()
        .is_some_and(|lease| rows.iter().any(|row| row.key() == lease.as_str()))
}
