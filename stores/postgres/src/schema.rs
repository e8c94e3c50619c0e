//! What the store needs in the database: tables and functions in a schema of their own, as text.

/// The set-up that this store needs; another is refused.
pub(crate) const VERSION: i32 = 1;

/// Schema, where the URL names none.
pub(crate) const SCHEMA: &str = "tenure";

/// Longest name of a schema, in bytes: with the ending of the channel's name it stays within the server's 63.
pub(crate) const SCHEMA_BYTES_MAX: usize = 48;

/// Serialises set-ups: two at once would both find a table missing.
const SETUP_LOCK: i64 = 0x7465_6e75_7265;

/// Tells the turnstiles of fences from what else locks by a number in the database.
const TURNSTILES: i64 = 0x7475_726e;

/// Makes and replaces everything, in the order in which it depends on each other.
const PARTS: [&str; 11] = [
    include_str!("sql/rules.sql"),
    include_str!("sql/leases.sql"),
    include_str!("sql/lock.sql"),
    include_str!("sql/acquire.sql"),
    include_str!("sql/renew.sql"),
    include_str!("sql/release.sql"),
    include_str!("sql/ask.sql"),
    include_str!("sql/announce.sql"),
    include_str!("sql/fences.sql"),
    include_str!("sql/guard.sql"),
    include_str!("sql/version.sql"),
];

/// What a function shows of a record, by name and type.
const RECORD_COLUMNS: &str = "name text, owner text, incarnation text, token bigint, attempt bigint, terms bigint, ttl_ms bigint, \
     released boolean, wish boolean, extended boolean, remaining_us bigint, held_us bigint, renewed_us bigint, note text, \
     previous_owner text, previous_token bigint, previous_end text, vacant_us bigint";

/// The same, of a record `lease` at the moment `moment`: plain types, whatever rules their columns have.
pub(crate) const RECORD: &str = "lease.name::text, lease.owner::text, lease.incarnation::text, lease.token::bigint, \
     lease.attempt::bigint, lease.terms::bigint, lease.ttl_ms::bigint, \
     lease.released_at IS NOT NULL, lease.step_down_asked_at IS NOT NULL, lease.renewed_at IS NOT NULL, \
     (extract(epoch FROM lease.expires_at - moment) * 1000000)::bigint, \
     (extract(epoch FROM moment - lease.acquired_at) * 1000000)::bigint, \
     (extract(epoch FROM moment - coalesce(lease.renewed_at, lease.acquired_at)) * 1000000)::bigint, lease.note, \
     lease.previous_owner::text, lease.previous_token::bigint, lease.previous_end::text, \
     (extract(epoch FROM lease.acquired_at - lease.previous_at) * 1000000)::bigint";

/// What every write of a term begins with: it is on disk when it is confirmed (and with the synchronous standbys, where
/// there are any), whatever the server's default is; and it waits for no row without end.
const DURABLY: &str = "PERFORM set_config('lock_timeout', '2500', true), set_config('synchronous_commit', \
     CASE WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);";

/// The statements that make the schema, or bring an older one up to date; the same for a person and for the store.
///
/// `schema` is a name that was [checked](crate::url).
pub(crate) fn statements(schema: &str) -> String {
    let mut text = format!(
        "-- Tenure's leases and fences, set-up {VERSION}. To be run by the owner of the schema, as often as one likes.\n\
         BEGIN;\nSELECT pg_advisory_xact_lock({SETUP_LOCK});\nSET LOCAL client_min_messages = warning;\n\
         CREATE SCHEMA IF NOT EXISTS {};\n",
        quoted(schema)
    );
    for part in PARTS {
        text.push('\n');
        text.push_str(&filled(part, schema));
    }
    text.push_str("COMMIT;\n");
    text
}

fn filled(part: &str, schema: &str) -> String {
    let version = VERSION.to_string();
    let optional = |column: &str, bytes_max| format!("{column} IS NULL OR {}", fits(column, bytes_max));
    [
        ("{schema}", quoted(schema)),
        ("{channel}", literal(&channel(schema))),
        ("{lease_name_fits}", fits("VALUE", 255)),
        ("{candidate_id_fits}", fits("VALUE", 253)),
        ("{resource_fits}", fits("resource", 255)),
        ("{lease_fits}", optional("lease", 255)),
        ("{record_columns}", RECORD_COLUMNS.to_owned()),
        ("{record}", RECORD.to_owned()),
        ("{durably}", DURABLY.to_owned()),
        ("{turnstile}", turnstile(schema, "asked_resource")),
        (
            "{milliseconds}",
            "floor(extract(epoch FROM moment) * 1000)::bigint".to_owned(),
        ),
        ("{version}", version),
    ]
    .iter()
    .fold(part.to_owned(), |text, (hole, filling)| {
        text.replace(hole, filling)
    })
}

/// The number by which the lock manager knows the turnstile of a resource. Locks of rows are not fair: who locks shared
/// passes by whoever waits to lock alone, so that writers that overlap would keep a claim waiting for ever. The lock manager
/// queues. Two resources that share a number wait for each other's claims, and no more.
///
/// Whoever enters, claims or bumps locks this first and the row after it, until the transaction ends.
pub(crate) fn turnstile(schema: &str, resource: &str) -> String {
    let prefix = literal(&format!("{schema}/"));
    format!("hashtextextended({prefix} || {resource}, {TURNSTILES})")
}

/// The channel on which changes are told.
pub(crate) fn channel(schema: &str) -> String {
    format!("{schema}.leases")
}

/// The rules of `LeaseName` and its like, for a column.
fn fits(column: &str, bytes_max: u32) -> String {
    const WHITE: &str =
        "\\u0009-\\u000d\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
    format!(
        "octet_length({column}) BETWEEN 1 AND {bytes_max} AND {column} !~ '[\\u0001-\\u001f\\u007f-\\u009f]' \
         AND {column} !~ '^[{WHITE}]|[{WHITE}]$' AND {column} !~ '(^|/)\\.{{0,2}}(/|$)'"
    )
}

/// A name of PostgreSQL's, whatever it holds.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text of PostgreSQL's, whatever it holds.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
