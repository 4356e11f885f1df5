//! Simulates command pools and the life of command buffers; `record` fills them.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex};

use ash::vk::{self, Handle};

use crate::command::{CommandBuffer, CommandPool, Recording, State};
use crate::config::config;
use crate::device::{self, lock};
use crate::external_sync::ExternalSync;
use crate::object::{self, Object};
use crate::{chain, misuse};

pub unsafe extern "system" fn create_pool(
    device: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::CommandPool,
) -> vk::Result {
    const CALL: &str = "vkCreateCommandPool";
    let index = (*info).queue_family_index;
    let Some(family) = config().families.get(index as usize) else {
        misuse::report(CALL, format_args!("there is no queue family {index}"));
        return vk::Result::ERROR_UNKNOWN;
    };
    device::create(CALL, device, out, |device| CommandPool {
        family: index,
        queue_flags: family.flags,
        timestamp_bits: family.timestamp_bits,
        enabled: device.enabled,
        flags: (*info).flags,
        buffers: Mutex::default(),
        sync: ExternalSync::default(),
    })
}

pub unsafe extern "system" fn destroy_pool(
    device: vk::Device,
    pool: vk::CommandPool,
    _: *const vk::AllocationCallbacks<'_>,
) {
    const CALL: &str = "vkDestroyCommandPool";
    let Some((_, pool)) = device::destroy::<CommandPool>(CALL, device, pool) else {
        return;
    };
    let _entered = pool.sync.enter(CALL, "command pool");
    for buffer in lock(&pool.buffers).drain(..) {
        free(CALL, buffer);
    }
}

pub unsafe extern "system" fn reset_pool(
    _: vk::Device,
    pool: vk::CommandPool,
    _: vk::CommandPoolResetFlags,
) -> vk::Result {
    const CALL: &str = "vkResetCommandPool";
    let Some(pool) = object::get::<CommandPool>(CALL, pool) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let _entered = pool.sync.enter(CALL, "command pool");
    for buffer in lock(&pool.buffers).iter() {
        refuse_pending(CALL, buffer);
        buffer.recording().reset();
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn trim_pool(
    _: vk::Device,
    pool: vk::CommandPool,
    _: vk::CommandPoolTrimFlags,
) {
    object::get::<CommandPool>("vkTrimCommandPool", pool);
}

pub unsafe extern "system" fn allocate(
    _: vk::Device,
    info: *const vk::CommandBufferAllocateInfo<'_>,
    out: *mut vk::CommandBuffer,
) -> vk::Result {
    const CALL: &str = "vkAllocateCommandBuffers";
    let info = &*info;
    let Some(pool) = object::get::<CommandPool>(CALL, info.command_pool) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let _entered = pool.sync.enter(CALL, "command pool");
    for index in 0..info.command_buffer_count as usize {
        let handle = object::create(CommandBuffer {
            pool,
            level: info.level,
            submitted_once: AtomicBool::new(false),
            recording: UnsafeCell::default(),
        });
        lock(&pool.buffers).extend(object::get::<CommandBuffer>(CALL, handle));
        *out.add(index) = handle;
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn free_buffers(
    _: vk::Device,
    pool: vk::CommandPool,
    count: u32,
    buffers: *const vk::CommandBuffer,
) {
    const CALL: &str = "vkFreeCommandBuffers";
    let Some(pool) = object::get::<CommandPool>(CALL, pool) else {
        return;
    };
    let _entered = pool.sync.enter(CALL, "command pool");
    for &buffer in chain::slice(buffers, count)
        .iter()
        .filter(|buffer| !buffer.is_null())
    {
        let Some(buffer) = object::get::<CommandBuffer>(CALL, buffer) else {
            continue;
        };
        if !std::ptr::eq(buffer.pool, pool) {
            misuse::report(CALL, "the command buffer belongs to another pool");
            continue;
        }
        lock(&pool.buffers).retain(|&other| !std::ptr::eq(other, buffer));
        free(CALL, buffer);
    }
}

/// The memory of the command recording is freed; the object stays, so that its handle is recognised.
unsafe fn free(call: &str, buffer: &'static Object<CommandBuffer>) {
    let handle = vk::CommandBuffer::from_raw(std::ptr::from_ref(buffer) as u64);
    object::destroy::<CommandBuffer>(call, handle);
    *buffer.recording() = Recording::default();
}

fn refuse_pending(call: &str, buffer: &Object<CommandBuffer>) {
    if buffer.header.is_pending() {
        misuse::report(call, "the command buffer is submitted and not complete");
    }
}

pub unsafe extern "system" fn begin(
    buffer: vk::CommandBuffer,
    info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    const CALL: &str = "vkBeginCommandBuffer";
    let Some(buffer) = object::get::<CommandBuffer>(CALL, buffer) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let _entered = buffer.pool.sync.enter(CALL, "command pool");
    refuse_pending(CALL, buffer);
    let recording = buffer.recording();
    if recording.state == State::Recording {
        misuse::report(CALL, "the command buffer is being recorded");
    }
    if recording.state == State::Executable {
        require_individual_reset(CALL, buffer.pool);
    }
    recording.reset();
    recording.state = State::Recording;
    recording.usage = (*info).flags;
    let continues = vk::CommandBufferUsageFlags::RENDER_PASS_CONTINUE;
    recording.in_render_pass =
        buffer.level == vk::CommandBufferLevel::SECONDARY && recording.usage.contains(continues);
    buffer.submitted_once.store(false, Release);
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn end(buffer: vk::CommandBuffer) -> vk::Result {
    const CALL: &str = "vkEndCommandBuffer";
    let Some(buffer) = object::get::<CommandBuffer>(CALL, buffer) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let _entered = buffer.pool.sync.enter(CALL, "command pool");
    let recording = buffer.recording();
    if recording.state != State::Recording {
        misuse::report(
            CALL,
            format_args!("the command buffer is in the state {:?}", recording.state),
        );
        return vk::Result::ERROR_UNKNOWN;
    }
    if recording.in_render_pass && buffer.level == vk::CommandBufferLevel::PRIMARY {
        misuse::report(CALL, "a render pass is open");
    }
    if recording.counting.is_some() {
        misuse::report(CALL, "a query is active");
    }
    recording.executable = Some(Arc::new(std::mem::take(&mut recording.program)));
    recording.state = State::Executable;
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn reset(
    buffer: vk::CommandBuffer,
    _: vk::CommandBufferResetFlags,
) -> vk::Result {
    const CALL: &str = "vkResetCommandBuffer";
    let Some(buffer) = object::get::<CommandBuffer>(CALL, buffer) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let _entered = buffer.pool.sync.enter(CALL, "command pool");
    refuse_pending(CALL, buffer);
    require_individual_reset(CALL, buffer.pool);
    buffer.recording().reset();
    vk::Result::SUCCESS
}

fn require_individual_reset(call: &str, pool: &CommandPool) {
    if !pool
        .flags
        .contains(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
    {
        misuse::report(call, "the pool was created without RESET_COMMAND_BUFFER");
    }
}
