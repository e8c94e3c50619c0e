//! What the command does alike on every store, told once; each store's tests bring the store.

use super::lifetime::played_again;
use super::{SOON, Sandbox, UNHURRIED, bare, ended, exit_code, json};
use tenure_testkit::{Fault, FaultProxy, SelfSigned, eventually};

/// Three that want the same job run it one after the other, each with a token above the last.
pub fn contenders_take_turns_and_tokens_rise(sandbox: &Sandbox) {
    let log = sandbox.path("log");
    let script = format!("echo start $TENURE_TOKEN >> {log}; sleep 0.2; echo end $TENURE_TOKEN >> {log}");
    let contenders: Vec<_> = (0..3)
        .map(|_| sandbox.run(&["--ttl", "10s"], "job", &script))
        .collect();
    for contender in &contenders {
        assert_eq!(exit_code(contender), 0);
    }
    let text = sandbox.read("log");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    let mut highest = 0;
    for turn in lines.chunks(2) {
        let (begun, done) = (turn[0].strip_prefix("start "), turn[1].strip_prefix("end "));
        assert!(begun.is_some() && begun == done, "two ran at once:\n{text}");
        let token: u64 = begun.unwrap().parse().unwrap();
        assert!(token > highest, "a token did not rise:\n{text}");
        highest = token;
    }
}

/// `--no-wait` ends at once while another leads, and `step-down` hands over to who waits.
pub fn step_down_hands_over_and_no_wait_ends_at_once(sandbox: &Sandbox) {
    // One that a busy machine does not end: it is to end because it is asked. Not every store tells its
    // holder before it renews.
    let options = ["--ttl", "30s", "--renew", "1s", "--candidate", "one"];
    let first = sandbox.run(&options, "job", "sleep 300");
    sandbox.until_held("job");
    let refused = sandbox.tenure(&["run", "--no-wait", "--ttl", UNHURRIED, "job", "--", "true"]);
    assert_eq!((refused.code, refused.stderr.as_str()), (75, ""));
    let second = sandbox.run(&["--candidate", "two"], "job", "echo mine; sleep 300");
    second.wait_for_line("waiting", SOON).unwrap();
    let ended = sandbox.tenure(&["step-down", "job", "--wait", "30s", "--output", "json"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(json(&ended.stdout)["successor"]["holder"], "two");
    assert_eq!(exit_code(&first), 79);
}

/// `gc` reaches the store's records, and what was used within its time stays.
pub fn gc_keeps_what_was_used_lately(sandbox: &Sandbox) {
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    for arguments in [&["gc", "--dry-run"][..], &["gc"]] {
        let cleaned = sandbox.tenure(arguments);
        assert_eq!(cleaned.code, 0, "{cleaned:?}");
    }
    let told = sandbox.tenure(&["gc", "--output", "json"]);
    assert_eq!(
        json(&told.stdout),
        serde_json::json!({"unused": 0, "removed": 0}),
        "{told:?}"
    );
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// Marks of leases that are elsewhere, in a store that counts its terms: above the clock, every later one
/// would be refused.
pub fn a_counted_mark_is_bumped_by_counting(sandbox: &Sandbox) {
    let at = |arguments: &[&str]| {
        let fence = ["--fence", &sandbox.store];
        ended(bare(&[&["fence"], arguments, &fence[..]].concat()))
    };
    let of = |deed: &str, token: &str| at(&[deed, "ledger", "--lease", "job", "--token", token]).code;
    assert_eq!(of("claim", "7"), 0);
    let bumped = at(&["bump", "ledger", "--above", "50", "--output", "json"]);
    assert_eq!(bumped.code, 0, "{bumped:?}");
    assert_eq!(json(&bumped.stdout)["mark"], 51, "{bumped:?}");
    assert_eq!((of("claim", "50"), of("check", "51")), (80, 81));
    assert_eq!((of("claim", "51"), of("check", "51")), (0, 0));
}

/// A term that is killed 300 ms before its end: of a shorter one it would be less, and a loaded machine may
/// stand still for that.
pub const KILLED_EARLY: [&str; 4] = ["--ttl", "15s", "--grace", "4s"];

/// The store takes requests and never answers: a driver alone would wait for ever. `sandbox` is behind
/// `proxy`, `direct` beside it, with the same leases.
pub fn behind_a_silent_network_the_command_dies_before_the_deadline(
    sandbox: &Sandbox,
    direct: &Sandbox,
    proxy: &FaultProxy,
) {
    let script = format!(
        "echo $$ > {}; trap '' TERM; while :; do sleep 0.05; done",
        sandbox.path("pid")
    );
    played_again(|| {
        let first = sandbox.run(&KILLED_EARLY, "job", &script);
        let command = sandbox.pid("pid");
        let second = direct.run(&["--ttl", "15s"], "job", "echo mine");
        second.wait_for_line("waiting", SOON).unwrap();
        proxy.set(Fault::BlackHole);
        // The answer to a renewal may have been swallowed: what counts is what the store says from now on.
        // etcd tells whole seconds, rounded up.
        eventually(SOON, "the last renewal is through", || {
            direct.lease("job")["renewed_ago_ms"].as_u64() > Some(6_500)
        });
        let died = direct.dies_within_its_lease(command, "job");
        assert_eq!(exit_code(&first), 79);
        second.wait_for_line("mine", SOON).unwrap();
        assert_eq!(exit_code(&second), 0);
        proxy.heal();
        std::fs::remove_file(sandbox.path("pid")).unwrap();
        died
    });
}

/// Nobody listens at `url`: said in one line to who does not wait, and nothing ran.
pub fn a_store_that_is_not_there_is_said_to_be_unavailable(url: &str) {
    let sandbox = Sandbox::at("nowhere", url);
    let ended = sandbox.tenure(&["run", "--no-wait", "job", "--", "touch", "ran"]);
    assert_eq!(ended.code, 69, "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("lease \"job\""), "{ended:?}");
    assert!(!sandbox.dir.join("ran").exists());
}

/// The certificate is trusted because `SSL_CERT_FILE` says so, and by nobody else.
pub fn tls_reaches_a_server_whose_certificate_is_trusted_and_no_other(url: &str, certificate: &SelfSigned) {
    let run = |variable: &str| {
        let mut command = bare(&["run", "--no-wait", "job", "--", "true"]);
        command.env("TENURE_STORE", url).env(variable, &certificate.file);
        ended(command)
    };
    let trusted = run("SSL_CERT_FILE");
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let stranger = run("UNUSED");
    assert!(
        stranger.code != 0 && stranger.stderr.contains("ertificate"),
        "{stranger:?}"
    );
}

/// `url` has the password `secret`, which is wrong or missing.
pub fn wrong_credentials_end_with_77_and_are_not_printed(url: &str, secret: &str) {
    let ended = ended({
        let mut command = bare(&["run", "job", "--", "true"]);
        command.env("TENURE_STORE", url);
        command
    });
    assert_eq!(ended.code, 77, "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains(secret), "{ended:?}");
}

/// Two teams may mean one table: the job of the first would learn of it at its next write.
pub fn guarding_a_table_anew_for_another_resource_is_told(sandbox: &Sandbox, table: &[&str]) {
    let guard = |resource: &str, form: &str| {
        let arguments = ["fence", "guard", resource, "--output", form, "--table"];
        let told = sandbox.tenure(&[&arguments[..], table].concat());
        assert_eq!(told.code, 0, "{told:?}");
        told.stdout
    };
    for _ in ["first", "again"] {
        let told = guard("ledger", "text");
        assert!(!told.contains("instead of"), "{told}");
    }
    let told = guard("other", "text");
    assert!(told.contains("\"other\""), "{told}");
    assert!(told.contains("this is instead of \"ledger\""), "{told}");
    assert_eq!(json(&guard("ledger", "json"))["instead_of"], "other");
}
