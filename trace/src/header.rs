use crate::form::{Fields, Form, Wrong, object, shown, text};
use serde_json::Value;
use std::num::NonZeroUsize;
use tenure_core::{Candidate, Engine, Timing, TimingOptions};

/// The version of the format that this crate writes, and the only one that it reads.
pub const FORMAT: u64 = 1;

/// Longest text of a header for people, in bytes.
const TEXT_BYTES_MAX: usize = 100;

/// The first line of a trace: what its engine was made from, and where it ran.
///
/// It never holds the store's URL, nor any secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The version of Tenure that recorded it. 0 ..= 100 bytes, as every text here.
    pub tenure: String,
    /// Who campaigned.
    pub candidate: Candidate,
    /// The timing.
    pub timing: Timing,
    /// How many leases one request may renew or release.
    pub batch_max: NonZeroUsize,
    /// The seed of the engine's jitter.
    pub seed: u64,
    /// The kind of store, as in its URL: `sqlite`, `mongodb`.
    pub store: String,
    /// Which boot of which machine the moments were counted on; traces of different ones are not compared. On
    /// Linux the kernel's `boot_id`, and by how much a time namespace shifts the clock, if one does; `None`
    /// if it is not known.
    pub boot: Option<String>,
    /// When it was started, by the wall clock and in RFC 3339: for people, no program decides by it.
    pub started: String,
}

impl Header {
    /// The engine that the trace is of, before its first step.
    #[must_use]
    pub fn engine(&self) -> Engine {
        Engine::new(self.candidate.clone(), self.timing, self.batch_max, self.seed)
    }
}

impl Form for Header {
    fn write(&self, out: &mut String) {
        let Self {
            tenure,
            candidate,
            timing,
            batch_max,
            seed,
            store,
            boot,
            started,
        } = self;
        object(
            out,
            &[
                ("tenure_trace", &FORMAT),
                ("tenure", tenure),
                ("candidate", candidate),
                ("timing", timing),
                ("batch_max", batch_max),
                ("seed", &Seed(*seed)),
                ("store", store),
                ("boot", boot),
                ("started", started),
            ],
        );
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        let mut fields = Fields::of(value)?;
        fields.take::<u64>("tenure_trace")?;
        let header = Self {
            tenure: fields.take("tenure")?,
            candidate: fields.take("candidate")?,
            timing: fields.take("timing")?,
            batch_max: fields.take("batch_max")?,
            seed: fields.take::<Seed>("seed")?.0,
            store: fields.take("store")?,
            boot: fields.take("boot")?,
            started: fields.take("started")?,
        };
        fields.done()?;
        header.is_for_people()?;
        Ok(header)
    }
}

impl Header {
    /// A person reads its texts, on a terminal.
    pub(crate) fn is_for_people(&self) -> Result<(), Wrong> {
        let boot = self.boot.as_deref().unwrap_or_default();
        for (name, text) in [
            ("tenure", self.tenure.as_str()),
            ("store", &self.store),
            ("boot", boot),
            ("started", &self.started),
        ] {
            if text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
                let what = format!("over {TEXT_BYTES_MAX} bytes, or with a control character");
                return Err(Wrong::new(what).within(name));
            }
        }
        Ok(())
    }
}

/// Hexadecimal: half of all seeds are beyond the numbers that many JSON programs keep exactly.
struct Seed(u64);

impl Form for Seed {
    fn write(&self, out: &mut String) {
        text(out, &format!("{:016x}", self.0));
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        value
            .as_str()
            .and_then(|text| u64::from_str_radix(text, 16).ok())
            .map(Self)
            .ok_or_else(|| Wrong::new(format!("{} is no seed of 16 hexadecimal digits", shown(value))))
    }
}

impl Form for Timing {
    fn write(&self, out: &mut String) {
        object(
            out,
            &[
                ("ttl_ms", &self.ttl()),
                ("renew_every", &self.renew_every()),
                ("retry_every", &self.retry_every()),
                ("request_timeout", &self.request_timeout()),
                ("grace", &self.grace()),
                ("spread", &self.spread()),
                ("clock_rate_error_ppm", &self.clock_rate_error_ppm()),
                ("step_allowance", &self.step_allowance()),
            ],
        );
    }

    fn read(value: &Value) -> Result<Self, Wrong> {
        let mut fields = Fields::of(value)?;
        let options = TimingOptions {
            ttl: fields.take::<tenure_core::Ttl>("ttl_ms")?.duration(),
            renew_every: Some(fields.take("renew_every")?),
            retry_every: Some(fields.take("retry_every")?),
            request_timeout: Some(fields.take("request_timeout")?),
            grace: Some(fields.take("grace")?),
            spread: Some(fields.take("spread")?),
            clock_rate_error_ppm: fields.take("clock_rate_error_ppm")?,
            step_allowance: Some(fields.take("step_allowance")?),
        };
        fields.done()?;
        options.check().map_err(|error| Wrong::new(error.to_string()))
    }
}
