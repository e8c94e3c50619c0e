//! The whole way, on a workspace small enough to be built in a test: copy, plant, build, check.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;
use tenure_mutants::{Checker, Edit, Error, Form, Options, Outcome, Row, run, table};

const FILE: &str = "floor/src/lib.rs";

const MANIFEST: &str = r#"[workspace]
resolver = "3"
members = ["floor", "sim", "unrelated"]

[workspace.dependencies]
floor = { path = "floor", package = "tenure-core" }
"#;

const FLOOR_MANIFEST: &str = "[package]\nname = \"tenure-core\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
const FLOOR: &str = "//! Sums.\n\n/// The sum.\npub fn sum(a: u32, b: u32) -> u32 {\n    a + b // with a remark\n}\n\n/// Waits.\npub fn rest() {\n    drop(());\n}\n";

const SIM_MANIFEST: &str = "[package]\nname = \"tenure-sim\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nfloor.workspace = true\n";
/// The model looks at one sum, the simulator at another.
const SIM: &str = r#"fn main() {
    floor::rest();
    let model = std::env::args().nth(1).as_deref() == Some("model");
    let (a, b) = if model { (2, 2) } else { (3, 0) };
    let sum = floor::sum(a, b);
    if sum != a + b {
        println!("violation: Sum: {a} + {b} gave {sum}");
        println!("replay with: nothing");
        std::process::exit(3);
    }
}
"#;

/// A workspace of its own for each test, removed with it.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Self {
        let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(fs::remove_dir_all(&root));
        for (file, text) in [
            ("Cargo.toml", MANIFEST),
            ("floor/Cargo.toml", FLOOR_MANIFEST),
            (FILE, FLOOR),
            ("sim/Cargo.toml", SIM_MANIFEST),
            ("sim/src/main.rs", SIM),
            ("unrelated/Cargo.toml", "this would not be read"),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(root)
    }

    fn options(&self, rows: &'static [Row]) -> Options {
        Options {
            workspace: self.0.clone(),
            rows,
            only: None,
            limit: Duration::from_secs(60),
            form: Form::Usual,
            workers: NonZero::<usize>::MIN,
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

const fn row(name: &'static str, first: Checker, edits: &'static [Edit]) -> Row {
    Row {
        name,
        catalogue: &[1],
        guarantee: "G1",
        why: "a test",
        first,
        edits,
    }
}

const fn sum_is(planted: &'static str) -> Edit {
    Edit::expression(FILE, "a + b // with a remark", planted)
}

const ROWS: &[Row] = &[
    row("both see it", Checker::Model, &[sum_is("a + b + 1")]),
    row(
        "the model does not see it",
        Checker::Model,
        &[sum_is("a.max(2) * b.max(2)")],
    ),
    row(
        "the simulator does not see it",
        Checker::Simulator,
        &[sum_is("a.max(b)")],
    ),
    row("nobody sees it", Checker::Model, &[sum_is("b + a")]),
    row(
        "it crashes",
        Checker::Model,
        &[sum_is("panic!(\"no sum of {a} and {b}\")")],
    ),
];

#[test]
fn each_bug_is_caught_by_who_can_see_it_and_a_crash_is_no_catch() {
    let workspace = Workspace::new("each_bug_is_caught");
    let mut steps = 0;
    let verdicts = run(&workspace.options(ROWS), &mut |_| steps += 1).unwrap();
    let caught = |index: usize| match &verdicts[index].outcome {
        Outcome::Caught {
            by,
            invariant,
            detail,
            ..
        } => (*by, invariant.as_str(), detail.as_str()),
        other => panic!("{other:?}"),
    };
    assert_eq!(caught(0), (Checker::Model, "Sum", "2 + 2 gave 5"));
    assert_eq!(caught(1), (Checker::Simulator, "Sum", "3 + 0 gave 6"));
    assert_eq!(caught(2), (Checker::Model, "Sum", "2 + 2 gave 2"));
    assert_eq!(verdicts[3].outcome, Outcome::Survived);
    let Outcome::Failed { by: _, why } = &verdicts[4].outcome else {
        panic!("a crash is an error of its own: {:?}", verdicts[4].outcome)
    };
    assert!(why.starts_with("exit code 101: "), "{why}");
    assert!(steps > verdicts.len(), "progress is told");
    let table = table(&verdicts);
    for shown in [
        "| both see it |",
        "| model | Sum |",
        "**nobody**",
        "**error of the",
        "\n3 of 5 caught: 5 in the core.\n",
    ] {
        assert!(table.contains(shown), "{shown} is missing in:\n{table}");
    }
    // The sources are as they were.
    assert_eq!(fs::read_to_string(workspace.0.join(FILE)).unwrap(), FLOOR);
}

#[test]
fn a_bug_that_never_ends_survives_at_the_limit() {
    const ROWS: &[Row] = &[row(
        "it hangs",
        Checker::Model,
        &[Edit::statement(
            FILE,
            "drop(());",
            "loop { std::thread::park(); }",
        )],
    )];
    let workspace = Workspace::new("a_bug_that_never_ends");
    let options = Options {
        limit: Duration::from_millis(300),
        ..workspace.options(ROWS)
    };
    assert_eq!(run(&options, &mut |_| ()).unwrap()[0].outcome, Outcome::Survived);
}

#[test]
fn a_copy_that_is_not_clean_without_bugs_proves_nothing() {
    let workspace = Workspace::new("a_copy_that_is_not_clean");
    let path = workspace.0.join("sim/src/main.rs");
    fs::write(&path, SIM.replace("sum != a + b", "sum != a + b + 1")).unwrap();
    let errors = run(&workspace.options(ROWS), &mut |_| ()).unwrap_err();
    assert!(
        matches!(&errors[..], [Error::NotCleanWithoutBugs { said }] if said.contains("Sum")),
        "{errors:?}"
    );
}

#[test]
fn a_violation_without_a_name_is_no_catch() {
    let workspace = Workspace::new("a_violation_without_a_name");
    let path = workspace.0.join("sim/src/main.rs");
    fs::write(&path, SIM.replace("violation: Sum:", "something is wrong:")).unwrap();
    let options = Options {
        only: Some("both".to_owned()),
        ..workspace.options(ROWS)
    };
    let verdicts = run(&options, &mut |_| ()).unwrap();
    assert_eq!(verdicts.len(), 1);
    assert!(
        matches!(verdicts[0].outcome, Outcome::Failed { .. }),
        "{verdicts:?}"
    );
}

#[test]
fn a_bug_that_does_not_compile_is_told_with_the_compilers_words() {
    const ROWS: &[Row] = &[row("wrong type", Checker::Model, &[sum_is("\"five\"")])];
    let workspace = Workspace::new("a_bug_that_does_not_compile");
    let errors = run(&workspace.options(ROWS), &mut |_| ()).unwrap_err();
    assert!(
        matches!(&errors[..], [Error::DoesNotCompile(words)] if words.contains("mismatched types")),
        "{errors:?}"
    );
}

#[test]
fn rows_out_of_date_stop_everything_before_the_build() {
    const ROWS: &[Row] = &[row(
        "gone",
        Checker::Model,
        &[Edit::expression(FILE, "a * b", "a")],
    )];
    let workspace = Workspace::new("rows_out_of_date");
    let errors = run(&workspace.options(ROWS), &mut |_| ()).unwrap_err();
    assert!(
        matches!(
            &errors[..],
            [Error::OutOfDate {
                row: "gone",
                found: 0,
                ..
            }]
        ),
        "{errors:?}"
    );
    assert!(!workspace.0.join("target").exists());
}

#[test]
fn an_unknown_row_is_named() {
    let workspace = Workspace::new("an_unknown_row");
    let options = Options {
        only: Some("no such bug".to_owned()),
        ..workspace.options(ROWS)
    };
    assert_eq!(
        run(&options, &mut |_| ()).unwrap_err(),
        [Error::UnknownRow("no such bug".to_owned())]
    );
}

#[test]
fn in_the_long_form_the_floors_own_tests_must_pass_without_bugs() {
    const TEST: &str = "#[test] fn sums() { assert_eq!(tenure_core::sum(2, 2), 4); }";
    let workspace = Workspace::new("in_the_long_form");
    let tests = workspace.0.join("floor/tests");
    fs::create_dir_all(&tests).unwrap();
    fs::write(tests.join("sums.rs"), TEST).unwrap();
    let options = Options {
        form: Form::Long,
        only: Some("both".to_owned()),
        ..workspace.options(ROWS)
    };
    run(&options, &mut |_| ()).unwrap();
    fs::write(tests.join("sums.rs"), TEST.replace('4', "5")).unwrap();
    let errors = run(&options, &mut |_| ()).unwrap_err();
    assert!(
        matches!(&errors[..], [Error::TestsFailWithoutBugs(said)] if said.contains("left: 4")),
        "{errors:?}"
    );
}
