//! Every case function is listed, so that every store runs it.

use std::collections::BTreeSet;
use tenure_conformance::CASES;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cases");

#[test]
fn every_case_function_is_listed() {
    let mut written = BTreeSet::new();
    for entry in std::fs::read_dir(SOURCES).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let group = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let names = source
            .lines()
            .filter_map(case_name)
            .map(|name| (group.clone(), name.to_owned()));
        written.extend(names);
    }
    let listed: BTreeSet<_> = CASES
        .iter()
        .map(|case| (case.group.to_owned(), case.name.to_owned()))
        .collect();
    assert_eq!(
        listed, written,
        "add the missing case to src/list.rs, or remove it"
    );
    assert_eq!(listed.len(), CASES.len(), "a case is listed twice");
}

/// The name of the case that a line begins: a function, or an entry of the table in `unreadable.rs`.
fn case_name(line: &str) -> Option<&str> {
    let function = line
        .strip_prefix("pub async fn ")
        .and_then(|rest| rest.split_once('('));
    let entry = || line.strip_suffix(';')?.strip_prefix("    ")?.split_once(" => ");
    let (name, _) = function.or_else(entry)?;
    let is_name = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    name.bytes().all(is_name).then_some(name)
}
