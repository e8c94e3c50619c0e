//! `tenure status`.

use super::fence::{self, FencePlace, Making};
use super::look::{Chosen, code_of};
use crate::arguments::{FencePlaceArguments, Form, Selection, StatusArguments};
use crate::exit::{Code, Failure};
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
    let ((opened, rows), mut marks) = (leases?, marks);
    if let Ok(marks) = &mut marks {
        marks.retain(|mark| every || is_of(mark, &rows));
    }
    // What was said of the fence is wrong, and nothing was looked at there.
    let marks = match marks {
        Err(failure) if failure.code == Code::Configuration.number() => return Err(failure),
        marks => marks,
    };
    output::print(&match form {
        Form::Text => match &marks {
            Ok(marks) if !marks.is_empty() => format!("{}\n{}", table_of(&rows), table_of_marks(marks)),
            Ok(_) | Err(_) => table_of(&rows),
        },
        Form::Json => {
            let leases: Vec<Value> = rows.iter().map(json_of).collect();
            // Not known is not none.
            let fences = marks.as_ref().ok();
            let fences = fences.map(|marks| marks.iter().map(json_of_mark).collect::<Vec<Value>>());
            let location = opened.traits().location;
            format!(
                "{}\n",
                json!({"store": location, "leases": leases, "fences": fences})
            )
        }
    })?;
    marks.map(|_shown| code_of(&rows))
}

/// The marks at the place that was given. Beside the leases there need not be any, nor the right to look, nor a fence for that
/// kind of store; what is damaged there is told all the same.
async fn marks(place: &FencePlaceArguments, store: Option<&str>) -> Result<Vec<Mark>, Failure> {
    let place = FencePlace::find(place, store)?;
    let read = async {
        let Some(opened) = place.open(Making::OnlyLooks).await? else {
            return Ok(Vec::new());
        };
        fence::all(opened.fence()).await
    };
    match (read.await, place) {
        (Err(failure), FencePlace::BesideLeases(_))
            if [Code::Forbidden, Code::Configuration]
                .map(Code::number)
                .contains(&failure.code) =>
        {
            Ok(Vec::new())
        }
        (read, _) => read,
    }
}

fn is_of(mark: &Mark, rows: &Rows) -> bool {
    mark.lease
        .as_ref()
        .is_some_and(|lease| rows.iter().any(|row| row.key() == lease.as_str()))
}
