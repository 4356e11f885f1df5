//! Label breakdown: which parts of the program cost what.
//!
//! Labels with the same texts around them are one row, whoever set them and how often. Work belongs to its innermost
//! label, and work without one to the label of its command buffer. *Exclusive* figures are of that work alone,
//! *inclusive* ones also of the labels inside. Busy times are unions, so children that ran at the same time sum to
//! more than their parent.

mod folded;
pub(crate) mod layers;

pub use folded::FoldedLabel;

use crate::durations::{Durations, GroupedDurations};
use crate::intervals::Busy;
use crate::timeline::{Timeline, Work, WorkKind};
use gapscope_trace::Trace;
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::{IdIndex, NONE, label_path};
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{HOST_CODE_DOMAINS, OPERATOR_DOMAIN, Table};
use layers::Layers;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// All GPU work under one label path, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct LabelRow {
    /// Texts from the outermost label to this one, joined by ` / `.
    pub path: String,
    /// This label's own text.
    pub text: String,
    /// Labels around it.
    pub depth: u32,
    /// Times that the label was set; absent when the trace has no markers for it.
    pub instances: Option<u64>,
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

/// Labels in their nesting, parents before their children: the labels inside label `n` are `n + 1..end(n)`. Operators are no
/// labels: their work belongs to the label around them.
#[derive(Debug, Default)]
pub(crate) struct LabelTree<'a> {
    ids: IdIndex<LabelId>,
    /// By row of the table.
    node_of_row: Vec<u32>,
    nodes: Vec<Node<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Node<'a> {
    text: &'a str,
    parent: u32,
    depth: u32,
    end: u32,
    /// The path of a module, set by gapscope.
    is_module: bool,
}

impl<'a> LabelTree<'a> {
    pub(crate) fn of(trace: &'a Trace) -> LabelTree<'a> {
        let rows = &trace.tables.labels;
        let ids = IdIndex::new(&rows.id);
        let layers = Layers::of(trace, &ids);
        let mut modules: Vec<bool> = Vec::new();
        let mut found: HashMap<(u32, &str), u32> = HashMap::new();
        let mut children: Vec<Vec<u32>> = Vec::new();
        let mut texts: Vec<&str> = Vec::new();
        let mut roots: Vec<u32> = Vec::new();
        let mut chain = Vec::new();
        let node_of_row: Vec<u32> = (0..rows.len())
            .map(|row| {
                chain.clear();
                chain.extend(rows.outwards(&ids, row));
                chain.retain(|row| !layers.is_operator(*row));
                let mut node = NONE;
                for row in chain.iter().rev() {
                    let text = &*rows.text[*row];
                    node = *found.entry((node, text)).or_insert_with(|| {
                        let fresh = texts.len() as u32;
                        texts.push(text);
                        modules.push(layers.is_module(*row));
                        children.push(Vec::new());
                        match children.get_mut(node as usize) {
                            Some(siblings) => siblings.push(fresh),
                            None => roots.push(fresh),
                        }
                        fresh
                    });
                }
                node
            })
            .collect();
        let mut tree = LabelTree {
            ids,
            node_of_row,
            nodes: Vec::with_capacity(texts.len()),
        };
        let mut place = vec![0; texts.len()];
        for root in roots {
            tree.place(root, NONE, 0, &texts, &children, &mut place);
        }
        for (node, is_module) in place.iter().zip(modules) {
            tree.nodes[*node as usize].is_module = is_module;
        }
        for node in &mut tree.node_of_row {
            *node = place.get(*node as usize).copied().unwrap_or(NONE);
        }
        tree
    }

    /// Puts a label and those inside it in order. As deep as labels nest, which is bounded.
    fn place(
        &mut self,
        node: u32,
        parent: u32,
        depth: u32,
        texts: &[&'a str],
        children: &[Vec<u32>],
        place: &mut [u32],
    ) {
        let at = self.nodes.len();
        place[node as usize] = at as u32;
        self.nodes.push(Node {
            text: texts[node as usize],
            parent,
            depth,
            end: 0,
            is_module: false,
        });
        for child in &children[node as usize] {
            self.place(*child, at as u32, depth + 1, texts, children, place);
        }
        self.nodes[at].end = self.nodes.len() as u32;
    }

    /// The label with an id, or [`NONE`].
    #[inline]
    pub(crate) fn node(&self, id: Option<LabelId>) -> u32 {
        self.node_of_row(id.map_or(NONE, |id| self.ids.row(id)))
    }

    /// The label of a row of the table, or [`NONE`].
    #[inline]
    pub(crate) fn node_of_row(&self, row: u32) -> u32 {
        self.node_of_row.get(row as usize).copied().unwrap_or(NONE)
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn text(&self, node: usize) -> &'a str {
        self.nodes[node].text
    }

    /// The label around a label.
    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        (self.nodes[node].parent != NONE).then_some(self.nodes[node].parent as usize)
    }

    /// Texts from the outermost label to this one, joined by ` / `.
    pub(crate) fn path(&self, node: usize) -> String {
        let outwards = std::iter::successors(Some(node), |node| self.parent(*node));
        label_path(outwards.map(|node| self.text(node)))
    }

    /// Times that each label was set. What is known of the host's code by markers of its own are no labels.
    pub(crate) fn instances(&self, trace: &Trace) -> Vec<u64> {
        let mut instances = vec![0; self.len()];
        let markers = &trace.tables.markers;
        for (row, label) in markers.label.iter().enumerate() {
            let domain = markers.domain.get(row).and_then(|domain| domain.as_deref());
            let is_code = |domain| domain == OPERATOR_DOMAIN || HOST_CODE_DOMAINS.contains(&domain);
            if domain.is_some_and(is_code) {
                continue;
            }
            if let Some(count) = instances.get_mut(self.node(Some(*label)) as usize) {
                *count += 1;
            }
        }
        instances
    }
}

/// All labels with work, or that were set, over the whole recording.
#[derive(Debug, Default)]
pub struct Labels {
    /// Each by itself, parents before their children, siblings by busy time.
    pub rows: Vec<LabelRow>,
    /// A model's layers together; empty where there are none.
    pub folded: Vec<FoldedLabel>,
}

/// The labels of a trace.
pub fn labels(timeline: &Timeline) -> Labels {
    let tree = LabelTree::of(timeline.trace);
    if tree.len() == 0 {
        return Labels::default();
    }
    let rows = rows(timeline, &tree);
    Labels {
        folded: folded::folded(timeline, &tree, &rows),
        rows: sorted(&tree, rows, |row| row),
    }
}

/// Those of `labels`, which are in the tree's order, with work, or that were set; siblings by busy time.
fn sorted<T>(tree: &LabelTree, labels: Vec<T>, row: impl Fn(&T) -> &LabelRow) -> Vec<T> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.len()];
    let mut roots = Vec::new();
    for node in 0..tree.len() {
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

/// A row for each label, in the tree's order.
fn rows(timeline: &Timeline, tree: &LabelTree) -> Vec<LabelRow> {
    let trace = timeline.trace;
    let mut rows: Vec<LabelRow> = Vec::with_capacity(tree.len());
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

    let timed_kind = match trace.manifest.sampling_mode {
        SamplingMode::CommandBuffer => WorkKind::CommandBuffer,
        SamplingMode::Pass => WorkKind::Opaque,
        _ => WorkKind::Dispatch,
    };
    let node_of = |work: &Work| tree.node_of_row(timeline.label_row_of(work));
    let mut counts = vec![0; tree.len()];
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
    let mut busy: Vec<[Option<Busy>; 2]> = vec![[None; 2]; tree.len()];
    timeline.each_work(|work| {
        let own = node_of(work) as usize;
        if own >= tree.len() {
            return;
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
        durations.ask_for(node..node + 1);
        durations.ask_for(node..of.end as usize);
    }
    if durations.needs_again() {
        let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
        for work in works.filter(|work| work.kind() == timed_kind) {
            let own = node_of(&work) as usize;
            if own < tree.len() {
                durations.push_again(own, work.interval.length_ns());
            }
        }
    }
    // From the innermost labels outwards: a label's inclusive work goes into the label around it.
    for node in (0..tree.len()).rev() {
        let row = &mut rows[node];
        let [inclusive, exclusive] = busy[node].map(|busy| Some(busy?.length_ns));
        row.exclusive.busy_ns = exclusive;
        row.exclusive.durations = durations.of(node..node + 1);
        row.inclusive.busy_ns = inclusive;
        row.inclusive.durations = match tree.nodes[node].end as usize {
            end if end == node + 1 => row.exclusive.durations,
            end => durations.of(node..end),
        };
        row.inclusive.dispatch_count += row.exclusive.dispatch_count;
        row.inclusive.transfer_count += row.exclusive.transfer_count;
        let work = row.inclusive;
        if let Some(parent) = tree.parent(node) {
            let around = &mut rows[parent].inclusive;
            around.dispatch_count += work.dispatch_count;
            around.transfer_count += work.transfer_count;
        }
    }
    rows
}
