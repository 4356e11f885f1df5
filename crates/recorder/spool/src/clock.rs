//! Reads the host's clocks, and puts the times of a process whose clocks differ from the session's (a time namespace) on the
//! session's clock.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

/// The nanoseconds from this process's monotonic clock to the session's.
static TO_SESSION_NS: AtomicI64 = AtomicI64::new(0);

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

/// Reads the session's monotonic clock, the time base of every trace, in nanoseconds.
#[inline]
pub fn monotonic_ns() -> i64 {
    to_session_ns(HostClock::Monotonic.now_ns())
}

/// Converts a reading of this process's monotonic clock to the session's clock.
#[inline]
pub fn to_session_ns(ns: i64) -> i64 {
    ns.saturating_add(TO_SESSION_NS.load(Relaxed))
}

/// Returns the clock of this process as [`crate::env::CLOCK`] has it: its time namespace, and the offset of the monotonic clock
/// there in nanoseconds. `None` where the system does not say them.
pub fn describe_clock() -> Option<String> {
    Some(format!("{} {}", namespace("time")?, offset_ns()?))
}

/// Puts the times of this process on the clock of the session, as the session describes it. Returns false where it is not
/// known how the two differ.
pub(crate) fn take_session_clock() -> bool {
    let described = std::env::var(crate::env::CLOCK).unwrap_or_default();
    let Some((session, offset)) = described.split_once(' ') else {
        return false;
    };
    let own = namespace("time");
    let difference = match own.is_some_and(|own| own == session) {
        true => Some(0),
        false => offset
            .parse()
            .ok()
            .and_then(|of_session: i64| of_session.checked_sub(offset_ns()?)),
    };
    TO_SESSION_NS.store(difference.unwrap_or(0), Relaxed);
    difference.is_some()
}

/// Returns the kernel's name of a namespace of this process.
fn namespace(kind: &str) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    Some(link.to_str()?.to_owned())
}

/// Returns the offset of the monotonic clock in the time namespace of this process.
fn offset_ns() -> Option<i64> {
    // Where the two differ, the file has the offsets of the namespace of the children to come.
    if namespace("time")? != namespace("time_for_children")? {
        return None;
    }
    let text = std::fs::read_to_string("/proc/self/timens_offsets").ok()?;
    monotonic_offset(&text)
}

/// Returns the offset of the monotonic clock in the text of `/proc/PID/timens_offsets`.
fn monotonic_offset(text: &str) -> Option<i64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("monotonic"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let seconds = numbers.next()?.ok()?;
    let ns = numbers.next()?.ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::monotonic_offset;

    #[test]
    fn offsets_are_read_as_the_kernel_writes_them() {
        let text = "monotonic         -61 940000000\nboottime       100000         0\n";
        assert_eq!(monotonic_offset(text), Some(-60_060_000_000));
        let plain = "monotonic           0         0\nboottime            0         0\n";
        assert_eq!(monotonic_offset(plain), Some(0));
        for wrong in ["", "boottime 1 0\n", "monotonic x 0\n", "monotonic 1\n"] {
            assert_eq!(monotonic_offset(wrong), None, "{wrong:?}");
        }
    }
}
