//! The values of a row.

/// Values that a scan can ask for.
pub(crate) const MOST_VALUES: usize = 24;

/// The id of the row in place of a value: no value has this kind.
const ROW_ID: u32 = 10;

/// A value of a record that is not read yet.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// What it is, and how long.
    kind: u32,
    /// Where it begins.
    at: u32,
}

/// A row: the values that were asked for, in that order; null where there are fewer. Each is read from the bytes of the file when
/// it is asked for, as many are not.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    cells: [Cell; MOST_VALUES],
    values: &'a [u8],
    row_id: i64,
}

impl<'a> Row<'a> {
    /// A value's bytes, and its kind.
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

    /// A value that is a whole number.
    #[inline]
    pub fn integer(&self, at: usize) -> Option<i64> {
        let (kind, bytes) = self.bytes(at);
        match kind {
            1..=6 => Some(big_endian(bytes)),
            8 => Some(0),
            9 => Some(1),
            ROW_ID => Some(self.row_id),
            // Larger ones are not exact.
            7 => self
                .real(at)
                .filter(|value| value.fract() == 0.0 && value.abs() < 9e15)
                .map(|value| value as i64),
            _ => None,
        }
    }

    /// A value that is a whole number of a smaller type.
    #[inline]
    pub fn small<T: TryFrom<i64>>(&self, at: usize) -> Option<T> {
        T::try_from(self.integer(at)?).ok()
    }

    /// A number.
    pub fn real(&self, at: usize) -> Option<f64> {
        match self.bytes(at) {
            (7, bytes) => Some(f64::from_be_bytes(*bytes.first_chunk()?)),
            _ => self.integer(at).map(|value| value as f64),
        }
    }

    /// A text. Its bytes may be no UTF-8.
    #[inline]
    pub fn text(&self, at: usize) -> Option<&'a [u8]> {
        let (kind, bytes) = self.bytes(at);
        (kind >= 13 && kind % 2 == 1).then_some(bytes)
    }

    /// A text; what is not UTF-8 in it is replaced.
    pub fn string(&self, at: usize) -> Option<String> {
        self.text(at)
            .map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// Where the values that a scan asks for stand in a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// For each value of a record, the place in the row that wants it.
    slots: Vec<Option<u8>>,
    /// Places that want the id of the row.
    row_ids: Vec<u8>,
}

impl Wanted {
    /// The place `slot` wants the `column`th value of a record.
    pub fn want(&mut self, column: usize, slot: usize) {
        if self.slots.len() <= column {
            self.slots.resize(column + 1, None);
        }
        self.slots[column] = u8::try_from(slot).ok();
    }

    /// The place `slot` wants the id of the row.
    pub fn want_row_id(&mut self, slot: usize) {
        self.row_ids.extend(u8::try_from(slot).ok());
    }

    /// Gives the row of a record to `take`; `None` where the record is none, or ends before the last value that is wanted.
    #[inline]
    pub fn read(&self, record: &[u8], row_id: i64, take: &mut impl FnMut(&Row)) -> Option<()> {
        let (header_bytes, after) = varint(record)?;
        let header_bytes = usize::try_from(header_bytes).ok()?;
        let values = record.get(header_bytes..)?;
        let mut types = after.get(..header_bytes.checked_sub(record.len() - after.len())?)?;
        let mut row = Row {
            cells: [Cell { kind: 0, at: 0 }; MOST_VALUES],
            values,
            row_id,
        };
        let mut at = 0usize;
        for slot in &self.slots {
            // A column that was added later is missing from older rows.
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

/// Bytes of a value of a kind.
#[inline]
fn length(kind: u64) -> Option<usize> {
    const SHORT: [u8; 10] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];
    match kind {
        0..=9 => Some(usize::from(SHORT[kind as usize])),
        10 | 11 => None,
        _ => usize::try_from((kind - 12) / 2).ok(),
    }
}

/// A whole number of up to eight bytes.
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

/// A number of one to nine bytes, and what follows it.
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
