//! Numbers, texts, lists, and the words of the core.

use super::{Form, Wrong, record, shown, text};
use serde_json::Value;
use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, FencingToken, Incarnation, LeaseName, Moment, Note, RequestId, Ttl,
};

impl Form for u64 {
    fn write(&self, out: &mut String) {
        out.push_str(&self.to_string());
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        value
            .as_u64()
            .ok_or_else(|| Wrong::new(format!("{} is no whole number below 2^64", shown(value))))
    }
}

impl Form for u32 {
    fn write(&self, out: &mut String) {
        u64::from(*self).write(out);
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        let number = u64::read(value)?;
        Self::try_from(number).map_err(|_| Wrong::new(format!("{number} is over {}", Self::MAX)))
    }
}

impl Form for bool {
    fn write(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        value
            .as_bool()
            .ok_or_else(|| Wrong::new(format!("{} is neither true nor false", shown(value))))
    }
}

impl Form for String {
    fn write(&self, out: &mut String) {
        text(out, self);
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        text_of(value).map(str::to_owned)
    }
}

fn text_of(value: &Value) -> Result<&str, Wrong> {
    value
        .as_str()
        .ok_or_else(|| Wrong::new(format!("{} is no text", shown(value))))
}

impl<T: Form> Form for Option<T> {
    fn write(&self, out: &mut String) {
        match self {
            Some(value) => value.write(out),
            None => out.push_str("null"),
        }
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        match value {
            Value::Null => Ok(None),
            value => T::read(value).map(Some),
        }
    }
}

impl<T: Form> Form for Box<T> {
    fn write(&self, out: &mut String) {
        self.as_ref().write(out);
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        T::read(value).map(Self::new)
    }
}

impl<T: Form> Form for Vec<T> {
    fn write(&self, out: &mut String) {
        out.push('[');
        for (index, value) in self.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            value.write(out);
        }
        out.push(']');
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        let values = value
            .as_array()
            .ok_or_else(|| Wrong::new(format!("{} is no list", shown(value))))?;
        let read = |(index, value)| T::read(value).map_err(|wrong| wrong.within(&format!("[{index}]")));
        values.iter().enumerate().map(read).collect()
    }
}

type Outcome<T, E> = Result<T, E>;

impl<T: Form, E: Form> Form for Outcome<T, E> {
    fn write(&self, out: &mut String) {
        match self {
            Ok(value) => super::object(out, &[("ok", value)]),
            Err(error) => super::object(out, &[("error", error)]),
        }
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        match super::tagged(value)? {
            ("ok", Some(value)) => T::read(value).map(Ok).map_err(|wrong| wrong.within("ok")),
            ("error", Some(error)) => E::read(error).map(Err).map_err(|wrong| wrong.within("error")),
            (word, _) => Err(super::unknown(word, &["ok", "error"])),
        }
    }
}

/// Whole nanoseconds; as a text in seconds, where those are too many for 64 bits.
impl Form for Duration {
    fn write(&self, out: &mut String) {
        match u64::try_from(self.as_nanos()) {
            Ok(nanoseconds) => nanoseconds.write(out),
            Err(_) => text(out, &format!("{}.{:09}s", self.as_secs(), self.subsec_nanos())),
        }
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        let Value::String(text) = value else {
            return u64::read(value).map(Self::from_nanos);
        };
        let parts = text.strip_suffix('s').and_then(|text| text.split_once('.'));
        parts
            .and_then(|(seconds, nanoseconds)| {
                let whole = nanoseconds.len() == 9;
                let nanoseconds = nanoseconds.parse().ok().filter(|_| whole)?;
                Some(Self::new(seconds.parse().ok()?, nanoseconds))
            })
            .ok_or_else(|| Wrong::new(format!("{} is no duration", shown(value))))
    }
}

/// A word that has a plain number.
macro_rules! number {
    ($type:ident, $write:expr, $read:expr) => {
        impl Form for $type {
            fn write(&self, out: &mut String) {
                let number: u64 = $write(*self);
                number.write(out);
            }

            fn read(value: &Value) -> Result<Self, Wrong> {
                let number = u64::read(value)?;
                $read(number).map_err(|error| Wrong::new(format!("{number} is out of range: {error}")))
            }
        }
    };
}

number!(Moment, Moment::as_nanos, |number| Ok::<_, String>(
    Moment::from_nanos(number)
));
number!(RequestId, RequestId::number, |number| Ok::<_, String>(
    RequestId::from_number(number)
));
number!(FencingToken, FencingToken::number, FencingToken::new);
number!(Ttl, Ttl::as_millis, Ttl::from_millis);
number!(Attempt, Attempt::number, |number| Attempt::new(number)
    .ok_or("an attempt is a whole number from 1 to 2^63 - 1"));

impl Form for NonZeroUsize {
    fn write(&self, out: &mut String) {
        out.push_str(&self.to_string());
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        let number = u64::read(value)?;
        usize::try_from(number)
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| Wrong::new(format!("{number} is out of range: at least 1")))
    }
}

/// A word that is a checked text.
macro_rules! word {
    ($type:ident, $read:expr) => {
        impl Form for $type {
            fn write(&self, out: &mut String) {
                text(out, &self.to_string());
            }

            fn read(value: &Value) -> Result<Self, Wrong> {
                $read(text_of(value)?).map_err(|error| Wrong::new(format!("{error}")))
            }
        }
    };
}

word!(LeaseName, LeaseName::new);
word!(CandidateId, CandidateId::new);
word!(Incarnation, str::parse::<Incarnation>);
word!(Note, Note::new);
record!(Candidate { id, incarnation });
