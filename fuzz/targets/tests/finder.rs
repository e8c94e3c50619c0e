//! The finder finds: toy targets with planted faults, through the whole command.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use tenure_fuzz::command::{FOUND, code};
use tenure_fuzz::{Corpus, Effort, Mutator, Target, execute, run};

/// Panics at the two bytes that its dictionary has, in that order.
const FAULTY: Target = Target {
    name: "faulty",
    promise: "is broken by a word of the dictionary",
    judge: |bytes| assert!(!bytes.windows(2).any(|pair| pair == b"no"), "found the word no"),
    dictionary: &["no"],
};

/// Panics by an index that is out of bounds, as product code would.
const INDEXING: Target = Target {
    name: "indexing",
    promise: "is broken by a length that is believed",
    judge: |bytes| {
        if let Some((length, rest)) = bytes.split_first() {
            let _ = rest[..usize::from(*length % 8)].len();
        }
    },
    dictionary: &[],
};

const SOUND: Target = Target {
    name: "sound",
    promise: "holds",
    judge: |bytes| assert!(bytes.len() <= tenure_fuzz::INPUT_BYTES_MAX),
    dictionary: &["word"],
};

fn command(folder: &Path, more: &[&str]) -> u8 {
    let folder = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut arguments = vec!["tenure-fuzz".to_owned()];
    arguments.extend([
        "--corpus".to_owned(),
        folder("corpus"),
        "--findings".to_owned(),
        folder("findings"),
    ]);
    arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    code(&[FAULTY, INDEXING, SOUND], arguments)
}

fn saved(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("findings")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_planted_fault_is_found_saved_and_replayed() {
    for target in ["faulty", "indexing"] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            command(folder.path(), &["--target", target, "--executions", "100000"]),
            FOUND
        );
        let saved = saved(folder.path());
        assert_eq!(saved.len(), 1, "{saved:?}");
        let path = saved[0].to_str().unwrap();
        assert_eq!(
            command(folder.path(), &["--target", target, "--replay", path]),
            FOUND
        );
        assert_eq!(
            command(folder.path(), &["--target", "sound", "--replay", path]),
            0
        );
    }
}

#[test]
fn a_fault_in_one_target_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(command(folder.path(), &["--executions", "300000"]), FOUND);
    assert_eq!(saved(folder.path()).len(), 2);
}

#[test]
fn a_sound_target_ends_with_nothing_found_after_as_many_executions() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        command(folder.path(), &["--target", "sound", "--executions", "5000"]),
        0
    );
    let effort = Effort {
        executions: 5000,
        seed: 7,
    };
    let corpus = Corpus {
        inputs: vec![(PathBuf::from("seed"), b"seed".to_vec())],
    };
    let outcome = run(&SOUND, &corpus, effort, folder.path(), |_| {}).unwrap();
    assert_eq!(
        (outcome.executions, outcome.corpus, outcome.found),
        (5001, 1, None)
    );
}

#[test]
fn an_input_of_the_corpus_that_breaks_a_promise_is_found_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("corpus/faulty/kept");
    fs::create_dir_all(input.parent().unwrap()).unwrap();
    fs::write(&input, b"oh no").unwrap();
    let corpus = Corpus::read(&folder.path().join("corpus"), "faulty").unwrap();
    let effort = Effort {
        executions: 0,
        seed: 1,
    };
    let outcome = run(&FAULTY, &corpus, effort, folder.path(), |_| {}).unwrap();
    let found = outcome.found.unwrap();
    assert_eq!(found.path, input);
    assert_eq!(found.finding.message, "found the word no");
    assert!(
        found.finding.place.contains("finder.rs"),
        "{}",
        found.finding.place
    );
    assert_eq!(
        command(folder.path(), &["--target", "faulty", "--executions", "0"]),
        FOUND
    );
}

#[test]
fn wrong_arguments_are_told_apart_from_findings() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(command(folder.path(), &["--target", "unknown"]), 2);
    assert_eq!(command(folder.path(), &["--executions", "many"]), 2);
    assert_eq!(command(folder.path(), &["--replay", "file"]), 2);
    assert_eq!(
        command(folder.path(), &["--target", "sound", "--replay", "no-such-file"]),
        1
    );
    assert_eq!(command(folder.path(), &["--list"]), 0);
}

#[test]
fn the_same_seed_makes_the_same_inputs_and_another_one_others() {
    let corpus: [&[u8]; 3] = [b"one", b"two and more", &[0; 100]];
    let inputs = |seed| -> Vec<Vec<u8>> {
        let mut mutator = Mutator::new(seed);
        (0..500).map(|_| mutator.next(&corpus, &["word"])).collect()
    };
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
}

#[test]
fn a_panic_outside_of_an_execution_is_nobodys_finding() {
    assert_eq!(execute(&SOUND, b"anything"), None);
    assert!(execute(&FAULTY, b"no").is_some());
    assert_eq!(execute(&FAULTY, b"on"), None);
}
