//! `vkCmd*`: each call appends to its command buffer.

use ash::vk::{self, BufferUsageFlags, QueueFlags};

use crate::buffer::Buffer;
use crate::command::{Command, CopyQueries, QueryRange, Secondary};
use crate::command_buffer::{CommandBuffer, Recording, State};
use crate::config::config;
use crate::descriptor::{DescriptorSet, DescriptorUpdateTemplate, check_buffers};
use crate::object::{self, Object};
use crate::pipeline::{Pipeline, PipelineLayout};
use crate::query::{QueryPool, check_results, result_bytes};
use crate::{chain, misuse};

/// Where a command may be recorded.
#[derive(Clone, Copy)]
pub struct Allowed {
    /// On queues with any of these.
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
const QUERY_POOL: Allowed = Allowed {
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
    add(buffer, recording);
}

pub unsafe extern "system" fn dispatch(buffer: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    record("vkCmdDispatch", buffer, COMPUTE, |_, recording| {
        let pipeline = bound_compute("vkCmdDispatch", recording);
        recording.program.commands.push(Command::Dispatch {
            groups: [x, y, z],
            pipeline,
        });
    });
}

pub unsafe extern "system" fn dispatch_base(
    buffer: vk::CommandBuffer,
    _: u32,
    _: u32,
    _: u32,
    x: u32,
    y: u32,
    z: u32,
) {
    record("vkCmdDispatchBase", buffer, COMPUTE, |_, recording| {
        let pipeline = bound_compute("vkCmdDispatchBase", recording);
        recording.program.commands.push(Command::Dispatch {
            groups: [x, y, z],
            pipeline,
        });
    });
}

pub unsafe extern "system" fn dispatch_indirect(
    buffer: vk::CommandBuffer,
    arguments: vk::Buffer,
    offset: u64,
) {
    const CALL: &str = "vkCmdDispatchIndirect";
    record(CALL, buffer, COMPUTE, |_, recording| {
        let bytes = size_of::<vk::DispatchIndirectCommand>() as u64;
        let pipeline = bound_compute(CALL, recording);
        if let Some(address) = place(
            CALL,
            recording,
            arguments,
            offset,
            bytes,
            BufferUsageFlags::INDIRECT_BUFFER,
        ) {
            recording
                .program
                .commands
                .push(Command::DispatchIndirect { address, pipeline });
        }
    });
}

#[inline]
fn bound_compute(call: &str, recording: &Recording) -> Option<&'static Object<Pipeline>> {
    if recording.compute_pipeline.is_none() && !config().null {
        misuse::report(call, "no compute pipeline is bound");
    }
    recording.compute_pipeline
}

/// The GPU address of a part of a buffer, which the submission will use.
fn place(
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

pub unsafe extern "system" fn bind_pipeline(
    buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    const CALL: &str = "vkCmdBindPipeline";
    record(CALL, buffer, BINDING, |_, recording| {
        let Some(pipeline) = object::get::<Pipeline>(CALL, pipeline) else {
            return;
        };
        recording.program.uses(&pipeline.header);
        match point {
            vk::PipelineBindPoint::COMPUTE => recording.compute_pipeline = Some(pipeline),
            _ => recording.graphics_pipeline = Some(pipeline),
        }
    });
}

pub unsafe extern "system" fn bind_descriptor_sets(
    buffer: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    _: u32,
    count: u32,
    sets: *const vk::DescriptorSet,
    _: u32,
    _: *const u32,
) {
    const CALL: &str = "vkCmdBindDescriptorSets";
    record(CALL, buffer, BINDING, |_, recording| {
        object::get::<PipelineLayout>(CALL, layout);
        for &set in chain::slice(sets, count) {
            if let Some(set) = object::get::<DescriptorSet>(CALL, set) {
                recording.program.uses(&set.header);
            }
        }
    });
}

pub unsafe extern "system" fn push_descriptor_set(
    buffer: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    _: u32,
    count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
) {
    const CALL: &str = "vkCmdPushDescriptorSetKHR";
    record(CALL, buffer, BINDING, |_, _| {
        object::get::<PipelineLayout>(CALL, layout);
        for write in chain::slice(writes, count) {
            check_buffers(CALL, write);
        }
    });
}

pub unsafe extern "system" fn push_descriptor_set_with_template(
    buffer: vk::CommandBuffer,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    _: u32,
    _: *const std::ffi::c_void,
) {
    const CALL: &str = "vkCmdPushDescriptorSetWithTemplateKHR";
    record(CALL, buffer, BINDING, |_, _| {
        object::get::<DescriptorUpdateTemplate>(CALL, template);
        object::get::<PipelineLayout>(CALL, layout);
    });
}

pub unsafe extern "system" fn push_constants(
    buffer: vk::CommandBuffer,
    layout: vk::PipelineLayout,
    _: vk::ShaderStageFlags,
    _: u32,
    _: u32,
    _: *const std::ffi::c_void,
) {
    const CALL: &str = "vkCmdPushConstants";
    record(CALL, buffer, BINDING, |_, _| {
        object::get::<PipelineLayout>(CALL, layout);
    });
}

pub unsafe extern "system" fn copy_buffer(
    buffer: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    const CALL: &str = "vkCmdCopyBuffer";
    record(CALL, buffer, TRANSFER, |_, recording| {
        for region in chain::slice(regions, count) {
            copy(
                CALL,
                recording,
                (from, region.src_offset),
                (to, region.dst_offset),
                region.size,
            );
        }
    });
}

pub unsafe extern "system" fn copy_buffer2(
    buffer: vk::CommandBuffer,
    info: *const vk::CopyBufferInfo2<'_>,
) {
    const CALL: &str = "vkCmdCopyBuffer2";
    record(CALL, buffer, TRANSFER, |_, recording| {
        let info = &*info;
        for region in chain::slice(info.p_regions, info.region_count) {
            let (from, to) = (
                (info.src_buffer, region.src_offset),
                (info.dst_buffer, region.dst_offset),
            );
            copy(CALL, recording, from, to, region.size);
        }
    });
}

fn copy(
    call: &str,
    recording: &mut Recording,
    from: (vk::Buffer, u64),
    to: (vk::Buffer, u64),
    bytes: u64,
) {
    let from = place(
        call,
        recording,
        from.0,
        from.1,
        bytes,
        BufferUsageFlags::TRANSFER_SRC,
    );
    let to = place(
        call,
        recording,
        to.0,
        to.1,
        bytes,
        BufferUsageFlags::TRANSFER_DST,
    );
    if let (Some(from), Some(to)) = (from, to) {
        recording
            .program
            .commands
            .push(Command::Copy { from, to, bytes });
    }
}

pub unsafe extern "system" fn fill_buffer(
    buffer: vk::CommandBuffer,
    to: vk::Buffer,
    offset: u64,
    bytes: u64,
    word: u32,
) {
    const CALL: &str = "vkCmdFillBuffer";
    record(CALL, buffer, TRANSFER, |_, recording| {
        let whole = object::get::<Buffer>(CALL, to).map_or(0, |buffer| buffer.bytes());
        let bytes = if bytes == vk::WHOLE_SIZE {
            whole.saturating_sub(offset) & !3
        } else {
            bytes
        };
        if !offset.is_multiple_of(4) || !bytes.is_multiple_of(4) {
            misuse::report(
                CALL,
                format_args!("{bytes} bytes at {offset} are not whole words"),
            );
            return;
        }
        if let Some(to) = place(
            CALL,
            recording,
            to,
            offset,
            bytes,
            BufferUsageFlags::TRANSFER_DST,
        ) {
            recording
                .program
                .commands
                .push(Command::Fill { to, bytes, word });
        }
    });
}

pub unsafe extern "system" fn update_buffer(
    buffer: vk::CommandBuffer,
    to: vk::Buffer,
    offset: u64,
    bytes: u64,
    data: *const std::ffi::c_void,
) {
    const CALL: &str = "vkCmdUpdateBuffer";
    const MAX_BYTES: u64 = 65536;
    record(CALL, buffer, TRANSFER, |_, recording| {
        if bytes > MAX_BYTES || !bytes.is_multiple_of(4) || !offset.is_multiple_of(4) {
            misuse::report(CALL, format_args!("{bytes} bytes at {offset}"));
            return;
        }
        if let Some(to) = place(
            CALL,
            recording,
            to,
            offset,
            bytes,
            BufferUsageFlags::TRANSFER_DST,
        ) {
            let data = chain::slice(data.cast::<u8>(), bytes as u32).into();
            recording
                .program
                .commands
                .push(Command::Update { to, data });
        }
    });
}

pub unsafe extern "system" fn reset_query_pool(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
) {
    const CALL: &str = "vkCmdResetQueryPool";
    record(CALL, buffer, QUERY_POOL, |_, recording| {
        if let Some(range) = query_range(CALL, recording, pool, first, count) {
            recording
                .program
                .commands
                .push(Command::ResetQueries(range));
        }
    });
}

/// A range of queries which the submission will use.
fn query_range(
    call: &str,
    recording: &mut Recording,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
) -> Option<QueryRange> {
    let pool = object::get::<QueryPool>(call, pool)?;
    pool.range(call, first, count)?;
    let range = QueryRange { pool, first, count };
    recording.program.uses_queries(range);
    Some(range)
}

pub unsafe extern "system" fn write_timestamp(
    buffer: vk::CommandBuffer,
    stage: vk::PipelineStageFlags,
    pool: vk::QueryPool,
    query: u32,
) {
    const CALL: &str = "vkCmdWriteTimestamp";
    record(CALL, buffer, ANYWHERE, |buffer, recording| {
        timestamp(CALL, buffer, recording, widen(stage), pool, query)
    });
}

pub unsafe extern "system" fn write_timestamp2(
    buffer: vk::CommandBuffer,
    stage: vk::PipelineStageFlags2,
    pool: vk::QueryPool,
    query: u32,
) {
    const CALL: &str = "vkCmdWriteTimestamp2";
    record(CALL, buffer, ANYWHERE, |buffer, recording| {
        require_synchronization2(CALL, buffer);
        timestamp(CALL, buffer, recording, stage, pool, query);
    });
}

fn timestamp(
    call: &str,
    buffer: &Object<CommandBuffer>,
    recording: &mut Recording,
    stage: vk::PipelineStageFlags2,
    pool: vk::QueryPool,
    query: u32,
) {
    if buffer.pool.timestamp_bits == 0 {
        misuse::report(
            call,
            format_args!("queue family {} has no timestamps", buffer.pool.family),
        );
        return;
    }
    check_stages(call, buffer, stage);
    if let Some(range) = query_range(call, recording, pool, query, 1) {
        let at_top = !waits_for_work(stage);
        recording.program.commands.push(Command::Timestamp {
            pool: range.pool,
            query,
            at_top,
        });
    }
}

pub unsafe extern "system" fn copy_query_pool_results(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    to: vk::Buffer,
    offset: u64,
    stride: u64,
    flags: vk::QueryResultFlags,
) {
    const CALL: &str = "vkCmdCopyQueryPoolResults";
    record(CALL, buffer, QUERY_POOL, |_, recording| {
        check_results(CALL, &[], stride, flags);
        let Some(range) = query_range(CALL, recording, pool, first, count) else {
            return;
        };
        let bytes = u64::from(count.saturating_sub(1)) * stride + result_bytes(flags);
        if let Some(to) = place(
            CALL,
            recording,
            to,
            offset,
            bytes,
            BufferUsageFlags::TRANSFER_DST,
        ) {
            let copy = CopyQueries {
                range,
                to,
                stride,
                flags,
            };
            recording
                .program
                .commands
                .push(Command::CopyQueries(Box::new(copy)));
        }
    });
}

pub unsafe extern "system" fn pipeline_barrier(
    buffer: vk::CommandBuffer,
    source: vk::PipelineStageFlags,
    destination: vk::PipelineStageFlags,
    _: vk::DependencyFlags,
    _: u32,
    _: *const vk::MemoryBarrier<'_>,
    _: u32,
    _: *const vk::BufferMemoryBarrier<'_>,
    _: u32,
    _: *const vk::ImageMemoryBarrier<'_>,
) {
    const CALL: &str = "vkCmdPipelineBarrier";
    record(CALL, buffer, TRANSFER, |buffer, recording| {
        if source.is_empty() || destination.is_empty() {
            misuse::report(CALL, "a stage mask is empty");
        }
        barrier(CALL, buffer, recording, widen(source), widen(destination));
    });
}

pub unsafe extern "system" fn pipeline_barrier2(
    buffer: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    const CALL: &str = "vkCmdPipelineBarrier2";
    record(CALL, buffer, TRANSFER, |buffer, recording| {
        require_synchronization2(CALL, buffer);
        let info = &*info;
        let memory = chain::slice(info.p_memory_barriers, info.memory_barrier_count).iter();
        let buffers = chain::slice(
            info.p_buffer_memory_barriers,
            info.buffer_memory_barrier_count,
        )
        .iter();
        let images = chain::slice(
            info.p_image_memory_barriers,
            info.image_memory_barrier_count,
        )
        .iter();
        let stages = memory
            .map(|barrier| (barrier.src_stage_mask, barrier.dst_stage_mask))
            .chain(buffers.map(|barrier| (barrier.src_stage_mask, barrier.dst_stage_mask)))
            .chain(images.map(|barrier| (barrier.src_stage_mask, barrier.dst_stage_mask)));
        let (source, destination) = stages.fold(
            Default::default(),
            |all: (vk::PipelineStageFlags2, _), one| (all.0 | one.0, all.1 | one.1),
        );
        barrier(CALL, buffer, recording, source, destination);
    });
}

fn barrier(
    call: &str,
    buffer: &Object<CommandBuffer>,
    recording: &mut Recording,
    source: vk::PipelineStageFlags2,
    destination: vk::PipelineStageFlags2,
) {
    check_stages(call, buffer, source | destination);
    let bottom = vk::PipelineStageFlags2::BOTTOM_OF_PIPE;
    if waits_for_work(source) && !bottom.contains(destination) {
        recording.program.commands.push(Command::Barrier);
    }
}

fn require_synchronization2(call: &str, buffer: &CommandBuffer) {
    if !buffer.pool.enabled.synchronization2 {
        misuse::report(
            call,
            "the device was created without the feature synchronization2",
        );
    }
}

/// The first 32 stages are the same in both types.
fn widen(stages: vk::PipelineStageFlags) -> vk::PipelineStageFlags2 {
    vk::PipelineStageFlags2::from_raw(stages.as_raw().into())
}

/// Whether a stage mask waits for earlier work, rather than for its start only.
fn waits_for_work(stages: vk::PipelineStageFlags2) -> bool {
    let no_work = vk::PipelineStageFlags2::TOP_OF_PIPE | vk::PipelineStageFlags2::HOST;
    !no_work.contains(stages)
}

fn check_stages(call: &str, buffer: &CommandBuffer, stages: vk::PipelineStageFlags2) {
    use vk::PipelineStageFlags2 as Stages;
    let flags = buffer.pool.queue_flags;
    if flags.contains(QueueFlags::GRAPHICS) {
        return;
    }
    let mut known = Stages::TOP_OF_PIPE
        | Stages::BOTTOM_OF_PIPE
        | Stages::HOST
        | Stages::ALL_COMMANDS
        | Stages::ALL_TRANSFER
        | Stages::COPY
        | Stages::CLEAR;
    if flags.contains(QueueFlags::COMPUTE) {
        known |= Stages::COMPUTE_SHADER | Stages::DRAW_INDIRECT;
    }
    if !known.contains(stages) {
        misuse::report(
            call,
            format_args!(
                "{stages:?} on queue family {} ({flags:?})",
                buffer.pool.family
            ),
        );
    }
}

pub unsafe extern "system" fn execute_commands(
    buffer: vk::CommandBuffer,
    count: u32,
    secondaries: *const vk::CommandBuffer,
) {
    const CALL: &str = "vkCmdExecuteCommands";
    record(CALL, buffer, ANYWHERE, |buffer, recording| {
        if buffer.level != vk::CommandBufferLevel::PRIMARY {
            misuse::report(CALL, "the command buffer is a secondary one");
        }
        for &secondary in chain::slice(secondaries, count) {
            let Some(secondary) = object::get::<CommandBuffer>(CALL, secondary) else {
                continue;
            };
            execute(CALL, recording, secondary);
        }
        // What was bound is undefined after the call.
        (recording.compute_pipeline, recording.graphics_pipeline) = (None, None);
    });
}

unsafe fn execute(
    call: &str,
    recording: &mut Recording,
    secondary: &'static Object<CommandBuffer>,
) {
    if secondary.level != vk::CommandBufferLevel::SECONDARY {
        misuse::report(call, "a primary command buffer cannot be executed");
        return;
    }
    let Recording {
        executable: Some(program),
        number,
        ..
    } = secondary.recording()
    else {
        misuse::report(call, "a secondary command buffer is not recorded");
        return;
    };
    recording
        .program
        .commands
        .push(Command::Execute(program.clone()));
    recording.program.secondaries.push(Secondary {
        buffer: secondary,
        recording: *number,
        program: program.clone(),
    });
}

pub unsafe extern "system" fn begin_label(
    buffer: vk::CommandBuffer,
    _: *const vk::DebugUtilsLabelEXT<'_>,
) {
    record("vkCmdBeginDebugUtilsLabelEXT", buffer, ANYWHERE, |_, _| {});
}

pub unsafe extern "system" fn insert_label(
    buffer: vk::CommandBuffer,
    _: *const vk::DebugUtilsLabelEXT<'_>,
) {
    record("vkCmdInsertDebugUtilsLabelEXT", buffer, ANYWHERE, |_, _| {});
}

pub unsafe extern "system" fn end_label(buffer: vk::CommandBuffer) {
    record("vkCmdEndDebugUtilsLabelEXT", buffer, ANYWHERE, |_, _| {});
}

pub unsafe extern "system" fn set_device_mask(_: vk::CommandBuffer, _: u32) {}

/// A transfer with an image.
pub unsafe fn image_transfer(call: &str, buffer: vk::CommandBuffer, bytes: u64) {
    record(call, buffer, TRANSFER, |_, recording| {
        recording
            .program
            .commands
            .push(Command::ImageTransfer { bytes });
    });
}
