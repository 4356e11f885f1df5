//! Reads numbers of a given [`Element`] type from bytes: compares them, prints them, and finds those that are NaN or
//! infinite.

use schemars::JsonSchema;
use serde::Serialize;

pub use crate::shader::Element;

/// An element with another value than in the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Differing {
    /// Index of the element in its piece.
    pub element: u64,
    /// Type of the element.
    pub kind: Element,
    /// Value in the program.
    pub captured: String,
    /// Value in the replay.
    pub replayed: String,
}

impl Element {
    /// Returns the type with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Element> {
        Element::ALL
            .into_iter()
            .find(|element| element.name() == name)
    }

    /// Returns the value of an element's bytes, for integers of 64 bits the nearest one.
    pub fn value(self, bytes: &[u8]) -> f64 {
        let bits = bits(bytes);
        match self {
            Element::F16 => f64::from(half(bits as u16)),
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            Element::F64 => f64::from_bits(bits),
            Element::I8 => f64::from(bits as u8 as i8),
            Element::I16 => f64::from(bits as u16 as i16),
            Element::I32 => f64::from(bits as u32 as i32),
            Element::I64 => bits as i64 as f64,
            Element::U8 | Element::U16 | Element::U32 | Element::U64 => bits as f64,
        }
    }

    /// Returns the value of an element's bytes as text.
    pub fn text(self, bytes: &[u8]) -> String {
        let bits = bits(bytes);
        match self {
            Element::I64 => (bits as i64).to_string(),
            Element::U64 => bits.to_string(),
            Element::F32 => f32::from_bits(bits as u32).to_string(),
            Element::F16 => half(bits as u16).to_string(),
            _ => self.value(bytes).to_string(),
        }
    }

    /// Returns the number of elements that are NaN or infinite, and the index of the first.
    pub fn odd(self, bytes: &[u8]) -> (u64, Option<u64>) {
        let mut count = 0;
        let mut first = None;
        if !self.is_float() {
            return (0, None);
        }
        for (index, element) in bytes.chunks_exact(self.bytes() as usize).enumerate() {
            if !self.value(element).is_finite() {
                count += 1;
                first = first.or(Some(index as u64));
            }
        }
        (count, first)
    }

    /// Returns the name of the type in NumPy's file format: the order of bytes, the kind of number and the size.
    pub fn numpy(self) -> String {
        let (kind, bytes) = (&self.name()[..1], self.bytes());
        let order = if bytes == 1 { '|' } else { '<' };
        format!("{order}{kind}{bytes}")
    }
}

/// Returns at most 8 bytes as a number.
fn bits(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let size = bytes.len().min(8);
    wide[..size].copy_from_slice(&bytes[..size]);
    u64::from_le_bytes(wide)
}

/// Returns the header of a `.npy` file with an array of one dimension.
pub fn npy_head(element: Element, count: u64) -> Vec<u8> {
    let mut description = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({count},), }}",
        element.numpy()
    );
    // Magic number, version and length take 10 bytes, and the data begin at a multiple of 64.
    while (10 + description.len() + 1) % 64 != 0 {
        description.push(' ');
    }
    description.push('\n');
    let mut head = b"\x93NUMPY\x01\x00".to_vec();
    head.extend((description.len() as u16).to_le_bytes());
    head.extend(description.bytes());
    head
}

/// Converts the bits of a floating-point number of 16 bits.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2.0_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_what_they_are() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65_504.0),
        ] {
            assert_eq!(half(bits), value, "{bits:#x}");
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }

    #[test]
    fn what_is_no_number_is_counted() {
        let floats: Vec<u8> = [1.0, f32::NAN, 2.0, f32::INFINITY]
            .iter()
            .flat_map(|f| f.to_le_bytes())
            .collect();
        assert_eq!(Element::F32.odd(&floats), (2, Some(1)));
        assert_eq!(Element::U32.odd(&floats), (0, None));
    }

    #[test]
    fn the_head_of_npy_ends_at_a_multiple_of_64() {
        let head = npy_head(Element::F32, 12_345);
        assert_eq!(head.len() % 64, 0);
        assert!(head.ends_with(b"\n"));
    }
}
