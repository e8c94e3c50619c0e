//! By which client a store asks, and what puts another one into its place.
//!
//! The driver logs in once for each connection and keeps those that work. The server keeps them too when their user is dropped, and
//! lets them do nothing; and one that was made anew is another user, whatever its name. A start of the process would log in as that
//! one, and so does a new client.

use crate::heard::Heard;
use crate::site::{Site, Topology};
use mongodb::Client;
use mongodb::options::ClientOptions;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A client serves so long at least: a server that lets each one in and then knows nobody is not dialled without end.
const CLIENT_SERVES_LEAST: Duration = Duration::from_secs(1);

/// What a store's requests go by.
pub(crate) struct Lines {
    opened: Arc<Site>,
    requests: Line,
}

impl Lines {
    /// By clients of these options, which the store makes.
    pub(crate) fn of_our_own(opened: Site, mut options: ClientOptions) -> Self {
        // A new client is to find no other set than the one that was met.
        if let Topology::ReplicaSet { name } = &opened.topology {
            options.repl_set_name = Some(name.clone());
        }
        Self::of(opened, Some(options))
    }

    /// By a client of the user's own, which is never exchanged: nobody knows its options.
    pub(crate) fn of_a_given_client(opened: Site) -> Self {
        Self::of(opened, None)
    }

    fn of(opened: Site, options: Option<ClientOptions>) -> Self {
        let opened = Arc::new(opened);
        Self {
            requests: Line::new(Arc::clone(&opened), options),
            opened,
        }
    }

    /// As connecting has found it: for what no client is asked.
    pub(crate) fn opened(&self) -> &Site {
        &self.opened
    }

    /// For the next request. On the store's own thread, where clients live.
    pub(crate) fn site(&self) -> Arc<Site> {
        self.requests.site()
    }
}

/// One client at a time.
struct Line {
    /// Of the next one.
    options: Option<ClientOptions>,
    serving: Mutex<Serving>,
}

struct Serving {
    site: Arc<Site>,
    since: Instant,
}

impl Line {
    fn new(site: Arc<Site>, options: Option<ClientOptions>) -> Self {
        let since = Instant::now();
        Self {
            options,
            serving: Mutex::new(Serving { site, since }),
        }
    }

    fn site(&self) -> Arc<Site> {
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = serving.site.login.as_ref().is_some_and(|login| login.is_over());
        if is_over
            && serving.since.elapsed() >= CLIENT_SERVES_LEAST
            && let Some(anew) = self
                .options
                .as_ref()
                .and_then(|options| anew(&serving.site, options))
        {
            tracing::info!(place = %anew.place, "the user of the store's connections was dropped, or made anew: logging in anew");
            *serving = Serving {
                site: Arc::new(anew),
                since: Instant::now(),
            };
        }
        Arc::clone(&serving.site)
    }
}

/// The same by a new client, whose connections are asked which store it is. Who is under way by the one before ends there.
fn anew(site: &Site, options: &ClientOptions) -> Option<Site> {
    let mut options = options.clone();
    let heard = Heard::of(&mut options);
    let client = Client::with_options(options.clone()).ok()?;
    Some(site.over(client, &options, heard))
}
