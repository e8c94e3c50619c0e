//! Whether a connection leads to the server itself, and not to a pooler that shares sessions out.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, Client};

/// The process that whoever greeted has named as the one to be cancelled. If statements are run by the very
/// same, no pooler stands between: one that shares sessions out names a number of its own, as it may not let
/// a client cancel another's statement.
pub(crate) async fn greeted_by(client: &Client) -> Option<i32> {
    // The driver shows it in the request to cancel alone. That goes nowhere.
    let mut written = Vec::new();
    let token: CancelToken = client.cancel_token();
    token.cancel_query_raw(Nowhere(&mut written), Plain).await.ok()?;
    process(&written)
}

/// The process in a request to cancel, which is the last that was written: its length, its code, the process,
/// the key.
fn process(written: &[u8]) -> Option<i32> {
    let at = |place: usize| {
        let bytes = written.get(written.len().checked_sub(LENGTH)? + place..)?;
        Some(i32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))
    };
    let is_one = at(0)? == LENGTH as i32 && at(4)? == CODE;
    is_one.then(|| at(8)).flatten()
}

/// Of the whole request, in bytes.
const LENGTH: usize = 16;

/// What tells it from the other greetings.
const CODE: i32 = 80_877_102;

/// Keeps what is written, and says yes to whoever asks whether it encrypts.
struct Nowhere<'a>(&'a mut Vec<u8>);

impl AsyncWrite for Nowhere<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Nowhere<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0 {
            buffer.put_slice(b"S");
        }
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for Nowhere<'_> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// Encrypts nothing: it stays here.
struct Plain;

impl<'a> TlsConnect<Nowhere<'a>> for Plain {
    type Stream = Nowhere<'a>;
    type Error = io::Error;
    type Future = Ready<io::Result<Nowhere<'a>>>;

    fn connect(self, stream: Nowhere<'a>) -> Self::Future {
        ready(Ok(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::process;

    const ASKED: [u8; 16] = [0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 3, 9, 1, 2, 3, 4];

    #[test]
    fn the_process_is_read_from_a_request_to_cancel_and_from_nothing_else() {
        assert_eq!(process(&ASKED), Some(777));
        assert_eq!(
            process(&[&[0, 0, 0, 8, 4, 210, 22, 47], &ASKED[..]].concat()),
            Some(777)
        );
        assert_eq!(process(&ASKED[..15]), None);
        assert_eq!(process(&[&ASKED[..], &[0]].concat()), None);
        assert_eq!(process(b""), None);
    }
}
