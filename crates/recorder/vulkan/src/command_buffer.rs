//! Keeps the state of a command buffer: while the program records commands into it, they are timed and collected as
//! a command recording; the state is kept until the program records anew.
//!
//! The order of calls: `start_recording` at `vkBeginCommandBuffer`; for each command `before_action`,
//! `start_timing` or [`Effect`]'s `before_effect` before the next layer's function, and `push`, `end_timing` or
//! `after_effect` after it; `finish_recording` at `vkEndCommandBuffer`. Times are pairs of timestamp queries: a
//! query is named by its index in the recording, its pair's end by that index plus 1; [`NO_QUERY`] means untimed.

mod effects;

pub use effects::Effect;

use crate::api::families::Delivery;
use crate::api::functions::DeviceFunctions;
use crate::api::opaque::OpaqueFunctions;
use crate::device::Device;
use crate::objects::descriptors::Bindings;
use crate::recorder::Mode;
use crate::timing::barriers;
use crate::timing::command_recording::Timing;
use crate::timing::counting::Counting;
use crate::timing::query_writer::QueryWriter;
use ash::vk;
use gapscope_spool::event::{Command, CommonEvent, LossKind, NO_QUERY, Object, Op, VulkanEvent};
use gapscope_spool::ids;
use gapscope_vulkan_layer::command_pools::CommandPool;
use std::sync::Arc;

/// The number of commands that go to the spool as one block.
const BLOCK_COMMANDS: usize = 2048;

/// The state of a command buffer.
pub struct CommandBuffer {
    pub device: &'static Device,
    /// The device's functions, kept here for the hot path.
    pub functions: &'static DeviceFunctions,
    /// The next layer's functions of commands that are recorded by their effect only.
    pub opaque: &'static OpaqueFunctions,
    handle: vk::CommandBuffer,
    /// The index of the queue family of its command pool.
    family: u32,
    /// Whether its pool is for protected memory.
    protected: bool,
    /// Whether the command buffer is a secondary one, which primary ones run.
    secondary: bool,
    /// The program's name; empty if it has given none.
    name: String,
    /// Id of the current command recording; none if it was started while the recorder was off.
    pub recording: ids::CommandRecording,
    /// Whether dispatches and transfers get timestamps.
    times_commands: bool,
    /// Whether a barrier follows each timed command, so that commands do not overlap.
    serialised: bool,
    /// Whether the command recording may run twice at once, and so is timed from outside.
    pub simultaneous: bool,
    /// Whether the command buffer is inside a scope, such as a render pass, that is timed as a whole.
    pub in_scope: bool,
    /// Whether a command that acts or synchronises has been recorded. The start is timed before the first one.
    acted: bool,
    /// Whether the first such command resumes a rendering that another command buffer has suspended.
    pub resumes: bool,
    /// Whether the open rendering will be suspended at its end.
    suspending: bool,
    /// Whether a rendering is suspended behind the last command: until it is resumed nothing may be added.
    pub suspended: bool,
    /// The commands that have not been written to the spool.
    commands: Vec<Command>,
    /// Id of the bound compute kernel; none if it is not known.
    pub kernel: ids::Kernel,
    queries: QueryWriter,
    /// The performance query (hardware counters) that counts from the first command that acts.
    counting: Option<Counting>,
    /// The first timestamp query of opaque work (timed as a whole) that has not ended, [`NO_QUERY`] where that work
    /// is untimed; `None` where no opaque work is open.
    open_opaque: Option<u32>,
    /// The timings of the secondary command buffers that this one executes.
    children: Vec<Arc<Timing>>,
    /// The greatest index at which a set has been bound, plus 1.
    bound_sets: u32,
    /// The descriptors that have been pushed to each set, by its index.
    pushed: Vec<(u32, Bindings)>,
    /// The queries of the finished command recording.
    pub timing: Option<Arc<Timing>>,
}

impl CommandBuffer {
    pub fn new(
        device: &'static Device,
        handle: vk::CommandBuffer,
        pool: &CommandPool,
        secondary: bool,
    ) -> CommandBuffer {
        CommandBuffer {
            device,
            functions: device.functions,
            opaque: device.opaque,
            handle,
            family: pool.family,
            protected: pool.is_protected,
            secondary,
            name: String::new(),
            recording: ids::CommandRecording::NONE,
            times_commands: false,
            serialised: false,
            simultaneous: false,
            in_scope: false,
            acted: false,
            resumes: false,
            suspending: false,
            suspended: false,
            commands: Vec::new(),
            kernel: ids::Kernel::NONE,
            queries: QueryWriter::new(device.recorder, device.queries, handle),
            counting: None,
            open_opaque: None,
            children: Vec::new(),
            bound_sets: 0,
            pushed: Vec::new(),
            timing: None,
        }
    }

    /// Returns whether commands are to be recorded.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        self.recording != ids::CommandRecording::NONE
    }

    /// Names the command buffer and its later command recordings; returns the id of the current recording, or
    /// `None` if there is none.
    pub fn set_name(&mut self, name: &str) -> Option<ids::CommandRecording> {
        name.clone_into(&mut self.name);
        self.is_recorded().then_some(self.recording)
    }

    /// Appends a command to the recording; whole blocks go to the spool.
    #[inline]
    pub fn push(&mut self, command: Command) {
        self.commands.push(command);
        if self.commands.len() >= BLOCK_COMMANDS {
            self.write_commands();
        }
    }

    /// Writes the collected commands to the spool, and empties the list.
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

    /// Forgets the command recording, which cannot run any more, and writes its end. Pending instances (executions)
    /// keep its queries.
    pub fn forget_recording(&mut self) {
        self.timing = None;
        self.counting = None;
        self.children.clear();
        self.bound_sets = 0;
        self.pushed.clear();
        self.queries.reset();
        self.commands.clear();
        if self.is_recorded() {
            self.device
                .recorder
                .write(&VulkanEvent::CommandRecordingEnd {
                    recording: self.recording,
                });
            self.recording = ids::CommandRecording::NONE;
        }
        self.times_commands = false;
        self.in_scope = false;
        self.acted = false;
        self.resumes = false;
        self.suspended = false;
        self.open_opaque = None;
        self.kernel = ids::Kernel::NONE;
    }

    /// Forgets the former command recording and, while the recorder is on, starts a new one.
    pub fn start_recording(&mut self, info: &vk::CommandBufferBeginInfo<'_>) {
        self.forget_recording();
        let recorder = self.device.recorder;
        if !recorder.recording() {
            return;
        }
        self.recording = recorder.ids.recording.next();
        if !self.name.is_empty() {
            recorder.write(&CommonEvent::Name {
                object: Object::CommandRecording(self.recording),
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
        self.in_scope = inside;
        let delivery = self.delivery();
        self.queries.start(delivery, self.simultaneous);
        // The first pair is started before the first command that acts.
        let query = match delivery {
            Delivery::None => NO_QUERY,
            _ => 0,
        };
        self.times_commands = query != NO_QUERY && recorder.mode != Mode::CommandBuffer;
        self.serialised = recorder.mode == Mode::DispatchSerialised && !inside;
        self.push(Command::new(Op::Begin, query, [0; 4]));
    }

    /// Returns how the timestamps of the command recording that starts reach the host; [`Delivery::None`] where none
    /// are written inside.
    fn delivery(&self) -> Delivery {
        let family = self.device.families.get(self.family);
        match family.filter(|_| !self.in_scope) {
            // The command recording is timed from outside; timestamps inside are known for instances that run alone.
            // A copy must not wait for a query that an instance on another queue may reset.
            Some(family) if self.simultaneous => {
                let inside = !self.secondary && self.device.recorder.mode != Mode::CommandBuffer;
                match family.delivery {
                    Delivery::Asked if inside && family.resets_queries() => Delivery::Asked,
                    Delivery::Copied if inside && self.device.families.have_one_queue() => {
                        Delivery::Copied
                    }
                    _ => Delivery::None,
                }
            }
            Some(family) if self.protected && family.delivery == Delivery::Copied => Delivery::None,
            Some(family) => family.delivery,
            None => Delivery::None,
        }
    }

    /// Ends the command recording: writes its remaining commands, and keeps its queries in `timing` for submissions.
    pub fn finish_recording(&mut self) {
        if !self.is_recorded() {
            return;
        }
        if self.suspended {
            // The last timestamp would come between the suspended rendering and the one that resumes it.
            self.open_opaque = self.open_opaque.map(|_| NO_QUERY);
        } else if !self.acted {
            self.queries.start_pair();
        }
        if self.open_opaque.is_some() {
            self.end_opaque();
        }
        let whole = !self.suspended;
        let query = if whole && self.queries.has_queries() {
            1
        } else {
            NO_QUERY
        };
        self.push(Command::new(Op::End, query, [0; 4]));
        self.write_commands();
        let children = std::mem::take(&mut self.children);
        // A secondary command buffer with timestamps inside is not for simultaneous use, so its primary is not
        // either.
        self.simultaneous &= children.is_empty();
        let counting = self.counting.take();
        let timing = (self.queries).finish(self.recording, children, counting, whole);
        if let Some(timing) = timing {
            self.timing = Some(timing);
        }
    }

    /// Prepares for a command that acts or synchronises: before the first one, starts counting and the pair of
    /// queries that times the whole command recording.
    #[inline]
    pub fn before_action(&mut self) {
        if !self.acted {
            self.acted = true;
            if self.device.counters.is_some() {
                self.start_counting();
            }
            self.queries.start_pair();
        }
    }

    /// Starts the performance query, where the family counts; a command buffer that cannot be counted is a loss.
    #[cold]
    fn start_counting(&mut self) {
        let Some(counters) = self.device.counters else {
            return;
        };
        // Only times tell when a query can be read.
        if self.secondary || self.in_scope || self.delivery() == Delivery::None {
            return;
        }
        if self.simultaneous || self.protected {
            let reason = "in command buffers that may run twice at once, or are protected, nothing is counted";
            return self
                .device
                .recorder
                .loss(LossKind::CounterSamples, 1, reason);
        }
        self.counting = counters.take(self.family);
        if let Some(counting) = &self.counting {
            // SAFETY: the command buffer is being recorded outside of a render pass.
            unsafe { counting.begin(self.handle) };
        }
    }

    /// Ends counting before a command that must not be counted; the values are then not used.
    pub fn cut_counting(&mut self) {
        if let Some(counting) = &mut self.counting {
            // SAFETY: callers are outside of render passes.
            unsafe { counting.cut(self.handle) };
        }
    }

    /// Starts the timing of a command and returns its first query; [`NO_QUERY`] where it gets no time of its own.
    #[inline]
    pub fn start_timing(&mut self) -> u32 {
        self.before_action();
        if !self.times_commands || self.in_scope || self.suspended {
            return NO_QUERY;
        }
        self.queries.start_pair()
    }

    /// Ends the timing that was started last and, where dispatches are serialised, adds a barrier.
    #[inline]
    pub fn end_timing(&mut self, query: u32) {
        if query == NO_QUERY {
            return;
        }
        self.queries.end_pair();
        if self.serialised {
            // SAFETY: timed commands are outside render passes.
            unsafe { barriers::between_commands(self.device.next, self.handle) };
        }
    }

    /// Records that a set is bound at an index.
    pub fn bind_set(&mut self, index: u32, content: ids::BindingContent) {
        self.bound_sets = self.bound_sets.max(index.saturating_add(1));
        self.push(Command::new(
            Op::BindSet,
            NO_QUERY,
            [index, content.0, 0, 0],
        ));
    }

    /// Records that a descriptor buffer or heap, whose content is not known to the recorder, is bound at an index.
    pub fn forget_set(&mut self, index: u32) {
        self.push(Command::new(Op::BindSet, NO_QUERY, [index, 0, 1, 0]));
    }

    /// Records [`Self::forget_set`] for all indices that have been bound so far, at least for the first.
    pub fn forget_sets(&mut self) {
        for index in 0..self.bound_sets.max(1) {
            self.forget_set(index);
        }
    }

    /// Returns the descriptors pushed at an index; empty ones if none were.
    pub fn pushed_set(&mut self, index: u32) -> &mut Bindings {
        let at = match self.pushed.iter().position(|(set, _)| *set == index) {
            Some(at) => at,
            None => {
                self.pushed.push((index, Bindings::default()));
                self.pushed.len() - 1
            }
        };
        &mut self.pushed[at].1
    }
}
