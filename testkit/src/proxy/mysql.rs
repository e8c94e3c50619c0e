//! MySQL's protocol: where a request ends, and which reply is whose. Nothing encrypted.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::frame::{Message, Side};
use super::postgres::{GREETING, HOUSEKEEPING, NOBODY, called};

/// Reads one end of a connection: a request is one packet, a reply all packets up to the last of its last
/// result.
pub(super) struct MysqlReader {
    side: Side,
    phase: Phase,
    /// Requests sent, or replies given, so far.
    count: i32,
    prepared: Prepared,
}

/// What was prepared on a connection, in its order, as both directions know it.
pub(super) type Prepared = Arc<Mutex<Vec<Statement>>>;

pub(super) struct Statement {
    /// The request that prepares it.
    asked: Vec<u8>,
    command: String,
    /// The server's, once it has answered.
    number: Option<[u8; 4]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was said yet: the server speaks first.
    Greeting,
    /// Who the client is.
    Authentication,
    /// Questions and answers.
    Commands,
}

/// Where a reply stands.
#[derive(Clone, Copy)]
enum Part {
    /// The first packet of a result comes next.
    Head,
    /// So many columns come first.
    Columns(u64),
    /// Rows, or the sign after the columns that older clients are given.
    Rows,
    /// So many descriptions of a statement that was prepared are the rest.
    Descriptions(u32),
}

impl MysqlReader {
    pub(super) fn new(side: Side, prepared: Prepared) -> MysqlReader {
        MysqlReader {
            side,
            phase: Phase::Greeting,
            count: 0,
            prepared,
        }
    }

    pub(super) async fn read(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Message>> {
        let mut bytes = Vec::new();
        if !read_packet(source, &mut bytes).await? {
            return Ok(None);
        }
        match self.side {
            Side::Client => Ok(Some(self.request(bytes))),
            Side::Server => self.reply(source, bytes).await,
        }
    }

    fn request(&mut self, bytes: Vec<u8>) -> Message {
        if self.phase == Phase::Greeting {
            self.phase = Phase::Commands;
            return self.counted(bytes, GREETING.to_owned());
        }
        // The numbers of packets begin anew with every command; what follows a question about the password
        // goes on.
        let continues = bytes[3] != 0;
        match bytes.get(HEADER) {
            _ if continues => self.message(bytes, NOBODY, HOUSEKEEPING.to_owned()),
            Some(&QUERY) => {
                let text = String::from_utf8_lossy(&bytes[HEADER + 1..]);
                let command = called(&text);
                self.counted(bytes, command)
            }
            Some(&PREPARE) => {
                let command = called(&String::from_utf8_lossy(&bytes[HEADER + 1..]));
                self.prepared().push(Statement {
                    asked: bytes.clone(),
                    command,
                    number: None,
                });
                self.counted(bytes, HOUSEKEEPING.to_owned())
            }
            Some(&EXECUTE) => self.executed(bytes),
            Some(&(QUIT | CLOSE)) | None => self.message(bytes, NOBODY, HOUSEKEEPING.to_owned()),
            Some(_) => self.counted(bytes, HOUSEKEEPING.to_owned()),
        }
    }

    /// What asks a statement that was prepared is known by what prepared it.
    fn executed(&mut self, bytes: Vec<u8>) -> Message {
        let asked = {
            let prepared = self.prepared();
            let asked = prepared
                .iter()
                .find(|one| one.number.is_some() && one.number == statement(&bytes));
            asked.map(|one| (one.asked.clone(), one.command.clone()))
        };
        let (before, command) = asked.unwrap_or_default();
        Message {
            before,
            ..self.counted(bytes, command)
        }
    }

    fn prepared(&self) -> MutexGuard<'_, Vec<Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reply(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
        mut bytes: Vec<u8>,
    ) -> io::Result<Option<Message>> {
        let head = bytes.get(HEADER).copied();
        match self.phase {
            Phase::Greeting => {
                self.phase = Phase::Authentication;
                return Ok(Some(self.message(bytes, NOBODY, String::new())));
            }
            Phase::Authentication if head == Some(OK) => {
                self.phase = Phase::Commands;
                return Ok(Some(self.counted(bytes, String::new())));
            }
            Phase::Authentication => return Ok(Some(self.message(bytes, NOBODY, String::new()))),
            Phase::Commands => {}
        }
        let (mut part, mut begin, mut classic) = (Part::Head, 0, false);
        loop {
            let packet = &bytes[begin + HEADER..];
            let ends = matches!(packet.first(), Some(&END)) && packet.len() < ROW_MIN;
            let done = match (part, packet.first()) {
                (_, Some(&ERROR)) => true,
                (Part::Head, Some(&OK)) if is_prepared(packet) => {
                    let left = descriptions(packet);
                    let number = statement(&bytes[begin..]);
                    if let Some(asked) = self.prepared().iter_mut().find(|one| one.number.is_none()) {
                        asked.number = number;
                    }
                    part = Part::Descriptions(left);
                    left == 0
                }
                (Part::Descriptions(left), _) => {
                    part = Part::Descriptions(left - 1);
                    left == 1
                }
                (Part::Head, Some(&OK)) => {
                    let more = more_follows(packet);
                    !more
                }
                // MariaDB says of a statement that it was asked before what comes, and not once more what
                // that looks like.
                (Part::Head, _) if packet.len() == KNOWN && packet[1] == 0 => {
                    part = Part::Rows;
                    false
                }
                (Part::Head, _) => {
                    part = Part::Columns(lenenc(packet).unwrap_or(0));
                    false
                }
                (Part::Columns(left), _) => {
                    part = if left > 1 {
                        Part::Columns(left - 1)
                    } else {
                        Part::Rows
                    };
                    false
                }
                // Five bytes long, it stands after the columns as well as after the rows.
                (Part::Rows, _) if ends && packet.len() == CLASSIC_END && !classic => {
                    classic = true;
                    false
                }
                (Part::Rows, _) if ends => {
                    (part, classic) = (Part::Head, false);
                    !more_follows(packet)
                }
                (Part::Rows, _) => false,
            };
            if done {
                return Ok(Some(self.counted(bytes, String::new())));
            }
            begin = bytes.len();
            if !read_packet(source, &mut bytes).await? {
                // What came before the end is passed on.
                return Ok(Some(self.message(bytes, NOBODY, String::new())));
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

/// Whether it answers what prepares a statement. Nothing else that a server says begins so and is as long, in
/// answer to what tests ask.
fn is_prepared(packet: &[u8]) -> bool {
    packet.len() == PREPARED && packet[9] == 0
}

/// How many descriptions follow it, of parameters and of columns. The driver of the tests asks for no sign
/// between the two.
fn descriptions(packet: &[u8]) -> u32 {
    let count = |at: usize| u32::from(u16::from_le_bytes([packet[at], packet[at + 1]]));
    count(5) + count(7)
}

/// Appends a packet; `false` at the stream's end.
async fn read_packet(source: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> io::Result<bool> {
    let begin = bytes.len();
    bytes.resize(begin + HEADER, 0);
    if source.read(&mut bytes[begin..=begin]).await? == 0 {
        bytes.truncate(begin);
        return Ok(false);
    }
    source.read_exact(&mut bytes[begin + 1..]).await?;
    let length = bytes[begin..begin + 3].iter().rev();
    let length = length.fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    if length == LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a packet of MySQL's that is continued in another",
        ));
    }
    let body = bytes.len();
    bytes.resize(body + length, 0);
    source.read_exact(&mut bytes[body..]).await?;
    Ok(true)
}

/// The number of a statement, in the request that asks it and in the answer to the one that prepares it.
fn statement(packet: &[u8]) -> Option<[u8; 4]> {
    packet.get(STATEMENT)?.try_into().ok()
}

/// The request that asks a statement, on a connection on which it was prepared with this answer.
pub(super) fn asked_there(request: &[u8], answer: &[u8]) -> Vec<u8> {
    let mut asked = request.to_vec();
    if let (Some(place), Some(number)) = (asked.get_mut(STATEMENT), answer.get(STATEMENT)) {
        place.copy_from_slice(number);
    }
    asked
}

/// Whether a reply ends with an error, but for the one by which a statement says that what it met is not for
/// it.
pub(super) fn has_error(reply: &[u8]) -> bool {
    let (mut at, mut last) = (0, &[][..]);
    while let Some(header) = reply.get(at..at + HEADER) {
        let length = header[..3].iter().rev();
        let length = length.fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        last = reply.get(at + HEADER..).unwrap_or_default();
        at += HEADER + length;
    }
    let code = last.get(1..3).map(|code| u16::from_le_bytes([code[0], code[1]]));
    last.first() == Some(&ERROR) && code != Some(NULL)
}

/// Whether the status at the end of a result says that another follows.
fn more_follows(packet: &[u8]) -> bool {
    let status = if packet.len() == CLASSIC_END {
        packet.get(3..5)
    } else {
        // Two numbers stand before it: affected rows and the last id, of one byte each for what tests ask.
        let skip = |rest: &[u8]| match rest.first() {
            Some(0xfc) => 3,
            Some(0xfd) => 4,
            Some(0xfe) => 9,
            _ => 1,
        };
        let first = 1 + skip(&packet[1..]);
        let second = first + packet.get(first..).map_or(1, skip);
        packet.get(second..second + 2)
    };
    status.is_some_and(|status| status[0] & MORE_RESULTS != 0)
}

/// A number in MySQL's variable length.
fn lenenc(packet: &[u8]) -> Option<u64> {
    match packet.first()? {
        first @ ..=0xfa => Some(u64::from(*first)),
        0xfc => Some(u64::from(u16::from_le_bytes(packet.get(1..3)?.try_into().ok()?))),
        _ => None,
    }
}

/// Three bytes of length, one of the packet's number.
const HEADER: usize = 4;
const OK: u8 = 0x00;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
const QUIT: u8 = 1;
const QUERY: u8 = 3;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
/// Lets go of a statement; there is no answer to it.
const CLOSE: u8 = 0x19;
/// Where a statement's number stands: behind the header and one byte.
const STATEMENT: std::ops::Range<usize> = HEADER + 1..HEADER + 5;
/// How long the answer to what prepares a statement is, before the descriptions.
const PREPARED: usize = 12;
/// How long the head of a result is that says whether its columns follow.
const KNOWN: usize = 2;
/// The error of a null where there may be none.
const NULL: u16 = 1048;
/// An end is shorter; a row that begins with the same byte is not.
const ROW_MIN: usize = 9;
const CLASSIC_END: usize = 5;
const MORE_RESULTS: u8 = 8;
const LONGEST: usize = 0xff_ffff;
