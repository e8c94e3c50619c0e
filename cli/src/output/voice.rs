use super::clean;
use crate::arguments::Form;
use crate::exit::Failure;
use serde_json::{Value, json};
use std::io::Write;

/// What this command says to people, on standard error: short lines, and few of them.
///
/// Writing may block for as long as nobody reads: say something after what must be done in time, never before.
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
        if self.loudness == Loudness::ErrorsOnly {
            return;
        }
        self.write(text, || {
            let mut object = json!({"event": event, "message": text});
            if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
                object.extend(fields);
            }
            object
        });
    }

    /// Says why this command ends.
    pub(crate) fn fail(self, failure: &Failure) {
        self.write(
            &failure.message,
            || json!({"error": failure.message, "code": failure.code}),
        );
    }

    fn write(self, text: &str, object: impl FnOnce() -> Value) {
        let line = match self.form {
            Form::Text => format!("tenure: {}\n", clean(text)),
            Form::Json => format!("{}\n", object()),
        };
        // Nobody to tell it to.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}
