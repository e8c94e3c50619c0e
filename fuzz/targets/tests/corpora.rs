//! Every input of the repository's corpora keeps every promise: a finding that was fixed stays fixed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use tenure_fuzz::command::corpora;
use tenure_fuzz::{Corpus, execute, targets};

#[test]
fn every_corpus_replays_without_a_finding() {
    for target in targets::ALL {
        let corpus = Corpus::read(Path::new(corpora()), target.name).unwrap();
        assert!(!corpus.inputs.is_empty(), "{} has no corpus", target.name);
        for (path, input) in &corpus.inputs {
            let found = execute(target, input);
            assert_eq!(
                found,
                None,
                "{} breaks a promise of {}",
                path.display(),
                target.name
            );
        }
    }
}

#[test]
#[cfg(all(
    feature = "mongodb",
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis",
    feature = "etcd"
))]
fn every_corpus_belongs_to_a_target() {
    use std::collections::BTreeSet;
    let folders: BTreeSet<String> = std::fs::read_dir(corpora())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let names: BTreeSet<String> = targets::ALL.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(folders, names);
}

#[test]
fn every_target_takes_an_empty_and_a_full_input() {
    for target in targets::ALL {
        for input in [&[][..], &[0], &[0xff], &[0; 4096], &[0xff; 4096]] {
            assert_eq!(execute(target, input), None, "{}", target.name);
        }
    }
}
