//! Unpacks fat binaries, which hold PTX (assembly text) and cubins (machine code) for several devices. The bytes of a
//! fat binary go in; a [`Piece`] for each entry that holds code comes out. NVIDIA does not document the format; the
//! fields below are those of the files that nvcc 12 and 13 write.

use super::{Piece, cubin, ptx};
use std::borrow::Cow;
use std::io::Read;

/// The kinds of entries that are read, as their headers write them.
const PTX: u16 = 1;
const CUBIN: u16 = 2;
/// The flags of an entry that tell what has compressed it.
const LZ4_FLAG: u64 = 0x2000;
const ZSTD_FLAG: u64 = 0x8000;
/// The most bytes that are unpacked from one entry.
const MAX_ENTRY_BYTES: usize = 64 << 20;
/// The most bytes that are unpacked from all entries, because a small file may claim to hold terabytes.
const MAX_TOTAL_BYTES: usize = 4 * MAX_ENTRY_BYTES;
/// The most entries of a fat binary that are read.
const MAX_ENTRIES: usize = 256;

/// An entry of a fat binary: the fields of its header, and its bytes.
struct Entry<'a> {
    /// [`PTX`], [`CUBIN`], or another kind, which is left out.
    kind: u16,
    flags: u64,
    /// The number of compressed bytes at the start of `data`; used only when a flag tells a compression.
    compressed: usize,
    /// The number of bytes after unpacking; used only for LZ4.
    uncompressed: usize,
    data: &'a [u8],
}

/// Returns the pieces, PTX first. Entries that cannot be read are left out.
pub fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
    pieces_within(bytes, MAX_TOTAL_BYTES)
}

/// Returns the pieces, of which at most `left` bytes are unpacked.
pub(super) fn pieces_within(bytes: &[u8], mut left: usize) -> Vec<Piece<'_>> {
    let mut rest = number::<2>(bytes, 6)
        .and_then(|header| bytes.get(header..))
        .unwrap_or(&[]);
    let (mut texts, mut cubins) = (Vec::new(), Vec::new());
    for _ in 0..MAX_ENTRIES {
        let Some((entry, after)) = entry(rest) else {
            break;
        };
        rest = after;
        let Some(code) = entry.code(left.min(MAX_ENTRY_BYTES)) else {
            continue;
        };
        if let Cow::Owned(unpacked) = &code {
            left = left.saturating_sub(unpacked.len());
        }
        match entry.kind {
            PTX => texts.extend(ptx::piece(without_padding(code))),
            CUBIN => cubins.extend(cubin::piece(code)),
            _ => {}
        }
    }
    texts.append(&mut cubins);
    texts
}

/// Reads the entry at the start of `bytes`. Returns it with the bytes behind it; `None` when it is not whole.
fn entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (header, size) = (number::<4>(bytes, 4)?, number::<8>(bytes, 8)?);
    let end = header.checked_add(size)?;
    let entry = Entry {
        kind: number::<2>(bytes, 0)? as u16,
        compressed: number::<4>(bytes, 16)?,
        flags: number::<8>(bytes, 40)? as u64,
        uncompressed: number::<8>(bytes, 56)?,
        data: bytes.get(header..end)?,
    };
    let after = bytes.get(end..).filter(|_| end > 0)?;
    Some((entry, after))
}

/// Reads a little-endian number of `BYTES` bytes at the offset `at`.
fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let mut wide = [0; 8];
    wide[..BYTES].copy_from_slice(bytes.get(at..at + BYTES)?);
    usize::try_from(u64::from_le_bytes(wide)).ok()
}

impl<'a> Entry<'a> {
    /// Returns the entry's code, if it unpacks to at most `max_bytes` bytes.
    /// The limit does not hold for entries that are not compressed, because they cost no memory.
    fn code(&self, max_bytes: usize) -> Option<Cow<'a, [u8]>> {
        let packed = || self.data.get(..self.compressed);
        match (self.flags & LZ4_FLAG != 0, self.flags & ZSTD_FLAG != 0) {
            (false, false) => Some(Cow::Borrowed(self.data)),
            (true, false) => {
                let bytes = Some(self.uncompressed).filter(|bytes| *bytes <= max_bytes)?;
                let code = lz4_flex::block::decompress(packed()?, bytes).ok()?;
                Some(Cow::Owned(code))
            }
            (false, true) => {
                let mut code = Vec::new();
                let decoder = zstd::Decoder::new(packed()?).ok()?;
                decoder
                    .take(max_bytes as u64 + 1)
                    .read_to_end(&mut code)
                    .ok()?;
                (code.len() <= max_bytes).then_some(Cow::Owned(code))
            }
            (true, true) => None,
        }
    }
}

/// Removes the zero bytes that pad a text.
fn without_padding(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let end = text
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}
