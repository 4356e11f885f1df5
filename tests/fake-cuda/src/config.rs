//! Reads the environment, which says what the stub does wrong.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadTimes {
    Zero,
    Negative,
    Half,
}

/// The way in which the profiler of kernels refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Busy,
    Privileges,
}

#[derive(Debug)]
pub struct Config {
    pub api_version: u32,
    pub driver_version: i32,
    pub refuses: bool,
    pub refuses_callbacks: bool,
    /// A freed allocation is used again for smaller ones.
    pub reuses_larger: bool,
    pub refuses_stream_ids: bool,
    /// The kind of wrong times, and the interval between them.
    pub times: Option<(BadTimes, u64)>,
    pub unknown_every: u64,
    pub torn: bool,
    pub dropped: usize,
    pub reversed: bool,
    /// Graphs start on the host, and end there, too.
    pub graph_ends_on_host: [bool; 2],
    pub late_device: bool,
    pub late_contexts: bool,
    /// Nanoseconds by which times of devices are late, and parts in a million by which their clock is fast.
    pub skew: (i64, i64),
    /// Devices are parts of GPUs (MIG).
    pub parts: bool,
    pub buffer_bytes: usize,
    pub kernel_ns: u64,
    /// Milliseconds that it takes to switch a kind of record on or off.
    pub switch_ms: u64,
    pub refuses_profiler: Option<Refusal>,
    /// Milliseconds that the profiler of kernels takes to start.
    pub profiler_ms: u64,
    /// How often a profiled kernel runs.
    pub passes: u64,
    /// The driver does not tell attributes of devices.
    pub refuses_attributes: bool,
    /// Modules of libraries are loaded when they are needed.
    pub lazy: bool,
    /// Reserved addresses are not those that were wished.
    pub other_addresses: bool,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|v| v.parse().ok())
}

fn says(name: &str, value: &str) -> bool {
    std::env::var(name).as_deref() == Ok(value)
}

pub fn config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| Config {
        api_version: number("FAKE_CUDA_API_VERSION").map_or(130_001, |v| v as u32),
        driver_version: number("FAKE_CUDA_DRIVER_VERSION").map_or(13_000, |v| v as i32),
        refuses: says("FAKE_CUDA_SUBSCRIBE", "refuse"),
        refuses_callbacks: says("FAKE_CUDA_CALLBACKS", "refuse"),
        reuses_larger: says("FAKE_CUDA_ALLOCATIONS", "reuse"),
        refuses_stream_ids: says("FAKE_CUDA_STREAM_IDS", "refuse"),
        times: std::env::var("FAKE_CUDA_TIMES").ok().and_then(|v| {
            let (kind, every) = v.split_once(':')?;
            let kind = match kind {
                "zero" => BadTimes::Zero,
                "negative" => BadTimes::Negative,
                "half" => BadTimes::Half,
                _ => return None,
            };
            Some((kind, every.parse().ok()?))
        }),
        unknown_every: number("FAKE_CUDA_UNKNOWN").unwrap_or(0),
        torn: says("FAKE_CUDA_TORN", "1"),
        dropped: number("FAKE_CUDA_DROP").unwrap_or(0) as usize,
        reversed: says("FAKE_CUDA_ORDER", "reverse"),
        graph_ends_on_host: [
            std::env::var_os("FAKE_CUDA_GRAPH_ON_HOST").is_some(),
            says("FAKE_CUDA_GRAPH_ON_HOST", "all"),
        ],
        parts: says("FAKE_CUDA_MIG", "1"),
        skew: std::env::var("FAKE_CUDA_SKEW").map_or((0, 0), |v| {
            let (ns, ppm) = v.split_once(':').unwrap_or((&v, "0"));
            let number = |text: &str| text.parse().expect("FAKE_CUDA_SKEW=NS:PPM");
            (number(ns), number(ppm))
        }),
        late_device: says("FAKE_CUDA_DEVICE_RECORD", "late"),
        late_contexts: says("FAKE_CUDA_CONTEXT_RECORD", "late"),
        buffer_bytes: number("FAKE_CUDA_BUFFER").map_or(usize::MAX, |v| v as usize),
        kernel_ns: number("FAKE_CUDA_KERNEL_NS").unwrap_or(2_000),
        switch_ms: number("FAKE_CUDA_SWITCH_MS").unwrap_or(0),
        refuses_profiler: match std::env::var("FAKE_CUDA_PROFILER").as_deref() {
            Ok("busy") => Some(Refusal::Busy),
            Ok("privileges") => Some(Refusal::Privileges),
            _ => None,
        },
        profiler_ms: number("FAKE_CUDA_PROFILER_MS").unwrap_or(0),
        passes: number("FAKE_CUDA_PASSES").unwrap_or(3),
        refuses_attributes: says("FAKE_CUDA_ATTRIBUTES", "refuse"),
        lazy: says("FAKE_CUDA_LAZY", "1"),
        other_addresses: says("FAKE_CUDA_ADDRESSES", "other"),
    })
}
