//! Sentinels: where the primary is, and whether it still is there.

use crate::connect::{Dialled, Target};
use crate::url::{Host, Set};
use futures_util::future::join_all;
use redis::ProtocolVersion;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::none_lets_in;

/// How long a sentinel may take to answer before the next one is asked.
const SENTINEL_TIME_MAX: Duration = Duration::from_millis(700);

/// How often the sentinels are asked whether the primary in use is one still. One that was cut off from them
/// does not say so itself.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Looks in which most sentinels answer, and none names the primary that is known, before an earlier one is
/// believed: somebody has set the sentinels up anew, whose epochs begin anew then.
const FORGOTTEN_AFTER: u32 = 10;

/// What the connections of a store share of what the sentinels say.
#[derive(Default)]
pub(crate) struct Guide {
    /// The sentinel to ask first: a place in the URL's list.
    first: AtomicUsize,
    known: Mutex<Option<Known>>,
    /// Somebody asks the sentinels time and again.
    is_overseen: AtomicBool,
}

/// A primary, as a sentinel names it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Named {
    host: Host,
    /// Of the fail-over that made it one: what is named with a later one is newer. None where the sentinel
    /// does not tell.
    epoch: u64,
}

/// The primary that is followed.
#[derive(Debug)]
struct Known {
    primary: Named,
    /// Looks since any sentinel has named it, though most have answered.
    unnamed: u32,
}

impl Known {
    fn new(primary: Named) -> Self {
        Self { primary, unnamed: 0 }
    }

    /// Hears what the sentinels say that answered, of so many. Whether another primary is followed from now.
    ///
    /// A sentinel that is cut off goes on naming the server that ruled before, in an earlier epoch: however
    /// many do, they are not believed while others may know better.
    fn hear(&mut self, told: &[(usize, Named)], sentinels: usize) -> bool {
        let Some(epoch) = told.iter().map(|(_, named)| named.epoch).max() else {
            return false;
        };
        let names = |(_, named): &&(usize, Named)| named.epoch == epoch;
        let is_named = told.iter().any(|(_, named)| {
            named.host == self.primary.host && (named.epoch == epoch || epoch < self.primary.epoch)
        });
        if is_named {
            self.primary.epoch = self.primary.epoch.max(epoch);
            self.unnamed = 0;
            return false;
        }
        if epoch < self.primary.epoch {
            self.unnamed += u32::from(told.len() > sentinels / 2);
            if self.unnamed < FORGOTTEN_AFTER {
                return false;
            }
        }
        let Some((_, newer)) = told.iter().find(names) else {
            return false;
        };
        *self = Self::new(newer.clone());
        true
    }

    /// Whether a sentinel that names this one may be followed: another one must be newer.
    fn yields_to(&self, named: &Named) -> bool {
        named.host == self.primary.host || named.epoch > self.primary.epoch
    }
}

impl Guide {
    /// Whether the sentinels have named another primary since this one was found.
    pub(crate) fn names_another(&self, host: &Host) -> bool {
        lock(&self.known)
            .as_ref()
            .is_some_and(|known| known.primary.host != *host)
    }

    /// This one was named, and takes writes.
    fn found(&self, named: Named) {
        let mut known = lock(&self.known);
        match &mut *known {
            Some(known) if !known.yields_to(&named) => {}
            Some(known) if known.primary.host == named.host => {
                known.primary.epoch = known.primary.epoch.max(named.epoch);
            }
            _ => *known = Some(Known::new(named)),
        }
    }
}

impl Target {
    /// Connects to the primary that the sentinels name, and has them asked time and again whether it is one
    /// still. Begins with the sentinel that led there last: the first of the list may be gone for good, and
    /// who waits may have less time than it is given.
    ///
    /// # Errors
    /// Not applied.
    pub(crate) async fn connect_to_primary(&self, primary: &str) -> Result<Dialled, StoreError> {
        let count = self.url.hosts.len();
        let first = self.guide.first.load(Ordering::Relaxed);
        let mut places = (0..count).map(|step| (first + step) % count);
        let (mut dialled, mut failed) = (Vec::new(), None);
        loop {
            let (sentinel, named) = match self.ask_sentinels(primary, &mut places).await {
                Ok(told) => told,
                // Why the one that was named is none says more than that no other is named.
                Err(error) => return Err(failed.unwrap_or(error)),
            };
            // One sentinel that is cut off from the others goes on naming the server that ruled before: then
            // they know better.
            if dialled.contains(&named.host) {
                continue;
            }
            let ruler = match self.dial_ruler(named.host.clone()).await {
                Ok(ruler) => self.admitted(ruler).await,
                Err(error) => Err(error),
            };
            match ruler {
                Ok(ruler) => {
                    self.guide.first.store(sentinel, Ordering::Relaxed);
                    self.guide.found(named);
                    self.be_overseen();
                    return Ok(ruler);
                }
                Err(error) => failed = Some(error),
            }
            self.guide.first.store((sentinel + 1) % count, Ordering::Relaxed);
            dialled.push(named.host);
        }
    }

    /// Has the sentinels asked time and again, by one for all connections.
    fn be_overseen(&self) {
        if !self.guide.is_overseen.swap(true, Ordering::Relaxed) {
            tokio::spawn(oversee(
                self.guided_by(Arc::default()),
                Arc::downgrade(&self.guide),
            ));
        }
    }

    /// Asks one sentinel after the other of these where the primary is, and says which one knew.
    async fn ask_sentinels(
        &self,
        primary: &str,
        places: impl Iterator<Item = usize>,
    ) -> Result<(usize, Named), StoreError> {
        let mut failed = Vec::new();
        let unknown = |told: String| StoreError::not_applied(Fault::Unreachable, told);
        for place in places {
            let sentinel = &self.url.hosts[place];
            let asking = self.ask_sentinel(sentinel, primary);
            match tokio::time::timeout(SENTINEL_TIME_MAX, asking).await {
                Ok(Ok(Some(named))) => match &*lock(&self.guide.known) {
                    Some(known) if !known.yields_to(&named) => {
                        failed.push(unknown(format!(
                            "the sentinel at {sentinel} names {}, and {} was named after it",
                            named.host, known.primary.host
                        )));
                    }
                    _ => return Ok((place, named)),
                },
                Ok(Ok(None)) => {
                    failed.push(unknown(format!(
                        "the sentinel at {sentinel} watches no primary \"{}\"",
                        primary.escape_debug()
                    )));
                }
                Ok(Err(error)) => failed.push(error),
                Err(_late) => failed.push(unknown(format!(
                    "the sentinel at {sentinel} did not answer{}",
                    self.of_silence()
                ))),
            }
        }
        let error = none_lets_in(failed);
        let repair = match error.fault {
            Fault::Unauthenticated => {
                "; sentinelUser= and sentinelPassword= in the URL say who asks the sentinels, and empty that nobody is named"
            }
            _ => "",
        };
        Err(StoreError::not_applied(
            error.fault,
            format!(
                "no sentinel of {} tells where the primary is: {}{repair}",
                self.url.shown(),
                error.message
            ),
        ))
    }

    /// The primaries that the sentinels name which answer.
    pub(crate) async fn named_primaries(&self, primary: &str) -> Vec<Host> {
        let asking =
            self.url.hosts.iter().map(|sentinel| {
                tokio::time::timeout(SENTINEL_TIME_MAX, self.ask_sentinel(sentinel, primary))
            });
        let told = join_all(asking).await.into_iter().flatten().flatten().flatten();
        let mut named: Vec<Host> = Vec::new();
        for Named { host, .. } in told {
            if !named.contains(&host) {
                named.push(host);
            }
        }
        named
    }

    async fn ask_sentinel(&self, sentinel: &Host, primary: &str) -> Result<Option<Named>, StoreError> {
        let mut of_sentinel = self.clone();
        of_sentinel.url.database = 0;
        let client = of_sentinel.client(sentinel, &self.url.sentinel_credentials, ProtocolVersion::RESP2)?;
        let asked = async {
            let mut connection = client.get_multiplexed_async_connection().await?;
            // Not `SENTINEL MASTER` for the address: while a fail-over goes on, that is the old one's. Nor a
            // sentinel that tells only the address is asked in vain.
            let all = redis::cmd("SENTINEL").arg("master").arg(primary).to_owned();
            let all = all.query_async::<BTreeMap<String, String>>(&mut connection).await;
            let epoch = all.ok().and_then(|all| all.get("config-epoch")?.parse().ok());
            let address = redis::cmd("SENTINEL")
                .arg("get-master-addr-by-name")
                .arg(primary)
                .query_async::<Option<(String, u16)>>(&mut connection)
                .await?;
            Ok(address.map(|(name, port)| Named {
                host: Host { name, port },
                epoch: epoch.unwrap_or(0),
            }))
        };
        asked.await.map_err(|error| self.not_greeted(&error, sentinel))
    }

    /// Asks all sentinels at once. Those that do not answer change nothing.
    async fn look_again(&self, primary: &str) {
        let hosts = &self.url.hosts;
        let asking = hosts.iter().enumerate().map(|(place, sentinel)| async move {
            let asking = self.ask_sentinel(sentinel, primary);
            let told = tokio::time::timeout(SENTINEL_TIME_MAX, asking).await;
            Some((place, told.ok()?.ok()??))
        });
        let told: Vec<(usize, Named)> = join_all(asking).await.into_iter().flatten().collect();
        let mut known = lock(&self.guide.known);
        let Some(known) = &mut *known else { return };
        let left = known.primary.host.clone();
        if known.hear(&told, hosts.len()) {
            let now = &known.primary;
            tracing::warn!(%left, now = %now.host, "the sentinels name another primary");
            if let Some((place, _)) = told.iter().find(|(_, named)| named == now) {
                self.guide.first.store(*place, Ordering::Relaxed);
            }
        }
    }
}

/// Asks the sentinels until nobody follows them any more.
async fn oversee(target: Target, guide: Weak<Guide>) {
    loop {
        let Some(guide) = guide.upgrade() else { return };
        let target = target.guided_by(guide);
        if let Set::Sentinels { primary } = target.set() {
            target.look_again(primary).await;
        }
        drop(target);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{FORGOTTEN_AFTER, Host, Known, Named};

    fn named(port: u16, epoch: u64) -> Named {
        Named {
            host: Host {
                name: "host".to_owned(),
                port,
            },
            epoch,
        }
    }

    fn told<const COUNT: usize>(told: [Named; COUNT]) -> Vec<(usize, Named)> {
        told.into_iter().enumerate().collect()
    }

    #[test]
    fn one_sentinel_that_knows_a_newer_primary_is_believed_and_no_older_one() {
        let mut known = Known::new(named(1, 4));
        assert!(!known.hear(&[], 3), "who does not answer changes nothing");
        assert!(!known.hear(&told([named(1, 4), named(2, 4), named(2, 4)]), 3));
        assert!(!known.hear(&told([named(2, 3)]), 3));
        assert!(known.hear(&told([named(1, 4), named(2, 5), named(1, 4)]), 3));
        assert_eq!(known.primary, named(2, 5));
        assert!(!known.yields_to(&named(1, 4)), "the way back");
        assert!(known.yields_to(&named(2, 4)) && known.yields_to(&named(3, 6)));
    }

    #[test]
    fn another_primary_of_the_same_epoch_is_believed_when_nobody_names_the_known_one() {
        let mut known = Known::new(named(1, 0));
        assert!(known.hear(&told([named(2, 0)]), 3));
        assert_eq!(known.primary, named(2, 0));
    }

    /// A minority that is cut off may say the same for ever.
    #[test]
    fn an_earlier_epoch_is_believed_in_time_if_most_sentinels_answer_with_it() {
        let mut known = Known::new(named(2, 5));
        for _look in 0..2 * FORGOTTEN_AFTER {
            assert!(!known.hear(&told([named(1, 0)]), 3));
        }
        for _look in 1..FORGOTTEN_AFTER {
            assert!(!known.hear(&told([named(1, 0), named(1, 0)]), 3));
        }
        assert!(!known.hear(&told([named(2, 1), named(1, 0)]), 3), "it was named");
        for _look in 1..FORGOTTEN_AFTER {
            assert!(!known.hear(&told([named(1, 0), named(1, 0)]), 3));
        }
        assert!(known.hear(&told([named(1, 0), named(1, 0)]), 3));
        assert_eq!(known.primary, named(1, 0));
    }
}
