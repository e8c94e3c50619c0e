//! The segment of shared memory by which a server knows that another is at work on its data. It outlives a
//! server that is killed, and a machine has room for four thousand.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Removes that of a server on this data that was killed, with all its processes. Where it cannot be, it
/// stays.
pub(super) fn remove(data: &Path) {
    if let Some((_, segment)) = of(data) {
        let mut command = Command::new("ipcrm");
        command.arg("-m").arg(segment);
        let quietly = command.stdout(Stdio::null()).stderr(Stdio::null());
        let _stays = quietly.status();
    }
}

/// Its key and its number, as the server on this data has noted them.
pub(super) fn of(data: &Path) -> Option<(String, String)> {
    let noted = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let mut words = noted.lines().nth(6)?.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::server::Postgres;
    use super::of;

    #[tokio::test]
    async fn server_that_is_killed_leaves_no_shared_memory_behind() {
        let mut server = Postgres::start().await.expect("it starts");
        let (key, segment) = of(&server.data()).expect("it is noted");
        let is_there = || {
            let all = std::fs::read_to_string("/proc/sysvipc/shm").expect("a list");
            all.lines().any(|line| {
                line.split_whitespace()
                    .take(2)
                    .eq([key.as_str(), segment.as_str()])
            })
        };
        assert!(is_there());
        server.kill();
        assert!(!is_there());
    }
}
