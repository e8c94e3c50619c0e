//! A register that another process serves: the way to a watermark, whose file one process has at a time.
//!
//! So it is in earnest: the process that guards goes on, and the leader that writes to it is frozen.

use super::register::{Outcome, Register, resource, term};
use std::net::SocketAddr;
use std::sync::Arc;
use tenure::Term;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// Serves a register on loopback, for as long as the program runs: a line asks, a line answers.
pub async fn serve(register: Arc<dyn Register>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let register = Arc::clone(&register);
            tokio::spawn(async move { answer_all(&*register, stream).await });
        }
    });
    address
}

/// Until the other side is gone.
async fn answer_all(register: &dyn Register, stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let (mut stream, mut line) = (BufStream::new(stream), String::new());
    while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let answer = answer(register, line.trim_end()).await;
        line.clear();
        if tell(&mut stream, &answer).await.is_err() {
            return;
        }
    }
}

async fn answer(register: &dyn Register, asked: &str) -> String {
    let words: Vec<&str> = asked.split(' ').collect();
    let term = term(words[1].parse().unwrap());
    match words[..] {
        ["claim", _] => match register.fence().claim(&resource(), &term).await {
            Ok(_) => "claimed".to_owned(),
            Err(error) => error.to_string(),
        },
        ["read", _] => register.read(&term).await.unwrap().to_string(),
        ["write", _, read] => match register.write(&term, read.parse().unwrap()).await {
            Outcome::Accepted => "accepted".to_owned(),
            Outcome::Refused => "refused".to_owned(),
            Outcome::Failed => "failed".to_owned(),
        },
        _ => panic!("nobody asks \"{asked}\""),
    }
}

async fn tell(stream: &mut BufStream<TcpStream>, line: &str) -> std::io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    stream.flush().await
}

/// The other side: one connection, which all tasks take in turn.
pub struct Remote(Mutex<BufStream<TcpStream>>);

impl Remote {
    pub async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(Mutex::new(BufStream::new(stream)))
    }

    pub async fn claim(&self, term: &Term) {
        assert_eq!(self.ask(&format!("claim {}", term.token)).await, "claimed");
    }

    pub async fn read(&self, term: &Term) -> i64 {
        self.ask(&format!("read {}", term.token)).await.parse().unwrap()
    }

    pub async fn write(&self, term: &Term, read: i64) -> Outcome {
        match &*self.ask(&format!("write {} {read}", term.token)).await {
            "accepted" => Outcome::Accepted,
            "refused" => Outcome::Refused,
            "failed" => Outcome::Failed,
            other => panic!("nobody answers \"{other}\""),
        }
    }

    async fn ask(&self, line: &str) -> String {
        let mut stream = self.0.lock().await;
        tell(&mut stream, line).await.unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).await.unwrap();
        answer.trim_end().to_owned()
    }
}
