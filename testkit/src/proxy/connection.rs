//! One connection through the proxy.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep};

use super::control::Control;
use super::fault::{Fault, RequestFault};
use super::frame::{Message, Protocol, Reader};
use super::http2;
use super::postgres::GREETING;
use super::replay::replay;

/// How a connection ends.
enum End {
    /// One side closed it; the other is told in the same manner.
    Closed,
    /// It is reset.
    Cut,
}

/// What both directions of a connection know.
struct Shared {
    control: Arc<Control>,
    /// Requests that were passed on and not answered yet, by number, each with what its reply shall meet.
    open: Mutex<HashMap<i32, Option<(RequestFault, Message)>>>,
    /// What the client began with, where a connection is of no use without: with HTTP/2 all that it has sent.
    greeting: Mutex<Option<Message>>,
    /// A request was swallowed: none may follow it, or the server would misread the stream.
    deaf: AtomicBool,
    /// A reply was swallowed: none may follow it, or the client would misread the stream.
    silent: AtomicBool,
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, HashMap<i32, Option<(RequestFault, Message)>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the reply to this request, which is still to come, shall meet a fault.
    fn meets_something(&self, request: i32) -> bool {
        self.open().get(&request).is_some_and(Option::is_some)
    }

    fn greeting(&self) -> Option<Message> {
        self.greeting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn greet(&self, greeting: Message) {
        *self.greeting.lock().unwrap_or_else(PoisonError::into_inner) = Some(greeting);
    }

    /// Keeps what was sent, in its order, as long as it is little.
    fn remember(&self, sent: &Message) {
        let mut greeting = self.greeting.lock().unwrap_or_else(PoisonError::into_inner);
        let so_far = greeting.get_or_insert_with(|| Message {
            bytes: Vec::new(),
            ..sent.clone()
        });
        if so_far.bytes.len() <= REMEMBERED_BYTES_MAX {
            so_far.bytes.extend_from_slice(&sent.bytes);
        }
    }

    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::SeqCst) || self.deaf.load(Ordering::SeqCst)
    }
}

/// Carries a connection until one side closes it or a fault cuts it.
pub(super) async fn carry(client: TcpStream, control: Arc<Control>) {
    let mut state = control.watch();
    let cuts = state.borrow().cuts;
    let Ok(server) = TcpStream::connect(control.upstream()).await else {
        cut(&client);
        return;
    };
    // Small messages must not wait for each other; a latency of 40 ms would be the proxy's and not the
    // fault's.
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap_or_default();
    }
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let shared = Shared {
        control: control.clone(),
        open: Mutex::default(),
        greeting: Mutex::default(),
        deaf: AtomicBool::new(false),
        silent: AtomicBool::new(false),
    };
    let (asked, answered) = Reader::pair(shared.control.protocol);
    let end = tokio::select! {
        end = requests(&shared, asked, &mut from_client, &mut to_server) => end,
        end = replies(&shared, answered, &mut from_server, &mut to_client) => end,
        _ = state.wait_for(|state| state.cuts > cuts) => {
            control.count(|counts| counts.cut_connections += 1);
            Ok(End::Cut)
        }
    };
    // Closing is what dropping the streams does; only a reset needs preparation.
    if !matches!(end, Ok(End::Closed)) {
        cut(to_client.as_ref());
    }
}

/// Has the stream be reset, not closed, when it is dropped.
pub(super) fn cut(stream: &TcpStream) {
    stream.set_zero_linger().unwrap_or_default();
}

async fn requests(
    shared: &Shared,
    mut reader: Reader,
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
) -> io::Result<End> {
    let control = &shared.control;
    while let Some(request) = reader.read(from).await? {
        if request.command == GREETING {
            shared.greet(request.clone());
        }
        let lost = wait(control, Direction::ToServer).await == Fault::BlackHole;
        if lost || shared.deaf.load(Ordering::SeqCst) {
            control.count(|counts| counts.swallowed_requests += 1);
            shared.deaf.store(true, Ordering::SeqCst);
            continue;
        }
        let verdict = control.judge(&request);
        if verdict == Some(RequestFault::CutBefore) {
            control.count(|counts| counts.cut_before += 1);
            return Ok(End::Cut);
        }
        if request.is_of_application() {
            control.count(|counts| counts.requests += 1);
        }
        if request.is_of_application() && !request.unanswered {
            let fate = verdict.map(|fault| (fault, request.clone()));
            shared.open().insert(request.id, fate);
        }
        if control.protocol == Protocol::Http2 {
            match http2::given_up(&request.bytes) {
                Some(stream) if shared.meets_something(stream) => continue,
                Some(_) => {}
                None => shared.remember(&request),
            }
        }
        let passed_on = to.write_all(&request.bytes).await;
        // The client must not learn from a silent connection that its server is gone.
        if !shared.is_silent() {
            passed_on?;
        }
    }
    // A server may abandon the work of a client that is gone; a request that was passed on is to be applied.
    let patience = Instant::now() + ANSWER_TIMEOUT;
    while !shared.open().is_empty() && Instant::now() < patience {
        sleep(Duration::from_millis(5)).await;
    }
    Ok(End::Closed)
}

async fn replies(
    shared: &Shared,
    mut reader: Reader,
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
) -> io::Result<End> {
    let control = &shared.control;
    while let Some(reply) = reader.read(from).await? {
        let fate = shared.open().get(&reply.answers).cloned().flatten();
        match fate {
            Some((RequestFault::CutAfter, _)) => {
                control.count(|counts| counts.cut_after += 1);
                return Ok(End::Cut);
            }
            Some((RequestFault::Duplicate, request)) => replay(control, shared.greeting(), &request).await,
            Some((RequestFault::DuplicateLater(after), request)) => {
                let (control, greeting) = (control.clone(), shared.greeting());
                // On its own: it must come even if the client closes the connection meanwhile.
                tokio::spawn(async move {
                    sleep(after).await;
                    replay(&control, greeting, &request).await;
                });
            }
            Some((RequestFault::CutBefore, _)) | None => {}
        }
        shared.open().remove(&reply.answers);
        let lost = matches!(
            wait(control, Direction::ToClient).await,
            Fault::BlackHole | Fault::HalfOpen
        );
        if lost || shared.is_silent() {
            control.count(|counts| counts.swallowed_replies += 1);
            shared.silent.store(true, Ordering::SeqCst);
            continue;
        }
        // The client may be gone; the other direction notices and ends the connection.
        to.write_all(&reply.bytes).await.unwrap_or_default();
    }
    if shared.is_silent() {
        std::future::pending::<()>().await;
    }
    Ok(End::Closed)
}

enum Direction {
    ToServer,
    ToClient,
}

/// Waits as long as the fault of the moment wants a message to wait, and returns the fault it then meets.
async fn wait(control: &Control, direction: Direction) -> Fault {
    let mut state = control.watch();
    let mut fault = control.fault();
    if fault == Fault::Hold {
        control.count(|counts| counts.held += 1);
        fault = state
            .wait_for(|state| state.fault != Fault::Hold)
            .await
            .map_or(Fault::Pass, |state| state.fault);
    }
    if let Fault::Delay { to_server, to_client } = fault {
        let delay = match direction {
            Direction::ToServer => to_server,
            Direction::ToClient => to_client,
        };
        if !delay.is_zero() {
            control.count(|counts| counts.delayed += 1);
            sleep(delay).await;
        }
    }
    fault
}

/// Enough for a test's requests, and little beside those of a long proof.
pub(super) const REMEMBERED_BYTES_MAX: usize = 1 << 20;

/// Long enough for a server under load; a bound on what a dead one may cost.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
