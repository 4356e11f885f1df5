//! What is known of a trace at one time.

use crate::chunks::chunks;
use crate::index::Index;
use crate::lanes::{Columns, PlacedRows};
use crate::origin;
use crate::part::Asked;
use crate::survey::Survey;
use crate::texts::Texts;
use crate::track::{Source, TrackId, Whole};
use gapscope_timeline::Timeline;
use gapscope_timeline::WorkKind;
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::parallel::each;
use gapscope_trace::tables::{
    CommandBuffers, CounterValues, Counters, Dispatches, HostCalls, Kernels, Labels, Markers,
    Memory, OpaqueWork, Samples, Submissions, Transfers,
};
use gapscope_trace::{Diagnostic, Error, Names, Selection, Tables, Trace};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A trace in memory with what the page needs of it. Its times count from its recording's start.
#[derive(Debug)]
pub struct Snapshot {
    /// Grows with each change.
    pub generation: u64,
    /// Grows when rows and texts that were there before are worth nothing.
    pub edition: u64,
    /// True while it is being recorded.
    pub live: bool,
    /// Whether all columns are there, or only those that draw.
    pub full: bool,
    pub origin_ns: i64,
    pub trace: Trace,
    /// What reading said.
    pub remarks: Vec<String>,
    /// Names of what the manifest lists.
    pub vocabulary: Vocabulary,
    pub texts: Texts,
    pub whole: Whole,
    survey: OnceLock<Survey>,
    index: OnceLock<Index>,
    /// Of the tracks that have been asked for.
    placed: Mutex<FxHashMap<TrackId, Arc<Mutex<PlacedRows>>>>,
}

/// What drawing takes of a complete trace. A table of such a trace is one file: if it is damaged in a column that is left
/// out here, the table is empty once all of it is read, and no row is taken for another. Ids are checked then too.
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
        .columns::<Submissions>(&["queue", "start_ns"])
        .columns::<HostCalls>(&["process", "thread", "call", "start_ns", "duration_ns"])
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

/// True when a dispatch, a transfer or a piece of opaque work has no times.
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
    /// Reads what drawing takes of a complete trace.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn quick(folder: &Path, names: Option<&Arc<Names>>) -> Result<Snapshot, Error> {
        let (trace, diagnostics) = gapscope_trace::read(folder, &drawing().named(names))?;
        match Whole::quick(&trace, || untimed(&trace)) {
            Some(whole) => Ok(Snapshot::with(trace, diagnostics, false, Some(whole))),
            None => {
                drop(trace);
                Snapshot::full(folder, names)
            }
        }
    }

    /// Reads all of a trace.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn full(folder: &Path, names: Option<&Arc<Names>>) -> Result<Snapshot, Error> {
        let (trace, diagnostics) = gapscope_trace::read(folder, &Selection::all().named(names))?;
        Ok(Snapshot::of(trace, diagnostics))
    }

    /// A trace that is in memory, with all columns.
    pub fn of(trace: Trace, diagnostics: Vec<Diagnostic>) -> Snapshot {
        Snapshot::with(trace, diagnostics, true, None)
    }

    fn with(
        mut trace: Trace,
        diagnostics: Vec<Diagnostic>,
        full: bool,
        whole: Option<Whole>,
    ) -> Snapshot {
        let origin_ns = trace.manifest.start_ns;
        origin::shift(&mut trace, origin_ns);
        let texts = Texts::of(&trace);
        let mut snapshot = Snapshot {
            generation: 1,
            edition: 1,
            live: false,
            full,
            origin_ns,
            remarks: diagnostics.iter().map(ToString::to_string).collect(),
            vocabulary: Vocabulary::new(&trace.manifest),
            texts,
            whole: Whole::None,
            survey: OnceLock::new(),
            index: OnceLock::new(),
            placed: Mutex::default(),
            trace,
        };
        snapshot.look(whole);
        snapshot
    }

    /// The same trace with all its columns: what was made of it stays.
    pub fn with_all(&self, folder: &Path, names: Option<&Arc<Names>>) -> Result<Snapshot, Error> {
        let (mut trace, diagnostics) =
            gapscope_trace::read(folder, &Selection::all().named(names))?;
        let same = Source::ALL
            .iter()
            .all(|source| source.rows(&trace) == source.rows(&self.trace));
        if !same {
            // A column that drawing does not take is damaged: what was made of the rows that go with it is worth nothing.
            return Ok(Snapshot::of(trace, diagnostics));
        }
        origin::shift(&mut trace, self.origin_ns);
        let texts = Texts::of(&trace);
        let placed = self
            .placed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Ok(Snapshot {
            generation: self.generation,
            edition: self.edition,
            live: self.live,
            full: true,
            origin_ns: self.origin_ns,
            remarks: diagnostics.iter().map(ToString::to_string).collect(),
            vocabulary: Vocabulary::new(&trace.manifest),
            texts,
            whole: self.whole.clone(),
            survey: self.survey.clone(),
            index: OnceLock::new(),
            placed: Mutex::new(placed),
            trace,
        })
    }

    /// Takes up the manifest of a live trace, whose times are still those of the trace.
    pub fn take_manifest(&mut self, manifest: Manifest) {
        let mut trace = Trace {
            manifest,
            ..Trace::default()
        };
        origin::shift(&mut trace, self.origin_ns);
        self.vocabulary = Vocabulary::new(&trace.manifest);
        self.trace.manifest = trace.manifest;
    }

    /// Takes up rows that a live trace has got; their times are those of the trace.
    pub fn grow(&mut self, mut rows: Tables, diagnostics: Vec<Diagnostic>) {
        origin::shift_tables(&mut rows, self.origin_ns);
        self.trace.tables.append(&mut rows);
        self.remarks
            .extend(diagnostics.iter().map(ToString::to_string));
        self.texts.extend(&self.trace);
        self.index = OnceLock::new();
        self.generation += 1;
        self.look(None);
    }

    /// Notes, once, why what a live trace has got is not shown.
    pub fn remark_lost(&mut self, error: &Error) {
        const SAID: &str = "rows that were recorded later are not all shown: ";
        if !self.remarks.iter().any(|remark| remark.starts_with(SAID)) {
            self.remarks.push(format!("{SAID}{error}"));
            self.generation += 1;
        }
    }

    /// Finds which command buffers are drawn as work where that is not given.
    fn look(&mut self, whole: Option<Whole>) {
        let trace = &self.trace;
        let whole = whole.or_else(|| Whole::quick(trace, || untimed(trace)));
        self.whole = whole.unwrap_or_else(|| {
            // The analyses say which; they need to know all.
            let timeline = Timeline::new(trace);
            let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
            let whole = works.filter(|work| work.kind() == WorkKind::CommandBuffer);
            let mut rows: Vec<u32> = whole.map(|work| work.row() as u32).collect();
            rows.sort_unstable();
            match rows.is_empty() {
                true => Whole::None,
                false => Whole::These(rows),
            }
        });
        self.survey = OnceLock::new();
    }

    /// Which tracks there are, made when it is first asked for.
    pub fn survey(&self) -> &Survey {
        self.survey
            .get_or_init(|| Survey::of(&self.trace, &self.whole))
    }

    /// Where rows are by their ids.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.trace))
    }

    /// A frame of a track; `None` when there is no such track.
    pub fn frame(&self, id: TrackId, after: u64, columns: Columns) -> Option<Vec<u8>> {
        self.with_placed(id, |placed| {
            placed.frame(id, &self.trace, &self.texts, after, columns)
        })
    }

    /// A frame of a part of a track; `None` when there is no such track.
    pub fn part(&self, id: TrackId, asked: Asked, columns: Columns) -> Option<Vec<u8>> {
        self.with_placed(id, |placed| {
            placed.part(id, &self.trace, &self.texts, asked, columns)
        })
    }

    fn with_placed<T>(&self, id: TrackId, answer: impl FnOnce(&PlacedRows) -> T) -> Option<T> {
        let mut tracks = self.survey().tracks.iter();
        let all = &tracks.find(|track| track.id == id)?.places;
        let placed = {
            let mut all = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(id).or_default().clone()
        };
        let mut placed = placed.lock().unwrap_or_else(PoisonError::into_inner);
        placed.extend(
            id,
            &self.trace,
            &self.whole,
            &self.texts,
            self.generation,
            all,
        );
        Some(answer(&placed))
    }

    /// Rows that are drawn.
    pub fn drawn(&self) -> u64 {
        self.survey().tracks.iter().map(|track| track.rows).sum()
    }
}
