//! Equal work: two parts of a trace, or two traces, that do the same work in different ways.
//!
//! A faster program leaves the device idle for longer between its kernels, so a busy share says nothing about speed.
//! What counts is what the same work costs: dispatches, bytes, busy time, time from start to end; each for one
//! evaluation where the trace says how often the work was done.
//!
//! What this cannot know: whether both parts really do equal work. That is the caller's claim.

use crate::bound_bytes::BindingSets;
use crate::intervals::{Interval, union_length_ns};
use crate::labels::LabelTree;
use crate::quantity::{Bytes, Nanoseconds, Percent, ratio};
use crate::timeline::{Timeline, WorkKind};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::Table;
use serde::Serialize;

/// What a part of a trace cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkCost {
    /// The label, or what the caller calls the trace.
    pub name: String,
    /// How often the work was done: instances of the label. Absent when it is not known; then figures are totals and
    /// comparing them is right only when both sides did the work equally often.
    pub evaluations: Option<u64>,
    /// Dispatches.
    pub dispatch_count: u64,
    /// Bytes of the ranges bound for reading, summed over dispatches; absent unless all dispatches have bindings.
    pub bound_read_bytes: Option<u64>,
    /// The same for writing.
    pub bound_written_bytes: Option<u64>,
    /// Transfers.
    pub transfer_count: u64,
    /// Their bytes, where all are known.
    pub transfer_bytes: Option<u64>,
    /// Time in which at least one piece of the work ran.
    pub gpu_busy_ns: Option<i64>,
    /// From the start of its first piece to the end of its last; where pieces of the other work lie between, the sum
    /// over the stretches without them.
    pub wall_ns: Option<i64>,
}

/// What of two works is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Figure {
    /// Dispatches.
    #[default]
    #[serde(rename = "dispatches")]
    Dispatches,
    /// Bytes of the ranges bound for reading and for writing.
    #[serde(rename = "bytes bound")]
    BoundBytes,
    /// Bytes that transfers wrote.
    #[serde(rename = "transfer bytes")]
    TransferBytes,
    /// Time in which the GPU was busy.
    #[serde(rename = "GPU busy ns")]
    GpuBusy,
    /// Time from the start to the end.
    #[serde(rename = "wall ns")]
    Wall,
}

impl Figure {
    const ALL: [Figure; 5] = [
        Figure::Dispatches,
        Figure::BoundBytes,
        Figure::TransferBytes,
        Figure::GpuBusy,
        Figure::Wall,
    ];

    fn of(self, work: &WorkCost) -> Option<f64> {
        match self {
            Figure::Dispatches => Some(work.dispatch_count as f64),
            Figure::BoundBytes => work.bound_bytes().map(|bytes| bytes as f64),
            Figure::TransferBytes => work.transfer_bytes.map(|bytes| bytes as f64),
            Figure::GpuBusy => work.gpu_busy_ns.map(|ns| ns as f64),
            Figure::Wall => work.wall_ns.map(|ns| ns as f64),
        }
    }
}

/// One figure of two works, each for one evaluation where both are known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// Of what.
    #[serde(rename = "what")]
    pub figure: Figure,
    /// Before.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    /// `before / after`: above 1, after needs less.
    pub ratio: Option<f64>,
}

/// Two works compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkComparison {
    /// The work before.
    pub before: WorkCost,
    /// The work after.
    pub after: WorkCost,
    /// True when the figures in `ratios` are for one evaluation; else for all of the work.
    pub per_evaluation: bool,
    /// The figures.
    pub ratios: Vec<Ratio>,
    /// What they mean, in sentences.
    pub sentences: Vec<String>,
}

impl WorkCost {
    /// The work under each of `labels`, with all that is inside these labels. A label counts wherever it nests.
    pub fn of_labels(
        timeline: &Timeline,
        bindings: &BindingSets,
        labels: &[&str],
    ) -> Vec<WorkCost> {
        let tree = LabelTree::of(timeline.trace);
        let own = |node: usize| labels.iter().position(|label| *label == tree.text(node));
        of_nodes(timeline, bindings, labels, &tree, &own)
    }

    /// The work under the labels whose path (texts from the outermost label on, joined by ` / `) `matches`, with all
    /// that is inside them. Labels of one text in different places are different labels here.
    pub fn of_label_path(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        matches: impl Fn(&str) -> bool,
    ) -> WorkCost {
        let tree = LabelTree::of(timeline.trace);
        let own = |node: usize| matches(&tree.path(node)).then_some(0);
        let mut works = of_nodes(timeline, bindings, &[name], &tree, &own);
        works.pop().unwrap_or_default()
    }

    /// All work of a trace, which did it `evaluations` times.
    pub fn of_trace(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        evaluations: Option<u64>,
    ) -> WorkCost {
        let mut works = measure(timeline, bindings, &[name], &|_, _| Some(0));
        WorkCost {
            evaluations,
            ..works.pop().unwrap_or_default()
        }
    }

    /// The work that starts in `window`.
    pub fn of_window(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        window: Interval,
    ) -> WorkCost {
        let inside = |start_ns: i64| window.contains(start_ns);
        let part = |_, start_ns: Option<i64>| start_ns.is_some_and(inside).then_some(0);
        let mut works = measure(timeline, bindings, &[name], &part);
        works.pop().unwrap_or_default()
    }

    /// True when there is no work in it.
    pub fn is_empty(&self) -> bool {
        self.dispatch_count + self.transfer_count == 0 && self.gpu_busy_ns.is_none()
    }

    fn bound_bytes(&self) -> Option<u64> {
        Some(
            self.bound_read_bytes?
                .saturating_add(self.bound_written_bytes?),
        )
    }
}

/// Measures the work under labels; `own` says of a label which part begins with it.
fn of_nodes(
    timeline: &Timeline,
    bindings: &BindingSets,
    names: &[&str],
    tree: &LabelTree,
    own: &dyn Fn(usize) -> Option<usize>,
) -> Vec<WorkCost> {
    let mut part_of_node: Vec<Option<usize>> = Vec::with_capacity(tree.len());
    for node in 0..tree.len() {
        let around = tree.parent(node).and_then(|parent| part_of_node[parent]);
        part_of_node.push(own(node).or(around));
    }
    let part = |label, _| {
        let node = tree.node_of_row(label) as usize;
        part_of_node.get(node).copied().flatten()
    };
    let mut works = measure(timeline, bindings, names, &part);
    for (node, instances) in tree.instances(timeline.trace).into_iter().enumerate() {
        if let Some(part) = own(node).filter(|_| instances > 0) {
            *works[part].evaluations.get_or_insert(0) += instances;
        }
    }
    works
}

/// Timed work of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    interval: Interval,
    part: usize,
}

/// Measures the parts of a trace; `part` says of a label's row and a start which part they belong to.
fn measure(
    timeline: &Timeline,
    bindings: &BindingSets,
    names: &[&str],
    part: &dyn Fn(u32, Option<i64>) -> Option<usize>,
) -> Vec<WorkCost> {
    let tables = &timeline.trace.tables;
    let mut works: Vec<WorkCost> = (names.iter())
        .map(|name| WorkCost {
            name: (*name).to_owned(),
            bound_read_bytes: Some(0),
            bound_written_bytes: Some(0),
            transfer_bytes: Some(0),
            ..WorkCost::default()
        })
        .collect();
    // What has no times of its own begins with its command buffer.
    let start_ns = |own: Option<i64>, command_buffer: u32| {
        let starts = &tables.command_buffers.start_ns;
        own.or_else(|| *starts.get(command_buffer as usize)?)
    };
    let add = |sum: Option<u64>, bytes: Option<u64>| Some(sum?.saturating_add(bytes?));
    let dispatches = &timeline.dispatches;
    let mut dispatch = |row: usize, start_ns: Option<i64>| {
        if let Some(part) = part(dispatches.labels[row], start_ns) {
            let work = &mut works[part];
            let bytes = bindings.bytes(dispatches.binding_set(row));
            work.dispatch_count += 1;
            work.bound_read_bytes = add(work.bound_read_bytes, bytes.map(|b| b.read_bytes));
            work.bound_written_bytes =
                add(work.bound_written_bytes, bytes.map(|b| b.written_bytes));
        }
    };
    for work in timeline.gpus.iter().flat_map(|gpu| &gpu.works) {
        if work.kind() == WorkKind::Dispatch {
            dispatch(work.row(), Some(work.interval.start_ns));
        }
    }
    for untimed in &dispatches.untimed {
        let start_ns = start_ns(untimed.start_ns, untimed.command_buffer);
        dispatch(untimed.row as usize, start_ns);
    }
    let rows = &tables.transfers;
    for row in 0..rows.len() {
        let command_buffer = rows.command_buffer[row];
        let command_buffer = command_buffer.map_or(NONE, |id| timeline.command_buffer_ids.row(id));
        let around = tables.command_buffers.label.get(command_buffer as usize);
        let label = rows.label[row].or(around.copied().flatten());
        let label = label.map_or(NONE, |id| timeline.label_ids.row(id));
        let start_ns = start_ns(rows.start_ns[row], command_buffer);
        if let Some(part) = part(label, start_ns) {
            works[part].transfer_count += 1;
            works[part].transfer_bytes = add(works[part].transfer_bytes, rows.bytes[row]);
        }
    }

    let mut timed: Vec<Piece> = (timeline.gpus.iter())
        .flat_map(|gpu| &gpu.works)
        .filter_map(|work| {
            let part = part(timeline.label_row_of(work), Some(work.interval.start_ns))?;
            Some(Piece {
                interval: work.interval,
                part,
            })
        })
        .collect();
    if !timed.is_sorted() {
        timed.sort();
    }
    for (index, work) in works.iter_mut().enumerate() {
        let mine = || {
            timed
                .iter()
                .filter(|piece| piece.part == index)
                .map(|piece| piece.interval)
        };
        if mine().next().is_some() {
            work.gpu_busy_ns = Some(union_length_ns(mine()));
            work.wall_ns = Some(0);
        }
    }
    for stretch in timed.chunk_by(|a, b| a.part == b.part) {
        let whole = stretch
            .iter()
            .map(|piece| piece.interval)
            .reduce(Interval::hull);
        let wall_ns = works[stretch[0].part].wall_ns.get_or_insert(0);
        *wall_ns = wall_ns.saturating_add(whole.unwrap_or_default().length_ns());
    }
    works
}

/// Compares the work under two labels of one trace. `None` when one of them has no work.
pub fn equal_work(
    timeline: &Timeline,
    bindings: &BindingSets,
    before: &str,
    after: &str,
) -> Option<WorkComparison> {
    let works = WorkCost::of_labels(timeline, bindings, &[before, after]);
    let [before, after] = <[WorkCost; 2]>::try_from(works).ok()?;
    (!before.is_empty() && !after.is_empty()).then(|| compare(before, after))
}

/// Compares two works that are equal in what they do.
pub fn compare(before: WorkCost, after: WorkCost) -> WorkComparison {
    let per_evaluation =
        before.evaluations.is_some_and(|n| n > 0) && after.evaluations.is_some_and(|n| n > 0);
    let each = |work: &WorkCost, figure: Option<f64>| match work.evaluations {
        Some(evaluations) if per_evaluation => figure.map(|figure| figure / evaluations as f64),
        _ => figure,
    };
    let ratio = |figure: Figure| {
        let [before, after] = [&before, &after].map(|work| each(work, figure.of(work)));
        Ratio {
            figure,
            before,
            after,
            ratio: before
                .zip(after)
                .filter(|(_, after)| *after > 0.0)
                .map(|(before, after)| before / after),
        }
    };
    let ratios = Figure::ALL.map(ratio).to_vec();
    let sentences = sentences(&before, &after, &ratios, per_evaluation);
    WorkComparison {
        before,
        after,
        per_evaluation,
        ratios,
        sentences,
    }
}

fn sentences(
    before: &WorkCost,
    after: &WorkCost,
    ratios: &[Ratio],
    per_evaluation: bool,
) -> Vec<String> {
    let scope = match per_evaluation {
        true => "For one evaluation",
        false => "In all",
    };
    let mut sentences = Vec::new();
    let figures = |figure: Figure| {
        let ratio = ratios.iter().find(|ratio| ratio.figure == figure)?;
        ratio.before.zip(ratio.after)
    };
    if let Some((a, b)) = figures(Figure::Dispatches) {
        sentences.push(format!(
            "{scope}, {} ran {b:.1} dispatches where {} ran {a:.1}.",
            after.name, before.name
        ));
    }
    if let Some((a, b)) = figures(Figure::BoundBytes) {
        sentences.push(format!(
            "{scope}, dispatches of {} could reach {} through their bindings where those of {} could reach {}.",
            after.name,
            Bytes(b),
            before.name,
            Bytes(a)
        ));
    }
    let Some((a, b)) = figures(Figure::GpuBusy) else {
        sentences.push("GPU times of one of the two are not known.".to_owned());
        return sentences;
    };
    let difference = match b <= a {
        true => format!("{} saved", Nanoseconds((a - b) as i64)),
        false => format!("{} more", Nanoseconds((b - a) as i64)),
    };
    sentences.push(format!(
        "{scope}, equal work kept the GPU busy for {} in {} and for {} in {}: {difference}.",
        Nanoseconds(a as i64),
        before.name,
        Nanoseconds(b as i64),
        after.name
    ));
    let busy_share = |work: &WorkCost| Some(ratio(work.gpu_busy_ns?, work.wall_ns?));
    if let (Some(first), Some(second), Some((wall_before, wall_after))) =
        (busy_share(before), busy_share(after), figures(Figure::Wall))
        && second < first
        && b < a
        && wall_after <= wall_before
    {
        sentences.push(format!(
            "The GPU is busy for {} of the time in {} and for {} in {}: the empty space after is saved time, for equal work ended sooner.",
            Percent(first),
            before.name,
            Percent(second),
            after.name
        ));
    }
    sentences
}
