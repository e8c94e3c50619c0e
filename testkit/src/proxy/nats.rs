//! NATS's protocol: lines, some of which announce a payload; a reply comes under the subject that its request
//! named.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::frame::{Message, Side};
use super::postgres::{GREETING, HOUSEKEEPING};

/// Reads one end of a connection, message by message.
pub(super) struct NatsReader {
    side: Side,
    /// Read, and not yet part of a message.
    pending: Vec<u8>,
}

impl NatsReader {
    pub(super) fn new(side: Side) -> NatsReader {
        NatsReader {
            side,
            pending: Vec::new(),
        }
    }

    pub(super) async fn read(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Message>> {
        loop {
            if let Some(length) = self.complete()? {
                let rest = self.pending.split_off(length);
                let bytes = std::mem::replace(&mut self.pending, rest);
                return Ok(Some(self.message(bytes)));
            }
            let mut piece = [0; 16 * 1024];
            let count = source.read(&mut piece).await?;
            if count == 0 {
                return Ok(None);
            }
            self.pending.extend_from_slice(&piece[..count]);
        }
    }

    /// How long the first message is, once all of it was read.
    fn complete(&self) -> io::Result<Option<usize>> {
        let Some(end) = self.pending.windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(None);
        };
        let line = String::from_utf8_lossy(&self.pending[..end]);
        let mut words = line.split_ascii_whitespace();
        let payload = match words.next().map(str::to_ascii_uppercase).as_deref() {
            Some("PUB" | "HPUB" | "MSG" | "HMSG") => {
                let length = words.last().and_then(|word| word.parse::<usize>().ok());
                let length = length
                    .filter(|length| *length <= LONGEST)
                    .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not NATS's protocol"))?;
                length + 2
            }
            _ => 0,
        };
        let length = end + 2 + payload;
        Ok((self.pending.len() >= length).then_some(length))
    }

    fn message(&self, bytes: Vec<u8>) -> Message {
        let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (mut id, mut answers, mut command) = (NOBODY, NOBODY, HOUSEKEEPING.to_owned());
        match (self.side, words.as_slice()) {
            (Side::Client, [verb, subject, reply, ..])
                if (verb.eq_ignore_ascii_case("PUB") && words.len() == 4)
                    || (verb.eq_ignore_ascii_case("HPUB") && words.len() == 5) =>
            {
                id = number(reply);
                command = named(subject);
            }
            (Side::Client, [verb, ..]) if verb.eq_ignore_ascii_case("CONNECT") => {
                command = GREETING.to_owned()
            }
            (Side::Server, [verb, subject, ..])
                if verb.eq_ignore_ascii_case("MSG") || verb.eq_ignore_ascii_case("HMSG") =>
            {
                answers = number(subject);
            }
            _ => {}
        }
        Message {
            bytes,
            id,
            answers,
            unanswered: id == NOBODY,
            before: Vec::new(),
            command,
        }
    }
}

/// What a request asks for: `STREAM.MSG.GET` of JetStream, or `PUB` for a message to a subject of the
/// application.
fn named(subject: &str) -> String {
    match subject.strip_prefix("$JS.API.") {
        Some(api) => {
            let words = api
                .split('.')
                .take_while(|word| word.chars().all(|c| c.is_ascii_uppercase()));
            words.collect::<Vec<_>>().join(".")
        }
        None => PUBLISH.to_owned(),
    }
}

/// The subject of a reply as the number of its request.
fn number(subject: &str) -> i32 {
    let mut hasher = DefaultHasher::new();
    subject.hash(&mut hasher);
    let low = u32::try_from(hasher.finish() & 0x7fff_ffff).unwrap_or_default();
    low.cast_signed()
}

/// A request by which a message is stored.
const PUBLISH: &str = "PUB";
/// What makes a server say that it has read all that came before.
pub(super) const SIGN: &[u8] = b"PING\r\n";
/// What it says then.
pub(super) const SIGN_SEEN: &[u8] = b"PONG";
/// The number of what is no request and no reply.
const NOBODY: i32 = -1;
/// What a message may have at most, in bytes.
const LONGEST: usize = 64_000_000;
