//! Watching by messages: the scripts publish every change that somebody may wait for, in its very step.

use crate::fault::{Deed, store_error, timed_out};
use crate::script::{Arguments, GET};
use crate::site::Site;
use crate::url::Host;
use futures_util::StreamExt;
use redis::Msg;
use redis::aio::{PubSubSink, PubSubStream};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Change, Fault, FencingToken, LeaseName, Scope, StoreError, WatchEvent};
use tenure_remote::{OwnThread, ReadWatch, Told};
use tokio::sync::mpsc;

/// How often a silent connection is asked whether it lives, and a watched record whether it was removed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long a watched connection may take to answer.
const PING_TIME_MAX: Duration = Duration::from_secs(3);

/// Subscribes; answers when the server has confirmed it, so that every later change is told.
pub(crate) async fn open(site: Arc<Site>, thread: &OwnThread, scope: Scope) -> Result<ReadWatch, StoreError> {
    let permit = site.watches.take(&site.place)?;
    let place = site.place.clone();
    let opened = Arc::clone(&site);
    let (listener, scope) = thread
        .run(async move {
            let listening = Listener::open(&opened, &scope);
            let listener = opened.in_time(Deed::Read, "the watch", listening).await?;
            Ok::<_, StoreError>((listener, scope))
        })
        .await??;
    Ok(ReadWatch::start(thread, permit, place, |events| {
        read(site, listener, scope, events)
    }))
}

/// A subscribed connection.
struct Listener {
    sink: PubSubSink,
    messages: PubSubStream,
    host: Host,
    channels: String,
    /// Whether the watched record was there when it was looked for last.
    existed: bool,
}

impl Listener {
    async fn open(site: &Site, scope: &Scope) -> Result<Self, StoreError> {
        // The requests' own connection knows where the primary is, and has proven it.
        let open = site.requests.open().await?;
        let (mut sink, messages) = site.target.listen(&open.connection.host).await?.split();
        let subscribed = match scope {
            Scope::Name(name) => sink.subscribe(site.keys.channel(name)).await,
            // Of all leases, and of all databases: who may subscribe to a pattern needs the right to that very pattern, and
            // both are looked at again with each message.
            Scope::Prefix(_) => sink.psubscribe(all_channels(site)).await,
        };
        subscribed.map_err(|error| store_error(&error, Deed::Read, "the watch", &site.place))?;
        let existed = match scope {
            Scope::Name(name) => exists(site, name).await?,
            Scope::Prefix(_) => false,
        };
        Ok(Self {
            sink,
            messages,
            host: open.connection.host,
            channels: site.keys.channels(),
            existed,
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

/// Hands on events until the connection or the reader's interest ends. The driver keeps what is not taken, however much it becomes: what
/// finds the reader's queue full is let go of, and is a gap as soon as there is room.
async fn read(site: Arc<Site>, mut listener: Listener, scope: Scope, events: mpsc::Sender<Told>) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
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
            message = listener.messages.next() => match message {
                Some(message) => translate(&message, &listener.channels, &scope).map(Ok),
                None => Some(Err(over(&site.place))),
            },
            _ = looks.tick() => match look(&site, &mut listener, &scope).await {
                Ok(event) => event.map(Ok),
                Err(error) => Some(Err(error)),
            },
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

/// Proves that the connection lives. Of one lease, also notices that its record was removed: nobody publishes that.
async fn look(site: &Site, listener: &mut Listener, scope: &Scope) -> Result<Option<WatchEvent>, StoreError> {
    match tokio::time::timeout(PING_TIME_MAX, listener.sink.ping::<redis::Value>()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(store_error(&error, Deed::Read, "the watch", &site.place)),
        Err(_late) => return Err(timed_out(Deed::Read, "the watch", &site.place, PING_TIME_MAX)),
    }
    // What this fails to find out, the next look does; the requests themselves report what is wrong.
    let opening = site.in_time(Deed::Read, "the watch", site.requests.open());
    if let Ok(open) = opening.await
        && open.connection.host != listener.host
    {
        return Err(elsewhere(&site.place, &open.connection.host));
    }
    let Scope::Name(name) = scope else {
        return Ok(None);
    };
    let Ok(exists) = exists(site, name).await else {
        return Ok(None);
    };
    let existed = std::mem::replace(&mut listener.existed, exists);
    Ok((existed && !exists).then(|| WatchEvent::Changed {
        name: name.clone(),
        change: Change::Vacated,
        token: None,
    }))
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
