//! Walks the B-tree of a table (the tree of pages in which SQLite keeps rows) and passes on or counts its rows.

use super::damage::Damage;
use super::pages::Pages;
use super::record::{Row, Wanted, varint};

/// The bytes that mark the kind of a page: an interior page has children, and a leaf has rows.
const INTERIOR: u8 = 0x05;
const LEAF: u8 = 0x0d;
/// The size of the database header, which precedes the first page's own header.
const FIRST_PAGE_SKIPS: usize = 100;

/// Passes each row of the table at page `root` to `take`, with the `wanted` values. Returns what could not be read.
pub(super) fn scan(
    pages: &mut Pages,
    root: u32,
    wanted: &Wanted,
    take: &mut impl FnMut(&Row),
) -> Damage {
    let mut whole = Vec::new();
    walk(pages, root, |pages, page, cell, damage| {
        if read_row(pages, page, cell, wanted, &mut whole, take).is_none() {
            damage.rows += 1;
        }
    })
}

/// Returns the number of rows of the table at page `root`.
pub(super) fn count(pages: &mut Pages, root: u32) -> u64 {
    let mut rows = 0;
    walk(pages, root, |_, _, _, _| rows += 1);
    rows
}

/// Passes the offset of each cell (a stored row) of the leaves to `take`, with the cell's page, in the order of row
/// ids.
fn walk(
    pages: &mut Pages,
    root: u32,
    mut take: impl FnMut(&mut Pages, &[u8], usize, &mut Damage),
) -> Damage {
    let mut damage = Damage::default();
    let mut waiting = vec![root];
    let mut page = Vec::new();
    while let Some(number) = waiting.pop() {
        let header = if number == 1 { FIRST_PAGE_SKIPS } else { 0 };
        if !pages.read(number, &mut page) {
            damage.pages += 1;
            continue;
        }
        let cells = usize::from(two(&page, header + 3).unwrap_or(0));
        match page.get(header) {
            Some(&LEAF) => {
                for cell in 0..cells {
                    match two(&page, header + 8 + 2 * cell) {
                        Some(at) => take(pages, &page, usize::from(at), &mut damage),
                        None => damage.rows += 1,
                    }
                }
            }
            Some(&INTERIOR) => {
                // The last child goes first onto the stack, so that the first child is on top.
                waiting.extend(four(&page, header + 8));
                for cell in (0..cells).rev() {
                    let child = two(&page, header + 12 + 2 * cell)
                        .and_then(|at| four(&page, usize::from(at)));
                    match child {
                        Some(child) => waiting.push(child),
                        None => damage.pages += 1,
                    }
                }
            }
            _ => damage.pages += 1,
        }
    }
    damage
}

/// Reads the row at the offset `cell` and returns `None` if it cannot be decoded. `whole` is space for the record of
/// a long row, whose rest is in a chain of overflow pages.
fn read_row(
    pages: &mut Pages,
    page: &[u8],
    cell: usize,
    wanted: &Wanted,
    whole: &mut Vec<u8>,
    take: &mut impl FnMut(&Row),
) -> Option<()> {
    let rest = page.get(cell..)?;
    let (bytes, rest) = varint(rest)?;
    let (row_id, rest) = varint(rest)?;
    let bytes = usize::try_from(bytes).ok()?;
    let usable = pages.usable();
    // The lengths of the part in the page are those of the file format.
    let most_here = usable - 35;
    if bytes <= most_here {
        return wanted.read(rest.get(..bytes)?, row_id as i64, take);
    }
    let least_here = (usable - 12) * 32 / 255 - 23;
    let here = least_here + (bytes - least_here) % (usable - 4);
    let here = if here <= most_here { here } else { least_here };
    let start = rest.get(..here)?;
    // The wanted values mostly stand in front of long texts, so that the overflow pages need not be read.
    if wanted.read(start, row_id as i64, take).is_some() {
        return Some(());
    }
    whole.clear();
    whole.extend_from_slice(start);
    let mut next = four(rest, here)?;
    let mut overflow = Vec::new();
    while whole.len() < bytes {
        if !pages.read(next, &mut overflow) {
            return None;
        }
        next = four(&overflow, 0)?;
        let part = overflow.get(4..)?;
        let length = part.len().min(bytes - whole.len());
        whole.extend_from_slice(&part[..length]);
    }
    wanted.read(whole, row_id as i64, take)
}

/// Reads a big-endian number of two bytes; `None` behind the end.
fn two(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads a big-endian number of four bytes; `None` behind the end.
fn four(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
