//! HTTP/2's frames: where a request is complete, and which answer is whose.

use std::collections::HashSet;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::frame::{Message, Side};

/// Reads one end of a connection, a frame at a time: frames of several streams take turns, so none may be
/// held back until its stream is complete.
///
/// A request counts when its first message is read, since a server may begin with it before it knows that
/// there is no second; an answer counts when its trailers are read: what was answered in between has reached
/// the client, which knows without trailers that something is missing. What a request asks for stands in
/// compressed headers, which are not read.
pub(super) struct Http2Reader {
    side: Side,
    /// Nothing was read yet: the client begins with words, and not with a frame.
    first: bool,
    /// Streams whose request was counted.
    counted: HashSet<i32>,
}

impl Http2Reader {
    pub(super) fn new(side: Side) -> Http2Reader {
        Http2Reader {
            side,
            first: true,
            counted: HashSet::new(),
        }
    }

    pub(super) async fn read(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Message>> {
        let begin = match (self.side, std::mem::replace(&mut self.first, false)) {
            (Side::Client, true) => PREFACE,
            (Side::Client | Side::Server, _) => HEADER,
        };
        let mut bytes = vec![0; begin];
        match source.read_exact(&mut bytes).await {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        if begin == PREFACE {
            return Ok(Some(message(bytes, None)));
        }
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        let (kind, flags) = (bytes[3], bytes[4]);
        let stream = i32::from_be_bytes([bytes[5] & 0x7f, bytes[6], bytes[7], bytes[8]]);
        let length = usize::try_from(length).expect("24 bits");
        bytes.resize(HEADER + length, 0);
        source.read_exact(&mut bytes[HEADER..]).await?;
        let counts = match self.side {
            Side::Client => kind == DATA && length > 0 && self.counted.insert(stream),
            Side::Server => kind == HEADERS && flags & END_STREAM != 0,
        };
        Ok(Some(message(bytes, counts.then_some(stream))))
    }
}

/// A frame by which this stream's request or answer counts, or none.
fn message(bytes: Vec<u8>, counts: Option<i32>) -> Message {
    Message {
        bytes,
        id: counts.unwrap_or(NO_STREAM),
        answers: counts.unwrap_or(NO_STREAM),
        command: match counts {
            Some(_) => String::new(),
            None => HOUSEKEEPING.to_owned(),
        },
        unanswered: counts.is_none(),
        before: Vec::new(),
    }
}

/// Whether a frame carries a part of this stream's message.
pub(super) fn is_body_of(stream: i32, frame: &[u8]) -> bool {
    frame.len() > HEADER && frame[3] == DATA && stream_of(frame) == Some(stream)
}

/// The stream that a frame gives up. A client does so with one that has told it enough, before the server has
/// ended it: of a request that is to meet something it would take back what was asked, and more so in a
/// repetition, where all comes at once.
pub(super) fn given_up(frame: &[u8]) -> Option<i32> {
    let stream = stream_of(frame)?;
    (frame[3] == RST_STREAM).then_some(stream)
}

fn stream_of(frame: &[u8]) -> Option<i32> {
    let field = <[u8; 4]>::try_from(frame.get(5..HEADER)?).ok()?;
    Some(i32::from_be_bytes(field) & i32::MAX)
}

pub(super) const HOUSEKEEPING: &str = "http2 housekeeping";

const PREFACE: usize = 24;
const HEADER: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;
const NO_STREAM: i32 = -1;
