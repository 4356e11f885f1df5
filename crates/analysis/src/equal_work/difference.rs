//! Tells the difference of a figure of two works as text: a ratio goes in, words come out.

use super::comparison::Ratio;
use gapscope_timeline::quantity::share;
use gapscope_timeline::thresholds::TOLD_FACTOR;

/// The difference of two figures as text, which may be chance or not.
pub(super) enum Difference {
    /// The figures are equal, as far as they are shown.
    None,
    /// The difference may be chance. The text is the interval of the ratio.
    Noise(String),
    /// More than chance.
    Clear(ClearDifference),
}

/// A difference that is more than chance.
pub(super) struct ClearDifference {
    /// True where the side after needs less.
    pub is_less: bool,
    /// True where `size` is a factor, such as `1.52`, and not a share, such as `8.1 %`.
    pub is_factor: bool,
    /// How many times as much the side needs that needs more, or by how much the side after needs less or more.
    pub size: String,
    /// The interval of the size, where there is one.
    pub interval: Option<String>,
}

impl ClearDifference {
    /// Returns that a side took more or less of something, such as `GPU time`. A factor is told of the side that needs more.
    pub fn took(&self, [before, after]: [&str; 2], what: &str) -> String {
        let size = &self.size;
        let much = match what {
            "time" => "long".to_owned(),
            what => format!("much {what}"),
        };
        match (self.is_factor, self.is_less) {
            (true, true) => format!("{before} took {size} times as {much} as {after}"),
            (true, false) => format!("{after} took {size} times as {much} as {before}"),
            (false, true) => format!("{after} took {size} less {what} than {before}"),
            (false, false) => format!("{after} took {size} more {what} than {before}"),
        }
    }

    /// Returns both values, that of the sentence's subject first. `each` says of what the values are.
    pub fn values(&self, [before, after]: [String; 2], each: &str) -> String {
        match (self.is_factor, self.is_less) {
            (true, true) => format!("{before}{each} against {after}"),
            (true, false) => format!("{after}{each} against {before}"),
            (false, _) => format!("{after}{each} instead of {before}"),
        }
    }
}

/// Returns the difference of two figures, or `None` where it is not known. `shown` formats the figures. A factor from
/// `TOLD_FACTOR` on is told as a factor, a smaller one in percent.
pub(super) fn difference(ratio: &Ratio, shown: fn(f64) -> String) -> Option<Difference> {
    let factor = ratio.ratio?;
    let ends = ratio.low.zip(ratio.high);
    if ratio.within_noise == Some(true) {
        if factor == 1.0 && ends == Some((1.0, 1.0)) {
            return Some(Difference::None);
        }
        let (low, high) = ends?;
        let interval = format!("95 %: {} to {}", times(1.0 / high), times(1.0 / low));
        return Some(Difference::Noise(interval));
    }
    if shown(ratio.before?) == shown(ratio.after?) && ends.is_none() {
        return Some(Difference::None);
    }
    // A ratio above 1 means that the side after needs less.
    let less = factor > 1.0;
    let upright = |factor: f64| if less { factor } else { 1.0 / factor };
    let mut told = vec![upright(factor)];
    if let Some((low, high)) = ends {
        let (low, high) = if less { (low, high) } else { (high, low) };
        told.extend([upright(low), upright(high)]);
    }
    let large = told[0] >= TOLD_FACTOR;
    let text = |factor: f64| match (large, less) {
        (true, _) => format!("{factor:.2}"),
        (false, true) => share(1.0 - 1.0 / factor),
        (false, false) => share(factor - 1.0),
    };
    let interval = match told[..] {
        [_, low, high] => Some(format!("95 %: {} to {}", text(low), text(high))),
        _ => None,
    };
    Some(Difference::Clear(ClearDifference {
        is_less: less,
        is_factor: large,
        size: text(told[0]),
        interval,
    }))
}

/// Formats `after / before` as a change: `2.1 % less`, `0.4 % more`.
fn times(after_of_before: f64) -> String {
    match after_of_before <= 1.0 {
        true => format!("{} less", share(1.0 - after_of_before)),
        false => format!("{} more", share(after_of_before - 1.0)),
    }
}
