//! What earlier versions of the format had in place of columns of this version, and which tables.

use crate::column::{Column, Texts};
use crate::kinds::SubmissionKind;
use crate::tables::{
    CounterValues, Counters, Frames, HostCalls, KernelMetrics, PcSamples, Samples, Stacks,
    Submissions, Table,
};
use crate::text_column::TextColumn;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::DataType;
use std::sync::Arc;

/// True of a table that traces of a version have. Without it, such a table is empty and nothing is missing.
pub fn has_table(format_version: u32, table: &str) -> bool {
    match table {
        Counters::NAME | CounterValues::NAME => format_version > 1,
        Samples::NAME | Stacks::NAME | Frames::NAME => format_version > 2,
        _ => true,
    }
}

/// True of a table that only some traces have: without its file it is empty and nothing is missing.
pub fn is_optional(table: &str) -> bool {
    [KernelMetrics::NAME, PcSamples::NAME].contains(&table)
}

/// True of a column that could not lack values once, so that version 1 wrote 0 for what is not known.
pub(crate) fn is_absent_as_0(table: &str, column: &str) -> bool {
    column == "thread" && [Submissions::NAME, HostCalls::NAME].contains(&table)
}

/// The ids, absent where they are 0.
pub(crate) fn without_0(ids: ArrayRef) -> ArrayRef {
    match ids.as_primitive_opt::<UInt32Type>() {
        Some(numbers) if numbers.values().contains(&0) => {
            Arc::new(numbers.unary_opt::<_, UInt32Type>(|id| (id != 0).then_some(id)))
        }
        _ => ids,
    }
}

/// What version 1 had in place of a column.
pub(crate) enum Earlier {
    /// The same under another name.
    Named(&'static str),
    /// Columns, of which it is computed.
    Columns(Computed),
}

/// How a column is computed.
#[derive(Clone, Copy)]
pub(crate) struct Computed {
    /// Columns of the same type.
    pub from: &'static [&'static str],
    /// Makes it, in the type that is wanted, of a batch of those columns. `None`: they are of other types.
    pub make: fn(&RecordBatch, &DataType) -> Option<ArrayRef>,
}

/// A column that every table of [`earlier`] had in version 1, and has not had since.
pub(crate) const ONLY_COLUMN: &str = "begin_ns";

/// What version 1 had in place of a column of this version; `None` for one that it had too, or lacked for good.
pub(crate) fn earlier(table: &str, column: &str) -> Option<Earlier> {
    if table != Submissions::NAME {
        return None;
    }
    match column {
        "start_ns" => Some(Earlier::Named("begin_ns")),
        "duration_ns" => Some(Earlier::Columns(Computed {
            from: &["begin_ns", "end_ns"],
            make: duration,
        })),
        "kind" => Some(Earlier::Columns(Computed {
            from: &["function"],
            make: kind,
        })),
        _ => None,
    }
}

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

/// Only CUDA's submissions had a function, which says what they submit.
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
