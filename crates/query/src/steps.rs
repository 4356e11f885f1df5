//! Computes the table `steps`: the steps of the program with the parts of their time, by the same analyses as `gapscope report`.

use crate::computed::ComputedDefinition;
use crate::library::Library;
use crate::schema::own_columns;
use crate::source::Source;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, StringViewArray, UInt64Array};
use datafusion::arrow::datatypes::DataType;
use gapscope_analysis::steps::Step;
use gapscope_analysis::{Findings, Options};
use std::sync::Arc;

/// The parts of the verdict's time, in the order of the columns.
const PARTS: [&str; 9] = [
    "compute",
    "communication",
    "peers",
    "transfer",
    "host",
    "sync",
    "launch",
    "imbalance",
    "unknown",
];

/// Defines the table.
pub(crate) fn table() -> ComputedDefinition {
    ComputedDefinition {
        name: "steps",
        meaning: "Steps of the program: the turns of its loop, by labels or by the period of launches. Computed when asked for.",
        columns: own_columns! {
            number: UInt64, "Number of the step: the one in its label or in the value of that, or else its place among all, from 1 on.";
            start_ns: Int64, "When it began.";
            from_start_ns: Int64, "The same from the start of the recording, as the report and the page have it.";
            duration_ns: Int64, "How long it lasted.";
            left_out: Boolean, "It is in the warm-up, which `gapscope report` leaves out by default.";
            median: Boolean, "It is the median step.";
            slow: Boolean, "It takes much longer than the median step.";
            because: Utf8View, "Why a slow step took longer than the median one.";
            window_ns: Int64, "Device time in it: the parts below sum to it.";
            compute_ns: Int64, "Time in which a device computed.";
            communication_ns: Int64, "Time in which it communicated and computed nothing.";
            peers_ns: Int64, "Likewise, waiting for another device.";
            transfer_ns: Int64, "Time in which it ran transfers and nothing else.";
            host_ns: Int64, "Time in which it idled because of the host.";
            sync_ns: Int64, "Time in which it idled at synchronisation.";
            launch_ns: Int64, "Time in which it idled with work submitted.";
            imbalance_ns: Int64, "Time in which it had no work while another device had.";
            unknown_ns: Int64, "Time of which the trace does not say what it did.";
        },
        rows: |library, source| read_steps(library, source).arrays(),
    }
}

/// The steps of a trace.
#[derive(Debug, Default)]
struct StepRows {
    steps: Vec<Step>,
    median: Option<usize>,
    origin_ns: i64,
}

/// Finds the steps of a trace. Problems are reported as remarks, and the trace then has no rows.
fn read_steps(library: &Library, source: &Source) -> StepRows {
    library.compute(source, &Findings::selection(), "steps", |trace| {
        let findings = Findings::new(trace, &Options::without_gains());
        if findings.steps.known().is_none() {
            library.remark(format!("{}: its steps are unknown", source.name));
        }
        StepRows {
            median: findings.step_summary.map(|summary| summary.median),
            steps: findings.steps.into_value(),
            origin_ns: trace.manifest.start_ns,
        }
    })
}

impl StepRows {
    /// Returns the columns in the order in which [`table`] lists them.
    fn arrays(self) -> Vec<ArrayRef> {
        let steps = &self.steps;
        let ints = |value: &dyn Fn(&Step) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(steps.iter().map(value)))
        };
        let bools = |value: &dyn Fn(usize, &Step) -> bool| -> ArrayRef {
            let values = steps.iter().enumerate().map(|(at, step)| value(at, step));
            Arc::new(BooleanArray::from(values.collect::<Vec<bool>>()))
        };
        let part = |step: &Step, what: &str| {
            let part = step.parts.iter().find(|part| part.what == what);
            part.map_or(0, |part| part.total_ns)
        };
        let because = steps.iter().map(|step| step.because.as_deref());
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from_iter_values(
                steps.iter().map(|step| step.number),
            )),
            ints(&|step| step.start_ns),
            ints(&|step| step.start_ns.saturating_sub(self.origin_ns)),
            ints(&|step| step.duration_ns),
            bools(&|_, step| step.is_left_out),
            bools(&|at, _| Some(at) == self.median),
            bools(&|_, step| step.is_slow),
            Arc::new(StringViewArray::from_iter(because)),
            ints(&|step| step.window_ns),
        ];
        arrays.extend(PARTS.map(|what| ints(&|step| part(step, what))));
        arrays
    }
}
