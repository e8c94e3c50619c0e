//! Having the members keep that they are one quorum.

use super::Quorum;
use super::member::Member;
use crate::admission::{keep, look};
use crate::fault::Deed;
use crate::membership::{Entry, Kept, MemberId, Roster};
use crate::script::{Arguments, MEMBERSHIP};
use crate::url::invalid;
use futures_util::future::join_all;
use tenure_core::{Fault, Listed, Occupancy, Page, StoreError};

/// What errors are about.
const SUBJECT: &str = "recording the members";

/// Records of one page that are looked at for leases that are held.
const PAGE: u16 = 500;

/// Most pages of them: more than there is memory for.
const PAGES_MAX: usize = 100_000;

/// How often all members are asked before the first lease: another may have found meanwhile that they all
/// keep it, and lead.
const ROUNDS_MAX: usize = 2;

impl Quorum {
    /// Before the first lease of a quorum is taken: all members keep that they are one. Who only looks
    /// changes nothing of that: a list that is wrong would keep those out who name the right one.
    ///
    /// # Errors
    /// Not applied: as [`Membership::admit`](crate::membership::Membership::admit), as of two who come at the
    /// same time and name others; if one of them has never answered, for somebody else may count on that one;
    /// and if one has a lease, as of who leads by the members of before.
    pub(super) async fn record(&self) -> Result<(), StoreError> {
        if !self.membership.begin_to_record() {
            self.remind().await;
        }
        let mut held = None;
        for _round in 0..ROUNDS_MAX {
            if self.membership.is_complete() {
                return Ok(());
            }
            match self.have_recorded().await {
                Ok(()) => return Ok(()),
                Err(Hindrance::Held(error)) => held = Some(error),
                Err(Hindrance::Other(error)) => return Err(error),
            }
        }
        held.map_or(Ok(()), Err)
    }

    /// Has the members keep the list that keep none, and that all of them do.
    async fn have_recorded(&self) -> Result<(), Hindrance> {
        // Also whom this process has met: somebody else may have had it keep the members since.
        let looks = join_all((0..self.members.len()).map(|place| self.looked_at(place))).await;
        self.membership.refusal().map_or(Ok(()), Err)?;
        if self.membership.is_complete() {
            self.remind().await;
            return Ok(());
        }
        // A server that somebody leads by alone is not told of members that he does not know of.
        self.is_free().await?;
        let entries = looks.into_iter().flatten().flatten();
        let mut errors = self.have_kept(entries.collect()).await;
        errors.extend(self.have_kept(self.membership.unrecorded()).await);
        self.membership.refusal().map_or(Ok(()), Err)?;
        if !self.membership.is_complete() {
            if !self.membership.is_recorded() {
                return Err(self.lacks_members(errors.first()).into());
            }
            // From here on no term begins in one of them by another list. What had begun before is there now.
            self.is_free().await?;
        }
        Ok(self.told_complete().await?)
    }

    /// Has those keep it that keep the list, and not yet that it is complete. Whoever does not hear it is
    /// told when it is dialled, and by the next process; but one must, before anybody leads.
    async fn told_complete(&self) -> Result<(), StoreError> {
        let errors = self.have_kept(self.membership.completed()).await;
        self.membership.refusal().map_or(Ok(()), Err)?;
        match self.membership.is_complete() {
            true => Ok(()),
            false => Err(self.lacks_members(errors.first())),
        }
    }

    /// Whether a new quorum may begin, as nobody leads by the members of before.
    async fn is_free(&self) -> Result<(), Hindrance> {
        match self.held().await {
            Ok(None) => Ok(()),
            Ok(Some(held)) => Err(Hindrance::Held(StoreError::not_applied(
                Fault::Unreachable,
                format!(
                    "the quorum {} is new, or was recorded half-way, and {held}: who leads now would go on beside who leads by all of \
                     them; the first lease is taken when that is over",
                    self.place
                ),
            ))),
            Err(error) => Err(self.lacks_members(Some(&error)).into()),
        }
    }

    fn lacks_members(&self, error: Option<&StoreError>) -> StoreError {
        let why = error.map_or_else(String::new, |error| format!("; one says: {}", error.message));
        StoreError::not_applied(
            Fault::Unreachable,
            format!(
                "the quorum {} is new, or was recorded half-way, and not all its members keep who they are: no lease is taken before they \
                 do; bring the others up{why}",
                self.place
            ),
        )
    }

    /// Has members that were met before anybody had told of the quorum, that have forgotten it, or that were
    /// never told that it is complete, keep that.
    pub(super) async fn remind(&self) {
        if self.membership.is_complete() {
            let mut entries = self.meet_nameless().await;
            entries.extend(self.membership.unrecorded());
            entries.extend(self.membership.completed());
            let _errors = self.have_kept(entries).await;
        }
    }

    /// Asks those again that told nothing of themselves before others had told who the members are. What they
    /// are to keep.
    pub(super) async fn meet_nameless(&self) -> Vec<(usize, Entry)> {
        if self.membership.roster().is_none() {
            return Vec::new();
        }
        let nameless = self.membership.nameless();
        let looks = nameless.into_iter().map(|place| self.looked_at(place));
        join_all(looks).await.into_iter().flatten().flatten().collect()
    }

    /// Lets a member count by what it keeps now.
    async fn looked_at(&self, place: usize) -> Result<Option<(usize, Entry)>, StoreError> {
        let kept = self.seen(place).await.and_then(Seen::read);
        self.judged(place, kept).await
    }

    /// Lets a member count by what it keeps, or not. What it is to keep besides, if anything.
    async fn judged(
        &self,
        place: usize,
        kept: Result<Kept, StoreError>,
    ) -> Result<Option<(usize, Entry)>, StoreError> {
        let admitted = kept.and_then(|kept| self.membership.admit(place, kept));
        if admitted
            .as_ref()
            .is_err_and(|error| error.fault == Fault::Invalid)
        {
            // It is not let in when it is dialled anew.
            self.members[place].site.hang_up().await;
        }
        admitted.map(|entry| entry.map(|entry| (place, entry)))
    }

    /// Has each of these members keep this. What went wrong.
    async fn have_kept(&self, entries: Vec<(usize, Entry)>) -> Vec<StoreError> {
        let told = entries.iter().map(|(place, entry)| async move {
            let arguments = keep(&self.members[*place].site.keys, entry);
            (*place, self.kept(*place, arguments).await)
        });
        let mut errors = Vec::new();
        for (place, kept) in join_all(told).await {
            errors.extend(self.judged(place, kept).await.err());
        }
        errors
    }

    /// Records these members, whatever they kept before; where they are recorded already, only that all of
    /// them are.
    ///
    /// # Errors
    /// [`Fault::Invalid`] while one of them has a lease that is held or may be, or if one does not answer.
    /// [`Fault::Unreachable`], unknown, if one does not that has answered before.
    pub(super) async fn record_anew(&self) -> Result<(), StoreError> {
        let poll = self.meet().await?;
        if poll.answers.len() < self.members.len() {
            return Err(self.needs_all(poll.answers.len(), &poll.errors));
        }
        let looks = join_all((0..self.members.len()).map(|place| self.seen(place))).await;
        let (looks, errors): (Vec<_>, Vec<_>) = looks.into_iter().partition(Result::is_ok);
        if !errors.is_empty() {
            let errors: Vec<StoreError> = errors.into_iter().filter_map(Result::err).collect();
            return Err(self.needs_all(looks.len(), &errors));
        }
        let looks: Vec<Seen> = looks.into_iter().flatten().collect();
        let entries = match same_quorum(looks.iter().cloned()) {
            // No lease is taken by a list before one member keeps that it is complete: what is held is of
            // another one.
            Some(entries) if !entries.iter().any(|entry| entry.complete) => {
                self.is_unused().await?;
                entries
            }
            Some(entries) => entries,
            None => {
                self.is_unused().await?;
                let entries = self.entries_anew();
                self.record_all(&entries, |place| Some(&looks[place])).await?;
                // From here on no term begins in one of them by another list. What had begun just before is
                // there now.
                self.is_unused().await?;
                entries
            }
        };
        // Complete when each of them keeps it, so that no two lists are, wherever this ends. And where one
        // keeps another list by then, as of a run that came after this, it is left alone.
        let complete = entries.into_iter().map(|entry| Entry {
            complete: true,
            ..entry
        });
        self.record_all(&complete.collect::<Vec<_>>(), |_| None).await
    }

    /// With ids that nobody has yet: what comes late of an earlier run, or from who knows an earlier list, is
    /// about others.
    fn entries_anew(&self) -> Vec<Entry> {
        let hosts = self.membership.hosts().iter().cloned();
        let members: Vec<(MemberId, String)> = hosts.map(|host| (MemberId::any(), host)).collect();
        let roster = Roster::of(members.iter().cloned());
        let entry = |(id, _)| Entry {
            id,
            roster: Some(roster.clone()),
            complete: false,
        };
        members.into_iter().map(entry).collect()
    }

    /// Has each member keep its entry, instead of what was seen there, or what it keeps already as complete.
    async fn record_all<'a>(
        &self,
        entries: &[Entry],
        seen: impl Fn(usize) -> Option<&'a Seen>,
    ) -> Result<(), StoreError> {
        let told = entries
            .iter()
            .enumerate()
            .map(|(place, entry)| self.recorded(place, entry, seen(place)));
        let errors = join_all(told).await.into_iter().filter_map(Result::err);
        let errors: Vec<StoreError> = errors.collect();
        let Some(error) = errors.first() else {
            return Ok(());
        };
        let (of, why) = (self.members.len(), &error.message);
        Err(StoreError::unknown(
            Fault::Unreachable,
            format!(
                "{SUBJECT} of {}: {} of {of} keep it for certain; no new candidate is let in before all do: run this again; one says: \
                 {why}",
                self.place,
                of - errors.len()
            ),
        ))
    }

    /// Has a member keep this instead of what was seen there; or that it is complete, if it keeps this
    /// already.
    async fn recorded(&self, place: usize, entry: &Entry, seen: Option<&Seen>) -> Result<(), StoreError> {
        let arguments = keep(&self.members[place].site.keys, entry);
        let arguments = match seen {
            Some(seen) => arguments
                .with("instead")
                .with(seen.roster.as_deref().unwrap_or_default()),
            None => arguments,
        };
        match self.kept(place, arguments).await? {
            kept if kept.is(entry) => Ok(()),
            _ => Err(invalid(&format!(
                "{} was told of other members meanwhile: somebody else records them, too",
                self.members[place].host()
            ))),
        }
    }

    /// Whoever leads now would go on by the members that it knows, and these may be the fewer of them: what
    /// one of these has is enough.
    async fn is_unused(&self) -> Result<(), StoreError> {
        match self.held().await? {
            None => Ok(()),
            Some(held) => Err(invalid(&format!(
                "{SUBJECT} of {}: {held}; end all candidates, and wait for the longest ttl: who leads now would go on beside who leads \
                 by other members",
                self.place
            ))),
        }
    }

    /// A lease that one of these has, and that is held or may be.
    async fn held(&self) -> Result<Option<String>, StoreError> {
        let looks = join_all(self.members.iter().map(|member| used(member))).await;
        let (looks, errors): (Vec<_>, Vec<_>) = looks.into_iter().partition(Result::is_ok);
        if !errors.is_empty() {
            let errors: Vec<StoreError> = errors.into_iter().filter_map(Result::err).collect();
            return Err(self.needs_all(looks.len(), &errors));
        }
        Ok(looks.into_iter().flatten().flatten().next())
    }

    fn needs_all(&self, answered: usize, errors: &[StoreError]) -> StoreError {
        let of = self.members.len();
        let why = errors
            .first()
            .map_or_else(String::new, |error| format!("; one says: {}", error.message));
        invalid(&format!(
            "{SUBJECT} of {}: {answered} of {of} have answered, and all must; bring them back, and ask again{why}",
            self.place
        ))
    }

    /// What a member keeps, as it stands there.
    async fn seen(&self, place: usize) -> Result<Seen, StoreError> {
        let member = &self.members[place];
        let site = &member.site;
        let looking = site.requests.look(look(&site.keys), SUBJECT, &site.place);
        let value = member.in_time(Deed::Read, looking).await?;
        let (id, roster, complete) = redis::from_redis_value(value).map_err(|error| {
            let message = format!(
                "{SUBJECT} of {}: {} keeps no such thing: {error}",
                self.place,
                member.host()
            );
            StoreError::not_applied(Fault::Unreadable, message)
        })?;
        Ok(Seen { id, roster, complete })
    }

    /// What a member keeps, now that it was told.
    async fn kept(&self, place: usize, arguments: Arguments) -> Result<Kept, StoreError> {
        let member = &self.members[place];
        let asking = member.site.run(&MEMBERSHIP, &arguments, Deed::Write, SUBJECT);
        let mut reply = member.in_time(Deed::Write, asking).await?;
        let [id, roster, complete] = [reply.text()?, reply.text()?, reply.text()?];
        Kept::read(id.as_deref(), roster.as_deref(), complete.as_deref())
    }
}

/// Why no first lease is taken yet.
enum Hindrance {
    /// Somebody leads: by the members of before, or by these, which another has recorded meanwhile.
    Held(StoreError),
    Other(StoreError),
}

impl From<StoreError> for Hindrance {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

/// What stands in a member, whether or not it can be read.
#[derive(Clone)]
struct Seen {
    id: Option<String>,
    roster: Option<String>,
    complete: Option<String>,
}

impl Seen {
    fn read(self) -> Result<Kept, StoreError> {
        Kept::read(
            self.id.as_deref(),
            self.roster.as_deref(),
            self.complete.as_deref(),
        )
    }
}

/// What each of these keeps, if they keep that they are just these members.
fn same_quorum(seen: impl IntoIterator<Item = Seen>) -> Option<Vec<Entry>> {
    let kept = seen.into_iter().map(|seen| Entry::of(seen.read().ok()?));
    let entries: Vec<Entry> = kept.collect::<Option<_>>()?;
    Roster::is_of(&entries).then_some(entries)
}

/// A lease that this member has, and that is held or may be.
async fn used(member: &Member) -> Result<Option<String>, StoreError> {
    let mut page = Page::first("", PAGE);
    for _page in 0..PAGES_MAX {
        let found = member.in_time(Deed::Read, member.site.list(&page)).await?;
        let held = found.leases.iter().find_map(|listed| match listed {
            Listed::Lease(lease) if lease.occupancy() != Occupancy::Held => None,
            Listed::Lease(lease) => Some(format!(
                "lease \"{}\" is held by {} at {}",
                lease.name,
                lease.holder.id,
                member.host()
            )),
            Listed::Unreadable { key, error } => Some(format!(
                "lease \"{key}\" may be held at {} ({})",
                member.host(),
                error.message
            )),
        });
        if held.is_some() {
            return Ok(held);
        }
        match found.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    Ok(None)
}
