//! An etcd that runs out of space, and has some again.

use serde_json::{Value, json};

use super::etcd::Etcd;
use crate::error::Error;

/// Key and value of what fills it, in base64: the value is a megabyte.
const FILLER: &str = "ZmlsbGVy";
const LETTERS: &str = "eHh4";
const LETTERS_REPEATED: usize = 333_333;

/// Megabytes that are written at most.
const FILLERS_MAX: usize = 20;

impl Etcd {
    /// Writes until the first member raises the alarm NOSPACE: start it with a small `--quota-backend-bytes`.
    ///
    /// # Errors
    /// [`Error::System`] if it does not answer, or takes everything.
    pub fn fill(&self) -> Result<(), Error> {
        let body = json!({ "key": FILLER, "value": LETTERS.repeat(LETTERS_REPEATED) }).to_string();
        for _ in 0..FILLERS_MAX {
            if self.post(0, "/v3/kv/put", &body)?.contains("space exceeded") {
                return Ok(());
            }
        }
        Err(misunderstood("filling etcd", "it takes everything"))
    }

    /// Takes away what [`fill`](Etcd::fill) wrote, and the alarm.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn make_room(&self) -> Result<(), Error> {
        let removed = self.json("/v3/kv/deleterange", &json!({ "key": FILLER }))?;
        let revision = &removed["header"]["revision"];
        self.json(
            "/v3/kv/compaction",
            &json!({ "revision": revision, "physical": true }),
        )?;
        self.post(0, "/v3/maintenance/defragment", "{}")?;
        // The gateway of 3.4 disarms a member by its own number alone.
        let alarms = self.json("/v3/maintenance/alarm", &json!({ "action": "GET" }))?;
        let rung = alarms["alarms"].as_array().into_iter().flatten();
        for member in rung.map(|alarm| &alarm["memberID"]) {
            let disarm = json!({ "action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": member });
            self.json("/v3/maintenance/alarm", &disarm)?;
        }
        Ok(())
    }

    fn json(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let answer = self.post(0, path, &body.to_string())?;
        match serde_json::from_str::<Value>(&answer) {
            Ok(told) if told.get("error").is_none() => Ok(told),
            _ => Err(misunderstood(path, &answer)),
        }
    }
}

fn misunderstood(doing: &str, told: &str) -> Error {
    Error::system(doing.to_owned())(std::io::Error::other(told.to_owned()))
}
