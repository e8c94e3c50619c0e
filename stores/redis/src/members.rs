//! Members of a cluster: each leads to the one that rules the records, and some may be gone.

use crate::connect::{Dialled, Target};
use crate::url::invalid;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenure_core::StoreError;
use tenure_remote::none_lets_in;

/// How long a member is waited for alone before the next one is dialled beside it. Nine that are silent one
/// after the other would take longer than connecting may.
const NEXT_AFTER: Duration = Duration::from_millis(250);

impl Target {
    /// Connects to the server, or to the first that leads there of the members of a cluster. Begins with the
    /// one that did last: the first of the list may be gone for good.
    pub(crate) async fn connect_to_member(&self) -> Result<Dialled, StoreError> {
        let count = self.url.hosts.len();
        let first = self.first_member.load(Ordering::Relaxed);
        let mut places = (0..count).map(|step| (first + step) % count);
        let mut dials = FuturesUnordered::new();
        let mut failed = Vec::new();
        loop {
            let place = places.next();
            dials.extend(place.map(|place| self.dial_member(place)));
            let ended = match places.len() {
                0 => dials.next().await,
                _ => match tokio::time::timeout(NEXT_AFTER, dials.next()).await {
                    Ok(ended) => ended,
                    Err(_late) => {
                        self.begin_after(place);
                        continue;
                    }
                },
            };
            match ended {
                Some((place, Ok(dialled))) => {
                    self.first_member.store(place, Ordering::Relaxed);
                    return Ok(dialled);
                }
                // What one says is true of that one: its own passwords are each member's.
                Some((place, Err(error))) => {
                    failed.push(error);
                    self.begin_after(Some(place));
                }
                None => return Err(none_lets_in(failed)),
            }
        }
    }

    /// Whoever asks next, after this dial was given up, begins with another.
    fn begin_after(&self, place: Option<usize>) {
        if let Some(place) = place {
            let next = (place + 1) % self.url.hosts.len();
            self.first_member.store(next, Ordering::Relaxed);
        }
    }

    async fn dial_member(&self, place: usize) -> (usize, Result<Dialled, StoreError>) {
        let host = &self.url.hosts[place];
        let dialled = self.dial_ruler(host.clone()).await;
        let is_alone = self.url.hosts.len() == 1;
        let dialled = match dialled {
            Ok(dialled) if dialled.hello.clustered || is_alone => self.admitted(dialled).await,
            // Of servers that know nothing of each other, each would have leases of its own.
            Ok(_) => Err(invalid(&format!(
                "the Redis URL names several servers, and the one at {host} is no member of a cluster; write \
                 redis+sentinel:// for sentinels, redis+quorum:// for independent servers, or name that one alone"
            ))),
            Err(error) => Err(error),
        };
        (place, dialled)
    }
}
