//! Redis's protocol: where a value ends, and which reply is whose.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::frame::{Message, Side};
use super::postgres::NOBODY;

/// Reads one end of a connection, a value at a time: the n-th request is answered by the n-th reply, where
/// what was published is none, and a request for several channels has a reply for each.
pub(super) struct RedisReader {
    side: Side,
    /// Replies that the requests so far have, or that were given.
    count: i32,
    /// What was read of the next value.
    begun: Vec<u8>,
}

impl RedisReader {
    pub(super) fn new(side: Side) -> RedisReader {
        RedisReader {
            side,
            count: 0,
            begun: Vec::new(),
        }
    }

    pub(super) async fn read(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Message>> {
        loop {
            if let Some(end) = end_of_value(&self.begun, 0)? {
                let rest = self.begun.split_off(end);
                let value = std::mem::replace(&mut self.begun, rest);
                return Ok(Some(self.message(value)));
            }
            if source.read_buf(&mut self.begun).await? == 0 {
                // What came before the end is passed on.
                let last = std::mem::take(&mut self.begun);
                return Ok((!last.is_empty()).then(|| message(last, NOBODY, NOBODY, String::new())));
            }
        }
    }

    fn message(&mut self, value: Vec<u8>) -> Message {
        let (length, word) = head(&value);
        let number = self.count;
        let (id, answers, replies) = match self.side {
            Side::Client if names_channels(&word) => (number, NOBODY, (length - 1).max(1)),
            Side::Client => (number, NOBODY, 1),
            Side::Server if is_published(&value, &word) => (NOBODY, NOBODY, 0),
            Side::Server => (NOBODY, number, 1),
        };
        self.count = self.count.wrapping_add(replies);
        message(value, id, answers, word)
    }
}

fn message(bytes: Vec<u8>, id: i32, answers: i32, command: String) -> Message {
    Message {
        bytes,
        id,
        answers,
        command,
        unanswered: false,
        before: Vec::new(),
    }
}

/// How many values stand in a list of texts, and the first of them: of a request, its command.
/// `*2\r\n$3\r\nGET\r\n…`.
fn head(value: &[u8]) -> (i32, String) {
    let mut lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    match (lines.next(), lines.next(), lines.next()) {
        (Some([b'*' | b'>', count @ ..]), Some([b'$', ..]), Some(word)) => (
            i32::try_from(number(count).unwrap_or(0)).unwrap_or(0),
            String::from_utf8_lossy(word).to_ascii_uppercase(),
        ),
        _ => (0, String::new()),
    }
}

/// Requests whose arguments are channels, and the replies to them.
fn names_channels(word: &str) -> bool {
    word.ends_with("SUBSCRIBE")
}

/// Whether it comes unasked.
fn is_published(value: &[u8], word: &str) -> bool {
    match value.first() {
        Some(b'>') => !names_channels(word),
        // As the older protocol has it, where no other reply begins with these.
        Some(b'*') => matches!(word, "MESSAGE" | "PMESSAGE" | "SMESSAGE"),
        _ => false,
    }
}

/// Where the value ends that begins at `at`; nothing if it is not complete.
fn end_of_value(bytes: &[u8], at: usize) -> io::Result<Option<usize>> {
    let (mut at, mut values) = (at, 1_usize);
    // Of lists, values are counted and not nested.
    while values > 0 {
        let Some(length) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(None);
        };
        let (line, after) = (&bytes[at..at + length], at + length + 2);
        let counted = || number(&line[1..]).filter(|count| *count <= LONGEST);
        let (end, more) = match line.first() {
            Some(b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(') => (after, 0),
            Some(b'$' | b'!' | b'=') => match counted().ok_or_else(foreign)? {
                // No text at all.
                ..0 => (after, 0),
                length => (after + usize::try_from(length).map_err(|_| foreign())? + 2, 0),
            },
            Some(b'*' | b'~' | b'>') => (after, counted().ok_or_else(foreign)?.max(0)),
            Some(b'%') => (after, 2 * counted().ok_or_else(foreign)?),
            // What is told of the value that follows.
            Some(b'|') => (after, 2 * counted().ok_or_else(foreign)? + 1),
            _ => return Err(foreign()),
        };
        if end > bytes.len() {
            return Ok(None);
        }
        at = end;
        values = values - 1 + usize::try_from(more).map_err(|_| foreign())?;
    }
    Ok(Some(at))
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn foreign() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not Redis's protocol")
}

/// What a text may have at most, in bytes, and a list in values.
const LONGEST: i64 = 512 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::RedisReader;
    use crate::proxy::frame::Side;
    use crate::proxy::postgres::NOBODY;

    /// Numbers and commands of all that is read of a stream, with the bytes as they came.
    async fn read(side: Side, stream: &[u8]) -> Vec<(i32, String)> {
        let (mut reader, mut source, mut all) = (RedisReader::new(side), stream, Vec::new());
        let mut passed_on = Vec::new();
        while let Some(message) = reader.read(&mut source).await.expect("Redis's protocol") {
            passed_on.extend_from_slice(&message.bytes);
            let number = if side == Side::Client {
                message.id
            } else {
                message.answers
            };
            all.push((number, message.command));
        }
        assert_eq!(passed_on, stream);
        all
    }

    #[tokio::test]
    async fn requests_that_came_at_once_are_numbered_one_by_one() {
        let stream = b"*2\r\n$3\r\nget\r\n$4\r\na\r\nb\r\n*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n$4\r\nPING\r\n";
        let expected = [(0, "GET"), (1, "SUBSCRIBE"), (3, "PING")].map(|(id, word)| (id, word.to_owned()));
        assert_eq!(read(Side::Client, stream).await, expected);
    }

    #[tokio::test]
    async fn replies_are_numbered_and_what_was_published_is_none() {
        let stream = b"+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\n\r\n\r\n\
            *2\r\n*1\r\n$-1\r\n%1\r\n+key\r\n$0\r\n\r\n*-1\r\n-ERR no\r\n";
        let numbers = read(Side::Server, stream)
            .await
            .into_iter()
            .map(|(number, _)| number);
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, NOBODY, 2, 3, 4]);
    }

    #[tokio::test]
    async fn value_that_breaks_off_is_passed_on() {
        assert_eq!(read(Side::Server, b":1\r\n$5\r\nab").await.len(), 2);
    }

    #[tokio::test]
    async fn what_is_another_protocol_is_refused() {
        let mut source: &[u8] = b"HTTP/1.1 200 OK\r\n";
        let error = RedisReader::new(Side::Server)
            .read(&mut source)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }
}
