//! What a leader's looks at the fence of the data leave to the job.

use crate::common::{SOON, Sandbox, ended};
use crate::endpoint::metric;
use crate::fence::users_file;
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;
use tenure_testkit::{Mariadb, Postgres, Process, SqlFamily, block_on, eventually, free_port};

/// Two looks and more, were they made as often as where nobody is refused.
const LOOKS: Duration = Duration::from_secs(35);

/// A leader whose work has its marks there, and where its metrics are.
fn leader(sandbox: &Sandbox, fence: &str) -> (Process, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let mut run = sandbox.command(&["run", "--metrics", &address, "job", "--", "sleep", "300"]);
    run.env("TENURE_FENCE", fence);
    (Process::spawn(run).unwrap(), address)
}

/// The same, once it has looked at the marks.
fn leader_that_has_looked(sandbox: &Sandbox, fence: &str) -> Process {
    let words = ["fence", "claim", "ledger", "--lease", "job", "--token", "9"];
    let mut claim = sandbox.command(&words);
    claim.env("TENURE_FENCE", fence);
    let claim = ended(claim);
    assert_eq!(claim.code, 0, "{claim:?}");
    let (leader, address) = leader(sandbox, fence);
    eventually(SOON, "it serves", || {
        std::net::TcpStream::connect(&address).is_ok()
    });
    eventually(SOON * 2, "it has looked", || {
        metric(&address, "lease_fence_refusals_noted{lease=\"job\"}") == Some(0.0)
    });
    leader
}

/// Whoever is the last to close the file moves the log into it: else a copy that the job makes of it then
/// lacks what it has committed.
#[test]
fn a_job_is_the_last_to_close_its_file_under_a_leader_that_looks_at_its_marks() {
    let sandbox = Sandbox::new("looks-file");
    let url = users_file(&sandbox);
    let path = sandbox.path("ledger.db");
    let data = Connection::open(&path).unwrap();
    data.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    data.close().unwrap();
    let _leader = leader_that_has_looked(&sandbox, &url);
    eventually(SOON, "the job closes its file as the last", || {
        let data = Connection::open(&path).unwrap();
        data.busy_timeout(SOON).unwrap();
        data.execute_batch("INSERT INTO x VALUES (1)").unwrap();
        data.close().unwrap();
        !Path::new(&format!("{path}-wal")).exists()
    });
}

/// As a nightly restore does, and whoever copies it as a template.
#[test]
fn a_job_may_rename_its_database_under_a_leader_that_looks_at_its_marks() {
    let server = block_on(Postgres::shared());
    block_on(server.execute("CREATE DATABASE cli_looks")).unwrap();
    let sandbox = Sandbox::new("looks-database");
    let url = server.uri_of("cli_looks");
    let made = sandbox.tenure(&["store", "init", "--store", &url]);
    assert_eq!(made.code, 0, "{made:?}");
    let _leader = leader_that_has_looked(&sandbox, &url);
    eventually(SOON, "it is renamed", || {
        block_on(server.execute("ALTER DATABASE cli_looks RENAME TO cli_looked_at")).is_ok()
    });
}

/// Servers lock an account after some refused logins on end, and it is the job's.
#[test]
fn a_leader_whose_looks_are_refused_says_so_once_and_locks_nobodys_account() {
    let family = SqlFamily::installed().unwrap();
    let (settings, locking) = match family {
        SqlFamily::Mariadb => (vec!["max-password-errors=2"], ""),
        SqlFamily::Mysql => (vec![], "FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 1"),
    };
    let server = block_on(Mariadb::with_settings(&settings)).unwrap();
    let made = format!(
        "CREATE DATABASE bank; CREATE USER app IDENTIFIED BY 'right' {locking}; GRANT ALL ON bank.* TO app"
    );
    block_on(server.execute(&made)).unwrap();
    let credentials = |password: &str| server.uri_as("app", password, "bank");
    let sandbox = Sandbox::new("looks-refused");
    let (leader, _) = leader(&sandbox, &credentials("old"));
    let told = "the fence that TENURE_FENCE names lets nobody look";
    leader.wait_for_line(told, SOON).unwrap();
    std::thread::sleep(LOOKS);
    let lines = leader.lines();
    let times = lines.iter().filter(|line| line.text.contains(told)).count();
    assert_eq!(times, 1, "{lines:?}");
    block_on(Mariadb::execute_at(&credentials("right"), "DO 0")).unwrap();
}
