use super::{bad, named, unknown, warning};
use crate::fault::Deed;
use crate::schema::{RISING, TABLES};
use crate::site::{Site, Typed};
use tenure_core::Finding;
use tokio_postgres::types::Type;

const SUBJECT: &str = "tables";

/// What there is about the tables of the schema that no set-up makes, each by what it is and its name: of
/// `$1` the tables `$2`, the functions `$3` of their triggers, and the trigger `$4` that acts on whoever
/// writes, where its function is there.
const STRANGE: &str = "WITH own AS (SELECT c.oid, c.relname, c.relkind, n.oid AS namespace, n.nspname FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = ANY ($2)) \
     SELECT 'kind', format('%I.%I', nspname, relname) FROM own WHERE relkind <> 'r' \
     UNION ALL SELECT 'heir', format('%s of %I.%I', inhrelid::regclass, nspname, relname) FROM own JOIN pg_inherits ON inhparent = oid \
     UNION ALL SELECT 'other', format('trigger %I of %I.%I', tgname, nspname, relname) FROM own JOIN pg_trigger ON tgrelid = own.oid \
     JOIN pg_proc p ON p.oid = tgfoid WHERE NOT tgisinternal AND tgenabled <> 'D' \
     AND NOT (pronamespace = namespace AND proname = ANY ($3)) \
     UNION ALL SELECT 'other', format('rule %I of %I.%I', rulename, nspname, relname) FROM own JOIN pg_rewrite r ON ev_class = own.oid \
     WHERE rulename <> '_RETURN' \
     UNION ALL SELECT DISTINCT 'published', quote_ident(pubname) FROM own JOIN pg_publication_tables p ON schemaname = nspname \
     AND tablename = relname \
     UNION ALL SELECT 'sinking', format('%I.%I', nspname, relname) FROM own WHERE relname = 'fences' AND relkind = 'r' \
     AND EXISTS (SELECT FROM pg_proc WHERE pronamespace = namespace AND proname = ($3)[2]) \
     AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = own.oid AND tgname = $4 AND tgenabled = 'A') \
     ORDER BY 1, 2";

impl Site {
    /// Whether the tables are as they were made: what others have added to them may change what is written,
    /// or write by itself.
    pub(super) async fn examine_tables(&self) -> Vec<Finding> {
        let schema = &self.dial.url.schema;
        let [rising, refusing] = RISING;
        let functions = ["tell_of_removal", refusing];
        let parameters: [Typed<'_>; 4] = [
            (schema, Type::TEXT),
            (&TABLES.as_slice(), Type::TEXT_ARRAY),
            (&functions.as_slice(), Type::TEXT_ARRAY),
            (&rising, Type::TEXT),
        ];
        let rows = match self.ask(Deed::Read, "its tables", STRANGE, &parameters).await {
            Ok(rows) => rows,
            Err(error) => return vec![unknown(SUBJECT, &error)],
        };
        let found: Vec<(String, String)> = rows
            .iter()
            .filter_map(|row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?)))
            .collect();
        let findings = [
            ("kind", kind as fn(&str) -> Finding),
            ("heir", heir),
            ("other", other),
            ("published", published),
            ("sinking", sinking),
        ];
        let findings = findings.into_iter().filter_map(|(what, told)| {
            let names = found.iter().filter(|(found, _)| found == what);
            let names: Vec<String> = names.map(|(_, name)| name.clone()).collect();
            Some(told(&named(&names)?))
        });
        findings.collect()
    }
}

fn kind(tables: &str) -> Finding {
    bad(
        SUBJECT,
        format!("no plain tables, as which alone they were tried: {tables}"),
        "have `tenure store init` make them, in a schema of their own",
    )
}

fn heir(tables: &str) -> Finding {
    bad(
        SUBJECT,
        format!("their records are looked for in other tables, too, and may be there twice: {tables}"),
        "ALTER TABLE … NO INHERIT",
    )
}

fn other(others: &str) -> Finding {
    warning(
        SUBJECT,
        format!(
            "not Tenure's, and called by every write, which they may change, swallow or refuse: {others}"
        ),
        "DROP TRIGGER, or DROP RULE, unless it is known to do none of it",
    )
}

fn published(publications: &str) -> Finding {
    warning(
        SUBJECT,
        format!(
            "published by {publications}: a PostgreSQL that subscribes to it has them written by this one, and must give away no leases \
             of its own"
        ),
        "keep them out: ALTER PUBLICATION … DROP TABLE, or name the tables, or schemas, in place of FOR ALL TABLES; who only reads the \
         changes does no harm",
    )
}

fn sinking(_marks: &str) -> Finding {
    warning(
        SUBJECT,
        "a mark can be lowered by who writes to its table by himself, or by what applies a subscription"
            .to_owned(),
        "run `tenure store init` of the latest Tenure that uses the schema, as its owner",
    )
}
