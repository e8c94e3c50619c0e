//! The drill: three instances as real processes, real faults, and a check of what they leave.

mod child;
mod crew;
mod faults;
mod site;

use crate::Outcome;
use crate::arguments::{DrillOptions, Fault, LedgerKind, Output};
use crate::ledger::{self, Fencing};
use crate::payments::{self, Dice};
use crate::summary::Summary;
use crate::verify;
use crew::Crew;
pub use faults::Done;
use site::Site;
use std::process::ExitCode;
use std::time::Instant;

/// Runs a drill, prints its summary, and answers whether everything held.
pub async fn run(options: &DrillOptions) -> Outcome<ExitCode> {
    let faults = faults_of(options)?;
    let mut site = Site::prepare(options.ledger).await?;
    let written = payments::generate(&site.file(), options.payments, options.seed)?;
    eprintln!("drill: {written}");

    // One fault after each of these many payments.
    let points: Vec<u64> = (1..=faults.len() as u64)
        .map(|number| options.payments * number / (faults.len() as u64 + 1))
        .collect();
    let began_at = Instant::now();
    let ledger = ledger::open(&site.ledger(), Fencing::On).await?;
    let mut crew = Crew::start(options.payments, ledger, |name| {
        arguments(options, &site, name, &points)
    })?;
    let mut dice = Dice::new(options.seed);
    let mut done = Vec::new();
    for (fault, at) in faults.iter().zip(&points) {
        done.extend(faults::inject(*fault, *at, &mut crew, &mut site, &mut dice).await?);
    }
    let (ledger, refused, terms) = crew.finish().await?;
    let elapsed = began_at.elapsed();

    let summary = Summary {
        ledger: options.ledger,
        findings: verify::check(&*ledger, &payments::read(&site.file())?.payments).await?,
        faults: done,
        refused,
        terms,
        elapsed,
    };
    match options.output {
        Output::Text => print!("{summary}"),
        Output::Json => println!("{:#}", summary.json()),
    }
    Ok(if summary.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn faults_of(options: &DrillOptions) -> Outcome<Vec<Fault>> {
    let mut faults = options.faults.clone();
    if faults.is_empty() {
        faults = vec![Fault::Kill, Fault::Freeze];
        if options.ledger == LedgerKind::Mongodb {
            faults.push(Fault::Stepdown);
        }
    }
    faults.retain(|fault| *fault != Fault::None);
    if faults.contains(&Fault::Stepdown) && options.ledger == LedgerKind::Sqlite {
        return Err(site::NO_PRIMARY.into());
    }
    if faults.iter().filter(|fault| **fault == Fault::Kill).count() > KILLS_MAX {
        return Err(format!("at most {KILLS_MAX} kills: of three instances one has to be left").into());
    }
    Ok(faults)
}

fn arguments(options: &DrillOptions, site: &Site, name: &str, hold_at: &[u64]) -> Vec<String> {
    let hold_at: Vec<String> = hold_at.iter().map(u64::to_string).collect();
    let mut arguments: Vec<String> = [
        ["run", "--end-with-parent"].map(str::to_owned),
        ["--store".to_owned(), site.store()],
        ["--ledger".to_owned(), site.ledger()],
        ["--file".to_owned(), site.file().display().to_string()],
        ["--instance".to_owned(), name.to_owned()],
        ["--ttl".to_owned(), format!("{}ms", options.ttl.as_millis())],
        ["--batch".to_owned(), options.batch.to_string()],
    ]
    .concat();
    if !hold_at.is_empty() {
        arguments.extend(["--hold-at".to_owned(), hold_at.join(",")]);
    }
    if options.unfenced {
        arguments.push("--unfenced".to_owned());
    }
    arguments
}

/// Most instances that a drill may kill.
const KILLS_MAX: usize = 2;
