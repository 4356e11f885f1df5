//! Makes the groups (of a process, a GPU or the machine) and their tracks from the slices (drawn rows of tables) that
//! `builder` collected, with their names. A track is a part of a group, such as the work of one queue; its slices are
//! split into lanes, in which they follow or contain each other.

use super::slices_by_owner::{QueueSlices, SlicesByOwner};
use super::{Group, GroupKind, ThreadSamples, Track, samples};
use crate::lanes::{self, Sharing};
use crate::packed::Lane;
use crate::slice::Slice;
use crate::texts::cut;
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::Trace;
use gapscope_trace::ids::{ProcessId, ThreadId};

/// Returns the GPU of each queue in `by_owner`: its index in the timeline, or the one behind the last for an unknown
/// device.
pub(super) fn gpu_of_queues(names: &Vocabulary, by_owner: &SlicesByOwner) -> Vec<usize> {
    let gpus = names.gpus();
    let gpu = |queue: &QueueSlices| gpus.of_queue(queue.id).unwrap_or(gpus.count());
    by_owner.queues.iter().map(gpu).collect()
}

/// Makes a group for each of the timeline's `count` GPUs, and for an unknown device that has queues, with its queues,
/// which are taken out of `by_owner`. A queue has up to four tracks: work, command buffers, labels, and labels that
/// the host set.
pub(super) fn gpus(
    trace: &Trace,
    count: usize,
    names: &Vocabulary,
    by_owner: &mut SlicesByOwner,
    pids: &mut PidAllocator,
) -> Vec<Group> {
    let of_queues = gpu_of_queues(names, by_owner);
    let named = of_queues.iter().map(|gpu| gpu + 1).max().unwrap_or(0);
    let devices = &trace.manifest.devices;
    let mut groups: Vec<Group> = (0..named.max(count))
        .map(|gpu| {
            let first = names.gpus().rows(gpu).first();
            Group {
                uuid: first.map_or_else(String::new, |row| devices[*row].uuid.clone()),
                ..group(cut(&names.gpus().title(gpu)), pids.next(), GroupKind::Gpu)
            }
        })
        .collect();
    let queues = std::mem::take(&mut by_owner.queues);
    for (slices, gpu) in queues.into_iter().zip(of_queues) {
        let name = cut(&names.queue(slices.id));
        let group = &mut groups[gpu];
        let name_of = |what: &str| format!("{name} · {what}");
        if !slices.work.is_empty() {
            group.tracks.push(Track {
                name: name.clone(),
                thread: None,
                queue: Some(slices.id),
                lanes: slices.work,
            });
        }
        let what = names.words().command_buffer.many;
        group.add(name_of(what), None, slices.command_buffers, Sharing::Apart);
        group.add_lanes(name_of("labels"), None, slices.labels);
        group.add_lanes(name_of("labels set by the host"), None, slices.host_labels);
    }
    groups
}

/// Makes a group for each process, those of the manifest first, with its threads, which are taken out of `by_owner`,
/// and their samples.
pub(super) fn processes(
    trace: &Trace,
    names: &Vocabulary,
    by_owner: &mut SlicesByOwner,
    pids: &mut PidAllocator,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut ids: Vec<ProcessId> = Vec::new();
    for process in &trace.manifest.processes {
        let name = cut(&names.process(process.id));
        // A pid may come again in a long recording, and tools take equal pids for one process.
        let again = groups.iter().any(|before| before.pid == process.pid);
        let pid = if again { pids.next() } else { process.pid };
        groups.push(group(name, pid, GroupKind::Process));
        ids.push(process.id);
    }
    let mut place_of = |process: ProcessId, groups: &mut Vec<Group>| {
        let place = ids.iter().position(|id| *id == process);
        place.unwrap_or_else(|| {
            ids.push(process);
            let name = cut(&names.process(process));
            groups.push(group(name, pids.next(), GroupKind::Process));
            groups.len() - 1
        })
    };
    for (of, slices) in std::mem::take(&mut by_owner.threads) {
        let process = of.process;
        let place = place_of(process, &mut groups);
        let name = cut(&names.thread(process, of.thread));
        let labels = format!("{name} · labels");
        groups[place].add(name, of.thread, slices.calls, Sharing::Nested);
        groups[place].add_lanes(labels, None, slices.labels);
    }
    for ((process, thread), rows) in samples::by_thread(trace) {
        let place = place_of(process, &mut groups);
        groups[place].samples.push(ThreadSamples {
            name: cut(&names.thread(process, Some(thread))),
            thread,
            rows,
        });
    }
    groups
}

impl Group {
    /// Splits slices into lanes and adds them as a track, unless there are none.
    pub(super) fn add(
        &mut self,
        name: String,
        thread: Option<ThreadId>,
        slices: Vec<Slice>,
        sharing: Sharing,
    ) {
        let lanes = lanes::split(slices, sharing).into_iter();
        self.add_lanes(name, thread, lanes.map(Lane::from_slices).collect());
    }

    /// Adds lanes as a track, unless there are none.
    fn add_lanes(&mut self, name: String, thread: Option<ThreadId>, lanes: Vec<Lane>) {
        if !lanes.is_empty() {
            self.tracks.push(Track {
                name,
                thread,
                queue: None,
                lanes,
            });
        }
    }
}

/// Makes the group of the machine as a whole.
pub(super) fn machine(pids: &mut PidAllocator) -> Group {
    group("host".to_owned(), pids.next(), GroupKind::Machine)
}

fn group(name: String, pid: u32, kind: GroupKind) -> Group {
    Group {
        name,
        pid,
        kind,
        uuid: String::new(),
        tracks: Vec::new(),
        counters: Vec::new(),
        samples: Vec::new(),
    }
}

/// Allocates pids that no process of the trace has, for groups that are shown like a process. The value is the last
/// one that was allocated.
pub(super) struct PidAllocator(u32);

impl PidAllocator {
    pub fn new(trace: &Trace) -> PidAllocator {
        let pids = trace.manifest.processes.iter().map(|process| process.pid);
        // No system has such pids, so nobody takes them for real.
        PidAllocator(pids.max().unwrap_or(0).clamp(1_000_000_000, 2_000_000_000))
    }

    fn next(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}
