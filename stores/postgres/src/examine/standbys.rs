use super::{unknown, warning};
use crate::fault::Deed;
use crate::site::Site;
use tenure_core::{Durability, Finding};

/// Slots by which something is to follow the server that does not do so now, where no standby is synchronous;
/// everybody may read them.
const AWAY: &str = "SELECT string_agg(quote_ident(slot_name), ', ' ORDER BY slot_name) FROM pg_replication_slots \
     WHERE slot_type = 'physical' AND NOT active AND current_setting('synchronous_standby_names') = ''";

impl Site {
    /// What may be a standby that is away, and was not there to be judged when the store connected.
    pub(super) async fn examine_standbys(&self) -> Option<Finding> {
        const SUBJECT: &str = "standbys";
        if self.durability != Durability::Safe {
            return None;
        }
        let rows = match self.ask(Deed::Read, "its standbys", AWAY, &[]).await {
            Ok(rows) => rows,
            Err(error) => return Some(unknown(SUBJECT, &error)),
        };
        let slots = rows.first()?.try_get::<_, Option<String>>(0).ok()??;
        Some(warning(
            SUBJECT,
            format!(
                "nothing follows now by the replication slots {slots}: a standby that comes back there is asynchronous, and a fail-over \
                 to it can take acknowledged leases back, so that two lead"
            ),
            "name it in synchronous_standby_names, or drop the slot (pg_drop_replication_slot) if no standby will come back",
        ))
    }
}
