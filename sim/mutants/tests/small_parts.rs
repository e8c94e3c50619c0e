//! The whole way of a wrong statement, on a crate small enough to be built in a test: copy, plant, build,
//! test, judge.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_mutants::{
    Error, PARTS_TABLE, Part, PartOptions, PartOutcome, PartRow, check_part_rows, parts_table, run_parts,
    write_parts_table,
};

const STATEMENT: &str = "crates/tiny/src/sum.sql";

const FILES: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/tiny\", \"unrelated\"]\n",
    ),
    (
        "crates/tiny/Cargo.toml",
        "[package]\nname = \"tenure-tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [[test]]\nname = \"tests\"\npath = \"tests/main.rs\"\n",
    ),
    (STATEMENT, "SELECT a + b\n"),
    (
        "crates/tiny/src/lib.rs",
        r#"//! Sums.

/// The sum, as the statement says.
pub fn sum(a: u32, b: u32) -> u32 {
    match include_str!("sum.sql").trim() {
        "SELECT a + b" | "SELECT b + a" => a + b,
        "SELECT a * b" => a * b,
        "WAIT" => loop {
            std::thread::park();
        },
        "CRASH" => std::process::abort(),
        _ => panic!("sum \"a\" through the first client failed: Internal, Unknown: no statement"),
    }
}

/// What is left.
pub fn rest(a: u32, b: u32) -> u32 {
    a - b
}

#[cfg(test)]
mod tests {
    #[test]
    fn rest_is_what_is_left() {
        assert_eq!(super::rest(5, 3), 2);
    }
}
"#,
    ),
    ("crates/tiny/tests/main.rs", "mod rules;\nmod sums;\n"),
    (
        "crates/tiny/tests/sums.rs",
        "#[test]\nfn sum_is_of_both() {\n    assert_eq!(tenure_tiny::sum(2, 3), 5);\n}\n\n#[test]\nfn sum_of_like_ones() {\n    assert_eq!(tenure_tiny::sum(2, 2), 4);\n}\n",
    ),
    (
        "crates/tiny/tests/rules.rs",
        "#[test]\nfn nothing_is_asked() {}\n",
    ),
    ("unrelated/Cargo.toml", "this would not be read"),
    ("sim/mutants/TABLE.md", "The folder of the table."),
];

/// A workspace of its own for each test, removed with it.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(fs::remove_dir_all(&root));
        let workspace = Self(root);
        for (file, text) in FILES {
            workspace.write(file, text);
        }
        workspace
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn options(&self, rows: &'static [PartRow]) -> PartOptions {
        PartOptions {
            workspace: self.0.clone(),
            rows,
            limit: Duration::from_secs(20),
            ..PartOptions::default()
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

const TINY: &Part = &Part {
    name: "tiny",
    folder: "crates/tiny",
    package: "tenure-tiny",
    arguments: &["--lib"],
};

const fn row(name: &'static str, edits: &'static [[&'static str; 2]]) -> PartRow {
    PartRow {
        part: TINY,
        name,
        guarantee: "G4",
        file: "src/sum.sql",
        edits,
        noticed_by: &["sums::"],
    }
}

const CAUGHT: PartRow = row("a sum is a product", &[["a + b", "a * b"]]);

fn outcome(workspace: &Workspace, rows: &'static [PartRow]) -> PartOutcome {
    run_parts(&workspace.options(rows), &mut |_| ()).unwrap()[0]
        .outcome
        .clone()
}

#[test]
fn wrong_statement_is_caught_by_the_test_that_notices_it_or_survives() {
    const ROWS: &[PartRow] = &[
        CAUGHT,
        row(
            "a sum is turned around",
            &[["SELECT a", "SELECT b"], ["+ b", "+ a"]],
        ),
        row("a sum is no statement", &[["SELECT", "SELEKT"]]),
        PartRow {
            file: "src/lib.rs",
            ..row("a sum is a text", &[["=> a + b,", "=> \"five\","]])
        },
    ];
    let workspace = Workspace::new("wrong_statement_is_caught");
    let mut steps = 0;
    let verdicts = run_parts(&workspace.options(ROWS), &mut |_| steps += 1).unwrap();
    let outcomes: Vec<_> = verdicts.iter().map(|verdict| &verdict.outcome).collect();
    let [
        PartOutcome::Caught { by, .. },
        PartOutcome::Survived,
        PartOutcome::Failed { why },
        PartOutcome::DoesNotCompile { words },
    ] = &outcomes[..]
    else {
        panic!("{outcomes:?}")
    };
    assert_eq!(by, &["sums::sum_is_of_both"]);
    assert!(why.starts_with("no test passes"), "{why}");
    assert!(words.contains("mismatched types"), "{words}");
    assert!(steps > verdicts.len(), "progress is told");
    for shown in [
        "\n## tiny\n",
        "| a sum is a product | G4 | `src/sum.sql` | `sums::sum_is_of_both` | 1 |",
        "**nobody**",
        "**error**",
        "**does not compile**",
        "\n1 of 4 caught.\n",
    ] {
        let table = parts_table(ROWS, &verdicts, "");
        assert!(table.contains(shown), "{shown} is missing in:\n{table}");
    }
    // The sources are as they were.
    assert_eq!(
        fs::read_to_string(workspace.0.join(STATEMENT)).unwrap(),
        "SELECT a + b\n"
    );
}

/// With the program beside it, which passes: what one of them says is not all.
#[test]
fn unit_test_notices_too() {
    const ROWS: &[PartRow] = &[PartRow {
        file: "src/lib.rs",
        noticed_by: &["tests::", "sums::"],
        ..row("a rest is a sum", &[["a - b", "a + b"]])
    }];
    let workspace = Workspace::new("unit_test_notices");
    let outcome = outcome(&workspace, ROWS);
    assert!(
        matches!(&outcome, PartOutcome::Caught { by, .. } if by == &["tests::rest_is_what_is_left"]),
        "{outcome:?}"
    );
}

#[test]
fn statement_by_which_the_tests_hang_is_ended_and_is_no_catch() {
    const ROWS: &[PartRow] = &[row("a sum never comes", &[["SELECT a + b", "WAIT"]])];
    let workspace = Workspace::new("statement_by_which_the_tests_hang");
    assert_eq!(outcome(&workspace, ROWS), PartOutcome::TimeUp);
}

#[test]
fn statement_by_which_the_tests_crash_is_no_catch() {
    const ROWS: &[PartRow] = &[row("a sum is the end", &[["SELECT a + b", "CRASH"]])];
    let workspace = Workspace::new("statement_by_which_the_tests_crash");
    let outcome = outcome(&workspace, ROWS);
    assert!(
        matches!(&outcome, PartOutcome::Failed { why } if why.starts_with("a signal")),
        "{outcome:?}"
    );
}

#[test]
fn statement_that_the_server_refuses_is_no_catch_though_other_tests_pass() {
    const ROWS: &[PartRow] = &[PartRow {
        noticed_by: &["sums::", "rules::"],
        ..row("a sum is no statement", &[["SELECT", "SELEKT"]])
    }];
    let workspace = Workspace::new("statement_that_the_server_refuses");
    let outcome = outcome(&workspace, ROWS);
    let told = "sums::sum_is_of_both fails by its server: ";
    assert!(
        matches!(&outcome, PartOutcome::Failed { why } if why.starts_with(told)),
        "{outcome:?}"
    );
}

#[test]
fn copy_that_fails_without_a_bug_proves_nothing() {
    const ROWS: &[PartRow] = &[CAUGHT];
    let workspace = Workspace::new("copy_that_fails_without_a_bug");
    workspace.write(STATEMENT, "SELECT a * b -- not a + b\n");
    let errors = run_parts(&workspace.options(ROWS), &mut |_| ()).unwrap_err();
    assert!(
        matches!(&errors[..], [Error::NotCleanWithoutBugs { .. }]),
        "{errors:?}"
    );
}

#[test]
fn row_that_names_no_test_is_told_of() {
    const ROWS: &[PartRow] = &[PartRow {
        noticed_by: &["sums::", "products::"],
        ..CAUGHT
    }];
    let workspace = Workspace::new("row_that_names_no_test");
    let errors = run_parts(&workspace.options(ROWS), &mut |_| ()).unwrap_err();
    let begins = "products::";
    assert_eq!(
        errors,
        [Error::NoTest {
            row: CAUGHT.name,
            begins
        }]
    );
}

#[test]
fn rows_that_are_out_of_date_or_of_one_name_stop_everything_before_the_build() {
    const ROWS: &[PartRow] = &[CAUGHT, row(CAUGHT.name, &[["a - b", "a + b"]])];
    let workspace = Workspace::new("rows_that_are_out_of_date");
    let errors = run_parts(&workspace.options(ROWS), &mut |_| ()).unwrap_err();
    let found = 0;
    let (row, file) = (CAUGHT.name, CAUGHT.file);
    assert_eq!(
        errors,
        [Error::SameName(row), Error::OutOfDate { row, file, found }]
    );
    assert!(!workspace.0.join("target").exists());
    assert!(
        check_part_rows(&[CAUGHT], |_| Some("a + b, a + b".to_owned())).is_err(),
        "twice"
    );
}

#[test]
fn unknown_part_or_row_is_named() {
    const ROWS: &[PartRow] = &[CAUGHT];
    let workspace = Workspace::new("unknown_part_or_row");
    let other = "huge".to_owned();
    for (part, only) in [
        (Some(other.clone()), Vec::new()),
        (None, vec!["sum".to_owned(), other]),
    ] {
        let options = PartOptions {
            part,
            only,
            ..workspace.options(ROWS)
        };
        let errors = run_parts(&options, &mut |_| ()).unwrap_err();
        assert_eq!(errors, [Error::UnknownRow("huge".to_owned())]);
    }
}

#[test]
fn table_keeps_the_rows_that_were_not_tried_and_drops_those_that_are_gone() {
    const OTHER: PartRow = PartRow {
        part: &Part {
            name: "small",
            ..*TINY
        },
        ..row("a product is a sum", &[["a * b", "a + b"]])
    };
    const ROWS: &[PartRow] = &[CAUGHT, row("a sum is nothing", &[["a + b", "0"]]), OTHER];
    const BEFORE: &str = "# Head\n\n## small\n\n| wrong | breaks |\n|---|---|\n| a product is a sum | G1 | `x` |\n\n0 of 9 caught.\n\n\
        ## tiny\n\n| a sum is gone | G1 | `x` |\n| a sum is a product | G1 | `x` |\n| a sum is nothing | G1 | `x` |\n";
    let verdict = tenure_mutants::PartVerdict {
        row: &CAUGHT,
        outcome: PartOutcome::Survived,
    };
    let workspace = Workspace::new("table_keeps_the_rows");
    workspace.write(PARTS_TABLE, BEFORE);
    for _again in 0..2 {
        write_parts_table(&workspace.0, ROWS, std::slice::from_ref(&verdict)).unwrap();
    }
    let table = fs::read_to_string(workspace.0.join(PARTS_TABLE)).unwrap();
    let lines: Vec<&str> = table.lines().filter(|line| line.starts_with("| a ")).collect();
    assert_eq!(
        lines,
        [
            "| a product is a sum | G1 | `x` |",
            "| a sum is a product | G4 | `src/sum.sql` | **nobody** |  |  |",
            "| a sum is nothing | G1 | `x` |",
        ]
    );
    assert!(table.contains("\n1 of 1 caught.\n\n## tiny\n"), "{table}");
    assert!(table.ends_with("\n1 of 2 caught.\n"), "{table}");
}
