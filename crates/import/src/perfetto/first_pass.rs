//! Collects clocks, tracks, processes, GPUs, and the calls that submitted work, from all packets before the events
//! are read.
//!
//! The packets of several sequences (writers) are not in a common order in a file, so that this first pass over the
//! file collects everything that other packets refer to: [`FirstPass::add`] for each packet, then
//! [`FirstPass::complete`].

use super::clocks::{ClockId, Clocks, Reading};
use super::sequence::{CLOCK_SNAPSHOT, Header, Sequences};
use super::track_event::{self, gpu_category};
use crate::doubtful_times::Starts;
use crate::inventory::Inventory;
use crate::protobuf::{Message, Packed, Value};
use crate::since_1970::Times;
use gapscope_trace::LossKind;
use gapscope_trace::ids::SubmissionId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

// Fields of TracePacket.
const PROCESS_TREE: u32 = 2;
const TRACK_EVENT: u32 = 11;
const INTERNED_DATA: u32 = 12;
const TRACE_STATS: u32 = 35;
const PROCESS: u32 = 43;
const THREAD: u32 = 44;
const TRACK: u32 = 60;
const VULKAN: u32 = 65;
const GPU_INFO: u32 = 128;
/// Packets of which the time is that of an event: track events, render stages, calls of Vulkan.
const WITH_TIMES: [u32; 3] = [TRACK_EVENT, 53, VULKAN];

/// The maximum length of a chain of parent tracks. A longer chain is taken for a cycle.
const MAX_PARENTS: usize = 64;

/// The counter whose values a track has.
#[derive(Debug, Clone, Default)]
pub(super) struct CounterTrack {
    pub unit_name: Option<Arc<str>>,
    /// The unit: 1 is nanoseconds, 2 is a count, 3 is bytes.
    pub unit: u64,
    /// The factor of the values; absent for 1.
    pub multiplier: Option<i64>,
    /// Whether values are differences from the value before.
    pub incremental: bool,
}

/// A track with the facts of its descriptors.
#[derive(Debug, Clone, Default)]
struct Track {
    parent: Option<u64>,
    name: Arc<str>,
    pid: Option<u32>,
    /// The pid and the thread id.
    thread: Option<(u32, u32)>,
    counter: Option<CounterTrack>,
}

/// The process, thread and names that the events of a track belong to.
#[derive(Debug, Clone, Default)]
pub(super) struct TrackPlace {
    /// The pid of the process; 0 if none is named.
    pub pid: u32,
    pub tid: Option<u32>,
    pub name: Arc<str>,
    /// The name of the parent track.
    pub around: Arc<str>,
    /// True if the name of the track says that its slices are GPU work.
    pub is_gpu: bool,
    pub counter: Option<CounterTrack>,
}

/// The description of a GPU.
#[derive(Debug, Clone, Default)]
pub(super) struct Gpu {
    pub name: String,
    /// The UUID as hexadecimal; empty if it is not known.
    pub uuid: String,
}

/// The objects that the first pass has collected.
#[derive(Default)]
pub(super) struct FirstPass {
    pub clocks: Clocks,
    /// The times of events, by the system's clock that they are on.
    starts: FxHashMap<u64, (Starts, Times)>,
    /// The GPUs by their number.
    pub gpus: Vec<Gpu>,
    /// The names and arguments of processes by pid.
    pub processes: FxHashMap<u32, (String, Vec<String>)>,
    /// The names of threads by pid and thread id.
    pub thread_names: FxHashMap<(u32, u32), String>,
    /// The tracks by id, and in `places` what they and their parents say together.
    tracks: FxHashMap<u64, Track>,
    places: FxHashMap<u64, TrackPlace>,
    /// The number of the only sequence that writes a track; `None` if several sequences do.
    writers: FxHashMap<u64, Option<u32>>,
    /// The submissions of calls that launched render stages, by the stage's id.
    pub launched: FxHashMap<u64, SubmissionId>,
    /// The submissions of calls from which a flow (an arrow between slices) leads to GPU work, by the flow's id.
    pub flows: FxHashMap<u64, SubmissionId>,
    /// The submissions whose calls are in the file, by process and by the driver's number.
    pub submits: FxHashSet<(u32, u32)>,
    /// The slices with flows, until the end.
    ends_of_flows: Vec<FlowEnd>,
    /// The last submission id that was given.
    next_submission: u64,
    /// The states of sequences in this pass.
    sequences: Sequences,
    /// The pids of all tracks and of all GPU work.
    pids: FxHashSet<u32>,
    /// The numbers of the file's last statistics.
    lost_chunks: u64,
    lost_packets: u64,
    invalid_packets: u64,
}

/// A slice at which a flow starts or ends.
struct FlowEnd {
    flow: u64,
    track: u64,
    /// Whether the slice's category says that it is GPU work.
    by_category: bool,
}

impl FirstPass {
    /// Collects the facts of a packet.
    pub fn add(&mut self, packet: Message) {
        let header = self.sequences.advance(packet);
        if let Some((clock, start_ns)) = header.on_builtin_clock()
            && packet
                .fields()
                .any(|(number, _)| WITH_TIMES.contains(&number))
        {
            let (starts, times) = self.starts.entry(clock).or_default();
            starts.add(start_ns);
            times.add(start_ns, start_ns);
        }
        for (number, value) in packet.fields() {
            let Some(message) = value.message() else {
                continue;
            };
            match number {
                INTERNED_DATA => {
                    let contexts = message.fields().filter(|(number, _)| *number == 23);
                    let contexts = contexts.filter_map(|(_, value)| value.message()?.field(2));
                    self.pids.extend(contexts.map(|pid| pid.number() as u32));
                }
                CLOCK_SNAPSHOT => {
                    let (readings, primary) = snapshot(message, header.sequence);
                    self.clocks.add(&readings, primary);
                }
                PROCESS_TREE => self.add_processes(message),
                TRACK_EVENT if !header.undecodable => self.add_event(message, header),
                TRACE_STATS => self.add_statistics(message),
                PROCESS => {
                    let (pid, name, arguments) = process(message);
                    self.name_process(pid, name, arguments);
                }
                THREAD => self.add_thread(message, header.sequence),
                TRACK => self.add_track(message),
                VULKAN => {
                    if let Some(submit) = message.field(2).and_then(Value::message) {
                        let [pid, number] = submit.last([2, 6]);
                        let submit = (pid.number() as u32, number.number() as u32);
                        self.submits.insert(submit);
                    }
                }
                GPU_INFO => self.add_gpus(message),
                _ => {}
            }
        }
    }

    /// Returns whether the time of a packet is a 0 that stands for an unknown time.
    pub fn is_unknown_time(&self, header: Header) -> bool {
        let place = header.on_builtin_clock();
        place.is_some_and(|(clock, start_ns)| {
            let starts = self.starts.get(&clock);
            start_ns == 0 && starts.is_some_and(|(starts, _)| starts.zero_is_unknown())
        })
    }

    /// Completes the facts after the last packet: resolves tracks, gives a submission to each flow that leads from a
    /// slice of the host to GPU work, and counts losses.
    pub fn complete(&mut self, inventory: &mut Inventory) {
        let times = self.starts.iter();
        let times = times.map(|(clock, (_, times))| (ClockId::new(*clock, 0), times));
        self.clocks.complete(times);
        let mut circles = 0;
        let of_tracks = self.tracks.values();
        let of_tracks = of_tracks.filter_map(|t| t.pid.or(t.thread.map(|(pid, _)| pid)));
        let of_submits = self.submits.iter().map(|(pid, _)| *pid);
        self.pids.extend(of_tracks.chain(of_submits));
        self.pids.remove(&0);
        let ids: Vec<u64> = self.tracks.keys().copied().collect();
        for id in ids {
            let (place, circular) = self.resolve(id);
            circles += u64::from(circular);
            self.places.insert(id, place);
        }
        inventory.lose("tracks", circles, "they are inside of themselves");
        let ends = std::mem::take(&mut self.ends_of_flows);
        let is_gpu = |end: &FlowEnd| end.by_category || self.place(end.track).is_gpu;
        let to_gpu: FxHashSet<u64> = ends
            .iter()
            .filter(|end| is_gpu(end))
            .map(|end| end.flow)
            .collect();
        let mut next = self.next_submission;
        let mut flows = FxHashMap::default();
        for end in ends
            .iter()
            .filter(|end| to_gpu.contains(&end.flow) && !is_gpu(end))
        {
            flows.entry(end.flow).or_insert_with(|| {
                next += 1;
                SubmissionId(next)
            });
        }
        (self.flows, self.next_submission) = (flows, next);
        self.sequences = Sequences::default();
        inventory.lose(
            "packets",
            self.lost_packets,
            "the tools that wrote the trace had no room for them",
        );
        inventory.lose(
            "chunks of packets",
            self.lost_chunks,
            "Perfetto's buffers were full, so that they were overwritten or discarded",
        );
        inventory.lose(
            LossKind::Records,
            self.invalid_packets,
            "Perfetto found packets invalid",
        );
    }

    /// Returns a new submission id.
    pub fn new_submission(&mut self) -> SubmissionId {
        self.next_submission += 1;
        SubmissionId(self.next_submission)
    }

    /// Returns the place of a track.
    pub fn place(&self, track: u64) -> TrackPlace {
        self.places.get(&track).cloned().unwrap_or_default()
    }

    /// Returns the pid of events that name none: the pid of the only process, or else 0.
    pub fn unnamed_pid(&self) -> u32 {
        let mut pids = self.pids.iter();
        match (pids.next(), pids.next()) {
            (Some(pid), None) => *pid,
            _ => 0,
        }
    }

    /// Returns true if several sequences write a track, so that its events are unordered in the file.
    pub fn has_many_writers(&self, track: u64) -> bool {
        self.writers.get(&track).is_some_and(Option::is_none)
    }

    /// Returns the place of a track from its chain of parents, and whether the chain is a cycle.
    fn resolve(&self, id: u64) -> (TrackPlace, bool) {
        let mut place = TrackPlace::default();
        let (mut next, mut pid, mut depth) = (Some(id), None, 0);
        while let Some(track) = next.and_then(|id| self.tracks.get(&id)) {
            if depth == 0 {
                place.name = track.name.clone();
                place.counter = track.counter.clone();
            } else if place.around.is_empty() {
                place.around = track.name.clone();
            }
            if place.tid.is_none()
                && let Some((_, tid)) = track.thread
            {
                place.tid = Some(tid);
            }
            pid = pid.or(track.thread.map(|(pid, _)| pid)).or(track.pid);
            place.is_gpu |= is_gpu_name(&track.name);
            depth += 1;
            if depth > MAX_PARENTS {
                return (place, true);
            }
            next = track.parent;
        }
        place.pid = pid.unwrap_or(0);
        (place, false)
    }

    /// Notes which sequence writes the event's track, and the stages and flows that it links to.
    fn add_event(&mut self, event: Message, header: Header) {
        let sequence = self.sequences.entry(header.sequence);
        let links = track_event::links(event, sequence);
        let track = links.track;
        if let Some((pid, tid)) = links.thread {
            self.pids.insert(pid);
            self.tracks.entry(track).or_default().thread = Some((pid, tid));
        }
        let writer = self.writers.entry(track).or_insert(Some(header.sequence));
        if writer.is_some_and(|writer| writer != header.sequence) {
            *writer = None;
        }
        if !links.submitted.is_empty() {
            self.next_submission += 1;
            for stage in links.submitted {
                let submission = SubmissionId(self.next_submission);
                self.launched.entry(stage).or_insert(submission);
            }
        }
        let by_category = !links.flows.is_empty() && gpu_category(&links.category).is_some();
        for flow in links.flows {
            self.ends_of_flows.push(FlowEnd {
                flow,
                track,
                by_category,
            });
        }
    }

    /// Reads a description of a track, and what it says of a process or thread.
    fn add_track(&mut self, descriptor: Message) {
        let mut id = 0;
        let mut track = Track::default();
        for (number, value) in descriptor.fields() {
            match (number, value.message()) {
                (1, _) => id = value.number(),
                (5, _) => track.parent = Some(value.number()).filter(|parent| *parent != 0),
                (2 | 10 | 13, _) => track.name = value.text().into(),
                (3, Some(message)) => {
                    let (pid, name, arguments) = process(message);
                    track.pid = Some(pid);
                    if track.name.is_empty() {
                        track.name = name.as_str().into();
                    }
                    self.name_process(pid, name, arguments);
                }
                (4, Some(message)) => {
                    let (pid, tid, name) = thread(message);
                    track.thread = Some((pid, tid));
                    if track.name.is_empty() {
                        track.name = name.as_str().into();
                    }
                    self.name_thread(pid, tid, name);
                }
                (8, Some(message)) => track.counter = Some(counter(message)),
                _ => {}
            }
        }
        // A later descriptor adds to an earlier one.
        let known = self.tracks.entry(id).or_default();
        known.parent = track.parent.or(known.parent);
        known.pid = track.pid.or(known.pid);
        known.thread = track.thread.or(known.thread);
        known.counter = track.counter.or(known.counter.take());
        if !track.name.is_empty() {
            known.name = track.name;
        }
    }

    /// Reads the thread of a sequence, as old traces describe it.
    fn add_thread(&mut self, descriptor: Message, sequence: u32) {
        let (pid, tid, name) = thread(descriptor);
        self.name_thread(pid, tid, name);
        let id = track_event::thread_track(pid, tid);
        let known = self.tracks.entry(id).or_default();
        known.thread = Some((pid, tid));
        self.sequences.entry(sequence).thread = Some((pid, tid));
    }

    /// Sets the name and arguments of a process, unless the name is empty.
    fn name_process(&mut self, pid: u32, name: String, arguments: Vec<String>) {
        let known = self.processes.entry(pid).or_default();
        if !name.is_empty() {
            *known = (name, arguments);
        }
    }

    /// Sets the name of a thread, unless the name is empty.
    fn name_thread(&mut self, pid: u32, tid: u32, name: String) {
        let known = self.thread_names.entry((pid, tid)).or_default();
        if !name.is_empty() {
            *known = name;
        }
    }

    /// Reads the names of processes and threads from a process tree.
    fn add_processes(&mut self, tree: Message) {
        for (number, value) in tree.fields() {
            let Some(entry) = value.message() else {
                continue;
            };
            match number {
                1 => {
                    let (mut pid, mut words) = (0, Vec::new());
                    for (number, value) in entry.fields() {
                        match number {
                            1 => pid = value.number() as u32,
                            3 => words.push(value.text().into_owned()),
                            _ => {}
                        }
                    }
                    if !words.is_empty() {
                        let name = words.remove(0);
                        self.name_process(pid, name, words);
                    }
                }
                2 => {
                    let [tid, name, pid] = entry.last([1, 2, 3]);
                    let (pid, tid) = (pid.number() as u32, tid.number() as u32);
                    self.name_thread(pid, tid, name.text().into_owned());
                }
                _ => {}
            }
        }
    }

    /// Reads the names and UUIDs of GPUs, which are numbered in this order.
    fn add_gpus(&mut self, info: Message) {
        for (number, value) in info.fields() {
            let (1, Some(message)) = (number, value.message()) else {
                continue;
            };
            let [name, uuid] = message.last([1, 5]);
            let uuid = uuid.message().map_or(&[][..], Message::bytes);
            self.gpus.push(Gpu {
                name: name.text().into_owned(),
                uuid: uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
            });
        }
    }

    /// Reads how much Perfetto lost.
    fn add_statistics(&mut self, statistics: Message) {
        // The numbers are cumulative, so that the numbers in the last packet count.
        let (mut chunks, mut packets, mut invalid) = (0u64, 0u64, 0u64);
        for (number, value) in statistics.fields() {
            match (number, value.message()) {
                (1, Some(buffer)) => {
                    for (number, value) in buffer.fields() {
                        match number {
                            3 | 18 => chunks = chunks.saturating_add(value.number()),
                            19 | 22 => packets = packets.saturating_add(value.number()),
                            _ => {}
                        }
                    }
                }
                (8, _) => chunks = chunks.saturating_add(value.number()),
                (10, _) => invalid = value.number(),
                _ => {}
            }
        }
        self.lost_chunks = chunks;
        self.lost_packets = packets;
        self.invalid_packets = invalid;
    }
}

/// Returns true if profilers give this name to tracks with GPU work.
fn is_gpu_name(name: &str) -> bool {
    let starts = [
        "/device:GPU:",
        "GPU stream",
        // rocprof-sys.
        "GPU Kernel Dispatch [",
        "GPU Memory Copy to Agent [",
    ];
    starts.iter().any(|start| name.starts_with(start)) || name.ends_with("(GPU)")
}

/// Returns the readings of a snapshot, and the clock of the trace if the snapshot names it.
pub(super) fn snapshot(snapshot: Message, sequence: u32) -> (Vec<Reading>, Option<ClockId>) {
    let (mut readings, mut primary) = (Vec::new(), None);
    for (number, value) in snapshot.fields() {
        match (number, value.message()) {
            (1, Some(clock)) => {
                let [id, time, incremental, unit_ns] = clock.last([1, 2, 3, 4]);
                readings.push(Reading {
                    clock: ClockId::new(id.number(), sequence),
                    time: time.number(),
                    incremental: incremental.number() != 0,
                    unit_ns: unit_ns.number().max(1),
                });
            }
            (2, None) => primary = Some(ClockId::new(value.number(), 0)),
            _ => {}
        }
    }
    (readings, primary)
}

/// Returns the pid, name and arguments of a process. The first word of its command line is the name where it has
/// none.
fn process(descriptor: Message) -> (u32, String, Vec<String>) {
    let (mut pid, mut name, mut words) = (0, String::new(), Vec::new());
    for (number, value) in descriptor.fields() {
        match number {
            1 => pid = value.number() as u32,
            2 => words.push(value.text().into_owned()),
            6 => name = value.text().into_owned(),
            _ => {}
        }
    }
    if !words.is_empty() {
        let first = words.remove(0);
        if name.is_empty() {
            name = first;
        }
    }
    (pid, name, words)
}

/// Returns the pid, the thread id and the name of a thread.
pub(super) fn thread(descriptor: Message) -> (u32, u32, String) {
    let [pid, tid, name] = descriptor.last([1, 2, 5]);
    let (pid, tid) = (pid.number() as u32, tid.number() as u32);
    (pid, tid, name.text().into_owned())
}

/// Reads the counter of a track's description.
fn counter(descriptor: Message) -> CounterTrack {
    let mut counter = CounterTrack::default();
    for (number, value) in descriptor.fields() {
        match number {
            3 => counter.unit = value.numbers(Packed::Varint).next().unwrap_or(0),
            4 => counter.multiplier = Some(value.signed()),
            5 => counter.incremental = value.number() != 0,
            6 => counter.unit_name = Some(value.text().into()),
            _ => {}
        }
    }
    counter
}
