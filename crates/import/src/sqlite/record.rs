//! The values of a row.

/// Values that a scan can ask for.
pub(crate) const MOST_VALUES: usize = 24;

/// A value. Texts and blobs are bytes of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Value<'a> {
    #[default]
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob,
}

/// A row: the values that were asked for, in that order.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// Null where there are fewer.
    pub values: [Value<'a>; MOST_VALUES],
}

impl<'a> Row<'a> {
    /// A value that is a whole number.
    pub fn integer(&self, at: usize) -> Option<i64> {
        match self.values[at] {
            Value::Integer(value) => Some(value),
            // Larger ones are not exact.
            Value::Real(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
            _ => None,
        }
    }

    /// A value that is a whole number of a smaller type.
    pub fn small<T: TryFrom<i64>>(&self, at: usize) -> Option<T> {
        T::try_from(self.integer(at)?).ok()
    }

    /// A number.
    pub fn real(&self, at: usize) -> Option<f64> {
        match self.values[at] {
            Value::Integer(value) => Some(value as f64),
            Value::Real(value) => Some(value),
            _ => None,
        }
    }

    /// A text. Its bytes may be no UTF-8.
    pub fn text(&self, at: usize) -> Option<&'a [u8]> {
        match self.values[at] {
            Value::Text(text) => Some(text),
            _ => None,
        }
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
        let mut body = record.get(header_bytes..)?;
        let mut types = after.get(..header_bytes.checked_sub(record.len() - after.len())?)?;
        let mut row = Row {
            values: [Value::Null; MOST_VALUES],
        };
        for slot in &self.slots {
            // A column that was added later is missing from older rows.
            if types.is_empty() {
                break;
            }
            let (kind, rest) = varint(types)?;
            types = rest;
            let length = length(kind)?;
            let bytes = body.get(..length)?;
            body = &body[length..];
            if let Some(slot) = slot {
                row.values[usize::from(*slot)] = value(kind, bytes);
            }
        }
        for slot in &self.row_ids {
            row.values[usize::from(*slot)] = Value::Integer(row_id);
        }
        take(&row);
        Some(())
    }
}

/// Bytes of a value of a kind.
#[inline]
fn length(kind: u64) -> Option<usize> {
    Some(match kind {
        0 | 8 | 9 => 0,
        1..=4 => kind as usize,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        _ => usize::try_from((kind - 12) / 2).ok()?,
    })
}

#[inline]
fn value(kind: u64, bytes: &[u8]) -> Value<'_> {
    match kind {
        0 => Value::Null,
        1..=6 => {
            let start: i64 = if bytes[0] & 0x80 == 0 { 0 } else { -1 };
            let add = |value: i64, byte: &u8| (value << 8) | i64::from(*byte);
            Value::Integer(bytes.iter().fold(start, add))
        }
        7 => Value::Real(f64::from_be_bytes(std::array::from_fn(|at| bytes[at]))),
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        kind if kind % 2 == 1 => Value::Text(bytes),
        _ => Value::Blob,
    }
}

/// A number of one to nine bytes, and what follows it.
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
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
