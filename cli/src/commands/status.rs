//! `tenure status`.

use super::fence::{self, FencePlace, Making, code_of_marks};
use super::look::{Chosen, Viewed, code_of};
use crate::arguments::{FencePlaceArguments, Form, Selection, StatusArguments};
use crate::exit::{Code, Failure};
use crate::output::{self, Row, Rows, json_of, json_of_listed, table_of, table_of_marks};
use clap::ArgMatches;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::IsTerminal;
use tenure::ListedMark;

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
        let viewed = Viewed::open(store).await?;
        let rows = chosen.read_in(&viewed).await?;
        Ok::<_, Failure>((viewed, rows))
    };
    // At once: what remains of a lease is older with everything that is read after it.
    let (marks, leases) = tokio::join!(marks(&arguments.place, store), leases);
    let ((viewed, rows), mut marks) = (leases?, marks);
    if let Ok(marks) = &mut marks
        && !every
    {
        keep_those_of(&rows, marks);
    }
    // What was said of the fence is wrong, and nothing was looked at there.
    let marks = match marks {
        Err(failure) if failure.code == Code::Configuration.number() => return Err(failure),
        marks => marks,
    };
    output::print(&match form {
        Form::Text => {
            let leases = match rows.is_empty() {
                true => format!("no leases in {}\n", viewed.shown()),
                false => head(&viewed) + &table_of(&rows),
            };
            match &marks {
                Ok(marks) if !marks.is_empty() => format!("{leases}\n{}", table_of_marks(marks)),
                Ok(_) | Err(_) => leases,
            }
        }
        Form::Json => {
            let leases: Vec<Value> = rows.iter().map(json_of).collect();
            // Not known is not none.
            let fences = marks.as_ref().ok();
            let fences = fences.map(|marks| marks.iter().map(json_of_listed).collect::<Vec<Value>>());
            format!(
                "{}\n",
                json!({"store": viewed.in_json(), "leases": leases, "fences": fences})
            )
        }
    })?;
    marks.map(|marks| code_of(&rows).max(code_of_marks(&marks)))
}

/// Which store it is, at a terminal: a script counts on the table's own heading.
fn head(viewed: &Viewed) -> String {
    match std::io::stdout().is_terminal() {
        true => format!("{}\n\n", viewed.shown()),
        false => String::new(),
    }
}

/// The marks at the place that was given. Beside the leases there need not be any, nor the right to look, nor
/// a fence for that kind of store; what is damaged there is told all the same.
async fn marks(place: &FencePlaceArguments, store: Option<&str>) -> Result<Vec<ListedMark>, Failure> {
    let place = FencePlace::find(place, store)?;
    let read = async {
        let Some(opened) = place.open(place.leases(store), Making::OnlyLooks).await? else {
            return Ok(Vec::new());
        };
        fence::all(&*opened).await
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

/// Leaves the marks that belong to these leases. Of one that cannot be understood nobody knows: it is hidden
/// from nobody.
fn keep_those_of(rows: &Rows, marks: &mut Vec<ListedMark>) {
    let leases: HashSet<&str> = rows.iter().map(Row::key).collect();
    marks.retain(|listed| {
        let Some(mark) = listed.understood() else {
            return true;
        };
        let lease = mark.lease.as_ref();
        lease.is_some_and(|lease| leases.contains(lease.as_str()))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tenure::{FencingToken, LeaseName, Mark, ResourceName};

    /// Comparing each mark with each lease takes a thousand times as long as making their lines.
    #[test]
    fn a_look_at_many_marks_of_many_leases_takes_not_much_longer_than_their_lines() {
        let name = |number: u32| LeaseName::new(format!("job-{number:06}")).unwrap();
        let rows: Rows = (0..50_000).map(|number| Row::Never(name(number))).collect();
        let mark = |number: u32| {
            ListedMark::Mark(Mark {
                resource: ResourceName::new(format!("ledger-{number:06}")).unwrap(),
                lease: Some(name(number)),
                token: FencingToken::new(1).unwrap(),
                bumped: false,
                refused: 0,
                last_refused: None,
            })
        };
        // Half of them are of other leases.
        let mut marks: Vec<ListedMark> = (25_000..75_000).map(mark).collect();
        let began = Instant::now();
        let table = table_of_marks(&marks);
        let making = began.elapsed();
        assert_eq!(table.lines().count(), 50_001);
        let began = Instant::now();
        keep_those_of(&rows, &mut marks);
        let looking = began.elapsed();
        assert_eq!(marks.len(), 25_000);
        assert!(
            looking < making * 100,
            "{looking:?}, and {making:?} for the lines"
        );
    }
}
