//! Which groups and tracks a trace has, and their names.

use super::places::{Places, ThreadOf};
use super::{Group, Track};
use crate::lanes::{self, Sharing};
use crate::slice::Slice;
use crate::texts::cut;
use gapscope_analysis::Timeline;
use gapscope_trace::Trace;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId, ThreadId};

/// For each queue of `places` its GPU: an index of [`Timeline::gpus`], or one past them for an unknown device.
pub(super) fn gpu_of_queues(timeline: &Timeline, places: &Places) -> Vec<usize> {
    let manifest = &timeline.trace.manifest;
    let unknown = timeline.gpus.iter().position(|gpu| gpu.devices.is_empty());
    let unknown = unknown.unwrap_or(timeline.gpus.len());
    let gpu = |id: QueueId| gpu_of_device(timeline, manifest.queue(id)?.device);
    let ids = places.queues.iter().map(|(id, _)| *id);
    ids.map(|id| gpu(id).unwrap_or(unknown)).collect()
}

/// The index of the GPU of a device.
pub(super) fn gpu_of_device(timeline: &Timeline, device: DeviceId) -> Option<usize> {
    let devices = &timeline.trace.manifest.devices;
    let row = devices.iter().position(|d| d.id == device)?;
    let mut gpus = timeline.gpus.iter();
    gpus.position(|gpu| gpu.devices.contains(&row))
}

/// A group for each GPU with its queues, which are taken out of `places`.
pub(super) fn gpus(timeline: &Timeline, places: &mut Places, pids: &mut Pids) -> Vec<Group> {
    let of_queues = gpu_of_queues(timeline, places);
    let named = of_queues.iter().map(|gpu| gpu + 1).max().unwrap_or(0);
    let mut groups: Vec<Group> = (0..named.max(timeline.gpus.len()))
        .map(|gpu| {
            let devices = timeline.gpus.get(gpu).map_or(&[][..], |gpu| &gpu.devices);
            let name = match devices.first() {
                Some(row) => timeline.trace.manifest.devices[*row].name.as_str(),
                None => "unknown device",
            };
            let uuid = devices.first();
            let uuid = uuid.map(|row| timeline.trace.manifest.devices[*row].uuid.clone());
            Group {
                uuid: uuid.unwrap_or_default(),
                ..group(
                    format!("GPU {}: {}", gpu + 1, cut(name)),
                    pids.next(),
                    false,
                )
            }
        })
        .collect();
    let queues = std::mem::take(&mut places.queues);
    for ((id, slices), gpu) in queues.into_iter().zip(of_queues) {
        let name = queue_name(timeline.trace, id);
        let group = &mut groups[gpu];
        let name_of = |what: &str| format!("{name} · {what}");
        let has_work = !slices.work.is_empty();
        group.add(name.clone(), None, slices.work, Sharing::Apart);
        if let Some(track) = group.tracks.last_mut().filter(|_| has_work) {
            track.queue = Some(id);
        }
        let rest = [
            ("command buffers", slices.command_buffers, Sharing::Apart),
            ("labels", slices.labels, Sharing::Nested),
            (
                "labels set by the host",
                slices.host_labels,
                Sharing::Nested,
            ),
        ];
        for (what, slices, sharing) in rest {
            group.add(name_of(what), None, slices, sharing);
        }
    }
    groups
}

/// A group for each recorded process with its threads, which are taken out of `places`.
pub(super) fn processes(trace: &Trace, places: &mut Places, pids: &mut Pids) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut ids: Vec<ProcessId> = Vec::new();
    for process in &trace.manifest.processes {
        let program = process.executable.rsplit('/').next().unwrap_or_default();
        let name = format!("{} (pid {})", cut(program), process.pid);
        // A pid may come again in a long recording, and tools take equal pids for one process.
        let again = groups.iter().any(|before| before.pid == process.pid);
        let pid = if again { pids.next() } else { process.pid };
        groups.push(group(name, pid, true));
        ids.push(process.id);
    }
    for (of, slices) in std::mem::take(&mut places.threads) {
        let process = of.process;
        let place = ids.iter().position(|id| *id == process);
        let place = place.unwrap_or_else(|| {
            ids.push(process);
            let name = format!("process {process} (unknown)");
            groups.push(group(name, pids.next(), true));
            groups.len() - 1
        });
        let name = thread_name(trace, of);
        let labels = format!("{name} · labels");
        groups[place].add(name, of.thread, slices.calls, Sharing::Nested);
        groups[place].add(labels, None, slices.labels, Sharing::Nested);
    }
    groups
}

impl Group {
    /// Adds a track if there is something on it.
    pub(super) fn add(
        &mut self,
        name: String,
        thread: Option<ThreadId>,
        slices: Vec<Slice>,
        sharing: Sharing,
    ) {
        if !slices.is_empty() {
            self.tracks.push(Track {
                name,
                thread,
                queue: None,
                lanes: lanes::split(slices, sharing),
            });
        }
    }
}

fn group(name: String, pid: u32, process: bool) -> Group {
    Group {
        name,
        pid,
        process,
        uuid: String::new(),
        tracks: Vec::new(),
        counters: Vec::new(),
    }
}

/// The name of a queue.
pub(super) fn queue_name(trace: &Trace, id: QueueId) -> String {
    let Some(queue) = trace.manifest.queue(id) else {
        return format!("queue {id} (unknown)");
    };
    let mut name = match &queue.name {
        Some(name) => format!("queue {}", cut(name)),
        None => format!("queue {}.{}", queue.family, queue.index),
    };
    let device = trace.manifest.device(queue.device);
    if trace.manifest.processes.len() > 1
        && let Some(process) = device.and_then(|device| trace.manifest.process(device.process))
    {
        name.push_str(&format!(" of pid {}", process.pid));
    }
    name
}

fn thread_name(trace: &Trace, of: ThreadOf) -> String {
    let Some(thread) = of.thread else {
        return "unknown thread".to_owned();
    };
    let mut threads = trace.manifest.threads.iter();
    let found = threads.find(|t| t.process == of.process && t.thread == thread);
    match found.map(|found| found.name.as_str()) {
        None | Some("") => format!("thread {thread}"),
        Some(name) => format!("{} ({thread})", cut(name)),
    }
}

/// Numbers that no process of the trace has, for what is shown like a process.
pub(super) struct Pids(u32);

impl Pids {
    pub fn of(trace: &Trace) -> Pids {
        let pids = trace.manifest.processes.iter().map(|process| process.pid);
        // Above what systems give, so that nobody takes them for real.
        Pids(pids.max().unwrap_or(0).clamp(1_000_000_000, 2_000_000_000))
    }

    fn next(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}
