//! Where the leases are that nobody has named a place for: elsewhere than its neighbours looks, a candidate
//! leads beside them.

use crate::common::{Ended, SOON, Sandbox, ended};
use rustix::process::geteuid;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use tenure_testkit::{Postgres, block_on};

/// The user and the group `nobody` of Linux.
const NOBODY: u32 = 65_534;

const TELL: [&str; 6] = ["run", "job", "--", "sh", "-c", "echo $TENURE_STORE"];

/// What a command of a user who is not root says of its store, in the folder `below` of the sandbox.
fn told(sandbox: &Sandbox, below: &str, variables: &[(&str, &str)]) -> Ended {
    let folder = sandbox.dir.join(below);
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = sandbox.command(&TELL);
    for variable in ["TENURE_STORE", "XDG_STATE_HOME", "HOME"] {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied()).current_dir(&folder);
    if geteuid().is_root() {
        for owned in [sandbox.dir.path(), &folder] {
            chown(owned, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    ended(command)
}

/// Made there, it would answer the next question as if somebody had used it.
#[test]
fn a_look_at_the_default_store_names_it_and_makes_none() {
    let sandbox = Sandbox::new("default-look");
    let place = sandbox.path("tenure/leases.db");
    let asked = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env_remove("TENURE_STORE");
        ended(command)
    };
    let look = |arguments: &[&str]| {
        let told = asked(arguments);
        assert_eq!(told.code, 0, "{told:?}");
        told.stdout
    };
    assert_eq!(
        look(&["status"]),
        format!("no leases in sqlite at {place}, which nobody has made yet\n")
    );
    assert!(look(&["status", "job"]).contains("never taken"));
    let all: serde_json::Value = serde_json::from_str(&look(&["status", "--output", "json"])).unwrap();
    assert_eq!(
        all,
        serde_json::json!({"store": {"kind": "sqlite", "location": place}, "leases": [], "fences": []})
    );
    let history = look(&["history", "job"]);
    assert!(history.contains(&place), "{history}");
    let wished = look(&["step-down", "job"]);
    assert_eq!(
        wished,
        format!("lease \"job\": never taken in sqlite at {place}, which nobody has made yet\n")
    );
    // Whoever waits for one of these to be called must not go on.
    for (options, why) in [
        (["--to", "host-7"], "no candidate \"host-7\" waits in order"),
        (
            ["--token", "17"],
            "token 17 is not the current one; nobody holds it",
        ),
    ] {
        let refused = asked(&["step-down", options[0], options[1], "job"]);
        assert!(refused.code == 1 && refused.stderr.contains(why), "{refused:?}");
    }
    assert!(!sandbox.dir.join("tenure").exists());
    look(&["run", "job", "--", "true"]);
    assert!(look(&["status"]).contains("job"));
}

/// A path that is mistyped must not become a store, nor one that is right the file of whoever looks first.
#[test]
fn a_look_at_a_file_that_is_not_there_makes_none() {
    let sandbox = Sandbox::new("look-at-none");
    for arguments in [
        &["status"][..],
        &["status", "job"],
        &["history", "job"],
        &["step-down", "job"],
        &["gc"],
        &["gc", "--dry-run", "--output", "json"],
    ] {
        let told = sandbox.tenure(arguments);
        assert_eq!(told.code, 0, "{arguments:?}: {told:?}");
        assert!(!sandbox.dir.join("leases.db").exists(), "{arguments:?}");
    }
    // Who watches sees it come.
    let watch = sandbox.start(&["watch", "job"]);
    watch.wait_for_line("job: never taken", SOON).unwrap();
    assert!(!sandbox.dir.join("leases.db").exists());
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    watch.wait_for_line("job: vacant", SOON).unwrap();
    let missing = sandbox.path("no/such/folder.db");
    let told = sandbox.tenure(&["status", "--store", &format!("sqlite:{missing}")]);
    assert_ne!(told.code, 0, "{told:?}");
}

#[test]
fn without_a_state_directory_the_store_is_in_the_home_of_the_user_from_every_folder() {
    let sandbox = Sandbox::new("default-home");
    let home = sandbox.path("");
    let home = home.trim_end_matches('/');
    let expected = format!("sqlite:{home}/.local/state/tenure/leases.db\n");
    // A relative one would be another in each folder, and is none.
    for (below, state) in [("one", None), ("two", Some("state")), ("three", Some(""))] {
        let state = state.map(|state| ("XDG_STATE_HOME", state));
        let variables: Vec<_> = [("HOME", home)].into_iter().chain(state).collect();
        let told = told(&sandbox, below, &variables);
        assert_eq!((told.code, &told.stdout), (0, &expected), "{below}: {told:?}");
    }
    let nowhere = told(&sandbox, "four", &[("HOME", "relative")]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (78, ""), "{nowhere:?}");
    assert!(
        nowhere.stderr.contains("give --store sqlite:/PATH"),
        "{nowhere:?}"
    );
}

/// In a mount namespace of its own, that ends with the test.
#[test]
fn the_store_of_root_is_in_var_lib_whatever_its_home_is() {
    let sandbox = Sandbox::new("default-root");
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg("mount -t tmpfs tmpfs /var/lib && exec \"$0\" \"$@\"")
        .arg(env!("CARGO_BIN_EXE_tenure"))
        .args(TELL)
        .env("HOME", sandbox.dir.path())
        .env_remove("XDG_STATE_HOME")
        .env_remove("TENURE_STORE");
    let told = ended(command);
    assert_eq!(told.stdout, "sqlite:/var/lib/tenure/leases.db\n", "{told:?}");
}

/// An operator's shell does not know the store that stands in the crontab: his lease waits for nobody, and
/// his claim ousts the job.
#[test]
fn a_claim_on_a_server_by_a_lease_of_the_default_store_says_where_it_was_taken() {
    let sandbox = Sandbox::new("default-claim");
    let bank = format!("{}?schema=cli_default_claim", block_on(Postgres::shared()).uri());
    let made = sandbox.tenure(&["store", "init", "--store", &bank]);
    assert_eq!(made.code, 0, "{made:?}");
    let told = |store: Option<&str>, claim: &str| {
        let script = format!("$0 fence claim ledger {claim}");
        let mut command = sandbox.command(&["run", "job", "--", "sh", "-c", &script]);
        command.arg(env!("CARGO_BIN_EXE_tenure"));
        command.env_remove("TENURE_STORE").env("TENURE_FENCE", &bank);
        command.envs(store.map(|store| ("TENURE_STORE", store)));
        let claimed = ended(command);
        assert_eq!(claimed.code, 0, "{claimed:?}");
        claimed.stderr
    };
    let place = sandbox.path("tenure/leases.db");
    let said = told(None, "");
    assert!(
        said.contains(&format!(
            "taken in sqlite at {place}, of this user on this host alone"
        )),
        "{said}"
    );
    assert_eq!(told(None, "--quiet"), "");
    let marks = format!("--fence file:{}", sandbox.path("marks"));
    assert_eq!(told(None, &marks), "");
    // Who names a file knows what he has named.
    assert_eq!(told(Some(&sandbox.store), ""), "");
}
