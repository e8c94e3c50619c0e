//! SQLite: what the store decides of a record, and its statements.

use super::{Wrong, row};

const SUITE: &[&str] = &["conformance::"];
/// With real writers who begin again at once, and by the turns themselves.
const INSISTENCE: &[&str] = &["insistence::", "log::tests::one_handle", "busy_writers::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "a term keeps the token of the one before",
        "G4",
        "src/acquire.rs",
        &[[
            "FencingToken::successor(previous.map(|record| record.token), wall_clock_ms())",
            "previous.map_or_else(|| FencingToken::successor(None, wall_clock_ms()), |record| Some(record.token))",
        ]],
        SUITE,
    ),
    row(
        "a token is the clock's alone",
        "G4",
        "src/acquire.rs",
        &[[
            "FencingToken::successor(previous.map(|record| record.token), wall_clock_ms())",
            "FencingToken::successor(None, wall_clock_ms())",
        ]],
        SUITE,
    ),
    row(
        "a held lease is granted to whoever asks",
        "G1",
        "src/decide.rs",
        &[[
            "Era::Ours if !same_process => Decision::Held,",
            "Era::Ours if !same_process => Decision::Grant(Some(predecessor(record, clock, End::Expired))),",
        ]],
        SUITE,
    ),
    row(
        "an earlier attempt of the same process takes the lease back",
        "G5",
        "src/decide.rs",
        &[[
            "if same_process && record.attempt > request.attempt { return Decision::Superseded; }",
            "",
        ]],
        SUITE,
    ),
    row(
        "a released attempt is granted again",
        "G5",
        "src/decide.rs",
        &[[
            "same_process && record.attempt >= request.attempt",
            "same_process && record.attempt > request.attempt",
        ]],
        SUITE,
    ),
    row(
        "an expired attempt gets its old token again",
        "G9",
        "src/decide.rs",
        &[[
            "if record.remaining(clock, first_seen).is_zero() {",
            "if record.remaining(clock, first_seen).is_zero() && !(same_process && record.attempt == request.attempt) {",
        ]],
        SUITE,
    ),
    row(
        "a renewal revives an expired lease",
        "G9",
        "src/terms.rs",
        &[[
            "is_of_term(record, term) && !record.released && record.era(seen.clock) == Era::Ours && record.remaining(seen.clock, \
             None) > Duration::ZERO",
            "is_of_term(record, term) && !record.released && record.era(seen.clock) == Era::Ours",
        ]],
        SUITE,
    ),
    row(
        "a term is compared by its token alone",
        "G14",
        "src/terms.rs",
        &[[
            "(record.holder.incarnation, record.token, record.attempt) == term",
            "record.token == term.1",
        ]],
        SUITE,
    ),
    row(
        "what remains is counted from the whole ttl",
        "G2",
        "src/record.rs",
        &[[
            "Era::Ours => self.expires.since(clock.now),",
            "Era::Ours if self.expires > clock.now => self.ttl.duration(), Era::Ours => Duration::ZERO,",
        ]],
        SUITE,
    ),
    row(
        "a release removes the record",
        "G4",
        "src/terms.rs",
        &[[
            "\"UPDATE lease SET released = 1, wish = ?2, expires_ns = ?3, version = ?4 WHERE name = ?1\"",
            "\"DELETE FROM lease WHERE name = ?1 AND ?2 <> '' AND ?3 >= 0 AND ?4 >= 0\"",
        ]],
        SUITE,
    ),
    row(
        "a clean-up removes what was used a moment ago",
        "L13",
        "src/purge.rs",
        &[["is_old && rises && record", "rises && record"]],
        &["conformance::", "purging::"],
    ),
    row(
        "a clean-up forgets a token that is ahead of the clock",
        "G4",
        "src/purge.rs",
        &[["is_old && rises && record", "is_old && record"]],
        &["conformance::", "purging::"],
    ),
    row(
        "a record of another boot is free at once",
        "S2",
        "src/record.rs",
        &[[
            "self.observation().saturating_sub(seen_for)",
            "Duration::ZERO.saturating_sub(seen_for)",
        ]],
        &["other_boots::"],
    ),
    row(
        "a bump leaves the mark claimed",
        "G28",
        "src/fence/mark.rs",
        &[[
            "VALUES (?1, '', ?2, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?3) ON CONFLICT (resource) DO UPDATE SET \\ lease = '',",
            "VALUES (?1, coalesce(?3, ''), ?2, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?3) ON CONFLICT (resource) DO UPDATE SET \\\n lease = coalesce(?3, ''),",
        ]],
        &["fence_bumps::"],
    ),
    row(
        "a guarded table takes a write of a term that has not claimed",
        "S5",
        "src/fence/table.rs",
        &[[
            "AND lease <> '' AND token = {token})",
            "AND lease <> '' AND token <= {token})",
        ]],
        &["fenced_table::"],
    ),
    row(
        "a claim asks for no later grant where there is no mark",
        "G6",
        "src/fence/mark.rs",
        &[[
            "Some(highest) => Horizon::Granted(highest),",
            "Some(_) => Horizon::Clock(horizon(wall_clock_ms(), from)),",
        ]],
        &["fence::", "fence_bumps::", "fence_marks::"],
    ),
    row(
        "a term is admitted in a file that was moved away",
        "S7",
        "src/fence/enter.rs",
        &[[
            "let lock = unless_locked(transaction::write(connection, |_| Ok(())))?;",
            "let lock = None;",
        ]],
        &["moved_files::"],
    ),
    row(
        "a term is admitted although a later one has claimed in the file at the path",
        "S7",
        "src/fence/enter.rs",
        &[[
            "let kept = unless_locked(mark::kept(connection, resource))?; let lock",
            "let kept: Option<Option<mark::Kept>> = None; let lock",
        ]],
        &["moved_files::"],
    ),
    row(
        "a write that has waited does not insist",
        "S3",
        "src/insistence.rs",
        &[["if waited < AFTER ||", "if waited < Duration::MAX ||"]],
        INSISTENCE,
    ),
    row(
        "a write insists for ever",
        "S3",
        "src/insistence.rs",
        &[[
            "if is_over(&outcome) || Instant::now() >= end {",
            "if is_over(&outcome) || Instant::now() >= end + Duration::from_secs(3_600) {",
        ]],
        INSISTENCE,
    ),
    row(
        "two writes of a handle insist at a time",
        "S3",
        "src/insistence.rs",
        &[[
            "patience.insists.swap(true, Ordering::SeqCst) {",
            "patience.insists.swap(true, Ordering::SeqCst) && waited.is_zero() {",
        ]],
        INSISTENCE,
    ),
    row(
        "two handles of a file insist at a time",
        "S3",
        "src/insistence.rs",
        &[["if !log.reserve() {", "if !log.reserve() && waited.is_zero() {"]],
        INSISTENCE,
    ),
    row(
        "a turn to insist is kept from those who come after",
        "S3",
        "src/insistence.rs",
        &[["log.give_back();", "let _ = log;"]],
        INSISTENCE,
    ),
    row(
        "a write that was given up insists on",
        "S3",
        "src/insistence.rs",
        &[["drop(locked(&self.0).take());", "drop(locked(&self.0));"]],
        INSISTENCE,
    ),
    row(
        "a file that is itself a mount is elected in",
        "S8",
        "src/only_path.rs",
        &[[
            "let mounted = is_mount(path).map_err(",
            "let mounted = is_mount(path).map(|_| false).map_err(",
        ]],
        &["other_paths::"],
    ),
    row(
        "a fence is opened on whatever file system",
        "S9",
        "src/fence/connection.rs",
        &[[
            "filesystem::check(file_system, &database, options.trust).map_err(Trouble::Told)?;",
            "drop(filesystem::check(file_system, &database, options.trust));",
        ]],
        &["file_systems::"],
    ),
    row(
        "a network file system is taken for this machine's",
        "S9",
        "../local/src/file_system.rs",
        &[[
            "(0x6969, FileSystem::Network(\"NFS\")),",
            "(0x6969, FileSystem::Local(\"NFS\")),",
        ]],
        &["filesystem::"],
    ),
    row(
        "no file is seen to be a mount",
        "S8",
        "../local/src/mount.rs",
        &[[
            "return Ok(file.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));",
            "return Ok(false);",
        ]],
        &["other_paths::"],
    ),
    row(
        "what was given back is listed as held",
        "L11",
        "src/listing.rs",
        &[["(?3 OR released = 0)", "(?3 OR released <> 0)"]],
        &["conformance::what_is", "conformance::last_page"],
    ),
    row(
        "a lease that was given back is not asked what it has granted",
        "G26",
        "src/fence/mark.rs",
        &[[
            "SELECT token FROM lease WHERE name = ?1",
            "SELECT token FROM lease WHERE name = ?1 AND released = 0",
        ]],
        &["fence_marks::"],
    ),
    row(
        "a fence whose leases are elsewhere goes by an old record beside its marks",
        "G26",
        "src/fence/mark.rs",
        &[[
            "if leases == Leases::Elsewhere {\n        return Ok(None);",
            "if leases == Leases::Elsewhere && lease.as_str().is_empty() {\n        return Ok(None);",
        ]],
        &["fence_bumps::"],
    ),
    row(
        "a sighting from the future counts",
        "S2",
        "src/sighting.rs",
        &[[
            ".filter(|seen| *seen <= clock.now))",
            ".filter(|seen| *seen <= clock.now || *seen > clock.now))",
        ]],
        &["other_boots::"],
    ),
];
