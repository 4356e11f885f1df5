//! The host's clocks.

/// A clock of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostClock {
    /// CLOCK_MONOTONIC, the time base of every trace. It stands still while the machine sleeps.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: the same without the corrections of its rate.
    MonotonicRaw,
    /// CLOCK_BOOTTIME: the same with the time asleep.
    Boottime,
}

impl HostClock {
    /// Its time in nanoseconds.
    #[inline]
    pub fn now_ns(self) -> i64 {
        let clock = match self {
            HostClock::Monotonic => libc::CLOCK_MONOTONIC,
            HostClock::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            HostClock::Boottime => libc::CLOCK_BOOTTIME,
        };
        let mut t = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `t` is a valid timespec for the call to fill.
        unsafe { libc::clock_gettime(clock, &mut t) };
        t.tv_sec * 1_000_000_000 + t.tv_nsec
    }
}

/// Nanoseconds of the host's monotonic clock, the time base of every trace.
#[inline]
pub fn monotonic_ns() -> i64 {
    HostClock::Monotonic.now_ns()
}
