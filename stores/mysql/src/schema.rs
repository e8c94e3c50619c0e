//! What the store needs in the database: tables and procedures, as text.

use crate::later::Mend;
use crate::procedures::Procedure;
use crate::rules::rules;
use tenure_core::{FencingToken, Ttl};

/// The set-up that this store needs; another is refused. It is part of the procedures' names, so that a
/// set-up never replaces what others need as it is: within a version a procedure is only mended.
pub(crate) const VERSION: i32 = 1;

/// The states of SQL by which the procedures refuse.
pub(crate) const STALE: &str = "TN001";
pub(crate) const FOREIGN: &str = "TN002";
pub(crate) const UNCLAIMED: &str = "TN003";
/// Nothing was decided; ask again.
pub(crate) const BUSY: &str = "TN009";
/// The server takes no writes.
pub(crate) const READ_ONLY: &str = "TN010";

/// Tells the procedure that is called next, in the same session, that the leases are in another store; one of
/// a set-up from before it does not hear it.
pub(crate) const LEASES_ELSEWHERE: &str = "SET @tenure_lease_store = 'elsewhere'";

/// How long one request waits for a row at most, in seconds.
const LOCK_WAIT_S: u32 = 2;

/// Whoever has written to a guarded table uses it and the procedure of its triggers until the transaction
/// ends, and while a change of either waits for that, nobody else can begin to use it: the server would go on
/// waiting for a day.
pub(crate) const WAIT_SHORTLY: &str = "SET SESSION lock_wait_timeout = 2";

/// How long a claim waits for the transactions that have entered, in seconds. A server that looks only once a
/// second who has waited long enough, as MySQL does, must still refuse it well before the store gives it up:
/// then nobody would know whether it was made.
const CLAIM_WAIT_S: u32 = 3;

/// How often a procedure that waits looks at its rows, in microseconds: what a hand-over waits for at most,
/// and on average half of it.
const LOOK_EVERY_US: u32 = 20_000;

/// The same at first, and later the share of the time waited: where a change comes soon, it is noticed soon,
/// by some twenty looks more for each.
const LOOK_FIRST_US: u32 = 2_000;
const WAITED_SHARE: u32 = 8;

/// The same where a holder was asked to step down within [`ENDING_US`]: a release is about to come.
const LOOK_AT_END_EVERY_US: u32 = 2_000;

/// How long a holder may take to end its work, in microseconds, before it is looked at like any other.
const ENDING_US: u32 = 10_000_000;

/// A look that took long is followed by a pause of so many times that, so that many rows do not keep the
/// server busy.
const IDLE_SHARE: u32 = 10;

/// Longest pause between two looks, in microseconds.
const PAUSE_MAX_US: u32 = 2_000_000;

/// Makes what is missing, in the order in which it depends on each other; which set-up it is, last.
const PARTS: [&str; 12] = [
    include_str!("sql/leases.sql"),
    include_str!("sql/acquire.sql"),
    include_str!("sql/renew.sql"),
    include_str!("sql/release.sql"),
    include_str!("sql/ask.sql"),
    include_str!("sql/wait.sql"),
    include_str!("sql/fences.sql"),
    include_str!("sql/refusals.sql"),
    include_str!("sql/claim.sql"),
    include_str!("sql/bump.sql"),
    include_str!("sql/enter.sql"),
    include_str!("sql/admit.sql"),
];

const SETUP: &str = include_str!("sql/setup.sql");

/// Gives the tables a number, by which whoever is connected tells a server that has others: a second row, of
/// which an earlier Tenure knows nothing. Put together first, so that a log of statements has it as well, and
/// not how it was come by.
const STORE_NUMBER: &str = "SET @tenure_store = 1 + CAST(CONV(LEFT(SHA2(CONCAT(UUID(), RAND()), 256), 8), 16, 10) AS UNSIGNED) % 2147483647; \
     INSERT INTO tenure_setup (one, version) VALUES (2, @tenure_store) ON DUPLICATE KEY UPDATE version = version";

/// The server's clock in microseconds since 1970. Of UTC and not of `NOW`, which a session's time zone
/// changes. As a statement of its own in a procedure it is of the moment at which that statement begins.
pub(crate) const NOW_US: &str =
    "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))";

/// Whether the server is set to take no writes. By its name, as newer ones know several words for it.
pub(crate) const TAKES_NO_WRITES: &str = "CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF')";

/// What a statement shows of a record `lease` at the moment `moment`. Texts as their bytes: others would be
/// translated into the character set that the session wants answers in, which may lack their letters.
pub(crate) const RECORD: &str = "CAST(lease.name AS BINARY), CAST(lease.owner AS BINARY), CAST(lease.incarnation AS BINARY), lease.token, lease.attempt, lease.terms, lease.ttl_ms, \
     lease.released_us IS NOT NULL, lease.step_down_us IS NOT NULL, lease.expires_us - moment, moment - lease.acquired_us, \
     moment - COALESCE(lease.renewed_us, lease.acquired_us), CAST(lease.note AS BINARY), CAST(lease.previous_owner AS BINARY), \
     lease.previous_token, CAST(lease.previous_end AS BINARY), lease.acquired_us - lease.previous_us";

/// The end of a statement that answers with all that it finds: without it, the session's `sql_select_limit`
/// cuts it short.
pub(crate) const ALL_ROWS: &str = "LIMIT 18446744073709551615";

/// The terms of a batch, row by row.
const TERMS: &str = "JSON_TABLE(asked, '$[*]' COLUMNS (place FOR ORDINALITY, name VARCHAR(510) PATH '$[0]', \
     incarnation VARCHAR(32) PATH '$[1]', token BIGINT PATH '$[2]', attempt BIGINT PATH '$[3]', ttl_ms BIGINT PATH '$[4]'))";

/// The same for a statement that locks what it joins them to: MySQL takes a `JSON_TABLE` beside the locked
/// table for one that is to be locked as well, twice, and refuses (3569). A limit keeps the servers from
/// merging it into the statement.
fn terms_apart() -> String {
    format!("(SELECT place, name FROM {TERMS} every {ALL_ROWS})")
}

/// Lets a procedure that reads and writes see what is committed now, and lock nothing beside the rows that it
/// names, whatever the session's isolation is. Each end is spelt out (`AND NO CHAIN NO RELEASE`), as a
/// session's `completion_type` may begin the next transaction by itself, or close the connection. And one is
/// ended first: a session that does not commit by itself may have one open, whose isolation cannot be set any
/// more.
const BEGIN: &str =
    "COMMIT AND NO CHAIN NO RELEASE; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION;";

/// A server that has become a replica decides nothing, whatever the role may do.
fn primary_only() -> String {
    format!(
        "IF {TAKES_NO_WRITES} THEN SIGNAL SQLSTATE '{READ_ONLY}' SET MESSAGE_TEXT = 'the server takes no writes'; END IF;"
    )
}

/// A step of the set-up.
pub(crate) enum Step {
    /// A statement that makes what is missing.
    Make(String),
    /// What a table that was there may lack.
    Mend(Mend),
}

/// The steps that make the tables and procedures, in their order; what is there already stays.
pub(crate) fn steps() -> Vec<Step> {
    let modes = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'".to_owned();
    // A table of the same name that is another program's ends the set-up here, and nothing is made.
    let ours = |columns: &str, from: &str| Step::Make(format!("SELECT {columns} FROM {from} LIMIT 0"));
    let mut steps = vec![Step::Make(WAIT_SHORTLY.to_owned()), Step::Make(modes)];
    for part in PARTS {
        steps.push(Step::Make(filled(part)));
        if part.contains("EXISTS tenure_leases") {
            steps.push(ours(RECORD, "tenure_leases lease, (SELECT 1 AS moment) clock"));
            steps.push(Step::Mend(Mend::of("tenure_leases")));
        } else if part.contains("EXISTS tenure_fences") {
            steps.push(ours(
                "resource, lease, token, claimed_us, previous_token",
                "tenure_fences",
            ));
            steps.push(Step::Mend(Mend::of("tenure_fences")));
        } else if part.contains("EXISTS tenure_refusals") {
            steps.push(ours("resource, refused, last_token, last_us", "tenure_refusals"));
        }
    }
    steps.push(Step::Make(filled(SETUP)));
    steps.push(Step::Make(STORE_NUMBER.to_owned()));
    steps.push(Step::Make(format!(
        "INSERT INTO tenure_setup (one, version) VALUES (1, {VERSION}) ON DUPLICATE KEY UPDATE version = GREATEST(version, {VERSION})"
    )));
    steps
}

/// The procedures among them.
pub(crate) fn procedures() -> impl Iterator<Item = Procedure> {
    PARTS.iter().filter_map(|part| {
        let create = filled(part);
        let (_, named) = create.split_once("PROCEDURE IF NOT EXISTS ")?;
        let name = named.split('(').next()?.to_owned();
        Some(Procedure { name, create })
    })
}

/// The steps as one text for the command-line client.
pub(crate) fn script() -> String {
    let mut text = format!(
        "-- Tenure's leases and fences, set-up {VERSION}. To be run in the database of the leases by its owner, as often as \
         one likes: what is there stays.\nDELIMITER $$\n"
    );
    for step in steps() {
        text.push_str(&match step {
            Step::Make(statement) => statement,
            Step::Mend(mend) => mend.printed(),
        });
        text.push_str("\n$$\n");
    }
    text.push_str("DELIMITER ;\n");
    text
}

/// The statement that calls a procedure of this set-up, with these literals.
pub(crate) fn call(procedure: &str, literals: &[String]) -> String {
    format!("CALL tenure_{procedure}_{VERSION}({})", literals.join(", "))
}

/// The columns that [`understood`] looks at.
const COLUMNS: [&str; 2] = ["token", "previous_token"];

/// Whether a record is one to its holder, beyond what the table's own rules say: what has no place in the
/// record's ([`decode`](crate::record::decode)) would keep everybody out for good.
///
/// Whoever holds it puts its expiry right, and all others change nothing of what is held, but for a wish,
/// which [`lasts_no_longer`] is for.
fn understood(columns: [impl std::fmt::Display; 2]) -> String {
    let ([token, previous], token_max) = (columns, FencingToken::MAX);
    format!("({token} <= {token_max} AND COALESCE({previous}, 1) <= {token_max})")
}

/// Whether what is held, as a procedure has read it, lasts no longer than a lease can: otherwise it is none
/// to others.
fn lasts_no_longer() -> String {
    let beyond_ms = Ttl::BEYOND_MAX.as_millis();
    format!("l_expires <= moment + (l_ttl + {beyond_ms}) * 1000")
}

/// A part, with what it leaves open.
pub(crate) fn filled(part: &str) -> String {
    let part = rules().iter().fold(part.to_owned(), |text, rule| {
        text.replace(&format!("{{{}}}", rule.name), &rule.check)
    });
    [
        ("{lock}", code(include_str!("sql/lock.sql"))),
        ("{judged}", code(include_str!("sql/judge.sql"))),
        ("{record}", RECORD.to_owned()),
        ("{terms}", TERMS.to_owned()),
        ("{terms_apart}", terms_apart()),
        (
            "{name_of_a}",
            "CONVERT(UNHEX(a.name) USING utf8mb4) COLLATE utf8mb4_bin".to_owned(),
        ),
        (
            "{restore}",
            "SET SESSION innodb_lock_wait_timeout = lock_wait, SESSION group_concat_max_len = list_length;"
                .to_owned(),
        ),
        ("{understood}", understood(COLUMNS)),
        (
            "{understood_lease}",
            understood(COLUMNS.map(|column| format!("lease.{column}"))),
        ),
        ("{understood_as_read}", understood(["l_token", "p_token"])),
        ("{lasts_no_longer}", lasts_no_longer()),
        ("{token_max}", FencingToken::MAX.to_string()),
        ("{begin}", BEGIN.to_owned()),
        ("{primary_only}", primary_only()),
        ("{takes_no_writes}", TAKES_NO_WRITES.to_owned()),
        ("{now_us}", NOW_US.to_owned()),
        ("{text}", "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin".to_owned()),
        ("{look_every_us}", LOOK_EVERY_US.to_string()),
        ("{look_first_us}", LOOK_FIRST_US.to_string()),
        ("{waited_share}", WAITED_SHARE.to_string()),
        ("{look_at_end_every_us}", LOOK_AT_END_EVERY_US.to_string()),
        ("{ending_us}", ENDING_US.to_string()),
        ("{idle_share}", IDLE_SHARE.to_string()),
        ("{pause_max_us}", PAUSE_MAX_US.to_string()),
        ("{lock_wait_s}", LOCK_WAIT_S.to_string()),
        ("{claim_wait_s}", CLAIM_WAIT_S.to_string()),
        ("{day_ms}", "86400000".to_owned()),
        ("{stale}", STALE.to_owned()),
        ("{foreign}", FOREIGN.to_owned()),
        ("{unclaimed}", UNCLAIMED.to_owned()),
        ("{busy}", BUSY.to_owned()),
        (
            "{lease_store}",
            "COALESCE(CAST(@tenure_lease_store AS CHAR(20) CHARACTER SET utf8mb4), '')".to_owned(),
        ),
        ("{elsewhere}", "elsewhere".to_owned()),
        ("{version}", VERSION.to_string()),
    ]
    .iter()
    .fold(part, |text, (hole, filling)| text.replace(hole, filling))
    .trim_end()
    .trim_end_matches(';')
    .to_owned()
}

/// A part of a procedure without the words at its head.
pub(crate) fn code(part: &str) -> String {
    let lines = part.lines().skip_while(|line| line.starts_with("-- "));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A text as a literal of MySQL's, whatever it holds: in hexadecimal, so that neither quotes nor backslashes
/// nor the session's character set can change it.
pub(crate) fn literal(text: &str) -> String {
    format!("_utf8mb4 X'{}'", hexadecimal(text))
}

/// The bytes of a text.
pub(crate) fn hexadecimal(text: &str) -> String {
    use std::fmt::Write as _;
    let mut digits = String::with_capacity(2 * text.len());
    for byte in text.bytes() {
        let _infallible = write!(digits, "{byte:02x}");
    }
    digits
}

/// The same, or null.
pub(crate) fn literal_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), literal)
}

/// A name of MySQL's, whatever it holds.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
