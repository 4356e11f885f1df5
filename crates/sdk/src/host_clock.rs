//! Reads the host's monotonic clock, the time base of profiles, in nanoseconds.

/// Returns the current time in nanoseconds of the host's monotonic clock, the time base of all rows.
///
/// ```
/// # use gapscope_sdk::kernel_profile::host_now_ns;
/// assert!(host_now_ns() <= host_now_ns());
/// ```
#[cfg(not(target_vendor = "apple"))]
pub fn host_now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    nanoseconds(now.tv_sec, now.tv_nsec)
}

/// Returns the current time in nanoseconds of Mach's absolute clock, which stops while the machine sleeps. It is the
/// base of all of Metal's times and of all rows.
#[cfg(target_vendor = "apple")]
pub fn host_now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is of a local that outlives the call. The clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_UPTIME_RAW, &mut now) };
    nanoseconds(now.tv_sec, now.tv_nsec)
}

/// Converts seconds and nanoseconds of the system to nanoseconds. Times before the clock's zero become 0.
pub(crate) fn nanoseconds<T>(seconds: T, rest: T) -> u64
where
    u64: TryFrom<T>,
{
    let [seconds, rest] = [seconds, rest].map(|part| u64::try_from(part).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
