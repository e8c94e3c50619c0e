use super::{bad, good, unknown, warning};
use crate::fault::Deed;
use crate::schema::{QUICK, RISING, SEARCH_PATH, VERSION, functions, literal};
use crate::site::{Site, Typed};
use tenure_core::{Finding, StoreError};
use tokio_postgres::types::Type;

/// The functions of a schema as the server keeps them, each with its own settings; everybody may read it.
const FUNCTIONS: &str = "SELECT p.proname::text, p.prosrc, coalesce(p.proconfig, '{}') FROM pg_catalog.pg_proc p \
     JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1";

/// What it comes to without a function that nobody must have.
fn works_without(function: &str) -> Option<&'static str> {
    if QUICK.iter().any(|(quick, _)| *quick == function) {
        return Some("leases are taken and given back by the functions from before them, which are slower");
    }
    (function == RISING[1]).then_some("nothing keeps who writes to the table by himself from lowering a mark")
}

impl Site {
    /// Whether the functions, and the columns that came later, are those that this program would make: a
    /// set-up of the same version may be older, and lack what was mended since.
    pub(super) async fn examine_setup(&self) -> Finding {
        const SUBJECT: &str = "set-up";
        let schema = &self.dial.url.schema;
        let parameters: [Typed<'_>; 1] = [(schema, Type::TEXT)];
        let rows = match self
            .ask(Deed::Read, "its functions", FUNCTIONS, &parameters)
            .await
        {
            Ok(rows) => rows,
            Err(error) => return unknown(SUBJECT, &error),
        };
        // One that has not these settings is as one with another body: an operator of somebody else's may
        // decide in it. The server has written them down in quotes where it was set to quote each name
        // (`quote_all_identifiers`).
        let quoted = SEARCH_PATH
            .split(", ")
            .map(crate::schema::quoted)
            .collect::<Vec<_>>();
        let settings = [SEARCH_PATH, &quoted.join(", ")].map(|path| [format!("search_path={path}")]);
        let found: Vec<(String, Option<String>)> = rows
            .iter()
            .filter_map(|row| {
                let (body, own): (String, Vec<String>) = (row.try_get(1).ok()?, row.try_get(2).ok()?);
                Some((
                    row.try_get(0).ok()?,
                    settings.iter().any(|settings| own == *settings).then_some(body),
                ))
            })
            .collect();
        let (mut missing, mut other) = (Vec::new(), Vec::new());
        for (name, body) in functions(schema) {
            // Of several that take other arguments, the others are of earlier set-ups.
            let bodies = found.iter().filter(|(found, _)| found == name);
            let bodies: Vec<Option<&str>> = bodies.map(|(_, body)| body.as_deref()).collect();
            if bodies.is_empty() {
                missing.push(name);
            } else if !bodies.contains(&Some(body.as_str())) {
                other.push(name);
            }
        }
        match self.has_later_column().await {
            Ok(true) => {}
            Ok(false) => missing.push("column bumped_token of fences"),
            Err(error) => return unknown(SUBJECT, &error),
        }
        let repair = "run `tenure store init` of the latest Tenure that uses the schema, as its owner: what was mended since the \
                      set-up is not there yet";
        let without: Option<Vec<&str>> = missing.iter().map(|name| works_without(name)).collect();
        let (missing, other) = (missing.join(", "), other.join(", "));
        let others = format!("not as this version of Tenure makes them in schema {schema}: {other}");
        let lacking = format!("missing in schema {schema}: {missing}");
        match (missing.is_empty(), other.is_empty()) {
            (true, true) => {}
            (true, false) => return warning(SUBJECT, others, repair),
            // An earlier set-up, which needs no function that was not made yet.
            (false, false) => return warning(SUBJECT, format!("{others}; {lacking}"), repair),
            (false, true) => {
                return match without {
                    Some(mut without) => {
                        without.dedup();
                        warning(SUBJECT, format!("{lacking}; {}", without.join("; ")), repair)
                    }
                    None => bad(SUBJECT, lacking, "run `tenure store init` as the schema's owner"),
                };
            }
        }
        good(
            SUBJECT,
            format!("the functions of set-up {VERSION} are those of this version of Tenure"),
        )
    }

    /// Whether the table of the fences has the column that came later.
    async fn has_later_column(&self) -> Result<bool, StoreError> {
        let asked = format!(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass({}) \
             AND attname = 'bumped_token' AND NOT attisdropped)",
            literal(&format!("{}.fences", self.schema()))
        );
        let found = self.ask(Deed::Read, "its columns", &asked, &[]).await?;
        Ok(found.first().is_some_and(|row| row.try_get(0).unwrap_or(false)))
    }
}
