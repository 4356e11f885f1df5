//! Formats quantities for sentences and tables, with three significant digits and always with a unit.

use gapscope_trace::Loss;
use std::fmt;

/// Formats a time in nanoseconds, such as `873 ns`, `12.3 µs`, `1.04 ms`, `96.0 s`.
///
/// ```
/// use gapscope_timeline::quantity::duration;
/// assert_eq!(duration(999_960), "1.00 ms");
/// ```
pub fn duration(ns: i64) -> String {
    if ns.unsigned_abs() < 1000 {
        return format!("{ns} ns");
    }
    duration_f64(ns as f64)
}

/// Formats a time in nanoseconds with a fraction, such as a mean.
pub fn duration_f64(ns: f64) -> String {
    if ns == 0.0 {
        return duration(0);
    }
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// Formats a time that is a position in a window of `span_ns`, with as many digits as distinguish thousandths of the
/// window's length, so that positions in the window differ.
///
/// ```
/// use gapscope_timeline::quantity::place;
/// assert_eq!(place(100_004_200, 80_000), "100.0042 ms");
/// ```
pub fn place(ns: i64, span_ns: i64) -> String {
    let size = ns.unsigned_abs() as f64;
    let unit = (UNITS.iter().rev()).find(|(_, _, least)| size >= *least);
    // A time below 1 µs has whole nanoseconds, and a window without length asks for no more digits.
    let Some((name, of_unit, _)) = unit.filter(|_| span_ns > 0) else {
        return duration(ns);
    };
    let span = span_ns as f64 / of_unit;
    let size = size / of_unit;
    let digits = (2.0 - span.log10().floor()).clamp(0.0, of_unit.log10()) as usize;
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{size:.*} {name}", digits.max(decimals(size)))
}

/// Units of time above the nanosecond, their lengths, and the times from which they are used: where three digits of the unit
/// below would be a thousand.
const UNITS: [(&str, f64, f64); 3] = [
    ("µs", 1e3, 1e3),
    ("ms", 1e6, 999_500.0),
    ("s", 1e9, 999_500_000.0),
];

/// Formats a number of bytes in binary units, such as `512 B`, `1.50 KiB`, `3.00 GiB`.
pub fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    scaled(
        bytes as f64,
        1024.0,
        &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
    )
}

/// Formats bytes moved in a time, such as `12.3 GiB/s`, or returns `None` for no time at all.
pub fn rate(bytes: u64, ns: i64) -> Option<String> {
    (ns > 0).then(|| {
        let each_second = bytes as f64 * 1e9 / ns as f64;
        format!("{}/s", self::bytes(each_second as u64))
    })
}

/// Formats a count with thousands separators: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count that may be fractional, such as a median: `4`, `2.5`, `0.17`.
pub fn mean_count(count: f64) -> String {
    match count {
        whole if whole.fract() == 0.0 => self::count(whole as u64),
        part if part < 0.995 => format!("{part:.2}"),
        more => format!("{more:.1}"),
    }
}

/// Formats a factor, such as `4.57 ×`, `0.012 ×`, `211 ×`.
pub fn factor(factor: f64) -> String {
    if !factor.is_finite() {
        "unknown".to_owned()
    } else if factor > 0.0 && factor < 0.001 {
        "<0.001 ×".to_owned()
    } else if factor > 0.0 && factor < 0.095 {
        format!("{:.*} ×", (1.0 - factor.log10().floor()) as usize, factor)
    } else if factor >= 99.5 {
        format!("{} ×", count(factor.round() as u64))
    } else {
        format!("{:.*} ×", decimals(factor), factor)
    }
}

/// Formats a share of 1 in per cent. A share that is not quite nothing or everything never reads as if it were.
pub fn share(part: f64) -> String {
    let percent = part * 100.0;
    if !percent.is_finite() {
        "unknown".to_owned()
    } else if percent == 0.0 {
        // Zero has a sign, too.
        "0 %".to_owned()
    } else if percent > 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else if percent < 0.0 && percent > -0.05 {
        ">-0.1 %".to_owned()
    } else if (99.95..100.0).contains(&percent) {
        ">99.9 %".to_owned()
    } else if percent == 100.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Formats `part` of `whole` in per cent, `unknown` where the whole is nothing.
pub fn share_of(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return "unknown".to_owned();
    }
    share(part as f64 / whole as f64)
}

/// Formats a count with its noun: `1 gap`, `1,204 gaps`.
pub fn count_of(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Formats a loss with its count: `3,829 CUDA activities`, `1 dispatch time`.
pub fn loss(loss: &Loss) -> String {
    loss.kind.phrase(loss.count, &count(loss.count))
}

/// A duration in nanoseconds that displays with a unit, for use in format strings.
pub struct Nanoseconds(
    /// The duration in nanoseconds.
    pub i64,
);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration(self.0))
    }
}

/// A share of 1 that displays as a percentage, for use in format strings.
pub struct Percent(
    /// The share, from 0 to 1.
    pub f64,
);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&share(self.0))
    }
}

/// A number of bytes that displays with a unit, for use in format strings.
pub struct Bytes(
    /// The number of bytes.
    pub f64,
);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&bytes(self.0.round() as u64))
    }
}

/// Returns `part_ns / whole_ns`, or 0 where the whole is 0.
pub fn ratio(part_ns: i64, whole_ns: i64) -> f64 {
    if whole_ns == 0 {
        0.0
    } else {
        part_ns as f64 / whole_ns as f64
    }
}

/// Formats `value`, which is in the first of `units`, in the first unit in which it rounds to less than `step`, or
/// else in the last. Each unit is `step` times the one before it.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let last = units.len() - 1;
    let mut size = value.abs();
    let mut unit = 0;
    // The rounded number is compared, so that 999.96 becomes 1.00 of the next unit. Binary units keep four digits up to 1023.
    while unit < last && rounds_to(size) >= step {
        size /= step;
        unit += 1;
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{size:.*} {}", decimals(size), units[unit])
}

/// Returns the number of decimals that give `size` three significant digits.
fn decimals(size: f64) -> usize {
    if size < 9.995 {
        2
    } else if size < 99.95 {
        1
    } else {
        0
    }
}

/// Returns `size` rounded to the decimals with which it is shown.
fn rounds_to(size: f64) -> f64 {
    let scale = 10f64.powi(decimals(size) as i32);
    (size * scale).round() / scale
}

/// Returns the items of a list in words, such as `a, b and c`.
pub fn listed<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        all => all.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_is_minus_nothing() {
        for (part, text) in [
            (-0.0, "0 %"),
            (-0.0001, ">-0.1 %"),
            (0.0001, "<0.1 %"),
            (-0.02, "-2.0 %"),
        ] {
            assert_eq!(share(part), text);
        }
    }

    #[test]
    fn a_duration_never_shows_a_thousand_of_a_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_994, "9.99 µs"),
            (9_996, "10.0 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_500_000_000, "1.50 s"),
            (250_000_000_000, "250 s"),
            (-1_500, "-1.50 µs"),
        ] {
            assert_eq!(duration(ns), text, "{ns}");
        }
    }

    #[test]
    fn a_place_has_the_digits_that_its_window_asks_for() {
        for (ns, span_ns, text) in [
            (100_004_200, 80_000, "100.0042 ms"),
            (100_080_000, 80_000, "100.0800 ms"),
            (100_000_007, 50, "100.000007 ms"),
            (1_500_000_000, 2_000_000_000, "1.50 s"),
            (1_500_000_000, 150_000_000, "1.500 s"),
            (96_000_000_000, 100_000_000_000, "96.0 s"),
            (999_500, 10_000_000, "1.00 ms"),
            (12, 1_000_000, "12 ns"),
            (0, 80_000, "0 ns"),
            (1_500, 0, "1.50 µs"),
        ] {
            assert_eq!(place(ns, span_ns), text);
        }
    }

    #[test]
    fn bytes_are_binary() {
        for (b, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1_048_575, "1.00 MiB"),
            (3 << 30, "3.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(b), text, "{b}");
        }
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(12_345_678), "12,345,678");
    }

    #[test]
    fn a_mean_count_has_decimals_where_it_is_not_whole() {
        for (count, text) in [
            (400.0, "400"),
            (2.5, "2.5"),
            (1.0 / 6.0, "0.17"),
            (0.999, "1.0"),
        ] {
            assert_eq!(mean_count(count), text);
        }
    }

    #[test]
    fn a_factor_has_the_digits_of_its_size() {
        for (factor, text) in [
            (211.0, "211 ×"),
            (12_345.6, "12,346 ×"),
            (45.678, "45.7 ×"),
            (1.849, "1.85 ×"),
            (0.2, "0.20 ×"),
            (0.0123, "0.012 ×"),
            (0.0047, "0.0047 ×"),
            (0.0004, "<0.001 ×"),
            (f64::INFINITY, "unknown"),
        ] {
            assert_eq!(self::factor(factor), text);
        }
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing_or_everything() {
        assert_eq!(share(0.0), "0 %");
        assert_eq!(share(0.000_01), "<0.1 %");
        assert_eq!(share(0.1234), "12.3 %");
        assert_eq!(share(0.999_9), ">99.9 %");
        assert_eq!(share(1.0), "100 %");
        assert_eq!(share_of(1, 0), "unknown");
    }

    #[test]
    fn a_rate_of_no_time_is_unknown() {
        assert_eq!(rate(1 << 30, 500_000_000).as_deref(), Some("2.00 GiB/s"));
        assert_eq!(rate(1, 0), None);
    }
}
