//! PostgreSQL: the functions, and the quick ones before them.

use super::{Wrong, row};

const SUITE: &[&str] = &["conformance::"];

pub(super) const ROWS: &[Wrong] = &[
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
        "what was given back is listed as held",
        "L11",
        "src/look.rs",
        &[[
            "Selection::Held => \" AND lease.released_at IS NULL\",",
            "Selection::Held => \" AND lease.released_at IS NOT NULL\",",
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
                "ELSIF mark.token IS DISTINCT FROM asked_token OR mark.lease IS DISTINCT FROM asked_lease THEN",
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
    row(
        "a connection to another cluster is used",
        "P18",
        "src/dial.rs",
        &[[
            "checked.map_err(|why| self.failed(Fault::AnotherStore, host, why))?;",
            "drop(checked);",
        ]],
        &["exchanged::", "one_cluster::"],
    ),
    row(
        "the other hosts of the URL are not asked which cluster they are of",
        "P18",
        "src/one_cluster.rs",
        &[[
            "let others = addresses .iter() .filter(|(host, config)| !self.is_latest(*host, config));",
            "let others = addresses .iter() .filter(|(host, config)| self.is_latest(*host, config));",
        ]],
        &["one_cluster::"],
    ),
    row(
        "of the host that is connected no other address is asked which cluster it is of",
        "P18",
        "src/dial.rs",
        &[[
            "host == self.latest.load(Ordering::Relaxed) && self.answered().get(&host).copied() == address_of(config)",
            "host == self.latest.load(Ordering::Relaxed) && address_of(config).is_some()",
        ]],
        &["one_cluster::"],
    ),
    row(
        "a stranger is not told beside another address that is dead",
        "P18",
        "src/dial.rs",
        &[[
            "Err(failed) => Err(none_lets_in(failed)), } } /// Passes by",
            "Err(mut failed) => Err(failed.remove(0)), } } /// Passes by",
        ]],
        &["one_cluster::"],
    ),
    row(
        "behind a pooler no statement says which cluster it is for",
        "P18",
        "src/dial.rs",
        &[[
            "let bound_to = pooled.map(|told| told.cluster);",
            "let bound_to = pooled.map(|told| told.cluster).filter(|_| false);",
        ]],
        &["pooler_exchanged::", "one_cluster::role"],
    ),
    row(
        "a statement for another cluster is done all the same",
        "P18",
        "src/one_cluster.rs",
        &[[
            "OPERATOR(pg_catalog.=) '{cluster}'::bigint THEN true ELSE",
            "OPERATOR(pg_catalog.=) '{cluster}'::bigint OR true THEN true ELSE",
        ]],
        &["pooler_exchanged::", "one_cluster::role"],
    ),
    row(
        "a mark is lowered by whoever writes to its table",
        "P19",
        "src/sql/rising.sql",
        &[[
            "WHEN (NEW.token < OLD.token OR NEW.resource <> OLD.resource)",
            "WHEN (NEW.resource <> OLD.resource)",
        ]],
        &["fence_marks::", "subscriptions::"],
    ),
    row(
        "a mark is made another resource's",
        "P19",
        "src/sql/rising.sql",
        &[[
            "WHEN (NEW.token < OLD.token OR NEW.resource <> OLD.resource)",
            "WHEN (NEW.token < OLD.token)",
        ]],
        &["fence_marks::"],
    ),
    row(
        "a mark is lowered where no usual trigger is called",
        "P19",
        "src/sql/rising.sql",
        &[[
            "ALTER TABLE {schema}.fences ENABLE ALWAYS TRIGGER mark_only_rises;",
            "NULL;",
        ]],
        &["fence_marks::", "subscriptions::"],
    ),
    row(
        "marks that a subscription writes to are gone by",
        "P19",
        "src/connect.rs",
        &[[
            "if let Some(flaw) = marks {",
            "if let Some(flaw) = marks.filter(|flaw| matches!(flaw, Flaw::Unlogged)) {",
        ]],
        &["subscriptions::"],
    ),
    row(
        "leases that a subscription writes to are called safe",
        "P19",
        "src/connect.rs",
        &[[
            "self.durability = Durability::FenceOnly( \"a subscription writes",
            "let _ = Durability::FenceOnly( \"a subscription writes",
        ]],
        &["subscriptions::"],
    ),
    row(
        "a set-up whose trigger others get past is called sound",
        "P19",
        "src/examine/tables.rs",
        &[["AND tgname = $4 AND tgenabled = 'A')", "AND tgname = $4)"]],
        &["fence_marks::"],
    ),
    row(
        "what is NULL enters",
        "P5",
        "src/sql/guard.sql",
        &[[
            "IF asked_resource IS NULL OR asked_lease IS NULL OR asked_token IS NULL THEN",
            "IF FALSE THEN",
        ]],
        &["fence_null::", "fence_bumps::the_number"],
    ),
    row(
        "a lease that was given back is not asked what it has granted",
        "G26",
        "src/sql/fences.sql",
        &[[
            "SELECT l.token INTO granted_token FROM {schema}.leases l WHERE l.name = asked_lease",
            "SELECT l.token INTO granted_token FROM {schema}.leases l WHERE l.released_at IS NULL AND l.name = asked_lease",
        ]],
        &["fence_marks::"],
    ),
    row(
        "whoever is not connected to says which cluster is ours",
        "P18",
        "src/one_cluster.rs",
        &[[
            "fn strangers(&self, hosts: &[(String, Option<Told>)]) -> Vec<String> {",
            "fn strangers(&self, hosts: &[(String, Option<Told>)]) -> Vec<String> {
            let first = hosts.iter().find_map(|(_, told)| *told);
            let _ = first.map(|told| *self.0.get_or_init(|| told.cluster));",
        ]],
        &["one_cluster::"],
    ),
    row(
        "beside a host that does not say its cluster one that does is believed",
        "P18",
        "src/one_cluster.rs",
        &[[
            ".filter(|(_, told)| !are_one || !told.is_standby)",
            ".filter(|(_, told)| !are_one && !told.is_standby)",
        ]],
        &["one_cluster::"],
    ),
    row(
        "a standby that has not met a REVOKE keeps its primary's term out",
        "P18",
        "src/one_cluster.rs",
        &[[
            ".filter(|(_, told)| !are_one || !told.is_standby)",
            ".filter(|(_, told)| !are_one || told.cluster != 0)",
        ]],
        &["one_cluster::"],
    ),
    row(
        "the database is that of whoever runs",
        "G1",
        "src/login.rs",
        &[[
            "if config.get_dbname().is_none_or(str::is_empty) {",
            "if config.get_dbname().is_some_and(str::is_empty) {",
        ]],
        &["login::", "connect::"],
    ),
];
