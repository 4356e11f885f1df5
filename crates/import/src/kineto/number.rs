//! Parses the numbers of events. Times are never rounded through floating point: whole microseconds and three
//! decimals are read as digits, and the rest is rounded.

/// The maximum of a time in nanoseconds, about 146 years. Greater times are impossible.
const MAX_NS: i128 = 1 << 62;

/// Parses microseconds and returns them in nanoseconds, rounded to the nearest. Returns `None` for other texts and
/// for impossible times.
pub(super) fn nanoseconds(microseconds: &[u8]) -> Option<i64> {
    let (negative, digits) = match microseconds {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut value: u64 = 0;
    let mut at = 0;
    while let Some(digit @ b'0'..=b'9') = digits.get(at) {
        if at == 16 {
            return scaled(digits, negative, 3);
        }
        value = value * 10 + u64::from(digit - b'0');
        at += 1;
    }
    let mut decimals = 0;
    if digits.get(at) == Some(&b'.') {
        let from = at + 1;
        at = from;
        while let Some(digit @ b'0'..=b'9') = digits.get(at) {
            match at - from {
                0..3 => {
                    value = value * 10 + u64::from(digit - b'0');
                    decimals += 1;
                }
                3 => value += u64::from(*digit >= b'5'),
                _ => {}
            }
            at += 1;
        }
    }
    if at != digits.len() || at == 0 || digits == b"." {
        return scaled(digits, negative, 3);
    }
    for _ in decimals..3 {
        value *= 10;
    }
    let value = i64::try_from(value)
        .ok()
        .filter(|v| i128::from(*v) < MAX_NS)?;
    Some(if negative { -value } else { value })
}

/// Parses a time in units of ten to the power of `decimals` nanoseconds, and returns it in nanoseconds like
/// [`nanoseconds`].
pub(super) fn in_units(time: &[u8], decimals: i64) -> Option<i64> {
    match time {
        [b'-', digits @ ..] => scaled(digits, true, decimals),
        digits => scaled(digits, false, decimals),
    }
}

/// Parses a time that is written with an exponent or many digits, in units of ten to the power of `decimals`
/// nanoseconds; the result is in nanoseconds, rounded half up.
fn scaled(digits: &[u8], negative: bool, decimals: i64) -> Option<i64> {
    let text = std::str::from_utf8(digits).ok()?;
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = whole.bytes().chain(fraction.bytes());
    if whole.is_empty() || all_digits.clone().any(|b| !b.is_ascii_digit()) {
        return None;
    }
    // The value in nanoseconds is the digits times ten to this power.
    let mut power = i64::from(exponent) - fraction.len() as i64 + decimals;
    let mut value: i128 = 0;
    let mut cut = false;
    for digit in all_digits {
        if value < 1 << 100 {
            value = value * 10 + i128::from(digit - b'0');
        } else {
            power += 1;
            cut = true;
        }
    }
    while power > 0 && value != 0 {
        value *= 10;
        power -= 1;
        if value >= MAX_NS || cut {
            return None;
        }
    }
    while power < 0 && value != 0 {
        let up = i128::from(power == -1 && value % 10 >= 5);
        value = value / 10 + up;
        power += 1;
    }
    let value = i64::try_from(value)
        .ok()
        .filter(|v| i128::from(*v) < MAX_NS)?;
    Some(if negative { -value } else { value })
}

/// Parses a whole number, which may be written as a text. A fraction is cut off; `None` for anything else.
pub(super) fn whole(value: &[u8]) -> Option<i64> {
    let digits = super::json::bare(value);
    let whole = digits.split(|b| *b == b'.').next()?;
    std::str::from_utf8(whole).ok()?.trim().parse().ok()
}

/// Parses a number, which may be written as a text; `None` for `NaN`, infinity and anything else.
pub(super) fn real(value: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(super::json::bare(value)).ok()?;
    text.trim().parse().ok().filter(|n: &f64| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_keep_their_nanoseconds() {
        for (text, ns) in [
            ("0", Some(0)),
            ("5726.123", Some(5_726_123)),
            ("1712195495519689.047", Some(1_712_195_495_519_689_047)),
            ("1419116105356.596", Some(1_419_116_105_356_596)),
            ("1661203462598738", Some(1_661_203_462_598_738_000)),
            ("-2.5", Some(-2500)),
            ("0.96", Some(960)),
            ("0.0004999", Some(0)),
            ("0.0005", Some(1)),
            ("1.7e3", Some(1_700_000)),
            ("1.7E+3", Some(1_700_000)),
            ("12345e-3", Some(12_345)),
            ("0e99999", Some(0)),
            ("00000000000000000000001", Some(1000)),
            ("1e300", None),
            ("99999999999999999999", None),
            ("9999999999999999.999", None),
            ("", None),
            ("-", None),
            (".5", Some(500)),
            (".", None),
            ("NaN", None),
            ("1.2.3", None),
            ("1e-400", Some(0)),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), ns, "{text}");
        }
    }

    #[test]
    fn other_units_have_limits_of_their_own() {
        for (text, decimals, ns) in [
            ("1764000000000000001", 0, Some(1_764_000_000_000_000_001)),
            ("-5184000000000000", 0, Some(-5_184_000_000_000_000)),
            ("2.5", 0, Some(3)),
            ("4611686018427387904", 0, None),
            ("1764000000000.25", 6, Some(1_764_000_000_000_250_000)),
            ("5000000000000", 6, None),
            ("", 0, None),
        ] {
            assert_eq!(in_units(text.as_bytes(), decimals), ns, "{text}");
        }
    }

    #[test]
    fn other_numbers_may_be_texts() {
        assert_eq!(whole(br#""12""#), Some(12));
        assert_eq!(whole(b"12.7"), Some(12));
        assert_eq!(whole(b"null"), None);
        assert_eq!(real(br#""0.5""#), Some(0.5));
        assert_eq!(real(b"NaN"), None);
    }
}
