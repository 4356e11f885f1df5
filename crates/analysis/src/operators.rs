//! Sums up the operators of a framework, where the recording has labelled them or an imported file has their ranges: how often
//! each was called, and the device time of the work that it launched itself and through others.
//!
//! Device times are sums of durations, as those of `key_averages()` of torch.profiler: work that ran at the same time
//! counts more than once. An operator is a function of the framework, such as `aten::mm`, which may call others; its
//! calls are labels of their own domain.

use crate::labels::LabelOrigins;
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::{Labels, OPERATOR_DOMAIN, OPERATOR_RANGE_DOMAIN, Table};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// All calls of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct OperatorRow {
    /// Its name, such as `aten::mm`.
    pub name: String,
    /// How often it was called.
    pub call_count: u64,
    /// The work that it launched itself.
    pub own: OperatorWork,
    /// Its own work, and that of the operators that it called. Each piece counts once.
    pub inclusive: OperatorWork,
}

/// Work on devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct OperatorWork {
    /// Kernels and transfers whose times are known.
    pub timed_count: u64,
    /// Sum of their durations; absent when there is none.
    pub total_ns: Option<i64>,
}

impl OperatorWork {
    fn add(&mut self, ns: i64) {
        self.timed_count += 1;
        self.total_ns = Some(self.total_ns.unwrap_or(0).saturating_add(ns));
    }
}

/// Returns which labels are the only child of a label with the same text: one call that went through the dispatcher
/// twice, as with autocast. torch.profiler counts such a call once too.
fn dispatched_again(labels: &Labels, ids: &IdIndex<LabelId>) -> Vec<bool> {
    let parent = |row: usize| labels.parent.at(row).and_then(|id| ids.get(id));
    let mut children = vec![0u32; labels.len()];
    for parent in (0..labels.len()).filter_map(parent) {
        children[parent] += 1;
    }
    let is_alone = |row: usize, parent: usize| {
        labels.text[row] == labels.text[parent] && children[parent] == 1
    };
    (0..labels.len())
        .map(|row| parent(row).is_some_and(|parent| is_alone(row, parent)))
        .collect()
}

/// The operators of a trace by their names, while they are summed up.
#[derive(Default)]
struct Tally<'a> {
    by_name: HashMap<&'a str, usize>,
    rows: Vec<OperatorRow>,
}

impl<'a> Tally<'a> {
    /// Returns the row of the operator with a name.
    fn row(&mut self, name: &'a str) -> usize {
        let rows = &mut self.rows;
        *self.by_name.entry(name).or_insert_with(|| {
            rows.push(OperatorRow {
                name: name.to_owned(),
                ..OperatorRow::default()
            });
            rows.len() - 1
        })
    }

    /// Adds work inside of operators, the innermost first.
    fn add(&mut self, path: &[usize], ns: i64) {
        if let Some(own) = path.first() {
            self.rows[*own].own.add(ns);
        }
        for operator in path {
            self.rows[*operator].inclusive.add(ns);
        }
    }
}

/// Returns the operators, those with the greatest own time first.
pub fn operators(timeline: &Timeline) -> Vec<OperatorRow> {
    let ids = IdIndex::new(&timeline.trace.tables.labels.id);
    let origins = LabelOrigins::new(timeline.trace, &ids);
    let mut operators = match origins.is_empty() {
        true => of_ranges(timeline, &ids),
        false => of_labels(timeline, &ids, &origins),
    };
    operators.retain(|operator| operator.call_count > 0 || operator.inclusive.timed_count > 0);
    operators.sort_by_cached_key(|operator| {
        let (own, all) = (operator.own.total_ns, operator.inclusive.total_ns);
        (Reverse((own, all)), operator.name.clone())
    });
    operators
}

/// Sums up the operators that the recording has labelled.
fn of_labels(
    timeline: &Timeline,
    ids: &IdIndex<LabelId>,
    origins: &LabelOrigins,
) -> Vec<OperatorRow> {
    let tables = &timeline.trace.tables;
    let labels = &tables.labels;
    let mut tally = Tally::default();
    // For each label, the operators in its path, its own operator first.
    let paths: Vec<Vec<usize>> = (0..labels.len())
        .map(|row| {
            let mut path = Vec::new();
            let rows = labels.outwards(ids, row);
            for row in rows.take_while(|row| origins.is_operator(*row)) {
                let at = tally.row(&labels.text[row]);
                if !path.contains(&at) {
                    path.push(at);
                }
            }
            path
        })
        .collect();
    let again = dispatched_again(labels, ids);
    for (label, domain) in tables.markers.label.iter().zip(&tables.markers.domain) {
        let row = ids.get(*label).filter(|row| !again[*row]);
        let path = row.map(|row| &paths[row]);
        if domain.as_deref() == Some(OPERATOR_DOMAIN)
            && let Some(own) = path.and_then(|path| path.first())
        {
            tally.rows[*own].call_count += 1;
        }
    }
    timeline.each_work(|work| {
        let row = timeline.label_row_of(work);
        if row == NONE || work.kind() == WorkKind::CommandBuffer {
            return;
        }
        let ns = work.interval.length_ns();
        tally.add(&paths[row as usize], ns);
    });
    tally.rows
}

/// A range of an operator, as torch.profiler writes it.
struct OperatorRange {
    thread: (ProcessId, ThreadId),
    start_ns: i64,
    end_ns: i64,
    operator: usize,
}

/// Sums up the operators of files in which operators are ranges of the threads that launch the work.
fn of_ranges(timeline: &Timeline, ids: &IdIndex<LabelId>) -> Vec<OperatorRow> {
    let tables = &timeline.trace.tables;
    let (markers, submissions) = (&tables.markers, &tables.submissions);
    let mut tally = Tally::default();
    let mut ranges: Vec<OperatorRange> = Vec::new();
    let is_operator = |row: &usize| markers.domain[*row].as_deref() == Some(OPERATOR_RANGE_DOMAIN);
    for row in (0..markers.len()).filter(is_operator) {
        let times = markers.start_ns.at(row).zip(markers.duration_ns.at(row));
        let (Some((start_ns, duration_ns)), Some(thread), Some(label)) =
            (times, markers.thread.at(row), ids.get(markers.label[row]))
        else {
            continue;
        };
        let operator = tally.row(&tables.labels.text[label]);
        tally.rows[operator].call_count += 1;
        ranges.push(OperatorRange {
            thread: (markers.process[row], thread),
            start_ns,
            end_ns: start_ns.saturating_add(duration_ns),
            operator,
        });
    }
    if ranges.is_empty() {
        return Vec::new();
    }
    ranges.sort_unstable_by_key(|range| (range.thread, range.start_ns, Reverse(range.end_ns)));
    let mut launches: Vec<((ProcessId, ThreadId), i64, u32)> = (0..submissions.len())
        .filter_map(|row| {
            let thread = (submissions.process[row], submissions.thread.at(row)?);
            Some((thread, submissions.start_ns[row], row as u32))
        })
        .collect();
    launches.sort_unstable();
    let mut nesting = Nesting::default();
    let mut of_submission = vec![NONE; submissions.len()];
    let mut ranges = ranges.iter().peekable();
    // The open ranges of the thread: their ends and their nodes, outermost first.
    let mut open: Vec<(i64, u32)> = Vec::new();
    let mut thread = None;
    for (of_thread, start_ns, row) in launches {
        if thread.replace(of_thread) != Some(of_thread) {
            open.clear();
        }
        while let Some(range) =
            ranges.next_if(|range| (range.thread, range.start_ns) <= (of_thread, start_ns))
        {
            if range.thread == of_thread {
                open.retain(|(end_ns, _)| *end_ns > range.start_ns);
                let around = open.last().map_or(NONE, |(_, node)| *node);
                open.push((range.end_ns, nesting.node(around, range.operator)));
            }
        }
        open.retain(|(end_ns, _)| *end_ns > start_ns);
        of_submission[row as usize] = open.last().map_or(NONE, |(_, node)| *node);
    }
    timeline.each_work(|work| {
        let node = of_submission.get(timeline.submission_of(work) as usize);
        let path = node.and_then(|node| nesting.paths.get(*node as usize));
        if let Some(path) = path.filter(|_| work.kind() != WorkKind::CommandBuffer) {
            tally.add(path, work.interval.length_ns());
        }
    });
    tally.rows
}

/// The ways in which operators are inside of each other. Each is a node with a number.
#[derive(Default)]
struct Nesting {
    /// Nodes by the node around them, or [`NONE`], and by their operator.
    nodes: HashMap<(u32, usize), u32>,
    /// The operators of each node, each once, the innermost first.
    paths: Vec<Vec<usize>>,
}

impl Nesting {
    /// Returns the node of an operator inside of another node.
    fn node(&mut self, around: u32, operator: usize) -> u32 {
        let paths = &mut self.paths;
        *self.nodes.entry((around, operator)).or_insert_with(|| {
            let mut path = vec![operator];
            if let Some(outer) = paths.get(around as usize) {
                path.extend(outer.iter().filter(|outer| **outer != operator));
            }
            paths.push(path);
            paths.len() as u32 - 1
        })
    }
}
