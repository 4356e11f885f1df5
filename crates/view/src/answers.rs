//! Makes the page's answers that need analyses (findings, gaps, counters, ranges, graphs, instances of labels,
//! comparisons) from an [`AnalysedTrace`].

use crate::Error;
use crate::analysed_trace::AnalysedTrace;
use crate::dependencies::MAX_EDGE_BUFFERS;
use crate::frame::Frame;
use crate::protocol::{
    ColumnType, CounterHeader, Field, FindingsAnswer, Instance, Instances, KernelRows, Neighbour,
    Neighbours, OrMissing, RangeFindings, Row, TrackHeader, cut_texts,
};
use crate::range_query::{self, RangeRows, TrackRows};
use crate::row_details::work_link;
use crate::store::Store;
use crate::texts::cut;
use crate::track::{DrawnTable, TrackId};
use gapscope_analysis::cause_note::CauseNote;
use gapscope_analysis::dataflow::Dependency;
use gapscope_analysis::equal_work::{WorkCost, compare};
use gapscope_analysis::unread::{CAUSES, DATAFLOW, unknown_because};
use gapscope_analysis::verdict::Judgement;
use gapscope_analysis::{explained_activity, kernel_bytes, kernels, limits, transfers};
use gapscope_report::json::Json;
use gapscope_report::{HeadSentences, Report};
use gapscope_timeline::counters::{self, Counter};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Vocabulary, WorkKind};
use gapscope_trace::tables::{MarkerScope, Table};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::sync::Arc;

/// Number of slices of time in the activity by cause.
const SLICES: usize = 1024;
/// The most nodes of the graph, which is folded until it has no more: as many as the page can lay out well.
const MAX_GRAPH_NODES: usize = 150;
/// The most dispatches and transfers that the graph covers, which takes some seconds; later ones are left out.
const MAX_GRAPH_ITEMS: usize = 1_000_000;
/// The most rows that are listed for one kernel.
const MAX_KERNEL_ROWS: usize = 1000;
/// The most neighbours of a row that are listed on each side.
const MAX_NEIGHBOURS: usize = 64;
/// The most times for which a label was set that are listed.
const MAX_INSTANCES: usize = 10_000;
/// The most kernels whose change is listed.
const MAX_COMPARED_KERNELS: usize = 200;

/// Returns the findings as the page gets them; they are made once.
pub fn findings(analysed: &AnalysedTrace) -> Arc<Vec<u8>> {
    let answer = analysed
        .findings
        .get_or_init(|| Arc::new(make_findings(analysed)));
    answer.clone()
}

/// Makes the JSON of all findings and of what the page needs beside them, with texts cut to the length that tables
/// show.
fn make_findings(analysed: &AnalysedTrace) -> Vec<u8> {
    let snapshot = &analysed.snapshot;
    let timeline = analysed.timeline;
    let trace = timeline.trace;
    let finder = analysed.finder();
    // The findings explain the gaps.
    let findings = analysed.found();
    let activity = explained_activity(finder, SLICES);
    let report = Report {
        trace: analysed.name,
        manifest: &trace.manifest,
        findings,
        activity: &activity,
        label: None,
        remarks: analysed.remarks,
        top: usize::MAX,
        each_layer: false,
        ranks: None,
    };
    let names = &timeline.kernel_names;
    let mut rows: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for row in 0..trace.tables.kernels.len() {
        rows.entry(names.name(row)).or_default().push(row);
    }
    let kernel_rows = findings.kernels.iter().map(|kernel| {
        let rows = rows.get(kernel.name.as_str());
        KernelRows {
            name: snapshot.texts.find(&kernel.name),
            kernels: rows.map_or(&[], |rows| &rows[..rows.len().min(MAX_KERNEL_ROWS)]),
        }
    });
    let vocabulary = Vocabulary::new(&trace.manifest);
    let words = vocabulary.words();
    let labels = findings.labels.iter();
    let causes = findings.idle_time.causes.iter();
    // Names may have megabytes, for which tables have no room.
    let answer = cut_texts(&FindingsAnswer {
        report: Json::with_activity(&report),
        generation: snapshot.generation,
        head: HeadSentences::new(&trace.manifest, findings, words),
        gap_notes: causes
            .map(|total| CauseNote::new(findings, total))
            .collect(),
        kernel_rows: kernel_rows.collect(),
        label_names: labels
            .map(|label| snapshot.texts.find(&label.path))
            .collect(),
    });
    answer.to_string().into_bytes()
}

/// Makes the frame (an answer of columns of numbers) of the gaps of a GPU, or of those in a range; `None` when there
/// is no such GPU. Where a range has too many rows, the frame has slices of time instead.
pub fn gaps(analysed: &AnalysedTrace, gpu: usize, rows: TrackRows) -> Option<Vec<u8>> {
    let gaps = analysed.gaps();
    let mut range = *gaps.bounds.get(gpu)?..*gaps.bounds.get(gpu + 1)?;
    let mut header = TrackHeader {
        generation: analysed.snapshot.generation,
        tables: vec!["gaps"],
        ..TrackHeader::default()
    };
    let texts = &analysed.snapshot.texts;
    match rows {
        TrackRows::In(asked) => {
            let times = |row: usize| {
                let start_ns = gaps.start_ns[row];
                Interval::new(start_ns, start_ns + gaps.duration_ns[row])
            };
            match RangeRows::new(&[range.start, range.end], asked, times) {
                RangeRows::Rows(lanes) => range = lanes.into_iter().next()?,
                RangeRows::Slices(lanes) => {
                    let name = |row: usize| texts.cause(gaps.causes[row]);
                    return Some(range_query::frame(&lanes, asked.range, header, name));
                }
            }
            header.part = Some([asked.range.start_ns, asked.range.end_ns]);
        }
        TrackRows::After(_) => header.whole = Some(true),
    }
    let rows = range.len();
    header.lanes = vec![0, rows];
    let durations = gaps.duration_ns[range.clone()].iter().copied();
    let columns = [
        ("start", ColumnType::F64),
        ("duration", ColumnType::of_durations(durations.clone())),
        ("name", ColumnType::U8),
        ("row", ColumnType::U32),
    ];
    let mut frame = Frame::new(header, rows, &columns);
    frame.f64(gaps.start_ns[range.clone()].iter().map(|ns| *ns as f64));
    frame.durations(durations);
    // Causes are among the first texts of every trace, so that their indices fit a byte.
    frame.u8(gaps.causes[range.clone()]
        .iter()
        .map(|cause| texts.cause(*cause) as u8));
    frame.u32(range.map(|row| row as u32));
    Some(frame.finish())
}

/// Returns the details of a part of a gap by its index among the parts of all gaps; `None` for no such part.
pub fn gap(analysed: &AnalysedTrace, row: usize) -> Option<Row> {
    let gaps = analysed.gaps();
    let cause = *gaps.causes.get(row)?;
    let gpu = gaps.bounds.partition_point(|start| *start <= row) - 1;
    let (start_ns, duration_ns) = (gaps.start_ns[row], gaps.duration_ns[row]);
    let first = gaps.firsts[row] as usize;
    let field = |name, value: &dyn ToString, meaning| Field {
        name,
        value: Some(value.to_string()),
        meaning,
    };
    let facts = cause.facts(analysed.snapshot.vocabulary.words().api);
    Some(Row {
        table: "gaps".to_owned(),
        row,
        title: cause.as_str().to_owned(),
        start_ns: Some(start_ns),
        duration_ns: Some(duration_ns),
        track: Some(TrackId::Gaps(gpu as u32).to_string()),
        fields: vec![
            field("cause", &facts.name, "Why the device ran nothing."),
            field("start_ns", &start_ns, "When this part of the gap began."),
            field("duration_ns", &duration_ns, "How long it lasted."),
        ],
        gap: analysed.finder().at(gpu, gaps.start_ns[first]),
        ..Row::default()
    })
}

/// Makes the frame of a counter; `None` when the trace has no such counter.
pub fn counter(analysed: &AnalysedTrace, id: TrackId) -> Option<Vec<u8>> {
    let TrackId::Counter(key) = id else {
        return None;
    };
    let snapshot = &analysed.snapshot;
    let is_it = |counter: &&Counter| counter.key == key;
    // The counter of work that was submitted and has no times yet is listed without values.
    let listed = counters::listed(analysed.timeline.trace, snapshot.vocabulary.gpus());
    let counter = (analysed.counters().iter().find(is_it)).or_else(|| listed.iter().find(is_it))?;
    let steps = counter.steps();
    let header = CounterHeader {
        generation: snapshot.generation,
        unit: counter.unit,
    };
    let columns = [("at", ColumnType::F64), ("value", ColumnType::F64)];
    let mut frame = Frame::new(header, steps.len(), &columns);
    frame.f64(steps.iter().map(|step| step.at_ns as f64));
    frame.f64(steps.iter().map(|step| step.value.unwrap_or(f64::NAN)));
    Some(frame.finish())
}

/// Analyses a range of time. Returns the verdict, gaps, kernels and transfers of the range, or the sentence why
/// causes are unknown.
pub fn range(analysed: &AnalysedTrace, window: Interval) -> Value {
    if let Some(sentence) = unknown_because(analysed.timeline.trace, CAUSES) {
        return cut_texts(&OrMissing::<()>::missing(sentence));
    }
    let timeline = analysed.timeline;
    let judged = Judgement::new(analysed.finder(), Some(window), 0, 10, None);
    let gpu_busy_ns = busy_in(timeline, window);
    let mut kernels = kernels::kernels(timeline, analysed.bindings(), Some(window), gpu_busy_ns);
    kernel_bytes::add(timeline, analysed.bindings(), Some(window), &mut kernels);
    limits::limit(timeline, analysed.counters(), Some(window), &mut kernels);
    let transfers = transfers::transfers_in(timeline, Some(window));
    let known = transfers.iter().all(|row| row.unknown_bytes_count == 0);
    let bytes = transfers.iter().filter_map(|row| row.bytes);
    let bytes = bytes.fold(0, u64::saturating_add);
    cut_texts(&RangeFindings {
        window,
        verdict: judged.bound,
        evidence: judged.evidence,
        devices: judged.devices,
        gpu_busy_ns,
        gaps: judged.idle_time.causes.clone(),
        idle_time: judged.idle_time,
        fill: judged.fill,
        dispatch_count: kernels.iter().map(|kernel| kernel.count).sum(),
        kernels,
        transfers,
        transfer_bytes: known.then(|| bytes.to_string()),
    })
}

/// Returns the time of the window in which any GPU ran something, in nanoseconds; `None` where the whole trace has no
/// timed work.
fn busy_in(timeline: &gapscope_timeline::Timeline, window: Interval) -> Option<i64> {
    let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
    let mut inside: Vec<Interval> = works
        .map(|work| work.interval.intersection(window))
        .filter(|i| !i.is_empty())
        .collect();
    gapscope_timeline::intervals::union(&mut inside);
    (timeline.work_window()).map(|_| gapscope_timeline::intervals::length_ns(&inside))
}

/// Makes the graph of the data flow between kernels, in which repetitions are folded. The graph is of all work, or of
/// that in `window`; in its place there may be the sentence why it is unknown.
pub fn graph(analysed: &AnalysedTrace, window: Option<Interval>) -> Value {
    let graph = match unknown_because(analysed.timeline.trace, DATAFLOW) {
        Some(sentence) => Err(sentence),
        None => (analysed.flow())
            .graph(window, MAX_GRAPH_NODES, MAX_GRAPH_ITEMS)
            .map_err(|unknown| unknown.to_string()),
    };
    cut_texts(&match graph {
        Ok(graph) => OrMissing::There(graph),
        Err(sentence) => OrMissing::missing(sentence),
    })
}

/// Finds the dispatches and transfers on which the row of a table depends (predecessors), and those that depend on
/// that row (successors), or the sentence why they are unknown.
pub fn dependencies(
    analysed: &AnalysedTrace,
    source: DrawnTable,
    row: usize,
) -> OrMissing<Neighbours> {
    if let Some(sentence) = unknown_because(analysed.timeline.trace, DATAFLOW) {
        return OrMissing::missing(sentence);
    }
    let kind = match source {
        DrawnTable::Dispatch => WorkKind::Dispatch,
        DrawnTable::Transfer => WorkKind::Transfer,
        _ => return OrMissing::missing("Only dispatches and transfers have known buffers."),
    };
    let flow = analysed.flow();
    let describe = |found: &Dependency| {
        let source = match found.kind {
            WorkKind::Transfer => DrawnTable::Transfer,
            _ => DrawnTable::Dispatch,
        };
        let buffers = found.buffers.iter().take(MAX_EDGE_BUFFERS);
        Neighbour {
            work: work_link(&analysed.snapshot, source, found.row),
            buffers: buffers.map(|id| cut(&flow.buffer_name(*id))).collect(),
            bytes: found.bytes.to_string(),
            kind: found.hazard,
        }
    };
    match flow.neighbours(kind, row, MAX_NEIGHBOURS) {
        Ok(found) => OrMissing::There(Neighbours {
            predecessors: found.predecessors.iter().map(describe).collect(),
            successors: found.successors.iter().map(describe).collect(),
            note: found.note.unwrap_or_else(|| {
                "By the buffer ranges bound to them: a kernel may touch less than is bound."
                    .to_owned()
            }),
        }),
        Err(unknown) => OrMissing::missing(unknown.to_string()),
    }
}

/// Finds the times for which the label with a path was set: on the device where the trace has such times, otherwise
/// on the host. The first [`MAX_INSTANCES`] are listed.
pub fn instances(analysed: &AnalysedTrace, path: &str) -> Instances {
    let snapshot = &analysed.snapshot;
    let trace = &snapshot.trace;
    let markers = &trace.tables.markers;
    let label = snapshot.texts.find(path);
    let rows = (0..markers.len())
        .filter(|row| Some(snapshot.texts.label_path(markers.label[*row])) == label);
    let mut found: Vec<(Interval, usize)> = rows
        .filter_map(|row| Some((DrawnTable::Marker.times(trace, row)?, row)))
        .collect();
    // Times on the device's clock are those of the work itself and win over the host's.
    let on_device = |row: usize| markers.scope[row] == MarkerScope::CommandBuffer;
    if found.iter().any(|(_, row)| on_device(*row)) {
        found.retain(|(_, row)| on_device(*row));
    }
    found.sort_unstable();
    let instances = found
        .iter()
        .take(MAX_INSTANCES)
        .map(|(times, row)| Instance {
            start_ns: times.start_ns,
            duration_ns: times.length_ns(),
            track: (DrawnTable::Marker.track(trace, *row, &snapshot.whole)).to_string(),
            row: *row,
        });
    Instances {
        instances: instances.collect(),
        count: found.len(),
    }
}

/// A side of a comparison.
pub struct Side {
    pub store: Arc<Store>,
    pub extent: Extent,
}

/// The part of a trace that is compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Extent {
    All,
    /// The work under the label of this path.
    Label(String),
    /// The work that starts in it.
    Range(Interval),
}

/// Compares the work of two sides.
///
/// # Errors
/// A trace cannot be read, or a side has no work or no known causes.
pub fn comparison(before: Side, after: Side) -> Result<Value, Error> {
    for side in [&before, &after] {
        if let Some(sentence) = unknown_because(&side.store.full()?.trace, CAUSES) {
            let name = side.store.name();
            return Err(Error::NotComparable(format!("{name}: {sentence}")));
        }
    }
    let (before, after) = (cost(before)?, cost(after)?);
    for (work, side) in [(&before, "before"), (&after, "after")] {
        if work.is_empty() {
            return Err(Error::NotComparable(format!(
                "The side {side}, {}, has no work.",
                cut(&work.name)
            )));
        }
    }
    Ok(compared(before, after))
}

/// Compares two sides that have work. Lists the first [`MAX_COMPARED_KERNELS`] kernels only.
pub fn compared(before: WorkCost, after: WorkCost) -> Value {
    let mut comparison = compare(before, after);
    comparison.kernels.truncate(MAX_COMPARED_KERNELS);
    cut_texts(&comparison)
}

/// Asks the analysis thread of a side for its cost.
fn cost(Side { store, extent }: Side) -> Result<WorkCost, Error> {
    store
        .analyst()
        .ask_of_all(move |analysed| cost_of(analysed, &extent))
}

/// Computes the cost of a side.
pub fn cost_of(analysed: &AnalysedTrace, extent: &Extent) -> WorkCost {
    let (timeline, bindings) = (analysed.timeline, analysed.bindings());
    match extent {
        Extent::All => WorkCost::from_trace(timeline, bindings, analysed.name),
        Extent::Range(window) => {
            let seconds = |ns: i64| format!("{:.6} s", ns as f64 / 1e9);
            let name = format!(
                "{} from {} to {}",
                analysed.name,
                seconds(window.start_ns),
                seconds(window.end_ns)
            );
            WorkCost::from_window(timeline, bindings, &name, *window)
        }
        // The page knows long paths only in their cut form.
        Extent::Label(path) => {
            let first_uses = Some(analysed.first_uses());
            let matches = |of: &str| cut(of) == *path;
            WorkCost::from_label_path(timeline, bindings, path, first_uses, matches)
        }
    }
}
