//! Changing data behind the fence: compared and written in one script.

use super::mark::Kept;
use super::script::{WRITE, behind_the_fence};
use super::{RedisFence, subject};
use crate::fault::{Deed, line};
use crate::reply::misunderstood;
use crate::script::{Arguments, Script};
use redis::Value;
use std::sync::Arc;
use tenure_core::{Fault, FenceError, FencingToken, LeaseName, ResourceName, StoreError, Term};

/// Most words of one command: what the server's Lua takes.
const WORDS_MAX: usize = 1_000;

/// Commands that are run in one step, if the term holds the mark.
#[derive(Clone, Default, Debug)]
pub struct FencedWrites {
    keys: Vec<Vec<u8>>,
    /// Each with the number of its words before it.
    words: Vec<Vec<u8>>,
    too_long: bool,
}

impl FencedWrites {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more command, as it is written in the server's documentation: its name, then its arguments, 1,000
    /// words at most. `keys` are those that it touches.
    #[must_use]
    pub fn command<Key, Word>(mut self, keys: &[Key], words: impl IntoIterator<Item = Word>) -> Self
    where
        Key: AsRef<[u8]>,
        Word: AsRef<[u8]>,
    {
        let words: Vec<Vec<u8>> = words.into_iter().map(|word| word.as_ref().to_vec()).collect();
        self.too_long |= words.len() > WORDS_MAX || words.is_empty();
        self.keys.extend(keys.iter().map(|key| key.as_ref().to_vec()));
        self.words.push(words.len().to_string().into_bytes());
        self.words.extend(words);
        self
    }
}

/// A script of the user's own, to be run behind the fence.
#[derive(Clone, Debug)]
pub struct FencedScript(Arc<Script>);

impl FencedScript {
    /// A script in Lua, with `KEYS` and `ARGV` of its own, as for `EVAL`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Arc::new(behind_the_fence(text)))
    }
}

impl RedisFence {
    /// Runs commands in their order, in one step, if `term` holds the mark of `resource`; answers with their
    /// answers.
    ///
    /// The first command that fails ends them. **What ran before it stands**: the server undoes nothing.
    ///
    /// # Errors
    /// [`FenceError::Stale`], [`FenceError::Unclaimed`] or [`FenceError::Foreign`]: nothing was written, and
    /// the refusal is counted. [`FenceError::Store`] if a command failed, with its number, or the server.
    pub async fn write(
        &self,
        resource: &ResourceName,
        term: &Term,
        writes: &FencedWrites,
    ) -> Result<Vec<Value>, FenceError> {
        if writes.too_long {
            return Err(FenceError::Store(StoreError::not_applied(
                Fault::Invalid,
                format!(
                    "{}: a fenced command has 1 to {WORDS_MAX} words",
                    subject(resource)
                ),
            )));
        }
        let answer = self
            .enter(&WRITE, resource, term, &writes.keys, &writes.words)
            .await?;
        match answer {
            Value::Array(answers) => Ok(answers),
            _ => Err(misunderstood().into()),
        }
    }

    /// Runs a script of the user's own, in one step, if `term` holds the mark of `resource`.
    ///
    /// An error in the script ends it there. **What it wrote before stands**: the server undoes nothing.
    ///
    /// # Errors
    /// As [`write`](Self::write). [`FenceError::Store`], too, if the script raises an error, or answers with
    /// one or with one in a table.
    pub async fn run<Key, Word>(
        &self,
        resource: &ResourceName,
        term: &Term,
        script: &FencedScript,
        keys: &[Key],
        arguments: &[Word],
    ) -> Result<Value, FenceError>
    where
        Key: AsRef<[u8]> + Sync,
        Word: AsRef<[u8]> + Sync,
    {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.as_ref().to_vec()).collect();
        let words: Vec<Vec<u8>> = arguments.iter().map(|word| word.as_ref().to_vec()).collect();
        self.enter(&script.0, resource, term, &keys, &words).await
    }

    async fn enter(
        &self,
        script: &Script,
        resource: &ResourceName,
        term: &Term,
        keys: &[Vec<u8>],
        words: &[Vec<u8>],
    ) -> Result<Value, FenceError> {
        let mut arguments = Arguments::on([self.0.site().keys.mark(resource)]);
        keys.iter().for_each(|key| arguments.keys.push_bytes(key));
        arguments.push(&term.lease);
        arguments.push(term.token);
        words.iter().for_each(|word| arguments.values.push_bytes(word));
        let (site, script, subject) = (Arc::clone(self.0.site()), script.clone(), subject(resource));
        let running = async move {
            site.is_ready(Deed::Write).await?;
            site.run(&script, &arguments, Deed::Write, &subject).await
        };
        let mut reply = self.0.run(running).await.map_err(FenceError::Store)??;
        let (verdict, _now_ms) = (reply.word()?, reply.number()?);
        match verdict.as_str() {
            "admitted" => Ok(reply.value().unwrap_or(Value::Nil)),
            "failed" => {
                let (number, why) = (reply.number()?, line(reply.word()?));
                let what = match number {
                    0 => format!("its script ended with an error: {why}; what it wrote stands"),
                    _ => format!("its command {number} failed: {why}; those before it stand"),
                };
                Err(FenceError::Store(StoreError::unknown(
                    Fault::Internal,
                    format!("fence \"{resource}\": {term} was admitted, but {what}"),
                )))
            }
            "refused" => {
                let (state, lease) = (reply.word()?, reply.text()?);
                let (token, bumped) = (reply.text()?, reply.text()?);
                if state == "unreadable" {
                    // Says what is wrong with it.
                    self.look(resource, None).await?;
                }
                let token_of = |text: Option<String>| -> Option<FencingToken> { text?.parse().ok() };
                let kept = Kept {
                    lease: lease.and_then(|lease| LeaseName::new(lease).ok()),
                    token: token_of(token),
                    bumped: token_of(bumped),
                };
                self.ruled(resource, term, &kept)?;
                Err(misunderstood().into())
            }
            _ => Err(misunderstood().into()),
        }
    }
}
