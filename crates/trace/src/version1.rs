//! What version 1 of the format had in place of columns of this version.

use crate::column::Column;
use crate::kinds::SubmissionKind;
use crate::tables::{CounterValues, Counters, Submissions, Table};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::DataType;
use std::sync::Arc;

/// True of a table that traces of a version have. Without it, such a table is empty and nothing is missing.
pub fn has_table(format_version: u32, table: &str) -> bool {
    format_version > 1 || ![Counters::NAME, CounterValues::NAME].contains(&table)
}

/// A column that is made of those of version 1.
pub(crate) struct Derived {
    table: &'static str,
    column: &'static str,
    /// What it is made of. The first is always there in version 1.
    pub from: &'static [&'static str],
    /// Makes it, in the type that is wanted, of a batch of those columns. `None`: they are of other types.
    pub make: fn(&RecordBatch, &DataType) -> Option<ArrayRef>,
}

const DERIVED: [Derived; 3] = [
    Derived {
        table: Submissions::NAME,
        column: "start_ns",
        from: &["begin_ns"],
        make: |batch, _| batch.column_by_name("begin_ns").cloned(),
    },
    Derived {
        table: Submissions::NAME,
        column: "duration_ns",
        from: &["begin_ns", "end_ns"],
        make: duration,
    },
    Derived {
        table: Submissions::NAME,
        column: "kind",
        from: &["begin_ns", "function"],
        make: kind,
    },
];

/// How a column of this version is made of those of version 1; `None` for one that version 1 had, or lacked for good.
pub(crate) fn derived(table: &str, column: &str) -> Option<&'static Derived> {
    DERIVED
        .iter()
        .find(|derived| derived.table == table && derived.column == column)
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
    let mut functions = Vec::new();
    match batch.column_by_name("function") {
        Some(array) => Option::<Arc<str>>::append_array(array, &mut functions)?,
        None => functions.resize(batch.num_rows(), None),
    }
    let kinds = functions.iter().map(|function| match function {
        Some(name) => gapscope_model::cuda::submission_kind(name),
        None => SubmissionKind::CommandBuffers,
    });
    Some(match wanted {
        DataType::Utf8View => Arc::new(StringViewArray::from_iter_values(
            kinds.map(SubmissionKind::as_str),
        )),
        _ => SubmissionKind::to_array(&kinds.collect::<Vec<_>>()),
    })
}
