//! PostgreSQL: the functions, and the quick ones before them.

use super::{Wrong, row};

const SUITE: &[&str] = &["conformance::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "a token beyond the last is believed",
        "G23",
        "src/schema.rs",
        &[["\"(lease.token <= {token} AND coalesce", "\"(coalesce"]],
        SUITE,
    ),
    row(
        "a lease that lasts for centuries is believed",
        "G23",
        "src/schema.rs",
        &[[
            "OR lease.expires_at <= moment +",
            "OR true OR lease.expires_at <= moment +",
        ]],
        SUITE,
    ),
    row(
        "by the quick way a term keeps the token of the one before",
        "G4",
        "src/sql/take.sql",
        &[[
            "token = greatest(lease.token + 1, {milliseconds})",
            "token = greatest(lease.token, {milliseconds})",
        ]],
        SUITE,
    ),
    row(
        "by the quick way a token only counts",
        "G4",
        "src/sql/take.sql",
        &[
            [
                "token = greatest(lease.token + 1, {milliseconds})",
                "token = lease.token + 1",
            ],
            [
                "token = greatest(lease.token, {milliseconds}), acquired_at = moment",
                "acquired_at = moment",
            ],
        ],
        SUITE,
    ),
    row(
        "by the quick way a held lease is granted to whoever asks",
        "G1",
        "src/sql/take.sql",
        &[[
            "ELSE lease.released_at IS NOT NULL OR lease.expires_at <= moment END",
            "ELSE true END",
        ]],
        SUITE,
    ),
    row(
        "by the quick way an attempt is granted a second term",
        "G13",
        "src/sql/take.sql",
        &[[
            "THEN lease.attempt < asked_attempt",
            "THEN lease.attempt <= asked_attempt",
        ]],
        SUITE,
    ),
    row(
        "by the quick way a term begins before the wait for its row",
        "P12",
        "src/sql/take.sql",
        &[[
            "IF ended BETWEEN moment AND moment + interval '1 millisecond' THEN",
            "IF ended >= moment THEN",
        ]],
        &["conformance::", "quick::", "locked_rows::"],
    ),
    row(
        "by the quick way a release does not compare the attempt",
        "G5",
        "src/sql/give_back.sql",
        &[[
            "AND lease.attempt = asked_attempt AND lease.released_at IS NULL",
            "AND lease.released_at IS NULL",
        ]],
        SUITE,
    ),
    row(
        "a term keeps the token of the one before",
        "G4",
        "src/sql/acquire.sql",
        &[[
            "token = greatest(lease.token + 1, {milliseconds})",
            "token = greatest(lease.token, {milliseconds})",
        ]],
        SUITE,
    ),
    row(
        "a released attempt is granted again",
        "G5",
        "src/sql/acquire.sql",
        &[[
            "(lease.attempt > asked_attempt\n OR lease.attempt = asked_attempt AND lease.released_at IS NOT NULL)",
            "(lease.attempt > asked_attempt)",
        ]],
        SUITE,
    ),
    row(
        "an expired attempt gets its old token again",
        "G9",
        "src/sql/acquire.sql",
        &[[
            "ELSIF mine AND held AND lease.attempt",
            "ELSIF mine AND lease.attempt",
        ]],
        SUITE,
    ),
    row(
        "who has waited for the row takes the lease from whoever had it",
        "G1",
        "src/sql/acquire.sql",
        &[["ELSIF held AND NOT mine THEN", "ELSIF false THEN"]],
        &["conformance::", "locked_rows::"],
    ),
    row(
        "a renewal revives an expired lease",
        "G9",
        "src/sql/renew.sql",
        &[[
            "AND lease.released_at IS NULL AND lease.expires_at > moment AND {understood} THEN UPDATE",
            "AND lease.released_at IS NULL AND {understood} THEN UPDATE",
        ]],
        SUITE,
    ),
    row(
        "a renewal of several revives an expired lease",
        "G9",
        "src/sql/renew.sql",
        &[[
            "AND lease.released_at IS NULL AND lease.expires_at > moment AND {understood};",
            "AND lease.released_at IS NULL AND {understood};",
        ]],
        SUITE,
    ),
    row(
        "a renewal lasts for twice its ttl",
        "G17",
        "src/sql/renew.sql",
        &[[
            "moment + asked_ttls_ms[1] * interval '1 millisecond'",
            "moment + asked_ttls_ms[1] * interval '2 milliseconds'",
        ]],
        SUITE,
    ),
    row(
        "a release of several does not compare the token",
        "G8",
        "src/sql/release.sql",
        &[[
            "AND lease.token = asked.token AND lease.attempt = asked.attempt AND lease.released_at IS NULL",
            "AND lease.attempt = asked.attempt AND lease.released_at IS NULL",
        ]],
        SUITE,
    ),
    row(
        "a release removes the record",
        "G4",
        "src/sql/give_back.sql",
        &[[
            "UPDATE {schema}.leases lease SET\n released_at = moment, expires_at = least(lease.expires_at, moment), step_down_asked_at = NULL\n WHERE",
            "DELETE FROM {schema}.leases lease\n    WHERE",
        ]],
        SUITE,
    ),
    row(
        "a clean-up removes what was used a moment ago",
        "L13",
        "src/purge.rs",
        &[[
            "AND lease.expires_at OPERATOR(pg_catalog.<=) {unused_since}",
            "AND lease.expires_at OPERATOR(pg_catalog.<=) moment",
        ]],
        &["conformance::", "clean_up::"],
    ),
    row(
        "a clean-up forgets a token that the clock has just passed",
        "G4",
        "src/purge.rs",
        &[[
            "\\ AND lease.token OPERATOR(pg_catalog.<) floor(extract(epoch FROM {unused_since}) OPERATOR(pg_catalog.*) 1000)::bigint",
            "",
        ]],
        &["conformance::", "clean_up::"],
    ),
    row(
        "a claim lowers the mark",
        "G6",
        "src/sql/fences.sql",
        &[
            [
                "OR mark.token > asked_token\n OR mark.token = asked_token AND",
                "OR mark.token = asked_token AND",
            ],
            [
                "AND (mark.token < asked_token OR mark.token = asked_token AND mark.lease IS NULL)",
                "",
            ],
        ],
        &["fence::", "fence_bumps::", "fence_history::"],
    ),
    row(
        "a term that was succeeded claims where there is no mark",
        "G6",
        "src/sql/fences.sql",
        &[[
            "OR mark.resource IS NULL AND asked_token < granted_token THEN",
            "THEN",
        ]],
        &[
            "fence::",
            "fence_bumps::",
            "fence_marks::",
            "fence_guards::",
            "fence_history::",
        ],
    ),
    row(
        "entering does not compare the token",
        "G6",
        "src/sql/guard.sql",
        &[
            ["ELSIF mark.token > asked_token THEN", "ELSIF false THEN"],
            [
                "ELSIF mark.token IS DISTINCT FROM asked_token OR mark.lease IS NULL THEN",
                "ELSIF mark.lease IS NULL THEN",
            ],
        ],
        &["fence::", "fence_guards::", "fence_history::"],
    ),
    row(
        "entering keeps no claim waiting",
        "P5",
        "src/sql/guard.sql",
        &[
            ["PERFORM pg_advisory_xact_lock_shared({turnstile});", ""],
            [
                "WHERE f.resource = asked_resource FOR SHARE;",
                "WHERE f.resource = asked_resource;",
            ],
        ],
        &["fence::", "fence_guards::", "turnstile::"],
    ),
    row(
        "a bumped mark lets its own number in",
        "G28",
        "src/sql/guard.sql",
        &[["mark.bumped_token = mark.token THEN", "false THEN"]],
        &["fence_bumps::"],
    ),
    row(
        "a bump is not above what was granted",
        "G28",
        "src/sql/fences.sql",
        &[[
            "highest := greatest(mark.token, granted, asked_above);",
            "highest := greatest(mark.token, asked_above);",
        ]],
        &["fence::", "fence_bumps::"],
    ),
];
