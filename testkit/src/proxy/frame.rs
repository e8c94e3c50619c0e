//! Where a message begins and ends.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::http2::Http2Reader;
use super::mysql::{MysqlReader, Prepared};
use super::nats::NatsReader;
use super::postgres::PostgresReader;
use super::redis::RedisReader;

/// How the proxy tells messages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A message is what one read returns.
    Bytes,
    /// Redis's: values, and the n-th request is answered by the n-th reply.
    Redis,
    /// MongoDB's wire protocol: a header with the length, the message's number and that of the one it
    /// answers.
    MongoDb,
    /// PostgreSQL's: messages with a type, and the n-th request is answered by all up to the n-th sign of
    /// readiness.
    Postgres,
    /// HTTP/2's, under gRPC: frames, and a request and its answer on a stream of their own.
    Http2,
    /// MySQL's: packets, and the n-th request is answered by the n-th whole reply.
    Mysql,
    /// NATS's: lines and payloads; a reply's subject is the one that its request named.
    Nats,
}

impl Protocol {
    /// Whether the server says something before it is asked.
    pub(super) fn server_begins(self) -> bool {
        self == Protocol::Mysql
    }
}

/// Which end of the connection is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The client's requests.
    Client,
    /// The server's replies.
    Server,
}

/// Reads one end of one connection.
pub(super) struct Reader {
    protocol: Protocol,
    postgres: PostgresReader,
    http2: Http2Reader,
    mysql: MysqlReader,
    nats: NatsReader,
    redis: RedisReader,
}

/// One message, with what its protocol tells about it.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    /// Its number.
    pub(super) id: i32,
    /// Number of the message it answers.
    pub(super) answers: i32,
    /// Name of the command, of a request.
    pub(super) command: String,
    /// Whether there is no reply to it.
    pub(super) unanswered: bool,
    /// What another connection has to be told before it: what prepares the statement that it asks.
    pub(super) before: Vec<u8>,
}

impl Message {
    /// Whether it comes from the application, and not from the driver's care for its connections.
    pub(super) fn is_of_application(&self) -> bool {
        !HOUSEKEEPING.contains(&self.command.as_str())
    }
}

impl Reader {
    /// Of both ends of a connection: the client's, and the server's.
    pub(super) fn pair(protocol: Protocol) -> (Reader, Reader) {
        let prepared = Prepared::default();
        let of = |side| Reader {
            protocol,
            postgres: PostgresReader::new(side),
            http2: Http2Reader::new(side),
            mysql: MysqlReader::new(side, Prepared::clone(&prepared)),
            nats: NatsReader::new(side),
            redis: RedisReader::new(side),
        };
        (of(Side::Client), of(Side::Server))
    }

    /// Reads one message; nothing at the stream's end.
    pub(super) async fn read(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Message>> {
        match self.protocol {
            Protocol::Bytes => read_bytes(source).await,
            Protocol::Redis => self.redis.read(source).await,
            Protocol::MongoDb => read_mongodb(source).await,
            Protocol::Postgres => self.postgres.read(source).await,
            Protocol::Http2 => self.http2.read(source).await,
            Protocol::Mysql => self.mysql.read(source).await,
            Protocol::Nats => self.nats.read(source).await,
        }
    }
}

async fn read_bytes(source: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Message>> {
    let mut bytes = vec![0; 64 * 1024];
    let count = source.read(&mut bytes).await?;
    bytes.truncate(count);
    let message = Message {
        bytes,
        id: 0,
        answers: 0,
        command: String::new(),
        unanswered: false,
        before: Vec::new(),
    };
    Ok((count > 0).then_some(message))
}

async fn read_mongodb(source: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Message>> {
    let mut bytes = vec![0; HEADER];
    match source.read_exact(&mut bytes).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let field = |at| number(&bytes, at).expect("the header is complete");
    let (length, id, answers, operation) = (field(0), field(4), field(8), field(12));
    let length = usize::try_from(length)
        .ok()
        .filter(|length| (HEADER..=LONGEST).contains(length));
    let length =
        length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not MongoDB's wire protocol"))?;
    bytes.resize(length, 0);
    source.read_exact(&mut bytes[HEADER..]).await?;
    let (command, flags) = match operation {
        OP_MSG => (
            command(&bytes).unwrap_or_default().to_owned(),
            number(&bytes, HEADER).unwrap_or(0),
        ),
        // The old form of a request; drivers use it for the first greeting only.
        _ => ("hello".to_owned(), 0),
    };
    Ok(Some(Message {
        bytes,
        id,
        answers,
        command,
        unanswered: flags & MORE_TO_COME != 0,
        before: Vec::new(),
    }))
}

/// The first key of the body, which is the name of the command.
fn command(bytes: &[u8]) -> Option<&str> {
    let mut at = HEADER + 4;
    // A body may come after sequences of documents, each with its length.
    while *bytes.get(at)? == SEQUENCE {
        at += 1 + usize::try_from(number(bytes, at + 1)?).ok()?;
    }
    // Kind of section, length of the document, type of the first element, its name up to a zero.
    let name = bytes.get(at + 1 + 4 + 1..)?;
    let end = name.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&name[..end]).ok()
}

fn number(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

const HEADER: usize = 16;
/// What a server accepts at most, in bytes.
const LONGEST: usize = 48_000_000;
const OP_MSG: i32 = 2013;
const MORE_TO_COME: i32 = 1 << 1;
const SEQUENCE: u8 = 1;
const HOUSEKEEPING: &[&str] = &[
    "hello",
    "isMaster",
    "ismaster",
    "saslStart",
    "saslContinue",
    "authenticate",
    "endSessions",
    "killCursors",
    "HELLO",
    "AUTH",
    "SELECT",
    "PING",
    "CLIENT",
    // Which member of a quorum a server is: asked of each new connection, before it is used.
    "HMGET",
    super::postgres::GREETING,
    super::postgres::HOUSEKEEPING,
    super::http2::HOUSEKEEPING,
];
