//! A fast hash for keys that nobody attacks: small numbers, and names of the program's own kernels and labels.

use std::hash::{BuildHasherDefault, Hasher};

/// A map with [`FastHasher`].
pub type FastMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// Multiplies and rotates, as the Rust compiler's own FxHash does.
#[derive(Debug, Clone, Copy, Default)]
pub struct FastHasher(u64);

impl FastHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.add(
                word.iter()
                    .rev()
                    .fold(0, |number, byte| number << 8 | u64::from(*byte)),
            );
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            self.add(rest.iter().fold(rest.len() as u64, |number, byte| {
                number << 8 | u64::from(*byte)
            }));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table takes the low bits for the place; the product's good ones are high.
        self.0.rotate_left(26)
    }
}
