//! Files that claim more than they hold, and small files that would fill memory.

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array};
use gapscope_trace::ids::KernelId;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::memory;
use gapscope_trace::tables::*;
use gapscope_trace::{
    Diagnostic, DispatchPieces, Error, Selection, TraceWriter, read, table_sizes,
};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Serialises tests that measure this process' memory.
static MEMORY: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Writes a trace of 1000 dispatches. Returns its folder, in a folder that is removed at the end of a test.
fn written() -> (TempDir, PathBuf) {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().join("a.gapscope");
    let mut writer = TraceWriter::create(&folder).expect("create");
    for at in 0..1000 {
        writer.tables_mut().dispatches.push(Dispatch {
            kernel: KernelId(at % 7),
            start_ns: Some(i64::from(at) * 100),
            ..Dispatch::default()
        });
    }
    writer.finish(&Manifest::default()).expect("finish");
    (temporary, folder)
}

/// Changes the number of rows that a file's footer claims for each column.
fn claim(path: &Path, rows: i64) {
    let bytes = fs::read(path).expect("readable");
    let file = File::open(path).expect("readable");
    let metadata = ParquetMetaDataReader::new();
    let metadata = metadata.parse_and_finish(&file).expect("a footer");
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize;
    let mut out = bytes[..bytes.len() - 8 - footer].to_vec();
    let groups = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter().map(|column| {
            let column = column.clone().into_builder().set_num_values(rows);
            column.build().expect("a column")
        });
        let columns = columns.collect();
        let group = group.clone().into_builder().set_num_rows(rows);
        let group = group.set_column_metadata(columns);
        group.build().expect("a row group")
    });
    // The changed footer has no checksum.
    let said = metadata.file_metadata();
    let said = FileMetaData::new(
        said.version(),
        rows,
        None,
        None,
        said.schema_descr_ptr(),
        None,
    );
    let metadata = ParquetMetaDataBuilder::new(said).set_row_groups(groups.collect());
    let metadata = metadata.build();
    ParquetMetaDataWriter::new(&mut out, &metadata)
        .finish()
        .expect("written");
    fs::write(path, out).expect("written");
}

#[test]
fn a_footer_that_claims_any_number_of_rows_is_told_and_takes_no_memory() {
    let _memory = MEMORY.lock().unwrap_or_else(|e| e.into_inner());
    for claimed in [
        999,
        1001,
        1 << 20,
        1 << 31,
        u32::MAX.into(),
        1 << 40,
        1 << 62,
        i64::MAX,
    ] {
        let (_temporary, folder) = written();
        claim(&folder.join("dispatches.parquet"), claimed);
        let (trace, diagnostics) = read(&folder, &Selection::all().unchecked()).expect("it opens");
        assert_eq!(trace.tables.dispatches.len(), 0, "{claimed}");
        assert!(
            diagnostics.iter().any(|diagnostic| matches!(
                diagnostic,
                Diagnostic::UnreadableFile { .. } | Diagnostic::UnreadableRows { .. }
            )),
            "{claimed}: {diagnostics:?}"
        );
        assert_eq!(trace.unread[0].table, "dispatches");
        if let Some(pieces) = DispatchPieces::open(&folder, &Selection::all()) {
            let mut taken = 0;
            let whole = pieces.each(&trace, &mut |piece| taken += piece.len());
            assert_eq!(whole, None, "{claimed}");
            assert!(taken <= 1000, "{claimed}: {taken}");
        }
        table_sizes(&folder, 2).expect("sizes");
    }
}

/// Writes a file of kernels with the same name.
fn one_name(path: &Path, name: &str, rows: usize) {
    let text = |text: &str| -> ArrayRef {
        let texts = Arc::new(StringArray::from(vec![text]));
        Arc::new(DictionaryArray::new(Int32Array::from(vec![0; rows]), texts))
    };
    let ids = UInt32Array::from_iter_values(0..rows as u32);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(ids)),
        ("process", Arc::new(UInt32Array::from(vec![1; rows]))),
        ("name", text(name)),
        ("name_source", text("label")),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("equal lengths");
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(10 << 20)
        .set_compression(parquet::basic::Compression::ZSTD(Default::default()));
    let file = File::create(path).expect("create");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).expect("writer");
    writer.write(&batch).expect("write");
    writer.close().expect("close");
}

#[test]
fn a_long_text_that_many_rows_have_is_in_memory_once() {
    let _memory = MEMORY.lock().unwrap_or_else(|e| e.into_inner());
    let (_temporary, folder) = written();
    let name = "x".repeat(20_000);
    one_name(&folder.join("kernels.parquet"), &name, 50_000);
    let before = memory::limit();
    memory::set_limit(300 << 20);
    let opened = read(&folder, &Selection::all().unchecked());
    memory::set_limit(before);
    let (trace, diagnostics) = opened.expect("the names are not a gigabyte");
    assert_eq!(diagnostics, []);
    let names = &trace.tables.kernels.name;
    assert_eq!((names.len(), &*names[49_999]), (50_000, name.as_str()));
    assert!(names.iter().all(|other| Arc::ptr_eq(other, &names[0])));
}

/// Writes many command buffers of defaults into a file of a few kilobytes.
fn run_lengths(path: &Path, rows: usize) {
    const BATCH: usize = 1 << 17;
    let mut table = CommandBuffers::default();
    for _ in 0..BATCH {
        table.push(CommandBuffer::default());
    }
    let many = table.to_batch();
    let file = File::create(path).expect("create");
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::ZSTD(Default::default()));
    let mut writer =
        ArrowWriter::try_new(file, many.schema(), Some(properties.build())).expect("writer");
    for _ in 0..rows / BATCH {
        writer.write(&many).expect("write");
    }
    writer.close().expect("close");
}

#[test]
#[cfg(target_os = "linux")]
fn what_does_not_fit_into_the_limit_is_an_error_that_says_what_to_do() {
    let _memory = MEMORY.lock().unwrap_or_else(|e| e.into_inner());
    let (_temporary, folder) = written();
    let path = folder.join("command_buffers.parquet");
    run_lengths(&path, 4 << 20);
    assert!(fs::metadata(&path).expect("a file").len() < 1 << 20);
    let before = memory::limit();
    memory::set_limit(100 << 20);
    let all = read(&folder, &Selection::all());
    let few = read(&folder, &Selection::all().without::<CommandBuffers>());
    memory::set_limit(before);
    let Err(error) = all else {
        panic!("4 million rows fit into 100 MiB");
    };
    assert!(
        matches!(&error, Error::Memory { path: found, .. } if *found == path),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        format!(
            "{} cannot be read with 100 MiB of memory, the limit here: set GAPSCOPE_MEMORY_LIMIT to more if the machine \
             has it, or record a shorter time",
            path.display()
        )
    );
    few.expect("the others are small");
}
