//! Compares two outputs as 32-bit floating-point numbers: two slices of bytes go in, counts and the greatest
//! differences come out.

use schemars::JsonSchema;
use serde::Serialize;

/// How many 32-bit floating-point numbers differ from others, and by how much.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct Difference {
    /// Numbers that were compared. Every 4 bytes of an output count as one.
    pub elements: u64,
    /// Numbers with other bits.
    pub different: u64,
    /// The largest difference of two finite numbers.
    pub absolute: f64,
    /// The largest distance of two finite numbers in units in the last place; 0: all are equal.
    pub ulp: u64,
    /// Pairs of which one number is not finite, and the other one is not the same.
    pub not_finite: u64,
}

impl Difference {
    /// Adds the differences between two slices of bytes.
    pub fn add(&mut self, one: &[u8], other: &[u8]) {
        let numbers = one.as_chunks::<4>().0.iter().zip(other.as_chunks::<4>().0);
        for (one, other) in numbers {
            self.elements += 1;
            if one == other {
                continue;
            }
            self.different += 1;
            let (one, other) = (f32::from_le_bytes(*one), f32::from_le_bytes(*other));
            if !one.is_finite() || !other.is_finite() {
                self.not_finite += 1;
                continue;
            }
            self.absolute = self.absolute.max((f64::from(one) - f64::from(other)).abs());
            self.ulp = self.ulp.max(place(one).abs_diff(place(other)));
        }
    }
}

/// Returns the index of a float among all floats in their order, so that differences of indices are units in the last
/// place.
fn place(of: f32) -> i64 {
    let bits = of.to_bits() as i32;
    let magnitude = i64::from(bits & i32::MAX);
    if bits < 0 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_apart_also_across_zero() {
        let of = |one: f32, other: f32| {
            let mut difference = Difference::default();
            difference.add(&one.to_le_bytes(), &other.to_le_bytes());
            (
                difference.different,
                difference.ulp,
                difference.absolute,
                difference.not_finite,
            )
        };
        assert_eq!(of(1.0, 1.0), (0, 0, 0.0, 0));
        assert_eq!(of(1.0, f32::from_bits(1.0_f32.to_bits() + 1)).1, 1);
        assert_eq!(of(f32::from_bits(1), -f32::from_bits(1)).1, 2);
        assert_eq!(of(1.0, 3.0).2, 2.0);
        assert_eq!(of(f32::NAN, 1.0), (1, 0, 0.0, 1));
    }
}
