//! The stub of CUPTI's metrics: its host part, and PM sampling with planted values that depend on the time, which behaves as it does on
//! a real machine. `FAKE_CUDA_PM` lists what else is wrong, in words:
//!
//! | word | what is wrong |
//! |---|---|
//! | `busy` | another profiler has the counters |
//! | `privileges` | counters are for administrators |
//! | `part` | the device is a part of a GPU |
//! | `chip` | the chip is not known |
//! | `host` | libnvperf_host.so is not found |
//! | `lacks=TEXT` | the device has no metrics with the text in their names |
//! | `two=TEXT` | with metrics with the text in their names others do not fit into one pass |
//! | `mute=TEXT` | with metrics with the text in their names no sample comes, and decoding is out of memory |
//! | `full=N` | an image is full after so many samples, and 20 ms are lost each time |
//! | `overflow=N` | at the Nth decoding the hardware buffer is full, and 30 ms are lost |
//! | `zero=N` | from the Nth decoding on until a stop samples have no length; then decoding is out of memory |
//! | `silent=N` | from the Nth decoding on there are no samples |
//! | `late` | the last sample is not complete before the next decoding |
//! | `kill=N` | at the Nth decoding the process is killed |
//!
//! Samples begin at multiples of the interval. As on the real machine, the first one after a start begins seconds early. In a sample
//! that begins in an even 10 ms of the clock, shares are 80 %, in others 20 %; 2 bytes are read in a ns, and 1 is written.

use super::range_profiler::{self, is_metric};
use super::results::*;
use super::{clock, now, parameters, state};
use crate::config::config;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;

const MS: u64 = 1_000_000;
const AVAILABILITY_BYTES: usize = 16;
const MAGIC: u64 = 0x4641_4b45_504d_0001;
/// A flag of a configuration, beside its passes: no sample will come.
const MUTE: u64 = 1 << 32;
/// Magic, room, populated, completed.
const HEADER: usize = 4;

/// Returns a word of `FAKE_CUDA_PM`: its value, empty where it has none.
fn word(name: &str) -> Option<String> {
    let words = std::env::var("FAKE_CUDA_PM").unwrap_or_default();
    words.split_whitespace().find_map(|word| {
        let (found, value) = word.split_once('=').unwrap_or((word, ""));
        (found == name).then(|| value.to_owned())
    })
}

fn number(name: &str) -> Option<u64> {
    word(name).and_then(|value| value.parse().ok())
}

/// The state of sampling.
#[derive(Default)]
struct Sampler {
    interval_ns: u64,
    is_running: bool,
    is_first: bool,
    /// The end of the samples so far, on the host's clock.
    until_ns: u64,
    stopped_ns: Option<u64>,
    decodings: u64,
    is_out_of_step: bool,
    is_mute: bool,
}

static SAMPLERS: Mutex<Vec<Sampler>> = Mutex::new(Vec::new());

fn with<T>(object: *mut c_void, of: impl FnOnce(&mut Sampler) -> T) -> T {
    let mut samplers = SAMPLERS.lock().expect("no panic before");
    let at = object as usize - 1;
    of(&mut samplers[at])
}

/// Returns the client's clock minus the host's; without one it is the wall clock.
fn offset() -> i64 {
    let wall = || clock(libc::CLOCK_REALTIME) as i64 - now() as i64;
    state().clock_offset.unwrap_or_else(wall)
}

parameters! {
    Nothing {}
    OfObject { object: *mut c_void }
    ChipName { device: usize, name: *const c_char }
    Availability { device: usize, size: usize, image: *mut u8 }
    HostInitialize { kind: c_int, chip: *const c_char, availability: *const u8, host: *mut Host }
    Chips { count: usize, names: *const *const c_char }
    AddMetrics { host: *mut Host, names: *const *const c_char, count: usize }
    ImageSize { host: *mut Host, size: usize }
    Image { host: *mut Host, size: usize, image: *mut u8 }
    Passes { size: usize, image: *const u8, passes: usize }
    Enable { device: usize, object: *mut c_void }
    SetConfig {
        object: *mut c_void,
        config_size: usize,
        config: *const u8,
        buffer: usize,
        interval: u64,
        trigger: c_int,
        append: c_int,
    }
    DataSize {
        object: *mut c_void,
        names: *const *const c_char,
        count: usize,
        max: u32,
        size: usize,
    }
    DataInitialize { object: *mut c_void, size: usize, image: *mut u64 }
    Decode { object: *mut c_void, image: *mut u64, size: usize, reason: c_int, overflow: u8 }
    DataInfo { image: *const u64, size: usize, total: usize, populated: usize, completed: usize }
    SampleInfo {
        object: *mut c_void,
        image: *const u64,
        size: usize,
        index: usize,
        start: u64,
        end: u64,
    }
    Evaluate {
        host: *mut Host,
        image: *const u64,
        size: usize,
        index: usize,
        names: *const *const c_char,
        count: usize,
        values: *mut f64,
    }
}

/// Returns an error from the caller where the size is not that of the header.
macro_rules! of_size {
    ($parameters:expr, $size:literal) => {{
        // SAFETY: the caller's structure.
        let parameters = unsafe { &mut *$parameters };
        if parameters.struct_size != $size || !parameters.private.is_null() {
            return INVALID_PARAMETER;
        }
        parameters
    }};
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerInitialize(p: *mut Nothing) -> c_int {
    of_size!(p, 16);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerDeInitialize(p: *mut Nothing) -> c_int {
    of_size!(p, 16);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiDeviceGetChipName(p: *mut ChipName) -> c_int {
    let p = of_size!(p, 32);
    p.name = c"FK100".as_ptr();
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingGetCounterAvailability(p: *mut Availability) -> c_int {
    let p = of_size!(p, 40);
    if word("privileges").is_some() {
        return INSUFFICIENT_PRIVILEGES;
    }
    if word("part").is_some() {
        return MIG_DEVICE_NOT_SUPPORTED;
    }
    if p.image.is_null() {
        p.size = AVAILABILITY_BYTES;
    } else {
        // SAFETY: the caller's image of this size.
        unsafe { p.image.write_bytes(7, p.size) };
    }
    SUCCESS
}

/// A host object: the names that were added to it.
#[derive(Default)]
pub struct Host {
    has_availability: bool,
    /// It belongs to the range profiler.
    is_of_ranges: bool,
    /// A metric was added that the chip lacks.
    is_spoiled: bool,
    names: Vec<String>,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostInitialize(p: *mut HostInitialize) -> c_int {
    let p = of_size!(p, 48);
    // SAFETY: the caller's text.
    let chip = unsafe { CStr::from_ptr(p.chip) };
    if word("host").is_some() {
        return NOT_INITIALIZED;
    }
    if word("chip").is_some() || chip != c"FK100" {
        return INVALID_CHIP_NAME;
    }
    let host = Host {
        has_availability: !p.availability.is_null(),
        is_of_ranges: p.kind == 0,
        ..Host::default()
    };
    p.host = Box::into_raw(Box::new(host));
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostDeinitialize(p: *mut OfObject) -> c_int {
    let p = of_size!(p, 24);
    // SAFETY: made above, and given back once.
    drop(unsafe { Box::from_raw(p.object.cast::<Host>()) });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostGetSupportedChips(p: *mut Chips) -> c_int {
    let p = of_size!(p, 32);
    if word("host").is_some() {
        return NOT_INITIALIZED;
    }
    (p.count, p.names) = (0, std::ptr::null());
    SUCCESS
}

/// # Safety
/// The client's list of texts.
unsafe fn names(names: *const *const c_char, count: usize) -> Vec<String> {
    // SAFETY: as the caller promises.
    let texts = unsafe { std::slice::from_raw_parts(names, count) }.iter();
    // SAFETY: as the caller promises.
    let text = |text: &*const c_char| unsafe { CStr::from_ptr(*text) };
    texts
        .map(|t| text(t).to_string_lossy().into_owned())
        .collect()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostConfigAddMetrics(p: *mut AddMetrics) -> c_int {
    let p = of_size!(p, 40);
    // SAFETY: an object of ours, and the client's list.
    let (host, names) = unsafe { (&mut *p.host, names(p.names, p.count)) };
    if host.is_of_ranges {
        host.is_spoiled |= !names.iter().all(|name| is_metric(name));
        host.names.extend(names);
        return if host.is_spoiled {
            INVALID_PARAMETER
        } else {
            SUCCESS
        };
    }
    let lacks = word("lacks");
    let is_lacking = |name: &String| lacks.as_ref().is_some_and(|text| name.contains(text));
    // Without an availability image a metric that the device lacks is not noticed.
    if host.has_availability && names.iter().any(is_lacking) {
        return UNKNOWN;
    }
    // These are names of units of this stub.
    let units = [
        "sm__", "tpc__", "lts__", "dram__", "pcie__", "nvlrx__", "nvltx__",
    ];
    if !names
        .iter()
        .all(|name| units.iter().any(|unit| name.contains(unit)))
    {
        return INVALID_PARAMETER;
    }
    host.names.extend(names);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostGetConfigImageSize(p: *mut ImageSize) -> c_int {
    of_size!(p, 32).size = 8;
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostGetConfigImage(p: *mut Image) -> c_int {
    let p = of_size!(p, 40);
    // SAFETY: an object of ours.
    let host = unsafe { &*p.host };
    let has = |what: &str| {
        let text = word(what);
        (host.names.iter()).any(|name| text.as_ref().is_some_and(|text| name.contains(text)))
    };
    if host.is_spoiled {
        return UNKNOWN;
    }
    let passes: u64 = match () {
        () if host.is_of_ranges => config().passes,
        () if has("two") && host.names.len() > 1 => 2,
        () if has("mute") => MUTE | 1,
        () => 1,
    };
    // SAFETY: the client's image of 8 bytes.
    unsafe { p.image.cast::<[u8; 8]>().write(passes.to_ne_bytes()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostGetNumOfPasses(p: *mut Passes) -> c_int {
    let p = of_size!(p, 40);
    // SAFETY: an image from above.
    let config = u64::from_ne_bytes(unsafe { p.image.cast::<[u8; 8]>().read() });
    p.passes = (config & !MUTE) as usize;
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingEnable(p: *mut Enable) -> c_int {
    let p = of_size!(p, 32);
    let mut samplers = SAMPLERS.lock().expect("no panic before");
    samplers.push(Sampler::default());
    p.object = samplers.len() as *mut c_void;
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingDisable(p: *mut OfObject) -> c_int {
    of_size!(p, 24);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingSetConfig(p: *mut SetConfig) -> c_int {
    let p = of_size!(p, 64);
    if word("busy").is_some() {
        return HARDWARE_BUSY;
    }
    if p.trigger != 1 || p.interval == 0 || p.buffer == 0 {
        return INVALID_PARAMETER;
    }
    // SAFETY: an image from above.
    let config = u64::from_ne_bytes(unsafe { p.config.cast::<[u8; 8]>().read() });
    with(p.object, |sampler| {
        sampler.interval_ns = p.interval;
        sampler.is_mute = config & MUTE != 0;
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingStart(p: *mut OfObject) -> c_int {
    let p = of_size!(p, 24);
    with(p.object, |sampler| {
        sampler.is_running = true;
        sampler.is_first = true;
        sampler.is_out_of_step = false;
        sampler.stopped_ns = None;
        sampler.until_ns = now().next_multiple_of(sampler.interval_ns);
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingStop(p: *mut OfObject) -> c_int {
    let p = of_size!(p, 24);
    with(p.object, |sampler| {
        sampler.is_running = false;
        sampler.stopped_ns = Some(now());
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingGetCounterDataSize(p: *mut DataSize) -> c_int {
    let p = of_size!(p, 56);
    p.size = 8 * (HEADER + 2 * p.max as usize);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingCounterDataImageInitialize(
    p: *mut DataInitialize,
) -> c_int {
    let p = of_size!(p, 40);
    // SAFETY: the client's image of this size.
    let image = unsafe { std::slice::from_raw_parts_mut(p.image, p.size / 8) };
    let room = (image.len() - HEADER) / 2;
    image[..HEADER].copy_from_slice(&[MAGIC, room as u64, 0, 0]);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingDecodeData(p: *mut Decode) -> c_int {
    let p = of_size!(p, 45);
    // SAFETY: the client's image of this size.
    let image = unsafe { std::slice::from_raw_parts_mut(p.image, p.size / 8) };
    if image[0] != MAGIC {
        return INVALID_PARAMETER;
    }
    let offset = offset();
    let room = number("full").map_or(image[1], |most| most.min(image[1]));
    with(p.object, |sampler| {
        sampler.decodings += 1;
        let is = |name: &str| number(name) == Some(sampler.decodings);
        if is("kill") {
            // SAFETY: it ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        if sampler.is_mute || (sampler.is_out_of_step && sampler.is_running) {
            return OUT_OF_MEMORY;
        }
        sampler.is_out_of_step = is("zero");
        (p.reason, p.overflow) = (2, 0);
        let end_ns = sampler.stopped_ns.unwrap_or_else(now);
        if is("overflow") {
            p.overflow = 1;
            sampler.until_ns += 30 * MS;
        }
        // Samples that were not complete are complete now.
        image[3] = image[2];
        let on_clock = |ns: u64| ns.wrapping_add_signed(offset);
        let is_silent = number("silent").is_some_and(|from| sampler.decodings >= from);
        while !is_silent && sampler.until_ns + sampler.interval_ns <= end_ns {
            if image[2] >= room {
                p.reason = 1;
                sampler.until_ns += 20 * MS;
                break;
            }
            let start_ns = sampler.until_ns;
            sampler.until_ns += sampler.interval_ns;
            let early_ns = u64::from(std::mem::take(&mut sampler.is_first)) * 3_000 * MS;
            let (start, end) = match sampler.is_out_of_step {
                true => (4242, 4242),
                false => (on_clock(start_ns - early_ns), on_clock(sampler.until_ns)),
            };
            let at = HEADER + 2 * image[2] as usize;
            image[at..at + 2].copy_from_slice(&[start, end]);
            image[2] += 1;
        }
        let is_late = word("late").is_some() && sampler.is_running && image[2] > image[3];
        image[3] = image[2] - u64::from(is_late);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingGetCounterDataInfo(p: *mut DataInfo) -> c_int {
    let p = of_size!(p, 56);
    // SAFETY: an image from above.
    let header = unsafe { std::slice::from_raw_parts(p.image, HEADER) };
    p.total = header[1] as usize;
    (p.populated, p.completed) = (header[2] as usize, header[3] as usize);
    SUCCESS
}

/// Returns start and end of a sample.
///
/// # Safety
/// An image from above, of this size.
unsafe fn times(image: *const u64, size: usize, index: usize) -> Option<(u64, u64)> {
    // SAFETY: as the caller promises.
    let image = unsafe { std::slice::from_raw_parts(image, size / 8) };
    let at = HEADER + 2 * index;
    ((index as u64) < image[3]).then(|| (image[at], image[at + 1]))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingCounterDataGetSampleInfo(p: *mut SampleInfo) -> c_int {
    let p = of_size!(p, 64);
    // SAFETY: an image from above.
    match unsafe { times(p.image, p.size, p.index) } {
        Some(found) => {
            (p.start, p.end) = found;
            SUCCESS
        }
        None => INVALID_PARAMETER,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostEvaluateToGpuValues(p: *mut Evaluate) -> c_int {
    let p = of_size!(p, 72);
    // SAFETY: an object of ours.
    let host = unsafe { &*p.host };
    // SAFETY: the client's list, with room for a value of each.
    let (names, values) = unsafe {
        let values = std::slice::from_raw_parts_mut(p.values, p.count);
        (names(p.names, p.count), values)
    };
    if host.is_of_ranges {
        if host.is_spoiled || !names.iter().all(|name| host.names.contains(name)) {
            return UNKNOWN;
        }
        for (name, value) in names.iter().zip(values) {
            *value = range_profiler::value(name);
        }
        return SUCCESS;
    }
    // SAFETY: an image from above.
    let Some((start, end)) = (unsafe { times(p.image, p.size, p.index) }) else {
        return INVALID_PARAMETER;
    };
    let is_even = (start / (10 * MS)).is_multiple_of(2);
    for (name, value) in names.iter().zip(values) {
        let ns = end.saturating_sub(start) as f64;
        *value = match name.as_str() {
            name if name.contains("read") && name.ends_with(".sum") => 2.0 * ns,
            name if name.ends_with(".sum") => ns,
            name if name.ends_with("per_second") => 1.5e9,
            // The cache was not asked for anything.
            name if name.contains("hit_rate") && !is_even => f64::NAN,
            _ if is_even => 80.0,
            _ => 20.0,
        };
    }
    SUCCESS
}
