//! Watching by an ordered consumer: the stream's leader delivers every write once it is confirmed.

use crate::api::removes;
use crate::connect::refused;
use crate::record::decode;
use crate::swap::Kv;
use async_nats::{Message, StatusCode, Subscriber};
use futures_util::StreamExt as _;
use serde_json::json;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Answer, Fault, LeaseName, RecordEvent, RecordWatch, Revision, Scope, StoreError, Version};
use tenure_remote::Deed;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc, watch};

/// Watches of one store at a time. Each is a consumer of the bucket's stream.
pub(crate) const WATCHES_MAX: usize = 64;

/// Messages that may wait in the driver. More are dropped, which a gap in their numbers tells.
pub(crate) const MESSAGES_WAITING_MAX: usize = 8_192;

/// Events that may wait for a slow reader. When it is full, messages wait in the driver.
const EVENTS_WAITING_MAX: usize = 256;

/// Most records that are known not to be understood. When it is full it forgets all, and may then tell of
/// each once more.
const STRANGE_MAX: usize = 1_024;

/// How often the server says that it is there, where there is nothing else to say.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long it may say nothing.
const SILENCE_MAX: Duration = Duration::from_millis(3_500);

const SUBJECT: &str = "the watch";

type Event = Result<RecordEvent, StoreError>;

/// A consumer of the bucket's stream, read on the store's thread.
pub(crate) struct KvWatch {
    events: mpsc::Receiver<Event>,
    /// Becomes true when the first message has come.
    heard: watch::Receiver<bool>,
    place: String,
    _permit: OwnedSemaphorePermit,
}

impl RecordWatch for KvWatch {
    fn next(&mut self) -> Answer<'_, Event> {
        Box::pin(async move {
            let over = || Err(over(&self.place, "its reader ended"));
            self.events.recv().await.unwrap_or_else(over)
        })
    }
}

impl KvWatch {
    /// Answers when the first message has come, and be it the servers' word that they are there, as each
    /// second: that a watch was begun does not say that what it tells arrives.
    ///
    /// # Errors
    /// It is over before that, as it is when nothing has come for some seconds.
    pub(crate) async fn first_sign(&mut self) -> Result<(), StoreError> {
        let heard = async {
            if self.heard.wait_for(|heard| *heard).await.is_err() {
                // The reader has ended: it has told why.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = heard => Ok(()),
            event = self.events.recv() => match event {
                Some(event) => event.map(drop),
                None => Err(over(&self.place, "its reader ended")),
            },
        }
    }
}

impl Kv {
    /// Answers when the consumer is there, so that every later write is told. Called on the store's thread.
    pub(crate) async fn open_watch(&self, scope: &Scope) -> Result<KvWatch, StoreError> {
        let permit = self.watches.take(self.link.place())?;
        let reader = self.listen(scope).await?;
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let heard = reader.heard.subscribe();
        // It ends with its receiver, and with the thread.
        tokio::spawn(reader.hand_on(sender));
        Ok(KvWatch {
            events,
            heard,
            place: self.link.place().to_owned(),
            _permit: permit,
        })
    }

    async fn listen(&self, scope: &Scope) -> Result<Reader, StoreError> {
        let open = self.link.open().await?;
        let client = &open.connection.client;
        let inbox = client.new_inbox();
        // Before the inbox is asked for: its denial would be missed.
        let denials = open.connection.denials.subscribe();
        let messages = client.subscribe(inbox.clone()).await.map_err(|_| {
            let why = "the connection ended";
            over(self.link.place(), why)
        })?;
        let name = format!("tenure-{}", inbox.rsplit('.').next().unwrap_or_default());
        // No one consumer shows only the names with a prefix: that is done here.
        let filter = match scope {
            Scope::Name(name) => self.keys.lease(name),
            Scope::Prefix(_) => self.keys.leases(),
        };
        let config = json!({
            "stream_name": self.stream,
            "config": {
                "name": name,
                "deliver_subject": inbox.clone(),
                "deliver_policy": "new",
                "filter_subject": filter,
                "ack_policy": "none",
                "max_deliver": 1,
                "replay_policy": "instant",
                "idle_heartbeat": nanoseconds(HEARTBEAT),
                "inactive_threshold": nanoseconds(SILENCE_MAX),
                "mem_storage": true,
                "num_replicas": 1,
            },
        });
        let api = format!("CONSUMER.CREATE.{}.{name}", self.stream);
        let epoch = self.link.servers().epoch();
        match self.link.call(&api, &config, Deed::Read, SUBJECT).await? {
            Ok(_made) => Ok(Reader {
                kv: self.clone(),
                scope: scope.clone(),
                messages,
                denied: Box::pin(denied_inbox(denials, inbox.to_ascii_lowercase())),
                ended: open.connection.ended.clone(),
                left: open.connection.left.subscribe(),
                heard: watch::Sender::new(false),
                last: 0,
                epoch,
                strange: BTreeSet::new(),
            }),
            Err(refusal) => Err(refused(Deed::Read, SUBJECT, self.link.place(), &refusal)),
        }
    }
}

/// What reads the consumer's messages.
struct Reader {
    kv: Kv,
    scope: Scope,
    messages: Subscriber,
    /// Ends when the server says that they may not be heard.
    denied: Pin<Box<dyn Future<Output = ()> + Send>>,
    ended: watch::Receiver<bool>,
    /// Whether the connection was left for another server.
    left: watch::Receiver<bool>,
    /// Whether a message has come.
    heard: watch::Sender<bool>,
    /// The consumer's number of the last message.
    last: u64,
    /// The epoch in which the consumer was asked for: what it tells is at least of that.
    epoch: u64,
    /// Records whose last write could not be understood.
    strange: BTreeSet<LeaseName>,
}

impl Reader {
    /// Hands on events until the connection or the reader's interest ends.
    async fn hand_on(mut self, events: mpsc::Sender<Event>) {
        let (mut ended, mut left) = (self.ended.clone(), self.left.clone());
        loop {
            let message = tokio::select! {
                biased;
                () = events.closed() => return,
                message = tokio::time::timeout(SILENCE_MAX, self.messages.next()) => match message {
                    Ok(message) => message.ok_or("the connection ended"),
                    Err(_late) if *self.heard.borrow() => Err("the server fell silent"),
                    Err(_late) => Err(
                        "nothing of it has come, not even that the servers are there; grant subscribe _INBOX.>, and connect to the \
                         bucket's own account"
                    ),
                },
                () = &mut self.denied => Err("its messages may not be heard; grant the rights in the README of tenure-nats"),
                _ = ended.wait_for(|ended| *ended) => Err("the connection ended"),
                _ = left.wait_for(|left| *left) => Err("its server is cut off from the others or silent, and was left"),
            };
            let told = match message {
                Ok(message) => {
                    self.heard.send_replace(true);
                    self.take_in(&message)
                }
                Err(why) => vec![Err(self.over(why))],
            };
            for event in told {
                let ended = event.is_err();
                if events.send(event).await.is_err() || ended {
                    return;
                }
            }
        }
    }

    fn over(&self, why: &str) -> StoreError {
        over(self.kv.link.place(), why)
    }

    /// What a message tells, oldest first.
    fn take_in(&mut self, message: &Message) -> Vec<Event> {
        if message.status == Some(StatusCode::IDLE_HEARTBEAT) {
            let last = message
                .headers
                .as_ref()
                .and_then(|headers| headers.get("Nats-Last-Consumer"));
            let last = last
                .and_then(|last| last.as_str().parse().ok())
                .unwrap_or(self.last);
            return match std::mem::replace(&mut self.last, last) == last {
                true => Vec::new(),
                false => vec![Ok(RecordEvent::Gap)],
            };
        }
        if message.status.is_some() {
            return vec![Err(self.over("the server ended it"))];
        }
        let Some(numbers) = message.reply.as_deref().and_then(Numbers::of) else {
            return vec![Ok(RecordEvent::Gap)];
        };
        let mut told = Vec::new();
        if numbers.of_consumer != self.last + 1 {
            told.push(Ok(RecordEvent::Gap));
        }
        self.last = numbers.of_consumer;
        told.extend(self.translate(message, numbers).map(Ok));
        told
    }

    /// A write. What cannot be understood is a gap: the reader looks for itself. Once: a later Tenure renews
    /// its records in each beat, and until one of them is understood again there is nothing more to see.
    fn translate(&mut self, message: &Message, numbers: Numbers) -> Option<RecordEvent> {
        let name = self
            .kv
            .keys
            .name(&message.subject)
            .filter(|name| self.scope.covers(name))?;
        if removes(message.headers.as_ref()) {
            self.strange.remove(&name);
            return Some(RecordEvent::Removed { name });
        }
        let key = self.kv.keys.key(&message.subject);
        let Ok(entry) = decode(key, name.as_str(), &message.payload) else {
            if self.strange.len() >= STRANGE_MAX {
                self.strange.clear();
            }
            return self.strange.insert(name).then_some(RecordEvent::Gap);
        };
        self.strange.remove(&name);
        let version = Version {
            revision: Revision::from(numbers.of_stream).in_epoch(self.epoch),
            ages: self.kv.ages(&entry, numbers.stored_ms),
            entry,
        };
        Some(RecordEvent::Written { name, version })
    }
}

/// Waits until the server complains that this inbox may not be heard.
async fn denied_inbox(mut denials: broadcast::Receiver<Arc<str>>, inbox: String) {
    loop {
        match denials.recv().await {
            Ok(complaint) if complaint.to_ascii_lowercase().contains(&format!("\"{inbox}\"")) => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            // The sender lives as long as the connection, whose end is told otherwise.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The numbers that a delivered message carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbers {
    of_stream: u64,
    of_consumer: u64,
    /// When it was stored, by the clock of the leader that stored it, in milliseconds since 1970.
    stored_ms: u64,
}

impl Numbers {
    /// From where an acknowledgement would go: `$JS.ACK.stream.consumer.deliveries.SEQUENCE.SEQUENCE.TIME.…`,
    /// in newer servers with a domain and an account before the stream.
    fn of(reply: &str) -> Option<Self> {
        let parts: Vec<&str> = reply.split('.').collect();
        let begin = match parts.len() {
            9 => 5,
            11.. => 7,
            _ => return None,
        };
        Some(Self {
            of_stream: parts[begin].parse().ok()?,
            of_consumer: parts[begin + 1].parse().ok()?,
            stored_ms: parts[begin + 2].parse::<u64>().ok()? / 1_000_000,
        })
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn over(place: &str, why: &str) -> StoreError {
    StoreError::not_applied(
        Fault::Unreachable,
        format!("the watch at {place} is over: {why}; start a new one, then look again"),
    )
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn numbers_of_both_forms_are_read() {
        let numbers = Some(Numbers {
            of_stream: 17,
            of_consumer: 4,
            stored_ms: 1_795_295_290_672,
        });
        assert_eq!(
            Numbers::of("$JS.ACK.KV_t.c.1.17.4.1795295290672711847.0"),
            numbers
        );
        assert_eq!(
            Numbers::of("$JS.ACK._.hash.KV_t.c.1.17.4.1795295290672711847.0"),
            numbers
        );
        assert_eq!(
            Numbers::of("$JS.ACK._.hash.KV_t.c.1.17.4.1795295290672711847.0.random"),
            numbers
        );
        assert_eq!(Numbers::of("$JS.ACK.KV_t.c.1.17"), None);
    }
}
