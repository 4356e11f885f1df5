//! Writes the tables of kernels, counters and labels of an imported trace, and builds its manifest from the
//! collector.

use super::assemble::Assembly;
use super::collect::{Collector, shift_of};
use super::document::Summary;
use crate::{Error, Options};
use gapscope_model::LossKind;
use gapscope_trace::ids::{DeviceId, KernelId, ProcessId, QueueId};
use gapscope_trace::manifest::{
    Api, Clock, ClockMethod, Device, FORMAT_VERSION, Host, Manifest, Process, Queue, SamplingMode,
    Thread,
};
use gapscope_trace::tables::{Kernel, NameSource, Table};

/// Writes the tables of kernels, counters and labels, and returns the manifest.
pub(super) fn finish(
    found: &mut Collector,
    assembly: &Assembly,
    summary: &Summary,
    file: &str,
    options: &Options,
) -> Result<Manifest, Error> {
    kernels(found, assembly);
    losses(found, summary);
    let main = assembly.main;
    let device = |number| assembly.queues.device_of(main, number);
    found.counters.push_into(device, found.new.tables_mut());
    found.labels.push_into(&mut found.new.tables_mut().labels);
    let (start_ns, end_ns) = found.extent.unwrap_or_default();
    let shift_ns = found.shift_ns.unwrap_or(0);
    let unshifted_ns = start_ns.saturating_sub(shift_ns);
    let start_unix_ns = match found.metadata.base_ns {
        Some(base_ns) => base_ns.checked_add(unshifted_ns),
        None => (shift_of(unshifted_ns) != 0).then_some(unshifted_ns),
    };
    let (tool, hook) = match found.metadata.is_kineto {
        true => ("PyTorch's profiler (Kineto)", "Kineto"),
        false => ("a profiler that writes Chrome's JSON", "Chrome JSON"),
    };
    let name = |id: ProcessId| {
        let process = &found.lanes.processes[id.0 as usize - 1];
        process.name.clone().unwrap_or_default()
    };
    let command = options.command.clone().unwrap_or_else(|| {
        let name = name(main);
        Vec::from_iter((!name.is_empty()).then_some(name))
    });
    let processes = (1..=found.lanes.processes.len() as u32).map(ProcessId);
    let processes = processes.map(|id| Process {
        id,
        pid: found.lanes.processes[id.0 as usize - 1].pid,
        parent_pid: None,
        executable: name(id),
        arguments: Vec::new(),
        hook: hook.to_owned(),
        start_ns,
        end_ns: None,
    });
    let threads = found.lanes.all.iter().filter_map(|lane| {
        Some(Thread {
            process: lane.process,
            thread: lane.thread,
            name: lane.name.as_deref()?.to_owned(),
        })
    });
    let (processes, threads) = (processes.collect(), threads.collect());
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        stack_rate_hz: None,
        gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        complete: true,
        command,
        exit: None,
        sampling_mode: SamplingMode::Dispatch,
        start_ns,
        end_ns,
        start_unix_ns,
        host: Host::default(),
        processes,
        threads,
        devices: devices(found, assembly),
        queues: queues(assembly),
        rank: found.metadata.rank,
        ranks: Vec::new(),
        losses: found.ledger.losses(),
        notes: notes(found, assembly, summary, file, tool, options),
        unmeasured: Vec::new(),
        altered: false,
    })
}

fn kernels(found: &mut Collector, assembly: &Assembly) {
    let mut rows: Vec<(KernelId, u32, ProcessId)> = (assembly.kernels.iter())
        .map(|((shape, process), id)| (*id, *shape, *process))
        .collect();
    rows.sort_unstable();
    for (id, shape, process) in rows {
        let shape = found.shapes.all[shape as usize];
        let name = found.texts.get(shape.name).clone();
        let [local_x, local_y, local_z] = shape.block.map(|b| Some(b).filter(|b| *b > 0));
        found.new.tables_mut().kernels.push(Kernel {
            id,
            process,
            name: name.clone(),
            name_source: NameSource::EntryPoint,
            entry_point: Some(name),
            source: None,
            specialisation: None,
            local_x,
            local_y,
            local_z,
            full_name: None,
            source_file: None,
            source_file_hash: None,
            registers: shape.registers,
            local_bytes: None,
            static_shared_bytes: shape.static_shared_bytes.or(shape.shared_bytes),
            dynamic_shared_bytes: shape.dynamic_shared_bytes,
        });
    }
}

fn losses(found: &mut Collector, summary: &Summary) {
    found.finish_ranges();
    let ledger = &mut found.ledger;
    let values = LossKind::Other("values of counters".into());
    ledger.add(values, found.counters.lost, "they are not numbers");
    let events = || LossKind::Other("events".into());
    let reason = "they are not objects";
    ledger.add(events(), summary.odd, reason);
    let reason = "they are longer than 64 MiB";
    ledger.add(events(), summary.too_long, reason);
    if let Some(why) = &summary.cut {
        let files = LossKind::Other("rests of files".into());
        ledger.add(files, 1, why.clone());
    }
    let reason = "the profiler's log says that they were outside of what it was to record";
    let lost = found.metadata.out_of_range.unwrap_or(0);
    ledger.add(LossKind::CudaActivities, lost, reason);
}

/// Returns the notes of the trace about the file and about what limits its numbers.
fn notes(
    found: &Collector,
    assembly: &Assembly,
    summary: &Summary,
    file: &str,
    tool: &str,
    options: &Options,
) -> Vec<String> {
    let mut notes = vec![format!("Imported from {file}, which {tool} wrote.")];
    if let Some(why) = &summary.cut {
        notes.push(format!("{file} is not whole: {why}."));
    }
    if assembly.queues.queues.is_empty() {
        notes.push(
            "The file has no GPU work that gapscope knows: neither events of the category kernel, gpu_memcpy or gpu_memset, nor a process that is named like /device:GPU:0.".to_owned(),
        );
    }
    if found.python_functions > 0 {
        notes.push(
            "The profiler recorded Python's functions: the host's code took longer than it does without that, and so do gaps in which the GPU waits for it.".to_owned(),
        );
    }
    if let Some(host) = &found.metadata.host_name {
        notes.push(format!("Recorded on the machine {host}."));
    }
    notes.extend(options.notes.iter().cloned());
    notes
}

fn devices(found: &Collector, assembly: &Assembly) -> Vec<Device> {
    let api = api(found);
    let devices = assembly.queues.devices.iter().enumerate();
    devices
        .map(|(index, (process, number))| {
            let mut known = found.metadata.devices.iter();
            let own = known.find(|device| number.is_some() && device.id == *number);
            Device {
                id: DeviceId(index as u32 + 1),
                process: *process,
                api,
                name: own.map_or_else(
                    || match number {
                        Some(number) => format!("unknown GPU {number}"),
                        None => "unknown GPU".to_owned(),
                    },
                    |device| device.name.clone(),
                ),
                driver: found.metadata.driver.clone().unwrap_or_default(),
                uuid: String::new(),
                heaps: Vec::from_iter(own.and_then(|device| device.memory_bytes)),
                limits: own.map(|device| device.limits.clone()),
                lost: false,
                // The profiler converted the device's times to the host's clock and states no error bound.
                clock: Clock {
                    method: ClockMethod::Calibrated,
                    error_ns: None,
                    samples: 0,
                    drift_ppm: None,
                    nanoseconds_per_tick: 1.0,
                },
            }
        })
        .collect()
}

/// Returns the API of the devices from the names of functions and devices.
fn api(found: &Collector) -> Api {
    let is_amd = |name: &str| name.contains("AMD") || name.contains("Instinct");
    let hip = found.uses_hip || found.metadata.devices.iter().any(|d| is_amd(&d.name));
    if hip { Api::Hip } else { Api::Cuda }
}

fn queues(assembly: &Assembly) -> Vec<Queue> {
    let queues = assembly.queues.queues.iter().enumerate();
    queues
        .map(|(index, (device, stream))| Queue {
            id: QueueId(index as u32 + 1),
            device: *device,
            family: stream.context,
            index: stream.stream.unwrap_or(u32::MAX),
            capabilities: Vec::new(),
            timestamp_bits: 64,
            name: (stream.stream.is_none()).then(|| "unknown stream".to_owned()),
            kind: None,
            priority: None,
        })
        .collect()
}
