//! The bucket: made where there is none, and refused where it would lose records.

use crate::connect::refused;
use crate::fault::{NOT_CLUSTERED, Refusal, STREAM_EXISTS, STREAM_NOT_FOUND};
use crate::keys::Keys;
use crate::link::Link;
use crate::moments::told_ms;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::Deed;

/// What a largest value must allow, in bytes: a record with the longest texts.
const VALUE_BYTES_MIN: i64 = 8 * 1024;

/// For how long the bucket is looked for and asked for again: a cluster that has just started elects leaders
/// first, and the copies of a new bucket theirs, which may take them two tries. With the last try it stays
/// below what connecting may take.
const MAKE_TIME_MAX: Duration = Duration::from_secs(18);

/// After what time without an answer the bucket is asked for again.
const MAKE_ASKED_EVERY: Duration = Duration::from_secs(5);

/// How long a cluster is left alone that has refused because it is not ready.
const MAKE_PAUSE: Duration = Duration::from_millis(250);

/// Copies of a bucket that is made in a cluster, unless the URL has `replicas=`.
const REPLICAS_IN_A_CLUSTER: u8 = 3;

/// Microseconds of 2001: what is below was not taken from a clock.
const CLOCK_MIN: u64 = 1_000_000_000_000_000;

/// What is said about the bucket.
const SUBJECT: &str = "the bucket";

impl Link {
    /// What the stream's leader tells of the bucket, which is made if there is none. Whoever is connected to
    /// later must have this one.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] and [`Fault::ReadOnly`] with the way out, where the bucket cannot hold leases.
    pub(crate) async fn bucket(&self, keys: &Keys, replicas: Option<u8>) -> Result<Value, StoreError> {
        let until = Instant::now() + MAKE_TIME_MAX;
        let info = loop {
            match self.look_or_make(keys, replicas).await {
                Ok(info) => break info,
                Err(error) if Instant::now() < until && self.may_pass(&error).await => {
                    tokio::time::sleep(MAKE_PAUSE).await;
                }
                Err(error) => return Err(self.without_jetstream(error).await),
            }
        };
        let info = self.judged(keys, info, SUBJECT)?;
        self.servers().bucket.is(&info);
        Ok(info)
    }

    /// The same of a bucket that has been there: whoever goes on with it, or examines it, makes none.
    ///
    /// # Errors
    /// As [`bucket`](Self::bucket), and [`Fault::Unreachable`] where there is none.
    pub(crate) async fn existing_bucket(&self, keys: &Keys, subject: &str) -> Result<Value, StoreError> {
        let info = self.info(&keys.stream(), None, subject).await?;
        let info = info.map_err(|refusal| refused(Deed::Read, subject, self.place(), &refusal))?;
        self.judged(keys, info, subject)
    }

    /// What the clock of the stream's leader shows, in milliseconds. Whoever asks is about to begin
    /// something, and somebody may have edited the bucket since it was judged last: a record that it has
    /// dropped must not be taken for a lease that nobody holds.
    ///
    /// # Errors
    /// As [`existing_bucket`](Self::existing_bucket).
    pub(crate) async fn clock_ms(&self, keys: &Keys, subject: &str) -> Result<u64, StoreError> {
        let info = self.existing_bucket(keys, subject).await?;
        told_ms(&info).ok_or_else(|| self.misunderstood(Deed::Read, subject))
    }

    fn judged(&self, keys: &Keys, info: Value, subject: &str) -> Result<Value, StoreError> {
        match judge(keys, &info["config"]) {
            Ok(()) => Ok(info),
            Err((fault, why)) => {
                Err(Deed::Read.error(fault, Certainty::NotApplied, subject, self.place(), why))
            }
        }
    }

    /// Whether the same, asked again, may be answered. A cluster does not answer, or refuses, while leaders
    /// are being elected, as they are when it has just started or somebody has just made the bucket; and of
    /// several who ask at once it may answer some alone. One server has no such times: it is asked again only
    /// if it may have made the bucket.
    async fn may_pass(&self, error: &StoreError) -> bool {
        let passing = [
            Fault::TimedOut,
            Fault::Unreachable,
            Fault::AnotherStore,
            Fault::Busy,
        ];
        if !passing.contains(&error.fault) {
            return false;
        }
        // A server that cannot be reached has been looked for already.
        let Ok(open) = self.open().await else {
            return false;
        };
        let server = open.connection.client.server_info();
        let is_electing = server.cluster.is_some() && server.jetstream;
        is_electing || error.certainty == Certainty::Unknown
    }

    /// A server without JetStream passes requests on to one that has it. Where nobody took one, there is
    /// none.
    async fn without_jetstream(&self, error: StoreError) -> StoreError {
        let is_on = match self.open().await {
            Ok(open) => open.connection.client.server_info().jetstream,
            Err(_) => true,
        };
        match error.fault {
            Fault::Unreachable if !is_on => {
                let why = "JetStream is off on this server; enable it, or connect to one that has it";
                Deed::Read.error(
                    Fault::Unsupported,
                    Certainty::NotApplied,
                    SUBJECT,
                    self.place(),
                    why,
                )
            }
            _ => error,
        }
    }

    async fn look_or_make(&self, keys: &Keys, replicas: Option<u8>) -> Result<Value, StoreError> {
        match self.info(&keys.stream(), None, SUBJECT).await? {
            Ok(info) => Ok(info),
            Err(refusal) if refusal.number == STREAM_NOT_FOUND => self.make(keys, replicas).await,
            Err(refusal) => Err(refused(Deed::Read, SUBJECT, self.place(), &refusal)),
        }
    }

    async fn make(&self, keys: &Keys, replicas: Option<u8>) -> Result<Value, StoreError> {
        let made = match replicas {
            Some(replicas) => self.create(keys, replicas).await?,
            None => self.create_with_the_usual_copies(keys).await?,
        };
        match made {
            Ok(_made) => {}
            // Another was quicker.
            Err(refusal) if refusal.number == STREAM_EXISTS => {}
            Err(refusal) => return Err(refused(Deed::Write, SUBJECT, self.place(), &refusal)),
        }
        // Looked at once more: the answer does not say who keeps it. Whoever leads now may not have heard of
        // it.
        let info = self.info(&keys.stream(), None, SUBJECT).await?;
        info.map_err(|refusal| refused(Deed::Read, SUBJECT, self.place(), &refusal))
    }

    async fn create_with_the_usual_copies(&self, keys: &Keys) -> Result<Result<Value, Refusal>, StoreError> {
        let server = self.open().await?.connection.client.server_info();
        if server.cluster.is_none() {
            return self.create(keys, 1).await;
        }
        match self.create(keys, REPLICAS_IN_A_CLUSTER).await? {
            // What it tells is its own name: see `Dialled::is_clustered`. A cluster may be named as one of
            // its servers, so it is asked.
            Err(refusal) if refusal.number == NOT_CLUSTERED => self.create(keys, 1).await,
            made => Ok(made),
        }
    }

    async fn create(&self, keys: &Keys, replicas: u8) -> Result<Result<Value, Refusal>, StoreError> {
        let (api, config) = (format!("STREAM.CREATE.{}", keys.stream()), config(keys, replicas));
        self.call_within(MAKE_ASKED_EVERY, &api, &config, Deed::Write, SUBJECT)
            .await
    }
}

/// The number that the first message of a bucket gets that is made now: the clock's microseconds. So the
/// numbers of a bucket that is made again do not come again, unless it was written to more than a million
/// times a second.
fn first_number() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // Below 2^53, which every reader of JSON can read, until the year 2255.
    now.map_or(1, |since| u64::try_from(since.as_micros()).unwrap_or(1))
}

/// Whether a bucket begins with such a number.
pub(crate) fn begins_with_the_clock(config: &Value) -> bool {
    config["first_seq"]
        .as_u64()
        .is_some_and(|first| first >= CLOCK_MIN)
}

/// A bucket for leases: on disk, one revision of each record, which nothing removes by itself.
fn config(keys: &Keys, replicas: u8) -> Value {
    json!({
        "name": keys.stream(),
        "description": "leases of Tenure",
        "subjects": [keys.all()],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs_per_subject": 1,
        "discard": "new",
        "allow_rollup_hdrs": true,
        "deny_delete": true,
        "first_seq": first_number(),
        // Whoever looks with `nats kv get` shall see what the leader has, too.
        "allow_direct": false,
    })
}

/// Why a bucket of this configuration cannot hold leases.
pub(crate) fn judge(keys: &Keys, config: &Value) -> Result<(), (Fault, String)> {
    let unsupported = |why: String| Err((Fault::Unsupported, why));
    let (stream, bucket) = (keys.stream(), keys.bucket());
    let is_set = |field: &str| config.get(field).is_some_and(|value| !value.is_null());
    let is_true = |field: &str| config[field].as_bool() == Some(true);
    let number = |field: &str| config[field].as_i64().unwrap_or(-1);
    if is_set("mirror") {
        let why =
            format!("{stream} is a mirror, which lags and takes no writes; name the bucket that it mirrors");
        return Err((Fault::ReadOnly, why));
    }
    if is_true("sealed") {
        return Err((
            Fault::ReadOnly,
            format!("{stream} is sealed; name another bucket with nats://host/BUCKET"),
        ));
    }
    let takes = |subject: &Value| subject.as_str() == Some(keys.all().as_str());
    if !config["subjects"]
        .as_array()
        .is_some_and(|subjects| subjects.iter().any(takes))
    {
        return unsupported(format!(
            "{stream} is no key-value bucket of that name: it does not take {}; name another with nats://host/BUCKET",
            keys.all()
        ));
    }
    if config["retention"]
        .as_str()
        .is_some_and(|retention| retention != "limits")
    {
        return unsupported(format!(
            "{stream} drops records when they were read; name another bucket"
        ));
    }
    // What it takes in from there is stored whatever was there before: on no condition.
    if is_set("sources") {
        return unsupported(format!(
            "{stream} takes in messages of other streams (sources), over whatever record is there; name another bucket"
        ));
    }
    // What is written to a record is not found there again.
    if is_set("subject_transform") {
        return unsupported(format!(
            "{stream} stores messages under other subjects (subject_transform); name another bucket"
        ));
    }
    if is_true("no_ack") {
        return unsupported(format!("{stream} confirms nothing (no_ack); name another bucket"));
    }
    if number("max_age") > 0 {
        return unsupported(format!(
            "bucket {bucket} forgets records after a time, and tokens with them; take that off: nats stream edit {stream} \
             --max-age=0"
        ));
    }
    let drops = config["discard"].as_str().unwrap_or("old") == "old";
    if drops && (number("max_bytes") > 0 || number("max_msgs") > 0) {
        return unsupported(format!(
            "bucket {bucket} drops old records when it is full; have it refuse new ones: nats stream edit {stream} \
             --discard=new"
        ));
    }
    if is_true("discard_new_per_subject") {
        return unsupported(format!(
            "bucket {bucket} refuses whatever would replace a record (discard_new_per_subject); take that off: nats stream \
             edit {stream} --no-discard-per-subject"
        ));
    }
    if (0..VALUE_BYTES_MIN).contains(&number("max_msg_size")) {
        return unsupported(format!(
            "bucket {bucket} takes values of at most {} bytes, and a record may have {VALUE_BYTES_MIN}; nats stream edit \
             {stream} --max-msg-size={VALUE_BYTES_MIN}",
            number("max_msg_size")
        ));
    }
    Ok(())
}
