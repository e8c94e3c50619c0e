use crate::fault::Deed;
use crate::read::Sighting;
use crate::record::shown;
use crate::script::{Arguments, LIST};
use crate::site::Site;
use tenure_core::{Cursor, LeasePage, Listed, Page, StoreError};

/// Most names that one page looks at: those that were purged have no record, and are passed over.
const LOOKS_MAX: usize = 10_000;

/// A page as one server has it.
pub(crate) struct Found {
    /// What stands in the index, in its order.
    pub(crate) seen: Vec<Seen>,
    pub(crate) next: Option<Cursor>,
}

/// What stands in the index, and what its record is.
pub(crate) struct Seen {
    pub(crate) at: Cursor,
    pub(crate) record: Result<Sighting, StoreError>,
}

/// What is listed where nothing can be told of a record.
pub(crate) fn unreadable(at: &Cursor, error: StoreError) -> Listed {
    Listed::Unreadable {
        key: shown(at.as_bytes()),
        error,
    }
}

impl Site {
    /// Reads a page, in one step of the server.
    pub(crate) async fn list(&self, page: &Page) -> Result<LeasePage, StoreError> {
        let Found { seen, next } = self.page(page).await?;
        let listed = |seen: Seen| match seen.record {
            Ok(sighting) => Listed::Lease(sighting.lease),
            Err(error) => unreadable(&seen.at, error),
        };
        let leases = seen.into_iter().map(listed).collect();
        Ok(LeasePage { leases, next })
    }

    /// The same, with what a quorum is to know of it.
    pub(crate) async fn page(&self, page: &Page) -> Result<Found, StoreError> {
        page.check()?;
        let mut arguments = Arguments::on([self.keys.index()]);
        arguments.values.push_bytes(&least(page));
        arguments.values.push_bytes(&bound(page));
        let arguments = arguments
            .with(page.limit)
            .with(self.keys.records())
            .with(LOOKS_MAX);
        let mut reply = self
            .run(&LIST, &arguments, Deed::Read, "the list of leases")
            .await?;
        let (now_ms, last, mut found) = (reply.number()?, reply.bytes_if_any()?, reply.array()?);
        let mut seen = Vec::new();
        while !found.is_empty() {
            let (name, fields) = (found.bytes()?, found.fields()?);
            let text = String::from_utf8_lossy(&name);
            let key = format!("{}{text}", self.keys.records());
            seen.push(Seen {
                record: Sighting::read(&key, &text, fields.as_ref(), now_ms),
                at: Cursor::behind(name),
            });
        }
        let next = last.map(Cursor::behind);
        Ok(Found { seen, next })
    }
}

/// Where the page begins, with the bracket that says whether the name itself belongs to it.
fn least(page: &Page) -> Vec<u8> {
    match &page.after {
        Some(after) if after.as_bytes() >= page.prefix.as_bytes() => [b"(", after.as_bytes()].concat(),
        _ => format!("[{}", page.prefix).into_bytes(),
    }
}

/// Above every name with the prefix, and below every other that is greater: no UTF-8 has this byte.
fn bound(page: &Page) -> Vec<u8> {
    let mut bound = format!("({}", page.prefix).into_bytes();
    bound.push(0xff);
    bound
}
