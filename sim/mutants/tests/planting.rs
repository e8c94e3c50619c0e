//! How words are found and replaced.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use tenure_mutants::{Checker, Edit, Error, Row, check_rows, rewrite};

const FILE: &str = "core/src/sum.rs";
const TEXT: &str = "fn sum(a: u32, b: u32) -> u32 {\n    let sum = a\n        .wrapping_add(b);\n    count(sum);\n    sum\n}\n";

const fn row(name: &'static str, edits: &'static [Edit]) -> Row {
    Row {
        name,
        catalogue: &[1],
        guarantee: "G1",
        why: "a test",
        first: Checker::Model,
        edits,
    }
}

const SUBTRACTS: Row = row(
    "subtracts",
    &[Edit::expression(FILE, "a .wrapping_add(b)", "a.wrapping_sub(b)")],
);
const FIRST_ONLY: Row = row(
    "first only",
    &[Edit::expression(FILE, "a\n.wrapping_add(b)", "a")],
);
const UNCOUNTED: Row = row("uncounted", &[Edit::statement(FILE, "count(sum);", "")]);
const PART: Row = row(
    "part",
    &[Edit::expression(FILE, ".wrapping_add(b);\n count(sum)", "")],
);
const INSIDE: Row = row(
    "inside",
    &[Edit::expression(FILE, "wrapping_add(b)", "wrapping_sub(b)")],
);
const AS_STATEMENT: Row = row(
    "as statement",
    &[Edit::statement(FILE, "a .wrapping_add(b)", "b")],
);
const GONE: Row = row("gone", &[Edit::expression(FILE, "a.wrapping_add(b)", "b")]);
const TWICE: Row = row("twice", &[Edit::expression(FILE, "u32,", "u64,")]);
const OFTEN: Row = row("often", &[Edit::expression(FILE, "sum", "b")]);
const ELSEWHERE: Row = row("elsewhere", &[Edit::expression("core/src/none.rs", "sum", "b")]);

fn errors(rows: &'static [Row]) -> Vec<String> {
    let read = |file: &str| (file == FILE).then(|| TEXT.to_owned());
    let errors = check_rows(rows, read).unwrap_err();
    errors.iter().map(Error::to_string).collect()
}

#[test]
fn an_expression_is_chosen_by_the_number_of_its_row() {
    const ROWS: &[Row] = &[UNCOUNTED, SUBTRACTS];
    let planted = rewrite(ROWS, FILE, TEXT).unwrap();
    let flat = planted.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains(
            "let sum = (if crate::planted::is(2) { a.wrapping_sub(b) } else { a .wrapping_add(b) });"
        ),
        "{flat}"
    );
    assert!(
        flat.contains("if crate::planted::is(1) { } else { count(sum); } sum }"),
        "{flat}"
    );
}

#[test]
fn rows_with_the_same_words_are_chained() {
    const ROWS: &[Row] = &[SUBTRACTS, FIRST_ONLY];
    let planted = rewrite(ROWS, FILE, TEXT).unwrap();
    let flat = planted.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains(
            "if crate::planted::is(1) { a.wrapping_sub(b) } else if crate::planted::is(2) { a } else {"
        ),
        "{flat}"
    );
}

#[test]
fn what_no_row_names_is_left_as_it_is() {
    const ROWS: &[Row] = &[SUBTRACTS, UNCOUNTED];
    assert_eq!(rewrite(ROWS, "core/src/other.rs", TEXT).unwrap(), TEXT);
    assert_eq!(rewrite(&[], FILE, TEXT).unwrap(), TEXT);
}

#[test]
fn overlapping_rows_are_refused() {
    const PARTLY: &[Row] = &[SUBTRACTS, PART];
    assert_eq!(
        errors(PARTLY),
        [
            "rows \"subtracts\" and \"part\" overlap in core/src/sum.rs; give them the same snippet or separate ones"
        ]
    );
    const NESTED: &[Row] = &[INSIDE, SUBTRACTS];
    assert_eq!(errors(NESTED).len(), 1);
}

#[test]
fn words_shared_by_rows_have_one_shape() {
    const ROWS: &[Row] = &[SUBTRACTS, AS_STATEMENT];
    assert!(errors(ROWS)[0].contains("one as an expression and one as statements"));
}

#[test]
fn every_row_that_is_out_of_date_is_told_at_once() {
    const ROWS: &[Row] = &[GONE, OFTEN, SUBTRACTS, ELSEWHERE];
    assert_eq!(
        errors(ROWS),
        [
            "row out of date: elsewhere: snippet not found in core/src/none.rs",
            "row out of date: gone: snippet not found in core/src/sum.rs",
            "row out of date: often: snippet found 4 times in core/src/sum.rs; lengthen it until it is unique",
        ]
    );
}

#[test]
fn two_rows_of_one_name_are_refused() {
    const ROWS: &[Row] = &[TWICE, TWICE];
    assert_eq!(errors(ROWS)[0], "two rows are called \"twice\"; rename one");
}
