//! HTTP/2's frames: where a request is complete, and which answer is whose.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::frame::{Message, Side};

/// Reads one end of a connection, a frame at a time: frames of several streams take turns, so none may be held back until
/// its stream is complete.
///
/// A request counts when its last frame is read, an answer when its trailers are: what was answered in between has reached
/// the client, which knows without trailers that something is missing. What a request asks for stands in compressed headers,
/// which are not read.
pub(super) struct Http2Reader {
    side: Side,
    /// Nothing was read yet: the client begins with words, and not with a frame.
    first: bool,
}

impl Http2Reader {
    pub(super) fn new(side: Side) -> Http2Reader {
        Http2Reader { side, first: true }
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
        let last = flags & END_STREAM != 0;
        let completes = match self.side {
            Side::Client => kind == DATA && last,
            Side::Server => kind == HEADERS && last,
        };
        Ok(Some(message(bytes, completes.then_some(stream))))
    }
}

/// A frame that completes this stream's request or answer, or none.
fn message(bytes: Vec<u8>, completes: Option<i32>) -> Message {
    Message {
        bytes,
        id: completes.unwrap_or(NO_STREAM),
        answers: completes.unwrap_or(NO_STREAM),
        command: match completes {
            Some(_) => String::new(),
            None => HOUSEKEEPING.to_owned(),
        },
        unanswered: completes.is_none(),
    }
}

pub(super) const HOUSEKEEPING: &str = "http2 housekeeping";

const PREFACE: usize = 24;
const HEADER: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const NO_STREAM: i32 = -1;
