//! Builds the manifest of an imported CUDA or HIP profile from the profile's processes, devices and queues and from
//! the facts of its file.

use super::{DeviceFacts, Profile, Span};
use crate::Options;
use gapscope_trace::manifest::{
    Clock, ClockMethod, Device, FORMAT_VERSION, Host, Manifest, Process, Queue, Rank, SamplingMode,
    Thread,
};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// CUPTI's value for an unknown context or stream.
const UNKNOWN_NUMBER: u32 = u32::MAX;

/// Facts of a file about its recording as a whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// The tool that made the recording, with its version.
    pub tool: String,
    /// The command that was recorded.
    pub command: Vec<String>,
    /// The wall-clock time of the clock's zero, in nanoseconds since 1970.
    pub zero_unix_ns: Option<i64>,
    /// The machine that the program ran on.
    pub host: Host,
    /// Notes that every report shows.
    pub notes: Vec<String>,
    /// The rank within a distributed program; `None` if the file names no rank.
    pub rank: Option<Rank>,
}

impl Profile {
    pub(super) fn manifest(
        &self,
        about: About,
        options: &Options,
        extent: Option<Span>,
        threads: Vec<Thread>,
    ) -> Manifest {
        // The times at which the tool itself ran do not count, because files are cut and recorded in windows.
        let start_ns = extent.map_or(0, |extent| extent.start_ns);
        let end_ns = extent.map_or(0, |extent| extent.end_ns());
        let command = options.command.clone().unwrap_or(about.command);
        let mut notes = about.notes;
        notes.extend(options.notes.iter().cloned());
        Manifest {
            format_version: FORMAT_VERSION,
            stack_rate_hz: None,
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: true,
            command: command.clone(),
            exit: None,
            sampling_mode: SamplingMode::Dispatch,
            start_ns,
            end_ns,
            start_unix_ns: about
                .zero_unix_ns
                .and_then(|zero| zero.checked_add(start_ns))
                .filter(|ns| *ns > 0),
            host: about.host,
            processes: (self.processes.iter())
                .map(|(id, pid)| Process {
                    id,
                    pid: pid.unwrap_or(0),
                    parent_pid: None,
                    executable: match (self.process_names.get(&id), pid) {
                        (Some(name), _) => name.clone(),
                        (None, Some(_)) => String::new(),
                        (None, None) => "unknown process".to_owned(),
                    },
                    arguments: Vec::new(),
                    hook: about.tool.clone(),
                    start_ns,
                    end_ns: None,
                })
                .collect(),
            threads,
            devices: self.listed_devices(),
            queues: self.listed_queues(),
            rank: about.rank,
            ranks: Vec::new(),
            losses: self.ledger.losses(),
            notes,
            unmeasured: Vec::new(),
            altered: false,
        }
    }

    /// Returns the threads that made calls, with their names.
    pub(super) fn threads(&self) -> Vec<Thread> {
        let called: FxHashSet<_> = (self.recorded.calls.iter())
            .filter_map(|(process, call)| Some((*process, call.thread?)))
            .collect();
        let named = self.thread_names.keys().copied();
        let all: BTreeSet<_> = called.into_iter().chain(named).collect();
        all.into_iter()
            .map(|of| Thread {
                process: of.0,
                thread: of.1,
                name: self.thread_names.get(&of).cloned().unwrap_or_default(),
            })
            .collect()
    }

    fn listed_devices(&self) -> Vec<Device> {
        (self.devices.iter())
            .map(|(id, (process, number))| {
                let facts = self.device_facts.get(&id).cloned();
                let facts = facts.unwrap_or_else(|| DeviceFacts {
                    name: match number {
                        Some(_) => String::new(),
                        None => "unknown GPU".to_owned(),
                    },
                    ..DeviceFacts::default()
                });
                Device {
                    id,
                    process: *process,
                    api: self.api,
                    name: facts.name,
                    driver: self.driver.clone(),
                    uuid: facts.uuid,
                    heaps: facts.memory_bytes.into_iter().collect(),
                    limits: facts.limits,
                    lost: false,
                    // The profiler maps the times itself and states no error.
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

    fn listed_queues(&self) -> Vec<Queue> {
        (self.queues.iter())
            .map(|(id, (device, context, number))| {
                let facts = self.queue_facts.get(&id).cloned();
                let facts = facts.unwrap_or_else(|| Queue {
                    name: number.is_none().then(|| "unknown stream".to_owned()),
                    ..Queue::default()
                });
                Queue {
                    id,
                    device: *device,
                    family: context.unwrap_or(UNKNOWN_NUMBER),
                    index: number.unwrap_or(UNKNOWN_NUMBER),
                    timestamp_bits: 64,
                    ..facts
                }
            })
            .collect()
    }
}
