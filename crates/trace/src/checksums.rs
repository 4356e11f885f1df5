//! Writes and verifies the checksums of a table's file: a CRC-32 of each block of its columns and one of its footer.
//! All of them are in the footer. Bytes that were changed after they were written are an error and never a
//! measurement.
//!
//! Parquet has its own checksums of pages, but none of page headers or of the footer. Blocks are small, so that rows
//! before a damaged block can still be read.

use crate::damage::Damage;
use bytes::Bytes;
use gapscope_files::ContainedPath;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    FileMetaData, KeyValue, PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder,
    ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The beginning of `created_by` in files that are written here. A tool that rewrites a table may keep unknown footer
/// values, such as ours.
pub(crate) const WRITER: &str = "gapscope ";

/// The key of the checksums among the footer's values. The value begins with [`SIGNATURE`]; eight digits for each
/// block follow, of all columns in the order of the footer.
const KEY: &str = "gapscope.crc32";

/// Stands in front of the footer's own checksum, which is computed with [`UNSIGNED`] in its place.
const SIGNATURE: &str = "footer=";
/// Stands in the place of the footer's checksum while that is computed.
const UNSIGNED: &str = "00000000";

/// The most bytes that are read at once from a file without checksums when the length is open.
const UNSIGNED_READ_BYTES: u64 = 1 << 13;

/// Returns the size of a column's blocks in bytes; the last block is shorter. Checksums take a thousandth of a long
/// column, and a short column still has several blocks.
fn block_bytes(column: &Range<u64>) -> u64 {
    let sixteenth = (column.end - column.start) / 16;
    sixteenth.next_power_of_two().clamp(1 << 9, 1 << 13)
}

/// Rewrites the footer of a finished file, which is open for reading and writing, so that it has the checksums of all blocks and its own.
pub(crate) fn sign(mut file: &File) -> Result<()> {
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .parse_and_finish(file)?;
    let mut value = format!("{SIGNATURE}{UNSIGNED} ");
    let mut block = Vec::new();
    for column in columns(&metadata) {
        for range in blocks(column) {
            block.resize((range.end - range.start) as usize, 0);
            read_at(file, range.start, &mut block)?;
            value += &digits(crc32fast::hash(&block));
        }
    }
    let facts = metadata.file_metadata();
    let mut values = facts.key_value_metadata().cloned().unwrap_or_default();
    values.push(KeyValue::new(KEY.to_owned(), value));
    let signed = FileMetaData::new(
        facts.version(),
        facts.num_rows(),
        facts.created_by().map(str::to_owned),
        Some(values),
        facts.schema_descr_ptr(),
        facts.column_orders().cloned(),
    );
    let begins = file.metadata()?.len() - footer_bytes(file)? - TAIL_BYTES;
    let metadata =
        ParquetMetaDataBuilder::new(signed).set_row_groups(metadata.row_groups().to_vec());
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &metadata.build()).finish()?;
    let length = footer.len() - TAIL_BYTES as usize;
    if let Some(place) = signature(&footer[..length]) {
        let signature = digits(crc32fast::hash(&footer[..length]));
        footer[place].copy_from_slice(signature.as_bytes());
    }
    file.set_len(begins)?;
    file.seek(SeekFrom::Start(begins))?;
    file.write_all(&footer)?;
    Ok(())
}

/// Length of the end of a Parquet file: the length of its footer, and a magic number.
const TAIL_BYTES: u64 = 8;

/// Returns the length of the footer in bytes, as the file's end gives it.
pub(crate) fn footer_bytes(file: &File) -> io::Result<u64> {
    let mut length = [0; 4];
    let end = file.metadata()?.len();
    read_at(file, end.saturating_sub(TAIL_BYTES), &mut length)?;
    Ok(u32::from_le_bytes(length).into())
}

/// Returns the bytes of a footer; `None` where the file is shorter than the length that it gives.
pub(crate) fn footer_of(file: &File) -> Option<Vec<u8>> {
    let bytes = footer_bytes(file).ok()?;
    let start = file
        .metadata()
        .ok()?
        .len()
        .checked_sub(TAIL_BYTES + bytes)?;
    let mut footer = vec![0; usize::try_from(bytes).ok()?];
    read_at(file, start, &mut footer).ok()?;
    Some(footer)
}

/// Returns the position of the footer's checksum in the footer.
fn signature(footer: &[u8]) -> Option<Range<usize>> {
    let found = (0..footer.len()).rev();
    let begins = |at: &usize| footer[*at..].starts_with(SIGNATURE.as_bytes());
    let at = found.into_iter().find(begins)? + SIGNATURE.len();
    let place = at..at + UNSIGNED.len();
    (place.end <= footer.len()).then_some(place)
}

/// Returns a checksum as eight hexadecimal digits.
fn digits(sum: u32) -> String {
    format!("{sum:08x}")
}

/// Returns the byte range of each column of each row group, in the order of the footer.
fn columns(metadata: &ParquetMetaData) -> impl Iterator<Item = Range<u64>> {
    let groups = metadata.row_groups().iter();
    groups.flat_map(|group| group.columns()).map(|column| {
        let (start, length) = column.byte_range();
        start..start.saturating_add(length)
    })
}

/// Returns the byte ranges of a column's blocks.
fn blocks(column: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let bytes = block_bytes(&column);
    let starts = column.clone().step_by(bytes as usize);
    starts.map(move |start| start..column.end.min(start + bytes))
}

/// Stands in front of the checksum of a manifest, which is computed without this last member.
const MANIFEST_SIGNATURE: &str = ",\n  \"crc32\": \"";

/// Returns a manifest's JSON with its checksum as the last member. JSON that does not end with a brace on its own
/// line stays as it is.
pub(crate) fn signed_manifest(mut json: Vec<u8>) -> Vec<u8> {
    if json.ends_with(b"\n}") {
        json.truncate(json.len() - 2);
        let sum = digits(crc32fast::hash(&json));
        json.extend(format!("{MANIFEST_SIGNATURE}{sum}\"\n}}").into_bytes());
    }
    json
}

/// Returns true for a manifest whose content does not match its checksum.
pub(crate) fn is_altered_manifest(json: &[u8]) -> bool {
    let begins = |at: &usize| json[*at..].starts_with(MANIFEST_SIGNATURE.as_bytes());
    let Some(at) = (0..json.len()).rev().find(begins) else {
        return false;
    };
    json != signed_manifest([&json[..at], b"\n}"].concat())
}

/// The checksums of a table's file, with the positions of the blocks that they are of.
#[derive(Debug, Default)]
pub(crate) struct Checksums {
    /// The columns of all row groups, sorted by position in the file.
    columns: Vec<SignedColumn>,
    /// The checksums of all blocks, in the order of the footer.
    blocks: Vec<u32>,
}

/// A column of a row group whose blocks have checksums.
#[derive(Debug)]
struct SignedColumn {
    /// The column's byte range in the file.
    place: Range<u64>,
    block_bytes: u64,
    /// The index of the checksum of the column's first block.
    first_block: usize,
}

impl Checksums {
    /// Reads the checksums of a file; `None` where it has none, because another tool or an earlier gapscope wrote it.
    ///
    /// # Errors
    /// The footer differs from the one that was written.
    pub fn read(
        file: &File,
        metadata: &ParquetMetaData,
    ) -> std::result::Result<Option<Self>, Damage> {
        let facts = metadata.file_metadata();
        if !facts.created_by().is_some_and(|by| by.starts_with(WRITER)) {
            return Ok(None);
        }
        let mut values = facts.key_value_metadata().into_iter().flatten();
        let Some(value) = values.find(|value| value.key == KEY) else {
            return Ok(None);
        };
        let whole = || {
            let mut footer = footer_of(file)?;
            let place = signature(&footer)?;
            let signed = footer[place.clone()].to_vec();
            footer[place].copy_from_slice(UNSIGNED.as_bytes());
            let sum = digits(crc32fast::hash(&footer));
            (signed == sum.as_bytes()).then_some(())?;
            let blocks = value.value.as_deref()?;
            let blocks = blocks.get(SIGNATURE.len() + UNSIGNED.len() + 1..)?;
            let sum = |at| u32::from_str_radix(blocks.get(at..at + 8)?, 16).ok();
            let blocks = (0..blocks.len()).step_by(8).map(sum);
            let blocks = blocks.collect::<Option<Vec<u32>>>()?;
            let mut first_block = 0;
            let mut columns: Vec<SignedColumn> = columns(metadata)
                .map(|place| {
                    let (before, block_bytes) = (first_block, block_bytes(&place));
                    first_block += (place.end - place.start).div_ceil(block_bytes) as usize;
                    SignedColumn {
                        place,
                        block_bytes,
                        first_block: before,
                    }
                })
                .collect();
            columns.sort_by_key(|column| column.place.start);
            (blocks.len() == first_block).then_some(Checksums { columns, blocks })
        };
        whole().map(Some).ok_or(Damage::Altered)
    }

    /// Returns the byte range of the blocks that cover `wanted`, the size of a block, and the blocks' checksums;
    /// `None` where `wanted` is not inside one column.
    fn around(&self, wanted: &Range<u64>) -> Option<(Range<u64>, u64, &[u32])> {
        let after = self
            .columns
            .partition_point(|c| c.place.start <= wanted.start);
        let column = self.columns.get(after.checked_sub(1)?)?;
        let (first, bytes) = (column.place.start, column.block_bytes);
        (wanted.end <= column.place.end).then_some(())?;
        let from = (wanted.start - first) / bytes;
        let until = (wanted.end - first).div_ceil(bytes);
        let sums = column.first_block + from as usize..column.first_block + until as usize;
        let place = first + from * bytes..column.place.end.min(first + until * bytes);
        Some((place, bytes, self.blocks.get(sums)?))
    }

    /// Returns the end of the block that contains the byte at `at`; `None` outside of columns.
    fn end_of_block(&self, at: u64) -> Option<u64> {
        Some(self.around(&(at..at + 1))?.0.end)
    }
}

/// A page that must not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedPage {
    /// Position of the page's header in the file.
    pub at: u64,
    /// The damage for which it is refused.
    pub reason: Damage,
}

/// A table's file that returns only bytes that match their checksums.
#[derive(Debug, Clone)]
pub(crate) struct CheckedFile {
    file: Arc<File>,
    /// The length of the file.
    bytes: u64,
    /// `None` for a file without checksums, whose bytes are returned unchecked.
    checksums: Option<Arc<Checksums>>,
    /// The pages that must not be read, sorted by position.
    refused: Arc<[RefusedPage]>,
    /// Why bytes were last refused: the libraries in between pass on only the text of an error.
    damage: Arc<Mutex<Option<Damage>>>,
}

impl CheckedFile {
    /// Returns the same file without some pages: reading one of them fails with its reason.
    pub fn refusing(self, mut pages: Vec<RefusedPage>) -> CheckedFile {
        pages.sort_by_key(|page| page.at);
        CheckedFile {
            refused: pages.into(),
            ..self
        }
    }

    /// Opens the file. Without checksums its bytes are not checked.
    pub fn open(
        path: &ContainedPath,
        checksums: Option<Arc<Checksums>>,
    ) -> io::Result<CheckedFile> {
        let file = path.open()?;
        Ok(CheckedFile {
            bytes: file.metadata()?.len(),
            file: Arc::new(file),
            checksums,
            refused: Arc::new([]),
            damage: Arc::default(),
        })
    }

    /// Returns why bytes were last refused, if any were since the last call.
    pub fn take_damage(&self) -> Option<Damage> {
        let damage = self.damage.lock();
        damage.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns an error with the text of `damage`, which is kept for [`Self::take_damage`].
    fn refuse(&self, damage: Damage) -> io::Error {
        let error = io::Error::other(damage.to_string());
        *self.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(damage);
        error
    }

    /// Returns the wanted bytes after checking all blocks that they lie in.
    fn read(&self, wanted: Range<u64>) -> io::Result<Bytes> {
        let beyond = || self.refuse(Damage::BeyondEnd);
        if wanted.end > self.bytes {
            return Err(beyond());
        }
        let around = match &self.checksums {
            None => (wanted.clone(), UNSIGNED_READ_BYTES, &[][..]),
            Some(checksums) => checksums.around(&wanted).ok_or_else(beyond)?,
        };
        let (place, block, sums) = around;
        let mut bytes = vec![0; (place.end - place.start) as usize];
        read_at(&self.file, place.start, &mut bytes)?;
        let mut checked = bytes.chunks(block as usize).zip(sums);
        match checked.all(|(block, sum)| crc32fast::hash(block) == *sum) {
            true => {
                let from = (wanted.start - place.start) as usize;
                let until = (wanted.end - place.start) as usize;
                Ok(Bytes::from(bytes).slice(from..until))
            }
            false => Err(self.refuse(Damage::Altered)),
        }
    }
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for CheckedFile {
    type T = CheckedRead;

    fn get_read(&self, start: u64) -> Result<CheckedRead> {
        if let Ok(found) = self.refused.binary_search_by_key(&start, |page| page.at) {
            let refused = self.refuse(self.refused[found].reason.clone());
            return Err(ParquetError::General(refused.to_string()));
        }
        Ok(CheckedRead {
            file: self.clone(),
            position: start,
            buffer: Bytes::new(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.saturating_add(length as u64);
        self.read(start..end)
            .map_err(|error| ParquetError::General(error.to_string()))
    }
}

/// A reader of a [`CheckedFile`] from one position on, a block at a time.
pub(crate) struct CheckedRead {
    file: CheckedFile,
    /// The position in the file of the byte after `buffer`.
    position: u64,
    /// Bytes that were read from the file and not yet handed out.
    buffer: Bytes,
}

impl Read for CheckedRead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.buffer.is_empty() {
            let end = match &self.file.checksums {
                None => Some((self.position + UNSIGNED_READ_BYTES).min(self.file.bytes)),
                Some(checksums) => checksums.end_of_block(self.position),
            };
            let Some(end) = end.filter(|end| *end > self.position) else {
                return Ok(0);
            };
            self.buffer = self.file.read(self.position..end)?;
            self.position = end;
        }
        let given = out.len().min(self.buffer.len());
        out[..given].copy_from_slice(&self.buffer.split_to(given));
        Ok(given)
    }
}

fn read_at(mut file: &File, start: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(bytes)
}
