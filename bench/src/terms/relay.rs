//! A store in another process, over a socket: a line asks, a line answers. What the campaign's contenders
//! ask, and no more.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure::contract::{
    Acquire, Acquired, Answer, Ask, Asked, Attempt, Candidate, CandidateId, Certainty, Fault, Finding, Grant,
    Incarnation, Interest, Lease, LeasePage, Note, Page, Release, Released, Renew, Renewed, Scope,
    StoreError, StoreTraits, Watch, Wish, Work,
};
use tenure::{FencingToken, LeaseName, LeaseStore, Ttl};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The store of the process that listens at the port, which another takes over when that one was killed.
pub struct Relay {
    port: Arc<AtomicU16>,
    traits: StoreTraits,
    /// Each for one request at a time.
    idle: Mutex<Vec<BufReader<TcpStream>>>,
}

impl Relay {
    pub fn new(port: Arc<AtomicU16>, traits: StoreTraits) -> Self {
        Self {
            port,
            traits,
            idle: Mutex::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<BufReader<TcpStream>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words of the answer.
    async fn ask(&self, line: String) -> Result<Vec<String>, StoreError> {
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => {
                let port = self.port.load(Ordering::SeqCst);
                let dialled = TcpStream::connect(("127.0.0.1", port)).await;
                let gone = |error| {
                    StoreError::not_applied(Fault::Unreachable, format!("the process is gone: {error}"))
                };
                BufReader::new(dialled.map_err(gone)?)
            }
        };
        let unheard = |error: String| StoreError::unknown(Fault::Unreachable, format!("unheard: {error}"));
        let mut answer = String::new();
        let exchange = async {
            connection.write_all(format!("{line}\n").as_bytes()).await?;
            connection.read_line(&mut answer).await
        };
        exchange.await.map_err(|error| unheard(error.to_string()))?;
        if !answer.ends_with('\n') {
            return Err(unheard("the process was killed".to_owned()));
        }
        self.idle().push(connection);
        let words: Vec<String> = answer.split_whitespace().map(str::to_owned).collect();
        match words.as_slice() {
            [error, certainty, rest @ ..] if error == "error" => Err(StoreError {
                fault: Fault::Internal,
                certainty: match certainty.as_str() {
                    "not-applied" => Certainty::NotApplied,
                    _ => Certainty::Unknown,
                },
                message: rest.join(" "),
            }),
            _ => Ok(words),
        }
    }

    async fn acquire_there(&self, request: &Acquire) -> Result<Acquired, StoreError> {
        let words = self.ask(acquisition(request)).await?;
        Ok(match words[0].as_str() {
            "granted" => Acquired::Granted(Grant {
                token: token(&words[1]),
                ttl: Ttl::from_millis(number(&words[2])).unwrap(),
                terms: number(&words[3]),
                again: words[4] == "true",
                predecessor: None,
            }),
            "held" => Acquired::Held(held(request, number(&words[1]), token(&words[2]))),
            "superseded" => Acquired::Superseded,
            other => panic!("a process answered {other}"),
        })
    }

    async fn renew_there(&self, request: &Renew) -> Result<Renewed, StoreError> {
        let Renew {
            name,
            incarnation,
            token,
            attempt,
            ttl,
        } = request;
        let (bits, ms) = (incarnation.bits(), ttl.as_millis());
        let words = self
            .ask(format!("renew {name} {bits} {token} {attempt} {ms}"))
            .await?;
        Ok(match words[0].as_str() {
            "extended" => Renewed::Extended {
                ttl: Ttl::from_millis(number(&words[1])).unwrap(),
                wish: Wish::Nothing,
            },
            _ => Renewed::Lost(None),
        })
    }

    async fn release_there(&self, request: &Release) -> Result<Released, StoreError> {
        let Release {
            name,
            incarnation,
            token,
            attempt,
        } = request;
        let bits = incarnation.bits();
        let words = self
            .ask(format!("release {name} {bits} {token} {attempt}"))
            .await?;
        Ok(match words[0].as_str() {
            "vacated" => Released::Vacated,
            _ => Released::NotYours(None),
        })
    }
}

fn acquisition(request: &Acquire) -> String {
    let Acquire {
        name,
        candidate,
        attempt,
        ttl,
        ..
    } = request;
    let (bits, ms) = (candidate.incarnation.bits(), ttl.as_millis());
    format!("acquire {name} {} {bits} {attempt} {ms}", candidate.id)
}

/// Whoever holds it: the contenders go by what remains.
fn held(request: &Acquire, remaining_ms: u64, token: FencingToken) -> Lease {
    Lease {
        name: request.name.clone(),
        holder: Candidate {
            id: CandidateId::new("another").unwrap(),
            incarnation: Incarnation::from_bits(0),
        },
        token,
        attempt: Attempt::FIRST,
        terms: 1,
        ttl: request.ttl,
        remaining: Duration::from_millis(remaining_ms),
        released: false,
        held_for: Duration::ZERO,
        renewed_ago: Duration::ZERO,
        asked_to_step_down: false,
        note: Note::default(),
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

fn token(word: &str) -> FencingToken {
    FencingToken::new(number(word)).unwrap()
}

/// Asks the store what the line asks, and says what it answers.
pub async fn answer(store: &dyn LeaseStore, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let incarnation = |word: &str| Incarnation::from_bits(word.parse().unwrap());
    let attempt = |word: &str| Attempt::new(number(word)).unwrap();
    let ttl = |word: &str| Ttl::from_millis(number(word)).unwrap();
    let answer = match words[..] {
        ["acquire", name, id, bits, tried, ms] => {
            let request = Acquire {
                name: LeaseName::new(name).unwrap(),
                candidate: Candidate {
                    id: CandidateId::new(id).unwrap(),
                    incarnation: incarnation(bits),
                },
                attempt: attempt(tried),
                ttl: ttl(ms),
                note: Note::default(),
            };
            store.acquire(&request).await.map(|acquired| match acquired {
                Acquired::Granted(grant) => {
                    let ms = grant.ttl.as_millis();
                    format!("granted {} {ms} {} {}", grant.token, grant.terms, grant.again)
                }
                Acquired::Held(lease) => format!("held {} {}", lease.remaining.as_millis() + 1, lease.token),
                Acquired::Superseded => "superseded".to_owned(),
            })
        }
        ["renew", name, bits, held, tried, ms] => {
            let request = Renew {
                name: LeaseName::new(name).unwrap(),
                incarnation: incarnation(bits),
                token: token(held),
                attempt: attempt(tried),
                ttl: ttl(ms),
            };
            let renewed = store.renew(&[request]).await.remove(0);
            renewed.map(|renewed| match renewed {
                Renewed::Extended { ttl, .. } => format!("extended {}", ttl.as_millis()),
                Renewed::Lost(_) => "lost".to_owned(),
            })
        }
        ["release", name, bits, held, tried] => {
            let request = Release {
                name: LeaseName::new(name).unwrap(),
                incarnation: incarnation(bits),
                token: token(held),
                attempt: attempt(tried),
            };
            let released = store.release(&[request]).await.remove(0);
            released.map(|released| match released {
                Released::Vacated => "vacated".to_owned(),
                Released::NotYours(_) => "not-yours".to_owned(),
            })
        }
        _ => panic!("asked \"{line}\""),
    };
    answer.unwrap_or_else(|error| {
        let certainty = match error.certainty {
            Certainty::NotApplied => "not-applied",
            Certainty::Unknown => "unknown",
        };
        format!("error {certainty} {}", error.message.replace('\n', " "))
    })
}

fn unsupported<T>() -> Result<T, StoreError> {
    Err(StoreError::not_applied(
        Fault::Unsupported,
        "the campaign does not ask this",
    ))
}

impl LeaseStore for Relay {
    fn traits(&self) -> StoreTraits {
        self.traits.clone()
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(self.acquire_there(request))
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for request in requests {
                answers.push(self.renew_there(request).await);
            }
            answers
        })
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for request in requests {
                answers.push(self.release_there(request).await);
            }
            answers
        })
    }

    fn ask<'a>(&'a self, _request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        Box::pin(async { unsupported() })
    }

    fn get<'a>(&'a self, _name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(async { unsupported() })
    }

    fn list<'a>(&'a self, _page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        Box::pin(async { unsupported() })
    }

    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async { unsupported() })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async { unsupported() })
    }

    fn run_beside(&self, work: Work) -> Result<(), Work> {
        Err(work)
    }
}
