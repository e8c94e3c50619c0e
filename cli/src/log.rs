//! The log, on standard error.

use crate::arguments::{Form, GlobalArguments};
use crate::exit::{Code, Failure};
use crate::output::{StandardError, clean, inert, unless_url};
use std::io::{self, Write};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts the log.
///
/// Without options only the warnings of stores and drivers are logged: what happens to the lease is told by
/// the command itself, in its own words, and twice would be once too often.
///
/// # Errors
/// A level that does not exist.
pub(crate) fn start(global: &GlobalArguments) -> Result<(), Failure> {
    let targets = match (&global.log, global.quiet, global.verbose) {
        (Some(text), _, _) => parse(text)?,
        (None, true, _) => levels(LevelFilter::ERROR, LevelFilter::OFF),
        (None, false, 0) => levels(LevelFilter::WARN, LevelFilter::OFF),
        (None, false, 1) => levels(LevelFilter::WARN, LevelFilter::INFO),
        (None, false, 2) => levels(LevelFilter::INFO, LevelFilter::DEBUG),
        (None, false, _) => levels(LevelFilter::TRACE, LevelFilter::TRACE),
    };
    let form = global.log_format.unwrap_or(global.output);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(move || Clean(form))
        .with_ansi(false);
    let registry = tracing_subscriber::registry().with(targets);
    match form {
        Form::Text => registry.with(lines).init(),
        Form::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
    Ok(())
}

/// Standard error for a line, without what would steer a terminal: names and notes are what others have
/// chosen.
struct Clean(Form);

impl Write for Clean {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\n');
        let cleaned = match self.0 {
            Form::Text => clean(text).into(),
            Form::Json => inert(text),
        };
        StandardError.write_all(format!("{cleaned}\n").as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads `info`, or `tenure=debug,mongodb=warn`.
fn parse(text: &str) -> Result<Targets, Failure> {
    let wrong = |why: &str| {
        let shown = unless_url(text);
        // What is wrong with it may quote it.
        let why = if shown == text {
            why
        } else {
            "there is no such level"
        };
        Failure::new(
            Code::Usage,
            format!("--log {shown:?}: {why}; write a level such as info, or tenure=debug,mongodb=warn"),
        )
    };
    // A word alone would be read as a module, and a misspelt level would silence all else.
    let alone = text.split(',').map(str::trim).filter(|part| !part.contains('='));
    for level in alone {
        level
            .parse::<LevelFilter>()
            .map_err(|_| wrong(&format!("{level:?} is no level")))?;
    }
    text.parse::<Targets>().map_err(|error| wrong(&error.to_string()))
}

/// A level for the election (target `tenure`), and one for all else.
fn levels(others: LevelFilter, election: LevelFilter) -> Targets {
    // The driver of NATS logs as an error what its caller is told, and reports.
    let told_anyway = match others > LevelFilter::WARN {
        true => others,
        false => LevelFilter::OFF,
    };
    // Targets match by prefix: without words of their own the stores would fall under the election's.
    Targets::new()
        .with_default(others)
        .with_target("tenure", election)
        .with_target("async_nats", told_anyway)
        // Its SDK reports what the exporter failed at.
        .with_target("opentelemetry-otlp", told_anyway)
        .with_target("tenure_mongodb", others)
        .with_target("tenure_redis", others)
        .with_target("tenure_nats", others)
        .with_target("tenure_postgres", others)
        .with_target("tenure_etcd", others)
        .with_target("tenure_remote", others)
        .with_target("tenure_mysql", others)
        .with_target("tenure_sqlite", others)
        .with_target("tenure_trace", others)
        .with_target("tenure_watermark", election)
        // What a fence refuses is the answer of the command that asked.
        .with_target("tenure_sqlite::fence", election)
        .with_target("tenure_mongodb::fence", election)
        .with_target("tenure_redis::fence", election)
        .with_target("tenure_postgres::fence", election)
        // Counts refusals for the fences of stores at the other end of a connection.
        .with_target("tenure_remote::refusals", election)
        .with_target("tenure_mysql::fence", election)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_trace_is_told_where_the_election_is_silent() {
        let by_default = levels(LevelFilter::WARN, LevelFilter::OFF);
        assert!(by_default.would_enable("tenure_trace", &LevelFilter::WARN.into_level().unwrap()));
        assert!(!by_default.would_enable("tenure", &LevelFilter::ERROR.into_level().unwrap()));
    }
}
