//! Maps columns and tables of this version of the format to those of earlier versions.

use crate::column::{Column, Texts};
use crate::kinds::SubmissionKind;
use crate::tables::{
    AllocatorMemory, CounterValues, Counters, Frames, GraphNodes, HostCalls, KernelMetrics,
    PcSamples, Samples, Stacks, Submissions, Table,
};
use crate::text_column::TextColumn;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::DataType;
use std::sync::Arc;

/// Returns true for a table that traces of a version have. Any other table is empty without anything missing.
pub fn has_table(format_version: u32, table: &str) -> bool {
    match table {
        Counters::NAME | CounterValues::NAME => format_version > 1,
        Samples::NAME | Stacks::NAME | Frames::NAME => format_version > 2,
        _ => true,
    }
}

/// Returns true for a table that only some traces have. Without its file, it is empty and nothing is missing.
pub fn is_optional(table: &str) -> bool {
    [
        AllocatorMemory::NAME,
        GraphNodes::NAME,
        KernelMetrics::NAME,
        PcSamples::NAME,
    ]
    .contains(&table)
}

/// Returns true for a column that was not nullable in version 1 (every row had a value), which wrote 0 for an unknown
/// value.
pub(crate) fn had_zeros(table: &str, column: &str) -> bool {
    column == "thread" && [Submissions::NAME, HostCalls::NAME].contains(&table)
}

/// Replaces ids of 0 by absent ones.
pub(crate) fn zeros_to_absent(ids: ArrayRef) -> ArrayRef {
    match ids.as_primitive_opt::<UInt32Type>() {
        Some(numbers) if numbers.values().contains(&0) => {
            Arc::new(numbers.unary_opt::<_, UInt32Type>(|id| (id != 0).then_some(id)))
        }
        _ => ids,
    }
}

/// The predecessor of a column in version 1.
pub(crate) enum Predecessor {
    /// The same column under another name.
    Named(&'static str),
    /// Columns from which the column is computed.
    Columns(Computation),
}

/// A way to compute a column.
#[derive(Clone, Copy)]
pub(crate) struct Computation {
    /// The source columns, which have the same type.
    pub from: &'static [&'static str],
    /// Computes the column in the wanted type from a batch of the source columns; `None` where they have other types.
    pub compute: fn(&RecordBatch, &DataType) -> Option<ArrayRef>,
}

/// A column that every table of [`predecessor`] had in version 1, and never since.
pub(crate) const VERSION_1_COLUMN: &str = "begin_ns";

/// Returns the predecessor of a column; `None` for a column that version 1 had too, or lacked for good.
pub(crate) fn predecessor(table: &str, column: &str) -> Option<Predecessor> {
    if table != Submissions::NAME {
        return None;
    }
    match column {
        "start_ns" => Some(Predecessor::Named("begin_ns")),
        "duration_ns" => Some(Predecessor::Columns(Computation {
            from: &["begin_ns", "end_ns"],
            compute: duration,
        })),
        "kind" => Some(Predecessor::Columns(Computation {
            from: &["function"],
            compute: kind,
        })),
        _ => None,
    }
}

/// Computes durations from starts and ends.
fn duration(batch: &RecordBatch, _: &DataType) -> Option<ArrayRef> {
    let times = |column| {
        let array = batch.column_by_name(column)?;
        array.as_primitive_opt::<Int64Type>()
    };
    let (begin, end) = (times("begin_ns")?, times("end_ns")?);
    let durations = begin.iter().zip(end);
    let durations = durations.map(|(begin, end)| Some(end?.saturating_sub(begin?)));
    Some(Arc::new(durations.collect::<Int64Array>()))
}

/// Derives the kind of a submission. Only CUDA's submissions had a function, which tells what they submit.
fn kind(batch: &RecordBatch, wanted: &DataType) -> Option<ArrayRef> {
    let kind = |function: Option<&str>| match function {
        Some(name) => gapscope_model::cuda::submission_kind(name),
        None => SubmissionKind::CommandBuffers,
    };
    let kinds: Vec<SubmissionKind> = match batch.column_by_name("function") {
        None => vec![SubmissionKind::CommandBuffers; batch.num_rows()],
        Some(functions) => match functions.as_string_view_opt() {
            Some(views) => views.iter().map(kind).collect(),
            None => {
                let mut names = TextColumn::default();
                Option::<Arc<str>>::append_array(functions, &mut names, &mut Texts::default())?;
                names.iter().map(|name| kind(name.as_deref())).collect()
            }
        },
    };
    Some(match wanted {
        DataType::Utf8View => Arc::new(StringViewArray::from_iter_values(
            kinds.iter().map(|kind| kind.as_str()),
        )),
        _ => SubmissionKind::to_array(&kinds),
    })
}
