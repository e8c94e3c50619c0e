//! Watching by messages: the scripts publish every change that somebody may wait for, in its very step.

use crate::fault::{Deed, store_error, timed_out};
use crate::script::{Arguments, GET};
use crate::site::Site;
use crate::url::Host;
use futures_util::StreamExt;
use redis::Msg;
use redis::aio::{PubSubSink, PubSubStream};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Change, Fault, FencingToken, LeaseName, Scope, StoreError, WatchEvent};
use tenure_remote::{OwnThread, ReadWatch, Told};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

/// How often a silent connection is asked whether it lives, and a watched record whether it was removed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long a watched connection may take to answer.
const PING_TIME_MAX: Duration = Duration::from_secs(3);

/// Subscribes; answers when the server has confirmed it, so that every later change is told.
pub(crate) async fn open(site: Arc<Site>, thread: &OwnThread, scope: Scope) -> Result<ReadWatch, StoreError> {
    let permit = site.watches.take(&site.place)?;
    let place = site.place.clone();
    let listener = thread
        .run(async move {
            let listening = Listener::open(&site, scope);
            site.in_time(Deed::Read, "the watch", listening).await
        })
        .await??;
    Ok(ReadWatch::start(thread, permit, place, |events| {
        read(listener, events)
    }))
}

/// A subscribed connection.
struct Listener {
    messages: PubSubStream,
    channels: String,
    looker: Looker,
}

/// Who looks now and then whether the messages can be relied on.
struct Looker {
    site: Arc<Site>,
    scope: Scope,
    sink: PubSubSink,
    host: Host,
    /// Whether the watched record was there when it was looked for last.
    existed: bool,
    looks: Interval,
}

impl Listener {
    async fn open(site: &Arc<Site>, scope: Scope) -> Result<Self, StoreError> {
        // The requests' own connection knows where the primary is, and has proven it.
        let open = site.requests.open().await?;
        let (mut sink, messages) = site.target.listen(&open.connection.host).await?.split();
        let subscribed = match &scope {
            Scope::Name(name) => sink.subscribe(site.keys.channel(name)).await,
            // Of all leases, and of all databases: who may subscribe to a pattern needs the right to that
            // very pattern, and both are looked at again with each message.
            Scope::Prefix(_) => sink.psubscribe(all_channels(site)).await,
        };
        subscribed.map_err(|error| store_error(&error, Deed::Read, "the watch", &site.place))?;
        // Whoever listens can ask nothing else, and the address may have come to lead elsewhere since the
        // requests' connection was made.
        if site.target.admission.is_none() {
            site.target.connect().await?;
        }
        let existed = match &scope {
            Scope::Name(name) => exists(site, name).await?,
            Scope::Prefix(_) => false,
        };
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            messages,
            channels: site.keys.channels(),
            looker: Looker {
                site: Arc::clone(site),
                scope,
                sink,
                host: open.connection.host,
                existed,
                looks,
            },
        })
    }
}

/// The pattern by which the changes of all leases are heard.
pub(crate) fn all_channels(site: &Site) -> String {
    pattern(&site.keys.all_channels())
}

/// A text as itself in a pattern of channels.
fn pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if "*?[]\\^".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('*');
    pattern
}

/// Hands on events until the connection or the reader's interest ends. The driver keeps what is not taken,
/// however much it becomes: what finds the reader's queue full is let go of, and is a gap as soon as there is
/// room.
async fn read(listener: Listener, events: mpsc::Sender<Told>) {
    let Listener {
        mut messages,
        channels,
        looker,
    } = listener;
    let (place, scope) = (looker.site.place.clone(), looker.scope.clone());
    // It goes on while messages come: what it waits for may be silent, and they are not.
    let mut looking = pin!(looker.next());
    let mut has_missed = false;
    loop {
        let event = tokio::select! {
            biased;
            () = events.closed() => return,
            room = events.reserve(), if has_missed => {
                let Ok(room) = room else { return };
                room.send(Ok(WatchEvent::Gap));
                has_missed = false;
                None
            }
            message = messages.next() => match message {
                Some(message) => translate(&message, &channels, &scope).map(Ok),
                None => Some(Err(over(&place))),
            },
            (looker, found) = &mut looking => {
                looking.set(looker.next());
                found.transpose()
            }
        };
        match event {
            None => {}
            Some(Ok(event)) => has_missed |= events.try_send(Ok(event)).is_err(),
            Some(last) => {
                let _told = events.send(last).await;
                return;
            }
        }
    }
}

impl Looker {
    /// Looks when it is time.
    async fn next(mut self) -> (Self, Result<Option<WatchEvent>, StoreError>) {
        self.looks.tick().await;
        let found = self.look().await;
        (self, found)
    }

    /// Proves that the connection lives. Of one lease, also notices that its record was removed: nobody
    /// publishes that.
    async fn look(&mut self) -> Result<Option<WatchEvent>, StoreError> {
        let site = &self.site;
        match tokio::time::timeout(PING_TIME_MAX, self.sink.ping::<redis::Value>()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(store_error(&error, Deed::Read, "the watch", &site.place)),
            Err(_late) => return Err(timed_out(Deed::Read, "the watch", &site.place, PING_TIME_MAX)),
        }
        // What this fails to find out, the next look does; the requests themselves report what is wrong.
        let opening = site.in_time(Deed::Read, "the watch", site.requests.open());
        if let Ok(open) = opening.await
            && open.connection.host != self.host
        {
            return Err(elsewhere(&site.place, &open.connection.host));
        }
        let Scope::Name(name) = &self.scope else {
            return Ok(None);
        };
        let Ok(exists) = exists(site, name).await else {
            return Ok(None);
        };
        let existed = std::mem::replace(&mut self.existed, exists);
        Ok((existed && !exists).then(|| WatchEvent::Changed {
            name: name.clone(),
            change: Change::Vacated,
            token: None,
        }))
    }
}

/// Whether the record is there, understood or not.
async fn exists(site: &Site, name: &LeaseName) -> Result<bool, StoreError> {
    let arguments = Arguments::on([site.keys.index(), site.keys.record(name)]);
    let mut reply = site.run(&GET, &arguments, Deed::Read, "the watch").await?;
    Ok(reply.word()? != "none")
}

/// One message. What cannot be told apart is a gap: the reader looks for itself.
fn translate(message: &Msg, channels: &str, scope: &Scope) -> Option<WatchEvent> {
    let name = message.get_channel_name().strip_prefix(channels)?;
    // Another database's, where this one's channels begin like all.
    if name.starts_with('/') {
        return None;
    }
    let Ok(name) = LeaseName::new(name) else {
        return Some(WatchEvent::Gap);
    };
    if !scope.covers(&name) {
        return None;
    }
    let text = std::str::from_utf8(message.get_payload_bytes()).unwrap_or_default();
    let (what, token) = text.split_once(' ').unwrap_or((text, ""));
    let change = match what {
        "vacated" => Change::Vacated,
        "taken" => Change::Taken,
        "asked" => Change::Asked,
        _ => return Some(WatchEvent::Gap),
    };
    Some(match token.parse::<FencingToken>() {
        Ok(token) => WatchEvent::Changed {
            name,
            change,
            token: Some(token),
        },
        Err(_) => WatchEvent::Gap,
    })
}

/// Nothing is told any more of what changes where the requests are sent now.
fn elsewhere(place: &str, host: &Host) -> StoreError {
    StoreError::not_applied(
        Fault::Unreachable,
        format!(
            "the watch at {place} is over: the leases are at {host} now; start a new one, then look again"
        ),
    )
}

fn over(place: &str) -> StoreError {
    StoreError::not_applied(
        Fault::Unreachable,
        format!("the watch at {place} is over: the connection ended; start a new one, then look again"),
    )
}
