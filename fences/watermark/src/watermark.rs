use crate::admission::Admission;
use crate::disk::{Disk, RealDisk};
use crate::file::{Keeper, look};
use crate::gate::Gate;
use crate::saver::Saver;
use crate::view::WatermarkView;
use crate::writer::Writer;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fault, Fence, FenceError, Horizon, ListedMark, Mark, MarkPage,
    ResourceName, StoreError, Term, decide_entry, horizon,
};
use tenure_local::FileSystemTrust;

/// Most resources that one watermark keeps. One more is refused ([`Fault::Full`]): a mark cannot be
/// forgotten.
pub const RESOURCES_MAX: usize = 65_536;

/// How long [`Watermark::open`] waits for another process that has the file open.
pub const OPEN_WAIT_MAX: Duration = Duration::from_secs(5);

/// A fence inside this process, for what the process guards itself: a mark per resource, and who is inside.
///
/// ```
/// use tenure_core::{Fence, FencingToken, LeaseName, ResourceName, Term};
/// use tenure_watermark::Watermark;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let scratch = tempfile::tempdir()?;
/// # let path = scratch.path().join("marks");
/// let fence = Watermark::open(&path)?; // or Watermark::new(), which forgets its marks when the process ends
/// let ledger = ResourceName::new("ledger")?;
/// // What a writer sent with its request: the lease and the token of its term.
/// let term = Term::new(LeaseName::new("nightly")?, FencingToken::new(7)?);
/// // Once per term, before it first reads what it will change.
/// fence.claim(&ledger, &term).await?;
/// let admitted = fence.admit(&ledger, &term)?; // refuses a stale term
/// // … the write …
/// drop(admitted);
///
/// let later = Term::new(LeaseName::new("nightly")?, FencingToken::new(9)?);
/// fence.claim(&ledger, &later).await?;
/// assert!(fence.admit(&ledger, &term).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Guarantee
/// - A write is admitted only if its term holds the mark, and a claim of a later term returns only when every
///   write that was admitted before has ended ([`Admission`] dropped): so none has its effect after the later
///   term has begun to read. The claim refuses earlier terms from the moment it begins, also if it is not
///   finished.
/// - [`open`](Self::open)ed from a file: a mark is on disk before its term is admitted, and the file is whole
///   after a crash at any moment, for it is replaced as a whole. One process at a time may open it; one whose
///   `PATH.lock` was removed, as with its whole folder, writes it no more, claims nothing more, and passes no
///   [`check`](Fence::check).
///
/// # What it does not promise
/// - One made with [`new`](Self::new) forgets its marks with the process. Then an old term may claim again
///   first, and be admitted until the current one claims. Take it where what it guards is forgotten as well.
/// - [`admit`](Self::admit) looks at memory only: in a process whose `PATH.lock` was removed it goes on
///   admitting. Whoever admits for long asks [`check`](Fence::check) now and then, as the gate of the layer
///   for HTTP does once a second.
/// - A claim can wait for writes of its own process only. What a write has sent on to another system is that
///   system's to fence.
///
/// Clones share one state. A claim on a watermark with a file writes all its marks (about 80 bytes each), on
/// a thread of its own; claims at once share one write and one thread. `admit` only ever looks at memory.
/// Refusals are counted in memory, and written and told in the log about once a second while there are new
/// ones, by a thread that lives only as long. At most [`RESOURCES_MAX`] resources.
#[derive(Clone)]
pub struct Watermark(Arc<Shared>);

struct Shared {
    marks: Arc<Marks>,
    writer: Writer,
    saver: Saver,
}

pub(crate) struct Marks {
    gates: RwLock<BTreeMap<ResourceName, Arc<Gate>>>,
    keeper: Option<Keeper>,
}

impl Watermark {
    /// A watermark in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Vec::new(), None)
    }

    fn with(kept: Vec<Mark>, keeper: Option<Keeper>) -> Self {
        let gates = kept
            .into_iter()
            .map(|kept| (kept.resource.clone(), Arc::new(Gate::restored(kept))))
            .collect();
        let marks = Marks {
            gates: RwLock::new(gates),
            keeper,
        };
        Self(Arc::new(Shared {
            marks: Arc::new(marks),
            writer: Writer::default(),
            saver: Saver::default(),
        }))
    }

    /// A watermark that keeps its marks in the file at `path`, which is made where it is missing. Beside it a
    /// file `PATH.lock` keeps other processes out; both are beside the file itself where `path` is a link. A
    /// file that is replaced keeps its permissions, and its owner where root replaces it.
    ///
    /// Blocks its thread for a few writes to disk, and for at most [`OPEN_WAIT_MAX`] while another process
    /// has the file open: a command that claims has it for a moment only.
    ///
    /// # Errors
    /// [`FenceError::Store`]: [`Fault::Busy`] if another process (or another watermark of this one) has it
    /// open for longer, [`Fault::Unreadable`] if it is no watermark or is damaged; it was left as it is.
    /// [`Fault::Invalid`] if it can be no file: a directory, a pipe, or a link that leads nowhere, or if
    /// `PATH.lock` is one of these; and if it has several paths (hard links, a mount of the file itself).
    /// [`Fault::Unsupported`] on a network file system, and on one that a program serves (FUSE): see
    /// [`open_on`](Self::open_on). Else what the file system says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FenceError> {
        Self::open_on(path, FileSystemTrust::LocalOnly)
    }

    /// As [`open`](Self::open), on the file systems that are trusted.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(path: impl AsRef<Path>, trust: FileSystemTrust) -> Result<Self, FenceError> {
        Self::open_within(path.as_ref(), trust, OPEN_WAIT_MAX, Box::new(RealDisk))
    }

    /// As [`open`](Self::open), and waits for nobody who has the file open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn try_open(path: impl AsRef<Path>) -> Result<Self, FenceError> {
        Self::try_open_on(path, FileSystemTrust::LocalOnly)
    }

    /// As [`try_open`](Self::try_open), on the file systems that are trusted.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn try_open_on(path: impl AsRef<Path>, trust: FileSystemTrust) -> Result<Self, FenceError> {
        Self::open_within(path.as_ref(), trust, Duration::ZERO, Box::new(RealDisk))
    }

    pub(crate) fn open_within(
        path: &Path,
        trust: FileSystemTrust,
        patience: Duration,
        disk: Box<dyn Disk>,
    ) -> Result<Self, FenceError> {
        let (keeper, kept) = Keeper::open(path, trust, patience, disk)?;
        Ok(Self::with(kept, Some(keeper)))
    }

    /// What the file at `path` holds now, for people; `None` if there is none. Also while somebody has it
    /// open: it locks nothing, keeps nobody out, and changes nothing. Refusals may lag by a second, or by ten
    /// times as long as it takes to write the file.
    ///
    /// # Errors
    /// [`FenceError::Store`]: [`Fault::Unreadable`] if it is no watermark or is damaged. Else what the file
    /// system says.
    pub fn look(path: impl AsRef<Path>) -> Result<Option<WatermarkView>, FenceError> {
        let kept = look(path.as_ref())?;
        Ok(kept.map(|kept| WatermarkView(Self::with(kept, None))))
    }

    /// Admits one write of `term`, and with the answer protects it until that is dropped. Never waits.
    ///
    /// # Errors
    /// - [`FenceError::Stale`]: a later term has claimed, or has begun to; stop the work;
    /// - [`FenceError::Unclaimed`], [`FenceError::Foreign`];
    /// - [`FenceError::Store`] with [`Fault::Busy`]: this term's claim has not returned yet.
    pub fn admit(&self, resource: &ResourceName, term: &Term) -> Result<Admission, FenceError> {
        let Some(gate) = self.0.marks.gate(resource) else {
            return Err(FenceError::Unclaimed {
                resource: resource.clone(),
                token: term.token,
            });
        };
        gate.enter(term).map_err(|error| self.refused(error))?;
        Ok(Admission::new(gate, term.clone()))
    }

    fn refused(&self, error: FenceError) -> FenceError {
        if error.refused().is_some() {
            self.0.save_soon(&error);
        }
        error
    }

    async fn raise(&self, resource: &ResourceName, term: &Term) -> Result<Claimed, FenceError> {
        let limit = horizon(clock_ms(), None);
        let gate = match self.0.marks.gate(resource) {
            Some(gate) => gate,
            // Not even kept in memory: garbage must not use up the places.
            None if term.token > limit => {
                return Err(FenceError::Future {
                    resource: resource.clone(),
                    lease: term.lease.clone(),
                    token: term.token,
                    horizon: Horizon::Clock(limit),
                });
            }
            None => self.0.marks.gate_or_new(resource)?,
        };
        let raised = gate.raise(term, clock_ms());
        if raised.map_err(|error| self.refused(error))?.is_none() {
            self.0.marks.must_be_alone()?;
            return Ok(Claimed::Already);
        }
        self.keep().await?;
        gate.open(term).await.map_err(|error| self.refused(error))
    }

    /// Waits until the marks are in the file, if there is one.
    ///
    /// # Errors
    /// Unknown in any case: what was raised in memory refuses earlier terms from then on.
    async fn keep(&self) -> Result<(), FenceError> {
        if self.0.marks.keeper.is_none() {
            return Ok(());
        }
        let outcome = self.0.writer.write(&self.0.marks).await;
        outcome.map_err(|error| match error {
            FenceError::Store(error) => FenceError::Store(StoreError::unknown(error.fault, error.message)),
            refused => refused,
        })
    }

    /// Refuses a term that is admitted here where another process may have the marks by now, by what these
    /// are there: as stale, where a later term has claimed, and else as one that has not.
    fn must_not_be_elsewhere(&self, resource: &ResourceName, term: &Term) -> Result<(), FenceError> {
        let Some(there) = self.0.marks.elsewhere() else {
            return Ok(());
        };
        let mark = there.iter().find(|mark| mark.resource == *resource);
        let (lease, token) = (
            mark.and_then(|mark| mark.lease.as_ref()),
            mark.map(|mark| mark.token),
        );
        let unclaimed = FenceError::Unclaimed {
            resource: resource.clone(),
            token: term.token,
        };
        let refusal = decide_entry(resource, term, lease, token)
            .err()
            .unwrap_or(unclaimed);
        self.count_refusal(&refusal);
        Err(refusal)
    }
}

impl Marks {
    fn gate(&self, resource: &ResourceName) -> Option<Arc<Gate>> {
        let gates = self.gates.read().unwrap_or_else(PoisonError::into_inner);
        gates.get(resource).cloned()
    }

    fn gate_or_new(&self, resource: &ResourceName) -> Result<Arc<Gate>, FenceError> {
        if let Some(gate) = self.gate(resource) {
            return Ok(gate);
        }
        let mut gates = self.gates.write().unwrap_or_else(PoisonError::into_inner);
        let count = gates.len();
        if count >= RESOURCES_MAX && !gates.contains_key(resource) {
            return Err(FenceError::Store(StoreError::not_applied(
                Fault::Full,
                format!(
                    "fence \"{resource}\": the watermark keeps {count} resources, the most it can; use fewer, \
                     larger ones, or several watermarks"
                ),
            )));
        }
        let gate = gates
            .entry(resource.clone())
            .or_insert_with(|| Arc::new(Gate::new(resource.clone())));
        Ok(Arc::clone(gate))
    }

    fn must_be_alone(&self) -> Result<(), FenceError> {
        self.keeper.as_ref().map_or(Ok(()), Keeper::must_be_alone)
    }

    /// The marks in the file, if another process may have it open by now.
    fn elsewhere(&self) -> Option<Vec<Mark>> {
        self.keeper.as_ref().and_then(Keeper::unless_alone)
    }

    pub(crate) fn save(&self) -> Result<(), FenceError> {
        match &self.keeper {
            Some(keeper) => keeper.save(|| self.kept()),
            None => Ok(()),
        }
    }

    fn kept(&self) -> Vec<Mark> {
        let gates = self.gates.read().unwrap_or_else(PoisonError::into_inner);
        gates.values().filter_map(|gate| gate.kept()).collect()
    }
}

impl Shared {
    /// What a gate has counted in memory is on its way into the log, and into the file, if there is one.
    fn save_soon(&self, refusal: &FenceError) {
        self.saver.refused(&self.marks, refusal);
    }
}

impl Drop for Shared {
    /// The refusals of the last second may be counted in memory only.
    fn drop(&mut self) {
        self.writer.end();
        self.saver.end();
        if let Err(error) = self.marks.save() {
            tracing::warn!(%error, "the last refusals are not in the file");
        }
    }
}

impl Fence for Watermark {
    /// Waits for writes of earlier terms that are inside, at most [`CLAIM_WAIT_MAX`](crate::CLAIM_WAIT_MAX),
    /// which needs a tokio runtime with its timer.
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        Box::pin(self.raise(resource, term))
    }

    /// Also whether the marks are still this process's own: whoever only [`admit`](Self::admit)s is not told.
    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        let admitted = self.admit(resource, term);
        let checked = admitted.and_then(|_| self.must_not_be_elsewhere(resource, term));
        Box::pin(std::future::ready(checked))
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        let mark = self.0.marks.gate(resource).and_then(|gate| gate.kept());
        Box::pin(std::future::ready(Ok(mark)))
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        let gates = self.0.marks.gates.read().unwrap_or_else(PoisonError::into_inner);
        let is_behind = |resource: &ResourceName| after.is_none_or(|after| Cursor::from(resource) > *after);
        let behind = gates.iter().filter(|(resource, _)| is_behind(resource));
        let marks =
            behind.filter_map(|(resource, gate)| Some((resource.into(), ListedMark::Mark(gate.kept()?))));
        Box::pin(std::future::ready(Ok(MarkPage::beginning(marks))))
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        Box::pin(async move {
            let gate = self.0.marks.gate_or_new(&bump.resource)?;
            gate.bump(bump, clock_ms())?;
            self.keep().await?;
            let kept = gate.kept().expect("a mark that was raised is there");
            Ok(kept)
        })
    }

    fn count_refusal(&self, refusal: &FenceError) {
        let Some((resource, _)) = refusal.refused() else {
            return;
        };
        if let Some(gate) = self.0.marks.gate(resource) {
            gate.count(refusal);
            self.0.save_soon(refusal);
        }
    }

    fn note_refusals(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Default for Watermark {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watermark")
            .field("keeper", &self.0.marks.keeper)
            .finish_non_exhaustive()
    }
}

/// This machine's clock: a bound against garbage that a day's error does not hurt.
fn clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
