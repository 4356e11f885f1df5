//! Decodes protobuf messages without their schema: the fields of a message as numbers and values of the wire
//! format.
//!
//! Messages are borrowed and read field by field. A malformed field ends its message and is counted. Nested messages
//! are decoded only on request, so that nesting costs nothing.

use std::borrow::Cow;
use std::cell::Cell;

/// A message that is not decoded yet.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    bytes: &'a [u8],
    /// The number of malformed messages, which all messages of a file share.
    torn: &'a Cell<u64>,
}

/// The value of a field, by its wire type.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    /// An integer, a boolean or an enum.
    Varint(u64),
    /// A fixed integer or a double.
    Fixed64(u64),
    /// A text, bytes, a message or packed numbers.
    Bytes(Message<'a>),
    /// A fixed integer or a float.
    Fixed32(u32),
}

impl<'a> Message<'a> {
    /// Wraps `bytes`. Malformed messages are counted in `torn`.
    pub fn new(bytes: &'a [u8], torn: &'a Cell<u64>) -> Message<'a> {
        Message { bytes, torn }
    }

    /// Returns the undecoded bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the fields up to the first malformed one.
    pub fn fields(self) -> Fields<'a> {
        Fields {
            rest: self.bytes,
            torn: self.torn,
        }
    }

    /// Returns the value of the first field with a number; `None` if there is no such field.
    pub fn field(self, number: u32) -> Option<Value<'a>> {
        self.fields()
            .find(|(found, _)| *found == number)
            .map(|(_, value)| value)
    }

    /// Returns the last value of each field with one of the numbers; 0 stands for an absent value.
    pub fn last<const N: usize>(self, numbers: [u32; N]) -> [Value<'a>; N] {
        let mut values = [Value::Varint(0); N];
        for (number, value) in self.fields() {
            if let Some(at) = numbers.iter().position(|wanted| *wanted == number) {
                values[at] = value;
            }
        }
        values
    }
}

impl<'a> Value<'a> {
    /// Returns the value as an unsigned integer, or 0 for other wire types.
    pub fn number(self) -> u64 {
        match self {
            Value::Varint(number) | Value::Fixed64(number) => number,
            Value::Fixed32(number) => number.into(),
            Value::Bytes(_) => 0,
        }
    }

    /// Returns the value as a signed integer in two's complement.
    pub fn signed(self) -> i64 {
        self.number() as i64
    }

    /// Returns the value as a double, or NaN for other wire types.
    pub fn double(self) -> f64 {
        match self {
            Value::Fixed64(bits) => f64::from_bits(bits),
            Value::Fixed32(bits) => f32::from_bits(bits).into(),
            Value::Varint(_) | Value::Bytes(_) => f64::NAN,
        }
    }

    /// Returns the bytes as a message; `None` for other wire types.
    pub fn message(self) -> Option<Message<'a>> {
        match self {
            Value::Bytes(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the value as a text, in which bytes that are not UTF-8 are replaced; empty for other wire types.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Value::Bytes(message) => String::from_utf8_lossy(message.bytes),
            _ => Cow::Borrowed(""),
        }
    }

    /// Returns the values of a repeated integer, which may be packed: several in one value, encoded as `packed` says.
    pub fn numbers(self, packed: Packed) -> Numbers<'a> {
        match self {
            Value::Bytes(message) => Numbers {
                one: None,
                rest: message.bytes,
                packed,
            },
            other => Numbers {
                one: Some(other.number()),
                rest: &[],
                packed,
            },
        }
    }
}

/// The encoding of packed integers.
#[derive(Clone, Copy)]
pub(crate) enum Packed {
    Varint,
    Fixed64,
}

/// The iterator of [`Value::numbers`].
pub(crate) struct Numbers<'a> {
    /// The only value, if it is not packed.
    one: Option<u64>,
    rest: &'a [u8],
    packed: Packed,
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if let Some(one) = self.one.take() {
            return Some(one);
        }
        match self.packed {
            Packed::Varint => varint(&mut self.rest),
            Packed::Fixed64 => fixed(&mut self.rest).map(u64::from_le_bytes),
        }
    }
}

/// The iterator of [`Message::fields`].
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    torn: &'a Cell<u64>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    fn next(&mut self) -> Option<(u32, Value<'a>)> {
        if self.rest.is_empty() {
            return None;
        }
        let field = field(&mut self.rest, self.torn);
        if field.is_none() {
            self.rest = &[];
            self.torn.set(self.torn.get() + 1);
        }
        field
    }
}

/// Reads the number and value of a field, and moves `rest` behind it; `None` if it is malformed.
fn field<'a>(rest: &mut &'a [u8], torn: &'a Cell<u64>) -> Option<(u32, Value<'a>)> {
    let tag = varint(rest)?;
    let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
    let value = match tag & 7 {
        0 => Value::Varint(varint(rest)?),
        1 => Value::Fixed64(u64::from_le_bytes(fixed(rest)?)),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            let (bytes, after) = rest.split_at_checked(length)?;
            *rest = after;
            Value::Bytes(Message { bytes, torn })
        }
        5 => Value::Fixed32(u32::from_le_bytes(fixed(rest)?)),
        _ => return None,
    };
    Some((number, value))
}

/// Reads `N` bytes and moves `rest` behind them.
fn fixed<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}

/// Reads a varint (a number in groups of seven bits, the lowest first) of at most ten bytes, and moves `rest` behind
/// it. `None` if it does not end.
pub(crate) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for (place, byte) in rest.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * place as u32).min(63);
        if byte & 0x80 == 0 {
            *rest = &rest[place + 1..];
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> (Vec<(u32, u64)>, u64) {
        let torn = Cell::new(0);
        let fields = Message::new(bytes, &torn).fields();
        let found = fields.map(|(number, value)| (number, value.number()));
        (found.collect(), torn.get())
    }

    #[test]
    fn fields_of_all_wire_types_are_read() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 0, 0, 0, 0, 0, 0, 0, // 2: fixed64
            0x1a, 2, b'h', b'i', // 3: bytes
            0x25, 7, 0, 0, 0, // 4: fixed32
        ];
        assert_eq!(fields(&bytes), (vec![(1, 150), (2, 1), (3, 0), (4, 7)], 0));
        let torn = Cell::new(0);
        let text = Message::new(&bytes, &torn).field(3).unwrap().text();
        assert_eq!(text, "hi");
    }

    #[test]
    fn what_is_malformed_ends_its_message_and_is_counted() {
        assert_eq!(fields(&[0x08, 1, 0x08, 0x80]), (vec![(1, 1)], 1));
        assert_eq!(
            fields(&[0x08, 1, 0x1a, 0xff, 0xff, 3, 0]),
            (vec![(1, 1)], 1)
        );
        assert_eq!(fields(&[0x0b]), (vec![], 1));
        assert_eq!(fields(&[0x00, 1]), (vec![], 1));
        assert_eq!(fields(&[0x08; 1]), (vec![], 1));
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(varint(&mut &longest[..]), Some(u64::MAX));
        assert_eq!(varint(&mut &[0x80; 11][..]), None);
    }

    #[test]
    fn repeated_numbers_may_be_packed() {
        let torn = Cell::new(0);
        let bytes = [0x0a, 3, 1, 0x96, 0x01, 0x08, 5];
        let numbers = Message::new(&bytes, &torn);
        let numbers = numbers
            .fields()
            .flat_map(|(_, v)| v.numbers(Packed::Varint));
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 150, 5]);
    }
}
