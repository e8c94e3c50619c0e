//! The leader: reads the balance, thinks, and writes it, for as long as it leads.

use crate::Outcome;
use crate::arguments::Work;
use crate::client::Remote;
use axum::http::StatusCode;
use std::process::ExitCode;
use std::time::Duration;
use tenure::http::FencedRequest as _;
use tenure::{Authority, Election, Leadership, Registry, Timing, Ttl};

pub async fn run(options: Work) -> Outcome<ExitCode> {
    let store = Registry::connect(&options.store).await?;
    let election = Election::builder(options.lease.as_str(), store)
        .candidate(options.candidate.as_str())
        .timing(Timing::of(Ttl::from_millis(u64::try_from(
            options.ttl.as_millis(),
        )?)?))
        .build()?;
    let remote = Remote::new(&options.service);
    loop {
        println!("stands by");
        let leadership = election.campaign().await?;
        println!("leads with token {}", leadership.token());
        match lead(&leadership, &remote, &options).await {
            Ok(never) => match never {},
            Err(error) => println!("stops: {error}"),
        }
        leadership.step_down().await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Before it campaigns again: what ended the work may end the next term's at once, and each term is a write
/// in the store.
const PAUSE: Duration = Duration::from_secs(1);

enum Never {}

/// Ends only with what ends the term's work.
async fn lead(leadership: &Leadership, remote: &Remote, options: &Work) -> Outcome<Never> {
    loop {
        if let Authority::Ending { .. } = leadership.authority() {
            return Err("was asked to step down".into());
        }
        // The read shows the token too, and so claims: no older term can change any more what it reads.
        let request = remote
            .get_balance()
            .fencing_token(leadership.name(), leadership.authority())?;
        let balance: i64 = told(remote.send(request, String::new()).await?)?.parse()?;
        let request = remote
            .put_balance()
            .fencing_token(leadership.name(), leadership.authority())?;
        println!("has read {balance}");
        // A process that is paused here, for longer than its lease lasts, writes when it wakes.
        tokio::time::sleep(options.think).await;
        told(remote.send(request, (balance + 1).to_string()).await?)?;
        println!("has written {}", balance + 1);
    }
}

/// The body of a success; the detail of a problem is the error.
fn told((status, body): (StatusCode, String)) -> Outcome<String> {
    if status.is_success() {
        return Ok(body);
    }
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    let detail = problem["detail"].as_str().unwrap_or(&body);
    Err(format!("{}: {detail}", status.as_u16()).into())
}
