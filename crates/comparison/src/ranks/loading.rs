//! Recognises that a host loads data: by the names of labels and of functions and files in stacks. A trace or findings go in; out
//! come times with the name that says so.

use gapscope_analysis::Findings;
use gapscope_analysis::code::{is_loading, loads_data, text};
use gapscope_timeline::intervals::{Interval, length_ns, union};
use gapscope_trace::Trace;
use gapscope_trace::ids::{LabelId, ProcessId};
use gapscope_trace::tables::Table;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The times in which labels of a process say that it loads data.
#[derive(Debug, Clone, Default)]
pub(super) struct Labelled {
    /// The times, in order and without overlaps.
    pub(super) times: Vec<Interval>,
    /// The text of the label with most of the time.
    pub(super) label: Option<String>,
}

/// Returns the times of the labels of a process that say that it loads data.
pub(super) fn labelled(trace: &Trace, process: ProcessId) -> Labelled {
    let (rows, labels) = (&trace.tables.markers, &trace.tables.labels);
    let names: HashMap<LabelId, &str> = (labels.id.iter().zip(&labels.text))
        .filter(|(_, text)| is_loading(text))
        .map(|(id, text)| (*id, &**text))
        .collect();
    let mut times = Vec::new();
    let mut by_label: BTreeMap<&str, i64> = BTreeMap::new();
    for row in 0..rows.len() {
        let Some(name) = names.get(&rows.label[row]) else {
            continue;
        };
        let interval = Interval::from_row(rows.start_ns.at(row), rows.duration_ns.at(row));
        if let Some(interval) = interval.filter(|_| rows.process[row] == process) {
            times.push(interval);
            let sum = by_label.entry(*name).or_default();
            *sum = sum.saturating_add(interval.length_ns());
        }
    }
    union(&mut times);
    let label = by_label
        .into_iter()
        .max_by_key(|(name, ns)| (*ns, Reverse(*name)));
    Labelled {
        times,
        label: label.map(|(name, _)| name.to_owned()),
    }
}

/// Returns the text of the label with most of the time in which any process loads data.
pub(super) fn longest_label(trace: &Trace) -> Option<String> {
    let processes = trace.manifest.processes.iter();
    let labels = processes.map(|process| labelled(trace, process.id));
    let longest = labels.max_by_key(|labelled| length_ns(&labelled.times))?;
    longest.label
}

/// Returns the idle time in which sampled stacks say that the host loaded data, with the text of the stack that has most of it.
pub(super) fn sampled(findings: &Findings) -> Option<(i64, String)> {
    let causes = findings.code.iter().flat_map(|code| &code.causes);
    let times = causes
        .flat_map(|cause| &cause.code)
        .filter(|time| loads_data(&time.frames));
    let all_ns = times
        .clone()
        .fold(0i64, |sum, time| sum.saturating_add(time.total_ns));
    let most = times.max_by_key(|time| time.total_ns)?;
    (all_ns > 0).then(|| (all_ns, text(&most.frames)))
}
