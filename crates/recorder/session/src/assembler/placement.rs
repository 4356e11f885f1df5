//! Raw ticks of an instance on the host's clock, and why some have no place there.

use crate::clock::{DeviceClock, Ticks};
use gapscope_spool::event::NO_TICKS;

/// Why a time is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Unknown {
    /// The instance has no times, or none inside it.
    Instance,
    /// The command had no queries.
    NotTimed,
    /// The device did not write the timestamp.
    NotDelivered,
    /// The end lies before the begin, or the value is zero.
    Invalid,
    /// Executed by a command buffer that timed it as a whole.
    Secondary,
    /// There is nothing to map the device's clock with.
    Clock,
    /// The commands are not known.
    NotRecorded,
}

/// Number of [`Unknown`]s.
pub const REASONS: usize = 7;

/// The reason of times that lack a map of the device's clock.
pub const NO_CLOCK: &str = "the device's clock could not be mapped to the host's";

impl Unknown {
    /// The ledger's phrase. `instance`: the reason of an instance that has no times.
    pub fn reason(self, instance: &'static str) -> &'static str {
        match self {
            Unknown::Instance => instance,
            Unknown::NotTimed => "the hook could not time the command",
            Unknown::NotDelivered => "the device wrote no timestamp",
            Unknown::Invalid => "invalid device timestamps",
            Unknown::Secondary => "a secondary command buffer was timed as a whole",
            Unknown::Clock => NO_CLOCK,
            Unknown::NotRecorded => "the record of the commands is missing",
        }
    }
}

/// Places raw ticks of one instance on the host's clock.
pub struct Placement<'a> {
    pub clock: &'a mut DeviceClock,
    /// Valid bits of the queue's timestamps.
    pub bits: u32,
    /// A raw reading of the instance and where it lies.
    pub base: (u64, Ticks),
    /// A longer time than this is invalid.
    pub longest: i64,
}

impl Placement<'_> {
    fn mask(&self) -> u64 {
        if self.bits >= 64 {
            u64::MAX
        } else {
            (1 << self.bits) - 1
        }
    }

    /// Begin and duration of what lies between two raw readings.
    #[inline]
    pub fn interval(&mut self, begin: u64, end: u64) -> Result<(i64, i64), Unknown> {
        let (start, stop) = self.ticks(begin, end)?;
        let start = self.clock.host_ns(start).ok_or(Unknown::Clock)?;
        let stop = self.clock.host_ns(stop).ok_or(Unknown::Clock)?;
        Ok((start, stop - start))
    }

    /// The unwrapped ticks of two raw readings.
    #[inline]
    pub fn ticks(&self, begin: u64, end: u64) -> Result<(Ticks, Ticks), Unknown> {
        if begin == NO_TICKS || end == NO_TICKS {
            return Err(Unknown::NotDelivered);
        }
        let length = (end.wrapping_sub(begin) & self.mask()) as i64;
        if begin == 0 || end == 0 || length < 0 || length > self.longest {
            return Err(Unknown::Invalid);
        }
        let shift = 64 - self.bits.clamp(1, 64);
        let from_base = ((begin.wrapping_sub(self.base.0) << shift) as i64) >> shift;
        let start = self.base.1.0.wrapping_add(from_base);
        Ok((Ticks(start), Ticks(start.wrapping_add(length))))
    }
}

/// All of [`Unknown`], by number.
pub const REASONS_IN_ORDER: [Unknown; REASONS] = [
    Unknown::Instance,
    Unknown::NotTimed,
    Unknown::NotDelivered,
    Unknown::Invalid,
    Unknown::Secondary,
    Unknown::Clock,
    Unknown::NotRecorded,
];
