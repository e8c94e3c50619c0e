//! Every type of a trace as JSON: written and read by one list of its parts, so that the two cannot differ.
//!
//! The text is written here, field by field in the order of the lists, and not by `serde_json`'s map: the
//! order of that one depends on a feature that any crate of a build can turn on. Equal values are equal
//! bytes.

mod engine;
mod fields;
#[cfg(test)]
mod round_trip;
mod store;
mod words;

pub(crate) use fields::{Fields, object, shown, tagged, text, unknown};

use serde_json::Value;

/// A type that a trace holds.
pub(crate) trait Form {
    /// Writes it as JSON, always in the same way.
    fn write(&self, out: &mut String);

    /// Reads what `write` writes.
    fn read(value: &Value) -> Result<Self, Wrong>
    where
        Self: Sized;
}

/// A JSON value that is not what it should be, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    /// From the line inwards, such as `input.answer.reply`.
    path: String,
    what: String,
}

impl Wrong {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            what: what.into(),
        }
    }

    /// The same, one level further out.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{outer}{dot}{}", self.path);
        self
    }

    /// For a person: where, and what.
    pub(crate) fn told(&self) -> String {
        if self.path.is_empty() {
            self.what.clone()
        } else {
            format!("{}: {}", self.path, self.what)
        }
    }
}

/// A struct: an object with exactly these fields.
macro_rules! record {
    ($type:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::form::Form for $type {
            fn write(&self, out: &mut String) {
                // Whole: a field that is added to the type must be added here.
                let Self { $($field),+ } = self;
                $crate::form::object(out, &[$((stringify!($field), $field)),+]);
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::form::Wrong> {
                let mut fields = $crate::form::Fields::of(value)?;
                let record = Self { $($field: fields.take(stringify!($field))?),+ };
                fields.done()?;
                Ok(record)
            }
        }
    };
}

/// An enum: a word for a variant without fields, else an object whose one field is the word.
macro_rules! choice {
    ($type:ident {
        $($word:literal => $variant:ident $(($inner:ident))? $({ $($field:ident),+ $(,)? })?),+ $(,)?
    }) => {
        #[cfg(test)]
        impl $crate::form::round_trip::Words for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::form::Form for $type {
            fn write(&self, out: &mut String) {
                match self {
                    $(Self::$variant $(($inner))? $({ $($field),+ })? => {
                        $crate::form::choice!(@write out, $word $(($inner))? $({ $($field),+ })?);
                    })+
                }
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::form::Wrong> {
                let (word, content) = $crate::form::tagged(value)?;
                match (word, content) {
                    $($crate::form::choice!(@pattern $word, content $(($inner))? $({ $($field),+ })?) => {
                        $crate::form::choice!(@read content, $word, $variant $(($inner))? $({ $($field),+ })?)
                    })+
                    (word, _) => Err($crate::form::unknown(word, &[$($word),+])),
                }
            }
        }
    };
    (@write $out:ident, $word:literal) => { $crate::form::text($out, $word) };
    (@write $out:ident, $word:literal ($inner:ident)) => { $crate::form::object($out, &[($word, $inner)]) };
    (@write $out:ident, $word:literal { $($field:ident),+ }) => {
        $out.push('{');
        $crate::form::text($out, $word);
        $out.push(':');
        $crate::form::object($out, &[$((stringify!($field), $field)),+]);
        $out.push('}');
    };
    (@pattern $word:literal, $content:ident) => { ($word, None) };
    (@pattern $word:literal, $content:ident ($inner:ident)) => { ($word, Some($content)) };
    (@pattern $word:literal, $content:ident { $($field:ident),+ }) => { ($word, Some($content)) };
    (@read $content:ident, $word:literal, $variant:ident) => { Ok(Self::$variant) };
    (@read $content:ident, $word:literal, $variant:ident ($inner:ident)) => {
        $crate::form::Form::read($content)
            .map(Self::$variant)
            .map_err(|wrong: $crate::form::Wrong| wrong.within($word))
    };
    (@read $content:ident, $word:literal, $variant:ident { $($field:ident),+ }) => {{
        let read = || {
            let mut fields = $crate::form::Fields::of($content)?;
            let chosen = Self::$variant { $($field: fields.take(stringify!($field))?),+ };
            fields.done()?;
            Ok(chosen)
        };
        read().map_err(|wrong: $crate::form::Wrong| wrong.within($word))
    }};
}

pub(crate) use {choice, record};
