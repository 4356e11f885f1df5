//! Pages whose headers claim more than they hold.

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use gapscope_trace::ContainedPath;
use gapscope_trace::memory;
use gapscope_trace::table_file::{ReadError, TableFile};
use gapscope_trace::tables::{Submissions, Table};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{
    ParquetMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const ROWS: i64 = 1000;

/// Serialises tests that change this process' limit.
static LIMIT: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// A page's header and the bytes after it.
struct Page {
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
    bytes: Vec<u8>,
}

fn number(out: &mut Vec<u8>, value: i64) {
    let mut value = ((value << 1) ^ (value >> 63)) as u64;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Page {
    /// Encodes the header in the compact protocol, for a page of plain values.
    fn written(&self) -> Vec<u8> {
        let mut out = vec![0x15, 0, 0x15];
        number(&mut out, self.unpacked);
        out.push(0x15);
        number(&mut out, self.packed);
        out.extend([0x2c, 0x15]);
        number(&mut out, self.values);
        out.push(0x15);
        number(&mut out, self.encoding);
        out.extend([0x15, 6, 0x15, 6, 0, 0]);
        out.extend(&self.bytes);
        out
    }
}

/// Returns the path of a file that does not exist yet, in a folder that is removed at the end of a test.
fn new_file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("submissions.parquet");
    (folder, path)
}

/// Writes a file whose only column is `start_ns`, and returns its only page.
fn write(path: &Path, compression: Compression) -> Page {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|at| at * at)));
    let batch = RecordBatch::try_from_iter([("start_ns", values)]).expect("a column");
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::PLAIN);
    let file = File::create(path).expect("create");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).expect("writer");
    writer.write(&batch).expect("write");
    let metadata = writer.close().expect("close");
    let column = metadata.row_group(0).column(0);
    let (start, length) = column.byte_range();
    let bytes = &fs::read(path).expect("readable")[start as usize..][..length as usize];
    // The shortest header for which the rest has the length that it states.
    let page = (8..64).find_map(|header| {
        let page = Page {
            unpacked: ROWS * 8,
            packed: (bytes.len() - header) as i64,
            values: ROWS,
            encoding: 0,
            bytes: bytes[header..].to_vec(),
        };
        let unlevelled = page.written().len() == bytes.len();
        unlevelled.then_some(page)
    });
    page.expect("a page")
}

/// Replaces the pages of the file, whose footer claims `unpacked` bytes for them.
fn replace(path: &Path, pages: &[Page], unpacked: i64) {
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&File::open(path).expect("readable"))
        .expect("a footer");
    let mut out = b"PAR1".to_vec();
    let group = metadata.row_group(0);
    let compression = match pages.first() {
        Some(page) if page.encoding > 0 => Compression::UNCOMPRESSED,
        _ => group.column(0).compression(),
    };
    let pages: Vec<u8> = pages.iter().flat_map(Page::written).collect();
    let column = group.column(0).clone().into_builder();
    let column = column
        .set_compression(compression)
        .set_dictionary_page_offset(None)
        .set_data_page_offset(4)
        .set_total_compressed_size(pages.len() as i64)
        .set_total_uncompressed_size(unpacked)
        .build();
    let group = group.clone().into_builder();
    let group = group.set_column_metadata(vec![column.expect("a column")]);
    out.extend(pages);
    let metadata = ParquetMetaDataBuilder::new(metadata.file_metadata().clone())
        .set_row_groups(vec![group.build().expect("a row group")])
        .build();
    ParquetMetaDataWriter::new(&mut out, &metadata)
        .finish()
        .expect("written");
    fs::write(path, out).expect("written");
}

/// Returns the number of rows that are read, and why there are no more.
fn read(path: &Path) -> (usize, Option<String>) {
    read_column(path, "start_ns")
}

fn read_column(path: &Path, column: &str) -> (usize, Option<String>) {
    let file = TableFile::open(
        &ContainedPath::from(path),
        Submissions::NAME,
        Submissions::schema(),
    )
    .expect("it opens");
    let batches = match file.read(&[column], None, 100) {
        Ok(batches) => batches,
        Err(reason) => return (0, Some(reason.to_string())),
    };
    let mut rows = 0;
    for batch in batches {
        match batch {
            Ok(batch) => rows += batch.num_rows(),
            Err(ReadError::Damaged(reason)) => return (rows, Some(reason.to_string())),
            Err(ReadError::Memory) => panic!("a kilobyte fills memory"),
        }
    }
    (rows, None)
}

fn codecs() -> [Compression; 5] {
    [
        Compression::ZSTD(Default::default()),
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::LZ4_RAW,
        Compression::UNCOMPRESSED,
    ]
}

#[test]
fn a_page_that_claims_two_gibibytes_is_refused_before_room_is_made() {
    let (_folder, path) = new_file();
    let before = peak_bytes();
    for codec in codecs() {
        let page = write(&path, codec);
        replace(&path, std::slice::from_ref(&page), ROWS * 8 + 100);
        assert_eq!(read(&path), (1000, None), "{codec}");
        for (says, unpacked) in [("column has", 8100), ("can become", i64::from(i32::MAX))] {
            let page = Page {
                unpacked: i64::from(i32::MAX),
                bytes: page.bytes.clone(),
                ..page
            };
            replace(&path, &[page], unpacked);
            let (rows, reason) = read(&path);
            let reason = reason.expect("a reason");
            assert!(
                reason.starts_with("a page claims 2.0 GiB, more than its "),
                "{reason}"
            );
            assert!(reason.ends_with(says), "{codec}: {reason}");
            assert_eq!(rows, 0);
        }
    }
    if let (Some(before), Some(after)) = (before, peak_bytes()) {
        assert!(after - before < 1 << 30, "room was made: {before} {after}");
    }
}

#[test]
fn a_page_that_is_longer_than_the_limit_of_memory_is_refused() {
    let _limit = LIMIT.lock().unwrap_or_else(|e| e.into_inner());
    let (_folder, path) = new_file();
    let page = write(&path, Compression::ZSTD(Default::default()));
    let page = Page {
        unpacked: 20 << 20,
        ..page
    };
    replace(&path, &[page], 30 << 20);
    let before = memory::limit();
    memory::set_limit(16 << 20);
    let read = read(&path);
    memory::set_limit(before);
    let expected =
        "a page claims 20 MiB, more than the limit of memory, which GAPSCOPE_MEMORY_LIMIT sets";
    assert_eq!(read, (0, Some(expected.to_owned())));
}

#[test]
fn rows_before_a_page_that_is_refused_are_read() {
    let (_folder, path) = new_file();
    let whole = write(&path, Compression::UNCOMPRESSED);
    let part = |from: usize, rows: usize, values: i64| {
        let bytes = whole.bytes[from * 8..][..rows * 8].to_vec();
        Page {
            unpacked: bytes.len() as i64,
            packed: bytes.len() as i64,
            values,
            encoding: 0,
            bytes,
        }
    };
    let read_with = |pages: &[Page]| {
        replace(&path, pages, 1 << 20);
        read(&path)
    };
    let parts = || [part(0, 400, 400), part(400, 600, 600)];
    assert_eq!(read_with(&parts()), (1000, None));
    let more = [part(0, 400, 400), part(400, 600, 601)];
    let reason = "it has more values than its file says".to_owned();
    assert_eq!(read_with(&more), (400, Some(reason.to_string())));
    let fewer = [part(0, 400, 400), part(400, 500, 500)];
    let reason = "it has fewer values than its file says".to_owned();
    assert_eq!(read_with(&fewer), (0, Some(reason.to_string())));
    let mut torn = parts();
    torn[1].packed += 1;
    let reason = "a page of it goes on beyond its end".to_owned();
    assert_eq!(read_with(&torn), (400, Some(reason.to_string())));
}

/// Without the check, the Parquet library ends the process, because it allocates 2^40 lengths.
#[test]
fn texts_that_claim_more_lengths_than_rows_are_refused() {
    let _limit = LIMIT.lock().unwrap_or_else(|e| e.into_inner());
    let (_folder, path) = new_file();
    for encoding in [6, 7] {
        for (values, said) in [
            (1_u64 << 40, "the lengths of its texts are damaged"),
            // A text of 2 GiB, given as a prefix of the one before.
            (
                1,
                "more than the limit of memory, which GAPSCOPE_MEMORY_LIMIT sets",
            ),
        ] {
            if (encoding, values) == (6, 1) {
                continue;
            }
            let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"; ROWS as usize]));
            let batch = RecordBatch::try_from_iter([("function", texts)]).expect("a column");
            let file = File::create(&path).expect("create");
            let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("writer");
            writer.write(&batch).expect("write");
            writer.close().expect("close");
            let mut bytes = Vec::new();
            let lengths = |bytes: &mut Vec<u8>, first: i64| {
                bytes.extend([0x80, 1, 4]);
                let mut values = values;
                while values >= 0x80 {
                    bytes.push(values as u8 | 0x80);
                    values >>= 7;
                }
                bytes.push(values as u8);
                number(bytes, first);
            };
            lengths(&mut bytes, i32::MAX.into());
            lengths(&mut bytes, 0);
            let page = Page {
                unpacked: bytes.len() as i64,
                packed: bytes.len() as i64,
                values: ROWS,
                encoding,
                bytes,
            };
            replace(&path, &[page], 1 << 20);
            let before = memory::limit();
            memory::set_limit(1 << 30);
            let (rows, reason) = read_column(&path, "function");
            memory::set_limit(before);
            let reason = reason.expect("a reason");
            assert!(reason.ends_with(said), "{encoding}, {values}: {reason}");
            assert_eq!(rows, 0);
        }
    }
}

/// Returns the greatest address space that this process had.
fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmPeak:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}
