//! The examination for an operator. It writes nothing.

mod calls;
mod guards;
mod left_open;
mod privileges;
mod settings;
mod setup;
mod standbys;
mod tables;

use crate::fault::Deed;
use crate::site::Site;
use crate::tls::Trust;
use crate::url::StoreUrl;
use std::time::{Duration, Instant};
use tenure_core::{Durability, Finding, StoreError, WatchSource};
use tenure_remote::findings::{bad, good, unknown, unproven, warning};
use tokio_postgres::config::Host;

/// How many questions the round trip is the median of.
const PINGS: usize = 9;

/// A round trip above this makes short ttls unwise.
const ROUND_TRIP_SLOW: Duration = Duration::from_millis(100);

/// Most names that a finding has.
const NAMED_MAX: usize = 10;

/// These names, as SQL writes them, in one line; nothing where there is none.
fn named(names: &[String]) -> Option<String> {
    let shown: Vec<String> = names
        .iter()
        .take(NAMED_MAX)
        .map(|name| name.replace(char::is_control, "?"))
        .collect();
    let shown = shown.join(", ");
    match names.len() {
        0 => None,
        1..=NAMED_MAX => Some(shown),
        all => Some(format!("{shown} and {} more", all - NAMED_MAX)),
    }
}

impl StoreUrl {
    /// Whether the servers have to prove who they are, as far as the way to them leaves the machine.
    fn examine_encryption(&self) -> Option<Finding> {
        let Trust::Anybody = self.trust else {
            return None;
        };
        let hosts = self.config.get_hosts().iter().filter_map(|host| match host {
            Host::Tcp(name) => Some(name.as_str()),
            Host::Unix(_) => None,
        });
        unproven(
            hosts,
            "say sslmode=verify-full in the URL, with sslrootcert= for a root of your own",
        )
    }
}

impl Site {
    /// Examines server and schema; see [`LeaseStore::examine`](tenure_core::LeaseStore::examine).
    ///
    /// # Errors
    /// Only if the server does not answer at all.
    pub(crate) async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        let mut findings = vec![self.round_trip().await?];
        findings.push(match self.durability {
            Durability::Safe => good(
                "durability",
                "acknowledged leases survive a crash, and a fail-over to a synchronous standby",
            ),
            Durability::FenceOnly(why) => warning(
                "durability",
                why,
                "mend it, or rely on fences alone: they hold whatever the store forgets",
            ),
        });
        findings.extend(self.examine_standbys().await);
        findings.extend(self.dial.examine_hosts().await);
        findings.extend(self.dial.examine_cluster());
        findings.extend(self.dial.url.examine_encryption());
        findings.extend(self.examine_settings().await);
        findings.extend(self.examine_left_open().await);
        findings.push(self.examine_setup().await);
        findings.extend(self.examine_tables().await);
        findings.extend(self.examine_guards().await);
        findings.extend(self.examine_privileges().await);
        findings.extend(self.examine_calls().await);
        findings.push(match self.watch {
            WatchSource::Push => good("watch", "notifications arrive: a release wakes standbys at once"),
            WatchSource::Poll | WatchSource::Absent => warning(
                "watch",
                "notifications do not arrive: standbys wait for the remaining time, also after a release",
                "let Tenure connect to the server itself, round the transaction-mode pooler, and without listen=off",
            ),
        });
        Ok(findings)
    }

    async fn round_trip(&self) -> Result<Finding, StoreError> {
        let mut times = Vec::with_capacity(PINGS);
        for _ping in 0..PINGS {
            let sent = Instant::now();
            self.ask(Deed::Read, "a ping", "SELECT 1", &[]).await?;
            times.push(sent.elapsed());
        }
        times.sort();
        let (median, worst) = (times[PINGS / 2], times[PINGS - 1]);
        let detail = format!("{median:.1?} (median of {PINGS} questions), worst {worst:.1?}");
        Ok(match median > ROUND_TRIP_SLOW {
            true => warning(
                "round trip",
                detail,
                "run candidates nearer to the server, or take a ttl of 30s or more",
            ),
            false => good("round trip", detail),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use crate::url::StoreUrl;

    #[test]
    fn server_that_proves_nothing_is_told_of_unless_it_is_here() {
        for (url, is_told) in [
            ("postgres://db1/bank", true),
            ("postgres://db1/bank?sslmode=require", true),
            ("postgres://localhost,db1/bank", true),
            ("postgres://db1/bank?sslmode=verify-full", false),
            ("postgres://127.0.0.1/bank", false),
            ("postgres://%2Fvar%2Frun%2Fpostgresql/bank", false),
        ] {
            let told = StoreUrl::parse(url).unwrap().examine_encryption();
            assert_eq!(told.is_some(), is_told, "{url}");
        }
    }
}
