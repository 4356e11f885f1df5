//! A stub of NVML (nvml.h) that follows a script: the library linked as `libnvidia-ml.so.1`.
//!
//! `FAKE_CUDA_NVML` is the script: parts that begin some milliseconds after the initialisation, with the values that change then:
//! `0 sm=1980 reasons=0; 1500 sm=990 reasons=0x40 power=none`. A value `none` is refused as not supported, and a value of `init` is the
//! status of the initialisation.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;
use std::time::Instant;

const SUCCESS: c_int = 0;
const NOT_SUPPORTED: c_int = 3;
const NOT_FOUND: c_int = 6;
/// More than any test has.
const MAX_DEVICES: u8 = 16;

static BEGAN: OnceLock<Instant> = OnceLock::new();

/// Returns the parts of the script by their times, in milliseconds.
fn script() -> Vec<(u64, Vec<(String, String)>)> {
    let script = std::env::var("FAKE_CUDA_NVML").unwrap_or_default();
    let parts = script.split(';').filter_map(|part| {
        let mut words = part.split_whitespace();
        let at_ms = words.next()?.parse().expect("milliseconds");
        let values = words.filter_map(|word| word.split_once('='));
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some((at_ms, values.collect()))
    });
    parts.collect()
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn elapsed_ms() -> u64 {
    BEGAN.get_or_init(Instant::now).elapsed().as_millis() as u64
}

/// Returns a value at a time; `None` where it is refused.
fn at(script: &[(u64, Vec<(String, String)>)], name: &str, ms: u64) -> Option<u64> {
    let parts = script.iter().take_while(|(from, _)| *from <= ms);
    let values = parts.flat_map(|(_, values)| values);
    let last = values.filter(|(found, _)| found == name).last();
    last.map_or(Some(0), |(_, value)| number(value))
}

/// Stores the present value.
///
/// # Safety
/// `to` may be written.
unsafe fn give<T>(name: &str, to: *mut T, of: impl Fn(u64) -> T) -> c_int {
    match at(&script(), name, elapsed_ms()) {
        Some(value) => {
            // SAFETY: as the caller promises.
            unsafe { to.write(of(value)) };
            SUCCESS
        }
        None => NOT_SUPPORTED,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    elapsed_ms();
    at(&script(), "init", 0).unwrap_or(0) as c_int
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(status: c_int) -> *const c_char {
    match status {
        SUCCESS => c"Success",
        NOT_SUPPORTED => c"Not Supported",
        NOT_FOUND => c"Not Found",
        9 => c"Driver Not Loaded",
        _ => c"Unknown Error",
    }
    .as_ptr()
}

/// Finds a device by its UUID, which is that of the stub of CUDA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(
    uuid: *const c_char,
    device: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's variables.
    let uuid = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    let found = (1..=MAX_DEVICES).find(|number| {
        let byte = format!("{number:02x}");
        let parts = [4, 2, 2, 2, 6].map(|bytes| byte.repeat(bytes));
        uuid == format!("GPU-{}", parts.join("-"))
    });
    let Some(number) = found else {
        return NOT_FOUND;
    };
    // SAFETY: as above.
    unsafe { device.write(number as usize as *mut c_void) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(
    _: *mut c_void,
    clock: c_uint,
    megahertz: *mut c_uint,
) -> c_int {
    let name = match clock {
        1 => "sm",
        2 => "mem",
        _ => return NOT_SUPPORTED,
    };
    // SAFETY: the caller's variables.
    unsafe { give(name, megahertz, |value| value as c_uint) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksEventReasons(
    _: *mut c_void,
    reasons: *mut c_ulonglong,
) -> c_int {
    // SAFETY: the caller's variables.
    unsafe { give("reasons", reasons, |value| value) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(
    _: *mut c_void,
    _: c_uint,
    celsius: *mut c_uint,
) -> c_int {
    // SAFETY: the caller's variables.
    unsafe { give("temperature", celsius, |value| value as c_uint) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(_: *mut c_void, milliwatts: *mut c_uint) -> c_int {
    // SAFETY: the caller's variables.
    unsafe { give("power", milliwatts, |value| value as c_uint) }
}

/// nvmlMemory_t
#[repr(C)]
pub struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(_: *mut c_void, memory: *mut Memory) -> c_int {
    let total = 150_000_000_000;
    let of = |used: u64| Memory {
        total,
        free: total.saturating_sub(used),
        used,
    };
    // SAFETY: the caller's variables.
    unsafe { give("memory", memory, of) }
}

/// nvmlViolationTime_t
#[repr(C)]
pub struct Violation {
    reference_us: c_ulonglong,
    violation_ns: c_ulonglong,
}

/// Returns the time in which the script's reasons are those of the policy: heat (1) or power (0).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetViolationStatus(
    _: *mut c_void,
    policy: c_uint,
    times: *mut Violation,
) -> c_int {
    let mask = match policy {
        0 => 0x4 | 0x80,
        1 => 0x20 | 0x40,
        _ => return NOT_SUPPORTED,
    };
    let script = script();
    if at(&script, "violations", elapsed_ms()).is_none() {
        return NOT_SUPPORTED;
    }
    let now_ms = elapsed_ms();
    // The reasons change only with parts of the script.
    let starts: Vec<u64> = script.iter().map(|(from, _)| *from).collect();
    let ends = starts.iter().skip(1).copied().chain([u64::MAX]);
    let violated = starts
        .iter()
        .zip(ends)
        .filter(|(from, _)| at(&script, "reasons", **from).unwrap_or(0) & mask != 0);
    let violation_ms: u64 = violated
        .map(|(from, end)| end.min(now_ms).saturating_sub(*from))
        .sum();
    let violation = Violation {
        reference_us: now_ms * 1000,
        violation_ns: violation_ms * 1_000_000,
    };
    // SAFETY: the caller's variables.
    unsafe { times.write(violation) };
    SUCCESS
}

/// nvmlGpmSupport_t
#[repr(C)]
pub struct GpmSupport {
    version: c_uint,
    is_supported: c_uint,
}

/// Returns whether samples are supported: the script's `gpm=1`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    _: *mut c_void,
    support: *mut GpmSupport,
) -> c_int {
    // SAFETY: the caller's variables.
    let is_supported = unsafe { &mut (*support).is_supported };
    // SAFETY: as above.
    unsafe { give("gpm", is_supported, |value| value as c_uint) }
}

/// Allocates a sample, a box with the milliseconds of its time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(sample: *mut *mut u64) -> c_int {
    // SAFETY: the caller's variables.
    unsafe { sample.write(Box::into_raw(Box::new(0))) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleGet(_: *mut c_void, sample: *mut u64) -> c_int {
    // SAFETY: the caller's variables.
    unsafe { sample.write(elapsed_ms() + 1) };
    SUCCESS
}

/// nvmlGpmMetric_t
#[repr(C)]
pub struct GpmMetric {
    id: c_uint,
    status: c_int,
    value: f64,
    texts: [*const c_char; 3],
}

/// nvmlGpmMetricsGet_t, which the metrics follow.
#[repr(C)]
pub struct GpmMetrics {
    version: c_uint,
    count: c_uint,
    samples: [*const u64; 2],
    metrics: [GpmMetric; 1],
}

/// Returns metrics: the script's `gpm2=91` is the value of metric 2, and `gpm2=none` refuses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(asked: *mut GpmMetrics) -> c_int {
    let script = script();
    // SAFETY: the caller's variables.
    let (metrics, [from, to]) = unsafe {
        let first = (&raw mut (*asked).metrics).cast::<GpmMetric>();
        let metrics = std::slice::from_raw_parts_mut(first, (*asked).count as usize);
        (metrics, (*asked).samples.map(|sample| *sample))
    };
    if from == 0 || to <= from {
        return NOT_SUPPORTED;
    }
    for metric in metrics {
        let value = at(&script, &format!("gpm{}", metric.id), elapsed_ms());
        metric.status = if value.is_some() {
            SUCCESS
        } else {
            NOT_SUPPORTED
        };
        metric.value = value.unwrap_or_default() as f64;
    }
    SUCCESS
}
