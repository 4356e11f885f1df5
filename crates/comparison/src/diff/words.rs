//! Formats quantities, changes and chances as text for reports of a comparison.

use super::metric::Unit;
use gapscope_timeline::quantity;
use gapscope_timeline::thresholds::HOPELESS_FACTOR;

/// The factor from which on a change is written as a factor, not as a percentage.
pub(super) const FACTOR_FROM: f64 = 1.5;
/// The factor from which on an interval that reaches it is written with factors.
const WIDE_FACTOR: f64 = 3.0;

/// Formats a value with its unit.
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns => quantity::duration_f64(value),
        Unit::Bytes => quantity::bytes(value.round().max(0.0) as u64),
        // Of a great number, a part of one says nothing.
        Unit::Count if value >= 1e3 => quantity::count(value.round() as u64),
        Unit::Count => quantity::mean_count(value),
    }
}

/// Formats a value with its unit, with a sign where it is a lower bound.
pub fn at_least(number: f64, unit: Unit, is_bound: bool) -> String {
    let sign = if is_bound { "≥ " } else { "" };
    format!("{sign}{}", value(number, unit))
}

/// Says what changes two runs could show, by the least ratio above 1 that is told from noise.
pub(super) fn could_show(least: f64) -> String {
    match least < HOPELESS_FACTOR {
        true => format!(
            "these runs could show only changes above {}",
            from_change(least)
        ),
        false => "these runs could show no change of this figure".to_owned(),
    }
}

/// Says on which sides a figure is not known, from the figures before and after.
pub(super) fn unknown_sides(figures: [Option<f64>; 2]) -> &'static str {
    match figures.map(|figure| figure.is_some()) {
        [false, true] => "before",
        [true, false] => "after",
        [false, false] => "on either side",
        [true, true] => "on both sides",
    }
}

/// Formats a ratio as a change: `+2.1 %`, `−12 %`, `2.10 ×`.
pub fn change(ratio: f64) -> String {
    match ratio {
        0.0 => "gone".to_owned(),
        _ if ratio >= FACTOR_FROM || ratio <= 1.0 / FACTOR_FROM => factor(ratio),
        _ => signed(ratio),
    }
}

/// Formats a ratio above 1 as the size of a change in either direction: `4.2 %`, `2.10 ×`.
fn from_change(ratio: f64) -> String {
    match ratio >= FACTOR_FROM {
        true => factor(ratio),
        false => signed(ratio).trim_start_matches('+').to_owned(),
    }
}

/// Formats a ratio as a factor: `2.10 ×`.
pub(super) fn factor(ratio: f64) -> String {
    let digits = match ratio {
        100.0.. => 0,
        10.0.. => 1,
        0.1.. => 2,
        0.001.. => 4,
        _ if ratio > 0.0 => return "< 0.001 ×".to_owned(),
        _ => 0,
    };
    format!("{ratio:.digits$} ×")
}

/// Formats a ratio as an added share: `+2.1 %`.
pub(super) fn signed(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = match percent.abs() {
        100.0.. => 0,
        0.995.. => 1,
        _ => 2,
    };
    let text = format!("{:.digits$}", percent.abs());
    match percent {
        _ if text.bytes().all(|b| matches!(b, b'0' | b'.')) => "0 %".to_owned(),
        0.0.. => format!("+{text} %"),
        _ => format!("−{text} %"),
    }
}

/// Formats the interval of a ratio: `+1.2 … +3.0 %`.
pub fn interval(ratio: f64, low: f64, high: f64) -> String {
    let wide = high >= WIDE_FACTOR || low <= 1.0 / WIDE_FACTOR;
    if ratio >= FACTOR_FROM || ratio <= 1.0 / FACTOR_FROM || wide {
        return format!("{} … {}", factor(low).trim_end_matches(" ×"), factor(high));
    }
    format!("{} … {}", signed(low).trim_end_matches(" %"), signed(high))
}

/// Formats a chance: `< 0.001`, `0.03`.
pub fn chance(p: f64) -> String {
    match p {
        _ if p < 0.001 => "< 0.001".to_owned(),
        _ if p < 0.0995 => format!("{p:.3}"),
        _ => format!("{p:.2}"),
    }
}
