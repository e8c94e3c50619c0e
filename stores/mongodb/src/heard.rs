//! What the driver tells by itself: of new connections, and of a primary that it does not take for one.

use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;
use mongodb::event::sdam::{SdamEvent, TopologyDescriptionChangedEvent};
use mongodb::options::ClientOptions;
use mongodb::{ServerInfo, ServerType};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a primary may not know that it was deposed: its set elects another after 10 s by default. The
/// driver leaves it out in the same words as one of a set that was made anew.
const DEPOSED_TIME_MAX: Duration = Duration::from_secs(15);

/// The driver's words of a primary that is of an earlier election, or has an earlier configuration of its
/// set, than one that this client has met before.
pub(crate) const OUTDATED: &str = "primary marked stale due to electionId/setVersion mismatch";

/// Of one client.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    connections: AtomicU64,
    outdated: Mutex<Option<Outdated>>,
}

/// The only primary that there is, which the driver leaves out.
#[derive(Clone, Debug)]
struct Outdated {
    address: String,
    since: Instant,
}

impl Heard {
    /// Has the driver tell it of clients of these options.
    pub(crate) fn of(options: &mut ClientOptions) -> Arc<Self> {
        let heard = Arc::new(Self::default());
        let of_connections = Arc::clone(&heard);
        options.cmap_event_handler = Some(EventHandler::callback(move |event| {
            // A pool that is cleared has new connections next.
            if let CmapEvent::ConnectionReady(_) | CmapEvent::PoolCleared(_) = event {
                of_connections.connections.fetch_add(1, Ordering::SeqCst);
            }
        }));
        let of_servers = Arc::clone(&heard);
        options.sdam_event_handler = Some(EventHandler::callback(move |event| {
            if let SdamEvent::TopologyDescriptionChanged(change) = event {
                of_servers.note(&change);
            }
        }));
        heard
    }

    /// How often there was a connection that may lead elsewhere than those before.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    /// The primary of a set that is of an earlier time than this client has met, for longer than a deposed
    /// one is left out.
    pub(crate) fn outdated(&self) -> Option<String> {
        let noted = self.outdated.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = noted.as_ref()?;
        (noted.since.elapsed() > DEPOSED_TIME_MAX).then(|| noted.address.clone())
    }

    fn note(&self, change: &TopologyDescriptionChangedEvent) {
        let servers = change.new_description.servers();
        let has_primary = servers
            .values()
            .any(|server| server.server_type() == ServerType::RsPrimary);
        let outdated = servers.iter().find(|(_, server)| is_outdated(server));
        let mut noted = self.outdated.lock().unwrap_or_else(PoisonError::into_inner);
        *noted = outdated.filter(|_| !has_primary).map(|(address, _)| Outdated {
            address: address.to_string(),
            since: noted.as_ref().map_or_else(Instant::now, |noted| noted.since),
        });
    }
}

fn is_outdated(server: &ServerInfo) -> bool {
    server
        .error()
        .is_some_and(|error| error.to_string().contains(OUTDATED))
}
