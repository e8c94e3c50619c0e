//! The examination for an operator. It writes nothing.

mod clock;
mod collection;
mod deployment;
mod privileges;

use crate::fault::Deed;
use crate::identity;
use crate::site::Site;
use mongodb::bson::{Document, doc};
use std::time::{Duration, Instant};
use tenure_core::{Finding, StoreError};
use tenure_remote::findings::{bad, good, unknown, warning};

/// How many pings the round trip is the median of.
const PINGS: usize = 9;

/// A round trip above this makes short ttls unwise.
const ROUND_TRIP_SLOW: Duration = Duration::from_millis(100);

impl Site {
    /// Examines server and collection; see [`LeaseStore::examine`](tenure_core::LeaseStore::examine).
    ///
    /// # Errors
    /// Only if the server does not answer at all.
    pub(crate) async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        let mut findings = vec![self.round_trip().await?];
        let hello = self.admin("saying hello", doc! { "hello": 1 }).await?;
        findings.extend(self.examine_deployment(&hello).await);
        findings.extend(self.examine_identity().await);
        findings.extend(self.examine_clock(&hello).await);
        findings.extend(self.examine_privileges().await);
        findings.extend(self.examine_collection().await);
        Ok(findings)
    }

    async fn examine_identity(&self) -> Option<Finding> {
        let found = async {
            let mark = identity::mark(&self.leases).await?;
            let lease = doc! { "_id": { "$type": "string" }, "generation": { "$type": "long" } };
            let has_leases = mark.is_none() && self.leases.find_one(lease).await?.is_some();
            Ok((mark, has_leases))
        };
        match self.within(Deed::Read, identity::SUBJECT, found).await {
            Ok((Some(mark), _)) => Some(good(
                "store",
                format!("its mark is {}, which copies of it have as well", mark.id),
            )),
            Ok((None, true)) => Some(warning(
                "store",
                "it has leases and no mark: nobody can tell it from another at its address",
                "start all programs that use it anew: the next lease that is taken leaves a mark, if no validator refuses it",
            )),
            // The first lease makes it.
            Ok((None, false)) => None,
            Err(error) => Some(unknown("store", &error)),
        }
    }

    async fn round_trip(&self) -> Result<Finding, StoreError> {
        let mut times = Vec::with_capacity(PINGS);
        for _ping in 0..PINGS {
            let sent = Instant::now();
            self.admin("a ping", doc! { "ping": 1 }).await?;
            times.push(sent.elapsed());
        }
        times.sort();
        let (median, worst) = (times[PINGS / 2], times[PINGS - 1]);
        let detail = format!("{median:.1?} (median of {PINGS} pings), worst {worst:.1?}");
        Ok(match median > ROUND_TRIP_SLOW {
            true => warning(
                "round trip",
                detail,
                "run candidates nearer to the primary, or take a ttl of 30s or more",
            ),
            false => good("round trip", detail),
        })
    }

    /// Runs a command that changes nothing on the `admin` database of the primary.
    async fn admin(&self, what: &str, command: Document) -> Result<Document, StoreError> {
        let admin = self.client.database("admin");
        self.within(Deed::Read, what, admin.run_command(command).into_future())
            .await
    }
}
