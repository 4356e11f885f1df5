//! The range profiler for ranges of single kernels: while it is on, each launch in its context runs as often as there are passes. The
//! values of metrics are those of `FAKE_CUDA_METRICS` (`name=value,…`), by default 50 for shares and the length of the name for all
//! others.

use super::results::*;
use super::{parameters, state};
use crate::config::{Refusal, config};
use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

/// CUPTI_AutoRange, CUPTI_KernelReplay
const AUTO_RANGE: c_int = 1;
const KERNEL_REPLAY: c_int = 2;
/// The size of counter data, which is the number of ranges.
const DATA_BYTES: usize = 8;

/// The profiler of a context.
#[derive(Default)]
pub struct RangeProfiler {
    /// The context; 0 where there is no profiler.
    context: u32,
    passes: usize,
    data: usize,
    room: usize,
    runs: bool,
    ranges: usize,
    dropped: usize,
}

impl RangeProfiler {
    /// Returns how often a kernel runs that is launched in a context.
    pub fn launched(&mut self, context: u32) -> usize {
        if !self.runs || self.context != context {
            return 1;
        }
        match self.ranges < self.room {
            true => self.ranges += 1,
            false => self.dropped += 1,
        }
        self.passes
    }
}

/// Returns whether the chip has a metric: it has those of all units, but none of 8-bit numbers.
pub fn is_metric(name: &str) -> bool {
    name.contains("__") && name.contains('.') && !name.contains("fp8")
}

/// Returns the value of a metric in any range.
pub fn value(name: &str) -> f64 {
    let planted = std::env::var("FAKE_CUDA_METRICS").unwrap_or_default();
    let planted = planted.split(',').find_map(|one| {
        let (known, value) = one.split_once('=')?;
        (known == name).then(|| value.parse().ok())?
    });
    planted.unwrap_or(match name.contains("pct") {
        true => 50.0,
        false => name.len() as f64,
    })
}

parameters! {
    Availability { context: *mut c_void, bytes: usize, image: *mut u8 }
    Enable { context: *mut c_void, object: *mut c_void }
    Of { object: *mut c_void }
    SetConfig {
        object: *mut c_void,
        config_bytes: usize,
        config: *const u8,
        data_bytes: usize,
        data: *mut u8,
        range: c_int,
        replay: c_int,
        most: usize,
        levels: u16,
        least_level: u16,
        pass: usize,
        level: u16,
    }
    Stop { object: *mut c_void, pass: usize, level: usize, all: u8 }
    Decode { object: *mut c_void, dropped: usize }
    DataSize {
        object: *mut c_void,
        names: *const *const c_char,
        count: usize,
        ranges: usize,
        nodes: u32,
        bytes: usize,
    }
    DataInitialize { object: *mut c_void, bytes: usize, data: *mut u8 }
    DataInfo { data: *const u8, bytes: usize, ranges: usize }
}

// Every pointer is the caller's structure of parameters, as in CUPTI.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerGetCounterAvailability(of: *mut Availability) -> c_int {
    // SAFETY: see above.
    unsafe { (*of).bytes = 8 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerEnable(of: *mut Enable) -> c_int {
    if config().refuses_profiler == Some(Refusal::Privileges) {
        return INSUFFICIENT_PRIVILEGES;
    }
    let profiler = &mut state().range_profiler;
    if profiler.context != 0 {
        return INVALID_OPERATION;
    }
    // SAFETY: see above; a context is its number.
    unsafe {
        *profiler = RangeProfiler {
            context: (*of).context as usize as u32,
            ..RangeProfiler::default()
        };
        (*of).object = std::ptr::dangling_mut();
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerDisable(_: *mut Of) -> c_int {
    state().range_profiler = RangeProfiler::default();
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerGetCounterDataSize(of: *mut DataSize) -> c_int {
    // SAFETY: see above.
    unsafe { (*of).bytes = DATA_BYTES };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerCounterDataImageInitialize(
    of: *mut DataInitialize,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        if (*of).bytes != DATA_BYTES {
            return INVALID_PARAMETER;
        }
        (*of).data.cast::<u64>().write_unaligned(0);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerSetConfig(of: *mut SetConfig) -> c_int {
    if config().refuses_profiler == Some(Refusal::Busy) {
        return HARDWARE_BUSY;
    }
    // SAFETY: see above.
    unsafe {
        if (*of).config_bytes != 8 {
            return INVALID_PARAMETER;
        }
        // The host part writes the passes there.
        let passes = (*of).config.cast::<u64>().read_unaligned() as usize;
        if (*of).data_bytes != DATA_BYTES
            || ((*of).range, (*of).replay) != (AUTO_RANGE, KERNEL_REPLAY)
            || ((*of).levels, (*of).least_level) != (1, 1)
        {
            return INVALID_PARAMETER;
        }
        let profiler = &mut state().range_profiler;
        (profiler.passes, profiler.room) = (passes, (*of).most);
        profiler.data = (*of).data as usize;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerStart(_: *mut Of) -> c_int {
    std::thread::sleep(Duration::from_millis(config().profiler_ms));
    let profiler = &mut state().range_profiler;
    if profiler.data == 0 || std::mem::replace(&mut profiler.runs, true) {
        return INVALID_OPERATION;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerStop(of: *mut Stop) -> c_int {
    if !std::mem::replace(&mut state().range_profiler.runs, false) {
        return INVALID_OPERATION;
    }
    // SAFETY: see above.
    unsafe { (*of).all = 1 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerDecodeData(of: *mut Decode) -> c_int {
    let profiler = &state().range_profiler;
    if profiler.runs {
        return INVALID_OPERATION;
    }
    // SAFETY: see above; the client keeps its counter data as long as the profiler.
    unsafe {
        (*of).dropped = profiler.dropped;
        (profiler.data as *mut u64).write_unaligned(profiler.ranges as u64);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerGetCounterDataInfo(of: *mut DataInfo) -> c_int {
    // SAFETY: see above.
    unsafe { (*of).ranges = (*of).data.cast::<u64>().read_unaligned() as usize };
    SUCCESS
}
