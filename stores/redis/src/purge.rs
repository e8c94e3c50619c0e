//! Removing the records that nobody uses, a page at a time.

use crate::fault::Deed;
use crate::script::{Arguments, PURGE};
use crate::site::Site;
use tenure_core::{Purge, Purged, Purging, StoreError};

/// What errors are about.
const SUBJECT: &str = "the clean-up of leases";

impl Site {
    /// Reads a page, and removes what nobody uses of it, in one step of the server.
    pub(crate) async fn purge(&self, request: &Purge) -> Result<Purged, StoreError> {
        if request.purging == Purging::Removes {
            self.is_alone_in_time().await?;
        }
        let page = self.page(&request.page()).await?;
        let understood = page
            .seen
            .into_iter()
            .filter_map(|seen| Some(seen.record.ok()?.lease.name));
        let names: Vec<_> = understood.collect();
        let (removes, deed) = match request.purging {
            Purging::Removes => (1, Deed::Write),
            Purging::OnlyLooks => (0, Deed::Read),
        };
        let keys = names.iter().map(|name| self.keys.record(name));
        let mut arguments = Arguments::on([self.keys.index()].into_iter().chain(keys))
            .with(removes)
            .with(request.unused_for_ms());
        names.iter().for_each(|name| arguments.push(name));
        let mut reply = self.run(&PURGE, &arguments, deed, SUBJECT).await?;
        let mut unused = Vec::new();
        for name in names {
            if reply.number()? == 1 {
                unused.push(name);
            }
        }
        Ok(Purged {
            removed: match request.purging {
                Purging::Removes => u64::try_from(unused.len()).unwrap_or(u64::MAX),
                Purging::OnlyLooks => 0,
            },
            unused,
            next: page.next,
        })
    }
}
