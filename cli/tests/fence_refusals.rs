//! What a leader tells of the fences that its work finds by the environment.

use crate::common::{SOON, Sandbox, ended};
use crate::endpoint::metric;
use crate::fence::users_file;
use std::process::Command;
use tenure_testkit::{Process, eventually, free_port};

/// With the marks here.
fn with_marks(mut command: Command, url: &str) -> Command {
    command.env("TENURE_FENCE", url);
    command
}

/// Also after it has looked at them: and its looks keep nobody out of a file that one process has at a time.
#[test]
fn a_leader_tells_what_was_refused_where_its_environment_has_the_marks() {
    let watermark = |sandbox: &Sandbox| format!("file:{}", sandbox.path("marks"));
    for url_in in [users_file, watermark] {
        let sandbox = Sandbox::new("refused-elsewhere");
        let url = url_in(&sandbox);
        let fence = |deed: &str, token: &str| {
            let words = ["fence", deed, "ledger", "--lease", "job", "--token", token];
            ended(with_marks(sandbox.command(&words), &url))
        };
        let claim = fence("claim", "9");
        assert_eq!(claim.code, 0, "{claim:?}");
        assert_eq!(fence("check", "5").code, 80);
        // Those of the default place are not meant.
        for (deed, token) in [("claim", "9"), ("check", "4"), ("check", "5")] {
            sandbox.tenure(&["fence", deed, "other", "--lease", "job", "--token", token]);
        }
        let address = format!("127.0.0.1:{}", free_port());
        let run = ["run", "--metrics", &address, "job", "--", "sleep", "300"];
        let _leader = Process::spawn(with_marks(sandbox.command(&run), &url)).unwrap();
        let told = |refused: f64| {
            eventually(SOON * 2, "the refusals are told", || {
                metric(&address, "lease_fence_refusals_noted{lease=\"job\"}") == Some(refused)
            });
        };
        // Before it is up nobody answers.
        eventually(SOON, "it serves", || {
            std::net::TcpStream::connect(&address).is_ok()
        });
        told(1.0);
        let claim = fence("claim", "10");
        assert_eq!(claim.code, 0, "{claim:?}");
        assert_eq!(fence("check", "9").code, 80);
        told(2.0);
    }
}
