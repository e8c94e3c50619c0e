//! Raising marks.

use super::mark::{self, Found};
use super::{MongoFence, OPEN_TRANSACTION, REQUEST_TIME_MAX, stripes, subject};
use crate::fault::{Deed, after_a_step, is_duplicate_key, reported};
use crate::site::write_concern;
use mongodb::bson::{Bson, Document, bson, doc};
use mongodb::options::ReturnDocument;
use tenure_core::{
    Bump, Certainty, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, Mark, ResourceName,
    Ruling, StoreError, Term, bump_clock_ms, bumped, check_owner, decide_claim, horizon,
};

/// How often one claim sends its upsert; see the acquisition of a lease.
const UPSERTS_MAX: u32 = 2;

/// How often one bump looks and raises. It looks again where the mark, or a stripe, was above what it was to
/// be raised to.
const LIFTS_MAX: u32 = 8;

/// What came of one look and raise of a bump.
enum Lifted {
    To(Mark),
    /// This is higher than what it was to be raised to.
    Overtaken(FencingToken),
}

/// What is known of the tokens that may exist.
enum Known {
    Granted(FencingToken),
    ClockMs(u64),
}

impl MongoFence {
    /// Claims: raises first the mark, then every stripe, and then opens the stripes. Each step only goes
    /// forward, so one that was cut short is repeated by the next claim of the term.
    pub(super) async fn raise(&self, resource: &ResourceName, term: &Term) -> Result<Claimed, FenceError> {
        let known = async {
            match self.granted(resource, &term.lease).await? {
                Some(highest) => Ok::<_, FenceError>(Known::Granted(highest)),
                None => Ok(Known::ClockMs(self.clock_ms(resource).await?)),
            }
        };
        // Side by side: neither needs the other, and each is a round trip.
        let (found, known) = tokio::join!(self.look(resource), known);
        let found = found?;
        let mark = found.as_ref().map(|found| found.token);
        let limit = match known? {
            Known::Granted(highest) => Horizon::Granted(highest),
            Known::ClockMs(clock_ms) => Horizon::Clock(horizon(clock_ms, mark)),
        };
        let rule = |found: Option<&Found>| {
            check_owner(resource, term, found.and_then(|found| found.lease.as_ref()))?;
            let claimant = found.and_then(Found::claimant);
            decide_claim(resource, term, claimant, found.map(|found| found.token), limit)
        };
        let ruled = rule(found.as_ref()).or_else(|error| self.refuse(found.as_ref(), error));
        let claimed = match ruled? {
            Ruling::Holds => Claimed::Already,
            Ruling::Raise => {
                // The server decides again: somebody may have claimed since.
                let before = self.upsert(resource, claimed(&term.lease, term.token)).await?;
                match rule(before.as_ref()).or_else(|error| self.refuse(before.as_ref(), error))? {
                    Ruling::Holds => Claimed::Already,
                    Ruling::Raise => Claimed::Raised {
                        from: before.map(|before| before.token),
                    },
                }
            }
        };
        let opened = async {
            self.raise_stripes(resource, term.token).await?;
            self.open_stripes(resource, term).await
        };
        match opened.await.map_err(after_the_mark)? {
            None => Ok(claimed),
            Some(later) => {
                let overtaken = FenceError::Stale {
                    resource: resource.clone(),
                    token: term.token,
                    mark: later,
                };
                // There is a mark by now, this term's own at least.
                self.noter.count_here(&overtaken);
                Err(overtaken)
            }
        }
    }

    /// Bumps the mark and every stripe.
    pub(super) async fn lift(&self, bump: &Bump) -> Result<Mark, FenceError> {
        let mut bump = bump.clone();
        for look in 0..LIFTS_MAX {
            let lifted = self.try_lift(&bump).await;
            let lifted = match look {
                0 => lifted,
                _again => lifted.map_err(after_the_mark),
            };
            match lifted? {
                Lifted::To(mark) => return Ok(mark),
                Lifted::Overtaken(later) => bump.above = bump.above.max(Some(later)),
            }
        }
        Err(self.restless(&bump.resource))
    }

    async fn try_lift(&self, bump: &Bump) -> Result<Lifted, FenceError> {
        let resource = &bump.resource;
        let found = self.look(resource).await?;
        let owner = found.as_ref().and_then(|found| found.lease.clone());
        let lease = bump.lease.clone().or(owner);
        let granted = match &lease {
            Some(lease) => self.granted(resource, lease).await?,
            None => None,
        };
        let mark = found.as_ref().map(|found| found.token);
        let above = bump.above.max(granted);
        let clock_ms = bump_clock_ms(mark.max(above), self.clock_ms(resource).await?);
        let token = bumped(mark, above, clock_ms);
        let token = token.ok_or_else(|| {
            StoreError::not_applied(
                Fault::Invalid,
                format!("{}: no token is left above the mark", subject(resource)),
            )
        })?;
        if let Some(lease) = &bump.lease {
            self.rebind(resource, lease).await?;
        }
        let raised = self.upsert(resource, lifted(lease.as_ref(), token)).await;
        let before = match &bump.lease {
            Some(_rebound) => raised.map_err(after_the_mark)?,
            None => raised?,
        };
        // Another bump has given it to another lease meanwhile, so that the mark was left as it is: stripes
        // above it would refuse the terms that it admits.
        let owner = before.as_ref().and_then(|before| before.lease.as_ref());
        if owner.is_some() && owner != lease.as_ref() {
            return Err(self.restless(resource));
        }
        if let Some(before) = before.filter(|before| before.token >= token) {
            // Claimed since it was looked at, so it was left as it is: that term may be from before this
            // bump.
            return Ok(Lifted::Overtaken(before.token));
        }
        let lifted = async {
            // Closed: nobody enters by them until somebody has claimed.
            self.raise_stripes(resource, token).await?;
            let later = self.above(resource, token).await?;
            let mark = self.shown(resource).await?;
            let mark = mark.ok_or_else(|| self.restless(resource))?;
            Ok(match later {
                // Stripes that are above the mark were left behind by one that was removed: they would refuse
                // whom it admits.
                Some(later) if later > mark.token => Lifted::Overtaken(later),
                // A later term has claimed since it was bumped.
                Some(_) | None => Lifted::To(mark),
            })
        };
        lifted.await.map_err(after_the_mark)
    }

    /// Raises the mark, or makes it; answers with the mark before.
    async fn upsert(
        &self,
        resource: &ResourceName,
        raised: Vec<Document>,
    ) -> Result<Option<Found>, FenceError> {
        for _upsert in 0..UPSERTS_MAX {
            let claim = self
                .marks
                .find_one_and_update(mark::filter(resource), raised.clone())
                .upsert(true)
                .return_document(ReturnDocument::Before)
                .max_time(REQUEST_TIME_MAX);
            let claim = async {
                match claim.await {
                    Err(error) if is_duplicate_key(&error) => Ok(None),
                    answer => answer.map(Some),
                }
            };
            if let Some(before) = self.within(Deed::Write, &subject(resource), claim).await? {
                let before = before.map(|before| Found::read(&before, &self.namespace));
                return Ok(before.transpose()?);
            }
        }
        // A document that is no mark, or one that came and went; the former is an error.
        self.look(resource).await?;
        Err(self.restless(resource))
    }

    async fn rebind(&self, resource: &ResourceName, lease: &LeaseName) -> Result<(), FenceError> {
        let bound = doc! { "$set": { "lease": lease.as_str() } };
        let bind = self.marks.update_one(mark::filter(resource), bound);
        self.within(Deed::Write, &subject(resource), bind.into_future())
            .await?;
        Ok(())
    }

    /// Raises every stripe that is lower, closed, waiting for the transactions that have entered by one.
    async fn raise_stripes(&self, resource: &ResourceName, token: FencingToken) -> Result<(), FenceError> {
        self.write_stripes(resource, stripes::raise(resource, token))
            .await
            .map(drop)
    }

    /// Opens every stripe for `term`, when all were raised; answers with the highest token where one is above
    /// the term's.
    async fn open_stripes(
        &self,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<Option<FencingToken>, FenceError> {
        let answer = self
            .write_stripes(resource, vec![stripes::open(resource, term)])
            .await?;
        if answer.get_i32("n").ok() == Some(stripes::STRIPES) {
            return Ok(None);
        }
        match self.above(resource, term.token).await? {
            Some(later) => Ok(Some(later)),
            None => Err(self.restless(resource)),
        }
    }

    async fn write_stripes(
        &self,
        resource: &ResourceName,
        statements: Vec<Document>,
    ) -> Result<Document, FenceError> {
        let name = subject(resource);
        let concern = write_concern(REQUEST_TIME_MAX);
        let update = doc! {
            "update": self.marks.name(),
            "updates": statements,
            "ordered": false,
            "maxTimeMS": i64::try_from(REQUEST_TIME_MAX.as_millis()).expect("seconds"),
            "writeConcern": mongodb::bson::serialize_to_document(&concern).expect("a write concern is a document"),
        };
        let write = self.database.run_command(update);
        let answer = self.within(Deed::Write, &name, write.into_future()).await?;
        let failed = answer
            .get_array("writeErrors")
            .ok()
            .and_then(|errors| errors.first()?.as_document());
        let unconfirmed = answer.get_document("writeConcernError").ok();
        if let Some(failure) = failed.or(unconfirmed) {
            let mut error = reported(failure, Certainty::Unknown, &name, &self.namespace);
            if error.fault == Fault::TimedOut {
                error.message.push_str(OPEN_TRANSACTION);
            }
            return Err(FenceError::Store(error));
        }
        Ok(answer)
    }

    /// The highest token of the stripes where one is above `token`; `None` where all are at it. One that
    /// holds no token is an error: the server compares it to none, so that no claim could raise it.
    async fn above(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Option<FencingToken>, FenceError> {
        let look = async {
            let mut found = self.marks.find(stripes::all(resource)).await?;
            let mut stripes = Vec::new();
            while found.advance().await? {
                stripes.push(found.deserialize_current()?);
            }
            Ok(stripes)
        };
        let found = self.within(Deed::Read, &subject(resource), look).await?;
        let tokens = found
            .iter()
            .map(|stripe| stripes::token(stripe, resource, &self.namespace));
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        match tokens.iter().copied().max() {
            Some(highest) if highest > token => Ok(Some(highest)),
            Some(_) if tokens.iter().all(|stripe| *stripe == token) => Ok(None),
            Some(_) | None => Err(self.restless(resource)),
        }
    }

    fn restless(&self, resource: &ResourceName) -> FenceError {
        FenceError::Store(StoreError::unknown(
            Fault::Busy,
            format!(
                "{} at {}: the mark keeps changing; claim again",
                subject(resource),
                self.namespace
            ),
        ))
    }
}

/// A failure after the mark was written, or found as it should be: nobody can tell any more that nothing was
/// changed.
fn after_the_mark(error: FenceError) -> FenceError {
    match error {
        FenceError::Store(error) => FenceError::Store(after_a_step(error)),
        refused => refused,
    }
}

/// Raises the mark to a term's token.
fn claimed(lease: &LeaseName, token: FencingToken) -> Vec<Document> {
    raised(Some(lease), token, Bson::Null)
}

/// Raises the mark for an operator: its lease stays, and has not claimed it.
fn lifted(lease: Option<&LeaseName>, token: FencingToken) -> Vec<Document> {
    raised(lease, token, Bson::Int64(token.signed()))
}

/// Raises the mark if it is lower and nobody else's, or makes it; else leaves it as it is.
fn raised(lease: Option<&LeaseName>, token: FencingToken, bumped: Bson) -> Vec<Document> {
    let fresh = bson!({ "$eq": [{ "$type": "$token" }, "missing"] });
    let lease = lease.map_or(Bson::Null, |lease| crate::pipeline::literal(lease.as_str()));
    let free = bson!({ "$in": ["$lease", [null, lease.clone()]] });
    // Raised by an operator, and claimed by nobody yet.
    let unclaimed = bson!({ "$or": [{ "$eq": ["$lease", null] }, { "$eq": ["$bumped", "$token"] }] });
    let lower = bson!({ "$or": [
        fresh.clone(),
        { "$and": [{ "$lt": ["$token", token.signed()] }, free.clone()] },
        { "$and": [{ "$eq": ["$token", token.signed()] }, free, unclaimed] },
    ] });
    let changes = doc! {
        "lease": lease,
        "token": token.signed(),
        "stripes": stripes::STRIPES,
        "claimedAt": "$$NOW",
        "previous": { "$cond": [fresh, null, "$token"] },
        "bumped": bumped,
    };
    crate::pipeline::merge_if(lower, changes)
}
