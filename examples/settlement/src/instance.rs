//! One instance of the job: the whole pattern, to copy from.
//!
//! Campaign; claim the fence; read where the predecessor stopped; write, every transaction under the fence;
//! stop when authority ends.

use crate::Outcome;
use crate::arguments::RunOptions;
use crate::ledger::{self, Fencing, Ledger, LedgerError, Writer};
use crate::pause::Pause;
use crate::payments::{self, Batch, PaymentFile};
use crate::report::Report;
use std::time::Duration;
use tenure::{Authority, Election, Leadership, Registry, TimingOptions};

/// How a term ended.
enum Ended {
    /// Every payment is settled.
    Complete,
    /// Another leads, or may; what is left is up to it.
    Over(Report),
}

struct Instance {
    name: String,
    file: PaymentFile,
    ledger: Box<dyn Ledger>,
    fencing: Fencing,
    batch_size: u64,
    pause: Pause,
}

/// Runs one instance until every payment is settled, by whomever.
pub async fn run(options: RunOptions) -> Outcome<()> {
    if options.end_with_parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    }
    let fencing = if options.unfenced {
        Fencing::Off
    } else {
        Fencing::On
    };
    let mut instance = Instance {
        file: payments::read(&options.file)?,
        ledger: ledger::open(&options.ledger, fencing).await?,
        fencing,
        batch_size: options.batch,
        pause: Pause::new(options.hold_at),
        name: options.instance,
    };
    let store = Registry::connect(&options.store).await?;
    let election = Election::builder(LEASE, store)
        .candidate(&instance.name)
        .timing(TimingOptions::new(options.ttl).check()?)
        .build()?;

    loop {
        say(Report::StandsBy);
        let leadership = election.campaign().await?;
        say(Report::Leads {
            token: leadership.token().number(),
        });
        let ended = instance.lead(&leadership).await;
        // The work has stopped. Giving the lease back at once spares the others the wait for its expiry.
        leadership.step_down().await;
        match ended? {
            Ended::Complete => break,
            Ended::Over(why) => say(why),
        }
        tokio::time::sleep(BETWEEN_TERMS).await;
    }
    say(Report::Complete {
        settled: instance.file.payments.len() as u64,
    });
    Ok(())
}

impl Instance {
    /// One term. When the ledger fails, nobody knows whether the last batch is in it; so begin again by
    /// reading the checkpoint, which tells.
    async fn lead(&mut self, leadership: &Leadership) -> Outcome<Ended> {
        for _attempt in 0..ATTEMPTS_MAX {
            match self.settle_all(leadership).await {
                Ok(ended) => return Ok(ended),
                Err(LedgerError::Refused(refusal)) => {
                    return Ok(Ended::Over(Report::Refused(refusal.to_string())));
                }
                Err(error @ LedgerError::OtherFile { .. }) => {
                    return Err(format!("{}: {error}", self.name).into());
                }
                Err(LedgerError::Trouble(why)) => say(Report::Trouble(why)),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!(
            "{}: the ledger failed {ATTEMPTS_MAX} times in one term; see above, and start again",
            self.name
        )
        .into())
    }

    async fn settle_all(&mut self, leadership: &Leadership) -> Result<Ended, LedgerError> {
        let writer = Writer {
            term: leadership.term(),
            instance: self.name.clone(),
        };
        // Claim first, read second: an older term could otherwise still change what was read.
        self.ledger.prepare(&writer).await?;
        if self.fencing == Fencing::On {
            leadership.claim(self.ledger.fence(), ledger::resource()).await?;
        }
        let mut settled = self.ledger.checkpoint(self.file.checksum, &writer).await?;
        say(Report::GoesOn { settled });

        while let Some(batch) = Batch::after(&self.file.payments, settled, self.batch_size) {
            match leadership.authority() {
                Authority::Held { .. } => {}
                Authority::Doubtful { .. } => {
                    // Begin nothing new; a renewal may still come.
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                // Nothing takes that back: whoever waited would keep the lease and do nothing.
                Authority::Ending { .. } => return Ok(Ended::Over(Report::Asked)),
                Authority::None => {
                    return Ok(Ended::Over(Report::Lost(leadership.lost().await.to_string())));
                }
            }
            // From here to the commit the process may be paused, by anybody and for any time. Asking again
            // would make this gap smaller; only the fence, inside the transaction, closes it.
            self.pause.hold(settled, say).await;
            self.ledger.settle(batch, &writer).await?;
            settled = batch.end();
            // A ledger in a file waits for nothing. Without this, neither a signal nor anything else would be
            // heard of here.
            tokio::task::yield_now().await;
        }
        Ok(Ended::Complete)
    }
}

/// Standard output is flushed at every line, also into a pipe.
fn say(report: Report) {
    println!("{report}");
}

/// What exactly one instance may hold.
const LEASE: &str = "settlement/nightly";

/// How often the ledger may fail in one term.
const ATTEMPTS_MAX: u32 = 300;

/// Between two attempts, and between two looks at a doubtful authority.
const PAUSE: Duration = Duration::from_millis(100);

/// Before it campaigns again: what ended the work, as a ledger of another lease's, may end the next term's at
/// once, and each term is a write in the store.
const BETWEEN_TERMS: Duration = Duration::from_secs(1);
