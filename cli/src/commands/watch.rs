//! `tenure watch`.

use super::hints::Hints;
use super::look::{Chosen, Viewed};
use crate::arguments::{Form, SelectArguments};
use crate::exit::Failure;
use crate::output::{self, Row, Rows, Voice, clean, json_of, line_of, table_of};
use clap::ArgMatches;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::io::IsTerminal;
use std::time::Duration;
use tenure::contract::{Occupancy, StoreTraits, WatchSource};

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

/// Clears the terminal, but for what was scrolled off it before.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

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
        // What was waited for has come: `tenure watch job | grep -m 1 held` must not wait for the next
        // change.
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
    let live = form == Form::Text && std::io::stdout().is_terminal();
    let mut shown = Shown::default();
    let store = loop {
        let viewed = Viewed::open(store).await?;
        let Some(store) = viewed.store.clone() else {
            let rows = chosen.read_in(&viewed).await?;
            output::print(&match live {
                true => format!("{CLEAR}{}\n\n{}", viewed.shown(), table_of(&rows)),
                false => shown.changes(&rows, form),
            })?;
            tokio::time::sleep(LOOK_EVERY_UNTOLD).await;
            continue;
        };
        break store;
    };
    let traits = store.traits();
    let mut hints = Hints::follow(&store, chosen.scopes());
    let mut failing = false;
    // The first look decides whether the store can be read at all.
    let mut rows = chosen.read(&*store).await?;
    loop {
        if live {
            output::print(&format!(
                "{CLEAR}{} at {}\n\n{}",
                traits.kind,
                clean(&traits.location),
                table_of(&rows)
            ))?;
        } else {
            output::print(&shown.changes(&rows, form))?;
        }
        let pause = if live { REDRAW_EVERY } else { pause(&rows, &traits) };
        hints.wait(pause).await;
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
