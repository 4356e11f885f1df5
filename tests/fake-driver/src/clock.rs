//! Reads the host clock, and makes the clock of the fake GPU from it.

use crate::config::Config;

pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

pub fn monotonic_raw_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until the moment, and returns at once if it has passed.
pub fn sleep_until(moment_ns: u64) {
    let time = libc::timespec {
        tv_sec: (moment_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (moment_ns % 1_000_000_000) as libc::c_long,
    };
    while monotonic_ns() < moment_ns {
        // SAFETY: `time` is valid for the call; a null remainder is allowed for an absolute time.
        unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &time,
                std::ptr::null_mut(),
            );
        }
    }
}

/// Lets the sleeps of the calling thread end on time; by default they end up to 50 µs late.
pub fn sleep_precisely() {
    // SAFETY: it only changes the timer slack of this thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Returns the tick of the fake GPU's clock at a host time, cut to `bits`.
pub fn device_ticks(config: &Config, host_ns: u64, bits: u32) -> u64 {
    const SCALE: f64 = 1e9;
    let shifted = i128::from(host_ns) + i128::from(config.clock_offset_ns);
    // The sums use integers, because an f64 cannot hold the nanoseconds of a long uptime exactly once they are
    // scaled.
    let drift = (config.clock_drift_ppm * 1e6).round() as i128;
    let drifted = shifted + shifted * drift / 1_000_000_000_000;
    let period = (f64::from(config.timestamp_period) * SCALE)
        .round()
        .max(1.0) as i128;
    let ticks = (drifted * SCALE as i128 / period) as u64;
    ticks & mask(bits)
}

fn mask(bits: u32) -> u64 {
    match bits {
        0 => 0,
        64.. => u64::MAX,
        bits => (1 << bits) - 1,
    }
}
