//! The rows of the tables of labels: the work under each label. [`rows`] makes a row for each node of the tree, and
//! [`sorted`] leaves the unused out and puts siblings in order.

use super::tree::{LabelTree, Node};
use gapscope_timeline::durations::{Durations, GroupedDurations};
use gapscope_timeline::intervals::Busy;
use gapscope_timeline::{Timeline, Work, WorkKind};
use gapscope_trace::ids::SubmissionId;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::SubmissionKind;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// All GPU work under one label path, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct LabelRow {
    /// Texts from the outermost label to this one, joined by ` / `.
    pub path: String,
    /// This label's own text.
    pub text: String,
    /// How many labels are around it.
    pub depth: u32,
    /// How often the label was set; absent when the trace has no markers for it.
    pub instances: Option<u64>,
    /// Dispatches under this label and the labels inside it that nodes of CUDA graphs ran. They have the labels in which the program made
    /// the nodes, inside those around the launches of the graphs.
    pub in_graphs: u64,
    /// Work under this label and the labels inside it.
    pub inclusive: LabelWork,
    /// Work under this label and no label inside it.
    pub exclusive: LabelWork,
}

/// GPU work under a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct LabelWork {
    /// Dispatches, with or without known times.
    pub dispatch_count: u64,
    /// Transfers.
    pub transfer_count: u64,
    /// Durations of the timed dispatches; in `command-buffer` mode of the command buffers, in
    /// `pass` mode of the passes with this label.
    #[serde(flatten)]
    pub durations: Durations,
    /// Time in which at least one piece of its work ran, transfers and opaque work included.
    pub busy_ns: Option<i64>,
}

/// Returns those `labels` that have work or were set, in the tree's order, with siblings sorted by busy time, the
/// greatest first. `labels` has an entry for each node, of which `row` returns the row.
pub(super) fn sorted<T>(tree: &LabelTree, labels: Vec<T>, row: impl Fn(&T) -> &LabelRow) -> Vec<T> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.count()];
    let mut roots = Vec::new();
    for node in 0..tree.count() {
        match tree.parent(node) {
            Some(parent) => children[parent].push(node),
            None => roots.push(node),
        }
    }
    let cost = |node: &usize| {
        let row = row(&labels[*node]);
        (
            Reverse(row.inclusive.busy_ns),
            Reverse(row.inclusive.dispatch_count),
            row.path.clone(),
        )
    };
    for siblings in children.iter_mut().chain([&mut roots]) {
        siblings.sort_by_cached_key(cost);
        siblings.reverse();
    }
    let mut order = Vec::with_capacity(labels.len());
    let mut left = roots;
    while let Some(node) = left.pop() {
        order.push(node);
        left.append(&mut children[node]);
    }
    let used = |row: &LabelRow| {
        let work = &row.inclusive;
        row.instances.is_some()
            || work.busy_ns.is_some()
            || work.dispatch_count + work.transfer_count > 0
    };
    let mut labels: Vec<Option<T>> = labels.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|node| labels[node].take())
        .filter(|label| used(row(label)))
        .collect()
}

/// The command buffers that are launches of CUDA graphs.
struct Graphs {
    /// By row of the table of command buffers; empty where no graph was launched.
    launches: Vec<bool>,
}

impl Graphs {
    fn new(timeline: &Timeline) -> Graphs {
        let tables = &timeline.trace.tables;
        let kinds = &tables.submissions.kind;
        if !kinds.contains(&SubmissionKind::Graph) {
            return Graphs {
                launches: Vec::new(),
            };
        }
        let is_graph = |submission: &SubmissionId| {
            let row = timeline.submission_ids.get(*submission);
            row.is_some_and(|row| kinds[row] == SubmissionKind::Graph)
        };
        let submissions = tables.command_buffers.submission.iter();
        Graphs {
            launches: submissions.map(is_graph).collect(),
        }
    }

    /// Returns true if the command buffer in a row is the launch of a graph.
    #[inline]
    fn contain(&self, command_buffer: u32) -> bool {
        let launch = self.launches.get(command_buffer as usize);
        launch.copied().unwrap_or(false)
    }
}

/// Returns a row for each label, in the tree's order.
pub(super) fn rows(timeline: &Timeline, tree: &LabelTree) -> Vec<LabelRow> {
    let trace = timeline.trace;
    let mut rows: Vec<LabelRow> = Vec::with_capacity(tree.count());
    let instances = tree.instances(trace).into_iter();
    for (node, instances) in instances.enumerate() {
        let Node { text, depth, .. } = tree.nodes[node];
        rows.push(LabelRow {
            path: tree.path(node),
            text: text.to_owned(),
            depth,
            instances: (instances > 0).then_some(instances),
            ..LabelRow::default()
        });
    }
    let tables = &trace.tables;
    for label in timeline.dispatches.labels.iter() {
        if let Some(row) = rows.get_mut(tree.node_of_row(label) as usize) {
            row.exclusive.dispatch_count += 1;
        }
    }
    let transfers = &tables.transfers;
    for (own, command_buffer) in transfers.label.iter().zip(&transfers.command_buffer) {
        let label = own.or_else(|| {
            let row = timeline.command_buffer_ids.get(command_buffer?)?;
            tables.command_buffers.label.at(row)
        });
        if let Some(row) = rows.get_mut(tree.node(label) as usize) {
            row.exclusive.transfer_count += 1;
        }
    }

    let graphs = Graphs::new(timeline);
    let timed_kind = match trace.manifest.sampling_mode {
        SamplingMode::CommandBuffer => WorkKind::CommandBuffer,
        SamplingMode::Pass => WorkKind::Opaque,
        _ => WorkKind::Dispatch,
    };
    let node_of = |work: &Work| tree.node_of_row(timeline.label_row_of(work));
    let mut counts = vec![0; tree.count()];
    match timed_kind {
        WorkKind::Dispatch => {
            let all = rows.iter().map(|row| row.exclusive.dispatch_count as usize);
            counts = all.collect();
            for untimed in &timeline.dispatches.untimed {
                let label = timeline.dispatches.labels.at(untimed.row as usize);
                if let Some(count) = counts.get_mut(tree.node_of_row(label) as usize) {
                    *count -= 1;
                }
            }
        }
        _ => {
            for work in timeline.gpus.iter().flat_map(|gpu| &gpu.works) {
                if work.kind() == timed_kind
                    && let Some(count) = counts.get_mut(node_of(&work) as usize)
                {
                    *count += 1;
                }
            }
        }
    }
    let mut durations = GroupedDurations::new(counts.into_iter(), timeline.longest_ns());
    // The inclusive, then the exclusive busy time of each node.
    let mut busy: Vec<[Option<Busy>; 2]> = vec![[None; 2]; tree.count()];
    for untimed in &timeline.dispatches.untimed {
        let label = timeline.dispatches.labels.at(untimed.row as usize);
        if let Some(row) = rows.get_mut(tree.node_of_row(label) as usize) {
            row.in_graphs += u64::from(graphs.contain(untimed.command_buffer));
        }
    }
    timeline.each_work(|work| {
        let own = node_of(work) as usize;
        if own >= tree.count() {
            return;
        }
        if work.kind() == WorkKind::Dispatch {
            rows[own].in_graphs += u64::from(graphs.contain(work.command_buffer));
        }
        let [_, exclusive] = &mut busy[own];
        exclusive.get_or_insert_default().add(work.interval);
        let mut around = Some(own);
        while let Some(node) = around {
            let [inclusive, _] = &mut busy[node];
            inclusive.get_or_insert_default().add(work.interval);
            around = tree.parent(node);
        }
        if work.kind() == timed_kind {
            durations.push(own, work.interval.length_ns());
        }
    });
    for (node, of) in tree.nodes.iter().enumerate() {
        durations.announce(node..node + 1);
        durations.announce(node..of.end as usize);
    }
    if durations.needs_again() {
        let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
        for work in works.filter(|work| work.kind() == timed_kind) {
            let own = node_of(&work) as usize;
            if own < tree.count() {
                durations.push_again(own, work.interval.length_ns());
            }
        }
    }
    // From the innermost labels outwards, a label's inclusive work is added to the label around it.
    for node in (0..tree.count()).rev() {
        let row = &mut rows[node];
        let [inclusive, exclusive] = busy[node].map(|busy| Some(busy?.length_ns));
        row.exclusive.busy_ns = exclusive;
        row.exclusive.durations = durations.statistics(node..node + 1);
        row.inclusive.busy_ns = inclusive;
        row.inclusive.durations = match tree.nodes[node].end as usize {
            end if end == node + 1 => row.exclusive.durations,
            end => durations.statistics(node..end),
        };
        row.inclusive.dispatch_count += row.exclusive.dispatch_count;
        row.inclusive.transfer_count += row.exclusive.transfer_count;
        let (work, in_graphs) = (row.inclusive, row.in_graphs);
        if let Some(parent) = tree.parent(node) {
            rows[parent].in_graphs += in_graphs;
            let around = &mut rows[parent].inclusive;
            around.dispatch_count += work.dispatch_count;
            around.transfer_count += work.transfer_count;
        }
    }
    rows
}
