//! Equal work: two parts of a trace, or two traces, that do the same work in different ways.
//!
//! A faster program leaves the device idle for longer between its kernels, so a busy share says nothing about speed.
//! What counts is what the same work costs: dispatches, bytes, busy time, time from begin to end; each for one
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
pub struct Work {
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
    /// From the begin of its first piece to the end of its last; where pieces of the other work lie between, the sum
    /// over the stretches without them.
    pub wall_ns: Option<i64>,
}

/// One figure of two works, each for one evaluation where both are known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// `dispatches`, `bytes bound`, `transfer bytes`, `GPU busy ns`, `wall ns`.
    pub what: &'static str,
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
    pub before: Work,
    /// The work after.
    pub after: Work,
    /// True when the figures in `ratios` are for one evaluation; else for all of the work.
    pub per_evaluation: bool,
    /// The figures.
    pub ratios: Vec<Ratio>,
    /// What they mean, in sentences.
    pub sentences: Vec<String>,
}

impl Work {
    /// The work under each of `labels`, with all that is inside these labels. A label counts wherever it nests.
    pub fn of_labels(timeline: &Timeline, bindings: &BindingSets, labels: &[&str]) -> Vec<Work> {
        let tree = LabelTree::of(timeline.trace);
        let own = |node: usize| labels.iter().position(|label| *label == tree.text(node));
        of_nodes(timeline, bindings, labels, &tree, &own)
    }

    /// The work under the labels whose path (texts from the outermost label on, joined by ` / `) `is_meant`, with all
    /// that is inside them. Labels of one text in different places are different labels here.
    pub fn of_label_path(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Work {
        let tree = LabelTree::of(timeline.trace);
        let own = |node: usize| is_meant(&tree.path(node)).then_some(0);
        let mut works = of_nodes(timeline, bindings, &[name], &tree, &own);
        works.pop().unwrap_or_default()
    }

    /// All work of a trace, which did it `evaluations` times.
    pub fn of_trace(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        evaluations: Option<u64>,
    ) -> Work {
        let mut works = measure(timeline, bindings, &[name], &|_, _| Some(0));
        Work {
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
    ) -> Work {
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
) -> Vec<Work> {
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

/// Measures the parts of a trace; `part` says of a label's row and a begin which part they belong to.
fn measure(
    timeline: &Timeline,
    bindings: &BindingSets,
    names: &[&str],
    part: &dyn Fn(u32, Option<i64>) -> Option<usize>,
) -> Vec<Work> {
    let tables = &timeline.trace.tables;
    let mut works: Vec<Work> = (names.iter())
        .map(|name| Work {
            name: (*name).to_owned(),
            bound_read_bytes: Some(0),
            bound_written_bytes: Some(0),
            transfer_bytes: Some(0),
            ..Work::default()
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

    let mut timed: Vec<(Interval, usize)> = (timeline.gpus.iter())
        .flat_map(|gpu| &gpu.works)
        .filter_map(|work| {
            let part = part(timeline.label_row_of(work), Some(work.interval.start_ns))?;
            Some((work.interval, part))
        })
        .collect();
    if !timed.is_sorted() {
        timed.sort();
    }
    for (index, work) in works.iter_mut().enumerate() {
        let mine = || {
            timed
                .iter()
                .filter(|(_, part)| *part == index)
                .map(|(interval, _)| *interval)
        };
        if mine().next().is_some() {
            work.gpu_busy_ns = Some(union_length_ns(mine()));
            work.wall_ns = Some(0);
        }
    }
    for stretch in timed.chunk_by(|a, b| a.1 == b.1) {
        let whole = stretch
            .iter()
            .map(|(interval, _)| *interval)
            .reduce(Interval::hull);
        let wall_ns = works[stretch[0].1].wall_ns.get_or_insert(0);
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
    let works = Work::of_labels(timeline, bindings, &[before, after]);
    let [before, after] = <[Work; 2]>::try_from(works).ok()?;
    (!before.is_empty() && !after.is_empty()).then(|| compare(before, after))
}

/// Compares two works that are equal in what they do.
pub fn compare(before: Work, after: Work) -> WorkComparison {
    let per_evaluation =
        before.evaluations.is_some_and(|n| n > 0) && after.evaluations.is_some_and(|n| n > 0);
    let each = |work: &Work, figure: Option<f64>| match work.evaluations {
        Some(evaluations) if per_evaluation => figure.map(|figure| figure / evaluations as f64),
        _ => figure,
    };
    let ratio = |what, figure: &dyn Fn(&Work) -> Option<f64>| {
        let (before, after) = (each(&before, figure(&before)), each(&after, figure(&after)));
        Ratio {
            what,
            before,
            after,
            ratio: before
                .zip(after)
                .filter(|(_, after)| *after > 0.0)
                .map(|(before, after)| before / after),
        }
    };
    let ratios = vec![
        ratio("dispatches", &|work| Some(work.dispatch_count as f64)),
        ratio("bytes bound", &|work| {
            work.bound_bytes().map(|bytes| bytes as f64)
        }),
        ratio("transfer bytes", &|work| {
            work.transfer_bytes.map(|bytes| bytes as f64)
        }),
        ratio("GPU busy ns", &|work| work.gpu_busy_ns.map(|ns| ns as f64)),
        ratio("wall ns", &|work| work.wall_ns.map(|ns| ns as f64)),
    ];
    let sentences = sentences(&before, &after, &ratios, per_evaluation);
    WorkComparison {
        before,
        after,
        per_evaluation,
        ratios,
        sentences,
    }
}

fn sentences(before: &Work, after: &Work, ratios: &[Ratio], per_evaluation: bool) -> Vec<String> {
    let scope = match per_evaluation {
        true => "For one evaluation",
        false => "In all",
    };
    let mut sentences = Vec::new();
    let figures = |at: usize| ratios[at].before.zip(ratios[at].after);
    if let Some((a, b)) = figures(0) {
        sentences.push(format!(
            "{scope}, {} ran {b:.1} dispatches where {} ran {a:.1}.",
            after.name, before.name
        ));
    }
    if let Some((a, b)) = figures(1) {
        sentences.push(format!(
            "{scope}, dispatches of {} could reach {} through their bindings where those of {} could reach {}.",
            after.name,
            Bytes(b),
            before.name,
            Bytes(a)
        ));
    }
    let Some((a, b)) = figures(3) else {
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
    let busy_share = |work: &Work| Some(ratio(work.gpu_busy_ns?, work.wall_ns?));
    if let (Some(first), Some(second), Some((wall_before, wall_after))) =
        (busy_share(before), busy_share(after), figures(4))
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
