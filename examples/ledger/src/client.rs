//! A small HTTP client of the ledger.

use crate::Outcome;
use crate::book::Entry;
use axum::body::Bytes;
use axum::http::request::Builder;
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;
use tokio::time::timeout;

/// Longest wait for an answer: longer than a term waits at the service's gate.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// The ledger, seen from outside. Clones share connections.
#[derive(Clone)]
pub struct Remote {
    client: Client<HttpConnector, Full<Bytes>>,
    service: String,
}

impl Remote {
    pub fn new(service: &str) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            service: service.to_owned(),
        }
    }

    /// A request that reads the balance.
    pub fn get_balance(&self) -> Builder {
        Request::get(format!("{}/balance", self.service))
    }

    /// A request that sets the balance.
    pub fn put_balance(&self) -> Builder {
        Request::put(format!("{}/balance", self.service))
    }

    /// Sends it, and answers with status and body.
    pub async fn send(&self, request: Builder, body: String) -> Outcome<(StatusCode, String)> {
        let request = request.body(Full::from(body))?;
        let answer = async {
            let response = self.client.request(request).await;
            let response =
                response.map_err(|error| format!("{}: {error}; is the service there?", self.service))?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            Ok((status, String::from_utf8_lossy(&body).into_owned()))
        };
        match timeout(ANSWER_WITHIN, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("{}: no answer within {ANSWER_WITHIN:?}", self.service).into()),
        }
    }

    /// Every change, in the order of their effects.
    pub async fn history(&self) -> Outcome<Vec<Entry>> {
        let request = Request::get(format!("{}/history", self.service));
        let (_, lines) = self.send(request, String::new()).await?;
        lines.lines().map(entry).collect()
    }
}

fn entry(line: &str) -> Outcome<Entry> {
    let mut numbers = line.split(' ').map(str::parse);
    let mut next = || {
        numbers
            .next()
            .ok_or("a line of the history is short")?
            .map_err(Into::into)
    };
    let read = |next: &mut dyn FnMut() -> Outcome<i64>| -> Outcome<Entry> {
        Ok(Entry {
            token: next()?,
            before: next()?,
            after: next()?,
        })
    };
    read(&mut next)
}
