//! By which client a store asks, and what puts another one into its place.
//!
//! The driver logs in once for each connection and keeps those that work. The server keeps them too when
//! their user is dropped, and lets them do nothing; and one that was made anew is another user, whatever its
//! name. A start of the process would log in as that one, and so does a new client.
//!
//! A login that is refused has the driver close every connection of its client, also those that were let in
//! before, and any request may need one more connection. So renewals have a client of their own, where no
//! other request does but what gives one lease back, and that when no renewal is under way there.

use crate::heard::Heard;
use crate::site::{Site, Topology};
use mongodb::Client;
use mongodb::options::ClientOptions;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::timeout;

/// A client serves so long at least: a server that lets each one in and then knows nobody is not dialled
/// without end.
const CLIENT_SERVES_LEAST: Duration = Duration::from_secs(1);

/// How long a renewal waits for a release that is under way by its client; most take a round trip. One whose
/// record somebody keeps locked must not cost the term.
const RELEASE_WAIT_MAX: Duration = Duration::from_millis(250);

/// What a store's requests go by.
pub(crate) struct Lines {
    opened: Arc<Site>,
    /// Of the renewals' client: any number of them go by it side by side, or one release alone.
    turn: RwLock<()>,
    /// `None` where a client was given: all goes by that.
    own: Option<Own>,
    /// Whether somebody dials for the renewals.
    is_dialling: AtomicBool,
}

/// Clients that the store makes.
struct Own {
    options: ClientOptions,
    requests: Line,
    /// Made before the first term.
    renewals: Line,
}

impl Lines {
    /// By clients of these options, which the store makes.
    pub(crate) fn of_our_own(opened: Site, mut options: ClientOptions) -> Self {
        // A new client is to find no other set than the one that was met.
        if let Topology::ReplicaSet { name } = &opened.topology {
            options.repl_set_name = Some(name.clone());
        }
        let opened = Arc::new(opened);
        let own = Own {
            requests: Line::of(Arc::clone(&opened)),
            renewals: Line::default(),
            options,
        };
        Self {
            opened,
            turn: RwLock::default(),
            own: Some(own),
            is_dialling: AtomicBool::new(false),
        }
    }

    /// By a client of the user's own, which is never exchanged: nobody knows its options.
    pub(crate) fn of_a_given_client(opened: Site) -> Self {
        Self {
            opened: Arc::new(opened),
            turn: RwLock::default(),
            own: None,
            is_dialling: AtomicBool::new(false),
        }
    }

    /// As connecting has found it: for what no client is asked.
    pub(crate) fn opened(&self) -> &Site {
        &self.opened
    }

    /// For the next request. On the store's own thread, where clients live.
    pub(crate) fn site(&self) -> Arc<Site> {
        self.by(|own| &own.requests)
    }

    fn site_of_renewals(&self) -> Arc<Site> {
        self.by(|own| &own.renewals)
    }

    /// For the next renewal, for as long as it is under way. There, too.
    pub(crate) async fn renewing(&self) -> (Arc<Site>, Option<RwLockReadGuard<'_, ()>>) {
        let turn = timeout(RELEASE_WAIT_MAX, self.turn.read()).await.ok();
        (self.site_of_renewals(), turn)
    }

    /// For what gives one lease back, for as long as it is under way: by the client of the renewals where it
    /// needs no connection beside others. There, too.
    pub(crate) fn releasing_one(&self) -> (Arc<Site>, Option<RwLockWriteGuard<'_, ()>>) {
        match self.turn.try_write() {
            Ok(turn) => (self.site_of_renewals(), Some(turn)),
            Err(_others) => (self.site(), None),
        }
    }

    fn by(&self, line: impl Fn(&Own) -> &Line) -> Arc<Site> {
        let made = self
            .own
            .as_ref()
            .and_then(|own| line(own).site(&self.opened, &own.options));
        made.unwrap_or_else(|| Arc::clone(&self.opened))
    }

    /// Has a connection made for the renewals of who asks for a lease, if there is none: when they are due, a
    /// login may be refused.
    pub(crate) fn dial_for_renewals(self: &Arc<Self>) {
        let site = self.site_of_renewals();
        if self.own.is_none() || !site.identity.is_in_doubt() || self.is_dialling.swap(true, Ordering::SeqCst)
        {
            return;
        }
        let lines = Arc::clone(self);
        tokio::spawn(async move {
            let (site, _turn) = lines.renewing().await;
            // The renewal says what is the matter.
            let _told = site.is_ours().await;
            lines.is_dialling.store(false, Ordering::SeqCst);
        });
    }
}

/// One client at a time; `None` before the first.
#[derive(Default)]
struct Line(Mutex<Option<Serving>>);

struct Serving {
    site: Arc<Site>,
    since: Instant,
}

impl Serving {
    fn by(site: Arc<Site>) -> Self {
        let since = Instant::now();
        Self { site, since }
    }

    fn may_be_exchanged(&self) -> bool {
        let is_over = self.site.login.as_ref().is_some_and(|login| login.is_over());
        is_over && self.since.elapsed() >= CLIENT_SERVES_LEAST
    }
}

impl Line {
    fn of(site: Arc<Site>) -> Self {
        Self(Mutex::new(Some(Serving::by(site))))
    }

    /// By the client of now, or where it is to be exchanged, or there is none, a new one. Who is under way by
    /// the one before ends there.
    fn site(&self, opened: &Site, options: &ClientOptions) -> Option<Arc<Site>> {
        let mut serving = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let needs_another = serving.as_ref().is_none_or(Serving::may_be_exchanged);
        if needs_another && let Some(site) = anew(opened, options) {
            if serving.is_some() {
                let place = &opened.place;
                tracing::info!(%place, "the user of the store's connections was dropped, or made anew: logging in anew");
            }
            *serving = Some(Serving::by(Arc::new(site)));
        }
        serving.as_ref().map(|serving| Arc::clone(&serving.site))
    }
}

/// The same place by a new client, whose connections are asked which store it is.
fn anew(opened: &Site, options: &ClientOptions) -> Option<Site> {
    let mut options = options.clone();
    let heard = Heard::of(&mut options);
    let client = Client::with_options(options.clone()).ok()?;
    Some(opened.over(client, &options, heard))
}
