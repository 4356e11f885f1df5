//! Checks the claims of page headers before the Parquet library sees them. The library allocates what a header claims
//! before it decompresses the page, and a claim may be 2 GiB. A page is a part of a column in a file, with a header
//! in front that gives its sizes.

use crate::checksums::{CheckedFile, RefusedPage};
use crate::damage::Damage;
use crate::delta::lengths;
use crate::memory;
use crate::thrift::{PageHeader, PageKind, page_header};
use parquet::basic::{Compression, Encoding};
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;
use std::io::Read;
use std::sync::Arc;

/// Bytes that are first read for a header. Most headers have 30; those with long texts as statistics have more.
const FIRST_HEADER_BYTES: u64 = 1 << 9;
/// The most bytes that are read for a header; a longer one is damage.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Room for frames and headers of codecs, and for rounding.
const SLACK_BYTES: u64 = 64;

/// Walks the headers of a column's pages in a row group and returns the first page with an impossible claim. Where
/// the column has fewer values than the footer says, its first page is refused, because nothing tells which values
/// are missing.
pub(crate) fn first_refused(
    file: &CheckedFile,
    column: &ColumnChunkMetaData,
) -> Option<RefusedPage> {
    let (start, bytes) = column.byte_range();
    let end = start.saturating_add(bytes);
    let unpacked = u64::try_from(column.uncompressed_size()).unwrap_or(0);
    let mut left = u64::try_from(column.num_values()).unwrap_or(0);
    let mut at = start;
    let mut pages = Vec::new();
    while at < end {
        let refused = |reason| Some(RefusedPage { at, reason });
        let header = match header(file, at, end) {
            Ok(header) => header,
            Err(damage) => return refused(damage),
        };
        if let Some(reason) = page_damage(&header, unpacked, column.compression()) {
            return refused(reason);
        }
        if matches!(header.kind, PageKind::Data | PageKind::DataV2) {
            pages.push((at, header));
            match left.checked_sub(header.values.into()) {
                Some(rest) => left = rest,
                None => return refused(Damage::MoreValues),
            }
        }
        let page = header.header_bytes as u64 + u64::from(header.bytes);
        if page > end - at {
            return refused(Damage::PageBeyondEnd);
        }
        at += page;
    }
    if left > 0 {
        return Some(RefusedPage {
            at: start,
            reason: Damage::FewerValues,
        });
    }
    let has_lengths = |(_, page): &(u64, PageHeader)| LENGTH_ENCODINGS.contains(&page.encoding);
    match pages.iter().any(has_lengths) {
        true => check_text_lengths(file, column, &pages),
        false => None,
    }
}

/// Encodings that store lengths of texts; the second one also stores the length of the prefix that each text shares
/// with the one before.
const LENGTH_ENCODINGS: [u32; 2] = [6, 7];

/// Decompresses the pages of a column to check that its texts have no more lengths than values, and fit into memory.
/// Returns the first page that does not. Few tools write such pages, so decompressing them twice does not matter.
fn check_text_lengths(
    file: &CheckedFile,
    column: &ColumnChunkMetaData,
    pages: &[(u64, PageHeader)],
) -> Option<RefusedPage> {
    let rows = usize::try_from(column.num_values()).ok()?;
    let reader = SerializedPageReader::new(Arc::new(file.clone()), column, rows, None).ok()?;
    let data = reader.filter(|page| !matches!(page, Ok(Page::DictionaryPage { .. })));
    let mut bytes = 0_u64;
    for ((at, header), page) in pages.iter().zip(data) {
        let refused = |reason: Damage| Some(RefusedPage { at: *at, reason });
        if !LENGTH_ENCODINGS.contains(&header.encoding) {
            continue;
        }
        // The reader reports pages that cannot be decompressed.
        let page = page.ok()?;
        let Some(sum) = text_bytes(&page, header, column.column_descr()) else {
            return refused(Damage::TextLengths);
        };
        // The library keeps two four-byte numbers for each text.
        bytes = bytes.saturating_add(sum.saturating_add(u64::from(header.values) * 8));
        if bytes > memory::limit() {
            return refused(Damage::TextsOverMemory { bytes });
        }
    }
    None
}

/// Returns the bytes of a page's texts; `None` where their lengths are damaged, or the page's form is not read.
fn text_bytes(page: &Page, header: &PageHeader, column: &ColumnDescriptor) -> Option<u64> {
    let bytes = page.buffer();
    (column.max_rep_level() == 0).then_some(())?;
    let values = match page {
        Page::DataPageV2 {
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => (*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize)?,
        _ if column.max_def_level() == 0 => 0,
        Page::DataPage {
            def_level_encoding: Encoding::RLE,
            ..
        } => {
            let length = bytes.first_chunk().copied().map(u32::from_le_bytes)?;
            (length as usize).checked_add(4)?
        }
        _ => return None,
    };
    let bytes = bytes.get(values..)?;
    let first = lengths(bytes, header.values)?;
    if header.encoding == LENGTH_ENCODINGS[0] {
        return Some(first.sum);
    }
    let second = lengths(bytes.get(first.end..)?, header.values)?;
    first.sum.checked_add(second.sum)
}

/// Reads the header of the page at `at`, in a column that ends at `end`: first few bytes, then ever more until they
/// are a whole header.
fn header(file: &CheckedFile, at: u64, end: u64) -> Result<PageHeader, Damage> {
    let mut bytes = Vec::new();
    let mut read = file.get_read(at).map_err(Damage::library)?;
    let longest = (end - at).min(MAX_HEADER_BYTES);
    let mut wanted = FIRST_HEADER_BYTES;
    loop {
        let more = wanted.min(longest) - bytes.len() as u64;
        let got = read.by_ref().take(more).read_to_end(&mut bytes);
        let got =
            got.map_err(|error| file.take_damage().unwrap_or_else(|| Damage::library(error)))?;
        if let Some(header) = page_header(&bytes) {
            return Ok(header);
        }
        if wanted >= longest || (got as u64) < more {
            return Err(Damage::PageHeader);
        }
        wanted *= 2;
    }
}

/// Returns why a page cannot match its header, in a column of `unpacked` bytes in total.
fn page_damage(page: &PageHeader, unpacked: u64, compression: Compression) -> Option<Damage> {
    let (bytes, packed_bytes) = (u64::from(page.unpacked_bytes), u64::from(page.bytes));
    if bytes > unpacked {
        return Some(Damage::PageOverColumn { bytes });
    }
    if bytes > max_unpacked_bytes(packed_bytes, compression) {
        return Some(Damage::PageOverCodec {
            bytes,
            packed_bytes,
        });
    }
    // Each value of a dictionary takes at least one byte.
    if page.kind == PageKind::Dictionary && u64::from(page.values) > bytes {
        return Some(Damage::DictionaryValues);
    }
    (bytes > memory::limit()).then_some(Damage::PageOverMemory { bytes })
}

/// Returns the most bytes that a codec can decompress `bytes` bytes to.
fn max_unpacked_bytes(bytes: u64, compression: Compression) -> u64 {
    let made = match compression {
        Compression::UNCOMPRESSED => return bytes,
        // A copy of three bytes is 64 long.
        Compression::SNAPPY => bytes.saturating_mul(64) / 3,
        // A match of two bits is 258 long.
        Compression::GZIP(_) => bytes.saturating_mul(1032),
        // Each further byte of a length counts 255.
        Compression::LZ4 | Compression::LZ4_RAW => bytes.saturating_mul(255),
        // A block of four bytes is 128 KiB of one value.
        Compression::ZSTD(_) => bytes.saturating_mul(32 << 10),
        _ => return u64::MAX,
    };
    made.saturating_add(SLACK_BYTES)
}
