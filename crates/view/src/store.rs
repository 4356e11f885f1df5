//! Defines [`Store`], a trace that is served: reads its columns when they are needed, and adds new rows while it is
//! recorded.

use crate::Error;
use crate::analysis_thread::{AnalysisThread, TraceInPieces, TraceSource};
use crate::notes::Notes;
use crate::overview;
use crate::protocol::{TraceOverview, TraceStatus};
use crate::rebase_times;
use crate::snapshot::Snapshot;
use gapscope_comparison::ranks::RankDigest;
use gapscope_report::source_lines::SourceAccess;
use gapscope_trace::reader::Tail;
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{DispatchPieces, Names, Trace, read, read_manifest, table_sizes};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The least time between two looks at the files of a live trace.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// Limits how many traces are read at a time: a hundred ranks at once would take longer, and more memory.
static READING: Admission = Admission {
    inside: Mutex::new(0),
    left: Condvar::new(),
};

/// Admits as many readers at a time as there are cores.
struct Admission {
    /// The number of readers that have been admitted and not left.
    inside: Mutex<usize>,
    left: Condvar,
}

impl Admission {
    /// Waits for a place, and then works.
    fn through<R>(&self, work: impl FnOnce() -> R) -> R {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let full = |inside: &mut usize| *inside >= cores;
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = self.left.wait_while(inside, full);
        *inside.unwrap_or_else(PoisonError::into_inner) += 1;
        let _out = AdmissionGuard(self);
        work()
    }
}

/// Frees the place of a reader, even where reading panics.
struct AdmissionGuard<'a>(&'a Admission);

impl Drop for AdmissionGuard<'_> {
    fn drop(&mut self) {
        let Admission { inside, left } = self.0;
        *inside.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        left.notify_one();
    }
}

/// A trace that is served.
pub struct Store {
    /// The user's names for kernels.
    names: Option<Arc<Names>>,
    folder: PathBuf,
    /// The source files that the page may quote.
    sources: SourceAccess,
    name: String,
    state: Mutex<State>,
    /// Tells when the snapshot has been read for the first time.
    ready: Condvar,
    /// A lock that is held while all columns are read, so that they are read once.
    filling: Mutex<()>,
    /// The thread that analyses the trace.
    analyst: AnalysisThread,
    notes: Notes,
}

/// The state of a store: the trace as read so far, and for a live trace the reader of its new rows.
#[derive(Default)]
struct State {
    /// The trace, or why it cannot be read; `None` until the first reading is over.
    snapshot: Option<Result<Arc<Snapshot>, Error>>,
    /// The reader of new rows; `None` for a complete trace.
    tail: Option<Tail>,
    /// The time of the last look at the files.
    looked: Option<Instant>,
}

impl Store {
    /// Opens a trace, of which the page may quote `sources`, and starts to read it.
    ///
    /// # Errors
    /// The folder is not a trace, or the trace is neither complete nor `live`.
    pub fn open(
        folder: &Path,
        name: String,
        live: bool,
        names: Option<&Arc<Names>>,
        sources: SourceAccess,
    ) -> Result<Arc<Store>, Error> {
        if !live {
            check_complete(folder)?;
        }
        let store = Arc::new_cyclic(|store: &Weak<Store>| Store {
            folder: folder.to_owned(),
            sources,
            name,
            names: names.cloned(),
            state: Mutex::new(State {
                tail: live.then(|| Tail::new(folder)),
                ..State::default()
            }),
            ready: Condvar::new(),
            filling: Mutex::new(()),
            analyst: AnalysisThread::start(store.clone()),
            notes: Notes::new(folder),
        });
        let reading = store.clone();
        std::thread::spawn(move || {
            let snapshot = match live {
                true => Ok(empty(&reading.folder)),
                false => READING.through(|| {
                    let snapshot = Snapshot::quick(&reading.folder, reading.names.as_ref())?;
                    snapshot.density_index();
                    Ok(snapshot)
                }),
            };
            reading.state().snapshot = Some(snapshot.map(Arc::new));
            reading.ready.notify_all();
        });
        Ok(store)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn sources(&self) -> &SourceAccess {
        &self.sources
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the notes of readers.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    pub fn analyst(&self) -> &AnalysisThread {
        &self.analyst
    }

    /// Returns the trace as far as drawing needs it; waits until it has been read.
    ///
    /// # Errors
    /// The trace could not be read.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        let mut state = self.state();
        loop {
            if let Some(snapshot) = &state.snapshot {
                return snapshot.clone();
            }
            let ready = self.ready.wait(state);
            state = ready.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the trace with all its columns; reads them if need be.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn full(&self) -> Result<Arc<Snapshot>, Error> {
        let _filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.snapshot()?;
        if snapshot.full {
            return Ok(snapshot);
        }
        let full = Arc::new(snapshot.with_all(&self.folder, self.names.as_ref())?);
        self.state().snapshot = Some(Ok(full.clone()));
        self.analyst.look_again();
        Ok(full)
    }

    /// Makes the overview of the trace for the page, after a look for new rows.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn overview(&self) -> Result<TraceOverview, Error> {
        self.look();
        let snapshot = self.snapshot()?;
        let version = snapshot.trace.manifest.format_version;
        let sizes = table_sizes(&self.folder, version).unwrap_or_default();
        Ok(overview::overview(&snapshot, &self.name, &sizes))
    }

    /// Returns whether the trace is live, its generation (which grows with each change) and its edition.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn status(&self) -> Result<TraceStatus, Error> {
        self.look();
        let snapshot = self.snapshot()?;
        Ok(TraceStatus {
            generation: snapshot.generation,
            edition: snapshot.edition,
            live: snapshot.live,
        })
    }

    /// Returns the edition, which grows when rows and texts are numbered anew, so that earlier answers are void.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn edition(&self) -> Result<u64, Error> {
        Ok(self.snapshot()?.edition)
    }

    /// Reads new rows of a live trace into the snapshot, unless the last look was less than [`LOOK_EVERY`] ago.
    /// New rows wait while somebody else holds the snapshot.
    fn look(&self) {
        let mut state = self.state();
        let State {
            snapshot: Some(Ok(snapshot)),
            tail,
            looked,
        } = &mut *state
        else {
            return;
        };
        if tail.is_none() || looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        *looked = Some(Instant::now());
        let taken = take_up(&self.folder, self.names.as_ref(), snapshot, tail);
        let said = taken.unwrap_or_else(|error| {
            let Some(growing) = Arc::get_mut(snapshot) else {
                return TakeUp::Later;
            };
            growing.remark_lost(&error);
            TakeUp::Now
        });
        if said == TakeUp::Later {
            *looked = None;
        }
    }
}

impl TraceSource for Store {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        Store::snapshot(self)
    }

    fn full(&self) -> Result<Arc<Snapshot>, Error> {
        Store::full(self)
    }

    fn in_pieces(&self) -> Option<TraceInPieces> {
        if let Some(Ok(snapshot)) = &self.state().snapshot
            && snapshot.full
        {
            return None;
        }
        // Digests of ranks need a little more than findings.
        let selection = RankDigest::selection().named(self.names.as_ref());
        let pieces = DispatchPieces::open(&self.folder, &selection)?;
        let others = selection.without::<Dispatches>();
        let (mut trace, said) = read(&self.folder, &others).ok()?;
        let origin_ns = trace.manifest.start_ns;
        rebase_times::shift(&mut trace, origin_ns);
        Some(TraceInPieces {
            trace,
            pieces: pieces.from_origin(origin_ns),
            remarks: said.iter().map(ToString::to_string).collect(),
        })
    }
}

/// The time at which new rows of a live trace are shown.
#[derive(PartialEq, Eq)]
enum TakeUp {
    /// The rows are in the snapshot.
    Now,
    /// A reader still holds the snapshot, so that rows are added at the next look.
    Later,
}

/// Adds the new rows of a live trace to its snapshot, or replaces it by the whole trace where the recording has been
/// completed.
fn take_up(
    folder: &Path,
    names: Option<&Arc<Names>>,
    snapshot: &mut Arc<Snapshot>,
    tail: &mut Option<Tail>,
) -> Result<TakeUp, gapscope_trace::Error> {
    let manifest = read_manifest(folder)?;
    if manifest.complete {
        // A completed trace has new files and better names of kernels, so that all is read again.
        let mut complete = Snapshot::full(folder, names)?;
        complete.generation = snapshot.generation + 1;
        complete.edition = snapshot.edition + 1;
        *snapshot = Arc::new(complete);
        *tail = None;
        return Ok(TakeUp::Now);
    }
    let Some(growing) = Arc::get_mut(snapshot) else {
        return Ok(TakeUp::Later);
    };
    if let Some(tail) = tail {
        let (rows, diagnostics) = tail.read()?;
        if !rows.is_empty() || !diagnostics.is_empty() {
            growing.take_manifest(manifest);
            growing.grow(rows, diagnostics);
        }
    }
    Ok(TakeUp::Now)
}

/// Returns an error where a trace is still being recorded, or was not ended in an orderly way.
pub fn check_complete(folder: &Path) -> Result<(), Error> {
    match read_manifest(folder)?.complete {
        true => Ok(()),
        false => Err(Error::Unfinished(folder.to_owned())),
    }
}

/// Returns a live trace before its first part.
fn empty(folder: &Path) -> Snapshot {
    let trace = Trace {
        manifest: read_manifest(folder).unwrap_or_default(),
        ..Trace::default()
    };
    let mut snapshot = Snapshot::new(trace, Vec::new());
    snapshot.live = true;
    snapshot
}
