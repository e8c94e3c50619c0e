//! Whether the servers of the URL have one bucket between them.

use crate::connect::CONNECTION_TIME_MAX;
use crate::dialled::Dialled;
use crate::fault::{Refusal, STREAM_NOT_FOUND};
use crate::keys::Keys;
use crate::link::Link;
use crate::one_bucket::{LOOK_TIME_MAX, created};
use futures_util::future::join_all;
use serde_json::Value;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::Deed;

impl Link {
    /// Refuses a URL whose servers have a bucket each: whoever comes while the first is down would lead
    /// beside who came before.
    ///
    /// # Errors
    /// [`Fault::Invalid`], not applied.
    pub(crate) async fn refuse_divided(&self, keys: &Keys, info: &Value) -> Result<(), StoreError> {
        let Some(why) = self.divided(keys, info).await else {
            return Ok(());
        };
        let why = format!("{why}; name the servers of one cluster");
        Err(Deed::Read.error(
            Fault::Invalid,
            Certainty::NotApplied,
            "the URL's servers",
            self.place(),
            why,
        ))
    }

    /// Which servers of the URL have not the bucket that `info` tells of, where some have not.
    pub(crate) async fn divided(&self, keys: &Keys, info: &Value) -> Option<String> {
        let servers = self.servers();
        if !servers.are_several() {
            return None;
        }
        let open = self.open().await.ok()?;
        let ours = &open.connection;
        let others = (0..servers.count()).filter(|place| *place != ours.server);
        let looks = others.map(|place| async move {
            let other = servers.connect_to(place, CONNECTION_TIME_MAX).await.ok()?;
            let has_ours = has_the_same(ours, &other, keys, info).await?;
            (!has_ours).then(|| servers.host(place))
        });
        let strange: Vec<String> = join_all(looks).await.into_iter().flatten().collect();
        (!strange.is_empty()).then(|| {
            format!(
                "{} of other clusters than {}: each would have a leader of its own",
                match strange.as_slice() {
                    [one] => format!("{one} is"),
                    several => format!("{} are", several.join(", ")),
                },
                servers.host(ours.server)
            )
        })
    }
}

/// Whether this server has the very bucket: one that was made at the same moment, and is no copy. `None` if
/// it does not tell.
async fn has_the_same(ours: &Dialled, other: &Dialled, keys: &Keys, info: &Value) -> Option<bool> {
    let asked = other
        .client
        .request(format!("$JS.API.STREAM.INFO.{}", keys.stream()), "".into());
    // Who tells nothing is not looked at.
    let told = tokio::time::timeout(LOOK_TIME_MAX, asked).await.ok()?.ok()?;
    let told: Value = serde_json::from_slice(&told.payload).ok()?;
    match Refusal::of(&told) {
        None => {
            let is_the_same = created(&told)? == created(info)?;
            let are_two = leads_alone(ours, info) && leads_alone(other, &told) && !is_the_server(ours, other);
            Some(is_the_same && !are_two)
        }
        // A server of the same cluster may not have heard of it yet.
        Some(refusal) if refusal.number == STREAM_NOT_FOUND => {
            (!are_of_one_cluster(ours, other)).then_some(false)
        }
        Some(_) => None,
    }
}

/// Whether the bucket that this tells of is led by this very server, which is of no cluster: so nobody else
/// has it, and whoever has one like it has a copy.
fn leads_alone(server: &Dialled, told: &Value) -> bool {
    let name = server.client.server_info().server_name;
    !server.is_clustered() && told["cluster"]["leader"] == name.as_str()
}

/// Whether two servers tell so. Two that are of none may have one name, and tell that.
fn are_of_one_cluster(one: &Dialled, other: &Dialled) -> bool {
    let told = |of: &Dialled| of.client.server_info().cluster;
    told(one) == told(other) && (one.is_clustered() || other.is_clustered())
}

/// Whether two connections lead to one server. It has its number for as long as it runs.
fn is_the_server(one: &Dialled, other: &Dialled) -> bool {
    one.client.server_info().server_id == other.client.server_info().server_id
}
