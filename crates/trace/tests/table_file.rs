//! Reads a table's file column by column, as the reader of traces and SQL do.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use gapscope_trace::ContainedPath;
use gapscope_trace::Damage;
use gapscope_trace::table_file::{Statistic, TableFile};
use gapscope_trace::tables::{Submissions, Table};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::{
    ParquetMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Returns the columns of the table, with texts in their simplest type.
fn wanted() -> Arc<Schema> {
    let schema = Submissions::schema();
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(..) => Field::new(field.name(), DataType::Utf8View, true),
        _ => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns the path of a file that does not exist yet, in a folder that is removed at the end of a test.
fn new_file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("submissions.parquet");
    (folder, path)
}

fn open(path: &Path) -> TableFile {
    TableFile::open(&ContainedPath::from(path), Submissions::NAME, wanted()).expect("it opens")
}

/// Writes submissions in row groups of two.
fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2));
    write_with(path, columns, properties);
}

fn write_with(path: &Path, columns: Vec<(&str, ArrayRef)>, to: WriterPropertiesBuilder) {
    let batch = RecordBatch::try_from_iter(columns).expect("equal lengths");
    let file = File::create(path).expect("create");
    let writer = ArrowWriter::try_new(file, batch.schema(), Some(to.build()));
    let mut writer = writer.expect("writer");
    writer.write(&batch).expect("write");
    writer.close().expect("close");
}

/// Returns four submissions in the columns of version 1.
fn version_1() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("thread", Arc::new(UInt32Array::from(vec![7, 0, 8, 9]))),
        (
            "begin_ns",
            Arc::new(Int64Array::from(vec![100, 200, 300, 400])),
        ),
        (
            "end_ns",
            Arc::new(Int64Array::from(vec![110, 220, 300, 440])),
        ),
    ]
}

/// Writes four submissions like other tools do.
fn compressed(path: &Path, compression: Compression) {
    let properties = WriterProperties::builder().set_compression(compression);
    write_with(path, version_1(), properties);
}

#[test]
fn files_that_other_tools_compress_are_read() {
    let (_folder, path) = new_file();
    for compression in [
        Compression::SNAPPY,
        Compression::UNCOMPRESSED,
        Compression::ZSTD(Default::default()),
        Compression::GZIP(Default::default()),
        Compression::LZ4_RAW,
    ] {
        compressed(&path, compression);
        let starts = one(&open(&path), "start_ns");
        let starts = starts[0].as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(starts, [100, 200, 300, 400], "{compression}");
    }
}

#[test]
fn a_compression_that_is_not_read_is_named_with_those_that_are() {
    let (_folder, path) = new_file();
    compressed(&path, Compression::UNCOMPRESSED);
    let bytes = std::fs::read(&path).expect("readable");
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&File::open(&path).expect("readable"))
        .expect("a footer");
    let groups = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter().map(|column| {
            let column = column.clone().into_builder();
            let column = column.set_compression(Compression::BROTLI(Default::default()));
            column.build().expect("a column")
        });
        let columns = columns.collect();
        let group = group.clone().into_builder().set_column_metadata(columns);
        group.build().expect("a row group")
    });
    let said = ParquetMetaDataBuilder::new(metadata.file_metadata().clone());
    let said = said.set_row_groups(groups.collect()).build();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap());
    let mut changed = bytes[..bytes.len() - 8 - footer as usize].to_vec();
    let written = ParquetMetaDataWriter::new(&mut changed, &said).finish();
    written.expect("written");
    std::fs::write(&path, changed).expect("write");
    let error =
        TableFile::open(&ContainedPath::from(&*path), Submissions::NAME, wanted()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "compressed with brotli: write it again with zstd, snappy, lz4, gzip or without compression"
    );
}

#[test]
fn a_file_that_pyarrow_compressed_with_gzip_is_read() {
    // Written by pyarrow with compression="gzip": two ids.
    let (_folder, path) = new_file();
    std::fs::write(&path, include_bytes!("files/gzip.parquet")).expect("write");
    let ids = one(&open(&path), "id");
    assert_eq!(ids[0].as_primitive::<UInt64Type>().values(), &[1, 2]);
}

#[test]
fn a_file_that_was_cut_short_is_said_to_be() {
    let (_folder, path) = new_file();
    write(&path, version_1());
    let bytes = std::fs::read(&path).expect("readable");
    for length in [0, 3, 4, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).expect("write");
        let error =
            TableFile::open(&ContainedPath::from(&*path), Submissions::NAME, wanted()).unwrap_err();
        assert_eq!(error, Damage::Cut, "{length}");
    }
}

fn one(file: &TableFile, column: &str) -> Vec<ArrayRef> {
    let batches = file.read(&[column], None, 1000).expect("it is read");
    let batches = batches.map(|batch| batch.expect("a batch"));
    batches.map(|batch| batch.column(0).clone()).collect()
}

#[test]
fn version_1_is_given_as_this_version() {
    let (_folder, path) = new_file();
    write(&path, version_1());
    let file = open(&path);
    assert_eq!((file.rows(), file.row_groups()), (4, 2));
    let starts = one(&file, "start_ns");
    assert_eq!(
        starts[0].as_primitive::<Int64Type>().values(),
        &[100, 200, 300, 400]
    );
    let durations = one(&file, "duration_ns");
    assert_eq!(
        durations[0].as_primitive::<Int64Type>().values(),
        &[10, 20, 0, 40]
    );
    // Such old files lack the functions that determine kinds.
    assert!(!file.has("function"));
    let kinds = one(&file, "kind");
    let kinds: Vec<_> = kinds[0].as_string_view().iter().collect();
    assert_eq!(kinds, [Some("command-buffers"); 4]);
    // One row group and several columns, in the order requested.
    let columns = ["kind", "thread", "start_ns", "queue"];
    let mut batches = file.read(&columns, Some(1), 1000).expect("it is read");
    let batch = batches.next().expect("a batch").expect("it is whole");
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["kind", "thread", "start_ns"]);
    let starts = batch.column(2).as_primitive::<Int64Type>();
    assert_eq!(starts.values(), &[300, 400]);
    assert!(batches.next().is_none());
}

#[test]
fn a_thread_of_0_is_absent_and_its_statistics_do_not_say_otherwise() {
    let (_folder, path) = new_file();
    write(&path, version_1());
    let file = open(&path);
    let threads = one(&file, "thread");
    let threads: Vec<_> = threads[0].as_primitive::<UInt32Type>().iter().collect();
    assert_eq!(threads, [Some(7), None, Some(8), Some(9)]);
    assert!(file.statistic("thread", 0, Statistic::NullCount).is_none());
}

#[test]
fn statistics_are_of_the_values_as_they_are_given() {
    let (_folder, path) = new_file();
    write(&path, version_1());
    let file = open(&path);
    let ns = |row_group, statistic| {
        let value = file.statistic("start_ns", row_group, statistic);
        value.map(|value| value.as_primitive::<Int64Type>().value(0))
    };
    assert_eq!(ns(0, Statistic::Min), Some(100));
    assert_eq!(ns(0, Statistic::Max), Some(200));
    assert_eq!(ns(1, Statistic::Min), Some(300));
    assert_eq!(ns(2, Statistic::Min), None, "there is no such row group");
    let absent = file.statistic("start_ns", 0, Statistic::NullCount);
    let absent = absent.expect("the footer counts them");
    assert_eq!(absent.as_primitive::<UInt64Type>().value(0), 0);
    for computed in ["duration_ns", "kind", "queue", "zebra"] {
        assert!(
            file.statistic(computed, 0, Statistic::Min).is_none(),
            "{computed}"
        );
    }
}

#[test]
fn a_foreign_type_is_told_also_where_version_1_had_other_columns() {
    let (_folder, path) = new_file();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let mut columns = version_1();
    columns[2].1 = text.clone();
    columns.push(("id", text));
    write(&path, columns);
    let file = open(&path);
    assert_eq!(file.foreign_type("id"), Some(DataType::Utf8View));
    assert_eq!(file.foreign_type("duration_ns"), Some(DataType::Utf8View));
    assert_eq!(file.foreign_type("start_ns"), None);
    assert_eq!(file.foreign_type("kind"), None);
    assert_eq!(file.foreign_type("queue"), None);
    let mut batches = file.read(&["duration_ns"], None, 1000).expect("it opens");
    assert!(batches.next().expect("a batch").is_err());
}

#[test]
fn a_missing_file_is_told_from_a_damaged_one() {
    let (_folder, path) = new_file();
    let error =
        || TableFile::open(&ContainedPath::from(&*path), Submissions::NAME, wanted()).unwrap_err();
    assert_eq!(error(), Damage::Missing);
    std::fs::write(&path, "PAR1 and no more").expect("write");
    assert_eq!(error(), Damage::Cut);
}
