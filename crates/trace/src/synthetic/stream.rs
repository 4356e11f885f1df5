//! Generates the rows of a trace, one submission at a time. [`Stream::new`], then `begin` once for the rows that
//! others refer to, then `submit` until it returns false; [`Stream::end_ns`] is the end of the recording.

use super::catalogue::{
    self, BUFFER_BYTES, BUFFERS, FORWARD, PARTS, TypicalKernel, buffer_id, layer_label,
};
use super::noise::Noise;
use super::parameters::{PROCESS, START_NS, Synthetic, thread_of};
use crate::Tables;
use crate::ids::*;
use crate::tables::*;

/// The number of dispatches of each part of a layer.
const DISPATCHES_PER_PART: u64 = 6;
/// A thread that is this far ahead of its queue waits for it.
const MAX_AHEAD_NS: i64 = 5_000_000;

/// A queue and the thread that feeds it.
#[derive(Debug, Clone)]
struct Feed {
    queue: QueueId,
    device: DeviceId,
    /// The time that the thread has reached.
    host_ns: i64,
    /// The end of the queue's work so far.
    device_ns: i64,
    last_submission: Option<SubmissionId>,
    /// The buffer, from 0, that the next dispatch reads.
    next_buffer: u32,
}

/// The state of the generation.
pub(super) struct Stream<'a> {
    parameters: &'a Synthetic,
    noise: Noise,
    /// The typical values of each kernel; empty before `begin`.
    usual: Vec<TypicalKernel>,
    feeds: Vec<Feed>,
    /// The number of dispatches still to come.
    left: u64,
    /// The id of the last submission, as the next two fields are of command buffers and allocations.
    submissions: u64,
    command_buffers: u64,
    allocations: u32,
}

impl Stream<'_> {
    pub fn new(parameters: &Synthetic) -> Stream<'_> {
        let feed = |queue: QueueId| Feed {
            queue,
            device: parameters.device_of(queue),
            host_ns: START_NS + 1_000_000,
            device_ns: START_NS,
            last_submission: None,
            next_buffer: 0,
        };
        Stream {
            parameters,
            noise: Noise::new(parameters.seed),
            usual: Vec::new(),
            feeds: parameters.queues().map(feed).collect(),
            left: parameters.dispatches,
            submissions: 0,
            command_buffers: 0,
            allocations: parameters.queues.max(1),
        }
    }

    /// Adds the kernels, labels, buffers and bindings, and the allocation of each queue's buffers.
    pub fn begin(&mut self, tables: &mut Tables) {
        self.usual = catalogue::add(self.parameters, &mut self.noise, tables);
        for feed in &mut self.feeds {
            let bytes = u64::from(BUFFERS) * BUFFER_BYTES;
            feed.call(tables, HostCallKind::AllocateMemory, 80_000, Some(bytes));
            tables.memory.push(feed.memory(
                MemoryEvent::Allocate,
                AllocationId(feed.queue.0),
                bytes,
            ));
        }
    }

    /// Returns a time 1 ms after all work and calls so far.
    pub fn end_ns(&self) -> i64 {
        let ends = self
            .feeds
            .iter()
            .map(|feed| feed.host_ns.max(feed.device_ns));
        ends.max().unwrap_or(START_NS) + 1_000_000
    }

    /// Adds one submission with its command buffers. Returns false when all dispatches are there.
    pub fn submit(&mut self, tables: &mut Tables) -> bool {
        if self.left == 0 {
            return false;
        }
        // The thread that is furthest behind, so that rows come roughly in the order of time.
        let at = (0..self.feeds.len()).min_by_key(|at| self.feeds[*at].host_ns);
        let at = at.expect("there is a queue");
        self.prepare(at, tables);
        let noise = &mut self.noise;
        let feed = &mut self.feeds[at];
        self.submissions += 1;
        let id = SubmissionId(self.submissions);
        let start_ns = feed.host_ns;
        feed.call(
            tables,
            HostCallKind::Submit,
            noise.between(4_000, 20_000),
            None,
        );
        let count = 1 + u32::from(noise.once_in(4));
        tables.submissions.push(Submission {
            id,
            process: PROCESS,
            queue: feed.queue,
            thread: Some(thread_of(feed.queue)),
            kind: SubmissionKind::CommandBuffers,
            start_ns,
            duration_ns: feed.host_ns - start_ns,
            command_buffers: count,
            function: None,
        });
        feed.device_ns = feed
            .device_ns
            .max(feed.host_ns + noise.between(5_000, 25_000));
        feed.last_submission = Some(id);
        self.depend(at, id, tables);
        let mut in_it = 0;
        while in_it < count && (self.left > 0 || in_it == 0) {
            self.command_buffer(at, id, tables);
            in_it += 1;
        }
        if let Some(last) = tables.submissions.command_buffers.last_mut() {
            *last = in_it;
        }
        self.settle(at, tables);
        true
    }

    /// Adds what a thread does before it submits.
    fn prepare(&mut self, at: usize, tables: &mut Tables) {
        let noise = &mut self.noise;
        let feed = &mut self.feeds[at];
        feed.host_ns += match noise.below(64) {
            0 => noise.between(200_000, 2_000_000),
            _ => noise.between(5_000, 60_000),
        };
        if noise.once_in(200) {
            let length_ns = noise.between(300_000, 3_000_000);
            feed.call(tables, HostCallKind::CreatePipelines, length_ns, None);
            feed.host_ns += 2_000;
        }
        if noise.once_in(100) {
            let bytes = 1 << noise.between(16, 26);
            self.allocations += 1;
            feed.call(tables, HostCallKind::AllocateMemory, 30_000, Some(bytes));
            let row = feed.memory(MemoryEvent::Allocate, AllocationId(self.allocations), bytes);
            tables.memory.push(row);
            feed.call(tables, HostCallKind::FreeMemory, 10_000, Some(bytes));
            tables.memory.push(feed.memory(
                MemoryEvent::Free,
                AllocationId(self.allocations),
                bytes,
            ));
            feed.host_ns += 1_000;
        }
    }

    /// Makes some submissions wait for the last one of another queue.
    fn depend(&mut self, at: usize, submission: SubmissionId, tables: &mut Tables) {
        let other = self.noise.below(self.feeds.len() as u64) as usize;
        if other == at || !self.noise.once_in(8) {
            return;
        }
        let (waits_for, end_ns) = (
            self.feeds[other].last_submission,
            self.feeds[other].device_ns,
        );
        if waits_for.is_some() {
            tables.dependencies.push(Dependency {
                submission,
                waits_for,
                host_signal_ns: None,
            });
            let feed = &mut self.feeds[at];
            feed.device_ns = feed.device_ns.max(end_ns + 3_000);
        }
    }

    /// Adds what a thread does after it submitted: it polls, waits, or goes on.
    fn settle(&mut self, at: usize, tables: &mut Tables) {
        let noise = &mut self.noise;
        let feed = &mut self.feeds[at];
        let ahead_ns = feed.device_ns - feed.host_ns;
        if ahead_ns > MAX_AHEAD_NS || noise.once_in(6) {
            feed.host_ns += 1_000;
            let length_ns = (feed.device_ns - feed.host_ns).max(0) + noise.between(8_000, 20_000);
            feed.call(tables, HostCallKind::WaitFences, length_ns, None);
        } else if noise.once_in(5) {
            feed.host_ns += 1_000;
            let count = noise.between(2, 40);
            feed.call(tables, HostCallKind::PollFence, count * 900, None);
            let calls = &mut tables.host_calls;
            let last = calls.call.len() - 1;
            calls.count[last] = count as u32;
            calls.busy_ns[last] = count * 300;
            // VK_NOT_READY
            calls.result[last] = 1;
        }
    }

    /// Adds a command buffer of the queue `at` (an index in `feeds`) with its work: some layers in a row, and perhaps
    /// transfers before and after.
    fn command_buffer(&mut self, at: usize, submission: SubmissionId, tables: &mut Tables) {
        self.command_buffers += 1;
        let id = CommandBufferId(self.command_buffers);
        let mut recorded = CommandBufferState {
            id,
            position: 0,
            dispatches: 0,
            transfers: 0,
        };
        let begin_ns = self.feeds[at].device_ns;
        if self.noise.once_in(2) {
            self.transfer(at, TransferKind::Update, &mut recorded, tables);
        }
        let layers = u64::from(self.parameters.layers.max(1));
        let first = self.noise.below(layers);
        let forward_ns = self.feeds[at].device_ns;
        for layer in first..first + 2 + self.noise.below(4) {
            if self.left > 0 {
                self.layer(at, (layer % layers) as u32, &mut recorded, tables);
            }
        }
        self.marker(at, id, FORWARD, forward_ns, tables);
        if self.noise.once_in(4) {
            self.transfer(at, TransferKind::Copy, &mut recorded, tables);
        }
        let feed = &self.feeds[at];
        tables.command_buffers.push(CommandBuffer {
            id,
            process: PROCESS,
            queue: feed.queue,
            submission,
            start_ns: Some(begin_ns),
            duration_ns: Some(feed.device_ns - begin_ns),
            seen_ns: Some(feed.device_ns + self.noise.between(20_000, 60_000)),
            timing: Timing::Measured,
            dispatches: recorded.dispatches,
            transfers: recorded.transfers,
            label: Some(FORWARD),
            name: None,
            host_functions: None,
        });
    }

    /// Adds the dispatches of a layer and the markers of its labels.
    fn layer(
        &mut self,
        at: usize,
        layer: u32,
        recorded: &mut CommandBufferState,
        tables: &mut Tables,
    ) {
        let begin_ns = self.feeds[at].device_ns;
        let label = layer_label(layer);
        for part in 0..PARTS.len() as u32 {
            let part_ns = self.feeds[at].device_ns;
            // A layer runs the same kernels each time.
            let first = u64::from(layer) * 5 + u64::from(part) * DISPATCHES_PER_PART;
            for step in 0..DISPATCHES_PER_PART.min(self.left) {
                self.dispatch(
                    at,
                    first + step,
                    LabelId(label.0 + 1 + part),
                    recorded,
                    tables,
                );
            }
            self.marker(
                at,
                recorded.id,
                LabelId(label.0 + 1 + part),
                part_ns,
                tables,
            );
            if self.left == 0 {
                break;
            }
        }
        self.marker(at, recorded.id, label, begin_ns, tables);
    }

    /// Adds a dispatch of a kernel, of which `kernel` may be above the number of kernels, and in front of some a
    /// barrier.
    fn dispatch(
        &mut self,
        at: usize,
        kernel: u64,
        label: LabelId,
        recorded: &mut CommandBufferState,
        tables: &mut Tables,
    ) {
        let noise = &mut self.noise;
        let feed = &mut self.feeds[at];
        let kernel = (kernel % self.usual.len() as u64) as usize;
        let usual = self.usual[kernel];
        let duration_ns = usual.duration_ns + noise.between(0, usual.duration_ns / 8);
        let start_ns = match noise.below(16) {
            // Without a barrier between them, a dispatch may begin before the previous one has ended.
            0 if recorded.dispatches > 0 => feed.device_ns - noise.between(0, 1_500),
            _ => {
                if recorded.position.is_multiple_of(3) {
                    tables.barriers.push(Barrier {
                        command_buffer: recorded.id,
                        position: recorded.next(),
                        // VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT
                        source_stages: 0x800,
                        destination_stages: 0x800,
                    });
                }
                feed.device_ns + noise.between(300, 1_800)
            }
        };
        tables.dispatches.push(Dispatch {
            command_buffer: Some(recorded.id),
            position: recorded.next(),
            queue: feed.queue,
            kernel: KernelId(kernel as u32 + 1),
            start_ns: Some(start_ns),
            duration_ns: Some(duration_ns),
            groups_x: Some(usual.groups),
            groups_y: Some(1),
            groups_z: Some(1),
            bindings: Some(BindingSetId(buffer_id(feed.queue, feed.next_buffer).0)),
            label: Some(label),
            submission: None,
            graph_node: None,
        });
        feed.next_buffer = (feed.next_buffer + 1) % BUFFERS;
        feed.device_ns = feed.device_ns.max(start_ns + duration_ns);
        recorded.dispatches += 1;
        self.left -= 1;
    }

    /// Adds a transfer of a random size.
    fn transfer(
        &mut self,
        at: usize,
        kind: TransferKind,
        recorded: &mut CommandBufferState,
        tables: &mut Tables,
    ) {
        let feed = &mut self.feeds[at];
        let bytes = 1 << self.noise.between(8, 22);
        let start_ns = feed.device_ns + self.noise.between(200, 900);
        // At 16 bytes a nanosecond.
        let duration_ns = 1_000 + bytes as i64 / 16;
        let reads = kind == TransferKind::Copy;
        tables.transfers.push(Transfer {
            command_buffer: Some(recorded.id),
            position: recorded.next(),
            queue: feed.queue,
            kind,
            bytes: Some(bytes),
            start_ns: Some(start_ns),
            duration_ns: Some(duration_ns),
            source: reads.then(|| buffer_id(feed.queue, feed.next_buffer)),
            destination: Some(buffer_id(feed.queue, 0)),
            label: None,
            submission: None,
            host_memory: None,
            graph_node: None,
        });
        recorded.transfers += 1;
        feed.device_ns = start_ns + duration_ns;
    }

    /// Adds a label's range in a command buffer, up to now.
    fn marker(
        &self,
        at: usize,
        command_buffer: CommandBufferId,
        label: LabelId,
        start_ns: i64,
        tables: &mut Tables,
    ) {
        let feed = &self.feeds[at];
        tables.markers.push(Marker {
            process: PROCESS,
            scope: MarkerScope::CommandBuffer,
            label,
            queue: Some(feed.queue),
            thread: None,
            command_buffer: Some(command_buffer),
            start_ns: Some(start_ns),
            duration_ns: Some(feed.device_ns - start_ns),
            domain: None,
            category: None,
            payload: None,
        });
    }
}

/// A command buffer to which work is being added.
struct CommandBufferState {
    id: CommandBufferId,
    /// The position in the command buffer of the next piece of work.
    position: u32,
    dispatches: u32,
    transfers: u32,
}

impl CommandBufferState {
    /// Returns the position of the next piece of work, and moves on.
    fn next(&mut self) -> u32 {
        self.position += 1;
        self.position - 1
    }
}

impl Feed {
    /// Adds a host call that starts now; the thread goes on after it.
    fn call(
        &mut self,
        tables: &mut Tables,
        call: HostCallKind,
        duration_ns: i64,
        bytes: Option<u64>,
    ) {
        let of_queue = matches!(
            call,
            HostCallKind::Submit | HostCallKind::WaitFences | HostCallKind::PollFence
        );
        let waits = of_queue && call != HostCallKind::Submit;
        tables.host_calls.push(HostCall {
            process: PROCESS,
            thread: Some(thread_of(self.queue)),
            call,
            start_ns: self.host_ns,
            duration_ns,
            count: 1,
            busy_ns: duration_ns,
            queue: of_queue.then_some(self.queue),
            bytes,
            result: 0,
            function: None,
            waits_for: self.last_submission.filter(|_| waits),
        });
        self.host_ns += duration_ns;
    }

    /// Returns the row of a memory event that happens now.
    fn memory(&self, event: MemoryEvent, allocation: AllocationId, bytes: u64) -> MemoryRow {
        MemoryRow {
            process: PROCESS,
            device: self.device,
            at_ns: self.host_ns,
            event,
            allocation,
            bytes,
            heap: 0,
        }
    }
}
