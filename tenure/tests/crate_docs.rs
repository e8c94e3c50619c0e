//! The tables of the crate's documentation say what is there.
use std::collections::BTreeSet;

const DOCS: &str = include_str!("../src/lib.rs");
const MANIFEST: &str = include_str!("../Cargo.toml");

/// The words in code of the table of features, by the column.
fn words_of_features(column: usize) -> BTreeSet<&'static str> {
    let section = DOCS.split("//! # Features\n").nth(1).unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with("//! |"));
    let rows = lines.take_while(|line| line.starts_with("//! |"));
    let cells = rows.filter_map(|row| row.split('|').nth(column));
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn the_table_of_features_names_those_of_the_manifest() {
    let features = MANIFEST.split("\n[features]\n").nth(1).unwrap();
    let lines = features.lines().take_while(|line| !line.starts_with('['));
    let named = lines.filter_map(|line| line.split_once(" = ["));
    let features: BTreeSet<&str> = named
        .map(|(name, _)| name)
        .filter(|name| *name != "default")
        .collect();
    assert_eq!(words_of_features(1), features);
}

#[test]
#[cfg(all(
    feature = "sqlite",
    feature = "mongodb",
    feature = "postgres",
    feature = "mysql",
    feature = "redis",
    feature = "etcd",
    feature = "nats"
))]
fn the_table_of_features_names_every_scheme() {
    let told = words_of_features(3);
    let schemes: BTreeSet<&str> = told
        .iter()
        .filter_map(|begin| begin.split_once(':'))
        .map(|(scheme, _)| scheme)
        .collect();
    let known = tenure::Registry::compiled_in();
    assert_eq!(schemes, known.schemes().collect());
}
