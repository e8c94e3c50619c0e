//! What a user must be able to name without the crate of the core: whatever a public signature says.
//!
//! At the root are left out the words of stores: who writes one takes them from `tenure::contract`, and
//! nobody else says them.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What their authors implement: whoever uses it need not name what it says.
const IMPLEMENTED: [&str; 2] = ["LeaseStore", "LeasePurge"];

/// What they fill in, and are handed.
const OF_STORES: [&str; 2] = ["StoreTraits", "Work"];

/// What of the core is nobody's but the engine's and its drivers', checkers and simulators: none of it is
/// public here.
const OF_ENGINES: [&str; 20] = [
    "Actions",
    "Belief",
    "Command",
    "Decide",
    "Decision",
    "Engine",
    "Input",
    "Need",
    "Operation",
    "Rename",
    "Reply",
    "Request",
    "RequestId",
    "Response",
    "Round",
    "Seen",
    "Sightings",
    "Wake",
    "WakeReason",
    "CONFLICTS_MAX",
];

/// What says how often whoever takes part asks: at the root, and no word of a contract.
const OF_TIMING: [&str; 5] = ["Promises", "Timing", "TimingError", "TimingOptions", "Violation"];

const ROOT: &str = include_str!("../src/lib.rs");
const CONTRACT: &str = include_str!("../src/contract.rs");
const TOOLING: &str = include_str!("../src/tooling.rs");
const CORE: &str = include_str!("../../core/src/lib.rs");

fn read(folder: &str) -> String {
    let mut text = String::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let apart = |sign: char| !sign.is_alphanumeric() && sign != '_';
    text.split(apart).filter(|word| !word.is_empty())
}

/// What a crate or a module re-exports.
fn uses(text: &str) -> BTreeSet<&str> {
    let lists = text
        .split("pub use ")
        .skip(1)
        .filter_map(|rest| rest.split(';').next());
    lists.flat_map(words).collect()
}

/// What is named in capitals of what a crate re-exports: its modules have the names of parameters.
fn names(text: &str) -> BTreeSet<&str> {
    let mut names = uses(text);
    names.retain(|word| word.starts_with(char::is_uppercase));
    names
}

/// What the fields, variants and methods of each public type say, and the functions beside them.
fn public_words(code: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found = BTreeMap::<&str, BTreeSet<&str>>::new();
    let mut lines = code.lines();
    while let Some(first) = lines.next() {
        let Some((name, shows)) = begins(first) else {
            continue;
        };
        let said = found.entry(name).or_default();
        if shows == Shows::ItsFirstLine || first.contains("(pub ") {
            said.extend(words(first));
        }
        if first.ends_with([';', '}']) {
            continue;
        }
        let mut is_signature = false;
        for line in lines.by_ref().take_while(|line| *line != "}") {
            let text = line.trim_start();
            // As the sources are formatted, what belongs to the type itself.
            let is_member = line.len() - text.len() == 4;
            is_signature |= is_member && text.starts_with("pub ");
            let is_shown = is_signature || shows == Shows::Everything;
            if is_shown && !text.starts_with("//") {
                // The name of a variant is no type.
                let is_variant = is_member && text.starts_with(char::is_uppercase);
                let types = match is_variant {
                    true => text.split_once('(').map_or("", |(_, types)| types),
                    false => text,
                };
                said.extend(words(types));
            }
            is_signature &= !(is_member && text.ends_with([',', ';', '{', '}']));
        }
    }
    found
}

/// What of an item is public.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Everything,
    ItsFirstLine,
    WhatSaysSo,
}

/// The name of what begins in this line.
fn begins(line: &str) -> Option<(&str, Shows)> {
    let kinds = [
        ("pub enum ", Shows::Everything),
        ("pub trait ", Shows::Everything),
        ("pub type ", Shows::ItsFirstLine),
        ("pub fn ", Shows::ItsFirstLine),
        ("pub async fn ", Shows::ItsFirstLine),
        ("pub struct ", Shows::WhatSaysSo),
        ("impl ", Shows::WhatSaysSo),
    ];
    let of = |(kind, shows)| Some((line.strip_prefix(kind)?, shows));
    let (rest, shows) = kinds.into_iter().find_map(of)?;
    (!rest.contains(" for ")).then_some((words(rest).next()?, shows))
}

#[test]
fn whatever_a_public_signature_says_can_be_named_at_the_root() {
    let (own, core) = (read("tenure/src"), read("core/src"));
    let mut at_root = uses(ROOT);
    at_root.extend(uses(TOOLING));
    let of_core = names(CORE);
    let mut all = public_words(&core);
    for (name, said) in public_words(&own) {
        all.entry(name).or_default().extend(said);
    }
    let mut waiting: Vec<&str> = at_root.iter().copied().collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if IMPLEMENTED.contains(&name) || !seen.insert(name) {
            continue;
        }
        let said = all.get(name).into_iter().flatten().copied();
        for said in said.filter(|said| of_core.contains(said) && !OF_STORES.contains(said)) {
            assert!(
                at_root.contains(said),
                "{name} says {said}, which is neither at the root of the crate nor in tooling"
            );
            waiting.push(said);
        }
    }
    // By a function, a field, a variant and a method.
    for (name, says) in [
        ("default_candidate_id", "CandidateId"),
        ("StoreError", "Fault"),
        ("BuildError", "NoteTooLong"),
        ("Lease", "Occupancy"),
    ] {
        assert!(
            seen.contains(name) && all[name].contains(says),
            "{name} is not read"
        );
    }
}

#[test]
fn the_contract_has_all_words_of_the_core_but_those_of_the_engine() {
    let (mut of_core, contract) = (names(CORE), names(CONTRACT));
    for word in OF_ENGINES.iter().chain(&OF_TIMING) {
        assert!(of_core.remove(word), "{word} is no word of the core any more");
    }
    assert_eq!(contract, of_core);
    let core = read("core/src");
    let all = public_words(&core);
    for (name, said) in all.iter().filter(|(name, _)| contract.contains(*name)) {
        for word in OF_ENGINES {
            assert!(!said.contains(word), "{name} says {word}, which nobody can name");
        }
    }
}
