//! MariaDB and MySQL: the procedures, and the short statements of MariaDB.

use super::{Wrong, row};

const SUITE: &[&str] = &["conformance::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "by the short way a term keeps the token of the one before",
        "G4",
        "src/sql/take.sql",
        &[[
            "token = GREATEST(token + 1, VALUES(token))",
            "token = GREATEST(token, VALUES(token))",
        ]],
        SUITE,
    ),
    row(
        "by the short way a token only counts",
        "G4",
        "src/sql/take.sql",
        &[["token = GREATEST(token + 1, VALUES(token))", "token = token + 1"]],
        SUITE,
    ),
    row(
        "by the short way a held lease is granted to whoever asks",
        "G1",
        "src/sql/take.sql",
        &[[
            "released_us IS NOT NULL OR expires_us <= {now_us})\n AND token <",
            "TRUE)\n AND token <",
        ]],
        SUITE,
    ),
    row(
        "by the short way an attempt is granted a second term",
        "G13",
        "src/sql/take.sql",
        &[["attempt < VALUES(attempt),", "attempt <= VALUES(attempt),"]],
        SUITE,
    ),
    row(
        "by the short way a release does not compare the token",
        "G8",
        "src/sql/vacate.sql",
        &[["AND token = ? AND attempt", "AND (token = ? OR TRUE) AND attempt"]],
        SUITE,
    ),
    row(
        "by the short way a release removes the record",
        "G4",
        "src/sql/vacate.sql",
        &[[
            "UPDATE tenure_leases SET released_us = {now_us}, expires_us = LEAST(expires_us, {now_us}), step_down_us = NULL",
            "DELETE FROM tenure_leases",
        ]],
        SUITE,
    ),
    row(
        "a term keeps the token of the one before",
        "G4",
        "src/sql/acquire.sql",
        &[[
            "l_token = GREATEST(l_token + 1, moment DIV 1000),",
            "l_token = GREATEST(l_token, moment DIV 1000),",
        ]],
        SUITE,
    ),
    row(
        "a released attempt is granted again",
        "G5",
        "src/sql/acquire.sql",
        &[[
            "(l_attempt > asked_attempt OR l_attempt = asked_attempt AND l_released IS NOT NULL)",
            "(l_attempt > asked_attempt)",
        ]],
        SUITE,
    ),
    row(
        "an expired attempt gets its old token again",
        "G9",
        "src/sql/acquire.sql",
        &[[
            "ELSEIF mine AND held AND l_attempt = asked_attempt THEN",
            "ELSEIF mine AND l_released IS NULL AND l_attempt = asked_attempt THEN",
        ]],
        SUITE,
    ),
    row(
        "who has waited for the row takes the lease from whoever had it",
        "G1",
        "src/sql/acquire.sql",
        &[["ELSEIF held AND NOT mine THEN", "ELSEIF FALSE THEN"]],
        &["conformance::", "locked_rows::"],
    ),
    row(
        "a renewal is decided by the clock before the wait for its row",
        "Y1",
        "src/sql/renew.sql",
        &[["SET moment = {now_us};", "SET moment = {now_us} - waited_us;"]],
        &["locked_rows::"],
    ),
    row(
        "a renewal revives an expired lease",
        "G9",
        "src/sql/renew.sql",
        &[[
            "AND attempt = only_attempt\n            AND released_us IS NULL AND expires_us > moment AND {understood};",
            "AND attempt = only_attempt\n            AND released_us IS NULL AND {understood};",
        ]],
        SUITE,
    ),
    row(
        "a renewal of several revives an expired lease",
        "G9",
        "src/sql/renew.sql",
        &[[
            "AND lease.attempt = a.attempt AND lease.released_us IS NULL AND lease.expires_us > moment AND {understood_lease};",
            "AND lease.attempt = a.attempt AND lease.released_us IS NULL AND {understood_lease};",
        ]],
        SUITE,
    ),
    row(
        "a renewal of several does not compare the attempt",
        "G5",
        "src/sql/renew.sql",
        &[
            [
                "AND lease.attempt = a.attempt AND lease.released_us IS NULL AND lease.expires_us > moment AND {understood_lease};",
                "AND lease.released_us IS NULL AND lease.expires_us > moment AND {understood_lease};",
            ],
            [
                "AND lease.attempt = a.attempt\n AND lease.released_us IS NULL AND lease.expires_us > moment AND {understood_lease} THEN",
                "AND lease.released_us IS NULL AND lease.expires_us > moment AND {understood_lease} THEN",
            ],
        ],
        SUITE,
    ),
    row(
        "a release of several tells each that it was given back",
        "G8",
        "src/sql/release.sql",
        &[[
            "WHEN lease.incarnation = a.incarnation AND lease.token = a.token AND lease.attempt = a.attempt\n AND lease.released_us IS NOT NULL THEN",
            "WHEN lease.released_us IS NOT NULL THEN",
        ]],
        SUITE,
    ),
    row(
        "a renewal lasts for twice its ttl",
        "G17",
        "src/sql/renew.sql",
        &[[
            "expires_us = moment + only_ttl_ms * 1000",
            "expires_us = moment + only_ttl_ms * 2000",
        ]],
        SUITE,
    ),
    row(
        "a clean-up removes what was used a moment ago",
        "L13",
        "src/purge.rs",
        &[[
            "AND expires_us <= {unused_since} AND token",
            "AND expires_us <= {NOW_US} AND token",
        ]],
        &["conformance::", "clean_up::"],
    ),
    row(
        "a clean-up forgets a token that the clock has just passed",
        "G4",
        "src/purge.rs",
        &[["AND token < ({unused_since}) DIV 1000", ""]],
        &["conformance::", "clean_up::"],
    ),
    row(
        "a claim lowers the mark",
        "G6",
        "src/sql/claim.sql",
        &[
            [
                "OR m_token > asked_token OR m_token = asked_token",
                "OR m_token = asked_token",
            ],
            [
                "(m_token < asked_token OR m_token = asked_token AND m_lease IS NULL)",
                "TRUE",
            ],
        ],
        &["fence::", "fence_bumps::", "fence_history::"],
    ),
    row(
        "a token from the future claims",
        "G26",
        "src/sql/claim.sql",
        &[[
            "IF asked_token > COALESCE(granted, GREATEST(moment DIV 1000, COALESCE(m_token, 0)) + {day_ms})\n OR m_token IS NULL",
            "IF m_token IS NULL",
        ]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "a term that was succeeded claims where there is no mark",
        "G6",
        "src/sql/claim.sql",
        &[["OR m_token IS NULL AND asked_token < granted THEN", "THEN"]],
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
        "src/sql/judge.sql",
        &[
            [
                "IF m_lease = asked_lease AND m_token = asked_token THEN",
                "IF m_lease = asked_lease THEN",
            ],
            [
                "ELSEIF m_token > asked_token THEN SIGNAL SQLSTATE '{stale}' SET MESSAGE_TEXT = 'refused: the token is stale, a later term has claimed; stop this work';",
                "",
            ],
            [
                "ELSEIF NOT (m_lease <=> asked_lease AND m_token <=> asked_token) THEN",
                "ELSEIF m_lease IS NULL THEN",
            ],
        ],
        &["fence::", "fence_guards::", "fence_history::"],
    ),
    row(
        "entering keeps no claim waiting",
        "Y5",
        "src/sql/judge.sql",
        &[[
            "WHERE resource = asked_resource LOCK IN SHARE MODE;",
            "WHERE resource = asked_resource;",
        ]],
        &["fence::", "fence_guards::", "fence_history::"],
    ),
    row(
        "a bumped mark lets its own number in",
        "G28",
        "src/sql/judge.sql",
        &[
            [
                "IF(lease = asked_lease AND bumped_token = token, NULL, lease), token INTO m_lease, m_token\n FROM tenure_fences WHERE resource = asked_resource;",
                "lease, token INTO m_lease, m_token\n FROM tenure_fences WHERE resource = asked_resource;",
            ],
            [
                "IF(lease = asked_lease AND bumped_token = token, NULL, lease), token INTO",
                "lease, token INTO",
            ],
        ],
        &["fence_bumps::"],
    ),
    row(
        "a bump is not above what was granted",
        "G28",
        "src/sql/bump.sql",
        &[[
            "COALESCE(granted, 0), COALESCE(asked_above, 0)",
            "COALESCE(asked_above, 0)",
        ]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "a transaction is committed that has ended since it entered",
        "Y5",
        "src/fence/enter.rs",
        &[[
            "format!(\"RELEASE SAVEPOINT {}; SET",
            "format!(\"DO 0 /* {} */; SET",
        ]],
        &["fence_endings::", "fence::"],
    ),
    row(
        "the entry of another resource is taken for that of the first",
        "Y5",
        "src/fence/enter.rs",
        &[[
            "resource.as_str().hash(&mut hasher);",
            "resource.as_str().is_empty().hash(&mut hasher);",
        ]],
        &["fence_endings::"],
    ),
    row(
        "a connection to another store is used",
        "Y12",
        "src/dial.rs",
        &[[
            "match self.store.check(*address, greeted.store) {",
            "match self.store.check(*address, greeted.store).or(Ok::<(), String>(())) {",
        ]],
        &["exchanged::", "one_store::"],
    ),
    row(
        "tables without a number are taken for those of the store",
        "Y12",
        "src/one_store.rs",
        &[["None => self.number(),", "None => None,"]],
        &["exchanged::"],
    ),
    row(
        "two addresses with a store each are one",
        "Y12",
        "src/one_store.rs",
        &[["if stores.len() > 1 {", "if stores.len() > 2 {"]],
        &["one_store::"],
    ),
    row(
        "two addresses that each take writes are one",
        "Y12",
        "src/one_store.rs",
        &[["if takers.len() > 1 {", "if takers.len() > 2 {"]],
        &["one_store::"],
    ),
    row(
        "a proxy that has another server read is taken",
        "Y2",
        "src/connect.rs",
        &[["self.refuse_splitting(server, row)?;", "let _ = (server, row);"]],
        &["splitting::", "one_store::tests::replica"],
    ),
    row(
        "a request waits for a locked table for as long as the server lets it",
        "Y4",
        "src/greeting.rs",
        &[[
            "CAST(IF(CONNECTION_ID() = {id}, {TABLE_WAIT_S}, @@SESSION.lock_wait_timeout) AS UNSIGNED)",
            "CAST(IF(CONNECTION_ID() = {id}, @@SESSION.lock_wait_timeout, {TABLE_WAIT_S}) AS UNSIGNED)",
        ]],
        &["locked_tables::"],
    ),
    row(
        "a session that others have next behind a pooler waits as shortly for them",
        "Y4",
        "src/greeting.rs",
        &[[
            "CAST(IF(CONNECTION_ID() = {id}, {TABLE_WAIT_S}, @@SESSION.lock_wait_timeout) AS UNSIGNED)",
            "CAST(IF({id} = {id}, {TABLE_WAIT_S}, @@SESSION.lock_wait_timeout) AS UNSIGNED)",
        ]],
        &["locked_tables::"],
    ),
    row(
        "what was given back is listed as held",
        "L11",
        "src/look.rs",
        &[[
            "Selection::Held => \" AND released_us IS NULL\",",
            "Selection::Held => \" AND released_us IS NOT NULL\",",
        ]],
        &["conformance::what_is", "conformance::last_page"],
    ),
    row(
        "what is NULL enters",
        "Y5",
        "src/sql/judge.sql",
        &[[
            "IF asked_resource IS NULL OR asked_lease IS NULL OR asked_token IS NULL THEN",
            "IF FALSE THEN",
        ]],
        &["fence_null::", "fence_bumps::the_number"],
    ),
    row(
        "a lease that was given back is not asked what it has granted",
        "G26",
        "src/sql/claim.sql",
        &[[
            "SELECT token INTO granted FROM tenure_leases WHERE name = asked_lease AND token <= {token_max}",
            "SELECT token INTO granted FROM tenure_leases WHERE name = asked_lease AND released_us IS NULL AND token <= {token_max}",
        ]],
        &["fence_marks::"],
    ),
    row(
        "a session's mode changes what names may be",
        "Y1",
        "src/rules.rs",
        &[[
            "format!(\"CONVERT(0x{} USING utf8mb4)\", hexadecimal(regular))",
            "format!(\"'{}'\", regular.replace('\\\\', \"\\\\\\\\\")) + if hexadecimal(regular).is_empty() { \" \" } else { \"\" }",
        ]],
        &["modes::"],
    ),
    row(
        "tables of an earlier set-up keep rules that a session's mode changes",
        "Y1",
        "src/later.rs",
        &[[
            "MAX(LOCATE(0x5c78, CHECK_CLAUSE) > 0)",
            "MAX(LOCATE(0x5c78, CHECK_CLAUSE) < 0)",
        ]],
        &["modes::"],
    ),
    row(
        "a trigger of the user's own goes with a guard's",
        "Y6",
        "src/fence/table.rs",
        &[[
            "AND TRIGGER_NAME REGEXP '^tenure_(insert|update|delete)_[0-9a-f]{{16}}$' \\",
            "\\",
        ]],
        &["fence_guards::"],
    ),
];
