use crate::fault::Deed;
use crate::record::{decode, is_confirmed, shown};
use crate::script::{Arguments, LIST};
use crate::site::Site;
use tenure_core::{LeaseName, LeasePage, Listed, Page, StoreError};

/// Most names that one page looks at: those that were purged have no record, and are passed over.
const LOOKS_MAX: usize = 10_000;

/// How often one page goes on behind what is no name: the leases behind more of that are not listed.
const READINGS_MAX: usize = 100;

/// What one step of the server shows, and the last name that it looked at.
type LookedAt = (Vec<(Vec<u8>, (Listed, bool))>, Option<Vec<u8>>);

/// A page as one server has it.
pub(crate) struct Found {
    /// Each with whether it is a term.
    pub(crate) listed: Vec<(Listed, bool)>,
    pub(crate) next: Option<LeaseName>,
}

impl Site {
    /// Reads a page, in one step of the server; in more where what stands in the index is no name.
    pub(crate) async fn list(&self, page: &Page) -> Result<LeasePage, StoreError> {
        let found = self.page(page).await?;
        Ok(LeasePage {
            leases: found
                .listed
                .into_iter()
                .map(|(listed, _confirmed)| listed)
                .collect(),
            next: found.next,
        })
    }

    /// The same, and whether each is a term.
    ///
    /// A page can only begin after a name, so it ends with one: what is none, and comes after that, stands in the next page.
    /// Where nothing else is there, as much of it is shown as leaves room for the name that follows.
    pub(crate) async fn page(&self, page: &Page) -> Result<Found, StoreError> {
        page.check()?;
        let limit = usize::from(page.limit);
        let mut least = least(page);
        let mut listed = Vec::new();
        for _reading in 0..READINGS_MAX {
            let (mut read, last) = self.looked_at(&least, page).await?;
            let next = last.as_deref().and_then(name_of);
            let is_whole = listed.is_empty() && next.is_some();
            if is_whole || last.is_none() && listed.len() + read.len() <= limit {
                listed.extend(read.into_iter().map(|(_, one)| one));
                return Ok(Found { listed, next });
            }
            let is_named = |(name, _): &(Vec<u8>, _)| name_of(name).is_some();
            let place = match listed.is_empty() {
                true => read.iter().rposition(is_named),
                false => read.iter().position(is_named),
            };
            read.truncate(place.map_or(read.len(), |place| place + 1));
            let end = read.pop_if(|_| place.is_some());
            listed.extend(read.into_iter().map(|(_, one)| one));
            if let Some((name, one)) = end {
                listed.truncate(limit - 1);
                listed.push(one);
                let next = name_of(&name);
                return Ok(Found { listed, next });
            }
            listed.truncate(limit);
            match (next, last) {
                (None, Some(last)) => least = [b"(", last.as_slice()].concat(),
                (next, _) => return Ok(Found { listed, next }),
            }
        }
        Ok(Found { listed, next: None })
    }

    /// What one step of the server shows from there on, each with the bytes of its name; and the last name that it looked at, if
    /// there are more.
    async fn looked_at(&self, least: &[u8], page: &Page) -> Result<LookedAt, StoreError> {
        let mut arguments = Arguments::on([self.keys.index()]);
        arguments.values.push_bytes(least);
        arguments.values.push_bytes(&bound(page));
        let arguments = arguments
            .with(page.limit)
            .with(self.keys.records())
            .with(LOOKS_MAX);
        let mut reply = self
            .run(&LIST, &arguments, Deed::Read, "the list of leases")
            .await?;
        let (now_ms, last, mut found) = (reply.number()?, reply.bytes_if_any()?, reply.array()?);
        let mut listed = Vec::new();
        while !found.is_empty() {
            let (name, fields) = (found.bytes()?, found.fields()?);
            let confirmed = is_confirmed(fields.as_ref());
            let one = (self.listed(&name, fields.as_ref(), now_ms), confirmed);
            listed.push((name, one));
        }
        Ok((listed, last))
    }

    fn listed(&self, name: &[u8], fields: Option<&crate::reply::Fields>, now_ms: u64) -> Listed {
        let text = String::from_utf8_lossy(name);
        let key = format!("{}{text}", self.keys.records());
        match decode(&key, &text, fields, now_ms) {
            Ok(lease) => Listed::Lease(lease),
            Err(error) => Listed::Unreadable {
                key: shown(name),
                error,
            },
        }
    }
}

fn name_of(bytes: &[u8]) -> Option<LeaseName> {
    LeaseName::new(std::str::from_utf8(bytes).ok()?).ok()
}

/// Where the page begins, with the bracket that says whether the name itself belongs to it.
fn least(page: &Page) -> Vec<u8> {
    match &page.after {
        Some(after) if after.as_str() >= page.prefix.as_str() => format!("({after}").into_bytes(),
        _ => format!("[{}", page.prefix).into_bytes(),
    }
}

/// Above every name with the prefix, and below every other that is greater: no UTF-8 has this byte.
fn bound(page: &Page) -> Vec<u8> {
    let mut bound = format!("({}", page.prefix).into_bytes();
    bound.push(0xff);
    bound
}
