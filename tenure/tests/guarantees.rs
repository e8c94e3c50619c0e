//! GUARANTEES.md names a test for every promise; a name that no test has is a promise without one.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The names of the tests: of functions whose attributes, right above them, say that they are tests.
fn tests(code: &str) -> BTreeSet<&str> {
    let mut is_test = false;
    let mut found = BTreeSet::new();
    for line in code.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((name, _)) = line
            .trim_start_matches("pub ")
            .trim_start_matches("async ")
            .strip_prefix("fn ")
            .and_then(|named| named.split_once('('))
        {
            if is_test {
                found.insert(name);
            }
            is_test = false;
        } else if !line.starts_with(['#', '/']) {
            is_test = false;
        }
    }
    found
}

/// The names in the list of the suite that every store passes.
fn cases(list: &str) -> BTreeSet<&str> {
    let lines = list.lines().map(str::trim);
    let is_name = |line: &&str| {
        let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_';
        !line.is_empty() && line.chars().all(fits)
    };
    lines.filter(is_name).collect()
}

/// The laws that the simulator watches.
fn laws(code: &str) -> BTreeSet<&str> {
    let lines = code.lines().map(str::trim);
    let names = lines.filter_map(|line| line.strip_prefix("name: \"")?.strip_suffix("\","));
    names.collect()
}

#[test]
fn every_test_that_a_guarantee_names_exists() {
    let read = |path: &str| {
        let mut code = String::new();
        sources(&workspace().join(path), &mut code);
        code
    };
    let list = |file: &str| std::fs::read_to_string(workspace().join("conformance/src").join(file)).unwrap();
    let (list, wire) = (list("list.rs"), list("wire.rs"));
    let (code, invariants) = (read(""), read("sim/src/invariants"));
    let (mut tests, listed, laws) = (tests(&code), cases(&list), laws(&invariants));
    // What is asked of the stores behind a proxy becomes a test of each by a macro.
    tests.extend(cases(&wire));
    assert!(
        listed.len() > 100 && laws.len() > 20,
        "{} cases and {} laws: are they still read?",
        listed.len(),
        laws.len()
    );
    let guarantees = std::fs::read_to_string(workspace().join("GUARANTEES.md")).unwrap();
    let mut named = 0;
    for line in guarantees.lines().filter(|line| {
        [
            "| G", "| C", "| E", "| L", "| S", "| M", "| N", "| P", "| R", "| Y", "| H",
        ]
        .iter()
        .any(|start| line.starts_with(start))
    }) {
        let before = named;
        for part in line.rsplit('|').nth(1).unwrap().split(';') {
            let (what, known) = match part.trim_start() {
                part if part.starts_with("conformance:") => ("case of the suite", &listed),
                // A command prints them.
                part if part.starts_with("figures:") => continue,
                part if part.starts_with("simulated:") => ("law of the simulator", &laws),
                _ => ("test", &tests),
            };
            for name in part.split('`').skip(1).step_by(2) {
                assert!(
                    known.contains(name),
                    "there is no {what} {name}, which GUARANTEES.md names in: {line}"
                );
                named += 1;
            }
        }
        assert!(named > before, "a promise without a test: {line}");
    }
    assert!(
        named > 60,
        "only {named} tests are named: is the table still read?"
    );
}

/// An empty line ends a table of Markdown: what follows is shown as text.
#[test]
fn every_row_of_the_guarantees_is_part_of_a_table() {
    let guarantees = std::fs::read_to_string(workspace().join("GUARANTEES.md")).unwrap();
    let lines: Vec<&str> = guarantees.lines().collect();
    for pair in lines.windows(2) {
        let begins = pair[1].starts_with("| |");
        assert!(
            !pair[1].starts_with('|') || begins || pair[0].starts_with('|'),
            "no table goes on here: {}",
            pair[1]
        );
    }
}

#[test]
fn every_law_of_the_simulator_stands_in_the_line_of_its_guarantee() {
    let mut code = String::new();
    sources(&workspace().join("sim/src/invariants"), &mut code);
    let guarantees = std::fs::read_to_string(workspace().join("GUARANTEES.md")).unwrap();
    let quoted = |line: &str| line.split('"').nth(1).map(ToOwned::to_owned);
    let names = code
        .lines()
        .filter(|line| line.starts_with("    name: \""))
        .filter_map(quoted);
    let lines = code
        .lines()
        .filter(|line| line.starts_with("    guarantee: \""))
        .filter_map(quoted);
    let laws: Vec<(String, String)> = names.zip(lines).collect();
    assert!(
        laws.len() > 20,
        "only {} laws were found: are they still read?",
        laws.len()
    );
    for (name, number) in laws {
        let line = guarantees
            .lines()
            .find(|line| line.starts_with(&format!("| {number} |")));
        let named = line.is_some_and(|line| line.contains(&format!("`{name}`")));
        assert!(
            named,
            "the law {name} does not stand in line {number} of GUARANTEES.md"
        );
    }
}

/// A crate whose tests are one program names its files in `tests/main.rs`; one that it forgot would be no test.
#[test]
fn every_file_of_tests_is_part_of_its_program() {
    let mut programs = Vec::new();
    mains(&workspace(), &mut programs);
    assert!(programs.len() > 10, "only {} programs were found", programs.len());
    for program in programs {
        let text = std::fs::read_to_string(&program).unwrap();
        for entry in std::fs::read_dir(program.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let is_module = path.join("mod.rs").exists() || path.extension().is_some_and(|it| it == "rs");
            assert!(
                !is_module || stem == "main" || text.lines().any(|line| line == format!("mod {stem};")),
                "{} does not name {stem}",
                program.display()
            );
        }
    }
}

fn mains(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            mains(&path, found);
        } else if path.ends_with("tests/main.rs") {
            found.push(path);
        }
    }
}
