//! Builds the manifest of a profile's trace from the facts about the profile and the process.

use super::{Extent, signed};
use crate::kernel_profile::info::ProfileInfo;
use crate::kernel_profile::{Sampling, host_now_ns};
use gapscope_trace::build::Interner;
use gapscope_trace::ids::QueueId;
use gapscope_trace::manifest::{
    Api, Clock, ClockMethod, Device, Host, Loss, Manifest, Process, Queue, SamplingMode,
};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the manifest of a trace that covers `extent`; this process is the only one in it.
pub(super) fn build(
    info: &ProfileInfo,
    queues: &Interner<Arc<str>, QueueId>,
    extent: Extent,
    losses: Vec<Loss>,
) -> Manifest {
    let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let unix_ns = unix_ns.and_then(|since| i64::try_from(since.as_nanos()).ok());
    let arguments: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let executable = std::env::current_exe().unwrap_or_default();
    let mut notes = vec![
        "The program measured this itself: host calls and dependencies are not known.".to_owned(),
    ];
    notes.extend(info.notes.iter().cloned());
    let queue = |(id, name): (QueueId, &Arc<str>)| Queue {
        id,
        capabilities: vec!["compute".to_owned()],
        timestamp_bits: 64,
        name: (!name.is_empty()).then(|| name.to_string()),
        ..Queue::default()
    };
    Manifest {
        gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: arguments.clone(),
        sampling_mode: match info.sampling {
            Sampling::Dispatch => SamplingMode::Dispatch,
            Sampling::DispatchSerialised => SamplingMode::DispatchSerialised,
            Sampling::Pass => SamplingMode::Pass,
            Sampling::CommandBuffer | Sampling::None => SamplingMode::CommandBuffer,
        },
        start_ns: extent.start_ns,
        end_ns: extent.end_ns,
        start_unix_ns: unix_ns.map(|now| now - (signed(host_now_ns()) - extent.start_ns)),
        host: Host {
            system: std::env::consts::OS.to_owned(),
            processor: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism()
                .ok()
                .map(|n| n.get() as u32),
            ..Host::default()
        },
        processes: vec![Process {
            pid: std::process::id(),
            executable: executable.to_string_lossy().into_owned(),
            arguments,
            hook: "sdk".to_owned(),
            start_ns: extent.start_ns,
            ..Process::default()
        }],
        devices: vec![Device {
            api: Api::from_text_or_unknown(&info.device.api),
            name: info.device.name.clone(),
            driver: info.device.driver.clone(),
            clock: clock(info),
            ..Device::default()
        }],
        queues: queues.iter().map(queue).collect(),
        losses,
        notes,
        ..Manifest::default()
    }
}

/// Says how the device's times were mapped to the host's clock.
fn clock(info: &ProfileInfo) -> Clock {
    Clock {
        method: match (info.bounds, info.clock.pairs().len()) {
            (Some(_), _) => ClockMethod::Brackets,
            (None, 0) => ClockMethod::None,
            (None, _) => ClockMethod::Calibrated,
        },
        error_ns: info.clock_error_ns().map(signed),
        samples: u32::try_from(info.clock_samples()).unwrap_or(u32::MAX),
        drift_ppm: None,
        nanoseconds_per_tick: info.clock.nanoseconds_per_tick().unwrap_or(0.0),
    }
}
