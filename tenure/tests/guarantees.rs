//! GUARANTEES.md names a test for every promise; a name that no test has is a promise without one.
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

#[test]
fn every_test_that_a_guarantee_names_exists() {
    let mut code = String::new();
    sources(&workspace(), &mut code);
    let guarantees = std::fs::read_to_string(workspace().join("GUARANTEES.md")).unwrap();
    let mut named = 0;
    for line in guarantees.lines().filter(|line| {
        [
            "| G", "| C", "| E", "| L", "| S", "| M", "| N", "| P", "| R", "| Y", "| H",
        ]
        .iter()
        .any(|start| line.starts_with(start))
    }) {
        let tests = line.rsplit('|').nth(1).unwrap();
        let names: Vec<&str> = tests
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| !name.contains(' '))
            .collect();
        assert!(!names.is_empty(), "a promise without a test: {line}");
        for name in names {
            assert!(
                code.contains(&format!("fn {name}("))
                    || code.contains(&format!("    {name}\n"))
                    || code.contains(&format!("    name: \"{name}\",\n")),
                "no test, case or law {name}, which GUARANTEES.md names"
            );
            named += 1;
        }
    }
    assert!(
        named > 60,
        "only {named} tests are named: is the table still read?"
    );
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
