//! How full the bucket is, and what it shares its room with: its account, and the servers that keep it.

use crate::connect::refused;
use crate::durability::{Kept, Syncs, servers};
use crate::swap::Kv;
use serde_json::Value;
use std::fmt;
use tenure_core::Finding;
use tenure_remote::Deed;
use tenure_remote::findings::{good, warning};

/// What is fuller than this, in percent, is told.
const FULL_PERCENT: u64 = 80;

const SUBJECT: &str = "the room of the account";

/// What is refused where the account or a server is full, by whatever stream: also what would only replace a
/// record, of one copy, too.
const SHARED_HARM: &str =
    "what is full refuses every write of its streams: nobody is granted or renews a lease, and all terms end";

/// So much is used, and so much there may be.
struct Limit {
    used: u64,
    max: u64,
    /// As `bytes of the account`.
    of: String,
    harm: &'static str,
    repair: &'static str,
}

impl Limit {
    fn is_near(&self) -> bool {
        self.used.saturating_mul(100) >= self.max.saturating_mul(FULL_PERCENT)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {} are used", self.used, self.max, self.of)
    }
}

impl Kv {
    /// Whether there is room for what will be written.
    pub(crate) async fn room(&self, info: &Value, syncs: &Syncs) -> Finding {
        let mut limits = of_the_bucket(info);
        let mut told = match limits.is_empty() {
            true => {
                let used = info["state"]["bytes"].as_u64().unwrap_or(0);
                vec![format!(
                    "{used} bytes are used, and the bucket has no limit of its own"
                )]
            }
            false => Vec::new(),
        };
        let mut unseen = Vec::new();
        match self.room_of_the_account(info).await {
            Ok(limit) => limits.extend(limit),
            Err(why) => unseen.push(why),
        }
        match of_the_servers(info, syncs) {
            Some(of_servers) => limits.extend(of_servers),
            None => unseen.push(
                "that of its servers is not looked at, as not each of them is named in monitor=".to_owned(),
            ),
        }
        if let Some(near) = limits.iter().find(|limit| limit.is_near()) {
            return warning("room", format!("{near}; {}", near.harm), near.repair);
        }
        told.extend(limits.iter().map(Limit::to_string));
        let told = told.join(", and ");
        good("room", [vec![told], unseen].concat().join("; "))
    }

    /// That of the account, if it has a limit. Why it is not looked at, otherwise.
    async fn room_of_the_account(&self, info: &Value) -> Result<Option<Limit>, String> {
        let asked = self.link.call("INFO", &Value::Null, Deed::Read, SUBJECT).await;
        let asked = asked.and_then(|told| {
            told.map_err(|refusal| refused(Deed::Read, SUBJECT, self.link.place(), &refusal))
        });
        let told = asked.map_err(|error| format!("not all of it could be looked at: {error}"))?;
        // Where the account has limits for each number of copies, they stand for themselves.
        let tier = &told["tiers"][format!("R{}", info["config"]["num_replicas"])];
        let told = if tier.is_object() { tier } else { &told };
        let (used, max) = match Kept::of(info) {
            Kept::OnDisk => (&told["storage"], &told["limits"]["max_storage"]),
            Kept::InMemory => (&told["memory"], &told["limits"]["max_memory"]),
        };
        let Some(max) = max.as_u64() else {
            return Ok(None);
        };
        Ok(Some(Limit {
            used: used.as_u64().ok_or("how full the account is was not told")?,
            max,
            of: "bytes of the account".to_owned(),
            harm: SHARED_HARM,
            repair: "give its other streams max-bytes, raise the account's limit, or give leases an account of their own",
        }))
    }
}

/// A bucket refuses what would exceed either of its limits.
fn of_the_bucket(info: &Value) -> Vec<Limit> {
    let (state, config) = (&info["state"], &info["config"]);
    // Several copies look at the room before they look at what a write would replace.
    let harm = match config["num_replicas"].as_u64() {
        Some(2..) => "a full bucket of several copies grants and renews nothing: all terms end",
        _ => "a full bucket grants nothing",
    };
    let limits = [
        ("bytes", "max_bytes", "nats stream edit KV_BUCKET --max-bytes=…"),
        ("messages", "max_msgs", "nats stream edit KV_BUCKET --max-msgs=…"),
    ];
    let limits = limits.into_iter().filter_map(|(unit, limit, repair)| {
        let max = config[limit].as_u64().filter(|max| *max > 0)?;
        Some(Limit {
            used: state[unit].as_u64().unwrap_or(0),
            max,
            of: format!("{unit} of the bucket"),
            harm,
            repair,
        })
    });
    limits.collect()
}

/// Those of the servers that keep the bucket; `None` where one of them does not tell.
fn of_the_servers(info: &Value, syncs: &Syncs) -> Option<Vec<Limit>> {
    let servers = servers(info);
    let limits = servers.iter().map(|server| {
        let [used, max] = syncs.filled(server, Kept::of(info))?;
        Some(Limit {
            used,
            max,
            of: format!("bytes of JetStream's on {server}"),
            harm: SHARED_HARM,
            repair: "give other streams max-bytes, or raise the server's max_file_store (in memory: max_memory_store)",
        })
    });
    let limits: Option<Vec<Limit>> = limits.collect();
    limits.filter(|limits| !limits.is_empty())
}
