//! Quantities as people read them in sentences.

use std::fmt;

/// A duration with the unit that suits it.
pub(crate) struct Nanoseconds(pub(crate) i64);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0.unsigned_abs() {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} us", ns / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", ns / 1e6),
            _ => write!(f, "{:.2} s", ns / 1e9),
        }
    }
}

/// A share as a percentage.
pub(crate) struct Percent(pub(crate) f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", self.0 * 100.0)
    }
}

/// A number of bytes, in decimal units.
pub(crate) struct Bytes(pub(crate) f64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes < 1e3 => write!(f, "{bytes:.0} B"),
            bytes if bytes < 1e6 => write!(f, "{:.1} kB", bytes / 1e3),
            bytes if bytes < 1e9 => write!(f, "{:.1} MB", bytes / 1e6),
            bytes => write!(f, "{:.2} GB", bytes / 1e9),
        }
    }
}

/// `part / whole`; 0 for nothing of nothing.
pub(crate) fn share(part_ns: i64, whole_ns: i64) -> f64 {
    if whole_ns == 0 {
        0.0
    } else {
        part_ns as f64 / whole_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_the_unit_that_suits_them() {
        let texts = [999, 1_500, -2_000_000, 3_250_000_000].map(|ns| Nanoseconds(ns).to_string());
        assert_eq!(texts, ["999 ns", "1.5 us", "-2.0 ms", "3.25 s"]);
        assert_eq!(Percent(0.1234).to_string(), "12.3 %");
    }
}
