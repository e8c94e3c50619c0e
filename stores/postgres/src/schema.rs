//! What the store needs in the database: tables and functions in a schema of their own, as text.

use tenure_core::{FencingToken, Ttl};

/// The set-up that this store needs; another is refused.
pub(crate) const VERSION: i32 = 1;

/// Schema, where the URL names none.
pub(crate) const SCHEMA: &str = "tenure";

/// Longest name of a schema, in bytes: with the ending of the channel's name it stays within the server's 63.
pub(crate) const SCHEMA_BYTES_MAX: usize = 48;

/// The state of SQL by which a set-up leaves a later one as it is.
pub(crate) const LATER: &str = "TN004";

/// Serialises set-ups: two at once would both find a table missing.
const SETUP_LOCK: i64 = 0x7465_6e75_7265;

/// The setting by which a fence tells the functions that raise marks that its leases are in another store,
/// and what it says then. For its own transaction alone, and nothing to a function of a set-up from before
/// it.
pub(crate) const LEASES: &str = "tenure.lease_store";
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// Tells the turnstiles of fences from what else locks by a number in the database.
const TURNSTILES: i64 = 0x7475_726e;

/// Where the functions and the set-up look for what they name without a schema. Whoever may create in a
/// schema of the caller's search path could otherwise put an operator there that fits better than the
/// server's own (`bigint * interval` is none of them), and so decide who holds a lease.
pub(crate) const SEARCH_PATH: &str = "pg_catalog, pg_temp";

/// Makes and replaces everything, in the order in which it depends on each other.
const PARTS: [&str; 15] = [
    include_str!("sql/later.sql"),
    include_str!("sql/rules.sql"),
    include_str!("sql/leases.sql"),
    include_str!("sql/lock.sql"),
    include_str!("sql/acquire.sql"),
    include_str!("sql/take.sql"),
    include_str!("sql/renew.sql"),
    include_str!("sql/release.sql"),
    include_str!("sql/give_back.sql"),
    include_str!("sql/ask.sql"),
    include_str!("sql/announce.sql"),
    include_str!("sql/fences.sql"),
    include_str!("sql/rising.sql"),
    include_str!("sql/guard.sql"),
    include_str!("sql/version.sql"),
];

/// What a function shows of a record, by name and type.
const RECORD_COLUMNS: &str = "name text, owner text, incarnation text, token bigint, attempt bigint, terms bigint, ttl_ms bigint, \
     released boolean, wish boolean, extended boolean, remaining_us bigint, held_us bigint, renewed_us bigint, note text, \
     previous_owner text, previous_token bigint, previous_end text, vacant_us bigint";

/// The same, of a record `lease` at the moment `moment`: plain types, whatever rules their columns have. Also
/// read outside the functions, by whatever search path the session has: so the operators say whose they are.
/// Of a note, which is as long as somebody else likes, no more than the longest of Tenure's own, whose 1,024
/// characters are two each in the table.
pub(crate) const RECORD: &str = "lease.name::text, lease.owner::text, lease.incarnation::text, lease.token::bigint, \
     lease.attempt::bigint, lease.terms::bigint, lease.ttl_ms::bigint, \
     lease.released_at IS NOT NULL, lease.step_down_asked_at IS NOT NULL, lease.renewed_at IS NOT NULL, \
     (extract(epoch FROM lease.expires_at OPERATOR(pg_catalog.-) moment) OPERATOR(pg_catalog.*) 1000000)::bigint, \
     (extract(epoch FROM moment OPERATOR(pg_catalog.-) lease.acquired_at) OPERATOR(pg_catalog.*) 1000000)::bigint, \
     (extract(epoch FROM moment OPERATOR(pg_catalog.-) coalesce(lease.renewed_at, lease.acquired_at)) \
     OPERATOR(pg_catalog.*) 1000000)::bigint, pg_catalog.left(lease.note, 2048), \
     lease.previous_owner::text, lease.previous_token::bigint, lease.previous_end::text, \
     (extract(epoch FROM lease.acquired_at OPERATOR(pg_catalog.-) lease.previous_at) OPERATOR(pg_catalog.*) 1000000)::bigint";

/// What every write of a term begins with. It waits for no row without end: a wait for a row is two, each
/// with a bound of its own, first for whoever waits for it already, then for whoever has it.
const BOUNDED: &str = "set_config('lock_timeout', '1250', true)";

/// The same of who takes a lease: both waits together a twentieth of the ttl. Who asks gives a request a
/// tenth, and a lease that was taken after that would be nobody's.
const BOUNDED_BY_TTL: &str =
    "set_config('lock_timeout', greatest(1, least(1250, asked_ttl_ms / 40))::text, true)";

/// And it is on disk when it is confirmed (and with the synchronous standbys, where there are any), whatever
/// the server's default is.
const ON_DISK: &str = "set_config('synchronous_commit', \
     CASE WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)";

/// What decides without a lock begins with this: only a lock is refused by a standby, which may lag, or by a
/// server that was demoted.
const PRIMARY_ONLY: &str = "IF current_setting('transaction_read_only') = 'on' THEN\n        \
     RAISE read_only_sql_transaction USING MESSAGE = 'the server takes no writes';\n    END IF;";

/// The tables of the schema.
pub(crate) const TABLES: [&str; 3] = ["leases", "fences", "refusals"];

/// The trigger by which a mark only rises, whoever writes to the table, and its function. A set-up from
/// before it has neither.
pub(crate) const RISING: [&str; 2] = ["mark_only_rises", "refuse_lower_mark"];

/// The functions that decide of one lease and answer in one value, by name and by the types of their
/// arguments. A set-up from before them has `acquire` and `release`, which do the same.
pub(crate) const QUICK: [(&str, &str); 2] = [
    ("take", "text, text, text, bigint, bigint, text"),
    ("give_back", "text, text, bigint, bigint"),
];

/// The statements that make the schema, or bring an older one up to date; the same for a person and for the
/// store.
///
/// `schema` is a name that was [checked](crate::url).
pub(crate) fn statements(schema: &str) -> String {
    let mut text = format!(
        "-- Tenure's leases and fences, set-up {VERSION}. To be run by the owner of the schema, as often as one likes.\n\
         BEGIN;\nSET LOCAL lock_timeout = '25s'; -- for another set-up\nSELECT pg_advisory_xact_lock({SETUP_LOCK});\n\
         SET LOCAL lock_timeout = '2s'; -- for who uses the tables: every request waits behind this\nSET LOCAL client_min_messages = warning;\n\
         SET LOCAL search_path = {SEARCH_PATH};\n\
         -- Only where it is missing: who may make no schema is refused one that is there.\n\
         DO $schema$ BEGIN IF to_regnamespace({}) IS NULL THEN CREATE SCHEMA IF NOT EXISTS {}; END IF; END $schema$;\n",
        literal(&quoted(schema)),
        quoted(schema)
    );
    for part in PARTS {
        text.push('\n');
        text.push_str(&filled(part, schema));
    }
    text.push_str("COMMIT;\n");
    text
}

/// The functions of the schema by name, each with its body as the server keeps it. Not the one that tells the
/// version: that is asked by every store that connects.
pub(crate) fn functions(schema: &str) -> impl Iterator<Item = (&'static str, String)> {
    let made = PARTS.iter().flat_map(|part| part.split(FUNCTION).skip(1));
    made.filter_map(move |text| {
        let (name, rest) = text.split_once('(')?;
        let body = rest.split("$function$").nth(1)?;
        Some((name, filled(body, schema)))
    })
}

/// What each function begins with.
const FUNCTION: &str = "CREATE OR REPLACE FUNCTION {schema}.";

fn filled(part: &str, schema: &str) -> String {
    let version = VERSION.to_string();
    let optional = |column: &str, bytes_max| format!("{column} IS NULL OR {}", fits(column, bytes_max));
    [
        (
            "{version_function}",
            literal(&format!("{}.version()", quoted(schema))),
        ),
        ("{schema}", quoted(schema)),
        ("{channel}", literal(&channel(schema))),
        ("{lease_name_fits}", fits("VALUE", 255)),
        ("{candidate_id_fits}", fits("VALUE", 253)),
        ("{resource_fits}", fits("resource", 255)),
        ("{lease_fits}", optional("lease", 255)),
        ("{record_columns}", RECORD_COLUMNS.to_owned()),
        ("{record}", RECORD.to_owned()),
        (
            "{record_of_asked}",
            RECORD.replacen("lease.name::text", "asked.name::text", 1),
        ),
        (
            "{record_texts}",
            texts(RECORD, |expression| expression.to_owned()),
        ),
        ("{found_texts}", texts(RECORD_COLUMNS, found)),
        ("{durably}", format!("PERFORM {BOUNDED}, {ON_DISK};")),
        ("{to_take}", format!("{BOUNDED_BY_TTL} || {ON_DISK}")),
        ("{primary_only}", PRIMARY_ONLY.to_owned()),
        ("{turnstile}", turnstile(schema, "asked_resource")),
        ("{entered}", ENTERED.to_owned()),
        (
            "{leases_here}",
            format!("current_setting('{LEASES}', true) IS DISTINCT FROM '{ELSEWHERE}'"),
        ),
        (
            "{show}",
            showing("asked_resource", "asked_token || ' ' || asked_lease"),
        ),
        (
            "{milliseconds}",
            "floor(extract(epoch FROM moment) * 1000)::bigint".to_owned(),
        ),
        ("{understood}", understood()),
        ("{lasts_no_longer}", lasts_no_longer()),
        ("{token_max}", FencingToken::MAX.to_string()),
        ("{version}", version),
        ("{later}", LATER.to_owned()),
    ]
    .iter()
    .fold(part.to_owned(), |text, (hole, filling)| {
        text.replace(hole, filling)
    })
}

/// Whether the record `lease` is one to its holder, beyond what its columns' types say: what has no place in
/// the record's own ([`decode`](crate::record::decode)) would keep everybody out for good.
///
/// Whoever holds it puts its expiry right, and all others change nothing of what is held, but for a wish,
/// which [`lasts_no_longer`] is for.
fn understood() -> String {
    let token = FencingToken::MAX;
    format!("(lease.token <= {token} AND coalesce(lease.previous_token, 1) <= {token})")
}

/// Whether the record `lease`, which is held, lasts no longer than one can, at the moment `moment`: otherwise
/// it is none to others.
fn lasts_no_longer() -> String {
    let beyond_ms = Ttl::BEYOND_MAX.as_millis();
    format!("lease.expires_at <= moment + (lease.ttl_ms + {beyond_ms}) * interval '1 millisecond'")
}

/// The elements of a list as texts, in their order.
fn texts(list: &str, element: impl Fn(&str) -> String) -> String {
    let mut depth = 0_u32;
    let elements = list.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    });
    let texts = elements.map(|text| format!("({})::text", element(text.trim())));
    texts.collect::<Vec<_>>().join(", ")
}

/// A column of what a function has found, of its name and type.
fn found(column: &str) -> String {
    let name = column.split(' ').next().unwrap_or(column);
    format!("found.{name}")
}

/// The number by which the lock manager knows the turnstile of a resource. Locks of rows are not fair: who
/// locks shared passes by whoever waits to lock alone, so that writers that overlap would keep a claim
/// waiting for ever. The lock manager queues. Two resources that share a number wait for each other's claims,
/// and no more.
///
/// Whoever enters, claims or bumps locks this first and the row after it, until the transaction ends.
pub(crate) fn turnstile(schema: &str, resource: &str) -> String {
    let prefix = literal(&format!("{schema}/"));
    format!("pg_catalog.hashtextextended({prefix} OPERATOR(pg_catalog.||) {resource}, {TURNSTILES}::bigint)")
}

/// The terms that a transaction has entered with, by resource, as an object in JSON: a setting for each
/// resource would stay in its session.
const ENTERED: &str = "coalesce(nullif(pg_catalog.current_setting('tenure.entered', true), ''::text), '{}'::text)::pg_catalog.jsonb";

/// Shows the term of a transaction, as `<token> <lease>`: of this resource, and as the one it has entered
/// with last. For the triggers of guarded tables, until the transaction ends.
pub(crate) fn showing(resource: &str, term: &str) -> String {
    format!(
        "pg_catalog.set_config('tenure.term', {term}, true), pg_catalog.set_config('tenure.entered', ({ENTERED} \
         OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object({resource}, {term}))::text, true)"
    )
}

/// The channel on which changes are told.
pub(crate) fn channel(schema: &str) -> String {
    format!("{schema}.leases")
}

/// The rules of `LeaseName` and its like, for a column. Its backslashes mean the same to the server's texts,
/// where a session has them mean something, as to its regular expressions.
fn fits(column: &str, bytes_max: u32) -> String {
    const WHITE: &str =
        "\\u0009-\\u000d\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
    format!(
        "octet_length({column}) BETWEEN 1 AND {bytes_max} AND {column} !~ '[\\u0001-\\u001f\\u007f-\\u009f]' \
         AND {column} !~ '^[{WHITE}]|[{WHITE}]$' AND {column} !~ '(^|/)[.]{{0,2}}(/|$)'"
    )
}

/// A name of PostgreSQL's, whatever it holds.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text of PostgreSQL's, whatever it holds, and whatever a session takes a backslash for.
pub(crate) fn literal(text: &str) -> String {
    let escapes = if text.contains('\\') { "E" } else { "" };
    format!("{escapes}'{}'", text.replace('\'', "''").replace('\\', "\\\\"))
}

#[cfg(test)]
mod tests {
    use super::{FUNCTION, PARTS, QUICK, RECORD, RECORD_COLUMNS, RISING, SEARCH_PATH, functions, texts};
    use crate::record::COLUMNS;

    #[test]
    fn every_function_but_the_version_is_compared() {
        let made = PARTS.iter().map(|part| part.matches(FUNCTION).count());
        assert_eq!(functions("tenure").count() + 1, made.sum::<usize>());
        assert!(functions("tenure").all(|(_, body)| body.contains("BEGIN") && body.ends_with("END\n")));
    }

    #[test]
    fn every_function_but_the_version_has_its_own_search_path() {
        let kept = format!("SET search_path = {SEARCH_PATH} AS ");
        for part in PARTS {
            let functions = part
                .split(FUNCTION)
                .skip(1)
                .filter(|text| text.contains("$function$"));
            for function in functions {
                let head = function.split("$function$").next();
                assert!(head.is_some_and(|head| head.ends_with(&kept)), "{head:?}");
            }
        }
    }

    #[test]
    fn a_record_has_as_many_texts_as_columns() {
        for list in [RECORD, RECORD_COLUMNS] {
            assert_eq!(texts(list, str::to_owned).matches(")::text").count(), COLUMNS);
        }
    }

    #[test]
    fn every_function_that_is_named_is_made() {
        for name in [QUICK[0].0, QUICK[1].0, RISING[1]] {
            assert!(functions("tenure").any(|(made, _)| made == name), "{name}");
        }
    }
}
