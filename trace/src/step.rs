use crate::form::{Fields, Form, Wrong, object};
use serde_json::Value;
use tenure_core::{Actions, Input, Moment};

/// One step of an engine: a line of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// When: never before the step before.
    pub at: Moment,
    /// What the engine was told.
    pub input: Input,
    /// What it wanted done.
    pub actions: Actions,
}

/// Writes a step whose parts are still in use.
pub(crate) fn write(at: Moment, input: &Input, actions: &Actions, out: &mut String) {
    let Actions {
        requests,
        events,
        wake,
    } = actions;
    object(
        out,
        &[
            ("at", &at),
            ("input", input),
            ("requests", requests),
            ("events", events),
            ("wake", wake),
        ],
    );
}

impl Form for Step {
    fn write(&self, out: &mut String) {
        let Self { at, input, actions } = self;
        write(*at, input, actions, out);
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        let mut fields = Fields::of(value)?;
        let step = Self {
            at: fields.take("at")?,
            input: fields.take("input")?,
            actions: Actions {
                requests: fields.take("requests")?,
                events: fields.take("events")?,
                wake: fields.take("wake")?,
            },
        };
        fields.done()?;
        Ok(step)
    }
}
