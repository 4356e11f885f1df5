//! Measures busy time: the time in which a GPU ran something.
//!
//! Busy time is the length of the union of work ([`crate::timeline`] says what work is): what runs at the same time
//! counts once. Two windows are reported: the whole recording, and the analysed window, which begins with the GPU's
//! first work (or after warm-up) and ends with its last. The verdict judges all GPUs over one window, the hull of these.
//!
//! Each moment of busy time counts as what ran in it: as computing where anything computed; else as communication where
//! kernels ran that communicate ([`Content`]); else as transfers; else as counted whole, where only command buffers or
//! graphs ran that are timed as a whole. The device may have idled inside of these: with that time busy time is an upper
//! bound, and without it a lower one. Where work without known times may have run beside communication or transfers, nobody
//! knows whether anything computed: that time counts as neither, and is told apart.
//!
//! What this cannot know: whether a running device is used well (one small dispatch makes it as busy as a large one),
//! and work of programs that are not recorded.

use crate::intervals::{Busy, Interval, union};
use crate::quantity::ratio;
use crate::thresholds::MISSING_WORK_SHARE;
use crate::timeline::{Content, Gpu, Timeline, WorkKind};
use crate::vocabulary::{Gpus, UNKNOWN_DEVICE, Vocabulary, device_name};
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId};
use gapscope_trace::manifest::{Api, ClockMethod};
use schemars::JsonSchema;
use serde::Serialize;

/// A physical GPU: all devices of the trace, of whatever process, with one uuid.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct DeviceBusy {
    /// Index of the GPU in the findings.
    pub index: u32,
    /// Name.
    pub name: String,
    /// The number by which the file of another tool calls it, as in `GPU 3`. Absent where its number is the index.
    pub label: Option<String>,
    /// `vulkan`, `cuda`, `metal`.
    #[schemars(with = "String")]
    pub api: Api,
    /// Driver and version.
    pub driver: String,
    /// The uuid as hexadecimal; empty when it is not known.
    pub uuid: String,
    /// Ids of its devices in the trace.
    pub device_ids: Vec<DeviceId>,
    /// Ids of the processes that used it.
    pub process_ids: Vec<ProcessId>,
    /// True when the driver said that the device was lost.
    pub lost: bool,
    /// How device times were mapped to host times.
    #[schemars(with = "String")]
    pub clock_method: ClockMethod,
    /// The tool that mapped them, where it was not gapscope, as of an import.
    pub clock_tool: Option<String>,
    /// The greatest error of a mapped time; absent when it is not known.
    pub clock_error_ns: Option<i64>,
    /// From the start of its first work to the end of its last. Absent when nothing on it was timed.
    pub work_window: Option<Interval>,
    /// Time in which it ran something, over the whole recording: the union of its work. It is an upper bound where
    /// `counted_whole_ns` is above 0.
    pub busy_ns: Option<i64>,
    /// Part of `busy_ns` in which only command buffers or graphs ran that are timed as a whole: the trace does not
    /// say whether the device worked or idled inside of them.
    pub counted_whole_ns: Option<i64>,
    /// Part of `busy_ns` in which it ran transfers and nothing else. Absent where sampling cannot tell, or where work without
    /// known times may have run beside.
    pub transfer_only_ns: Option<i64>,
    /// From the start of the recording to its first work.
    pub before_first_ns: Option<i64>,
    /// From the end of its last work to the end of the recording.
    pub after_last_ns: Option<i64>,
    /// The same over the analysed window (without warm-up): `busy_ns + idle_ns == window_ns`.
    pub analysed: Option<BusyShare>,
    /// Command buffers and graphs that count as busy from start to end, because not all that is inside has times: their
    /// inner gaps are not seen, so `busy_ns` is an upper bound by those.
    pub command_buffers_counted_whole: u64,
    /// Command buffers without any known time: not in `busy_ns`.
    pub command_buffers_untimed: u64,
    /// Its queues.
    pub queues: Vec<QueueBusy>,
}

/// A queue's part of its GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueBusy {
    /// Id of the queue in the trace.
    pub queue_id: QueueId,
    /// Its name, as of [`Vocabulary::queue`].
    pub name: String,
    /// Its capabilities.
    pub capabilities: Vec<String>,
    /// From the start of its first work to the end of its last.
    pub work_window: Option<Interval>,
    /// Time in which it ran something, over the whole recording.
    pub busy_ns: Option<i64>,
    /// The same over the part of the analysed window between its own first and last work.
    pub analysed: Option<BusyShare>,
}

/// Busy and idle time in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct BusyShare {
    /// The window.
    pub window: Interval,
    /// Its length.
    pub window_ns: i64,
    /// The part in which something ran.
    pub busy_ns: i64,
    /// The rest.
    pub idle_ns: i64,
    /// `busy_ns / window_ns`.
    pub busy_share: f64,
    /// Part of `busy_ns` in which only command buffers or graphs ran that are timed as a whole: the device may have
    /// idled inside of them. Absent for queues.
    pub counted_whole_ns: Option<i64>,
    /// Part of `busy_ns` in which only transfers ran. Absent where sampling cannot tell, where work without known times may have
    /// run beside, and for queues.
    pub transfer_only_ns: Option<i64>,
    /// Part of `busy_ns` in which kernels communicated and none computed: exposed communication. Absent as above.
    pub communication_only_ns: Option<i64>,
    /// Communication while other kernels computed. Absent as above.
    pub communication_overlapped_ns: Option<i64>,
    /// The parts of `busy_ns`, as far as they are certain.
    #[serde(skip)]
    pub parts: BusyParts,
}

/// Busy time split by the kind of work that ran. `compute_ns`, `communication_ns`, `transfer_ns`, `whole_ns` and
/// `doubtful_ns` sum to all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BusyParts {
    /// The time in which something computed.
    pub compute_ns: i64,
    /// The time in which kernels communicated and nothing computed.
    pub communication_ns: i64,
    /// The time in which only transfers ran.
    pub transfer_ns: i64,
    /// The time in which only work ran that is timed as a whole and inside of which the device may have idled.
    pub whole_ns: i64,
    /// The time in which kernels communicated or transfers ran, and work without known times may have run beside.
    pub doubtful_ns: i64,
    /// The part of `compute_ns` in which work without known times may have run beside.
    pub beside_compute_ns: i64,
    /// The part of `compute_ns` in which kernels communicated as well.
    pub overlapped_ns: i64,
    /// The part of `compute_ns` in which it is not certain that anything computed: all work that ran is timed as a
    /// whole.
    pub unsure_ns: i64,
    /// True where work that is timed as a whole may communicate and do nothing else, or where much of `doubtful_ns` is
    /// communication.
    pub unsure_communication: bool,
    /// True where work that is timed as a whole may move data and do nothing else, or where much of `doubtful_ns` is transfers.
    pub unsure_transfer: bool,
}

impl BusyParts {
    /// Returns the sums of this device's parts and those of another device.
    pub fn plus(self, other: BusyParts) -> BusyParts {
        BusyParts {
            compute_ns: self.compute_ns.saturating_add(other.compute_ns),
            communication_ns: self.communication_ns.saturating_add(other.communication_ns),
            transfer_ns: self.transfer_ns.saturating_add(other.transfer_ns),
            whole_ns: self.whole_ns.saturating_add(other.whole_ns),
            doubtful_ns: self.doubtful_ns.saturating_add(other.doubtful_ns),
            beside_compute_ns: (self.beside_compute_ns).saturating_add(other.beside_compute_ns),
            overlapped_ns: self.overlapped_ns.saturating_add(other.overlapped_ns),
            unsure_ns: self.unsure_ns.saturating_add(other.unsure_ns),
            unsure_communication: self.unsure_communication || other.unsure_communication,
            unsure_transfer: self.unsure_transfer || other.unsure_transfer,
        }
    }
}

impl BusyParts {
    /// Returns all of the busy time.
    pub fn busy_ns(&self) -> i64 {
        let parts = [
            self.compute_ns,
            self.communication_ns,
            self.transfer_ns,
            self.whole_ns,
            self.doubtful_ns,
        ];
        parts.into_iter().fold(0, i64::saturating_add)
    }

    /// Returns the parts where of communication and transfers only so much is certain.
    pub fn with_certain(self, communication_ns: i64, transfer_ns: i64) -> BusyParts {
        let communicated_ns = self.communication_ns.saturating_sub(communication_ns);
        let moved_ns = self.transfer_ns.saturating_sub(transfer_ns);
        let counts = |ns: i64| ratio(ns, self.busy_ns()) > MISSING_WORK_SHARE;
        BusyParts {
            communication_ns,
            transfer_ns,
            doubtful_ns: communicated_ns.saturating_add(moved_ns),
            unsure_communication: self.unsure_communication || counts(communicated_ns),
            unsure_transfer: self.unsure_transfer || counts(moved_ns),
            ..self
        }
    }
}

impl BusyShare {
    /// Returns the share of a window, without its split by kinds of work.
    fn new(window: Interval, busy_ns: i64) -> BusyShare {
        let window_ns = window.length_ns();
        BusyShare {
            window,
            window_ns,
            busy_ns,
            idle_ns: window_ns - busy_ns,
            busy_share: ratio(busy_ns, window_ns),
            ..BusyShare::default()
        }
    }

    /// Returns the share of a window from its parts; what work that is timed as a whole leaves open is absent.
    fn with_parts(window: Interval, parts: BusyParts) -> BusyShare {
        let busy_ns = parts.busy_ns();
        let sure = !parts.unsure_communication;
        BusyShare {
            counted_whole_ns: Some(parts.whole_ns),
            transfer_only_ns: (!parts.unsure_transfer).then_some(parts.transfer_ns),
            communication_only_ns: sure.then_some(parts.communication_ns),
            communication_overlapped_ns: sure.then_some(parts.overlapped_ns),
            parts,
            ..BusyShare::new(window, busy_ns)
        }
    }
}

/// Returns the busy time of every GPU and of its queues, over the recording and in the window `analysed`.
pub fn busy(timeline: &Timeline, analysed: Option<Interval>) -> Vec<DeviceBusy> {
    busy_beside(timeline, analysed, |_| &[])
}

/// Returns the same where `unmeasured` returns the times in which work without known times may have run on a GPU, by its index.
pub fn busy_beside<'u>(
    timeline: &Timeline,
    analysed: Option<Interval>,
    unmeasured: impl Fn(u32) -> &'u [Interval],
) -> Vec<DeviceBusy> {
    let named = Gpus::new(&timeline.trace.manifest);
    (0..timeline.gpus.len())
        .map(|index| DeviceBusy {
            label: named.label(index),
            ..device_busy(timeline, index, analysed, unmeasured(index as u32))
        })
        .collect()
}

/// Returns names that tell GPUs apart: their own names where these differ, else `GPU 0` and so on, by the numbers of the file that was
/// imported or by index.
pub fn names(devices: &[DeviceBusy]) -> Vec<String> {
    let mut own: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    own.sort_unstable();
    let distinct = own.windows(2).all(|two| two[0] != two[1]);
    (devices.iter())
        .map(|device| match distinct {
            true => device.name.clone(),
            false => (device.label.clone()).unwrap_or_else(|| format!("GPU {}", device.index)),
        })
        .collect()
}

/// Returns the time in which at least one GPU ran something, or `None` when nothing was timed.
pub fn any_busy_ns(timeline: &Timeline) -> Option<i64> {
    timeline.work_window()?;
    let mut working = timeline.gpus.iter().filter(|gpu| !gpu.works.is_empty());
    match (working.next(), working.next()) {
        (Some(only), None) => Some(only.busy_ns()),
        _ => {
            let mut all = Vec::new();
            for gpu in &timeline.gpus {
                let mut set: Vec<Interval> = gpu.works.iter().map(|w| w.interval).collect();
                union(&mut set);
                all.append(&mut set);
            }
            union(&mut all);
            Some(crate::intervals::length_ns(&all))
        }
    }
}

/// The busy time of one GPU and its queues, added up in one walk over the GPU's work.
#[derive(Debug, Default)]
struct Totals {
    /// The work of all queues, by content.
    all: Parted<Contents>,
    /// The busy time of each queue, by its index.
    queues: Vec<QueueTotals>,
    /// The number of graphs that are timed as a whole without being a command buffer that counts whole.
    whole_graphs: u64,
}

/// The busy time of one queue.
#[derive(Debug, Clone, Default)]
struct QueueTotals {
    work_window: Option<Interval>,
    all: Parted<Busy>,
}

/// A sum for the time before the analysed window, one for the window and one for the time after it.
#[derive(Debug, Clone, Default)]
struct Parted<T> {
    before: T,
    analysed: T,
    after: T,
}

impl<T> Parted<T> {
    /// Adds an interval to the sums of the times that it overlaps. Intervals come in order of start.
    #[inline]
    fn add(&mut self, interval: Interval, window: Interval, add: impl Fn(&mut T, Interval)) {
        if interval.is_empty() {
            return add(&mut self.before, interval);
        }
        if window.start_ns <= interval.start_ns && interval.end_ns <= window.end_ns {
            return add(&mut self.analysed, interval);
        }
        let Interval { start_ns, end_ns } = interval;
        let before = Interval::new(start_ns, end_ns.min(window.start_ns));
        let after = Interval::new(start_ns.max(window.end_ns), end_ns);
        for (part, of) in [
            (&mut self.before, before),
            (&mut self.analysed, interval.intersection(window)),
            (&mut self.after, after),
        ] {
            if !of.is_empty() {
                add(part, of);
            }
        }
    }

    /// Returns the three sums.
    fn each(&self) -> [&T; 3] {
        [&self.before, &self.analysed, &self.after]
    }
}

impl Totals {
    /// Adds the work of a GPU up; without `analysed` all of it counts as in the window.
    fn new(timeline: &Timeline, gpu: &Gpu, analysed: Option<Interval>) -> Totals {
        let mut totals = Totals {
            queues: vec![QueueTotals::default(); timeline.queues.len()],
            ..Totals::default()
        };
        let analysed = analysed.unwrap_or(Interval::new(i64::MIN, i64::MAX));
        for work in &gpu.works {
            let interval = work.interval;
            let content = timeline.content(&work);
            if work.kind() == WorkKind::Opaque && matches!(content, Content::Whole { .. }) {
                totals.whole_graphs += 1;
            }
            (totals.all).add(interval, analysed, |all, of| all.add(of, content));
            let queue = &mut totals.queues[timeline.queue_of(&work) as usize];
            let window = queue.work_window;
            queue.work_window = Some(window.map_or(interval, |window| window.hull(interval)));
            queue.all.add(interval, analysed, |all, of| all.add(of));
        }
        totals
    }

    /// Returns the parts of all busy time, whatever the window.
    fn parts(&self) -> BusyParts {
        let [before, analysed, after] = self.all.each().map(Contents::parts);
        before.plus(analysed).plus(after)
    }
}

/// Unions of work by content. Each union but the last includes the one declared before it, in the order in which a
/// moment of busy time is counted.
#[derive(Debug, Clone, Default)]
struct Contents {
    /// The union of work that computes, but for work that is timed as a whole.
    compute: Busy,
    /// The union that also includes work that is timed as a whole and inside of which the device never idles.
    steady: Busy,
    /// The union that also includes work that communicates.
    communication: Busy,
    /// The union that also includes transfers.
    transfers: Busy,
    /// The union that also includes work inside of which the device may idle.
    all: Busy,
    /// The union of work that communicates, without the others.
    communication_alone: Busy,
    /// Whether work that is timed as a whole may communicate.
    unsure_communication: bool,
    /// Whether work that is timed as a whole may move data.
    unsure_transfer: bool,
}

impl Contents {
    /// Adds a piece of work. Pieces must come in order of start.
    #[inline]
    fn add(&mut self, interval: Interval, content: Content) {
        self.all.add(interval);
        if let Content::Whole {
            communication,
            transfer,
            idle,
        } = content
        {
            self.unsure_communication |= communication;
            self.unsure_transfer |= transfer;
            if idle {
                return;
            }
        }
        self.transfers.add(interval);
        if content == Content::Transfer {
            return;
        }
        self.communication.add(interval);
        match content {
            Content::Communication => self.communication_alone.add(interval),
            Content::Whole { .. } => self.steady.add(interval),
            Content::Compute | Content::Transfer => {
                self.compute.add(interval);
                self.steady.add(interval);
            }
        }
    }

    /// Returns the parts of busy time, as differences of the unions.
    fn parts(&self) -> BusyParts {
        let compute_ns = self.steady.length_ns;
        let communication_ns = self.communication.length_ns - compute_ns;
        BusyParts {
            compute_ns,
            communication_ns,
            transfer_ns: self.transfers.length_ns - self.communication.length_ns,
            whole_ns: self.all.length_ns - self.transfers.length_ns,
            doubtful_ns: 0,
            beside_compute_ns: 0,
            overlapped_ns: self.communication_alone.length_ns - communication_ns,
            unsure_ns: compute_ns - self.compute.length_ns,
            unsure_communication: self.unsure_communication,
            unsure_transfer: self.unsure_transfer,
        }
    }
}

/// Returns the parts of a GPU's busy time in `window`, where work without known times may have computed at the times
/// `unmeasured`, which do not overlap. `parts` are those by the work with known times.
fn beside_unmeasured(
    timeline: &Timeline,
    gpu: &Gpu,
    window: Interval,
    unmeasured: &[Interval],
    parts: BusyParts,
) -> BusyParts {
    if unmeasured.is_empty() {
        return parts;
    }
    let computing = unmeasured.iter();
    let computing = computing.map(|interval| interval.intersection(window));
    let computing = computing.filter(|interval| !interval.is_empty());
    let all_ns = computing.clone().map(Interval::length_ns);
    let all_ns = all_ns.fold(0, i64::saturating_add);
    let mut computing = computing.peekable();
    let mut all = Contents::default();
    for work in &gpu.works {
        let interval = work.interval.intersection(window);
        if interval.is_empty() {
            continue;
        }
        while let Some(unmeasured) = computing.next_if(|next| next.start_ns <= interval.start_ns) {
            all.add(unmeasured, Content::Compute);
        }
        all.add(interval, timeline.content(&work));
    }
    computing.for_each(|unmeasured| all.add(unmeasured, Content::Compute));
    let certain = all.parts();
    BusyParts {
        beside_compute_ns: (parts.compute_ns.saturating_add(all_ns))
            .saturating_sub(certain.compute_ns)
            .max(0),
        ..parts.with_certain(certain.communication_ns, certain.transfer_ns)
    }
}

/// Returns the busy time of one GPU, by its index, and of its queues.
fn device_busy(
    timeline: &Timeline,
    index: usize,
    analysed: Option<Interval>,
    unmeasured: &[Interval],
) -> DeviceBusy {
    let manifest = &timeline.trace.manifest;
    let gpu = &timeline.gpus[index];
    let devices: Vec<_> = (gpu.devices.iter())
        .map(|row| &manifest.devices[*row])
        .collect();
    let first = devices.first();
    let mut process_ids: Vec<ProcessId> = devices.iter().map(|device| device.process).collect();
    process_ids.sort();
    process_ids.dedup();
    let of_gpu = |queue: u32| timeline.queues[queue as usize].gpu as usize == index;
    let times = || {
        let all = timeline.command_buffers.iter();
        let queues = all.zip(&timeline.command_buffer_queues);
        queues.filter_map(|(times, queue)| of_gpu(*queue).then_some(times))
    };
    let totals = Totals::new(timeline, gpu, analysed);
    let work_window = gpu.work_window();
    let parts_in = |window, parts| {
        let parts = beside_unmeasured(timeline, gpu, window, unmeasured, parts);
        BusyShare::with_parts(window, parts)
    };
    let share = |(window, analysed): (Interval, Interval)| {
        parts_in(window.intersection(analysed), totals.all.analysed.parts())
    };
    let whole = work_window.map(|window| parts_in(window, totals.parts()));
    DeviceBusy {
        index: index as u32,
        name: first.map_or(UNKNOWN_DEVICE.to_owned(), |device| device_name(device)),
        label: None,
        api: first.map_or(Api::Unknown, |device| device.api),
        driver: first.map_or(String::new(), |device| device.driver.clone()),
        uuid: first.map_or(String::new(), |device| device.uuid.clone()),
        device_ids: devices.iter().map(|device| device.id).collect(),
        process_ids,
        lost: devices.iter().any(|device| device.lost),
        clock_method: first.map_or(ClockMethod::None, |device| device.clock.method),
        clock_tool: (manifest.processes.iter())
            .filter(|process| first.is_some_and(|device| device.process == process.id))
            .find_map(|process| process.other_tool().map(str::to_owned)),
        clock_error_ns: timeline.clock_error_ns(index),
        work_window,
        busy_ns: whole.map(|share| share.busy_ns),
        counted_whole_ns: whole.and_then(|share| share.counted_whole_ns),
        transfer_only_ns: whole.and_then(|share| share.transfer_only_ns),
        before_first_ns: work_window
            .filter(|_| manifest.start_ns != 0)
            .map(|window| window.start_ns.saturating_sub(manifest.start_ns)),
        after_last_ns: work_window
            .filter(|_| manifest.end_ns != 0)
            .map(|window| manifest.end_ns.saturating_sub(window.end_ns)),
        analysed: work_window.zip(analysed).map(share),
        command_buffers_counted_whole: times().filter(|times| times.whole).count() as u64
            + totals.whole_graphs,
        command_buffers_untimed: times()
            .filter(|times| !times.ran.has_work() && times.own.is_none())
            .count() as u64,
        queues: queues_busy(timeline, index, &totals, analysed),
    }
}

/// Returns the busy time of the queues of one GPU.
fn queues_busy(
    timeline: &Timeline,
    index: usize,
    totals: &Totals,
    analysed: Option<Interval>,
) -> Vec<QueueBusy> {
    let manifest = &timeline.trace.manifest;
    let vocabulary = Vocabulary::new(manifest);
    (timeline.queues.iter().zip(&totals.queues))
        .filter(|(queue, _)| queue.gpu as usize == index && !queue.is_undefined)
        .map(|(queue, totals)| {
            let window = totals.work_window;
            let row = queue.row.map(|row| &manifest.queues[row as usize]);
            QueueBusy {
                queue_id: queue.id,
                name: vocabulary.queue(queue.id),
                capabilities: row.map_or(Vec::new(), |row| row.capabilities.clone()),
                work_window: window,
                busy_ns: window.map(|_| totals.all.each().iter().map(|busy| busy.length_ns).sum()),
                analysed: window.zip(analysed).map(|(window, analysed)| {
                    let busy_ns = totals.all.analysed.length_ns;
                    BusyShare::new(window.intersection(analysed), busy_ns)
                }),
            }
        })
        .collect()
}
