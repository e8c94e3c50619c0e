//! The storm: clients that all believe to lead write against each other, most of them long after their term.

use crate::Outcome;
use crate::arguments::Storm;
use crate::client::Remote;
use crate::history::{Done, Findings, check};
use axum::http::StatusCode;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tenure::http::{FENCING_TOKEN, FencingHeader};
use tenure::{FencingToken, LeaseName, Term};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The service waits up to this long between check and effect, so that claims fall in between.
const DAWDLE: &str = "2ms";

/// Most rounds of reading and writing in one term.
const ROUNDS_MAX: u32 = 4;

/// Most writes that a client sends after its term's work has ended.
const WRITES_AFTER_THE_END_MAX: u32 = 100;

/// Fewest accepted writes: a storm in which nothing is accepted shows nothing.
const WRITES_MIN: usize = 10;

/// Stale requests beyond those that are wanted, after which nobody waits for accepted writes any more.
const STALE_BEYOND_MAX: u64 = 100_000;

/// What the clients share.
struct Sea {
    remote: Remote,
    stale_wanted: u64,
    /// The token that was granted last: one store for all of them, which takes no term's end into account.
    granted: Mutex<Option<FencingToken>>,
    /// The highest token whose claim was answered.
    claimed: AtomicU64,
    next_balance: AtomicI64,
    stale_sent: AtomicU64,
    stale_accepted: AtomicU64,
    come_again: AtomicU64,
    terms: AtomicU64,
    done: Mutex<Vec<Done>>,
}

pub async fn run(options: Storm) -> Outcome<ExitCode> {
    let folder = tempfile::tempdir()?;
    let (_service, address) = serve(&folder.path().join("ledger.db"), options.unfenced).await?;
    let sea = Arc::new(Sea {
        remote: Remote::new(&address),
        stale_wanted: options.stale,
        granted: Mutex::default(),
        claimed: AtomicU64::new(0),
        next_balance: AtomicI64::new(1),
        stale_sent: AtomicU64::new(0),
        stale_accepted: AtomicU64::new(0),
        come_again: AtomicU64::new(0),
        terms: AtomicU64::new(0),
        done: Mutex::default(),
    });
    let start = Instant::now();
    let clients: Vec<_> = (0..options.clients)
        .map(|client| {
            let dice = fastrand::Rng::with_seed(options.seed ^ u64::from(client) << 32);
            tokio::spawn(Arc::clone(&sea).client(dice))
        })
        .collect();
    for client in clients {
        client.await??;
    }
    let took = start.elapsed();
    let history = sea.remote.history().await?;
    let done = sea.done.lock().unwrap_or_else(PoisonError::into_inner);
    let findings = check(&history, &done);
    let number = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    let accepted = number(&sea.stale_accepted);
    println!("clients                      {}", options.clients);
    println!("took                         {:.1} s", took.as_secs_f64());
    println!("terms that claimed           {}", number(&sea.terms));
    println!("accepted writes              {}", history.len());
    println!("told to come again           {}", number(&sea.come_again));
    println!("stale requests               {}", number(&sea.stale_sent));
    println!("stale requests accepted      {accepted}");
    println!("stale writes in the history  {}", findings.stale);
    println!("lost updates                 {}", findings.lost_updates);
    println!("confirmed but missing        {}", findings.missing);
    println!("there but not confirmed      {}", findings.unconfirmed);
    let holds = accepted == 0 && findings == Findings::default() && history.len() >= WRITES_MIN;
    println!("holds                        {holds}");
    Ok(if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The service, in a process of its own that ends with the guard.
async fn serve(file: &std::path::Path, unfenced: bool) -> Outcome<(Child, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "--dawdle", DAWDLE, "--file"]).arg(file);
    if unfenced {
        command.arg("--unfenced");
    }
    // Its log would be a line for each term that was refused.
    let mut service = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let output = service.stdout.take().ok_or("the service has no output")?;
    let line = BufReader::new(output)
        .lines()
        .next_line()
        .await?
        .unwrap_or_default();
    let address = line
        .strip_prefix("listening on ")
        .ok_or("the service did not start")?;
    Ok((service, address.to_owned()))
}

/// How a read of a term ended.
enum Answer {
    Done(String),
    Refused,
}

/// How a write ended.
enum Written {
    Done { wrote: i64 },
    Refused,
}

impl Sea {
    fn goes_on(&self) -> bool {
        let stale = self.stale_sent.load(Ordering::SeqCst);
        let accepted = self.done.lock().unwrap_or_else(PoisonError::into_inner).len();
        let most = self.stale_wanted.saturating_add(STALE_BEYOND_MAX);
        stale < self.stale_wanted || (accepted < WRITES_MIN && stale < most)
    }

    async fn client(self: Arc<Self>, mut dice: fastrand::Rng) -> Outcome<()> {
        while self.goes_on() {
            let header = self.grant()?;
            let mut known = None;
            // Reads, thinks and writes, until a later term has come or the work of this one is done.
            for _ in 0..dice.u32(1..=ROUNDS_MAX) {
                let Answer::Done(balance) = self.read(&header).await? else {
                    break;
                };
                let balance = balance.parse()?;
                known = Some(balance);
                tokio::time::sleep(Duration::from_micros(dice.u64(0..3_000))).await;
                match self.write(&header, balance).await? {
                    Written::Done { wrote } => known = Some(wrote),
                    Written::Refused => break,
                }
            }
            // And goes on writing, as a process does that does not look.
            let Some(mut balance) = known else { continue };
            for _ in 0..dice.u32(0..WRITES_AFTER_THE_END_MAX) {
                if let Written::Done { wrote } = self.write(&header, balance).await? {
                    balance = wrote;
                }
            }
        }
        Ok(())
    }

    fn grant(&self) -> Outcome<FencingHeader> {
        let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        let token = FencingToken::successor(*granted, u64::try_from(clock.as_millis())?);
        *granted = token;
        let token = token.ok_or("tokens are used up")?;
        Ok(FencingHeader(Term::new(
            LeaseName::new("nightly-settlement")?,
            token,
        )))
    }

    async fn read(&self, header: &FencingHeader) -> Outcome<Answer> {
        let request = self.remote.get_balance().header(FENCING_TOKEN, header.value());
        let answer = self.answer(self.remote.send(request, String::new()).await?)?;
        if matches!(answer, Answer::Done(_))
            && self.claimed.fetch_max(header.0.token.number(), Ordering::SeqCst) < header.0.token.number()
        {
            self.terms.fetch_add(1, Ordering::SeqCst);
        }
        Ok(answer)
    }

    async fn write(&self, header: &FencingHeader, read: i64) -> Outcome<Written> {
        // Certainly stale if a later claim was answered before this is sent.
        let stale = self.claimed.load(Ordering::SeqCst) > header.0.token.number();
        let wrote = self.next_balance.fetch_add(1, Ordering::SeqCst);
        let request = self.remote.put_balance().header(FENCING_TOKEN, header.value());
        let answer = self.answer(self.remote.send(request, wrote.to_string()).await?)?;
        if stale {
            self.stale_sent.fetch_add(1, Ordering::SeqCst);
        }
        if let Answer::Refused = answer {
            return Ok(Written::Refused);
        }
        self.stale_accepted.fetch_add(u64::from(stale), Ordering::SeqCst);
        let token = header.0.token.signed();
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.push(Done { token, read, wrote });
        Ok(Written::Done { wrote })
    }

    fn answer(&self, (status, body): (StatusCode, String)) -> Outcome<Answer> {
        match status {
            StatusCode::OK => Ok(Answer::Done(body)),
            StatusCode::CONFLICT => Ok(Answer::Refused),
            StatusCode::SERVICE_UNAVAILABLE => {
                self.come_again.fetch_add(1, Ordering::SeqCst);
                Ok(Answer::Refused)
            }
            _ => Err(format!("the service answered {status}: {body}").into()),
        }
    }
}
