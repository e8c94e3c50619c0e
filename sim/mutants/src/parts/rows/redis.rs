//! Redis: the scripts, of one server and of a quorum's members, and what a quorum counts.

use super::{Wrong, row};

const SUITE: &[&str] = &["conformance::on_redis::"];

const MEMBERSHIP: &[&str] = &["quorum_membership::", "quorum_init::", "quorum_unsettled::"];

const QUORUM: &[&str] = &["quorum_conformance::", "quorum::", "quorum_clock::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "a token beyond the last is believed",
        "G23",
        "src/lua/record.lua",
        &[["and generation - TOKEN_MAX <= 0 and (released", "and (released"]],
        SUITE,
    ),
    row(
        "a term keeps the token of the one before in the same millisecond",
        "G4",
        "src/lua/acquire.lua",
        &[[
            "token = string.format('%.0f', r.generation + 1)",
            "token = r.generation",
        ]],
        SUITE,
    ),
    row(
        "a token only counts",
        "G4",
        "src/lua/acquire.lua",
        &[["if r.generation - now >= 0 then", "if true then"]],
        SUITE,
    ),
    row(
        "a held lease is granted to whoever asks",
        "G1",
        "src/lua/acquire.lua",
        &[[
            "elseif state == 'held' then\n  refusal",
            "elseif false then\n  refusal",
        ]],
        SUITE,
    ),
    row(
        "a released attempt is granted again",
        "G5",
        "src/lua/acquire.lua",
        &[["or (same and state == 'vacant') then", "then"]],
        SUITE,
    ),
    row(
        "an expired attempt gets its old token again",
        "G9",
        "src/lua/acquire.lua",
        &[[
            "if same and state == 'held' then",
            "if same and state ~= 'vacant' then",
        ]],
        SUITE,
    ),
    row(
        "a lease is over a second early",
        "G1",
        "src/lua/record.lua",
        &[["if expires - now <= 0 then", "if expires - now <= 1000 then"]],
        SUITE,
    ),
    row(
        "a lease is granted from the millisecond that is almost over",
        "G2",
        "src/lua/record.lua",
        &[["local from = now + 1", "local from = now"]],
        &["conformance::on_redis::", "records::"],
    ),
    row(
        "a renewal revives an expired lease",
        "G9",
        "src/lua/renew.lua",
        &[[
            "elseif state == 'held' and r.incarnation",
            "elseif state ~= 'vacant' and r.incarnation",
        ]],
        SUITE,
    ),
    row(
        "a renewal does not compare the attempt",
        "G5",
        "src/lua/renew.lua",
        &[[
            "and r.generation == token and r.attempt == attempt then",
            "and r.generation == token then",
        ]],
        SUITE,
    ),
    row(
        "a release does not compare the incarnation",
        "G14",
        "src/lua/release.lua",
        &[[
            "elseif r.incarnation ~= incarnation or r.attempt",
            "elseif r.attempt",
        ]],
        SUITE,
    ),
    row(
        "a release does not compare the token",
        "G8",
        "src/lua/release.lua",
        &[["or (r.generation ~= token and not r.unconfirmed) then", "then"]],
        SUITE,
    ),
    row(
        "a release removes the record",
        "R1",
        "src/lua/release.lua",
        &[[
            "redis.call('HSET', key, 'releasedAt', now_text, 'expiresAt', r.expiresAt - now > 0 and now_text or r.expiresAt)",
            "redis.call('DEL', key)",
        ]],
        SUITE,
    ),
    row(
        "a wish for an earlier term reaches the holder",
        "G8",
        "src/lua/ask.lua",
        &[["or r.generation ~= token then", "then"]],
        SUITE,
    ),
    row(
        "a clean-up removes what was used a moment ago",
        "L13",
        "src/lua/purge.lua",
        &[["idle = tonumber(r.expiresAt) <= since and", "idle ="]],
        SUITE,
    ),
    row(
        "a clean-up forgets a token that the clock has just passed",
        "G4",
        "src/lua/purge.lua",
        &[[
            "and seldom().less(r.generation, string.format('%.0f', since))",
            "",
        ]],
        &["conformance::on_redis::", "records::"],
    ),
    row(
        "a write of a term that has not claimed is let in",
        "G6",
        "src/lua/fence_enter.lua",
        &[["or token ~= ARGV[2] or bumped", "or bumped"]],
        &["fence::", "fence_late::"],
    ),
    row(
        "a write of a term of another lease is let in",
        "G26",
        "src/lua/fence_enter.lua",
        &[["or lease ~= ARGV[1] or token", "or token"]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "a bumped mark lets its own number in",
        "G28",
        "src/lua/fence_enter.lua",
        &[["or bumped == token then", "then"]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "a claim that comes late lowers the mark",
        "G6",
        "src/lua/fence_raise.lua",
        &[["or (now_token or '') ~= found_token or", "or"]],
        &["fence::", "fence_late::"],
    ),
    row(
        "a bump is not above what was granted",
        "G28",
        "src/fence/claim.rs",
        &[[
            "let above = bump.above.max(found.granted);",
            "let above = bump.above;",
        ]],
        &["fence::", "fence_bumps::", "quorum_candidacy::"],
    ),
    row(
        "quorum: a member confirms a token that is not above its own",
        "R7",
        "src/lua/quorum_confirm.lua",
        &[[
            "if #r.generation > #token or (#r.generation == #token and r.generation >= token) then return 'gone' end",
            "",
        ]],
        &[
            "quorum_conformance::",
            "quorum::",
            "quorum_purge_late::",
            "quorum_wire::",
        ],
    ),
    row(
        "quorum: a member confirms a second token for an attempt",
        "R7",
        "src/lua/quorum_confirm.lua",
        &[["if not r.unconfirmed then", "if false then"]],
        &[
            "quorum_conformance::",
            "quorum_at_once::",
            "quorum_attempts::",
            "quorum_wire::",
        ],
    ),
    row(
        "quorum: a guess counts on a member that knows another term before",
        "R7",
        "src/lua/quorum_confirm.lua",
        &[[
            "(r.generation ~= follows or token + lag < now)",
            "(token + lag < now)",
        ]],
        &["quorum_guess::", "quorum_guess_lost::", "quorum_guess_refused::"],
    ),
    row(
        "quorum: a candidate takes a member from its holder",
        "R7",
        "src/lua/quorum_take.lua",
        &[[
            "elseif state == 'held' then",
            "elseif state == 'held' and r.unconfirmed then",
        ]],
        QUORUM,
    ),
    row(
        "quorum: letting go of a try ends the term that it was granted",
        "R7",
        "src/lua/quorum_undo.lua",
        &[["if r.unconfirmed then", "if true then"]],
        &["quorum_remains::", "quorum_guess_lost::", "quorum_attempts::"],
    ),
    row(
        "quorum: a clean-up forgets the highest token that it removes",
        "R7",
        "src/lua/quorum_purge.lua",
        &[["redis.call('HSET', removed, 'token', highest)", "highest = '1'"]],
        &["quorum_purge::", "quorum_purge_late::"],
    ),
    row(
        "quorum: a member that was given back takes the term in again",
        "G9",
        "src/lua/quorum_adopt.lua",
        &[["if state == 'vacant' then return false end", ""]],
        &["quorum_adopt::", "quorum_purge_late::", "quorum_wire::"],
    ),
    row(
        "quorum: a member takes in a lower token than its own",
        "R7",
        "src/lua/quorum_adopt.lua",
        &[[
            "if state ~= 'vacant' and state ~= 'expired' then return false end",
            "if state == 'vacant' or state == 'expired' then return true end",
        ]],
        &["quorum_adopt::", "quorum_purge::", "quorum_purge_late::"],
    ),
    row(
        "quorum: one member's renewal counts for a majority's",
        "R7",
        "src/quorum/terms.rs",
        &[["if extended >= self.majority() {", "if extended >= 1 {"]],
        &[
            "quorum_conformance::",
            "quorum::",
            "quorum_clock::",
            "quorum_certainty::",
            "quorum_adopt::",
        ],
    ),
    row(
        "quorum: one member's release counts for a majority's",
        "R7",
        "src/quorum/terms.rs",
        &[["if vacated >= self.majority() {", "if vacated >= 1 {"]],
        &[
            "quorum_conformance::",
            "quorum::",
            "quorum_certainty::",
            "quorum_wire::",
        ],
    ),
    row(
        "quorum: one member's clock moves the token",
        "R7",
        "src/quorum/token.rs",
        &[[
            "clocks_ms.get(majority - 1)",
            "clocks_ms.get(majority - majority)",
        ]],
        &["quorum_clock::"],
    ),
    row(
        "quorum: what remains is told by one member",
        "R7",
        "src/quorum/agree.rs",
        &[["remaining.get(needed - 1)", "remaining.get(needed - needed)"]],
        &["quorum_clock::", "quorum_away::", "quorum_certainty::"],
    ),
    row(
        "membership: a lease is taken before all members keep who they are",
        "R7",
        "src/quorum/record.rs",
        &[[
            "Err(Hindrance::Other(error)) => return Err(error),",
            "Err(Hindrance::Other(_)) => return Ok(()),",
        ]],
        MEMBERSHIP,
    ),
    row(
        "membership: a server counts that keeps another list",
        "R7",
        "src/membership/mod.rs",
        &[[
            "Some(ours) if !theirs.is(&ours) => {",
            "Some(ours) if theirs.count() == 0 && !theirs.is(&ours) => {",
        ]],
        MEMBERSHIP,
    ),
    row(
        "membership: a list that one member keeps counts as complete",
        "R7",
        "src/membership/mod.rs",
        &[[
            "known.complete |= is_complete;",
            "known.complete |= is_complete || is_recorded;",
        ]],
        MEMBERSHIP,
    ),
    row(
        "membership: the members are recorded anew beside a lease that is held",
        "R7",
        "src/quorum/record.rs",
        &[
            [
                "            None => {\n                self.is_unused().await?;",
                "            None => {",
            ],
            [
                "there now.\n                self.is_unused().await?;",
                "there now.",
            ],
        ],
        MEMBERSHIP,
    ),
    row(
        "membership: what a run says late undoes what was recorded since",
        "R7",
        "src/lua/membership.lua",
        &[[
            "local is_as_seen = ARGV[4] == 'instead' and (kept[2] or '') == ARGV[5]",
            "local is_as_seen = ARGV[4] == 'instead'",
        ]],
        MEMBERSHIP,
    ),
    row(
        "membership: what a run says late completes another list",
        "R7",
        "src/lua/membership.lua",
        &[[
            "elseif complete == '1' and kept[1] == id and kept[2] and ids(kept[2]) == ids(members)",
            "elseif complete == '1' and kept[2]",
        ]],
        MEMBERSHIP,
    ),
    row(
        "membership: a term begins in a server that was recorded anew since",
        "R7",
        "src/lua/quorum_take.lua",
        &[[
            "if is_another_member(KEYS[4], ARGV[7]) then return OTHER_MEMBER end",
            "",
        ]],
        MEMBERSHIP,
    ),
    row(
        "membership: nobody is told that the list is complete but by who took the first lease",
        "R7",
        "src/quorum/record.rs",
        &[["entries.extend(self.membership.completed());", ""]],
        MEMBERSHIP,
    ),
    row(
        "another store is taken for the one that was met first",
        "R15",
        "src/one_store.rs",
        &[[
            "let Some(ours) = ours.filter(|ours| kept.as_ref() != Some(ours)) else {",
            "let Some(ours) = ours.filter(|ours| kept.is_none() && kept.as_ref() != Some(ours)) else {",
        ]],
        &["exchanged::", "divided::"],
    ),
    row(
        "a store that keeps each write is taken for ours though it keeps nothing",
        "R15",
        "src/one_store.rs",
        &[[
            "if kept.is_none() && self.durability.get() != Some(&Durability::Safe) {",
            "if kept.is_none() {",
        ]],
        &["one_store::", "exchanged::"],
    ),
    row(
        "a cache that came back empty is not given its id back",
        "R15",
        "src/one_store.rs",
        &[[
            "                self.remind(&ours, dialled).await?;\n                dialled.is_recognised(true);",
            "                let _ = &ours;\n                dialled.is_recognised(true);",
        ]],
        &["exchanged::"],
    ),
    row(
        "a member of a quorum leads alone",
        "R7",
        "src/alone.rs",
        &[[
            "Some(quorate) if quorate.complete => Err(",
            "Some(quorate) if quorate.complete && false => Err(",
        ]],
        &["alone::"],
    ),
    row(
        "a server that may confirm what it has not written is called safe",
        "R3",
        "src/durability.rs",
        &[["const WRITES_FIRST: u32 = 7;", "const WRITES_FIRST: u32 = 6;"]],
        &["durability::"],
    ),
    row(
        "files in a folder that systems empty are believed to stay",
        "R3",
        "../remote/src/folders.rs",
        &[[
            "const EMPTIED: [&str; 6] = [\"/dev/shm\", \"/run\", \"/var/run\", \"/var/lock\", \"/tmp\", \"/var/tmp\"];",
            "const EMPTIED: [&str; 4] = [\"/dev/shm\", \"/run\", \"/var/run\", \"/var/lock\"];",
        ]],
        &["durability::"],
    ),
    row(
        "a lease that was given back is not asked what it has granted",
        "G26",
        "src/lua/fence_look.lua",
        &[[
            "if type(granted) ~= 'string' then granted = false end",
            "if type(granted) ~= 'string' or redis.pcall('HEXISTS', KEYS[4], 'releasedAt') == 1 then granted = false end",
        ]],
        &["fence_marks::"],
    ),
    row(
        "a port of TLS is told as a server that is away",
        "G31",
        "src/not_greeted.rs",
        &[[
            "Security::Plain if error.is_connection_dropped() && !error.is_connection_refusal() => {",
            "Security::Plain if error.is_connection_refusal() => {",
        ]],
        &["certificates::"],
    ),
    row(
        "a port without TLS is told as a server that is away",
        "G31",
        "src/not_greeted.rs",
        &[[
            "Security::Tls => \"; if it does not speak TLS at this port, say redis:\",",
            "Security::Tls => \"\",",
        ]],
        &["certificates::"],
    ),
    row(
        "the certificate of a root is refused without a way out",
        "G31",
        "../remote/src/errors.rs",
        &[["says(&[\"CaUsedAsEndEntity\"])", "says(&[\"CaUsedAsAnything\"])"]],
        &["certificates::"],
    ),
    row(
        "a fence whose leases are elsewhere goes by an old record beside its marks",
        "G26",
        "src/fence/look.rs",
        &[[
            "if self.0.leases() == Leases::Here",
            "if matches!(self.0.leases(), Leases::Here | Leases::Elsewhere)",
        ]],
        &["fence_bumps::", "fence::"],
    ),
];
