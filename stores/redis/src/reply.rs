//! Reading what the scripts answer.

use redis::Value;
use tenure_core::{Fault, StoreError};

/// Most words of an answer in one text: the last is all that is left, and may hold spaces.
const WORDS_MAX: usize = 8;

/// An array of the server's, read from its front.
#[derive(Debug)]
pub(crate) struct Reply {
    parts: std::vec::IntoIter<Value>,
}

/// The fields of a record in their order; `None` where the hash has none.
pub(crate) type Fields = Vec<Option<Vec<u8>>>;

impl Reply {
    /// An array, or what stands for one: words in one text, which both sides have less to do with.
    pub(crate) fn new(value: Value) -> Result<Self, StoreError> {
        let parts = match value {
            Value::Array(parts) => parts,
            Value::BulkString(text) => text
                .splitn(WORDS_MAX, |byte| *byte == b' ')
                .map(|word| Value::BulkString(word.to_vec()))
                .collect(),
            _ => return Err(misunderstood()),
        };
        Ok(Self {
            parts: parts.into_iter(),
        })
    }

    fn next(&mut self) -> Result<Value, StoreError> {
        self.parts.next().ok_or_else(misunderstood)
    }

    /// The next part, a text of this crate's own.
    pub(crate) fn word(&mut self) -> Result<String, StoreError> {
        self.text()?.ok_or_else(misunderstood)
    }

    /// The next part, a text or nothing.
    pub(crate) fn text(&mut self) -> Result<Option<String>, StoreError> {
        match bytes(self.next()?)? {
            Some(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| misunderstood()),
            None => Ok(None),
        }
    }

    /// The next part, whatever bytes it has, or nothing.
    pub(crate) fn bytes_if_any(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        bytes(self.next()?)
    }

    /// The next part, a text; nothing if none is left.
    pub(crate) fn text_if_any(&mut self) -> Result<Option<String>, StoreError> {
        match self.is_empty() {
            true => Ok(None),
            false => self.text(),
        }
    }

    /// The next part, whatever bytes it has.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        bytes(self.next()?)?.ok_or_else(misunderstood)
    }

    /// The next part, a whole number that is not negative, of 64 bits.
    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        match self.next()? {
            Value::Int(number) => u64::try_from(number).map_err(|_| misunderstood()),
            other => bytes(other)?
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .and_then(|text| text.parse().ok())
                .ok_or_else(misunderstood),
        }
    }

    /// The next part, the fields of a record; `None` where the key is no hash.
    pub(crate) fn fields(&mut self) -> Result<Option<Fields>, StoreError> {
        match self.next()? {
            Value::Array(parts) => parts.into_iter().map(bytes).collect::<Result<_, _>>().map(Some),
            Value::Nil => Ok(None),
            _ => Err(misunderstood()),
        }
    }

    /// The next part, an array.
    pub(crate) fn array(&mut self) -> Result<Reply, StoreError> {
        Reply::new(self.next()?)
    }

    /// The next part as it came; nothing if none is left.
    pub(crate) fn value(&mut self) -> Option<Value> {
        self.parts.next()
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.as_slice().is_empty()
    }
}

fn bytes(value: Value) -> Result<Option<Vec<u8>>, StoreError> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::SimpleString(text) => Ok(Some(text.into_bytes())),
        Value::Nil => Ok(None),
        _ => Err(misunderstood()),
    }
}

/// The server answered with something that no script of this crate answers with.
pub(crate) fn misunderstood() -> StoreError {
    StoreError::unknown(
        Fault::Internal,
        "the Redis server answered a script with something else than the script says; is there a proxy between?",
    )
}
