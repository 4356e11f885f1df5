//! Decodes the values of a row from its record, which is the form in which SQLite stores a row: a header with the
//! type of each value, then the values. [`Wanted`] says which values a scan asks for, and [`Row`] has them.

/// The maximum number of values that a scan can ask for.
pub(crate) const MAX_VALUES: usize = 24;

/// The kind of a value that stands for the id of the row. No stored value has this kind.
const ROW_ID: u32 = 10;

/// The place of a value that was not decoded yet.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// SQLite's serial type, which gives the type and the length of the value.
    kind: u32,
    /// The offset of the value in the record.
    at: u32,
}

/// A row with the values that a scan asked for, in that order; missing values are null. Values are decoded on demand,
/// because many are not needed.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The places of the wanted values, in the order of the scan's columns.
    cells: [Cell; MAX_VALUES],
    /// The record behind its header.
    values: &'a [u8],
    row_id: i64,
}

impl<'a> Row<'a> {
    /// Returns the bytes and the kind of the value at an index of the row.
    #[inline]
    fn bytes(&self, at: usize) -> (u32, &'a [u8]) {
        let Cell { kind, at } = self.cells[at];
        let length = length(u64::from(kind)).unwrap_or_default();
        let bytes = self.values.get(at as usize..);
        (
            kind,
            bytes.and_then(|b| b.get(..length)).unwrap_or_default(),
        )
    }

    /// Returns the value at an index if it is a whole number, and `None` otherwise.
    #[inline]
    pub fn integer(&self, at: usize) -> Option<i64> {
        let (kind, bytes) = self.bytes(at);
        match kind {
            1..=6 => Some(big_endian(bytes)),
            8 => Some(0),
            9 => Some(1),
            ROW_ID => Some(self.row_id),
            // Larger floating-point numbers are not exact.
            7 => self
                .real(at)
                .filter(|value| value.fract() == 0.0 && value.abs() < 9e15)
                .map(|value| value as i64),
            // Databases that were written again by scripts have numbers as texts.
            13.. if kind % 2 == 1 => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    /// Returns the value at an index if it is a whole number that fits into `T`.
    #[inline]
    pub fn small<T: TryFrom<i64>>(&self, at: usize) -> Option<T> {
        T::try_from(self.integer(at)?).ok()
    }

    /// Returns the value at an index if it is a number.
    pub fn real(&self, at: usize) -> Option<f64> {
        match self.bytes(at) {
            (7, bytes) => Some(f64::from_be_bytes(*bytes.first_chunk()?)),
            _ => self.integer(at).map(|value| value as f64),
        }
    }

    /// Returns the bytes of the value at an index if it is a text, which may not be UTF-8.
    #[inline]
    pub fn text(&self, at: usize) -> Option<&'a [u8]> {
        let (kind, bytes) = self.bytes(at);
        (kind >= 13 && kind % 2 == 1).then_some(bytes)
    }

    /// Returns the value at an index if it is a text. Bytes that are not UTF-8 are replaced.
    pub fn string(&self, at: usize) -> Option<String> {
        self.text(at)
            .map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// The mapping from the values of a record to the values that a scan asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// For each value of a record, its index in the row; `None` for unwanted values.
    slots: Vec<Option<u8>>,
    /// The indices in the row that hold the id of the row.
    row_ids: Vec<u8>,
}

impl Wanted {
    /// Puts the value `column` of a record at the index `slot` of the row.
    pub fn want(&mut self, column: usize, slot: usize) {
        if self.slots.len() <= column {
            self.slots.resize(column + 1, None);
        }
        self.slots[column] = u8::try_from(slot).ok();
    }

    /// Puts the id of the row at the index `slot` of the row.
    pub fn want_row_id(&mut self, slot: usize) {
        self.row_ids.extend(u8::try_from(slot).ok());
    }

    /// Passes the row of a record to `take`. Returns `None` if the record is malformed or ends before the last wanted
    /// value.
    #[inline]
    pub fn read(&self, record: &[u8], row_id: i64, take: &mut impl FnMut(&Row)) -> Option<()> {
        let (header_bytes, after) = varint(record)?;
        let header_bytes = usize::try_from(header_bytes).ok()?;
        let values = record.get(header_bytes..)?;
        let mut types = after.get(..header_bytes.checked_sub(record.len() - after.len())?)?;
        let mut row = Row {
            cells: [Cell { kind: 0, at: 0 }; MAX_VALUES],
            values,
            row_id,
        };
        let mut at = 0usize;
        for slot in &self.slots {
            // Rows that were written before a column was added do not have its value.
            if types.is_empty() {
                break;
            }
            let (kind, rest) = varint(types)?;
            types = rest;
            if let Some(slot) = slot {
                row.cells[usize::from(*slot)] = Cell {
                    kind: u32::try_from(kind).ok()?,
                    at: u32::try_from(at).ok()?,
                };
            }
            at = at.checked_add(length(kind)?)?;
        }
        if at > values.len() {
            return None;
        }
        for slot in &self.row_ids {
            row.cells[usize::from(*slot)].kind = ROW_ID;
        }
        take(&row);
        Some(())
    }
}

/// Returns the number of bytes of a value of a kind; `None` for kinds that do not exist.
#[inline]
fn length(kind: u64) -> Option<usize> {
    const SHORT: [u8; 10] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];
    match kind {
        0..=9 => Some(usize::from(SHORT[kind as usize])),
        10 | 11 => None,
        _ => usize::try_from((kind - 12) / 2).ok(),
    }
}

/// Reads a big-endian signed integer of up to eight bytes.
#[inline]
fn big_endian(bytes: &[u8]) -> i64 {
    match *bytes {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_be_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        [first, ref rest @ ..] => (rest.iter()).fold(i64::from(first as i8), |value, byte| {
            (value << 8) | i64::from(*byte)
        }),
        [] => 0,
    }
}

/// Reads a varint (a number of one to nine bytes) and returns it with the bytes behind it; `None` if it does not end.
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    if let [byte @ 0..0x80, rest @ ..] = bytes {
        return Some((u64::from(*byte), rest));
    }
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        if at == 8 {
            return Some(((number << 8) | u64::from(*byte), &bytes[9..]));
        }
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[at + 1..]));
        }
    }
    None
}
