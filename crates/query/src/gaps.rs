//! Computes the table `gaps`: the times in which a device ran nothing, with their causes, by the same analyses as
//! `gapscope report`.

use crate::computed::ComputedDefinition;
use crate::library::Library;
use crate::schema::own_columns;
use crate::source::Source;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, StringViewArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::datatypes::DataType;
use gapscope_analysis::gaps::{Cause, GapFinder};
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_analysis::{Findings, warm_up};
use gapscope_timeline::Timeline;
use gapscope_timeline::vocabulary::Gpus;
use gapscope_trace::Trace;
use gapscope_trace::lookup::{IdIndex, LabelPaths};
use gapscope_trace::tables::Dispatches;
use std::sync::Arc;

/// Defines the table.
pub(crate) fn table() -> ComputedDefinition {
    let causes = Cause::ALL.map(Cause::as_str);
    ComputedDefinition {
        name: "gaps",
        meaning: "Gaps: time in which a device ran nothing between two pieces of work, by cause. Computed when asked for.",
        columns: own_columns! {
            device: UInt32, "Id of the device; where several processes used it, the first id.";
            device_name: Utf8View, "Name of the device.";
            gap: UInt64, "Number of the gap in its trace: its parts, each with a cause of its own, share it.";
            cause: Utf8View, format!("Why the device ran nothing in this part. One of {}.", causes.join(", "));
            start_ns: Int64, "When this part started.";
            from_start_ns: Int64, "The same from the start of the recording, as the report and the page have it.";
            duration_ns: Int64, "How long it lasted.";
            gap_ns: Int64, "Length of the whole gap.";
            submission: UInt64, "Id of the submission whose work ended the gap.";
            kernel_before: Utf8View, "What ran before the gap: a kernel, or the kind of the transfer or other work.";
            kernel_after: Utf8View, "What ended the gap, likewise.";
            process: UInt32, "Id of the process that submitted the work that ended the gap.";
            thread: UInt32, "Id of its thread that did.";
            label_path: Utf8View, "Label of the work that ended the gap, in its nesting.";
            warm_up: Boolean, "It is in the warm-up, which `gapscope report` leaves out by default.";
        },
        rows: |library, source| read_gaps(library, source).arrays(),
    }
}

/// The rows of one trace, by columns; [`table`] says what each column means.
#[derive(Debug, Default)]
struct GapRows {
    device: Vec<Option<u32>>,
    device_name: Vec<Option<String>>,
    gap: Vec<u64>,
    cause: Vec<&'static str>,
    start_ns: Vec<i64>,
    from_start_ns: Vec<i64>,
    duration_ns: Vec<i64>,
    gap_ns: Vec<i64>,
    submission: Vec<Option<u64>>,
    before: Vec<String>,
    after: Vec<String>,
    process: Vec<Option<u32>>,
    thread: Vec<Option<u32>>,
    label_path: Vec<Option<String>>,
    warm_up: Vec<bool>,
}

/// Finds the gaps of a trace. Problems are reported as remarks, and the trace then has no rows.
fn read_gaps(library: &Library, source: &Source) -> GapRows {
    // Warm-up is told by the sizes of dispatches.
    let selection = (Findings::selection_of_times())
        .columns::<Dispatches>(&["groups_x", "groups_y", "groups_z"]);
    library.compute(source, &selection, "gaps", |trace| {
        // Missing work would show up as gaps.
        if unknown_because(trace, CAUSES).is_some() {
            library.remark(format!("{}: its gaps are unknown", source.name));
            return GapRows::default();
        }
        GapRows::from_trace(trace)
    })
}

impl GapRows {
    /// Finds the gaps of each device; each part with one cause is a row, or two where the warm-up ends in it.
    fn from_trace(trace: &Trace) -> GapRows {
        let timeline = Timeline::new(trace);
        let excluded = warm_up::warm_up(&timeline).excluded;
        let warm_until_ns = excluded.map_or(i64::MIN, |excluded| excluded.end_ns);
        let labels = LabelPaths::new(&trace.tables.labels);
        let by = &trace.tables.submissions;
        let submissions = IdIndex::new(&by.id);
        let mut rows = GapRows::default();
        let mut number = 0;
        let gpus = Gpus::new(&trace.manifest);
        let finder = GapFinder::new(&timeline);
        for place in 0..timeline.gpus.len() {
            let device = gpus.devices(place).first();
            finder.each_between(place, |gap, [before, work], parts| {
                let submission = timeline.submission_id_of(work);
                let (before, after) = (timeline.name_of(before), timeline.name_of(work));
                let (process, thread) = submission
                    .and_then(|id| submissions.get(id))
                    .map_or((None, None), |row| {
                        (Some(by.process[row]), by.thread.at(row))
                    });
                let label = timeline.label_of(work).and_then(|id| labels.get(id));
                for part in parts {
                    let end_ns = part.start_ns.saturating_add(part.duration_ns);
                    // A gap across the end of the warm-up becomes two rows, so that sums equal those of the report.
                    let middle_ns = warm_until_ns.clamp(part.start_ns, end_ns);
                    for (from_ns, to_ns, warm_up) in
                        [(part.start_ns, middle_ns, true), (middle_ns, end_ns, false)]
                    {
                        if from_ns >= to_ns {
                            continue;
                        }
                        rows.device.push(device.map(|id| id.0));
                        rows.device_name
                            .push(device.map(|_| gpus.name(place).to_owned()));
                        rows.gap.push(number);
                        rows.cause.push(part.cause.as_str());
                        rows.start_ns.push(from_ns);
                        rows.from_start_ns
                            .push(from_ns.saturating_sub(trace.manifest.start_ns));
                        rows.duration_ns.push(to_ns - from_ns);
                        rows.gap_ns.push(gap.length_ns());
                        rows.submission.push(submission.map(|id| id.0));
                        rows.before.push(before.clone());
                        rows.after.push(after.clone());
                        rows.process.push(process.map(|id| id.0));
                        rows.thread.push(thread.map(|id| id.0));
                        rows.label_path.push(label.map(str::to_owned));
                        rows.warm_up.push(warm_up);
                    }
                }
                number += 1;
            });
        }
        rows
    }

    /// Returns the columns in the order in which [`table`] lists them.
    fn arrays(self) -> Vec<ArrayRef> {
        vec![
            Arc::new(UInt32Array::from(self.device)),
            Arc::new(StringViewArray::from_iter(self.device_name)),
            Arc::new(UInt64Array::from(self.gap)),
            Arc::new(StringViewArray::from_iter_values(self.cause)),
            Arc::new(Int64Array::from(self.start_ns)),
            Arc::new(Int64Array::from(self.from_start_ns)),
            Arc::new(Int64Array::from(self.duration_ns)),
            Arc::new(Int64Array::from(self.gap_ns)),
            Arc::new(UInt64Array::from(self.submission)),
            Arc::new(StringViewArray::from_iter_values(self.before)),
            Arc::new(StringViewArray::from_iter_values(self.after)),
            Arc::new(UInt32Array::from(self.process)),
            Arc::new(UInt32Array::from(self.thread)),
            Arc::new(StringViewArray::from_iter(self.label_path)),
            Arc::new(BooleanArray::from(self.warm_up)),
        ]
    }
}
