//! A trace that is served: read when it is needed, and followed while it is recorded.

use crate::Error;
use crate::analyst::Analyst;
use crate::notes::Notes;
use crate::origin;
use crate::overview;
use crate::snapshot::Snapshot;
use gapscope_comparison::ranks::RankDigest;
use gapscope_trace::reader::Tail;
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{DispatchPieces, Names, Trace, read, read_manifest, table_sizes};
use serde::Serialize;
use serde_json::Value;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often the files of a live trace are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// Of a hundred ranks few are read at a time: all at once they would take longer, and more memory.
static READING: Gate = Gate {
    inside: Mutex::new(0),
    left: Condvar::new(),
};

/// Lets as many through at a time as there are cores.
struct Gate {
    inside: Mutex<usize>,
    left: Condvar,
}

impl Gate {
    fn through<R>(&self, work: impl FnOnce() -> R) -> R {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let full = |inside: &mut usize| *inside >= cores;
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = self.left.wait_while(inside, full);
        *inside.unwrap_or_else(PoisonError::into_inner) += 1;
        let _out = Out(self);
        work()
    }
}

/// Who is inside, even where its work panics.
struct Out<'a>(&'a Gate);

impl Drop for Out<'_> {
    fn drop(&mut self) {
        let Gate { inside, left } = self.0;
        *inside.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        left.notify_one();
    }
}

/// A trace that is served.
pub struct Store {
    names: Option<Arc<Names>>,
    folder: PathBuf,
    name: String,
    state: Mutex<State>,
    ready: Condvar,
    /// Held while all columns are read, so that it is done once.
    filling: Mutex<()>,
    analyst: Analyst,
    notes: Notes,
}

/// What the findings of a complete trace rest on. Its times count from its recording's start.
pub struct InPieces {
    /// Without dispatches.
    pub trace: Trace,
    /// The dispatches.
    pub pieces: DispatchPieces,
    /// What reading said.
    pub remarks: Vec<String>,
}

#[derive(Default)]
struct State {
    snapshot: Option<Result<Arc<Snapshot>, Error>>,
    tail: Option<Tail>,
    looked: Option<Instant>,
}

/// How far a trace is recorded.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TraceStatus {
    pub generation: u64,
    pub edition: u64,
    pub live: bool,
}

impl Store {
    /// Opens a trace, and starts to read it.
    ///
    /// # Errors
    /// It is not a trace, or not complete and not `live`.
    pub fn open(
        folder: &Path,
        name: String,
        live: bool,
        names: Option<&Arc<Names>>,
    ) -> Result<Arc<Store>, Error> {
        if !live {
            let manifest = read_manifest(folder)?;
            if !manifest.complete {
                return Err(Error::Unfinished {
                    path: folder.to_owned(),
                });
            }
        }
        let store = Arc::new_cyclic(|store: &Weak<Store>| Store {
            folder: folder.to_owned(),
            name,
            names: names.cloned(),
            state: Mutex::new(State {
                tail: live.then(|| Tail::new(folder)),
                ..State::default()
            }),
            ready: Condvar::new(),
            filling: Mutex::new(()),
            analyst: Analyst::start(store.clone()),
            notes: Notes::of(folder),
        });
        let reading = store.clone();
        std::thread::spawn(move || {
            let snapshot = match live {
                true => Ok(empty(&reading.folder)),
                false => READING.through(|| {
                    let snapshot = Snapshot::quick(&reading.folder, reading.names.as_ref())?;
                    snapshot.survey();
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

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the trace is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What readers noted of it.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Who analyses it.
    pub fn analyst(&self) -> &Analyst {
        &self.analyst
    }

    /// The trace as far as drawing needs it; waits until it has been read.
    ///
    /// # Errors
    /// It could not be read.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        let mut state = self.state();
        loop {
            if let Some(snapshot) = &state.snapshot {
                return snapshot.clone();
            }
            state = self
                .ready
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The trace with all its columns; reads them if need be.
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

    /// What the findings rest on; `None` where that takes all of the trace: it is there already, live, damaged or not to be read.
    pub fn in_pieces(&self) -> Option<InPieces> {
        if let Some(Ok(snapshot)) = &self.state().snapshot
            && snapshot.full
        {
            return None;
        }
        // That of findings, and a little more.
        let selection = RankDigest::selection().named(self.names.as_ref());
        let pieces = DispatchPieces::open(&self.folder, &selection)?;
        let others = selection.without::<Dispatches>();
        let (mut trace, said) = read(&self.folder, &others).ok()?;
        let origin_ns = trace.manifest.start_ns;
        origin::shift(&mut trace, origin_ns);
        Some(InPieces {
            trace,
            pieces: pieces.from_origin(origin_ns),
            remarks: said.iter().map(ToString::to_string).collect(),
        })
    }

    /// The overview.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn overview(&self) -> Result<Value, Error> {
        self.look();
        let snapshot = self.snapshot()?;
        let version = snapshot.trace.manifest.format_version;
        let sizes = table_sizes(&self.folder, version).unwrap_or_default();
        Ok(overview::overview(&snapshot, &self.name, &sizes))
    }

    /// How far it is recorded by now.
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

    /// The edition of what is answered from now on.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn edition(&self) -> Result<u64, Error> {
        Ok(self.snapshot()?.edition)
    }

    /// Takes up what a live trace has got.
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
                return Taken::Later;
            };
            growing.remark_lost(&error);
            Taken::Now
        });
        if said == Taken::Later {
            *looked = None;
        }
    }
}

/// When what a live trace has got is shown.
#[derive(PartialEq, Eq)]
enum Taken {
    Now,
    /// Who still reads what was there before is not disturbed: there is a next time.
    Later,
}

/// Takes up what a live trace has got.
fn take_up(
    folder: &Path,
    names: Option<&Arc<Names>>,
    snapshot: &mut Arc<Snapshot>,
    tail: &mut Option<Tail>,
) -> Result<Taken, gapscope_trace::Error> {
    let manifest = read_manifest(folder)?;
    if manifest.complete {
        // Its files are new, and the names of kernels are better: all is read again.
        let mut complete = Snapshot::full(folder, names)?;
        complete.generation = snapshot.generation + 1;
        complete.edition = snapshot.edition + 1;
        *snapshot = Arc::new(complete);
        *tail = None;
        return Ok(Taken::Now);
    }
    let Some(growing) = Arc::get_mut(snapshot) else {
        return Ok(Taken::Later);
    };
    if let Some(tail) = tail {
        let (rows, diagnostics) = tail.read()?;
        if !rows.is_empty() || !diagnostics.is_empty() {
            growing.take_manifest(manifest);
            growing.grow(rows, diagnostics);
        }
    }
    Ok(Taken::Now)
}

/// A live trace before its first part.
fn empty(folder: &Path) -> Snapshot {
    let trace = Trace {
        manifest: read_manifest(folder).unwrap_or_default(),
        ..Trace::default()
    };
    let mut snapshot = Snapshot::of(trace, Vec::new());
    snapshot.live = true;
    snapshot
}
