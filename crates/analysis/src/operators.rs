//! Sums up the operators of a framework, where the recording has labelled them or an imported file has their ranges: how often
//! each was called, and the device time of the work that it launched itself and through others.
//!
//! Device times are sums of durations, as those of `key_averages()` of torch.profiler: work that ran at the same time
//! counts more than once. An operator is a function of the framework, such as `aten::mm`, which may call others; its
//! calls are labels of their own domain.

use crate::labels::LabelOrigins;
use gapscope_timeline::{Timeline, WorkKind, nearby};
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::{Labels, OPERATOR_DOMAIN, OPERATOR_RANGE_DOMAIN, Table};
use rustc_hash::FxHashMap;
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

/// The ranges of operators on a thread, and the submissions of the thread, as rows of their tables in order of time.
#[derive(Default)]
struct ThreadRows {
    ranges: Vec<u32>,
    launches: Vec<u32>,
}

/// Sums up the operators of files in which operators are ranges of the threads that launch the work, as torch.profiler
/// writes them.
fn of_ranges(timeline: &Timeline, ids: &IdIndex<LabelId>) -> Vec<OperatorRow> {
    let tables = &timeline.trace.tables;
    let (markers, submissions) = (&tables.markers, &tables.submissions);
    let mut tally = Tally::default();
    // The operator of each label, or `NONE` where no range of an operator has had the label.
    let mut operators = vec![NONE; tables.labels.len()];
    let domains = markers.domain.distinct().iter();
    let is_operator: Vec<bool> = domains
        .map(|domain| domain.as_deref() == Some(OPERATOR_RANGE_DOMAIN))
        .collect();
    let end_ns = |row: usize| {
        let times = markers.start_ns.at(row).zip(markers.duration_ns.at(row));
        times.map(|(start_ns, duration_ns)| start_ns.saturating_add(duration_ns))
    };
    let mut threads: FxHashMap<(ProcessId, ThreadId), ThreadRows> = FxHashMap::default();
    for row in 0..markers.len() {
        let domain = markers.domain.number(row);
        if !domain.is_some_and(|domain| is_operator[domain as usize]) {
            continue;
        }
        let (Some(_), Some(thread), Some(label)) = (
            end_ns(row),
            markers.thread.at(row),
            ids.get(markers.label[row]),
        ) else {
            continue;
        };
        let operator = &mut operators[label];
        if *operator == NONE {
            *operator = tally.row(&tables.labels.text[label]) as u32;
        }
        tally.rows[*operator as usize].call_count += 1;
        let thread = threads.entry((markers.process[row], thread)).or_default();
        thread.ranges.push(row as u32);
    }
    if threads.is_empty() {
        return Vec::new();
    }
    for row in 0..submissions.len() {
        let thread = submissions.thread.at(row);
        let thread = thread.map(|thread| (submissions.process[row], thread));
        if let Some(rows) = thread.and_then(|thread| threads.get_mut(&thread)) {
            rows.launches.push(row as u32);
        }
    }
    let mut nesting = Nesting::default();
    let mut of_submission = vec![NONE; submissions.len()];
    // The open ranges of a thread: their ends and their nodes, outermost first.
    let mut open: Vec<(i64, u32)> = Vec::new();
    for ThreadRows {
        mut ranges,
        mut launches,
    } in threads.into_values()
    {
        let start_ns = |row: &u32| markers.start_ns.at(*row as usize);
        nearby::sort_by_key(&mut ranges, |row| {
            (start_ns(row), Reverse(end_ns(*row as usize)))
        });
        nearby::sort_by_key(&mut launches, |row| submissions.start_ns[*row as usize]);
        let mut ranges = ranges.into_iter().peekable();
        open.clear();
        for launch in launches {
            let launched_ns = submissions.start_ns[launch as usize];
            while let Some(range) = ranges.next_if(|row| start_ns(row) <= Some(launched_ns)) {
                let start_ns = start_ns(&range).unwrap_or(i64::MIN);
                open.retain(|(end_ns, _)| *end_ns > start_ns);
                let around = open.last().map_or(NONE, |(_, node)| *node);
                let label = ids.get(markers.label[range as usize]);
                let operator = label.map_or(NONE, |label| operators[label]);
                let end_ns = end_ns(range as usize).unwrap_or(start_ns);
                open.push((end_ns, nesting.node(around, operator as usize)));
            }
            open.retain(|(end_ns, _)| *end_ns > launched_ns);
            of_submission[launch as usize] = open.last().map_or(NONE, |(_, node)| *node);
        }
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
    nodes: FxHashMap<(u32, usize), u32>,
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
