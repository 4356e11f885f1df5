//! Implements `vkCmd*`: each call appends to its command buffer.

pub mod barrier;
pub mod dispatch;
pub mod graphics;
pub mod label;
pub mod performance_query;
pub mod secondary;
mod stages;
pub mod timestamp;
pub mod transfer;

use std::fmt::Display;

use ash::vk::{self, BufferUsageFlags, QueueFlags};

use crate::buffer::Buffer;
use crate::command::{Command, CommandBuffer, QueryRange, Recording, State};
use crate::config::config;
use crate::misuse;
use crate::object::{self, Body, Object};
use crate::query::QueryPool;

/// The places at which a command may be recorded.
#[derive(Clone, Copy)]
pub struct Allowed {
    /// The command needs a queue with any of these flags.
    on: QueueFlags,
    in_render_pass: bool,
}

const ANY: QueueFlags = QueueFlags::from_raw(
    QueueFlags::GRAPHICS.as_raw() | QueueFlags::COMPUTE.as_raw() | QueueFlags::TRANSFER.as_raw(),
);
const GRAPHICS_OR_COMPUTE: QueueFlags =
    QueueFlags::from_raw(QueueFlags::GRAPHICS.as_raw() | QueueFlags::COMPUTE.as_raw());

const ANYWHERE: Allowed = Allowed {
    on: ANY,
    in_render_pass: true,
};
const TRANSFER: Allowed = Allowed {
    on: ANY,
    in_render_pass: false,
};
const COMPUTE: Allowed = Allowed {
    on: QueueFlags::COMPUTE,
    in_render_pass: false,
};
const BINDING: Allowed = Allowed {
    on: GRAPHICS_OR_COMPUTE,
    in_render_pass: true,
};
pub const QUERY_POOL: Allowed = Allowed {
    on: GRAPHICS_OR_COMPUTE,
    in_render_pass: false,
};
pub const BEGIN_RENDER_PASS: Allowed = Allowed {
    on: QueueFlags::GRAPHICS,
    in_render_pass: false,
};
pub const IN_RENDER_PASS: Allowed = Allowed {
    on: QueueFlags::GRAPHICS,
    in_render_pass: true,
};

/// A call that records a command, while it is carried out.
pub struct Recorder<'a> {
    /// The name of the Vulkan function.
    pub call: &'a str,
    pub buffer: &'static Object<CommandBuffer>,
    pub recording: &'a mut Recording,
}

impl Recorder<'_> {
    pub fn report(&self, misuse: impl Display) {
        misuse::report(self.call, misuse);
    }

    /// Returns the object of a handle; a handle without one is a misuse.
    pub fn get<T: Body>(&self, handle: T::Handle) -> Option<&'static Object<T>> {
        object::get::<T>(self.call, handle)
    }

    #[inline]
    pub fn push(&mut self, command: Command) {
        self.recording.program.commands.push(command);
    }

    /// Returns the GPU address of a part of a buffer, which the submission will use.
    fn buffer_address(
        &mut self,
        buffer: vk::Buffer,
        offset: u64,
        bytes: u64,
        usage: BufferUsageFlags,
    ) -> Option<usize> {
        let buffer = self.get::<Buffer>(buffer)?;
        let address = buffer.device_address(self.call, offset, bytes, usage)?;
        self.recording.program.uses(&buffer.header);
        self.recording.program.uses(&buffer.memory()?.header);
        Some(address)
    }

    /// Returns a range of queries which the submission will use.
    fn query_range(&mut self, pool: vk::QueryPool, first: u32, count: u32) -> Option<QueryRange> {
        let pool = self.get::<QueryPool>(pool)?;
        pool.range(self.call, first, count)?;
        let range = QueryRange { pool, first, count };
        self.recording.program.uses_queries(range);
        Some(range)
    }
}

/// Lets `add` record a command into a command buffer, unless the call cannot go on.
#[inline]
pub unsafe fn record(
    call: &str,
    buffer: vk::CommandBuffer,
    allowed: Allowed,
    add: impl FnOnce(&mut Recorder<'_>),
) {
    if config().null {
        let buffer = object::get_unchecked::<CommandBuffer>(buffer);
        let recording = buffer.recording();
        return add(&mut Recorder {
            call,
            buffer,
            recording,
        });
    }
    let Some(buffer) = object::get::<CommandBuffer>(call, buffer) else {
        return;
    };
    let _entered = buffer.pool.sync.enter(call, "command pool");
    let recording = buffer.recording();
    let mut recorder = Recorder {
        call,
        buffer,
        recording,
    };
    let (pool, recording) = (buffer.pool, &recorder.recording);
    if recording.state != State::Recording {
        let state = recording.state;
        return recorder.report(format_args!("the command buffer is in the state {state:?}"));
    }
    if !pool.queue_flags.intersects(allowed.on) {
        let (family, flags) = (pool.family, pool.queue_flags);
        return recorder.report(format_args!("not on queue family {family} ({flags:?})"));
    }
    if recording.in_render_pass && !allowed.in_render_pass {
        recorder.report("inside a render pass");
    }
    if recording.suspended && acts(call) {
        recorder.report("between a suspended rendering and the one that resumes it");
    }
    add(&mut recorder);
}

/// Returns whether a command does work or synchronises, and not only sets up what follows.
fn acts(call: &str) -> bool {
    let without_action = ["Bind", "Push", "Label", "BeginRendering", "ExecuteCommands"];
    !without_action.iter().any(|part| call.contains(part))
}

/// Defines functions of commands that neither take time nor are checked.
macro_rules! ignored_commands {
    ($(fn $name:ident($($type:ty),*);)+) => {
        $(pub unsafe extern "system" fn $name(_: vk::CommandBuffer $(, _: $type)*) {})+
    };
}
use ignored_commands;

ignored_commands! {
    fn set_device_mask(u32);
}
