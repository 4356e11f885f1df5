//! Answers that take the analyses.

use crate::Error;
use crate::analyst::Analysed;
use crate::frame::{Frame, Type};
use crate::part::{self, Asked, Part};
use crate::rows::work_link;
use crate::store::Store;
use crate::texts::cut;
use crate::track::{Source, TrackId};
use gapscope_analysis::cause_note::CauseNote;
use gapscope_analysis::equal_work::{WorkCost, compare};
use gapscope_analysis::unread::{CAUSES, DATAFLOW, unknown_because};
use gapscope_analysis::verdict::Judgement;
use gapscope_analysis::{activity, kernels, limits, transfers};
use gapscope_report::{Report, json as report};
use gapscope_timeline::WorkKind;
use gapscope_timeline::counters::{self, Counter};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::parallel;
use gapscope_trace::tables::{MarkerScope, Table};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Slices of the picture by cause.
const SLICES: usize = 1024;
/// The graph is laid out by the page, which takes so many nodes well.
const MOST_NODES: usize = 150;
/// The graph is of so many dispatches and transfers: some seconds.
const MOST_ITEMS: usize = 1_000_000;
const MOST_NEIGHBOURS: usize = 64;
const MOST_INSTANCES: usize = 10_000;
/// Kernels whose change is listed.
const MOST_KERNELS: usize = 200;

/// The part of an answer that is missing, and why.
pub fn missing(sentence: impl Into<String>) -> Value {
    json!({"missing": sentence.into()})
}

/// What `gapscope report --json` prints, and what the page needs besides.
pub fn findings(analysed: &Analysed) -> Arc<Vec<u8>> {
    let answer = analysed
        .findings
        .get_or_init(|| Arc::new(make_findings(analysed)));
    answer.clone()
}

fn make_findings(analysed: &Analysed) -> Vec<u8> {
    let snapshot = &analysed.snapshot;
    let trace = analysed.timeline.trace;
    let timeline = analysed.timeline;
    let (findings, activity) = parallel::both(|| analysed.found(), || activity(timeline, SLICES));
    let text = report::text_with_activity(&Report {
        trace: analysed.name,
        manifest: &trace.manifest,
        findings,
        activity: &activity,
        label: None,
        remarks: analysed.remarks,
        top: usize::MAX,
        each_layer: false,
    });
    let mut answer: Value = text
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let names = &analysed.timeline.kernel_names;
    let mut rows: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for row in 0..trace.tables.kernels.len() {
        rows.entry(names.name(row)).or_default().push(row);
    }
    let kernel_rows: Vec<Value> = findings
        .kernels
        .iter()
        .map(|kernel| json!({"name": snapshot.texts.find(&kernel.name), "kernels": rows.get(kernel.name.as_str()).map_or(&[][..], |rows| &rows[..rows.len().min(1000)])}))
        .collect();
    let label_names: Vec<Option<u32>> = findings
        .labels
        .iter()
        .map(|label| snapshot.texts.find(&label.path))
        .collect();
    let gap_notes: Vec<Value> = (findings.gaps.iter())
        .map(|total| {
            let CauseNote { code, advice } = CauseNote::new(findings, total);
            json!({"code": code, "advice": advice})
        })
        .collect();
    if let Value::Object(answer) = &mut answer {
        answer.insert("generation".to_owned(), snapshot.generation.into());
        answer.insert("kernel_rows".to_owned(), kernel_rows.into());
        answer.insert("label_names".to_owned(), json!(label_names));
        answer.insert("gap_notes".to_owned(), gap_notes.into());
    }
    // Names of megabytes have no place in tables.
    cut_texts(&mut answer);
    answer.to_string().into_bytes()
}

/// Cuts long texts, as all that lists show are.
pub fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > 1000 => *text = cut(text),
        Value::Array(values) => values.iter_mut().for_each(cut_texts),
        Value::Object(values) => values.values_mut().for_each(cut_texts),
        _ => {}
    }
}

/// The frame of the gaps of a GPU, or of a part of them; `None` when there is no such GPU.
pub fn gaps(analysed: &Analysed, gpu: usize, asked: Option<Asked>) -> Option<Vec<u8>> {
    let gaps = analysed.gaps();
    let mut range = *gaps.bounds.get(gpu)?..*gaps.bounds.get(gpu + 1)?;
    let mut header = Map::new();
    header.insert("generation".to_owned(), analysed.snapshot.generation.into());
    header.insert("tables".to_owned(), json!(["gaps"]));
    let texts = &analysed.snapshot.texts;
    if let Some(asked) = asked {
        let times = |row: usize| {
            let start_ns = gaps.start_ns[row];
            Interval::new(start_ns, start_ns + gaps.duration_ns[row])
        };
        match Part::of(&[range.start, range.end], asked, times) {
            Part::Rows(lanes) => range = lanes.into_iter().next()?,
            Part::Slices(lanes) => {
                let name = |row: usize| texts.cause(gaps.causes[row]);
                return Some(part::frame(&lanes, asked.range, header, name));
            }
        }
        part::note(&mut header, asked.range);
    } else {
        header.insert("whole".to_owned(), true.into());
    }
    let rows = range.len();
    header.insert("lanes".to_owned(), json!([0, rows]));
    let durations = &gaps.duration_ns[range.clone()];
    let long = durations.iter().any(|ns| *ns > i64::from(u32::MAX));
    let duration = if long { Type::F64 } else { Type::U32 };
    let columns = [
        ("start", Type::F64),
        ("duration", duration),
        ("name", Type::U8),
        ("row", Type::U32),
    ];
    let mut frame = Frame::new(header, rows, &columns);
    frame.f64(gaps.start_ns[range.clone()].iter().map(|ns| *ns as f64));
    match long {
        true => frame.f64(durations.iter().map(|ns| *ns as f64)),
        false => frame.u32(durations.iter().map(|ns| *ns as u32)),
    }
    // Causes are among the first texts of every trace.
    frame.u8(gaps.causes[range.clone()]
        .iter()
        .map(|cause| texts.cause(*cause) as u8));
    frame.u32(range.map(|row| row as u32));
    Some(frame.finish())
}

/// The details of a part of a gap.
pub fn gap(analysed: &Analysed, row: usize) -> Option<Value> {
    let gaps = analysed.gaps();
    let cause = *gaps.causes.get(row)?;
    let gpu = gaps.bounds.partition_point(|start| *start <= row) - 1;
    let part = Interval::new(
        gaps.start_ns[row],
        gaps.start_ns[row] + gaps.duration_ns[row],
    );
    let first = gaps.firsts[row] as usize;
    let gap = analysed.finder().at(gpu, gaps.start_ns[first]);
    Some(json!({
        "table": "gaps",
        "row": row,
        "title": cause,
        "start_ns": part.start_ns,
        "duration_ns": part.length_ns(),
        "track": TrackId::Gaps(gpu as u32).to_string(),
        "fields": [
            {"name": "cause", "value": cause.facts(analysed.snapshot.vocabulary.words().api).name, "meaning": "Why the device ran nothing."},
            {"name": "start_ns", "value": part.start_ns.to_string(), "meaning": "When this part of the gap began."},
            {"name": "duration_ns", "value": part.length_ns().to_string(), "meaning": "How long it lasted."},
        ],
        "gap": gap,
        "links": [],
        "link_counts": {},
    }))
}

/// A counter as a frame; `None` when the trace has no such counter.
pub fn counter(analysed: &Analysed, id: TrackId) -> Option<Vec<u8>> {
    let TrackId::Counter(key) = id else {
        return None;
    };
    let snapshot = &analysed.snapshot;
    let is_it = |counter: &&Counter| counter.key == key;
    // Of work that was submitted and has no times yet there is a counter, and nothing on it.
    let listed = counters::listed(analysed.timeline.trace, snapshot.vocabulary.gpus());
    let counter = (analysed.counters().iter().find(is_it)).or_else(|| listed.iter().find(is_it))?;
    let steps = counter.steps();
    let mut header = Map::new();
    header.insert("unit".to_owned(), counter.unit.as_str().into());
    header.insert("generation".to_owned(), snapshot.generation.into());
    let columns = [("at", Type::F64), ("value", Type::F64)];
    let mut frame = Frame::new(header, steps.len(), &columns);
    frame.f64(steps.iter().map(|step| step.at_ns as f64));
    frame.f64(steps.iter().map(|step| step.value.unwrap_or(f64::NAN)));
    Some(frame.finish())
}

/// The analyses of a range.
pub fn range(analysed: &Analysed, window: Interval) -> Value {
    if let Some(sentence) = unknown_because(analysed.timeline.trace, CAUSES) {
        return missing(sentence);
    }
    let timeline = analysed.timeline;
    let judged = Judgement::new(timeline, Some(window), 0, 10);
    let busy_ns = busy_in(timeline, window);
    let mut kernels = kernels::kernels(timeline, analysed.bindings(), Some(window), busy_ns);
    limits::limit(timeline, analysed.counters(), Some(window), &mut kernels);
    let transfers = transfers::transfers_in(timeline, Some(window));
    let known = transfers.iter().all(|row| row.unknown_bytes_count == 0);
    let bytes = transfers
        .iter()
        .map(|row| row.bytes)
        .fold(0, u64::saturating_add);
    let mut answer = json!({
        "window": window,
        "verdict": judged.bound,
        "verdict_sentence": judged.evidence.sentence,
        "verdict_evidence": judged.evidence.parts,
        "devices": judged.devices,
        "gpu_busy_ns": busy_ns,
        "gaps": judged.idle_time.causes,
        "idle_time": judged.idle_time,
        "fill": judged.fill,
        "dispatch_count": kernels.iter().map(|kernel| kernel.count).sum::<u64>(),
        "kernels": kernels,
        "transfers": transfers,
        "transfer_bytes": known.then(|| bytes.to_string()),
    });
    cut_texts(&mut answer);
    answer
}

/// Time in which any GPU ran something.
fn busy_in(timeline: &gapscope_timeline::Timeline, window: Interval) -> Option<i64> {
    let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
    let mut inside: Vec<Interval> = works
        .map(|work| work.interval.intersection(window))
        .filter(|i| !i.is_empty())
        .collect();
    gapscope_timeline::intervals::union(&mut inside);
    timeline
        .work_window()
        .map(|_| gapscope_timeline::intervals::length_ns(&inside))
}

/// The folded graph.
pub fn graph(analysed: &Analysed, window: Option<Interval>) -> Value {
    if let Some(sentence) = unknown_because(analysed.timeline.trace, DATAFLOW) {
        return missing(sentence);
    }
    match analysed.flow().graph(window, MOST_NODES, MOST_ITEMS) {
        Ok(graph) => {
            let edge = |edge: &gapscope_analysis::dataflow::FlowEdge| json!({"from": edge.from, "to": edge.to, "count": edge.count, "buffers": edge.buffers, "bytes": edge.bytes.to_string()});
            let mut answer = json!({
                "nodes": graph.nodes,
                "edges": graph.edges.iter().map(edge).collect::<Vec<_>>(),
                "folded": graph.folded,
                "dispatches": graph.dispatch_count,
                "considered": graph.considered_count,
                "unknown": graph.unknown_count,
            });
            cut_texts(&mut answer);
            answer
        }
        Err(unknown) => missing(unknown.to_string()),
    }
}

/// What a dispatch or transfer depends on, and what depends on it.
pub fn dependencies(analysed: &Analysed, source: Source, row: usize) -> Value {
    if let Some(sentence) = unknown_because(analysed.timeline.trace, DATAFLOW) {
        return missing(sentence);
    }
    let kind = match source {
        Source::Dispatch => WorkKind::Dispatch,
        Source::Transfer => WorkKind::Transfer,
        _ => return missing("Only dispatches and transfers have known buffers."),
    };
    let flow = analysed.flow();
    let describe = |found: &gapscope_analysis::dataflow::Dependency| {
        let source = match found.kind {
            WorkKind::Transfer => Source::Transfer,
            _ => Source::Dispatch,
        };
        let mut link = work_link(&analysed.snapshot, source, found.row);
        let buffers = found
            .buffers
            .iter()
            .take(8)
            .map(|id| cut(&flow.buffer_name(*id)));
        link["buffers"] = buffers.collect();
        link["bytes"] = found.bytes.to_string().into();
        link["kind"] = json!(found.hazard);
        link
    };
    match flow.neighbours(kind, row, MOST_NEIGHBOURS) {
        Ok(found) => json!({
            "predecessors": found.predecessors.iter().map(describe).collect::<Vec<_>>(),
            "successors": found.successors.iter().map(describe).collect::<Vec<_>>(),
            "note": found.note.unwrap_or_else(|| {
                "By the buffer ranges bound to them: a kernel may touch less than is bound.".to_owned()
            }),
        }),
        Err(unknown) => missing(unknown.to_string()),
    }
}

/// Where a label was set.
pub fn instances(analysed: &Analysed, path: &str) -> Value {
    let snapshot = &analysed.snapshot;
    let trace = &snapshot.trace;
    let markers = &trace.tables.markers;
    let label = snapshot.texts.find(path);
    let rows = (0..markers.len())
        .filter(|row| Some(snapshot.texts.label_path(markers.label[*row])) == label);
    let mut found: Vec<(Interval, usize)> = rows
        .filter_map(|row| Some((Source::Marker.times(trace, row)?, row)))
        .collect();
    // The device's times are of the work itself.
    if found
        .iter()
        .any(|(_, row)| markers.scope[*row] == MarkerScope::CommandBuffer)
    {
        found.retain(|(_, row)| markers.scope[*row] == MarkerScope::CommandBuffer);
    }
    found.sort_unstable();
    let instances = found.iter().take(MOST_INSTANCES).map(|(times, row)| {
        json!({
            "start_ns": times.start_ns,
            "duration_ns": times.length_ns(),
            "track": Source::Marker.track(trace, *row, &snapshot.whole).to_string(),
            "row": row,
        })
    });
    json!({"instances": instances.collect::<Vec<_>>(), "count": found.len()})
}

/// A side of a comparison.
pub struct Side {
    pub store: Arc<Store>,
    pub extent: Extent,
}

/// What of a trace is compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Extent {
    All,
    /// The work under the label of this path.
    Label(String),
    /// The work that starts in it.
    Range(Interval),
}

/// Compares equal work.
///
/// # Errors
/// The outer one: a trace cannot be read. The inner one: a sentence, which side has no work.
pub fn comparison(before: Side, after: Side) -> Result<Result<Value, String>, Error> {
    for side in [&before, &after] {
        if let Some(sentence) = unknown_because(&side.store.full()?.trace, CAUSES) {
            return Ok(Err(format!("{}: {sentence}", side.store.name())));
        }
    }
    let (before, after) = (cost(before)?, cost(after)?);
    for (work, side) in [(&before, "before"), (&after, "after")] {
        if work.is_empty() {
            return Ok(Err(format!(
                "The side {side}, {}, has no work.",
                cut(&work.name)
            )));
        }
    }
    Ok(Ok(compared(before, after)))
}

/// Two sides with work, compared.
pub fn compared(before: WorkCost, after: WorkCost) -> Value {
    let mut comparison = compare(before, after);
    comparison.kernels.truncate(MOST_KERNELS);
    let mut answer = json!(comparison);
    cut_texts(&mut answer);
    answer
}

fn cost(Side { store, extent }: Side) -> Result<WorkCost, Error> {
    store
        .analyst()
        .ask_of_all(move |analysed| cost_of(analysed, &extent))
}

/// What a side costs.
pub fn cost_of(analysed: &Analysed, extent: &Extent) -> WorkCost {
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
        // The page knows long paths only as far as it shows them.
        Extent::Label(path) => {
            let first_uses = Some(analysed.first_uses());
            let matches = |of: &str| cut(of) == *path;
            WorkCost::from_label_path(timeline, bindings, path, first_uses, matches)
        }
    }
}
