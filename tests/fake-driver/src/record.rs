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

use ash::vk::{self, BufferUsageFlags, QueueFlags};

use crate::buffer::Buffer;
use crate::command::{CommandBuffer, Recording, State};
use crate::config::config;
use crate::misuse;
use crate::object::{self, Object};

/// Where a command may be recorded.
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

#[inline]
pub unsafe fn record(
    call: &str,
    buffer: vk::CommandBuffer,
    allowed: Allowed,
    add: impl FnOnce(&'static Object<CommandBuffer>, &mut Recording),
) {
    if config().null {
        let buffer = object::get_unchecked::<CommandBuffer>(buffer);
        return add(buffer, buffer.recording());
    }
    let Some(buffer) = object::get::<CommandBuffer>(call, buffer) else {
        return;
    };
    let _entered = buffer.pool.sync.enter(call, "command pool");
    let recording = buffer.recording();
    if recording.state != State::Recording {
        misuse::report(
            call,
            format_args!("the command buffer is in the state {:?}", recording.state),
        );
        return;
    }
    if !buffer.pool.queue_flags.intersects(allowed.on) {
        let (family, flags) = (buffer.pool.family, buffer.pool.queue_flags);
        misuse::report(
            call,
            format_args!("not on queue family {family} ({flags:?})"),
        );
        return;
    }
    if recording.in_render_pass && !allowed.in_render_pass {
        misuse::report(call, "inside a render pass");
    }
    if recording.suspended && acts(call) {
        misuse::report(
            call,
            "between a suspended rendering and the one that resumes it",
        );
    }
    add(buffer, recording);
}

fn acts(call: &str) -> bool {
    let without_action = ["Bind", "Push", "Label", "BeginRendering", "ExecuteCommands"];
    !without_action.iter().any(|part| call.contains(part))
}

/// Returns the GPU address of a part of a buffer, which the submission will use.
fn buffer_address(
    call: &str,
    recording: &mut Recording,
    buffer: vk::Buffer,
    offset: u64,
    bytes: u64,
    usage: BufferUsageFlags,
) -> Option<usize> {
    let buffer = object::get::<Buffer>(call, buffer)?;
    let address = buffer.device_address(call, offset, bytes, usage)?;
    recording.program.uses(&buffer.header);
    recording.program.uses(&buffer.memory()?.header);
    Some(address)
}

pub unsafe extern "system" fn set_device_mask(_: vk::CommandBuffer, _: u32) {}
