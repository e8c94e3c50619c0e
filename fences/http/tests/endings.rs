//! The end of an admitted request's work: what it does while it is dropped, it has done before a later term
//! is let in.
use crate::common::{A_WHILE, LONG, Marks, presented, protection};
use axum::body::Body;
use http::{Request, Response, StatusCode};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tenure_http::{Admission, FenceLayer};
use tokio::sync::Notify;
use tokio::time::timeout;
use tower::{Layer as _, ServiceExt as _};

/// How the work of the first term ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Returns,
    Panics,
}

#[derive(Clone)]
struct Work {
    end: End,
    number: u64,
    ends: Arc<Notify>,
    go_on: Arc<Mutex<Receiver<()>>>,
    effects: Arc<Mutex<Vec<u64>>>,
}

impl Work {
    fn ending(end: End) -> (Self, Sender<()>) {
        let (go_on, told) = channel();
        let work = Self {
            end,
            number: 0,
            ends: Arc::default(),
            go_on: Arc::new(Mutex::new(told)),
            effects: Arc::default(),
        };
        (work, go_on)
    }
}

/// Its effect comes when it is dropped, as that of a transaction that is committed by a guard.
struct Working(Work);

impl Future for Working {
    type Output = Result<Response<Body>, Infallible>;
    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(self.0.number != 1 || self.0.end == End::Returns, "on purpose");
        Poll::Ready(Ok(Response::new(Body::empty())))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let work = &self.0;
        if work.number == 1 {
            work.ends.notify_one();
            // Whatever it answers: a panic while panicking would end all tests.
            let _told = work.go_on.lock().unwrap().recv_timeout(LONG);
        }
        work.effects.lock().unwrap().push(work.number);
    }
}

async fn check(end: End) {
    let marks = Marks::new();
    let (work, go_on) = Work::ending(end);
    let (ends, effects) = (work.ends.clone(), work.effects.clone());
    let inner = tower::service_fn(move |request: Request<_>| {
        let admission = request.extensions().get::<Admission>().unwrap();
        let number = admission.term().token.number();
        Working(Work {
            number,
            ..work.clone()
        })
    });
    let site = FenceLayer::new(marks.gate(), protection()).layer(inner);
    let send = |number| {
        let request = Request::put("/").header("fencing-token", presented(number));
        let request = request.body(Body::empty()).unwrap();
        tokio::spawn(site.clone().oneshot(request))
    };
    let first = send(1);
    timeout(LONG, ends.notified()).await.unwrap();
    let mut later = send(2);
    assert!(
        timeout(A_WHILE, &mut later).await.is_err(),
        "let in before the work of an older term was over"
    );
    go_on.send(()).unwrap();
    let first = timeout(LONG, first).await.unwrap();
    assert_eq!(first.is_err(), end == End::Panics);
    let later = timeout(LONG, later).await.unwrap().unwrap().unwrap();
    assert_eq!(later.status(), StatusCode::OK);
    assert_eq!(*effects.lock().unwrap(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn work_that_ends_has_its_last_effect_before_a_later_term_is_let_in() {
    check(End::Returns).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn work_that_panics_has_its_last_effect_before_a_later_term_is_let_in() {
    check(End::Panics).await;
}
