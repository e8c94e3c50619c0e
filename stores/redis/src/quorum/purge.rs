//! Removing the records that nobody uses, a page at a time.
//!
//! First all members say what each has of the page's names: a name is unused where nobody who answers says
//! otherwise, and a majority answers. Whatever term still lasts has a member among those. Then each removes
//! its own, if it still judges so in the step that removes it.
//!
//! A member forgets no token by it: it keeps the highest that it has removed, and confirms nothing at or
//! below it for a name that it does not know. The clock alone would not do, as in one server, since a token
//! is chosen in one request and confirmed by another, which may come at any time later.

use super::member::Progress;
use super::{Effect, Quorum};
use crate::fault::Deed;
use crate::reply::misunderstood;
use crate::script::{Arguments, PURGE_MEMBER};
use crate::site::Site;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tenure_core::{Cursor, Fault, LeaseName, Purge, Purged, Purging, StoreError};

/// What errors are about.
const SUBJECT: &str = "the clean-up of leases";

/// What one member says of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// Its record is one that nobody uses; where it was to be removed, it was.
    Unused,
    Used,
    /// It has no record.
    None,
}

/// What members say of the names of a page, in their order, by their places.
type Told = BTreeMap<usize, Vec<Use>>;

/// Names, and who told them.
struct Names {
    names: Arc<[LeaseName]>,
    members: Vec<usize>,
    next: Option<Cursor>,
}

impl Quorum {
    /// Reads a page of names, and removes what nobody uses of it.
    pub(super) async fn purge(&self, request: &Purge) -> Result<Purged, StoreError> {
        let page = self.names(request).await?;
        let mut purged = Purged {
            unused: Vec::new(),
            removed: 0,
            next: page.next,
        };
        if page.names.is_empty() {
            return Ok(purged);
        }
        let told = self
            .judge(&page.members, &page.names, request, Purging::OnlyLooks)
            .await?;
        let places: Vec<usize> = (0..page.names.len())
            .filter(|place| is_unused(&told, *place))
            .collect();
        purged.unused = places.iter().map(|place| page.names[*place].clone()).collect();
        if places.is_empty() || request.purging == Purging::OnlyLooks {
            return Ok(purged);
        }
        let members: Vec<usize> = told.keys().copied().collect();
        let unused = purged.unused.clone().into();
        let removed = self.judge(&members, &unused, request, Purging::Removes).await?;
        // Who had it and is not heard now may have it still: a later clean-up finds it.
        let is_gone = |(number, place): &(usize, &usize)| {
            let had = told.iter().filter(|(_, uses)| uses[**place] == Use::Unused);
            is_unused(&removed, *number)
                && had
                    .map(|(member, _)| member)
                    .all(|member| removed.contains_key(member))
        };
        let gone = places.iter().enumerate().filter(is_gone).count();
        purged.removed = u64::try_from(gone).unwrap_or(u64::MAX);
        Ok(purged)
    }

    /// The names of a page that every answering member has reached. All are waited for: what one has that is
    /// not heard stays.
    async fn names(&self, request: &Purge) -> Result<Names, StoreError> {
        let page = request.page();
        let read = |site: Arc<Site>| {
            let page = page.clone();
            async move { site.page(&page).await }
        };
        let poll = self
            .ask(0..self.members.len(), Deed::Read, read, |_, _| Progress::Open)
            .await;
        if poll.answers.len() < self.majority() {
            return Err(self.undecided(SUBJECT, poll.answers.len(), &poll.errors, Effect::Nothing));
        }
        let members = poll.answers.iter().map(|(place, _)| *place).collect();
        let ends = poll.answers.iter().filter_map(|(_, found)| found.next.clone());
        let mut next = ends.min();
        let seen = poll.answers.into_iter().flat_map(|(_, found)| found.seen);
        let understood = seen.filter_map(|seen| Some(seen.record.ok()?.lease.name));
        let is_reached = |name: &LeaseName| next.as_ref().is_none_or(|next| Cursor::from(name) <= *next);
        let mut names: Vec<LeaseName> = understood
            .filter(is_reached)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        if names.len() > usize::from(request.limit) {
            names.truncate(usize::from(request.limit));
            next = names.last().map(Cursor::from);
        }
        Ok(Names {
            names: names.into(),
            members,
            next,
        })
    }

    /// Asks these members, of whom a majority must answer.
    async fn judge(
        &self,
        members: &[usize],
        names: &Arc<[LeaseName]>,
        request: &Purge,
        purging: Purging,
    ) -> Result<Told, StoreError> {
        let (deed, unused_for_ms) = (deed_of(purging), request.unused_for_ms());
        let ask = |site: Arc<Site>| {
            let names = Arc::clone(names);
            async move { judge(&site, &names, unused_for_ms, purging).await }
        };
        let poll = self
            .ask(members.iter().copied(), deed, ask, |_, _| Progress::Open)
            .await;
        let effect = match purging {
            Purging::Removes => Effect::of(poll.answers.len()),
            Purging::OnlyLooks => Effect::Nothing,
        };
        // Who may not remove anything in one member never will: that is for a person to mend.
        if let Some(error) = poll.errors.iter().find(|error| error.fault == Fault::Forbidden) {
            return Err(effect.told_in(error.clone()));
        }
        if poll.answers.len() < self.majority() {
            return Err(self.undecided(SUBJECT, poll.answers.len(), &poll.errors, effect));
        }
        Ok(poll.answers.into_iter().collect())
    }
}

/// Whether nobody uses the name at this place, for all that members tell.
fn is_unused(told: &Told, place: usize) -> bool {
    let mut uses = told.values().map(|uses| uses[place]);
    uses.clone().all(|told| told != Use::Used) && uses.any(|told| told == Use::Unused)
}

fn deed_of(purging: Purging) -> Deed {
    match purging {
        Purging::Removes => Deed::Write,
        Purging::OnlyLooks => Deed::Read,
    }
}

/// Asks one member what it has of these names, in one step of the server; and has it remove what nobody uses.
async fn judge(
    site: &Site,
    names: &[LeaseName],
    unused_for_ms: i64,
    purging: Purging,
) -> Result<Vec<Use>, StoreError> {
    let records = names.iter().map(|name| site.keys.record(name));
    let removes = match purging {
        Purging::Removes => 1,
        Purging::OnlyLooks => 0,
    };
    let mut arguments = Arguments::on(
        [site.keys.index(), site.keys.removed()]
            .into_iter()
            .chain(records),
    )
    .with(removes)
    .with(unused_for_ms);
    names.iter().for_each(|name| arguments.push(name));
    let mut reply = site
        .run(&PURGE_MEMBER, &arguments, deed_of(purging), SUBJECT)
        .await?;
    let mut told = Vec::with_capacity(names.len());
    for _name in names {
        told.push(match reply.word()?.as_str() {
            "unused" => Use::Unused,
            "used" => Use::Used,
            "none" => Use::None,
            _ => return Err(misunderstood()),
        });
    }
    Ok(told)
}
