//! Asking a command or a page of the user's whether the work is well.

use super::shell::{Environment, Output, run_in_shell};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::Request;
use hyper::Uri;
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::pin::pin;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// What is asked, and how often it may fail.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    pub(crate) probe: Probe,
    pub(crate) every: Duration,
    pub(crate) time_max: Duration,
    pub(crate) failures_max: u32,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum Probe {
    /// This, by `/bin/sh -c`: well if it ends with 0.
    Shell(String),
    /// A page: well if it answers with 200 to 299.
    Page(Page),
}

/// The page of an `http://` URL.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    uri: Uri,
    host: String,
    port: u16,
}

impl Page {
    /// Reads `http://HOST[:PORT]/PATH`.
    ///
    /// # Errors
    /// In words, and without it: it is another URL, or has a password, which would be sent and shown as it
    /// stands. TLS and passwords are left to a shell command.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "write http://HOST:PORT/PATH; for https use --health-cmd 'curl -fs …'".to_owned();
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        if uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(
                "a URL with a user or a password is not asked; use --health-cmd 'curl -fs …'".to_owned(),
            );
        }
        let host = uri
            .host()
            .filter(|_| uri.scheme_str() == Some("http"))
            .ok_or_else(wrong)?;
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(80),
            uri,
        })
    }

    /// Where it is. Looked up on a thread of its own: the runtime, which looks names up, too, panics where it
    /// gets no thread.
    ///
    /// # Errors
    /// No such host is known, or there is no thread left to look it up on.
    async fn look_up(&self) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, self.port)]);
        }
        let (found, answer) = oneshot::channel();
        let (host, port) = (self.host.clone(), self.port);
        // Nobody waits for one that hangs.
        let thread = std::thread::Builder::new().name("tenure look-up".to_owned());
        thread.spawn(move || {
            let addresses = (host.as_str(), port).to_socket_addrs();
            let _given_up = found.send(addresses.map(Iterator::collect));
        })?;
        let ended = |_| io::Error::other("the look-up has ended without an answer");
        answer.await.map_err(ended)?
    }

    async fn get(&self) -> Result<(), String> {
        let in_words = |error: &dyn std::error::Error| error.to_string();
        let addresses = self.look_up().await.map_err(|error| in_words(&error))?;
        let stream = TcpStream::connect(&addresses[..])
            .await
            .map_err(|error| in_words(&error))?;
        let (mut sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| in_words(&error))?;
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self
            .uri
            .authority()
            .map_or(self.host.as_str(), |authority| authority.as_str());
        let request = Request::get(path).header(HOST, host).body(Empty::<Bytes>::new());
        let request = request.map_err(|error| in_words(&error))?;
        let mut answer = pin!(sender.send_request(request));
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            // It ends with the answer, or without one, which the request is told.
            _ = connection => answer.await,
        };
        let answer = answer.map_err(|error| in_words(&error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("answered {status}")),
        }
    }
}

impl Health {
    /// Returns when it has failed so often in a row, and says how it failed last.
    pub(super) async fn failed(&self, environment: &Environment) -> String {
        let mut failures = 0;
        loop {
            tokio::time::sleep(self.every).await;
            match self.ask(environment).await {
                Ok(()) => failures = 0,
                Err(why) => {
                    failures += 1;
                    if failures >= self.failures_max {
                        let option = match &self.probe {
                            Probe::Shell(_) => "--health-cmd",
                            Probe::Page(_) => "--health-http",
                        };
                        return format!("{option} failed {failures} times in a row: {why}");
                    }
                }
            }
        }
    }

    async fn ask(&self, environment: &Environment) -> Result<(), String> {
        match &self.probe {
            Probe::Shell(command) => run_in_shell(command, environment, Output::Nowhere, self.time_max).await,
            Probe::Page(page) => timeout(self.time_max, page.get())
                .await
                .unwrap_or_else(|_| Err(format!("no answer within {:?}", self.time_max))),
        }
    }
}
