//! The fence in a process: who is admitted and what a claim waits for, what is on disk when, and who has the
//! file.

use super::{Wrong, row};

const CLAIMS: &[&str] = &["claims::"];
/// Without those that contend until each has had its turn: where none is refused, that may take for ever.
const ONE_BY_ONE: &[&str] = &["claims::a_mark_", "claims::a_bumped_mark_", "claims::tokens_"];
const FILE: &[&str] = &["file::"];
const REFUSALS: &[&str] = &["refusals::"];
/// Which sync fails is told one by one to a disk that the unit tests watch.
const DISK: &[&str] = &["disk::"];

/// Where terms are mixed up the count of those who are inside may be wrong, too: then a test is to fail, not
/// the process to abort.
const LEAVES_ANYHOW: [&str; 2] = [
    "state.earlier -= 1;",
    "state.earlier = state.earlier.saturating_sub(1);",
];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "a term that was succeeded is admitted",
        "G6",
        "src/gate.rs",
        &[
            [
                "if let Err(refused) = decide_entry(&self.resource, term, state.lease.as_ref(), state.mark) {",
                "if let Err(refused) = decide_entry(&self.resource, term, state.lease.as_ref(), state.mark.min(Some(term.token))) {",
            ],
            LEAVES_ANYHOW,
        ],
        ONE_BY_ONE,
    ),
    row(
        "a term that was succeeded claims",
        "G6",
        "src/gate.rs",
        &[[
            "decide_claim(&self.resource, term, state.lease.as_ref(), state.mark, limit)",
            "decide_claim(&self.resource, term, state.lease.as_ref(), state.mark.min(Some(term.token)), limit)",
        ]],
        CLAIMS,
    ),
    row(
        "a claim does not raise the mark",
        "G6",
        "src/gate.rs",
        &[
            [
                "self.mark = Some(token);",
                "self.mark = self.mark.or(Some(token));",
            ],
            LEAVES_ANYHOW,
        ],
        ONE_BY_ONE,
    ),
    row(
        "a claim does not wait for what was admitted",
        "S6",
        "src/gate.rs",
        &[
            ["if self.lock().earlier > 0 {", "if false {"],
            ["Ok(()) if state.earlier > 0 =>", "Ok(()) if false =>"],
        ],
        CLAIMS,
    ),
    row(
        "a claim that has waited too long is told as made",
        "S6",
        "src/gate.rs",
        &[["Ok(()) if state.earlier > 0 =>", "Ok(()) if false =>"]],
        CLAIMS,
    ),
    row(
        "a claim that was overtaken while it waited is told as made",
        "G6",
        "src/gate.rs",
        &[[
            "Err(refused) => Err(state.refuse(refused)),",
            "Err(_) => Ok(Claimed::Raised { from: state.previous }),",
        ]],
        CLAIMS,
    ),
    row(
        "a claim that a later one has ended opens the gate to it",
        "S6",
        "src/gate.rs",
        &[[
            "Err(refused) => Err(state.refuse(refused)),",
            "Err(refused) => { state.open = true; Err(state.refuse(refused)) }",
        ]],
        &["claims::", "disk::"],
    ),
    row(
        "a term is admitted while its claim is under way",
        "S6",
        "src/gate.rs",
        &[[
            "self.mark = Some(token); self.open = false;",
            "self.mark = Some(token); self.open = true;",
        ]],
        CLAIMS,
    ),
    row(
        "a bumped mark lets its own number in",
        "G28",
        "src/gate.rs",
        &[[
            "state.raise_to(token); state.bumped = true;",
            "state.raise_to(token); state.open = true;",
        ]],
        CLAIMS,
    ),
    row(
        "a bumped mark lets its own number in once the file is read again",
        "G28",
        "src/file.rs",
        &[["\"bumped\" => true,", "\"bumped\" => false,"]],
        FILE,
    ),
    row(
        "a bump is told before it is in the file",
        "G28",
        "src/watermark.rs",
        &[[
            "gate.bump(bump, clock_ms())?; self.keep().await?;",
            "gate.bump(bump, clock_ms())?;",
        ]],
        FILE,
    ),
    row(
        "the terms of another lease claim",
        "G26",
        "src/gate.rs",
        &[[
            "decide_claim(&self.resource, term, state.lease.as_ref(), state.mark, limit)",
            "decide_claim(&self.resource, term, None, state.mark, limit)",
        ]],
        CLAIMS,
    ),
    row(
        "a token from the future claims",
        "G26",
        "src/watermark.rs",
        &[[
            "u64::try_from(since.as_millis()).unwrap_or(u64::MAX)",
            "u64::try_from(since.as_millis()).unwrap_or(u64::MAX) + (1 << 40)",
        ]],
        CLAIMS,
    ),
    row(
        "a token from the future claims where there is a mark",
        "G26",
        "src/gate.rs",
        &[[
            "Horizon::Clock(horizon(clock_ms, state.mark))",
            "Horizon::Clock(horizon(clock_ms + (1 << 40), state.mark))",
        ]],
        CLAIMS,
    ),
    row(
        "a claim does not sync its new file",
        "S6",
        "src/file.rs",
        &[[
            "file.write_all(bytes)?; disk.sync(&file)",
            "let _ = disk; file.write_all(bytes)",
        ]],
        DISK,
    ),
    row(
        "a claim does not sync the name of its new file",
        "S6",
        "src/file.rs",
        &[[
            "std::fs::rename(&fresh, &self.path) .and_then(|()| sync_name(&self.path, &*self.disk)) .map_err(failed)",
            "std::fs::rename(&fresh, &self.path).map_err(failed)",
        ]],
        DISK,
    ),
    row(
        "an opening does not sync the file",
        "S6",
        "src/file.rs",
        &[[
            "disk.sync(&file)?; sync_name(path, disk)?;",
            "sync_name(path, disk)?;",
        ]],
        DISK,
    ),
    row(
        "an opening does not sync the name of the file",
        "S6",
        "src/file.rs",
        &[["disk.sync(&file)?; sync_name(path, disk)?;", "disk.sync(&file)?;"]],
        DISK,
    ),
    row(
        "the file is written over in its place",
        "S6",
        "src/file.rs",
        &[[
            "let fresh = beside(&self.path, \".new\");",
            "let fresh = self.path.clone();",
        ]],
        &["file::", "disk::"],
    ),
    row(
        "the new file is written beside the old one and left there",
        "S6",
        "src/file.rs",
        &[["std::fs::rename(&fresh, &self.path)", "Ok(())"]],
        FILE,
    ),
    row(
        "no lock is taken",
        "S6",
        "src/lock.rs",
        &[["match file.try_lock() {", "match Ok::<(), TryLockError>(()) {"]],
        FILE,
    ),
    row(
        "a lock that was removed since is taken for one that is held",
        "S6",
        "src/lock.rs",
        &[[
            "Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false), found => found?,",
            "Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true), found => found?,",
        ]],
        &["file::", "disk::"],
    ),
    row(
        "a lock that was replaced since is taken for one that is held",
        "S6",
        "src/lock.rs",
        &[[
            "Ok(identity(&found) == identity(&self.file.metadata()?))",
            "Ok(identity(&found).0 == identity(&self.file.metadata()?).0)",
        ]],
        FILE,
    ),
    row(
        "the lock is not looked at again once the disk has answered",
        "S6",
        "src/file.rs",
        &[["self.must_be_alone()?; std::fs::rename", "std::fs::rename"]],
        DISK,
    ),
    row(
        "a damaged file is read as one without marks",
        "G6",
        "src/file.rs",
        &[[
            "parse(bytes).map_err(|why| {",
            "parse(bytes).or_else(|_| Ok::<_, &str>(Vec::new())).map_err(|why| {",
        ]],
        FILE,
    ),
    row(
        "the checksum is not compared",
        "S6",
        "src/file.rs",
        &[[
            "if u32::from_str_radix(checksum, 16) != Ok(crc32fast::hash(summed)) {",
            "if u32::from_str_radix(checksum, 16).is_err() && summed.is_empty() {",
        ]],
        FILE,
    ),
    row(
        "a file with a second name is opened",
        "S6",
        "src/place.rs",
        &[["found.nlink() > 1", "found.nlink() > 2"]],
        FILE,
    ),
    row(
        "a refusal is not counted",
        "G27",
        "src/gate.rs",
        &[[
            "self.refused = self.refused.saturating_add(1);",
            "self.refused = self.refused.saturating_add(0);",
        ]],
        &["claims::", "refusals::"],
    ),
    row(
        "a refusal comes into the file with the next claim",
        "G27",
        "src/watermark.rs",
        &[["self.saver.refused(&self.marks, refusal);", "let _ = refusal;"]],
        REFUSALS,
    ),
    row(
        "a refusal that the disk did not take is not saved again",
        "G27",
        "src/saver.rs",
        &[["self.lock().refused = true; pause", "pause"]],
        REFUSALS,
    ),
    row(
        "a file that is itself a mount is opened",
        "S6",
        "src/place.rs",
        &[[
            "let mounted = is_mount(path).map_err(",
            "let mounted = is_mount(path).map(|_| false).map_err(",
        ]],
        &["places::"],
    ),
    row(
        "a file is opened on whatever file system",
        "S6",
        "src/file.rs",
        &[[
            "place::must_be_of_this_machine(&path, trust)?;",
            "drop(place::must_be_of_this_machine(&path, trust));",
        ]],
        &["places::"],
    ),
    row(
        "a network file system is taken where it is trusted",
        "S6",
        "src/place.rs",
        &[[
            "| (FileSystem::Program(_), FileSystemTrust::Trusted) => Ok(()),",
            "| (FileSystem::Program(_) | FileSystem::Network(_), FileSystemTrust::Trusted) => Ok(()),",
        ]],
        &["place::", "places::"],
    ),
    row(
        "a term passes by memory though another may have the marks",
        "S6",
        "src/watermark.rs",
        &[[
            "admitted.and_then(|_| self.must_not_be_elsewhere(resource, term));",
            "admitted.map(|_| drop(self.must_not_be_elsewhere(resource, term)));",
        ]],
        &["places::"],
    ),
    row(
        "a claim that was made before is told as made though another may have the marks",
        "S6",
        "src/watermark.rs",
        &[["self.0.marks.must_be_alone()?;", ""]],
        &["places::"],
    ),
    row(
        "a claim that gets no thread is written by nobody",
        "S6",
        "src/writer.rs",
        &[[
            "            Err(_no_thread) => {\n                drop(thread);\n                self.line.write_while_awaited(marks);\n            }",
            "            Err(no_thread) => panic!(\"{no_thread}\"),",
        ]],
        &["places::"],
    ),
];
