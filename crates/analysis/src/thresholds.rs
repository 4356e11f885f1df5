//! The thresholds of all analyses, each with its reason. The table in `docs/guide.md` is written from them by
//! `UPDATE=1 cargo test -p gapscope-analysis thresholds`.

use crate::quantity::{Nanoseconds, Percent};

/// What a threshold is a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A share of a whole: 0 to 1.
    Share,
    /// Nanoseconds.
    Nanoseconds,
    /// So many times another quantity.
    Times,
    /// Things.
    Count,
}

/// A threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Its constant.
    pub name: &'static str,
    /// Its value, in its unit.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// What it decides, and on which side of it.
    pub decides: &'static str,
    /// Why it has this value.
    pub reason: &'static str,
}

impl Threshold {
    /// Its value with its unit.
    pub fn text(&self) -> String {
        match self.unit {
            Unit::Share => Percent(self.value).to_string(),
            Unit::Nanoseconds => Nanoseconds(self.value as i64).to_string(),
            Unit::Times => format!("{} times", self.value),
            Unit::Count => self.value.to_string(),
        }
    }
}

macro_rules! thresholds {
    ($($name:ident: $type:ty = $value:literal, $unit:ident, $decides:literal, $reason:literal;)+) => {
        $(
            #[doc = concat!($decides, " ", $reason)]
            pub const $name: $type = $value;
        )+

        /// All of them.
        pub const ALL: &[Threshold] = &[$(Threshold {
            name: stringify!($name),
            value: $value as f64,
            unit: Unit::$unit,
            decides: $decides,
            reason: $reason,
        }),+];
    };
}

thresholds! {
    UNKNOWN_SHARE: f64 = 0.5, Share,
        "From this share of unexplained time on there is no verdict.",
        "Whatever bounds the rest, the unexplained could bound more.";
    IDLE_SHARE: f64 = 0.5, Share,
        "Host and sync are the verdict from this share of the time on.",
        "From half on, nothing else can cost as much.";
    TRANSFER_SHARE: f64 = 0.5, Share,
        "Transfers are the verdict from this share of the time on.",
        "From half on, nothing else can cost as much.";
    DEVICE_SHARE: f64 = 0.75, Share,
        "The device is the verdict from this share of the time on.",
        "While a quarter is left to host and sync, a third more speed can be had there, and the verdict is mixed.";
    ROUND_TRIP_NS: i64 = 200_000, Nanoseconds,
        "So long outside of calls between the return of a wait and the next submission counts as part of the wait's round trip.",
        "Recording and handing over a small command buffer takes 5 to 100 µs: a program that needs more does something else there.";
    DRIFT_SHARE: f64 = 0.05, Share,
        "Work may reach out of its command buffer by this share of the command buffer's time before its times are distrusted.",
        "A broken clock is mostly off by a factor of two or more, and sampling itself by less than this.";
    DRIFT_NS: i64 = 1_000, Nanoseconds,
        "Work may reach out of its command buffer by this much in any case.",
        "Timestamps of some devices tick once a microsecond.";
}
