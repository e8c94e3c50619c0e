//! `tenure watch`.

use super::look::Chosen;
use crate::arguments::{Form, SelectArguments};
use crate::exit::Failure;
use crate::output::{self, Row, Rows, Voice, json_of, line_of, table_of};
use clap::ArgMatches;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::io::IsTerminal;
use std::time::Duration;
use tenure::core::{Occupancy, Scope, StoreTraits, WatchSource};
use tenure::{LeaseStore, SharedStore};
use tokio::sync::mpsc;

/// How often a terminal is redrawn: what remains is counted down by the store, renewals included.
const REDRAW_EVERY: Duration = Duration::from_secs(1);

/// Longest time between two looks where the store tells of changes.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Time between two looks where it does not.
const LOOK_EVERY_UNTOLD: Duration = Duration::from_secs(1);

/// A lease that has expired is seen so long after it.
const EXPIRY_SEEN_AFTER: Duration = Duration::from_millis(20);

/// Pause before a store that failed is asked again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Hints that may wait.
const HINTS_WAITING: usize = 16;

/// Clears the terminal, and what is above it.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// Shows leases and what becomes of them, until a signal ends it, or nobody reads it any more.
pub(crate) async fn watch(
    arguments: &SelectArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    form: Form,
    voice: Voice,
) -> Result<u8, Failure> {
    tokio::select! {
        failed = show(arguments, matches, store, form, voice) => match failed? {},
        // What was waited for has come: `tenure watch job | grep -m 1 held` must not wait for the next change.
        () = output::until_unread() => Ok(crate::exit::of_signal(libc::SIGPIPE)),
    }
}

async fn show(
    arguments: &SelectArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    form: Form,
    voice: Voice,
) -> Result<Infallible, Failure> {
    let chosen = Chosen::new(arguments.selection(matches)?)?;
    let store = super::open(store).await?;
    let traits = store.traits();
    let mut hints = follow(&store, &chosen);
    let live = form == Form::Text && std::io::stdout().is_terminal();
    let mut shown = Shown::default();
    let mut failing = false;
    // The first look decides whether the store can be read at all.
    let mut rows = chosen.read(&*store).await?;
    loop {
        if live {
            output::print(&format!(
                "{CLEAR}{} at {}\n\n{}",
                traits.kind,
                traits.location,
                table_of(&rows)
            ))?;
        } else {
            output::print(&shown.changes(&rows, form))?;
        }
        let pause = if live { REDRAW_EVERY } else { pause(&rows, &traits) };
        wait(&mut hints, pause).await;
        loop {
            match chosen.read(&*store).await {
                Ok(read) => {
                    rows = read;
                    failing = false;
                    break;
                }
                Err(failure) => {
                    if !failing {
                        voice.say("unreadable", &format!("{failure}; trying on"), json!({}));
                    }
                    failing = true;
                    tokio::time::sleep(RETRY_EVERY).await;
                }
            }
        }
    }
}

/// Hints that something may have changed, for as long as the store gives them.
fn follow(store: &SharedStore, chosen: &Chosen) -> mpsc::Receiver<()> {
    let (sender, hints) = mpsc::channel(HINTS_WAITING);
    let scopes: Vec<Scope> = match chosen {
        Chosen::Prefix { prefix, .. } => vec![Scope::Prefix(prefix.clone())],
        Chosen::Names(names) => names.iter().cloned().map(Scope::Name).collect(),
    };
    for scope in scopes {
        let (store, sender) = (SharedStore::clone(store), sender.clone());
        tokio::spawn(async move { pass_on(&*store, &scope, &sender).await });
    }
    hints
}

async fn pass_on(store: &dyn LeaseStore, scope: &Scope, hints: &mpsc::Sender<()>) {
    loop {
        match store.watch(scope).await {
            Ok(mut watch) => {
                while watch.next().await.is_ok() {
                    // A queue that is full makes the reader look anyway.
                    let _ = hints.try_send(());
                }
            }
            Err(error) if error.fault.is_misconfiguration() => return,
            Err(_) => {}
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}

async fn wait(hints: &mut mpsc::Receiver<()>, pause: Duration) {
    tokio::select! {
        Some(()) = hints.recv() => while hints.try_recv().is_ok() {},
        () = tokio::time::sleep(pause) => {}
    }
}

/// Until the next lease would expire, and not longer than the store may leave a change untold.
fn pause(rows: &[Row], traits: &StoreTraits) -> Duration {
    let longest = match traits.watch {
        WatchSource::Push | WatchSource::Poll => LOOK_EVERY,
        WatchSource::Absent => LOOK_EVERY_UNTOLD,
    };
    rows.iter()
        .filter_map(|row| match row {
            Row::Lease(lease) if lease.occupancy() == Occupancy::Held => {
                Some(lease.remaining + EXPIRY_SEEN_AFTER)
            }
            Row::Lease(_) | Row::Never(_) | Row::Unreadable { .. } => None,
        })
        .fold(longest, Duration::min)
}

/// What was printed last of each lease.
#[derive(Default)]
struct Shown {
    seen: BTreeMap<String, String>,
}

impl Shown {
    /// A line for each lease that is not as it was.
    fn changes(&mut self, rows: &Rows, form: Form) -> String {
        let mut lines = String::new();
        for row in rows {
            let token = match row {
                Row::Lease(lease) => lease.token.to_string(),
                Row::Never(_) | Row::Unreadable { .. } => String::new(),
            };
            let fingerprint = format!("{} {token}", row.state());
            if self.seen.get(row.key()) == Some(&fingerprint) {
                continue;
            }
            self.seen.insert(row.key().to_owned(), fingerprint);
            lines.push_str(&match form {
                Form::Text => line_of(row),
                Form::Json => json_of(row).to_string(),
            });
            lines.push('\n');
        }
        let there: HashSet<&str> = rows.iter().map(Row::key).collect();
        self.seen.retain(|key, _| {
            let is_there = there.contains(key.as_str());
            if !is_there {
                lines.push_str(&match form {
                    Form::Text => output::line(&format!("{key}: removed")),
                    Form::Json => format!("{}\n", json!({"name": key, "state": "removed"})),
                });
            }
            is_there
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tenure::LeaseName;

    /// Comparing each name with each takes many hundred times as long as making their lines.
    #[test]
    fn a_look_at_many_leases_takes_not_much_longer_than_their_lines() {
        let name = |number: u32| LeaseName::new(format!("job-{number:06}")).unwrap();
        let mut rows: Rows = (0..60_000).map(|number| Row::Never(name(number))).collect();
        let began = Instant::now();
        let lines: String = rows.iter().map(|row| line_of(row) + "\n").collect();
        let making = began.elapsed();
        let mut shown = Shown::default();
        assert_eq!(shown.changes(&rows, Form::Text), lines);
        rows.remove(7);
        let began = Instant::now();
        assert_eq!(shown.changes(&rows, Form::Text), "job-000007: removed\n");
        let looking = began.elapsed();
        assert!(
            looking < making * 100,
            "{looking:?}, and {making:?} for the lines"
        );
        assert_eq!(shown.changes(&rows, Form::Text), "", "said once");
    }
}
