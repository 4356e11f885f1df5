//! Reads the host's clocks.

/// A clock of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostClock {
    /// CLOCK_MONOTONIC, the time base of every trace. It stops while the machine sleeps.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: like `Monotonic`, without rate corrections.
    MonotonicRaw,
    /// CLOCK_BOOTTIME: like `Monotonic`, with the time asleep.
    Boottime,
}

impl HostClock {
    /// Reads the clock, in nanoseconds.
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

/// Reads the host's monotonic clock, the time base of every trace, in nanoseconds.
#[inline]
pub fn monotonic_ns() -> i64 {
    HostClock::Monotonic.now_ns()
}
