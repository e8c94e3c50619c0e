//! MySQL's protocol: where a request ends, and which reply is whose. Statements as text alone, and nothing encrypted.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::frame::{Message, Side};
use super::postgres::{GREETING, HOUSEKEEPING, NOBODY, called};

/// Reads one end of a connection: a request is one packet, a reply all packets up to the last of its last result.
pub(super) struct MysqlReader {
    side: Side,
    phase: Phase,
    /// Requests sent, or replies given, so far.
    count: i32,
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
}

impl MysqlReader {
    pub(super) fn new(side: Side) -> MysqlReader {
        MysqlReader {
            side,
            phase: Phase::Greeting,
            count: 0,
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
        // The numbers of packets begin anew with every command; what follows a question about the password goes on.
        let continues = bytes[3] != 0;
        match bytes.get(HEADER) {
            _ if continues => self.message(bytes, NOBODY, HOUSEKEEPING.to_owned()),
            Some(&QUERY) => {
                let text = String::from_utf8_lossy(&bytes[HEADER + 1..]);
                let command = called(&text);
                self.counted(bytes, command)
            }
            Some(&QUIT) | None => self.message(bytes, NOBODY, HOUSEKEEPING.to_owned()),
            Some(_) => self.counted(bytes, HOUSEKEEPING.to_owned()),
        }
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
                (Part::Head, Some(&OK)) => {
                    let more = more_follows(packet);
                    !more
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

/// Whether the last packet of a reply is an error: none comes after one.
pub(super) fn has_error(reply: &[u8]) -> bool {
    let (mut at, mut is_error) = (0, false);
    while let Some(header) = reply.get(at..at + HEADER) {
        let length = header[..3].iter().rev();
        let length = length.fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        is_error = reply.get(at + HEADER) == Some(&ERROR);
        at += HEADER + length;
    }
    is_error
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
/// An end is shorter; a row that begins with the same byte is not.
const ROW_MIN: usize = 9;
const CLASSIC_END: usize = 5;
const MORE_RESULTS: u8 = 8;
const LONGEST: usize = 0xff_ffff;
