//! Decodes the line table of a code object: the location table of 3.11 and later (`Objects/locations.md` of CPython).
//! The table's bytes and the line of the `def` go in; the source line of an instruction comes out.

/// The most bytes of a table; a longer one counts as inconsistent. The table of a module with 100,000 lines has about
/// 1 MiB.
pub const MAX_TABLE_BYTES: usize = 4 << 20;

/// The size of an instruction, in which the table counts.
const INSTRUCTION_BYTES: u64 = 2;

/// The line table of a code object.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    table: &'a [u8],
    first_line: i32,
}

/// An entry of the table: a range of instructions with one source line.
struct Entry {
    /// Start of the entry, in bytes from the first instruction.
    start: u64,
    /// End of the entry, likewise.
    end: u64,
    /// The source line; `None` for instructions that the compiler added.
    line: Option<i32>,
}

impl<'a> Lines<'a> {
    /// Creates the line table of a code object whose `def` is in `first_line`.
    pub fn new(table: &'a [u8], first_line: i32) -> Lines<'a> {
        Lines { table, first_line }
    }

    /// Returns the line of the instruction at `offset` bytes from the first one. A negative offset, as in a frame
    /// that has not begun, is in the first line. Returns `None` where the instruction has no line or is outside of
    /// the code ([`Self::code_bytes`]).
    pub fn line(&self, offset: i64) -> Option<u32> {
        let Ok(offset) = u64::try_from(offset) else {
            return line(self.first_line);
        };
        let entry = self.entries().find(|entry| offset < entry.end)?;
        debug_assert!(offset >= entry.start);
        entry.line.and_then(line)
    }

    /// Returns the length of the code's instructions, in bytes.
    pub fn code_bytes(&self) -> u64 {
        self.entries().last().map_or(0, |entry| entry.end)
    }

    /// Decodes the entries in order. A first byte has the number of instructions in bits 0 to 2, and in bits 3 to 6
    /// the form of what follows, in which the line is the difference to the entry before.
    fn entries(&self) -> impl Iterator<Item = Entry> + 'a {
        let mut rest = self.table;
        let (mut line, mut start) = (self.first_line, 0);
        std::iter::from_fn(move || {
            let (head, mut after) = rest.split_first()?;
            let instructions = u64::from(head & 7) + 1;
            let kind = head >> 3 & 15;
            let delta = match kind {
                // Columns follow, which are not needed.
                14 => {
                    let delta = signed(&mut after);
                    for _ in 0..3 {
                        unsigned(&mut after);
                    }
                    delta
                }
                // This form has no columns.
                13 => signed(&mut after),
                // The difference is 0, 1 or 2; two columns of a byte each follow.
                10..=12 => {
                    skip(&mut after, 2);
                    i32::from(kind) - 10
                }
                // These instructions have no line.
                15 => 0,
                // The line is the same; a byte has the columns.
                _ => {
                    skip(&mut after, 1);
                    0
                }
            };
            line = line.wrapping_add(delta);
            rest = after;
            let entry = Entry {
                start,
                end: start + instructions * INSTRUCTION_BYTES,
                line: (kind != 15).then_some(line),
            };
            start = entry.end;
            Some(entry)
        })
    }
}

/// Returns a source line, which counts from 1; the start of a module has 0.
fn line(line: i32) -> Option<u32> {
    u32::try_from(line).ok().filter(|line| *line > 0)
}

/// Drops bytes from the front of `rest`.
fn skip(rest: &mut &[u8], bytes: usize) {
    *rest = rest.get(bytes..).unwrap_or_default();
}

/// Decodes six bits per byte, the lowest first; bit 6 is set while more follow.
fn unsigned(rest: &mut &[u8]) -> u32 {
    let (mut value, mut shift) = (0, 0);
    while let Some((byte, after)) = rest.split_first() {
        *rest = after;
        value |= u32::from(byte & 63).checked_shl(shift).unwrap_or(0);
        shift = (shift + 6).min(u32::BITS);
        if byte & 64 == 0 {
            break;
        }
    }
    value
}

/// Decodes a number whose lowest bit is the sign.
fn signed(rest: &mut &[u8]) -> i32 {
    let value = unsigned(rest);
    let size = (value >> 1) as i32;
    if value & 1 == 1 { -size } else { size }
}
