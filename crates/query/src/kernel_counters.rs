//! Computes the table `kernel_counters`: the values of hardware counters while each kernel ran, and the limit of the
//! kernel that they show, by the same analyses as `gapscope report`.

use crate::computed::ComputedDefinition;
use crate::library::Library;
use crate::schema::ColumnFacts;
use crate::source::Source;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringViewArray, UInt64Array};
use datafusion::arrow::datatypes::DataType;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::limits::KernelCounter;
use gapscope_analysis::{Findings, Options};
use gapscope_trace::panics::guarded;
use gapscope_trace::read;
use std::sync::Arc;

pub(crate) fn table() -> ComputedDefinition {
    let column = ColumnFacts::own;
    let (text, float) = (DataType::Utf8View, DataType::Float64);
    ComputedDefinition {
        name: "kernel_counters",
        meaning: "Kernels: what limits each, and its hardware counters, a row for each counter; one row without a counter where none is known. Computed when asked for.",
        columns: vec![
            column("kernel_name", text.clone(), "Name of the kernel."),
            column("dispatches", DataType::UInt64, "Its dispatches."),
            column(
                "busy_ns",
                DataType::Int64,
                "Time in which at least one of them ran.",
            ),
            column(
                "limit",
                text.clone(),
                "What limits it: `short`, `memory`, `compute`, `too-small`, `tail`, `idle`, `latency`.",
            ),
            column(
                "limited_by",
                text.clone(),
                "The unit that is nearest to its limit, where counters say it.",
            ),
            column(
                "reached",
                float.clone(),
                "What it has of the limit: achieved over possible.",
            ),
            column(
                "winnable_ns",
                DataType::Int64,
                "Time that reaching the limit would save, at most.",
            ),
            column(
                "unknown_because",
                text.clone(),
                "Why its counters do not say a limit.",
            ),
            column("counter", text.clone(), "Name of the counter."),
            column("unit", text, "Unit of its values."),
            column("mean", float.clone(), "Mean while the kernel ran alone."),
            column(
                "error",
                float.clone(),
                "How far the mean may be off: its standard error, and what samples do not cover.",
            ),
            column("min", float.clone(), "The least sample."),
            column("max", float.clone(), "The greatest sample."),
            column("samples", DataType::UInt64, "Samples in it."),
            column(
                "covered_share",
                float,
                "The share of the kernel's time that they cover.",
            ),
        ],
        rows: |library, source| arrays(&read_kernels(library, source)),
    }
}

/// Finds the kernels of a trace. Problems are reported as remarks, and the trace then has no rows.
fn read_kernels(library: &Library, source: &Source) -> Vec<Kernel> {
    match read(&source.folder, &Findings::selection()) {
        Ok((trace, diagnostics)) => {
            for diagnostic in diagnostics {
                library.remark(format!("{}: {diagnostic}", source.name));
            }
            let found = guarded(|| {
                Findings::new(&trace, &Options::default())
                    .kernels
                    .into_value()
            });
            found.unwrap_or_else(|_| {
                library.remark(format!(
                    "{} cannot be analysed: its kernels' counters are missing",
                    source.name
                ));
                Vec::new()
            })
        }
        Err(error) => {
            library.remark(format!("{error}: its kernels' counters are missing"));
            Vec::new()
        }
    }
}

fn arrays(kernels: &[Kernel]) -> Vec<ArrayRef> {
    let rows: Vec<(&Kernel, Option<&KernelCounter>)> = kernels
        .iter()
        .flat_map(|kernel| {
            let means = kernel.counters.iter().flat_map(|counters| &counters.means);
            let with: Vec<_> = means.map(|mean| (kernel, Some(mean))).collect();
            match with.is_empty() {
                true => vec![(kernel, None)],
                false => with,
            }
        })
        .collect();
    let kernel = || rows.iter().map(|(kernel, _)| *kernel);
    let text = |of: fn(&Kernel) -> Option<&str>| -> ArrayRef {
        Arc::new(StringViewArray::from_iter(kernel().map(of)))
    };
    let counter = |of: fn(&KernelCounter) -> &str| -> ArrayRef {
        let texts = rows.iter().map(|(_, mean)| mean.map(of));
        Arc::new(StringViewArray::from_iter(texts))
    };
    let float = |of: fn(&KernelCounter) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter(
            rows.iter().map(|(_, mean)| mean.map(of)),
        ))
    };
    let times = |of: fn(&Kernel) -> Option<i64>| -> ArrayRef {
        Arc::new(Int64Array::from_iter(kernel().map(of)))
    };
    vec![
        text(|kernel| Some(&kernel.name)),
        Arc::new(UInt64Array::from_iter_values(
            kernel().map(|kernel| kernel.count),
        )),
        times(|kernel| kernel.busy_ns),
        text(|kernel| kernel.limit.map(|limit| limit.as_str())),
        text(|kernel| kernel.limited_by.map(|unit| unit.as_str())),
        Arc::new(Float64Array::from_iter(
            kernel().map(|kernel| kernel.reached),
        )),
        times(|kernel| kernel.winnable_ns),
        text(|kernel| kernel.counters.as_ref()?.unknown_because.as_deref()),
        counter(|mean| mean.name),
        counter(|mean| mean.unit.as_str()),
        float(|mean| mean.mean),
        float(|mean| mean.error),
        float(|mean| mean.min),
        float(|mean| mean.max),
        Arc::new(UInt64Array::from_iter(
            rows.iter()
                .map(|(_, mean)| mean.map(|mean| mean.sample_count)),
        )),
        float(|mean| mean.covered_share),
    ]
}
