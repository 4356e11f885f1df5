//! Computes the table `kernel_counters`: the values of hardware counters while each kernel ran, and the limit of the
//! kernel that they show, by the same analyses as `gapscope report`.

use crate::computed::ComputedDefinition;
use crate::library::Library;
use crate::schema::own_columns;
use crate::source::Source;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringViewArray, UInt64Array};
use datafusion::arrow::datatypes::DataType;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::limits::KernelCounter;
use gapscope_analysis::{Findings, Options};
use std::sync::Arc;

/// Defines the table.
pub(crate) fn table() -> ComputedDefinition {
    ComputedDefinition {
        name: "kernel_counters",
        meaning: "Kernels: what limits each, and its hardware counters, a row for each counter; one row without a counter where none is known. Computed when asked for.",
        columns: own_columns! {
            kernel_name: Utf8View, "Name of the kernel.";
            dispatches: UInt64, "Its dispatches.";
            busy_ns: Int64, "Time in which at least one of them ran.";
            limit: Utf8View, "What limits it: `short`, `memory`, `compute`, `link`, `too-small`, `tail`, `idle`, `latency`.";
            limited_by: Utf8View, "The unit that is nearest to its limit, where counters say it.";
            reached: Float64, "What it has of the limit: achieved over possible.";
            winnable_ns: Int64, "Time that reaching the limit would save, at most.";
            unknown_because: Utf8View, "Why its counters do not say a limit.";
            counter: Utf8View, "Name of the counter.";
            unit: Utf8View, "Unit of its values.";
            mean: Float64, "Mean while the kernel ran alone.";
            error: Float64, "How far the mean may be off: its standard error, and what samples do not cover.";
            min: Float64, "The least sample.";
            max: Float64, "The greatest sample.";
            samples: UInt64, "Samples in it.";
            covered_share: Float64, "The share of the kernel's time that they cover.";
        },
        rows: |library, source| arrays(&read_kernels(library, source)),
    }
}

/// Finds the kernels of a trace. Problems are reported as remarks, and the trace then has no rows.
fn read_kernels(library: &Library, source: &Source) -> Vec<Kernel> {
    let selection = Findings::selection();
    library.compute(source, &selection, "kernels' counters", |trace| {
        let findings = Findings::new(trace, &Options::without_gains());
        findings.kernels.into_value()
    })
}

/// Makes the columns in the order of [`table`]: a row for each counter of each kernel, one for a kernel without any.
fn arrays(kernels: &[Kernel]) -> Vec<ArrayRef> {
    let mut rows: Vec<(&Kernel, Option<&KernelCounter>)> = Vec::new();
    for kernel in kernels {
        let means = kernel.counters.iter().flat_map(|counters| &counters.means);
        let before = rows.len();
        rows.extend(means.map(|mean| (kernel, Some(mean))));
        if rows.len() == before {
            rows.push((kernel, None));
        }
    }
    let kernel = || rows.iter().map(|(kernel, _)| *kernel);
    let text = |of: fn(&Kernel) -> Option<&str>| -> ArrayRef {
        Arc::new(StringViewArray::from_iter(kernel().map(of)))
    };
    let counter = |of: fn(&KernelCounter) -> &str| -> ArrayRef {
        let texts = rows.iter().map(|(_, mean)| mean.map(of));
        Arc::new(StringViewArray::from_iter(texts))
    };
    let float = |of: fn(&KernelCounter) -> f64| -> ArrayRef {
        let numbers = rows.iter().map(|(_, mean)| mean.map(of));
        Arc::new(Float64Array::from_iter(numbers))
    };
    let sample_counts = (rows.iter()).map(|(_, mean)| mean.map(|mean| mean.sample_count));
    let dispatch_counts = kernel().map(|kernel| kernel.count);
    let reached = kernel().map(|kernel| kernel.reached);
    let times = |of: fn(&Kernel) -> Option<i64>| -> ArrayRef {
        Arc::new(Int64Array::from_iter(kernel().map(of)))
    };
    vec![
        text(|kernel| Some(&kernel.name)),
        Arc::new(UInt64Array::from_iter_values(dispatch_counts)),
        times(|kernel| kernel.busy_ns),
        text(|kernel| kernel.limit.map(|limit| limit.as_str())),
        text(|kernel| kernel.limited_by.map(|unit| unit.as_str())),
        Arc::new(Float64Array::from_iter(reached)),
        times(|kernel| kernel.winnable_ns),
        text(|kernel| kernel.counters.as_ref()?.unknown_because.as_deref()),
        counter(|mean| mean.name),
        counter(|mean| mean.unit.as_str()),
        float(|mean| mean.mean),
        float(|mean| mean.error),
        float(|mean| mean.min),
        float(|mean| mean.max),
        Arc::new(UInt64Array::from_iter(sample_counts)),
        float(|mean| mean.covered_share),
    ]
}
