//! Findings about the work under some labels.

use crate::timeline::Timeline;
use crate::{Findings, Options};
use gapscope_trace::Trace;
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::Table;
use std::collections::HashSet;

/// Findings about the work under labels that contain `text`; `None` when there is no such work.
///
/// Counts and tables are of that work only. Gaps and verdict are of the whole device from the first such work to the
/// last with known times, since what runs in between keeps the device busy whatever its label.
pub fn findings_under_label(trace: &Trace, text: &str, options: &Options) -> Option<Findings> {
    let part = work_under_label(trace, text)?;
    let window = Timeline::of(&part).work_window();
    let whole = Findings::of(
        trace,
        &Options {
            window,
            ..options.clone()
        },
    );
    let part = Findings::of(
        &part,
        &Options {
            exclude_warm_up: false,
            ..options.clone()
        },
    );
    Some(Findings {
        analysed_window: whole.analysed_window,
        verdict: whole.verdict,
        verdict_evidence: whole.verdict_evidence,
        devices: whole.devices,
        gaps: whole.gaps,
        idle_time: whole.idle_time,
        warm_up: whole.warm_up,
        memory: whole.memory,
        ..part
    })
}

/// The trace with the GPU work under labels that contain `text`, and its command buffers and submissions.
fn work_under_label(trace: &Trace, text: &str) -> Option<Trace> {
    let tables = &trace.tables;
    let labels = labels_within(trace, text);
    let under = |label: &Option<u32>| label.is_some_and(|id| labels.contains(&id));
    let all: HashSet<u64> = (tables.command_buffers.id.iter())
        .zip(&tables.command_buffers.label)
        .filter(|(_, label)| under(label))
        .map(|(id, _)| *id)
        .collect();
    let mut touched = all.clone();
    let mut submissions = HashSet::new();
    let mut part = Trace {
        manifest: trace.manifest.clone(),
        ..Trace::default()
    };
    macro_rules! work {
        ($($table:ident),+) => {$(
            let rows = &tables.$table;
            for row in 0..rows.len() {
                let command_buffer = rows.command_buffer[row];
                let own = rows.label[row];
                let around = command_buffer.is_some_and(|id| all.contains(&id));
                if under(&own) || (own.is_none() && around) {
                    touched.extend(command_buffer);
                    submissions.extend(rows.submission[row]);
                    part.tables.$table.push(rows.row(row));
                }
            }
        )+};
    }
    work!(dispatches, transfers, opaque_work);
    let rows = &tables.command_buffers;
    for row in (0..rows.len()).filter(|row| touched.contains(&rows.id[*row])) {
        submissions.insert(rows.submission[row]);
        part.tables.command_buffers.push(rows.row(row));
    }
    let rows = &tables.submissions;
    for row in (0..rows.len()).filter(|row| submissions.contains(&rows.id[*row])) {
        part.tables.submissions.push(rows.row(row));
    }
    part.tables.kernels = tables.kernels.clone();
    part.tables.labels = tables.labels.clone();
    part.tables.markers = tables.markers.clone();
    part.tables.buffers = tables.buffers.clone();
    part.tables.bindings = tables.bindings.clone();
    (!touched.is_empty() || !submissions.is_empty()).then_some(part)
}

/// Ids of the labels with this text in their own or in that of a label around them.
fn labels_within(trace: &Trace, text: &str) -> HashSet<u32> {
    let labels = &trace.tables.labels;
    let ids = IdIndex::new(&labels.id);
    let within = |row: usize| {
        // A ring of parents would never end.
        let mut left = labels.len();
        let mut next = Some(row);
        while let Some(row) = next.filter(|_| left > 0) {
            if labels.text[row].contains(text) {
                return true;
            }
            next = labels.parent[row].and_then(|id| ids.get(id));
            left -= 1;
        }
        false
    };
    (0..labels.len())
        .filter(|row| within(*row))
        .map(|row| labels.id[row])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "
        device id=1
        queue id=1 device=1
        label id=1 text=step
        label id=2 text=matmul parent=1
        label id=3 text=other
        submission id=1 process=1 queue=1 thread=1 begin_ns=0 end_ns=10
        command_buffer id=1 process=1 queue=1 submission=1 dispatches=3
        command_buffer id=2 process=1 queue=1 submission=1 dispatches=1 label=3
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=100us duration_ns=100us label=1
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=200us duration_ns=100us
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=400us duration_ns=100us label=2
        dispatch command_buffer=2 queue=1 kernel=1 start_ns=500us duration_ns=100us";

    fn under(text: &str) -> Option<Findings> {
        let trace = Trace::from_text(TRACE).unwrap();
        findings_under_label(&trace, text, &Options::default())
    }

    #[test]
    fn labels_inside_count_and_other_work_does_not() {
        let findings = under("step").unwrap();
        assert_eq!(findings.dispatch_count, 2);
        assert_eq!(findings.gpu_busy_ns, Some(200_000));
        assert_eq!(under("matmul").unwrap().dispatch_count, 1);
    }

    #[test]
    fn other_work_in_between_is_no_gap() {
        let findings = under("step").unwrap();
        assert_eq!(findings.idle_time.total_ns, 100_000);
    }

    #[test]
    fn a_command_buffers_label_is_its_works() {
        assert_eq!(under("other").unwrap().dispatch_count, 1);
    }

    #[test]
    fn an_unknown_label_has_no_findings() {
        assert_eq!(under("nothing"), None);
    }

    #[test]
    fn labels_that_are_each_others_parents_end() {
        let text = TRACE.replace("id=1 text=step", "id=1 text=step parent=2");
        let trace = Trace::from_text(&text).unwrap();
        assert!(findings_under_label(&trace, "nothing", &Options::default()).is_none());
    }
}
