use super::{StandardError, clean, inert, write_aside};
use crate::arguments::Form;
use crate::exit::Failure;
use serde_json::{Value, json};
use std::io::Write;

/// What this command says to people, on standard error: short lines, and few of them.
///
/// Once something is held, nobody who says something waits for whoever reads it: [`aside`](Self::aside).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voice {
    form: Form,
    loudness: Loudness,
}

/// Whether anything but errors is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loudness {
    Normal,
    ErrorsOnly,
}

impl Voice {
    /// The form of what is printed and said.
    pub(crate) fn form(self) -> Form {
        self.form
    }

    /// Whether only errors are to be said.
    pub(crate) fn is_quiet(self) -> bool {
        self.loudness == Loudness::ErrorsOnly
    }

    /// A voice of this form; `quiet` leaves only the errors.
    pub(crate) fn new(form: Form, quiet: bool) -> Self {
        let loudness = if quiet {
            Loudness::ErrorsOnly
        } else {
            Loudness::Normal
        };
        Self { form, loudness }
    }

    /// Says what happened: `event` in a word for programs, `fields` with the numbers, `text` for people.
    pub(crate) fn say(self, event: &str, text: &str, fields: Value) {
        if self.loudness != Loudness::ErrorsOnly {
            self.warn(event, text, fields);
        }
    }

    /// The same of what went wrong, though this command goes on, or ends as another says: also where only
    /// errors are to be said.
    pub(crate) fn warn(self, event: &str, text: &str, fields: Value) {
        write(&line_of(self.form, event, text, fields));
    }

    /// Says why this command ends.
    pub(crate) fn fail(self, failure: &Failure) {
        self.fail_with(failure, Value::Null);
    }

    /// The same, with more that programs are told of it.
    pub(crate) fn fail_with(self, failure: &Failure, fields: Value) {
        let message = &failure.message;
        write(&match self.form {
            Form::Text => in_text(message),
            Form::Json => in_json(&with(json!({"error": message, "code": failure.code}), fields)),
        });
    }

    /// From here on nobody waits for whoever reads it.
    ///
    /// # Errors
    /// As [`write_aside`].
    pub(crate) fn aside(self) -> Result<(), Failure> {
        write_aside(self.form)
    }
}

/// What happened, as a line.
pub(super) fn line_of(form: Form, event: &str, text: &str, fields: Value) -> String {
    if form == Form::Text {
        return in_text(text);
    }
    in_json(&with(json!({"event": event, "message": text}), fields))
}

/// An object with further fields, where there are any.
fn with(mut object: Value, fields: Value) -> Value {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
    object
}

fn in_text(text: &str) -> String {
    format!("tenure: {}\n", clean(text))
}

fn in_json(object: &Value) -> String {
    format!("{}\n", inert(&object.to_string()))
}

fn write(line: &str) {
    // Nobody to tell it to.
    let _ = StandardError.write_all(line.as_bytes());
}
