//! A place that is not what somebody meant is refused: each host would have another one.

use crate::common::{Sandbox, ended};

const STORE: &str = "TENURE_STORE";
const FENCE: &str = "TENURE_FENCE";

/// As by a secret that was not filled in. What was typed is a place all the same, and what looks for none
/// does not ask.
#[test]
fn a_place_that_a_variable_leaves_empty_is_refused() {
    let claim = ["fence", "claim", "ledger", "--lease", "job", "--token", "7"];
    let sandbox = Sandbox::new("place-left-empty");
    let ended = |words: &[&str], variable| {
        let mut command = sandbox.command(words);
        command.env(variable, "");
        ended(command)
    };
    for (words, variable) in [
        (&["run", "job", "--", "touch", "ran"][..], STORE),
        (&["lock", "job", "--", "touch", "ran"], STORE),
        (&["status"], STORE),
        (&["watch"], STORE),
        (&["history", "job"], STORE),
        (&["step-down", "job"], STORE),
        (&["doctor"], STORE),
        (&["gc"], STORE),
        (&["store", "init"], STORE),
        (&claim, STORE),
        (&claim, FENCE),
        (&["fence", "show"], FENCE),
        (&["fence", "bump", "ledger"], FENCE),
        (&["status"], FENCE),
    ] {
        let ended = ended(words, variable);
        assert_eq!(ended.code, 2, "{words:?}: {ended:?}");
        let told = format!("{variable} is empty; set it, or unset it");
        assert!(ended.stderr.contains(&told), "{words:?}: {ended:?}");
        assert!(!sandbox.dir.join("ran").exists(), "{words:?}");
        assert!(!sandbox.dir.join("tenure").exists(), "{words:?}");
    }
    let typed_store = format!("--store={}", sandbox.store);
    let typed_fence = format!("--fence={}", sandbox.store);
    for (words, variable) in [
        (&["run", &typed_store, "job", "--", "true"][..], STORE),
        (&[&typed_store, "status"], STORE),
        (&["fence", "show", &typed_fence], FENCE),
        (&["fence", "show", &typed_fence], STORE),
        (&["explain"], STORE),
    ] {
        let ended = ended(words, variable);
        assert_eq!(ended.code, 0, "{words:?}: {ended:?}");
    }
}

/// As a file of variables keeps what stands behind a value, and a secret the end of a line. A look is
/// refused, too: it would tell of a place where nobody leads.
#[test]
fn a_place_with_a_blank_at_an_end_is_refused() {
    let sandbox = Sandbox::new("blank-place");
    for blank in [" ", "\t", "\r", "\n"] {
        let file = format!("{}{blank}", sandbox.store);
        let etcd = format!("etcd://127.0.0.1:1/tenure{blank}");
        for (words, variable, url) in [
            (&["run", "job", "--", "touch", "ran"][..], STORE, &file),
            (&["run", "job", "--", "touch", "ran"], STORE, &etcd),
            (&["status"], STORE, &file),
            (&["gc"], STORE, &file),
            (&["fence", "show"], FENCE, &file),
            (&["fence", "show"], FENCE, &etcd),
        ] {
            let mut command = sandbox.command(words);
            command.env(variable, url);
            let ended = ended(command);
            assert_eq!(ended.code, 78, "{words:?} {url:?}: {ended:?}");
            assert!(ended.stderr.contains("begins or ends with a blank"), "{ended:?}");
        }
    }
    let files = sandbox.dir.path().read_dir().unwrap().flatten();
    let files: Vec<_> = files.map(|file| file.file_name()).collect();
    assert!(files.is_empty(), "{files:?}");
}
