//! Makes the manifest of a replay's trace: the facts of program, device, clock and losses (what has no times).

use std::time::{SystemTime, UNIX_EPOCH};

use ash::vk::QueueFlags;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId};
use gapscope_trace::manifest::{
    Api, Clock, ClockMethod, Device, Exit, Host, Manifest, Process, Queue, SamplingMode,
};
use gapscope_trace::{Ledger, LossKind};

use crate::clock::{host_now_ns, signed};
use crate::options::Schedule;
use crate::session::{Observation, Session};

/// The facts of a replay that the session does not have.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts {
    pub schedule: Schedule,
    /// Number of timed runs.
    pub runs: u32,
}

/// Makes the manifest. `observed` has the times of what ran, in order; `untimed` has the number of dispatches without
/// times, then that of transfers.
pub fn build(
    session: &mut Session<'_>,
    observed: &[Observation],
    facts: &RunFacts,
    untimed: [u64; 2],
) -> Manifest {
    let mut losses = Ledger::default();
    for (kind, count) in [LossKind::DispatchTimes, LossKind::TransferTimes]
        .into_iter()
        .zip(untimed)
    {
        losses.add(
            kind,
            count,
            "the queue has no timestamps, or the submission has more work than is timed",
        );
    }
    let start_ns = signed(observed.first().map_or_else(host_now_ns, |of| of.called_ns));
    let end_ns = signed(observed.last().map_or_else(host_now_ns, |of| of.seen_ns));
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let unix_ns = since_epoch.and_then(|since| i64::try_from(since.as_nanos()).ok());
    let arguments: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let last = observed
        .last()
        .and_then(|of| of.pair(of.whole))
        .map(|(_, end)| end);
    let fit = session.clock.fit(last);
    let known = session.gpu.timestamp_bits > 0;
    let properties = &session.gpu.properties;
    let memory = &session.gpu.memory;
    let heaps = &memory.memory_heaps[..memory.memory_heap_count as usize];
    let capabilities = [
        (QueueFlags::GRAPHICS, "graphics"),
        (QueueFlags::COMPUTE, "compute"),
        (QueueFlags::TRANSFER, "transfer"),
    ];
    let flags = session.gpu.family_flags;
    let capabilities = capabilities
        .iter()
        .filter(|(flag, _)| flags.contains(*flag));
    Manifest {
        gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: arguments.clone(),
        // The trace is written only after everything has run.
        exit: Some(Exit::Code(0)),
        sampling_mode: match facts.schedule {
            Schedule::Serialised => SamplingMode::DispatchSerialised,
            Schedule::AsCaptured | Schedule::Tight => SamplingMode::Dispatch,
        },
        start_ns,
        end_ns,
        start_unix_ns: unix_ns.map(|now| now - (signed(host_now_ns()) - start_ns)),
        host: Host {
            system: std::env::consts::OS.to_owned(),
            processor: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism()
                .ok()
                .map(|n| n.get() as u32),
            ..Host::default()
        },
        processes: vec![Process {
            id: ProcessId(0),
            pid: std::process::id(),
            executable: std::env::current_exe()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            arguments,
            hook: "replay".to_owned(),
            start_ns,
            end_ns: Some(end_ns),
            ..Process::default()
        }],
        devices: vec![Device {
            id: DeviceId(0),
            process: ProcessId(0),
            api: Api::Vulkan,
            name: properties.name.clone(),
            driver: properties.driver.clone(),
            uuid: properties.uuid.clone(),
            heaps: heaps.iter().map(|heap| heap.size).collect(),
            clock: Clock {
                method: match (known, fit.calibrated) {
                    (false, _) => ClockMethod::None,
                    (true, true) => ClockMethod::Calibrated,
                    (true, false) => ClockMethod::Brackets,
                },
                error_ns: fit.error_ns,
                samples: fit.samples,
                drift_ppm: None,
                nanoseconds_per_tick: f64::from(properties.limits.timestamp_period),
            },
            ..Device::default()
        }],
        queues: vec![Queue {
            id: QueueId(0),
            device: DeviceId(0),
            family: session.gpu.family,
            index: 0,
            capabilities: capabilities.map(|(_, name)| (*name).to_owned()).collect(),
            timestamp_bits: session.gpu.timestamp_bits,
            ..Queue::default()
        }],
        losses: losses.losses(),
        notes: notes(session, facts),
        ..Manifest::default()
    }
}

/// Returns the sentences for the trace's reader: what was replayed, and why there are gaps between submissions.
fn notes(session: &Session<'_>, facts: &RunFacts) -> Vec<String> {
    let header = &session.capture.header;
    let command = header.command.join(" ");
    let mut notes = vec![format!(
        "This is a replay of work that was captured from `{command}` on {}.",
        header.device.name
    )];
    if facts.schedule != Schedule::Tight {
        notes.push(
            "Between submissions the replay gives memory its content and compares it: gaps there are the replay's, not the program's."
                .to_owned(),
        );
    }
    notes.extend(session.notes.iter().cloned());
    notes
}
