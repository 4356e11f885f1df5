//! Command buffers: their state while they are recorded, and until they are recorded anew.

use crate::api::families::Delivery;
use crate::api::functions::DeviceFunctions;
use crate::device::Device;
use crate::objects::descriptors::Set;
use crate::recorder::Mode;
use crate::timing::barriers;
use crate::timing::query_writer::QueryWriter;
use crate::timing::recording::Timing;
use ash::vk;
use gapscope_spool::event::{
    Command, CommonEvent, NO_QUERY, Object, Op, OpaqueWorkKind, VulkanEvent,
};
use gapscope_spool::ids;
use std::sync::Arc;

/// Commands that are kept before they go to the spool as one block.
const BLOCK: usize = 2048;

/// What is known of a command buffer.
pub struct CommandBuffer {
    pub device: &'static Device,
    /// The device's, kept here for the hot path.
    pub functions: &'static DeviceFunctions,
    handle: vk::CommandBuffer,
    family: u32,
    secondary: bool,
    name: String,
    /// The current recording; none also when it was recorded while recording was off.
    pub recording: ids::Recording,
    /// Dispatches and transfers get timestamps.
    times_commands: bool,
    serialised: bool,
    /// The recording may run twice at once: it is timed from outside.
    pub simultaneous: bool,
    pub in_render_pass: bool,
    commands: Vec<Command>,
    /// The bound compute kernel; none: not known.
    pub kernel: ids::Kernel,
    queries: QueryWriter,
    /// The query that must still be written for the opaque work that has started.
    open_opaque: u32,
    /// Timings of the secondaries that it executes.
    children: Vec<Arc<Timing>>,
    /// The sets with what has been pushed to them, by their index.
    pushed: Vec<(u32, Set)>,
    /// The queries of the finished recording.
    pub timing: Option<Arc<Timing>>,
}

impl CommandBuffer {
    pub fn new(
        device: &'static Device,
        handle: vk::CommandBuffer,
        family: u32,
        secondary: bool,
    ) -> CommandBuffer {
        CommandBuffer {
            device,
            functions: device.functions,
            handle,
            family,
            secondary,
            name: String::new(),
            recording: ids::Recording::NONE,
            times_commands: false,
            serialised: false,
            simultaneous: false,
            in_render_pass: false,
            commands: Vec::new(),
            kernel: ids::Kernel::NONE,
            queries: QueryWriter::new(device.recorder, device.queries, handle),
            open_opaque: NO_QUERY,
            children: Vec::new(),
            pushed: Vec::new(),
            timing: None,
        }
    }

    /// True while commands are to be recorded.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        self.recording != ids::Recording::NONE
    }

    /// Names the command buffer, and so its recordings from now on; gives the one that has started.
    pub fn set_name(&mut self, name: &str) -> Option<ids::Recording> {
        name.clone_into(&mut self.name);
        self.is_recorded().then_some(self.recording)
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

    /// The recording cannot run any more; pending instances keep its queries.
    pub fn forget_recording(&mut self) {
        self.timing = None;
        self.children.clear();
        self.pushed.clear();
        self.queries.reset();
        self.commands.clear();
        if self.is_recorded() {
            self.device.recorder.write(&VulkanEvent::RecordingEnd {
                recording: self.recording,
            });
            self.recording = ids::Recording::NONE;
        }
        self.times_commands = false;
        self.in_render_pass = false;
        self.open_opaque = NO_QUERY;
        self.kernel = ids::Kernel::NONE;
    }

    pub fn start_recording(&mut self, info: &vk::CommandBufferBeginInfo<'_>) {
        self.forget_recording();
        let recorder = self.device.recorder;
        if !recorder.recording() {
            return;
        }
        self.recording = recorder.ids.recording.next();
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
        self.queries.start(self.delivery(), self.simultaneous);
        let query = self.queries.start_pair();
        self.times_commands = query != NO_QUERY && recorder.mode != Mode::CommandBuffer;
        self.serialised = recorder.mode == Mode::DispatchSerialised && !inside;
        self.push(Command::new(Op::Begin, query, [0; 4]));
    }

    /// How the timestamps of the recording that starts are delivered.
    fn delivery(&self) -> Delivery {
        let family = self.device.families.get(self.family);
        match family.filter(|_| !self.in_render_pass) {
            // Timed from outside; what is inside is known of instances that run alone. A copy must not wait for a
            // query that an instance on another queue may reset.
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
            Some(family) => family.delivery,
            None => Delivery::None,
        }
    }

    pub fn finish_recording(&mut self) {
        if !self.is_recorded() {
            return;
        }
        self.close_opaque();
        let query = if self.queries.has_queries() {
            1
        } else {
            NO_QUERY
        };
        self.push(Command::new(Op::End, query, [0; 4]));
        self.write_commands();
        let children = std::mem::take(&mut self.children);
        // A secondary with timestamps inside is not for simultaneous use, and so its primary is not either.
        self.simultaneous &= children.is_empty();
        if let Some(timing) = self.queries.finish(self.recording, children) {
            self.timing = Some(timing);
        }
    }

    /// Starts the timing of a command; gives its queries.
    #[inline]
    pub fn start_timing(&mut self) -> u32 {
        if !self.times_commands || self.in_render_pass {
            return NO_QUERY;
        }
        self.queries.start_pair()
    }

    /// Ends the timing that started last.
    #[inline]
    pub fn end_timing(&mut self, query: u32) {
        if query == NO_QUERY {
            return;
        }
        self.queries.end_pair();
        if self.serialised {
            // SAFETY: timed commands are outside render passes.
            unsafe { barriers::between_commands(self.functions, self.handle) };
        }
    }

    /// Starts work that is timed as a whole, such as a render pass.
    pub fn start_opaque(&mut self, kind: OpaqueWorkKind) {
        self.close_opaque();
        let query = self.start_timing();
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
            self.end_timing(self.open_opaque);
            self.open_opaque = NO_QUERY;
        }
    }

    /// A secondary command buffer is executed here; `query` encloses it where it has no timestamps.
    pub fn execute(&mut self, secondary: &CommandBuffer, query: u32) {
        self.push(Command::new(
            Op::Execute,
            query,
            [secondary.recording.0, 0, 0, 0],
        ));
        self.children.extend(secondary.timing.clone());
    }

    /// The set that is pushed at an index.
    pub fn pushed_set(&mut self, index: u32) -> &mut Set {
        let found = match self.pushed.iter().position(|(set, _)| *set == index) {
            Some(found) => found,
            None => {
                self.pushed.push((index, Set::default()));
                self.pushed.len() - 1
            }
        };
        &mut self.pushed[found].1
    }
}
