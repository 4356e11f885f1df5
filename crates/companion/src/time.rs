//! Reads the times that options give, such as `--time-limit 10s`.

use std::time::Duration;

/// A text that is no time. It prints as what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotATime {
    /// The number or the unit is missing or unknown.
    #[error("write a time with its unit: 500ms, 10s, 2m or 1h")]
    Form,
    /// The time is 0, or longer than the system can count.
    #[error("the time must be more than nothing")]
    Nothing,
}

/// Reads a time with its unit, which must be more than 0: `us`, `ms`, `s`, `m` or `h`.
///
/// # Errors
/// The text has no number or no known unit, or its time is 0.
pub fn time(text: &str) -> Result<Duration, NotATime> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.ok_or(NotATime::Form)?);
    let seconds = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(NotATime::Form),
    };
    let number: f64 = number.parse().map_err(|_| NotATime::Form)?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(NotATime::Nothing),
    }
}
