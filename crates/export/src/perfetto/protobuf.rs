//! Encodes protobuf's wire format, as far as the exporter needs it: numbers of fields and their values go in, bytes
//! come out.

use std::io::{self, Write};

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

// Wire types: how the value of a field is encoded.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    /// Removes all fields and keeps the space.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends a field of type uint32, uint64, an enum, or a signed integer as its two's complement.
    pub fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        varint(&mut self.bytes, value);
    }

    /// Appends a field of type double.
    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// Appends a field of type fixed64.
    pub fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a field of type string.
    pub fn text(&mut self, field: u32, text: &str) {
        self.field(field, text.as_bytes());
    }

    /// Appends a field of type bytes.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.field(field, bytes);
    }

    /// Appends a field that is a message.
    pub fn message(&mut self, field: u32, message: &Message) {
        self.field(field, &message.bytes);
    }

    /// Writes the message as a field of the outermost message.
    pub fn write_as(&self, field: u32, out: &mut impl Write) -> io::Result<()> {
        let mut head = Message::default();
        head.key(field, LENGTH);
        varint(&mut head.bytes, self.bytes.len() as u64);
        out.write_all(&head.bytes)?;
        out.write_all(&self.bytes)
    }

    /// Appends a field with its length before its bytes.
    fn field(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, LENGTH);
        varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends what precedes a value: the number of its field and its wire type.
    fn key(&mut self, field: u32, wire_type: u32) {
        varint(&mut self.bytes, u64::from(field << 3 | wire_type));
    }
}

/// Appends a number in groups of seven bits, the lowest first.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_in_the_encoding_guide_of_protobuf() {
        let mut inner = Message::default();
        inner.number(1, 150);
        assert_eq!(inner.bytes, [0x08, 0x96, 0x01]);
        let mut outer = Message::default();
        outer.message(3, &inner);
        outer.text(2, "testing");
        assert_eq!(outer.bytes, *b"\x1a\x03\x08\x96\x01\x12\x07testing");
        outer.clear();
        outer.number(1, -2i64 as u64);
        assert_eq!(outer.bytes.len(), 11);
    }
}
