//! Reads traces whose tables other tools rewrote in other types, with the same result.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int64Array, LargeStringArray, NullArray,
    RecordBatch, TimestampNanosecondArray,
};
use arrow_schema::DataType;
use gapscope_trace::synthetic::Synthetic;
use gapscope_trace::tables::*;
use gapscope_trace::{Selection, for_each_table, read};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// The types in which a tool writes columns.
type Rewrite = fn(&ArrayRef) -> ArrayRef;

/// Numbers and texts in the widest types, and times as timestamps.
fn widest(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::UInt32 => {
            let numbers = column.as_primitive::<UInt32Type>();
            Arc::new(numbers.unary::<_, Int64Type>(i64::from))
        }
        DataType::UInt64 => {
            let numbers = column.as_primitive::<UInt64Type>();
            Arc::new(numbers.unary::<_, Int64Type>(|number| number as i64))
        }
        DataType::Int64 => {
            let times = column.as_primitive::<Int64Type>();
            let times = times.iter().collect::<TimestampNanosecondArray>();
            Arc::new(times.with_timezone("UTC"))
        }
        DataType::Dictionary(..) => Arc::new(texts(column).collect::<LargeStringArray>()),
        _ => column.clone(),
    }
}

/// Like pandas: nullable numbers are floats, columns without values have no type, texts are categories.
fn pandas(column: &ArrayRef) -> ArrayRef {
    if column.null_count() == column.len() {
        return Arc::new(NullArray::new(column.len()));
    }
    let absent = column.null_count() > 0;
    let float = |numbers: &mut dyn Iterator<Item = Option<i64>>| {
        let floats = numbers.map(|number| number.map(|number| number as f64));
        Arc::new(floats.collect::<Float64Array>()) as ArrayRef
    };
    match column.data_type() {
        DataType::UInt32 if absent => {
            let numbers = column.as_primitive::<UInt32Type>().iter();
            float(&mut numbers.map(|number| number.map(i64::from)))
        }
        DataType::UInt64 if absent => {
            let numbers = column.as_primitive::<UInt64Type>().iter();
            float(&mut numbers.map(|number| number.map(|number| number as i64)))
        }
        DataType::Int64 if absent => float(&mut column.as_primitive::<Int64Type>().iter()),
        DataType::Dictionary(..) => {
            let column = column.as_dictionary::<Int32Type>();
            let values = column.values().as_string::<i32>();
            let values = values.iter().collect::<LargeStringArray>();
            let keys = column.keys().clone();
            Arc::new(DictionaryArray::new(keys, Arc::new(values)))
        }
        _ => column.clone(),
    }
}

fn texts(column: &ArrayRef) -> impl Iterator<Item = Option<&str>> {
    let column = column.as_dictionary::<Int32Type>();
    let texts = column.downcast_dict::<arrow_array::StringArray>();
    texts.expect("a dictionary of texts").into_iter()
}

/// Rewrites a table with its columns in reverse order.
fn write<T: Table>(folder: &Path, table: &T, rewrite: Rewrite, properties: WriterProperties) {
    let batch = table.to_batch();
    let columns = T::COLUMNS.iter().zip(batch.columns()).rev();
    let columns = columns.map(|(name, column)| (*name, rewrite(column), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("equal lengths");
    let file = File::create(folder.join(format!("{}.parquet", T::NAME))).expect("create");
    let writer = ArrowWriter::try_new(file, batch.schema(), Some(properties));
    let mut writer = writer.expect("writer");
    writer.write(&batch).expect("write");
    writer.close().expect("close");
}

/// Returns the folder of a made-up trace, in a folder that is removed at the end of a test.
fn synthetic(dispatches: u64) -> (TempDir, PathBuf) {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().join("a.gapscope");
    let synthetic = Synthetic {
        dispatches,
        ..Synthetic::default()
    };
    synthetic.write(&folder).expect("written");
    (temporary, folder)
}

#[test]
fn a_trace_that_another_tool_wrote_again_is_the_same() {
    let (_temporary, folder) = synthetic(700);
    let (trace, diagnostics) = read(&folder, &Selection::all()).expect("it opens");
    assert_eq!(diagnostics, []);
    let settings = || {
        let small = WriterProperties::builder()
            .set_max_row_group_row_count(Some(100))
            .set_data_page_row_count_limit(30)
            .set_write_batch_size(10);
        [
            (
                "as pyarrow",
                small.clone().set_compression(Compression::SNAPPY),
            ),
            (
                "of version 2, with lengths of texts apart",
                small
                    .clone()
                    .set_writer_version(WriterVersion::PARQUET_2_0)
                    .set_dictionary_enabled(false)
                    .set_compression(Compression::ZSTD(Default::default())),
            ),
            (
                "plain",
                small
                    .set_dictionary_enabled(false)
                    .set_statistics_enabled(EnabledStatistics::None),
            ),
        ]
    };
    let same: Rewrite = Arc::clone;
    for (types, rewrite) in [("same", same), ("widest", widest), ("pandas", pandas)] {
        for (how, properties) in settings() {
            let properties = properties.build();
            macro_rules! write_all {
                ($($field:ident: $table:ty,)+) => {$(
                    write(&folder, &trace.tables.$field, rewrite, properties.clone());
                )+};
            }
            for_each_table!(write_all);
            let (again, diagnostics) = read(&folder, &Selection::all()).expect("it opens");
            assert_eq!(diagnostics, [], "{types}, {how}");
            assert!(again == trace, "{types}, {how}");
        }
    }
}

#[test]
fn a_value_that_a_column_cannot_have_ends_it_and_is_named() {
    let (_temporary, folder) = synthetic(100);
    let (trace, _) = read(&folder, &Selection::all()).expect("it opens");
    let negative: Rewrite = |column| match column.data_type() {
        DataType::UInt32 => {
            let mut numbers = vec![1_i64; column.len()];
            *numbers.last_mut().expect("a row") = -1;
            Arc::new(Int64Array::from(numbers))
        }
        DataType::Int64 => {
            // Half a nanosecond is not possible.
            let times = vec![0.5; column.len()];
            Arc::new(arrow_array::PrimitiveArray::<Float64Type>::from(times))
        }
        _ => column.clone(),
    };
    let properties = WriterProperties::builder().build();
    write(&folder, &trace.tables.dispatches, negative, properties);
    let (again, diagnostics) = read(&folder, &Selection::all()).expect("it opens");
    assert_eq!(again.tables.dispatches.len(), 0);
    let said: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    for part in [
        "it holds -1, no UInt32",
        "it holds 0.5 as a float, which is no exact Int64",
    ] {
        assert!(said.iter().any(|said| said.contains(part)), "{said:?}");
    }
}
