//! Adds notes and losses to the trace about tables that the exports lack, and about influences on the numbers.

use super::super::TABLES;
use super::super::facts::GpuInterval;
use super::super::intervals::{Span, union_ns};
use super::super::toc::Run;
use super::Builder;
use std::collections::BTreeMap;

impl Builder {
    /// Notes each needed table without rows, and why: `run` is the recording in the table of contents, which lists
    /// the tables that it has.
    pub(super) fn note_missing_tables(&mut self, run: Option<&Run>) {
        for table in TABLES.iter().filter(|table| table.needed) {
            if self.rows(table.schema) > 0 {
                continue;
            }
            let listed = run.is_some_and(|run| run.tables.iter().any(|t| t == table.schema));
            let why = match (run, listed) {
                (Some(_), true) => "the recording has the table and its export has no rows",
                (Some(_), false) => "the recording does not have the table",
                (None, _) => "the table is not among the exports",
            };
            self.facts
                .notes
                .push(format!("No {}: {why} ({}).", table.gives, table.schema));
        }
    }

    /// Returns the sentence of the error that the process has no Metal work.
    pub(super) fn why_nothing(&self) -> String {
        let others = self.facts.intervals.len() + self.facts.submissions.len();
        let name = if self.name.is_empty() {
            "the process"
        } else {
            &self.name
        };
        match others {
            0 => format!(
                "Instruments recorded no Metal work of {name} ({pid}): it used no GPU through Metal, ended before it did, or this version of Instruments exports none of its kind",
                pid = self.pid
            ),
            _ => format!(
                "the exports have no Metal work of {name} ({pid}), only {others} rows of other processes: choose another process with --pid",
                pid = self.pid
            ),
        }
    }

    /// Notes other influences on the numbers: other processes (the three with most GPU time), performance states, and
    /// register spills.
    pub(super) fn note_other_influences(&mut self) {
        let times = |intervals: &[&GpuInterval]| {
            let spans = intervals.iter();
            union_ns(
                spans
                    .map(|i| Span::new(i.start_ns, i.duration_ns))
                    .collect(),
            )
        };
        let mut others: BTreeMap<u32, Vec<&GpuInterval>> = BTreeMap::new();
        for interval in &self.facts.intervals {
            if let Some(pid) = interval.pid.filter(|pid| *pid != self.pid) {
                others.entry(pid).or_default().push(interval);
            }
        }
        let mut found: Vec<(i64, u32)> =
            others.iter().map(|(pid, own)| (times(own), *pid)).collect();
        found.sort_by_key(|(ns, pid)| (std::cmp::Reverse(*ns), *pid));
        let mut notes = Vec::new();
        if !found.is_empty() {
            let named: Vec<String> = (found.iter().take(3))
                .map(|(ns, pid)| {
                    let name = self.facts.processes.get(pid).map_or("process", |name| name);
                    format!("{name} ({pid}) {}", milliseconds(*ns))
                })
                .collect();
            notes.push(format!(
                "Other processes used the GPU meanwhile, which may be the cause of gaps: {}; their work is not in this trace.",
                named.join(", ")
            ));
        } else if !self.facts.active.is_empty() {
            let whole = union_ns(self.facts.active.clone());
            let own: Vec<&GpuInterval> = self.facts.intervals.iter().collect();
            let rest = whole.saturating_sub(times(&own));
            if rest > whole / 100 {
                notes.push(format!(
                    "The GPU was active for {} more than this process's work explains: other processes used it, which may be the cause of gaps.",
                    milliseconds(rest)
                ));
            }
        }
        let states = &self.facts.performance_ns;
        if states.values().any(|ns| *ns > 0) {
            let parts: Vec<String> = (states.iter())
                .map(|(state, ns)| format!("{state} {}", milliseconds(*ns)))
                .collect();
            notes.push(format!(
                "The performance state of the GPU was {} of the recording.",
                parts.join(", ")
            ));
        }
        let spills = self
            .facts
            .spills
            .iter()
            .filter(|spill| self.is_target(spill.pid));
        let sizes: Vec<u64> = spills.map(|spill| spill.bytes).collect();
        if let Some(most) = sizes.iter().max() {
            let count = sizes.len();
            notes.push(format!(
                "Shaders spilled registers to memory in {count} events, up to {most} bytes a thread."
            ));
        }
        self.facts.notes.extend(notes);
    }
}

fn milliseconds(ns: i64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}
