//! PostgreSQL's protocol: where a request ends, and which reply is whose.

use std::collections::HashMap;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::frame::{Message, Side};

/// Reads one end of a connection: requests up to what asks for readiness, replies up to the sign of it.
pub(super) struct PostgresReader {
    side: Side,
    /// Nothing was read yet: a server may answer with a single byte then, whether it encrypts.
    first: bool,
    /// Requests sent, or signs of readiness given, so far.
    count: i32,
    /// What was prepared under a name: what prepares it, and the command that it is.
    prepared: HashMap<Vec<u8>, (Vec<u8>, String)>,
}

impl PostgresReader {
    pub(super) fn new(side: Side) -> PostgresReader {
        PostgresReader {
            side,
            first: true,
            count: 0,
            prepared: HashMap::new(),
        }
    }

    pub(super) async fn read(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Message>> {
        let mut bytes = Vec::new();
        loop {
            let begin = bytes.len();
            let mut kind = [0];
            if source.read(&mut kind).await? == 0 {
                // What came before the end is passed on: the last words of a server are an error without a
                // sign.
                return Ok((!bytes.is_empty()).then(|| self.message(bytes, NOBODY, String::new())));
            }
            bytes.push(kind[0]);
            let first = std::mem::replace(&mut self.first, false);
            match (self.side, kind[0]) {
                (Side::Server, b'N' | b'S') if first => {
                    return Ok(Some(self.message(bytes, NOBODY, String::new())));
                }
                // The greetings alone have no type: they begin with their length.
                (Side::Client, 0) => {
                    read_rest(source, &mut bytes, 0).await?;
                    let encryption = number(&bytes, 4) == ENCRYPTION;
                    return Ok(Some(match encryption {
                        true => self.message(bytes, NOBODY, HOUSEKEEPING.to_owned()),
                        false => self.counted(bytes, GREETING.to_owned()),
                    }));
                }
                _ => read_rest(source, &mut bytes, begin + 1).await?,
            }
            let alone = begin == 0;
            match (self.side, kind[0]) {
                (Side::Client, b'S' | b'Q') => return Ok(Some(self.request(bytes))),
                (Side::Client, b'p' | b'X') => {
                    return Ok(Some(self.message(bytes, NOBODY, HOUSEKEEPING.to_owned())));
                }
                (Side::Server, b'Z') => return Ok(Some(self.counted(bytes, String::new()))),
                // A notification comes whenever it likes, and a question about the password waits for its
                // answer.
                (Side::Server, b'A' | b'N' | b'S') if alone => {
                    return Ok(Some(self.message(bytes, NOBODY, String::new())));
                }
                (Side::Server, b'R') if number(&bytes, begin + 5) != 0 => {
                    return Ok(Some(self.message(bytes, NOBODY, String::new())));
                }
                _ => {}
            }
        }
    }

    /// A whole request. What only prepares a statement, or lets go of one, is the driver's own business; and
    /// where one is asked that was prepared before, it is known by its name.
    fn request(&mut self, bytes: Vec<u8>) -> Message {
        match bytes.first() {
            Some(b'P') if name(&bytes, 5) != b"" => {
                let text = &bytes[6 + name(&bytes, 5).len()..];
                let (parse, command) = (bytes[..end(&bytes)].to_vec(), called(&text_of(text)));
                self.prepared.insert(name(&bytes, 5).to_vec(), (parse, command));
                self.counted(bytes, HOUSEKEEPING.to_owned())
            }
            Some(b'C') => self.counted(bytes, HOUSEKEEPING.to_owned()),
            Some(b'B') => {
                let portal = name(&bytes, 5).len();
                let prepared = self.prepared.get(name(&bytes, 6 + portal)).cloned();
                let (parse, command) = prepared.unwrap_or_default();
                Message {
                    before: parse,
                    ..self.counted(bytes, command)
                }
            }
            _ => {
                let command = command(&bytes);
                self.counted(bytes, command)
            }
        }
    }

    /// A message that takes part in the count.
    fn counted(&mut self, bytes: Vec<u8>, command: String) -> Message {
        let number = self.count;
        self.count = self.count.wrapping_add(1);
        self.message(bytes, number, command)
    }

    fn message(&self, bytes: Vec<u8>, number: i32, command: String) -> Message {
        let (id, answers) = match self.side {
            Side::Client => (number, NOBODY),
            Side::Server => (NOBODY, number),
        };
        Message {
            bytes,
            id,
            answers,
            command,
            unanswered: number == NOBODY,
            before: Vec::new(),
        }
    }
}

/// Reads the rest of a message whose length stands at `at`; of the length itself, some may have been read.
async fn read_rest(source: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>, at: usize) -> io::Result<()> {
    let read = bytes.len();
    bytes.resize(at + 4, 0);
    source.read_exact(&mut bytes[read..]).await?;
    let length = usize::try_from(number(bytes, at))
        .ok()
        .filter(|length| (4..=LONGEST).contains(length));
    let length =
        length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not PostgreSQL's protocol"))?;
    bytes.resize(at + length, 0);
    source.read_exact(&mut bytes[at + 4..]).await?;
    Ok(())
}

/// The function that a statement calls at its begin, or its first word.
fn command(bytes: &[u8]) -> String {
    // Either a parse message (a type, a length, an empty name, the statement) or a plain query.
    let at = match bytes.first() {
        Some(b'P') => 6,
        _ => 5,
    };
    called(&text_of(bytes.get(at..).unwrap_or_default()))
}

/// What stands up to the next zero.
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(name(bytes, 0)).into_owned()
}

/// The same as it stands, from a place on.
fn name(bytes: &[u8], at: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Where the first of several messages ends, by its length.
fn end(bytes: &[u8]) -> usize {
    let length = usize::try_from(number(bytes, 1)).expect("the length of a message that was read");
    bytes.len().min(1 + length)
}

/// The function or procedure that a statement calls at its begin, or its first word.
pub(super) fn called(text: &str) -> String {
    // What stands in for a procedure says so before all else.
    if let Some((name, _)) = text.strip_prefix("/* ").and_then(|text| text.split_once(" */")) {
        return name.to_owned();
    }
    // A hint calls nothing.
    let unhinted = text.split_once(" /*+").and_then(|(before, hint)| {
        let (_, after) = hint.split_once("*/")?;
        Some(format!("{before}{after}"))
    });
    let text = unhinted.as_deref().unwrap_or(text);
    let before = text.split('(').next().unwrap_or_default();
    let called = before.rsplit([' ', '.']).next().unwrap_or_default();
    match called.is_empty() || before.len() == text.len() {
        true => text.split(' ').next().unwrap_or_default().to_owned(),
        false => called.to_owned(),
    }
}

/// Whether an error is among the messages of a reply.
pub(super) fn has_error(reply: &[u8]) -> bool {
    let mut at = 0;
    while let Some(kind) = reply.get(at) {
        if *kind == b'E' {
            return true;
        }
        // A length counts itself, and not the type before it; what has none ends the reply.
        match usize::try_from(number(reply, at + 1)) {
            Ok(length) => at += 1 + length,
            Err(_none) => return false,
        }
    }
    false
}

fn number(bytes: &[u8], at: usize) -> i32 {
    let field = bytes.get(at..at + 4).and_then(|field| field.try_into().ok());
    field.map_or(-1, i32::from_be_bytes)
}

/// The command of a client's first words: without them, a connection is of no use.
pub(super) const GREETING: &str = "a greeting";
/// The command of what is the driver's own business.
pub(super) const HOUSEKEEPING: &str = "housekeeping";
/// The number of what is no request and no reply.
pub(super) const NOBODY: i32 = -1;
/// The code of the question whether the server encrypts.
const ENCRYPTION: i32 = 80_877_103;
/// What a message may have at most, in bytes.
const LONGEST: usize = 48_000_000;
