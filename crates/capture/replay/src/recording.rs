//! Records a submission of the capture into a Vulkan command buffer of the replay, with timestamps around the work:
//! [`CommandRecording::begin`], [`CommandSource::submission`], and after a run [`CommandRecording::ticks`].

use std::collections::BTreeSet;
use std::rc::Rc;

use ash::vk;
use gapscope_capture::Capture;
use gapscope_capture::model::{Command, Dispatch, Groups, Label};

use crate::barriers;
use crate::descriptors::Descriptors;
use crate::error::Error;
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::pipelines::Pipelines;
use crate::program::ProgramSubmission;
use crate::regions::Regions;

/// The most queries (slots for timestamps) in one pool; work beyond them has no timestamps.
const MAX_QUERIES: u32 = 1 << 20;

/// The work that gets timestamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimestampScope {
    /// Each submission as a whole.
    #[default]
    Submissions,
    /// Each submission, and each of its command buffers, dispatches and transfers.
    Dispatches,
}

/// The objects that commands are recorded from: device, capture, memory, pipelines and descriptor sets.
pub struct CommandSource<'a> {
    pub gpu: &'a Rc<Gpu>,
    pub capture: &'a Capture,
    pub regions: &'a Regions,
    pub memory: &'a Memory,
    pub pipelines: &'a Pipelines,
    pub descriptors: &'a Descriptors,
    /// Barriers that are left out, by their indices among [`Capture::executed`].
    pub left_out: &'a BTreeSet<usize>,
    /// Whether a full barrier follows each dispatch and transfer.
    pub serialised: bool,
    /// The work that gets timestamps.
    pub timed: TimestampScope,
}

/// A command buffer that can be submitted repeatedly.
pub struct CommandRecording {
    gpu: Rc<Gpu>,
    pub commands: vk::CommandBuffer,
    pool: vk::QueryPool,
    /// Number of queries; 0 if the queue has no timestamps.
    queries: u32,
}

/// The number of a pair of timestamps, before and after some work: the queries `2 * pair` and `2 * pair + 1`.
pub type TimestampPair = u32;

impl CommandRecording {
    /// Begins a recording with room for this many pairs of timestamps.
    pub fn begin(gpu: &Rc<Gpu>, pairs: usize) -> Result<CommandRecording, Error> {
        let wanted = (pairs as u64).saturating_mul(2).min(u64::from(MAX_QUERIES)) as u32;
        let mut recording = CommandRecording {
            gpu: Rc::clone(gpu),
            commands: gpu.begin(vk::CommandBufferUsageFlags::empty())?,
            pool: vk::QueryPool::null(),
            queries: 0,
        };
        if gpu.timestamp_bits > 0 && wanted > 0 {
            let info = vk::QueryPoolCreateInfo::default()
                .query_type(vk::QueryType::TIMESTAMP)
                .query_count(wanted);
            // SAFETY: the structure is complete.
            recording.pool = unsafe { gpu.raw.create_query_pool(&info, None) }
                .map_err(Error::from_call("make a query pool"))?;
            recording.queries = wanted;
            // SAFETY: the command buffer is being recorded; the pool has this many queries.
            unsafe {
                gpu.raw
                    .cmd_reset_query_pool(recording.commands, recording.pool, 0, wanted)
            };
        }
        Ok(recording)
    }

    /// Records the write of a timestamp once everything before has passed a stage. Without room nothing is recorded.
    pub fn stamp(&self, query: u32, stage: vk::PipelineStageFlags2) {
        if query < self.queries {
            // SAFETY: the command buffer is being recorded; each query is written once.
            unsafe {
                self.gpu
                    .raw
                    .cmd_write_timestamp2(self.commands, stage, self.pool, query);
            }
        }
    }

    /// Returns the ticks of the last run by query; `None` for a query that was not written.
    pub fn ticks(&self) -> Result<Vec<Option<u64>>, Error> {
        let mut raw = vec![[0_u64; 2]; self.queries as usize];
        if raw.is_empty() {
            return Ok(Vec::new());
        }
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WITH_AVAILABILITY;
        // SAFETY: the pool has as many queries as the slice has room for.
        let read = unsafe {
            self.gpu
                .raw
                .get_query_pool_results(self.pool, 0, &mut raw, flags)
        };
        match read {
            Ok(()) | Err(vk::Result::NOT_READY) => {}
            Err(result) => return Err(Error::from_call("read timestamps")(result)),
        }
        let known = raw
            .iter()
            .map(|[ticks, available]| (*available != 0).then_some(*ticks));
        Ok(known.collect())
    }
}

impl Drop for CommandRecording {
    fn drop(&mut self) {
        // SAFETY: both are of this device, and nothing runs.
        unsafe {
            let _ = self.gpu.raw.device_wait_idle();
            self.gpu.raw.destroy_query_pool(self.pool, None);
        }
        self.gpu.free(self.commands);
    }
}

/// The pairs of timestamps of a submission.
#[derive(Debug, Clone, Default)]
pub struct SubmissionTimestamps {
    /// The pair around the whole submission.
    pub whole: TimestampPair,
    /// The pairs of each command buffer.
    pub buffers: Vec<BufferTimestamps>,
    /// The next pair that is free.
    pub next: TimestampPair,
}

/// The pair around a command buffer, and those of its dispatches and transfers by their positions.
pub type BufferTimestamps = (Option<TimestampPair>, Vec<(usize, TimestampPair)>);

/// Returns the number of pairs of timestamps that a submission needs.
pub fn pairs(submitted: &ProgramSubmission<'_>, timed: TimestampScope) -> usize {
    let of_buffer = |commands: &[Command]| 1 + commands.iter().filter(|c| c.is_work()).count();
    match timed {
        TimestampScope::Submissions => 1,
        TimestampScope::Dispatches => {
            1 + submitted
                .buffers
                .iter()
                .map(|b| of_buffer(b.commands))
                .sum::<usize>()
        }
    }
}

impl CommandSource<'_> {
    /// Records a submission, with pairs of timestamps from `first` on, and returns the pairs. Labels that are open at
    /// the end are closed.
    pub fn submission(
        &self,
        to: &CommandRecording,
        submitted: &ProgramSubmission<'_>,
        first: TimestampPair,
    ) -> SubmissionTimestamps {
        let mut marks = SubmissionTimestamps {
            whole: first,
            buffers: Vec::new(),
            next: first + 1,
        };
        let mut open_labels = 0_u32;
        to.stamp(2 * marks.whole, vk::PipelineStageFlags2::ALL_COMMANDS);
        for buffer in &submitted.buffers {
            if buffer.waits {
                self.gpu.full_barrier(to.commands);
            }
            let each = self.timed == TimestampScope::Dispatches;
            let of_buffer = each.then(|| marks.take());
            if let Some(pair) = of_buffer {
                to.stamp(2 * pair, vk::PipelineStageFlags2::TOP_OF_PIPE);
            }
            let mut of_work = Vec::new();
            for (position, command) in buffer.commands.iter().enumerate() {
                if !command.is_work() {
                    let is_barrier = matches!(command, Command::Barrier(_));
                    if is_barrier && self.left_out.contains(&(buffer.first_command + position)) {
                        continue;
                    }
                    self.mark(to, command, &mut open_labels);
                    continue;
                }
                let pair = each.then(|| marks.take());
                if let Some(pair) = pair {
                    // A barrier does not hold back a timestamp at the top of the pipeline.
                    let stage = match self.serialised {
                        true => vk::PipelineStageFlags2::ALL_COMMANDS,
                        false => vk::PipelineStageFlags2::TOP_OF_PIPE,
                    };
                    to.stamp(2 * pair, stage);
                    of_work.push((position, pair));
                }
                self.work(to.commands, command);
                if let Some(pair) = pair {
                    to.stamp(2 * pair + 1, vk::PipelineStageFlags2::ALL_COMMANDS);
                }
                if self.serialised {
                    self.gpu.full_barrier(to.commands);
                }
            }
            if let Some(pair) = of_buffer {
                to.stamp(2 * pair + 1, vk::PipelineStageFlags2::ALL_COMMANDS);
            }
            marks.buffers.push((of_buffer, of_work));
        }
        for _ in 0..open_labels {
            self.end_label(to.commands);
        }
        to.stamp(2 * marks.whole + 1, vk::PipelineStageFlags2::ALL_COMMANDS);
        marks
    }

    /// Records a dispatch or transfer.
    pub fn work(&self, commands: vk::CommandBuffer, command: &Command) {
        let raw = &self.gpu.raw;
        match command {
            Command::Dispatch(dispatch) => self.dispatch(commands, dispatch),
            Command::Copy(copy) => {
                for region in copy.regions.iter().filter(|region| region.bytes > 0) {
                    let places = copy
                        .ranges(region)
                        .map(|range| self.regions.buffer_place(self.capture, range));
                    let [Some(from), Some(to)] = places else {
                        continue;
                    };
                    let copied = [vk::BufferCopy::default()
                        .src_offset(from.offset)
                        .dst_offset(to.offset)
                        .size(region.bytes)];
                    let (from, to) = (self.memory.raw(from.region), self.memory.raw(to.region));
                    // SAFETY: both ranges are inside their regions, which have all that the capture touches.
                    unsafe { raw.cmd_copy_buffer(commands, from, to, &copied) };
                }
            }
            Command::Fill(fill) => {
                let place = self.regions.buffer_place(self.capture, fill.range);
                if let Some(place) = place.filter(|_| fill.range.bytes > 0) {
                    let buffer = self.memory.raw(place.region);
                    // SAFETY: as above; offset and size are whole words.
                    unsafe {
                        raw.cmd_fill_buffer(
                            commands,
                            buffer,
                            place.offset,
                            fill.range.bytes,
                            fill.value,
                        );
                    }
                }
            }
            Command::Update(update) => {
                let place = self.regions.buffer_place(self.capture, update.range());
                if let Some(place) = place.filter(|_| !update.data.is_empty()) {
                    let buffer = self.memory.raw(place.region);
                    // SAFETY: as above; there are at most 65,536 bytes.
                    unsafe { raw.cmd_update_buffer(commands, buffer, place.offset, &update.data) };
                }
            }
            Command::Barrier(_) | Command::Label(_) => {}
        }
    }

    /// Binds a dispatch's pipeline, sets and push constants, and records it.
    fn dispatch(&self, commands: vk::CommandBuffer, dispatch: &Dispatch) {
        let raw = &self.gpu.raw;
        let (pipeline, layout) = self.pipelines.get(self.capture, dispatch.pipeline);
        let compute = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: pipeline, layout and sets are of this device and fit each other; the push constants fill the
        // layout's range; the range that an indirect dispatch reads was checked to be inside its memory.
        unsafe {
            raw.cmd_bind_pipeline(commands, compute, pipeline);
            for (number, set) in self.descriptors.sets(self.capture, self.regions, dispatch) {
                raw.cmd_bind_descriptor_sets(commands, compute, layout, number, &[set], &[]);
            }
            // They fill the layout's range, or the capture would be invalid.
            let constants = dispatch.push_constants.as_slice();
            if !constants.is_empty() {
                let stage = vk::ShaderStageFlags::COMPUTE;
                raw.cmd_push_constants(commands, layout, stage, 0, constants);
            }
            match dispatch.groups {
                Groups::Direct([x, y, z]) if dispatch.base == [0; 3] => {
                    raw.cmd_dispatch(commands, x, y, z)
                }
                Groups::Direct([x, y, z]) => {
                    let [a, b, c] = dispatch.base;
                    raw.cmd_dispatch_base(commands, a, b, c, x, y, z);
                }
                Groups::Indirect(range) => {
                    if let Some(place) = self.regions.buffer_place(self.capture, range) {
                        let buffer = self.memory.raw(place.region);
                        raw.cmd_dispatch_indirect(commands, buffer, place.offset);
                    }
                }
            }
        }
    }

    /// Records a barrier or a label.
    fn mark(&self, to: &CommandRecording, command: &Command, open_labels: &mut u32) {
        match command {
            // A serialised recording has a full barrier already.
            Command::Barrier(_) if self.serialised => {}
            Command::Barrier(barrier) => {
                barriers::record(
                    self.gpu,
                    to.commands,
                    self.capture,
                    self.regions,
                    self.memory,
                    barrier,
                );
            }
            Command::Label(Label::Begin(text)) => {
                *open_labels += 1;
                self.label(to.commands, text, false);
            }
            Command::Label(Label::Instant(text)) => self.label(to.commands, text, true),
            // A label that began before the window is not open here.
            Command::Label(Label::End) => {
                if let Some(left) = open_labels.checked_sub(1) {
                    *open_labels = left;
                    self.end_label(to.commands);
                }
            }
            _ => {}
        }
    }

    /// Records the begin of a label, or a label of a point in time if `instant`; nothing without the extension.
    fn label(&self, commands: vk::CommandBuffer, text: &str, instant: bool) {
        let Some(labels) = &self.gpu.labels else {
            return;
        };
        let text: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
        let text = std::ffi::CString::new(text).unwrap_or_default();
        let label = vk::DebugUtilsLabelEXT::default().label_name(&text);
        // SAFETY: the command buffer is being recorded; the text ends with a zero.
        unsafe {
            match instant {
                true => labels.cmd_insert_debug_utils_label(commands, &label),
                false => labels.cmd_begin_debug_utils_label(commands, &label),
            }
        }
    }

    fn end_label(&self, commands: vk::CommandBuffer) {
        if let Some(labels) = &self.gpu.labels {
            // SAFETY: the command buffer is being recorded, and a label is open in it.
            unsafe { labels.cmd_end_debug_utils_label(commands) };
        }
    }
}

impl SubmissionTimestamps {
    /// Returns the next free pair, and counts it as taken.
    fn take(&mut self) -> TimestampPair {
        self.next += 1;
        self.next - 1
    }
}
