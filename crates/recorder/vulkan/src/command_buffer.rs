//! Command buffers: their state between begin and end.

mod slots;

pub use slots::state;

use crate::barriers;
use crate::bindings::Set;
use crate::device::{self, Device};
use crate::queries::{Chunk, Delivery};
use crate::recorder::{Mode, next_id};
use crate::timing::Timing;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{Command, CommonEvent, LossKind, NO_QUERY, Object, Op, VulkanEvent};
use gapscope_spool::hook::guard;
use gapscope_spool::ids;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Commands that are kept before they go to the spool as one block.
const BLOCK: usize = 2048;

/// What is known of a command buffer while it is recorded, and until it is recorded anew.
pub struct CommandBuffer {
    pub device: &'static Device,
    pub handle: vk::CommandBuffer,
    family: u32,
    secondary: bool,
    name: String,
    /// Id of the current recording; 0: none, or recorded while recording was off.
    pub recording: ids::Recording,
    /// Dispatches and transfers get timestamps.
    pub times_commands: bool,
    serialised: bool,
    /// The recording may run twice at once: it is timed from outside.
    pub simultaneous: bool,
    delivery: Delivery,
    pub in_render_pass: bool,
    commands: Vec<Command>,
    /// Id of the bound compute kernel.
    pub kernel: ids::Kernel,
    chunks: Vec<(Chunk, u32)>,
    /// Pool, first unused query and number of unused queries of the newest chunk.
    open_pool: vk::QueryPool,
    open_next: u32,
    open_left: u32,
    /// Index among the recording's queries of the next one.
    next_query: u32,
    /// The query that must still be written for the opaque work that has begun.
    open_opaque: u32,
    children: Vec<Arc<Timing>>,
    /// What has been pushed to each set.
    pub pushed: Vec<(u32, Set)>,
    /// The queries of the finished recording.
    pub timing: Option<Arc<Timing>>,
}

impl CommandBuffer {
    pub fn add(device: &'static Device, handle: vk::CommandBuffer, family: u32, secondary: bool) {
        let state = CommandBuffer {
            device,
            handle,
            family,
            secondary,
            name: String::new(),
            recording: ids::Recording::NONE,
            times_commands: false,
            serialised: false,
            simultaneous: false,
            delivery: Delivery::None,
            in_render_pass: false,
            commands: Vec::new(),
            kernel: ids::Kernel::NONE,
            chunks: Vec::new(),
            open_pool: vk::QueryPool::null(),
            open_next: 0,
            open_left: 0,
            next_query: 0,
            open_opaque: NO_QUERY,
            children: Vec::new(),
            pushed: Vec::new(),
            timing: None,
        };
        slots::put(handle, state);
    }

    /// # Safety
    /// The command buffer is being freed by the program.
    pub unsafe fn remove(handle: vk::CommandBuffer) {
        // SAFETY: as the caller promises, nobody else uses the command buffer.
        if let Some(mut state) = unsafe { slots::take(handle) } {
            state.forget_recording();
        }
    }

    /// True while commands shall be written down.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        self.recording != ids::Recording::NONE
    }

    #[inline]
    pub fn push(&mut self, command: Command) {
        self.commands.push(command);
        if self.commands.len() >= BLOCK {
            self.write_commands();
        }
    }

    #[cold]
    fn write_commands(&mut self) {
        if !self.commands.is_empty() {
            self.device.recorder.write(&VulkanEvent::Commands {
                recording: self.recording,
                commands: bytemuck::cast_slice(&self.commands),
            });
            self.commands.clear();
        }
    }

    /// The recording can run no more; pending instances keep its queries.
    pub fn forget_recording(&mut self) {
        self.timing = None;
        self.children.clear();
        self.pushed.clear();
        for (chunk, used) in self.chunks.drain(..) {
            // Begun and never ended: a timing gives its chunks back when dropped.
            drop(Timing::new(
                self.device,
                ids::Recording::NONE,
                Delivery::None,
                vec![(chunk, used)],
                Vec::new(),
            ));
        }
        self.commands.clear();
        if self.is_recorded() {
            self.device.recorder.write(&VulkanEvent::RecordingEnd {
                recording: self.recording,
            });
            self.recording = ids::Recording::NONE;
        }
        self.times_commands = false;
        self.in_render_pass = false;
        self.open_left = 0;
        self.next_query = 0;
        self.open_opaque = NO_QUERY;
        self.kernel = ids::Kernel::NONE;
    }

    fn start_recording(&mut self, info: &vk::CommandBufferBeginInfo<'_>) {
        self.forget_recording();
        let recorder = self.device.recorder;
        if !recorder.recording() {
            return;
        }
        self.recording = next_id(&recorder.ids.recording);
        if !self.name.is_empty() {
            recorder.write(&CommonEvent::Name {
                object: Object::Recording(self.recording),
                name: &self.name,
            });
        }
        self.simultaneous = info
            .flags
            .contains(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
        let inside = self.secondary
            && info
                .flags
                .contains(vk::CommandBufferUsageFlags::RENDER_PASS_CONTINUE);
        self.in_render_pass = inside;
        let family = self.device.family(self.family);
        self.delivery = match family.filter(|_| !inside) {
            // Timed from outside; what is inside is known of instances that run alone. A copy must not wait for a
            // query that an instance on another queue may reset.
            Some(family) if self.simultaneous => {
                let inner = !self.secondary && recorder.mode != Mode::CommandBuffer;
                match family.delivery {
                    Delivery::Asked if inner && family.resets_queries() => Delivery::Asked,
                    Delivery::Copied if inner && self.device.has_one_queue() => Delivery::Copied,
                    _ => Delivery::None,
                }
            }
            Some(family) => family.delivery,
            None => Delivery::None,
        };
        let query = self.reserve_pair();
        self.times_commands = query != NO_QUERY && recorder.mode != Mode::CommandBuffer;
        self.serialised = recorder.mode == Mode::DispatchSerialised && !inside;
        self.write_begin(query);
        self.push(Command::new(Op::Begin, query, [0; 4]));
    }

    fn finish_recording(&mut self) {
        if !self.is_recorded() {
            return;
        }
        self.close_opaque();
        let query = if self.next_query > 0 { 1 } else { NO_QUERY };
        self.push(Command::new(Op::End, query, [0; 4]));
        self.write_commands();
        if let Some((chunk, _)) = self.chunks.first() {
            let (pool, end) = (chunk.pool, chunk.first + 1);
            self.write_timestamp(vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, end);
            if let Some(last) = self.chunks.last_mut() {
                last.1 = last.0.count - self.open_left;
            }
            if self.delivery == Delivery::Copied {
                for (chunk, used) in &self.chunks {
                    // SAFETY: the command buffer is being recorded outside a render pass, and every reserved query
                    // has been written.
                    unsafe { chunk.copy_results(self.device, self.handle, *used) };
                }
                // SAFETY: as above.
                unsafe { barriers::to_host(self.device, self.handle) };
            }
        }
        self.open_left = 0;
        let chunks = std::mem::take(&mut self.chunks);
        let children = std::mem::take(&mut self.children);
        // A secondary with timestamps inside is not for simultaneous use, and so its primary is not either.
        self.simultaneous &= children.is_empty();
        if !chunks.is_empty() || !children.is_empty() {
            let timing = Timing::new(self.device, self.recording, self.delivery, chunks, children);
            self.timing = Some(Arc::new(timing));
            self.device.has_queries.store(true, Relaxed);
        }
    }

    /// Two queries, by the index of the first among the recording's; [`NO_QUERY`] where it cannot be timed. They must
    /// both be written: the copy of results waits for them.
    #[inline]
    fn reserve_pair(&mut self) -> u32 {
        if self.open_left < 2 && !self.open_chunk() {
            return NO_QUERY;
        }
        let query = self.next_query;
        self.next_query += 2;
        self.open_next += 2;
        self.open_left -= 2;
        query
    }

    #[cold]
    fn open_chunk(&mut self) -> bool {
        if self.delivery == Delivery::None || self.in_render_pass {
            return false;
        }
        let Some(mut chunk) = self
            .device
            .queries
            .take(self.device, self.chunks.is_empty())
        else {
            self.device.recorder.loss(
                LossKind::DispatchTimes,
                1,
                "no memory for timestamps could be had",
            );
            return false;
        };
        // SAFETY: the command buffer is being recorded outside a render pass; the chunk is ours alone.
        unsafe {
            match self.delivery {
                Delivery::Asked if !self.simultaneous => chunk.make_reset(self.device),
                _ => {
                    chunk.reset_in(self.device, self.handle);
                    // Whenever the command buffer runs, whether or not that is recorded, its queries are written.
                    chunk.reset = false;
                }
            }
        }
        if let Some(last) = self.chunks.last_mut() {
            last.1 = last.0.count;
        }
        self.open_pool = chunk.pool;
        self.open_next = chunk.first;
        self.open_left = chunk.count;
        self.chunks.push((chunk, 0));
        true
    }

    #[inline]
    fn write_timestamp(&self, stage: vk::PipelineStageFlags, pool: vk::QueryPool, query: u32) {
        if let Some(write) = self.device.next.cmd_write_timestamp {
            // SAFETY: the query has been reset in this recording and is written once.
            unsafe { write(self.handle, stage, pool, query) };
        }
    }

    /// Writes the first timestamp of the pair that has just been reserved.
    #[inline]
    fn write_begin(&self, query: u32) {
        if query != NO_QUERY {
            self.write_timestamp(
                vk::PipelineStageFlags::TOP_OF_PIPE,
                self.open_pool,
                self.open_next - 2,
            );
        }
    }

    /// Begins the timing of a command; gives its queries.
    #[inline]
    pub fn begin_timed(&mut self) -> u32 {
        if !self.times_commands || self.in_render_pass {
            return NO_QUERY;
        }
        let query = self.reserve_pair();
        self.write_begin(query);
        query
    }

    /// Ends the timing that began last.
    #[inline]
    pub fn end_timed(&mut self, query: u32) {
        if query == NO_QUERY {
            return;
        }
        self.write_timestamp(
            vk::PipelineStageFlags::BOTTOM_OF_PIPE,
            self.open_pool,
            self.open_next - 1,
        );
        if self.serialised {
            // SAFETY: timed commands are outside render passes.
            unsafe { barriers::between_commands(self.device, self.handle) };
        }
    }

    /// Begins work that is timed as a whole, such as a render pass.
    pub fn begin_opaque(&mut self, kind: gapscope_spool::event::OpaqueWorkKind) {
        self.close_opaque();
        let query = self.begin_timed();
        self.push(Command::new(
            Op::OpaqueBegin,
            query,
            [kind.number().into(), 0, 0, 0],
        ));
        self.open_opaque = query;
    }

    /// Ends it.
    pub fn end_opaque(&mut self) {
        let query = self.open_opaque;
        let end = if query == NO_QUERY {
            NO_QUERY
        } else {
            query + 1
        };
        self.push(Command::new(Op::OpaqueEnd, end, [0; 4]));
        self.close_opaque();
    }

    fn close_opaque(&mut self) {
        if self.open_opaque != NO_QUERY {
            // Nothing else is timed meanwhile, so the pair is still the newest.
            self.end_timed(self.open_opaque);
            self.open_opaque = NO_QUERY;
        }
    }

    /// Secondary command buffers are executed here.
    pub fn execute(&mut self, secondaries: &[vk::CommandBuffer], query: u32) {
        for (index, secondary) in secondaries.iter().enumerate() {
            // SAFETY: the program may not change a secondary while it is recorded into a primary.
            let Some(secondary) = (unsafe { state(*secondary) }) else {
                continue;
            };
            let query = if index == 0 { query } else { NO_QUERY };
            self.push(Command::new(
                Op::Execute,
                query,
                [secondary.recording.0, 0, 0, 0],
            ));
            self.children.extend(secondary.timing.clone());
        }
    }

    /// True when the inside of one of these has no timestamps.
    pub fn needs_time_around(secondaries: &[vk::CommandBuffer]) -> bool {
        // SAFETY: as in `execute`.
        secondaries
            .iter()
            .any(|s| unsafe { state(*s) }.is_some_and(|s| s.timing.is_none()))
    }
}

pub unsafe extern "system" fn begin_command_buffer(
    cb: vk::CommandBuffer,
    info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    // SAFETY: the program's own call, which gives it the command buffer.
    unsafe {
        let Some((_, call)) = device::with(cb, |f| f.begin_command_buffer) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(cb, info);
        if result == vk::Result::SUCCESS {
            guard(|| {
                if let Some(state) = state(cb) {
                    state.start_recording(&*info);
                }
            });
        }
        result
    }
}

pub unsafe extern "system" fn end_command_buffer(cb: vk::CommandBuffer) -> vk::Result {
    // SAFETY: the program's own call, which gives it the command buffer.
    unsafe {
        let Some((_, call)) = device::with(cb, |f| f.end_command_buffer) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| {
            if let Some(state) = state(cb) {
                state.finish_recording();
            }
        });
        call(cb)
    }
}

pub unsafe extern "system" fn reset_command_buffer(
    cb: vk::CommandBuffer,
    flags: vk::CommandBufferResetFlags,
) -> vk::Result {
    // SAFETY: the program's own call, which gives it the command buffer.
    unsafe {
        let Some((_, call)) = device::with(cb, |f| f.reset_command_buffer) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| {
            if let Some(state) = state(cb) {
                state.forget_recording();
            }
        });
        call(cb, flags)
    }
}

/// Names a command buffer: its recordings from now on, and the one that has begun, which is given back.
pub fn name(handle: u64, name: &str) -> Option<Object> {
    // SAFETY: naming an object is externally synchronised like recording it.
    let state = unsafe { state(vk::CommandBuffer::from_raw(handle)) }?;
    name.clone_into(&mut state.name);
    state
        .is_recorded()
        .then_some(Object::Recording(state.recording))
}
