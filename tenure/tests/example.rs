//! What the README advises to run, run.

#[path = "../examples/transfers.rs"]
mod transfers;

/// It ends with a panic where money came or went.
#[test]
fn the_example_of_locks_and_fences_keeps_the_total() {
    transfers::main().unwrap();
}
