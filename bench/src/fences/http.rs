//! A number in a service, protected by the fence over HTTP and by nothing else.

use super::register::{NotClaimed, Outcome, Register, Write, lease, resource};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use tenure::contract::Answer;
use tenure::http::{FENCING_TOKEN, FenceLayer, FencingHeader, Gate, Protection};
use tenure::{Term, Watermark};
use tokio::net::TcpListener;

#[derive(Default)]
struct Number {
    value: AtomicI64,
    history: Mutex<Vec<Write>>,
}

/// Serves a number on loopback, for as long as the program runs, and answers with its address. The marks are
/// in a file.
pub async fn serve_over_http(marks: &str) -> String {
    let protection = Protection {
        resource: resource(),
        lease: lease(),
    };
    let gate = Gate::new(Arc::new(Watermark::open(marks).unwrap()));
    let service = Router::new()
        .route("/number", get(read).put(write))
        .layer(FenceLayer::new(gate, protection))
        .route("/history", get(history))
        .with_state(Arc::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    format!("http://{address}")
}

async fn read(State(number): State<Arc<Number>>) -> String {
    number.value.load(Ordering::SeqCst).to_string()
}

async fn write(State(number): State<Arc<Number>>, headers: HeaderMap, body: String) {
    let FencingHeader(term) = FencingHeader::find(&headers).unwrap().unwrap();
    let read: i64 = body.parse().unwrap();
    // Whoever could come between the check and the effect has its chance here.
    tokio::task::yield_now().await;
    number.value.store(read + 1, Ordering::SeqCst);
    number.history.lock().unwrap().push((term.token.number(), read));
}

async fn history(State(number): State<Arc<Number>>) -> String {
    let history = number.history.lock().unwrap();
    let lines = history.iter().map(|(token, read)| format!("{token} {read}\n"));
    lines.collect()
}

/// The client's side. A term claims with the first request that shows it.
pub struct HttpRegister {
    client: Client<HttpConnector, Body>,
    address: String,
}

impl HttpRegister {
    pub fn new(address: &str) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            address: address.to_owned(),
        }
    }

    /// Status and body, if the service answered.
    async fn ask(&self, method: Method, term: &Term, body: String) -> Option<(StatusCode, String)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/number", self.address))
            .header(FENCING_TOKEN, FencingHeader(term.clone()).value());
        self.answered(request.body(Body::from(body)).unwrap()).await
    }

    async fn answered(&self, request: Request<Body>) -> Option<(StatusCode, String)> {
        let response = self.client.request(request).await.ok()?;
        let status = response.status();
        let body = to_bytes(Body::new(response.into_body()), usize::MAX).await.ok()?;
        Some((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

impl Register for HttpRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(async {
            match self.ask(Method::GET, term, String::new()).await {
                Some((StatusCode::OK, _)) => Ok(()),
                Some((StatusCode::CONFLICT, why)) => Err(NotClaimed::Refused(why)),
                Some((status, why)) => Err(NotClaimed::Undecided(format!("{status}: {why}"))),
                None => Err(NotClaimed::Undecided("no answer".to_owned())),
            }
        })
    }

    fn read<'a>(&'a self, term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async {
            match self.ask(Method::GET, term, String::new()).await? {
                (StatusCode::OK, value) => value.parse().ok(),
                _ => None,
            }
        })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            match self.ask(Method::PUT, term, read.to_string()).await {
                Some((StatusCode::OK, _)) => Outcome::Accepted,
                Some((StatusCode::CONFLICT, _)) => Outcome::Refused,
                _ => Outcome::Undecided,
            }
        })
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        Box::pin(async {
            let request = Request::get(format!("{}/history", self.address));
            let answered = self.answered(request.body(Body::empty()).unwrap()).await;
            let (_, lines) = answered.unwrap();
            let write = |line: &str| {
                let (token, read) = line.split_once(' ').unwrap();
                (token.parse().unwrap(), read.parse().unwrap())
            };
            lines.lines().map(write).collect()
        })
    }
}
