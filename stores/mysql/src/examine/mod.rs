//! The examination for an operator. It writes nothing.

mod privileges;
mod settings;
mod setup;

use crate::site::Site;
use crate::url::{Encryption, StoreUrl};
use crate::watch::is_missing;
use std::time::{Duration, Instant};
use tenure_core::{Durability, Finding, StoreError};
use tenure_remote::Deed;
use tenure_remote::findings::{bad, good, unknown, unproven, warning};

/// How many questions the round trip is the median of.
const PINGS: usize = 9;

/// A round trip above this makes short ttls unwise.
const ROUND_TRIP_SLOW: Duration = Duration::from_millis(100);

impl StoreUrl {
    /// Whether the server has to prove who it is, as far as the way to it leaves the machine.
    fn examine_encryption(&self) -> Option<Finding> {
        match self.encryption {
            Encryption::VerifyIdentity => None,
            Encryption::Disabled | Encryption::Preferred | Encryption::Required => unproven(
                [self.host.as_str()],
                "say ssl-mode=verify-identity in the URL, with ssl-ca= for a root of your own",
            ),
        }
    }
}

impl Site {
    /// Examines server and tables; see [`LeaseStore::examine`](tenure_core::LeaseStore::examine).
    ///
    /// # Errors
    /// Only if the server does not answer at all.
    pub(crate) async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        let mut findings = vec![self.round_trip().await?];
        findings.extend(self.dial.examine_addresses().await);
        findings.extend(self.dial.url.examine_encryption());
        match self.server().await {
            Ok(server) => {
                findings.push(match server.durability() {
                    Durability::Safe => good("durability", "acknowledged leases survive a crash"),
                    Durability::FenceOnly(why) => warning(
                        "durability",
                        why,
                        "mend it, or rely on fences alone: they hold whatever the store forgets",
                    ),
                });
                findings.extend(self.examine_settings(&server).await);
            }
            Err(error) => findings.push(unknown("settings", &error)),
        }
        findings.push(self.examine_setup().await);
        findings.extend(self.examine_privileges().await);
        findings.push(self.examine_watch().await);
        Ok(findings)
    }

    async fn examine_watch(&self) -> Finding {
        match self.call_wait().await {
            Ok(()) => good(
                "watch",
                "a procedure of the server's looks for releases, and wakes who waits",
            ),
            Err(error) if is_missing(&error) => warning(
                "watch",
                format!("nothing wakes who waits before the lease ends: {}", error.message),
                "run `tenure store init` again as the owner, grant the procedure, and start the candidates anew",
            ),
            Err(error) => unknown("watch", &error),
        }
    }

    async fn round_trip(&self) -> Result<Finding, StoreError> {
        let mut times = Vec::with_capacity(PINGS);
        for _ping in 0..PINGS {
            let sent = Instant::now();
            self.ask(Deed::Read, "a ping", "SELECT 1").await?;
            times.push(sent.elapsed());
        }
        times.sort();
        let (median, worst) = (times[PINGS / 2], times[PINGS - 1]);
        let detail = format!("{median:.1?} (median of {PINGS} questions), worst {worst:.1?}");
        Ok(match median > ROUND_TRIP_SLOW {
            true => warning(
                "round trip",
                detail,
                "take ttls of at least a hundred round trips",
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
            ("mysql://db1/bank", true),
            ("mysql://db1/bank?ssl-mode=required", true),
            ("mysql://db1/bank?ssl-mode=verify-identity", false),
            ("mysql://127.0.0.1/bank", false),
        ] {
            let told = StoreUrl::parse(url).unwrap().examine_encryption();
            assert_eq!(told.is_some(), is_told, "{url}");
        }
    }
}
