//! Having the members keep that they are one quorum.

use super::Quorum;
use super::member::Member;
use crate::admission::keep;
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

impl Quorum {
    /// Before the first lease of a quorum is taken: all members keep that they are one.
    ///
    /// # Errors
    /// Not applied: as [`Membership::admit`](crate::membership::Membership::admit), as of two who come at the same time and name
    /// others; and if one of them has never answered, for somebody else may count on that one.
    pub(super) async fn record(&self) -> Result<(), StoreError> {
        if self.membership.is_complete() {
            return Ok(());
        }
        let meet = async |place: usize| {
            let member = &self.members[place];
            member
                .in_time(Deed::Read, member.site.requests.open())
                .await
                .map(drop)
        };
        let met = join_all(self.membership.unmet().into_iter().map(meet)).await;
        let mut errors: Vec<StoreError> = met.into_iter().filter_map(Result::err).collect();
        errors.extend(self.have_kept(self.membership.unrecorded()).await);
        if let Some(refusal) = self.membership.refusal() {
            return Err(refusal);
        }
        if !self.membership.is_complete() {
            let why = errors
                .first()
                .map_or_else(String::new, |error| format!("; one says: {}", error.message));
            return Err(StoreError::not_applied(
                Fault::Unreachable,
                format!(
                    "the quorum {} is new, and takes its first lease when all its members have answered: bring the others up{why}",
                    self.place
                ),
            ));
        }
        // Told for those who find fewer of them. Whoever does not hear it is told by the next process.
        let _errors = self.have_kept(self.membership.completed()).await;
        Ok(())
    }

    /// Has members that were met before anybody had told of the quorum, and that have forgotten it, keep it again.
    pub(super) async fn remind(&self) {
        if self.membership.is_complete() {
            let _errors = self.have_kept(self.membership.unrecorded()).await;
        }
    }

    /// Has each of these members keep this. What went wrong.
    async fn have_kept(&self, entries: Vec<(usize, Entry)>) -> Vec<StoreError> {
        let told = entries.iter().map(|(place, entry)| async move {
            let arguments = keep(&self.members[*place].site.keys, entry);
            (*place, self.kept(*place, arguments).await)
        });
        let mut errors = Vec::new();
        for (place, kept) in join_all(told).await {
            let admitted = kept.and_then(|kept| self.membership.admit(place, kept));
            if let Err(error) = admitted {
                if error.fault == Fault::Invalid {
                    // It is not let in when it is dialled anew.
                    self.members[place].site.hang_up().await;
                }
                errors.push(error);
            }
        }
        errors
    }

    /// Records these members, whatever they kept before.
    ///
    /// # Errors
    /// [`Fault::Invalid`] while one of them has a lease that is held or may be, or if one does not answer.
    pub(super) async fn record_anew(&self) -> Result<(), StoreError> {
        let poll = self.meet().await?;
        if poll.answers.len() < self.members.len() {
            return Err(self.needs_all(poll.answers.len(), &poll.errors));
        }
        self.is_unused().await?;
        let hosts = self.membership.hosts().iter().cloned();
        let members: Vec<(MemberId, String)> = hosts.map(|host| (MemberId::any(), host)).collect();
        let roster = Roster::of(members.iter().cloned());
        // Complete when each of them keeps it, so that no two lists are, wherever this ends. And where one keeps another list by then,
        // as of a run that came after this, it is left alone.
        for complete in [false, true] {
            let told = members.iter().enumerate().map(|(place, (id, _))| {
                let entry = Entry {
                    id: id.clone(),
                    roster: Some(roster.clone()),
                    complete,
                };
                self.recorded(place, entry)
            });
            let errors = join_all(told).await.into_iter().filter_map(Result::err);
            let errors: Vec<StoreError> = errors.collect();
            if !errors.is_empty() {
                return Err(self.needs_all(self.members.len() - errors.len(), &errors));
            }
        }
        Ok(())
    }

    /// Has a member keep this, whatever it kept before; or that it is complete, if it keeps this already.
    async fn recorded(&self, place: usize, entry: Entry) -> Result<(), StoreError> {
        let arguments = keep(&self.members[place].site.keys, &entry);
        let arguments = match entry.complete {
            false => arguments.with("anew"),
            true => arguments,
        };
        match self.kept(place, arguments).await? {
            kept if kept.is(&entry) => Ok(()),
            _ => Err(invalid(&format!(
                "{} was told of other members meanwhile: somebody else records them, too",
                self.members[place].host()
            ))),
        }
    }

    /// Whoever leads now would go on by the members that it knows, and these may be the fewer of them: what one of these has is enough.
    async fn is_unused(&self) -> Result<(), StoreError> {
        let looks = join_all(self.members.iter().map(|member| used(member))).await;
        let (looks, errors): (Vec<_>, Vec<_>) = looks.into_iter().partition(Result::is_ok);
        if !errors.is_empty() {
            let errors: Vec<StoreError> = errors.into_iter().filter_map(Result::err).collect();
            return Err(self.needs_all(looks.len(), &errors));
        }
        match looks.into_iter().flatten().flatten().next() {
            None => Ok(()),
            Some(held) => Err(invalid(&format!(
                "{SUBJECT} of {}: {held}; end all candidates, and wait for the longest ttl: who leads now would go on beside who leads \
                 by other members",
                self.place
            ))),
        }
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

    /// What a member keeps, now that it was told.
    async fn kept(&self, place: usize, arguments: Arguments) -> Result<Kept, StoreError> {
        let member = &self.members[place];
        let asking = member.site.run(&MEMBERSHIP, &arguments, Deed::Write, SUBJECT);
        let mut reply = member.in_time(Deed::Write, asking).await?;
        let [id, roster, complete] = [reply.text()?, reply.text()?, reply.text()?];
        Kept::read(id.as_deref(), roster.as_deref(), complete.as_deref())
    }
}

/// A lease that this member has, and that is held or may be.
async fn used(member: &Member) -> Result<Option<String>, StoreError> {
    let mut page = Page {
        prefix: String::new(),
        after: None,
        limit: PAGE,
    };
    for _page in 0..PAGES_MAX {
        let found = member.in_time(Deed::Read, member.site.list(&page)).await?;
        let held = found.leases.iter().find_map(|listed| match listed {
            Listed::Lease(lease) if lease.occupancy() != Occupancy::Held => None,
            Listed::Lease(lease) => Some(format!("lease \"{}\" is held", lease.name)),
            Listed::Unreadable { key, error } => {
                Some(format!("lease \"{key}\" may be held ({})", error.message))
            }
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
