//! `tenure status`.

use super::look::{Chosen, code_of};
use crate::arguments::{Form, SelectArguments};
use crate::exit::Failure;
use crate::output::{self, json_of, table_of};
use clap::ArgMatches;
use serde_json::{Value, json};

/// Shows the leases once.
pub(crate) async fn status(
    arguments: &SelectArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let chosen = Chosen::new(arguments.selection(matches).unwrap_or_else(|error| error.exit()))?;
    let store = super::open(store).await?;
    let rows = chosen.read(&*store).await?;
    output::print(&match form {
        Form::Text => table_of(&rows),
        Form::Json => {
            let leases: Vec<Value> = rows.iter().map(json_of).collect();
            format!(
                "{}\n",
                json!({"store": store.traits().location, "leases": leases})
            )
        }
    })?;
    Ok(code_of(&rows))
}
