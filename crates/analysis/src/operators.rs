//! Sums up the operators of a framework, where the recording has labelled them: how often each was called, and the device time
//! of the work that it launched itself and through others.
//!
//! Device times are sums of durations, as those of `key_averages()` of torch.profiler: work that ran at the same time
//! counts more than once. An operator is a function of the framework, such as `aten::mm`, which may call others; its
//! calls are labels of their own domain.

use crate::labels::LabelOrigins;
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::{Labels, OPERATOR_DOMAIN, Table};
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

/// Returns the operators, those with the greatest own time first.
pub fn operators(timeline: &Timeline) -> Vec<OperatorRow> {
    let tables = &timeline.trace.tables;
    let labels = &tables.labels;
    let ids = IdIndex::new(&labels.id);
    let origins = LabelOrigins::new(timeline.trace, &ids);
    if origins.is_empty() {
        return Vec::new();
    }
    let mut found: HashMap<&str, usize> = HashMap::new();
    let mut operators: Vec<OperatorRow> = Vec::new();
    // For each label, the operators in its path, its own operator first.
    let paths: Vec<Vec<usize>> = (0..labels.len())
        .map(|row| {
            let mut path = Vec::new();
            let rows = labels.outwards(&ids, row);
            for row in rows.take_while(|row| origins.is_operator(*row)) {
                let name = &*labels.text[row];
                let at = *found.entry(name).or_insert_with(|| {
                    operators.push(OperatorRow {
                        name: name.to_owned(),
                        ..OperatorRow::default()
                    });
                    operators.len() - 1
                });
                if !path.contains(&at) {
                    path.push(at);
                }
            }
            path
        })
        .collect();
    let again = dispatched_again(labels, &ids);
    for (label, domain) in tables.markers.label.iter().zip(&tables.markers.domain) {
        let row = ids.get(*label).filter(|row| !again[*row]);
        let path = row.map(|row| &paths[row]);
        if domain.as_deref() == Some(OPERATOR_DOMAIN)
            && let Some(own) = path.and_then(|path| path.first())
        {
            operators[*own].call_count += 1;
        }
    }
    timeline.each_work(|work| {
        let row = timeline.label_row_of(work);
        if row == NONE || work.kind() == WorkKind::CommandBuffer {
            return;
        }
        let ns = work.interval.length_ns();
        let path = &paths[row as usize];
        if let Some(own) = path.first() {
            operators[*own].own.add(ns);
        }
        for operator in path {
            operators[*operator].inclusive.add(ns);
        }
    });
    operators.retain(|operator| operator.call_count > 0 || operator.inclusive.timed_count > 0);
    operators.sort_by_cached_key(|operator| {
        let (own, all) = (operator.own.total_ns, operator.inclusive.total_ns);
        (Reverse((own, all)), operator.name.clone())
    });
    operators
}
