//! Defines [`Snapshot`], a trace in memory as it is at one moment, with the indexes that drawing and details need. It
//! has either the columns that are drawn (`quick`), so that the page shows soon, or all (`full`). A snapshot of a
//! live trace grows by new rows.

use crate::chunks::chunks;
use crate::density_index::DensityIndex;
use crate::index::Index;
use crate::lanes::{Columns, PlacedRows, TraceTrack};
use crate::range_query::TrackRows;
use crate::rebase_times;
use crate::texts::Texts;
use crate::track::{DrawnTable, TrackId, WholeCommandBuffers, WorkColumns};
use gapscope_timeline::Timeline;
use gapscope_timeline::WorkKind;
use gapscope_timeline::submit_calls::SubmitCalls;
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::parallel::each;
use gapscope_trace::tables::{
    CommandBuffers, CounterValues, Counters, Dispatches, HostCallKind, HostCalls, Kernels, Labels,
    Markers, Memory, OpaqueWork, Samples, Submissions, Transfers,
};
use gapscope_trace::{Diagnostic, Error, Names, Selection, Tables, Trace};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A trace in memory with the indexes that the page needs. Its times count from the start of the recording.
#[derive(Debug)]
pub struct Snapshot {
    /// A number that grows with each change of the trace.
    pub generation: u64,
    /// A number that grows when rows and texts are numbered anew.
    pub edition: u64,
    /// True while the trace is being recorded.
    pub live: bool,
    /// True where all columns are there, not only those that are drawn.
    pub full: bool,
    /// The start of the recording on the host's clock, which all times of the snapshot count from.
    pub origin_ns: i64,
    pub trace: Trace,
    /// Sentences about reading the trace.
    pub remarks: Vec<String>,
    /// Names of the devices, queues, processes and threads of the manifest.
    pub vocabulary: Vocabulary,
    /// The names of rows.
    pub texts: Texts,
    /// The command buffers that are drawn as work themselves.
    pub whole: WholeCommandBuffers,
    /// The host calls of submissions.
    pub submit_calls: SubmitCalls,
    /// The tracks; empty until they are asked for, as the next field is.
    density_index: OnceLock<DensityIndex>,
    index: OnceLock<Index>,
    /// The rows by lane of the tracks that have been asked for.
    placed: Mutex<FxHashMap<TrackId, Arc<Mutex<PlacedRows>>>>,
}

/// Returns the columns that drawing needs of a complete trace. A table that is damaged in a column left out here
/// becomes empty once all columns are read, so that no row is taken for another. Ids are checked then, too.
fn drawing() -> Selection {
    const WORK: [&str; 4] = ["queue", "start_ns", "duration_ns", "kind"];
    Selection::manifest()
        .columns::<Dispatches>(&["queue", "kernel", "start_ns", "duration_ns"])
        .columns::<Transfers>(&WORK)
        .columns::<OpaqueWork>(&WORK)
        .columns::<CommandBuffers>(&[
            "queue",
            "start_ns",
            "duration_ns",
            "timing",
            "label",
            "name",
        ])
        .columns::<Submissions>(&[
            "process",
            "thread",
            "queue",
            "start_ns",
            "duration_ns",
            "function",
        ])
        .columns::<HostCalls>(&[
            "process",
            "thread",
            "call",
            "start_ns",
            "duration_ns",
            "function",
        ])
        .columns::<Markers>(&[
            "process",
            "scope",
            "label",
            "queue",
            "thread",
            "start_ns",
            "duration_ns",
        ])
        .columns::<Memory>(&["device", "at_ns"])
        .columns::<CounterValues>(&["counter", "start_ns", "duration_ns"])
        .columns::<Samples>(&["process", "thread"])
        .with::<Counters>()
        .with::<Labels>()
        .with::<Kernels>()
        .unchecked()
}

/// Returns true when a dispatch, a transfer or a piece of opaque work has no times.
fn untimed(trace: &Trace) -> bool {
    crate::index::WORK.iter().any(|source| {
        let without = |rows: Range<usize>| {
            rows.into_iter()
                .any(|row| source.times(trace, row).is_none())
        };
        each(chunks(source.rows(trace)).collect(), without).contains(&true)
    })
}

impl Snapshot {
    /// Reads the columns of a complete trace that drawing needs, or all where these do not tell which command buffers
    /// are work.
    ///
    /// # Errors
    /// The trace cannot be opened.
    pub fn quick(folder: &Path, names: Option<&Arc<Names>>) -> Result<Snapshot, Error> {
        let (trace, diagnostics) = gapscope_trace::read(folder, &drawing().named(names))?;
        match WholeCommandBuffers::quick(&trace, || untimed(&trace)) {
            Some(whole) => Ok(Snapshot::with(trace, diagnostics, false, Some(whole))),
            None => {
                drop(trace);
                Snapshot::full(folder, names)
            }
        }
    }

    /// Reads all columns of a trace.
    ///
    /// # Errors
    /// The trace cannot be opened.
    pub fn full(folder: &Path, names: Option<&Arc<Names>>) -> Result<Snapshot, Error> {
        let (trace, diagnostics) = gapscope_trace::read(folder, &Selection::all().named(names))?;
        Ok(Snapshot::new(trace, diagnostics))
    }

    /// Takes a trace that is in memory with all columns.
    pub fn new(trace: Trace, diagnostics: Vec<Diagnostic>) -> Snapshot {
        Snapshot::with(trace, diagnostics, true, None)
    }

    /// Makes a snapshot of what was read; `whole` are the command buffers that are drawn as work, where they are
    /// known.
    fn with(
        mut trace: Trace,
        diagnostics: Vec<Diagnostic>,
        full: bool,
        whole: Option<WholeCommandBuffers>,
    ) -> Snapshot {
        let origin_ns = trace.manifest.start_ns;
        rebase_times::shift(&mut trace, origin_ns);
        let texts = Texts::new(&trace);
        let mut snapshot = Snapshot {
            generation: 1,
            edition: 1,
            live: false,
            full,
            origin_ns,
            remarks: diagnostics.iter().map(ToString::to_string).collect(),
            vocabulary: Vocabulary::new(&trace.manifest),
            texts,
            whole: WholeCommandBuffers::None,
            submit_calls: SubmitCalls::default(),
            density_index: OnceLock::new(),
            index: OnceLock::new(),
            placed: Mutex::default(),
            trace,
        };
        snapshot.look(whole);
        snapshot
    }

    /// Reads all columns of the trace; indexes that were made before stay, unless the numbers of rows differ now.
    pub fn with_all(&self, folder: &Path, names: Option<&Arc<Names>>) -> Result<Snapshot, Error> {
        let (trace, diagnostics) = gapscope_trace::read(folder, &Selection::all().named(names))?;
        let same = DrawnTable::ALL
            .iter()
            .all(|source| source.rows(&trace) == source.rows(&self.trace));
        if !same {
            // A column that is not drawn is damaged: the indexes of its rows are void.
            return Ok(Snapshot::new(trace, diagnostics));
        }
        let placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Snapshot {
            generation: self.generation,
            edition: self.edition,
            live: self.live,
            density_index: self.density_index.clone(),
            placed: Mutex::new(placed.clone()),
            ..Snapshot::with(trace, diagnostics, true, Some(self.whole.clone()))
        })
    }

    /// Replaces the manifest by a newer one of a live trace, whose times have not been rebased.
    pub fn take_manifest(&mut self, manifest: Manifest) {
        let mut trace = Trace {
            manifest,
            ..Trace::default()
        };
        rebase_times::shift(&mut trace, self.origin_ns);
        self.vocabulary = Vocabulary::new(&trace.manifest);
        self.trace.manifest = trace.manifest;
    }

    /// Adds new rows of a live trace, whose times have not been rebased.
    pub fn grow(&mut self, mut rows: Tables, diagnostics: Vec<Diagnostic>) {
        rebase_times::shift_tables(&mut rows, self.origin_ns);
        self.trace.tables.append(&mut rows);
        self.remarks
            .extend(diagnostics.iter().map(ToString::to_string));
        self.texts.extend(&self.trace);
        self.index = OnceLock::new();
        self.generation += 1;
        self.look(None);
    }

    /// Adds a remark, once, that says why new rows of a live trace are not shown.
    pub fn remark_lost(&mut self, error: &Error) {
        const SAID: &str = "rows that were recorded later are not all shown: ";
        if !self.remarks.iter().any(|remark| remark.starts_with(SAID)) {
            self.remarks.push(format!("{SAID}{error}"));
            self.generation += 1;
        }
    }

    /// Finds the command buffers that are drawn as work, where they are not given, and the calls of submissions.
    fn look(&mut self, whole: Option<WholeCommandBuffers>) {
        let trace = &self.trace;
        let whole = whole.or_else(|| WholeCommandBuffers::quick(trace, || untimed(trace)));
        self.whole = whole.unwrap_or_else(|| {
            // Only the analyses can tell, from all columns.
            let timeline = Timeline::new(trace);
            let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
            let whole = works.filter(|work| work.kind() == WorkKind::CommandBuffer);
            let mut rows: Vec<u32> = whole.map(|work| work.row() as u32).collect();
            rows.sort_unstable();
            match rows.is_empty() {
                true => WholeCommandBuffers::None,
                false => WholeCommandBuffers::These(rows),
            }
        });
        self.submit_calls = SubmitCalls::new(trace);
        self.density_index = OnceLock::new();
    }

    /// Returns the tracks with their busy shares; they are computed at the first call.
    pub fn density_index(&self) -> &DensityIndex {
        self.density_index
            .get_or_init(|| DensityIndex::new(&self.trace, &self.whole, &self.submit_calls))
    }

    /// Returns the index of rows by their ids.
    pub fn index(&self) -> &Index {
        self.index
            .get_or_init(|| Index::new(&self.trace, &self.submit_calls))
    }

    /// Makes the frame (the bytes of columns for the page) of rows of a track; `None` when there is no such track.
    pub fn frame(&self, id: TrackId, rows: TrackRows, columns: Columns) -> Option<Vec<u8>> {
        let mut tracks = self.density_index().tracks.iter();
        let all = &tracks.find(|track| track.id == id)?.places;
        let placed = {
            let mut all = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(id).or_default().clone()
        };
        let mut placed = placed.lock().unwrap_or_else(PoisonError::into_inner);
        let track = TraceTrack::new(id, &self.trace, &self.texts);
        let (whole, calls) = (&self.whole, &self.submit_calls);
        placed.extend(track, whole, calls, self.generation, all);
        Some(placed.frame(track, rows, columns))
    }

    /// Returns the functions that were called, as numbers of texts, each with the kind of its calls.
    pub fn called_functions(&self) -> impl Iterator<Item = (u32, HostCallKind)> {
        let (calls, launches) = (
            &self.trace.tables.host_calls,
            &self.trace.tables.submissions,
        );
        let mut kinds: BTreeMap<u32, HostCallKind> = BTreeMap::new();
        for function in launches.function.distinct().iter().flatten() {
            let name = self.texts.find(function);
            kinds.extend(name.map(|name| (name, HostCallKind::Submit)));
        }
        // Calls of a function are of one kind, but for those that launched nothing.
        let mut kinds_by_number = vec![None; calls.function.distinct().len()];
        for row in 0..calls.function.len() {
            if let Some(number) = calls.function.number(row) {
                kinds_by_number[number as usize].get_or_insert(calls.call[row]);
            }
        }
        for (function, kind) in calls.function.distinct().iter().zip(kinds_by_number) {
            if let (Some(function), Some(kind)) = (function, kind)
                && let Some(name) = self.texts.find(function)
            {
                kinds.entry(name).or_insert(kind.of_function(function));
            }
        }
        kinds.into_iter()
    }

    /// Counts the rows that are drawn.
    pub fn drawn(&self) -> u64 {
        let tracks = self.density_index().tracks.iter();
        tracks.map(|track| track.rows).sum()
    }

    /// Finds the command buffer and the submission that the work in a row belongs to.
    pub fn work_place(&self, work: &WorkColumns, row: usize) -> WorkPlace {
        let index = self.index();
        let id = work.command_buffer.at(row);
        let command_buffer = id.and_then(|id| index.command_buffers.get(id));
        let id = match command_buffer {
            Some(row) => Some(self.trace.tables.command_buffers.submission[row]),
            None => work.submission.at(row),
        };
        let submission = id.and_then(|id| index.submissions.get(id));
        WorkPlace {
            command_buffer,
            submission,
        }
    }
}

/// The rows of the command buffer and of the submission that some work belongs to; `None` where they are not known.
pub struct WorkPlace {
    pub command_buffer: Option<usize>,
    pub submission: Option<usize>,
}
