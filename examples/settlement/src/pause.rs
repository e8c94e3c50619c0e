//! Holding an instance at the one point where a freeze does harm, so that a drill can freeze it there.

use crate::report::Report;
use std::collections::BTreeSet;
use std::io::BufRead as _;
use tokio::sync::oneshot;

/// Where an instance stops, each time until a line comes from standard input.
#[derive(Debug)]
pub struct Pause {
    at: BTreeSet<u64>,
}

impl Pause {
    /// Stops once for each of these payments.
    pub fn new(at: impl IntoIterator<Item = u64>) -> Self {
        Self {
            at: at.into_iter().collect(),
        }
    }

    /// Stops if it is time to, with `settled` payments behind us. The lease is renewed all the same, until
    /// the whole process is frozen.
    pub async fn hold(&mut self, settled: u64, say: impl Fn(Report)) {
        while let Some(at) = self.at.first().copied().filter(|at| *at <= settled) {
            self.at.remove(&at);
            say(Report::Holds { at, settled });
            if !is_told_to_go_on().await {
                // Nobody is there any more who could.
                self.at.clear();
            }
        }
    }
}

/// Whether a line came, or the end. On a thread that nobody waits for at the end: a signal ends the process
/// also here.
async fn is_told_to_go_on() -> bool {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let read = std::io::stdin().lock().read_line(&mut String::new());
        // Where nobody listens any more, the process ends.
        let _ending = tell.send(!matches!(read, Ok(0)));
    });
    told.await.unwrap_or(false)
}
