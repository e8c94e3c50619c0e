//! A request that arrives once more: it counts only where the server has done it, or has judged it by the
//! data that it met.

use std::io;
use std::time::Duration;

use mongodb::bson::Document;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::connection::{ANSWER_TIMEOUT, REMEMBERED_BYTES_MAX};
use super::control::Control;
use super::frame::{Message, Protocol, Reader};
use super::{http2, mysql, nats, postgres};

/// How often it arrives that a server refuses it: what it meets may be busy with another request for a
/// moment.
const ARRIVALS_MAX: usize = 20;

const BETWEEN_ARRIVALS: Duration = Duration::from_millis(50);

/// Sends a request once more, on a connection of its own, and waits for the reply.
pub(super) async fn replay(control: &Control, greeting: Option<Message>, request: &Message) {
    for _refused in 0..ARRIVALS_MAX {
        match timeout(ANSWER_TIMEOUT, exchange(control, greeting.clone(), request)).await {
            Ok(Ok(())) => return control.count(|counts| counts.duplicated += 1),
            failure => eprintln!(
                "testkit: a duplicate of `{}` failed: {failure:?}",
                request.command
            ),
        }
        sleep(BETWEEN_ARRIVALS).await;
    }
}

async fn exchange(control: &Control, greeting: Option<Message>, request: &Message) -> io::Result<()> {
    let server = TcpStream::connect(control.upstream()).await?;
    let mut connection = Connection {
        server,
        reader: Reader::pair(control.protocol).1,
        protocol: control.protocol,
    };
    match control.protocol {
        Protocol::Http2 => connection.repeat_all(greeting, request).await,
        Protocol::Nats => connection.publish_again(greeting, request).await,
        Protocol::Bytes | Protocol::Redis | Protocol::MongoDb | Protocol::Postgres | Protocol::Mysql => {
            connection.ask_again(greeting, request).await
        }
    }
}

struct Connection {
    server: TcpStream,
    reader: Reader,
    protocol: Protocol,
}

impl Connection {
    async fn ask_again(&mut self, greeting: Option<Message>, request: &Message) -> io::Result<()> {
        if self.protocol.server_begins() {
            self.reader.read(&mut self.server).await?;
        }
        if let Some(greeting) = greeting {
            self.server.write_all(&greeting.bytes).await?;
            self.accepted().await?;
        }
        self.server.write_all(&request.before).await?;
        if self.protocol == Protocol::Mysql && !request.before.is_empty() {
            let prepared = self.accepted().await?;
            let asked = mysql::asked_there(&request.bytes, &prepared.bytes);
            self.server.write_all(&asked).await?;
        } else {
            self.server.write_all(&request.bytes).await?;
        }
        self.accepted().await?;
        Ok(())
    }

    /// Waits for the reply, and fails if it is an error.
    async fn accepted(&mut self) -> io::Result<Message> {
        while let Some(reply) = self.reader.read(&mut self.server).await? {
            let counts = match self.protocol {
                // What comes unasked, and a question about a password, is no reply.
                Protocol::Postgres | Protocol::Mysql => reply.answers != postgres::NOBODY,
                Protocol::Bytes | Protocol::Redis | Protocol::MongoDb | Protocol::Http2 | Protocol::Nats => {
                    true
                }
            };
            if refuses(self.protocol, &reply.bytes) {
                return Err(refused(&reply.bytes));
            }
            if counts {
                return Ok(reply);
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    /// The reply goes where the first one went, to the client itself; the sign comes after the message was
    /// read.
    async fn publish_again(&mut self, greeting: Option<Message>, request: &Message) -> io::Result<()> {
        let greeting = greeting.ok_or(io::ErrorKind::NotFound)?;
        self.server.write_all(&greeting.bytes).await?;
        self.server.write_all(&request.bytes).await?;
        self.server.write_all(nats::SIGN).await?;
        while let Some(told) = self.reader.read(&mut self.server).await? {
            if refuses(self.protocol, &told.bytes) {
                return Err(refused(&told.bytes));
            }
            if told.bytes.starts_with(nats::SIGN_SEEN) {
                return Ok(());
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    /// Sends all that the client has sent up to the request, which is among it, and waits for the request's
    /// reply.
    async fn repeat_all(&mut self, sent: Option<Message>, request: &Message) -> io::Result<()> {
        let sent = sent.ok_or(io::ErrorKind::NotFound)?;
        if sent.bytes.len() > REMEMBERED_BYTES_MAX {
            return Err(io::Error::other(
                "its connection has sent too much to be repeated",
            ));
        }
        self.server.write_all(&sent.bytes).await?;
        let mut has_body = false;
        while let Some(frame) = self.reader.read(&mut self.server).await? {
            has_body |= http2::is_body_of(request.id, &frame.bytes);
            if frame.answers == request.id {
                // gRPC tells an error in trailers alone: they are compressed, but no message stands before
                // them.
                return match has_body {
                    true => Ok(()),
                    false => Err(io::Error::other("the server refused it")),
                };
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn refused(reply: &[u8]) -> io::Error {
    let shown = &reply[..reply.len().min(SHOWN_BYTES_MAX)];
    io::Error::other(format!(
        "the server refused it: {}",
        String::from_utf8_lossy(shown)
    ))
}

/// Whether a whole reply says that the request was not done.
fn refuses(protocol: Protocol, reply: &[u8]) -> bool {
    match protocol {
        // What they mean nobody knows here, and what gRPC's say stands in their frames.
        Protocol::Bytes | Protocol::Http2 => false,
        Protocol::Redis => reply.starts_with(b"-"),
        Protocol::Nats => reply.starts_with(b"-ERR"),
        Protocol::MongoDb => mongodb_refuses(reply).unwrap_or(true),
        Protocol::Postgres => postgres::has_error(reply),
        Protocol::Mysql => mysql::has_error(reply),
    }
}

/// A key that is there already is no refusal to listen: the write was judged by what the first one has left.
fn mongodb_refuses(reply: &[u8]) -> Option<bool> {
    // The header, the flags, and the kind of the one section that a server sends.
    let body = Document::from_reader(reply.get(16 + 4 + 1..)?).ok()?;
    let is_done = body.get_f64("ok").is_ok_and(|ok| ok > 0.0);
    let is_there = body.get_i32("code").is_ok_and(|code| code == DUPLICATE_KEY);
    Some(!is_done && !is_there)
}

/// The number of MongoDB's error.
const DUPLICATE_KEY: i32 = 11_000;

/// Enough for an error's text.
const SHOWN_BYTES_MAX: usize = 200;
