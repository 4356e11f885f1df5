//! Maps the raw ticks (times as the device wrote them) of an instance (a submitted execution of a command buffer) to
//! the host's clock, or gives the reason why they cannot be mapped.

use super::instance::{RawInterval, Reading};
use crate::clock::{DeviceClock, Ticks};
use gapscope_spool::event::{NO_TICKS, Span};

/// The reason why a time is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum UnknownTime {
    /// The instance has no times, or no times inside it.
    Instance,
    /// The command had no queries.
    NotTimed,
    /// The device did not write the timestamp.
    NotDelivered,
    /// The end lies before the start, or the value is zero.
    Invalid,
    /// The recording was executed by a command buffer that timed it as a whole.
    Secondary,
    /// The device's clock cannot be mapped to the host's.
    Clock,
    /// The commands are unknown.
    NotRecorded,
}

/// The number of variants of [`UnknownTime`].
pub const REASONS: usize = 7;

/// The reason for times of a device whose clock is not mapped.
pub const NO_CLOCK: &str = "the device's clock could not be mapped to the host's";

impl UnknownTime {
    /// Returns the reason for the ledger. `instance` is the reason of an instance without times.
    pub fn reason(self, instance: &'static str) -> &'static str {
        match self {
            UnknownTime::Instance => instance,
            UnknownTime::NotTimed => "the hook could not time the command",
            UnknownTime::NotDelivered => "the device wrote no timestamp",
            UnknownTime::Invalid => "invalid device timestamps",
            UnknownTime::Secondary => "a secondary command buffer was timed as a whole",
            UnknownTime::Clock => NO_CLOCK,
            UnknownTime::NotRecorded => "the record of the commands is missing",
        }
    }
}

/// Maps the raw ticks of one instance to the host's clock.
pub struct Placement<'a> {
    pub clock: &'a mut DeviceClock,
    /// The number of valid bits of the queue's timestamps.
    pub bits: u32,
    /// The reading of the instance (raw ticks with the same ticks unwrapped) from which others are unwrapped.
    pub base: Reading,
    /// The maximum valid time between two readings, in ticks.
    pub longest: i64,
}

impl Placement<'_> {
    /// Returns the time between two raw readings.
    #[inline]
    pub fn span(&mut self, raw: RawInterval) -> Result<Span, UnknownTime> {
        let (start, end) = self.ticks(raw)?;
        let start_ns = self.clock.host_ns(start).ok_or(UnknownTime::Clock)?;
        let end_ns = self.clock.host_ns(end).ok_or(UnknownTime::Clock)?;
        Ok(Span {
            start_ns,
            duration_ns: end_ns - start_ns,
        })
    }

    /// Returns the unwrapped ticks of two raw readings.
    #[inline]
    fn ticks(&self, raw: RawInterval) -> Result<(Ticks, Ticks), UnknownTime> {
        let RawInterval { start, end } = raw;
        if start == NO_TICKS || end == NO_TICKS {
            return Err(UnknownTime::NotDelivered);
        }
        let length = (end.wrapping_sub(start) & mask(self.bits)) as i64;
        if start == 0 || end == 0 || length < 0 || length > self.longest {
            return Err(UnknownTime::Invalid);
        }
        let shift = 64 - self.bits.clamp(1, 64);
        let from_base = ((start.wrapping_sub(self.base.raw) << shift) as i64) >> shift;
        let from = self.base.ticks.0.wrapping_add(from_base);
        Ok((Ticks(from), Ticks(from.wrapping_add(length))))
    }
}

/// Returns the mask of the valid bits of timestamps.
pub fn mask(bits: u32) -> u64 {
    1u64.checked_shl(bits).map_or(u64::MAX, |end| end - 1)
}

/// The variants of [`UnknownTime`] in the order of their numbers.
pub const REASONS_IN_ORDER: [UnknownTime; REASONS] = [
    UnknownTime::Instance,
    UnknownTime::NotTimed,
    UnknownTime::NotDelivered,
    UnknownTime::Invalid,
    UnknownTime::Secondary,
    UnknownTime::Clock,
    UnknownTime::NotRecorded,
];
