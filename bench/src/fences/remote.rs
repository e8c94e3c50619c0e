//! A register that another process serves: the way to a watermark, whose file one process has at a time.
//!
//! So it is in earnest: the process that guards goes on, and the leader that writes to it is frozen.

use super::register::{NotClaimed, Outcome, Register, Write, term};
use std::net::SocketAddr;
use std::sync::Arc;
use tenure::Term;
use tenure::contract::Answer;
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
    let term_of = |token: &str| term(token.parse().unwrap());
    match words[..] {
        ["claim", token] => match register.claim(&term_of(token)).await {
            Ok(()) => "claimed".to_owned(),
            Err(NotClaimed::Refused(why)) => format!("refused {why}"),
            Err(NotClaimed::Undecided(why)) => format!("undecided {why}"),
        },
        ["read", token] => match register.read(&term_of(token)).await {
            Some(read) => read.to_string(),
            None => "unread".to_owned(),
        },
        ["write", token, read] => match register.write(&term_of(token), read.parse().unwrap()).await {
            Outcome::Accepted => "accepted".to_owned(),
            Outcome::Refused => "refused".to_owned(),
            Outcome::Undecided => "undecided".to_owned(),
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

    async fn ask(&self, line: &str) -> String {
        let mut stream = self.0.lock().await;
        tell(&mut stream, line).await.unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).await.unwrap();
        answer.trim_end().to_owned()
    }
}

impl Register for Remote {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(async {
            let answer = self.ask(&format!("claim {}", term.token)).await;
            match answer.split_once(' ') {
                None if answer == "claimed" => Ok(()),
                Some(("refused", why)) => Err(NotClaimed::Refused(why.to_owned())),
                Some(("undecided", why)) => Err(NotClaimed::Undecided(why.to_owned())),
                _ => panic!("nobody answers \"{answer}\""),
            }
        })
    }

    fn read<'a>(&'a self, term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async { self.ask(&format!("read {}", term.token)).await.parse().ok() })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            match &*self.ask(&format!("write {} {read}", term.token)).await {
                "accepted" => Outcome::Accepted,
                "refused" => Outcome::Refused,
                "undecided" => Outcome::Undecided,
                other => panic!("nobody answers \"{other}\""),
            }
        })
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        panic!("it is judged where the register is")
    }
}
