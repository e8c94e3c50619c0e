//! What is printed: data on standard output, everything else on standard error.

mod clean;
mod leases;
mod marks;
mod standard_error;
mod table;
mod voice;
mod whole;

pub(crate) use clean::{clean, in_json, inert, line, short, unless_url};
pub(crate) use leases::{Row, Rows, json_of, line_of, table_of};
pub(crate) use marks::{json_of_listed, json_of_mark, table_of_marks};
pub(crate) use standard_error::{StandardError, flush, write_aside};
pub(crate) use table::columns;
pub(crate) use voice::Voice;

use crate::exit::{Code, Failure};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use whole::write_whole;

/// Returns when whoever reads standard output has gone away. Never where that cannot be told, as of a file.
///
/// Needs a tokio runtime with its I/O driver.
#[allow(
    deprecated,
    reason = "its successor is unsafe for types that may give up their descriptor; standard output does not"
)]
pub(crate) async fn until_unread() {
    let output = AsyncFd::with_interest(std::io::stdout(), Interest::ERROR);
    match output {
        Ok(output) if output.ready(Interest::ERROR).await.is_ok() => {}
        Ok(_) | Err(_) => std::future::pending().await,
    }
}

/// Writes data to standard output.
///
/// # Errors
/// It cannot be written. A reader that has gone away (`| head`) ends the process quietly, as it does `ls`.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    // What is for people was cleaned before.
    match write_whole(&mut output, inert(text).as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            std::process::exit(i32::from(crate::exit::of_signal(libc::SIGPIPE)))
        }
        Err(error) => Err(Failure::new(
            Code::Internal,
            format!("cannot write to standard output: {error}"),
        )),
    }
}
