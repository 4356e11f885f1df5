//! The commands that a program records. This is the hot path: no lock, no system call, no allocation a command.

use crate::command_buffer::{self, CommandBuffer};
use crate::device;
use crate::guard::guard;
use crate::instance::slice;
use ash::vk;
use gapscope_spool::event::{Command, NO_QUERY, Op, OpaqueKind};

/// Calls the next layer's function for a command of ours: `$record` runs around it when the command buffer is being
/// recorded. The state comes from a cache of the thread, so the device need not be looked up.
macro_rules! command {
    ($cb:ident, $function:ident($($argument:expr),*)) => {
        command!($cb, $function($($argument),*), |_state| (), |_state, _token| {})
    };
    ($cb:ident, $function:ident($($argument:expr),*), |$before:ident| $begin:expr, |$state:ident, $token:pat_param| $record:expr) => {
        // SAFETY: the program's own call, which gives this thread the command buffer.
        unsafe {
            match command_buffer::state($cb) {
                Some(state) => {
                    let Some(call) = state.device.next.$function else { return };
                    if !state.is_recorded() {
                        return call($cb $(, $argument)*);
                    }
                    let begun = guard(|| { let $before = &mut *state; $begin });
                    call($cb $(, $argument)*);
                    if let Some($token) = begun {
                        guard(|| { let $state = state; $record });
                    }
                }
                None => {
                    if let Some((_, call)) = device::with($cb, |f| f.$function) {
                        call($cb $(, $argument)*);
                    }
                }
            }
        }
    };
}

pub unsafe extern "system" fn dispatch(cb: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    command!(
        cb,
        cmd_dispatch(x, y, z),
        |state| state.begin_timed(),
        |state, query| {
            state.end_timed(query);
            state.push(Command::new(Op::Dispatch, query, [x, y, z, state.kernel]));
        }
    );
}

pub unsafe extern "system" fn dispatch_base(
    cb: vk::CommandBuffer,
    base_x: u32,
    base_y: u32,
    base_z: u32,
    x: u32,
    y: u32,
    z: u32,
) {
    command!(
        cb,
        cmd_dispatch_base(base_x, base_y, base_z, x, y, z),
        |state| state.begin_timed(),
        |state, query| {
            state.end_timed(query);
            state.push(Command::new(
                Op::DispatchBase,
                query,
                [x, y, z, state.kernel],
            ));
        }
    );
}

pub unsafe extern "system" fn dispatch_indirect(
    cb: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
) {
    command!(
        cb,
        cmd_dispatch_indirect(buffer, offset),
        |state| state.begin_timed(),
        |state, query| {
            state.end_timed(query);
            let id = state.device.buffer_id(buffer);
            let operands = [id, offset as u32, (offset >> 32) as u32, state.kernel];
            state.push(Command::new(Op::DispatchIndirect, query, operands));
        }
    );
}

pub unsafe extern "system" fn bind_pipeline(
    cb: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    command!(
        cb,
        cmd_bind_pipeline(point, pipeline),
        |_state| (),
        |state, ()| {
            if point == vk::PipelineBindPoint::COMPUTE {
                state.kernel = state.device.kernel_of(pipeline);
            }
        }
    );
}

fn transfer(state: &mut CommandBuffer, op: Op, query: u32, bytes: Option<u64>, from: u32, to: u32) {
    state.end_timed(query);
    let bytes = bytes.unwrap_or(u64::MAX);
    state.push(Command::new(
        op,
        query,
        [bytes as u32, (bytes >> 32) as u32, from, to],
    ));
}

pub unsafe extern "system" fn copy_buffer(
    cb: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    command!(
        cb,
        cmd_copy_buffer(from, to, count, regions),
        |state| state.begin_timed(),
        |state, query| {
            let bytes = slice(regions, count).iter().map(|r| r.size).sum();
            let (from, to) = (state.device.buffer_id(from), state.device.buffer_id(to));
            transfer(state, Op::CopyBuffer, query, Some(bytes), from, to);
        }
    );
}

pub unsafe extern "system" fn copy_buffer2(
    cb: vk::CommandBuffer,
    info: *const vk::CopyBufferInfo2<'_>,
) {
    command!(
        cb,
        cmd_copy_buffer2(info),
        |state| state.begin_timed(),
        |state, query| {
            let info = &*info;
            let bytes = slice(info.p_regions, info.region_count)
                .iter()
                .map(|r| r.size)
                .sum();
            let from = state.device.buffer_id(info.src_buffer);
            let to = state.device.buffer_id(info.dst_buffer);
            transfer(state, Op::CopyBuffer, query, Some(bytes), from, to);
        }
    );
}

pub unsafe extern "system" fn fill_buffer(
    cb: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    size: u64,
    data: u32,
) {
    command!(
        cb,
        cmd_fill_buffer(buffer, offset, size, data),
        |state| state.begin_timed(),
        |state, query| {
            let bytes = match size {
                // To the end of the buffer, rounded down to whole words.
                vk::WHOLE_SIZE => state
                    .device
                    .buffer_bytes(buffer)
                    .map(|all| all.saturating_sub(offset) & !3),
                size => Some(size),
            };
            let to = state.device.buffer_id(buffer);
            transfer(state, Op::FillBuffer, query, bytes, 0, to);
        }
    );
}

pub unsafe extern "system" fn update_buffer(
    cb: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    size: u64,
    data: *const std::ffi::c_void,
) {
    command!(
        cb,
        cmd_update_buffer(buffer, offset, size, data),
        |state| state.begin_timed(),
        |state, query| {
            let to = state.device.buffer_id(buffer);
            transfer(state, Op::UpdateBuffer, query, Some(size), 0, to);
        }
    );
}

pub unsafe extern "system" fn copy_image(
    cb: vk::CommandBuffer,
    from: vk::Image,
    from_layout: vk::ImageLayout,
    to: vk::Image,
    to_layout: vk::ImageLayout,
    count: u32,
    regions: *const vk::ImageCopy,
) {
    command!(
        cb,
        cmd_copy_image(from, from_layout, to, to_layout, count, regions),
        |state| state.begin_timed(),
        |state, query| transfer(state, Op::CopyImage, query, None, 0, 0)
    );
}

pub unsafe extern "system" fn copy_image2(
    cb: vk::CommandBuffer,
    info: *const vk::CopyImageInfo2<'_>,
) {
    command!(
        cb,
        cmd_copy_image2(info),
        |state| state.begin_timed(),
        |state, query| transfer(state, Op::CopyImage, query, None, 0, 0)
    );
}

pub unsafe extern "system" fn copy_buffer_to_image(
    cb: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Image,
    layout: vk::ImageLayout,
    count: u32,
    regions: *const vk::BufferImageCopy,
) {
    command!(
        cb,
        cmd_copy_buffer_to_image(from, to, layout, count, regions),
        |state| state.begin_timed(),
        |state, query| {
            let from = state.device.buffer_id(from);
            transfer(state, Op::CopyImage, query, None, from, 0);
        }
    );
}

pub unsafe extern "system" fn copy_buffer_to_image2(
    cb: vk::CommandBuffer,
    info: *const vk::CopyBufferToImageInfo2<'_>,
) {
    command!(
        cb,
        cmd_copy_buffer_to_image2(info),
        |state| state.begin_timed(),
        |state, query| {
            let from = state.device.buffer_id((*info).src_buffer);
            transfer(state, Op::CopyImage, query, None, from, 0);
        }
    );
}

pub unsafe extern "system" fn copy_image_to_buffer(
    cb: vk::CommandBuffer,
    from: vk::Image,
    layout: vk::ImageLayout,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferImageCopy,
) {
    command!(
        cb,
        cmd_copy_image_to_buffer(from, layout, to, count, regions),
        |state| state.begin_timed(),
        |state, query| {
            let to = state.device.buffer_id(to);
            transfer(state, Op::CopyImage, query, None, 0, to);
        }
    );
}

pub unsafe extern "system" fn copy_image_to_buffer2(
    cb: vk::CommandBuffer,
    info: *const vk::CopyImageToBufferInfo2<'_>,
) {
    command!(
        cb,
        cmd_copy_image_to_buffer2(info),
        |state| state.begin_timed(),
        |state, query| {
            let to = state.device.buffer_id((*info).dst_buffer);
            transfer(state, Op::CopyImage, query, None, 0, to);
        }
    );
}

pub unsafe extern "system" fn blit_image(
    cb: vk::CommandBuffer,
    from: vk::Image,
    from_layout: vk::ImageLayout,
    to: vk::Image,
    to_layout: vk::ImageLayout,
    count: u32,
    regions: *const vk::ImageBlit,
    filter: vk::Filter,
) {
    command!(
        cb,
        cmd_blit_image(from, from_layout, to, to_layout, count, regions, filter),
        |state| state.begin_opaque(OpaqueKind::Other),
        |state, ()| state.end_opaque()
    );
}

pub unsafe extern "system" fn clear_color_image(
    cb: vk::CommandBuffer,
    image: vk::Image,
    layout: vk::ImageLayout,
    color: *const vk::ClearColorValue,
    count: u32,
    ranges: *const vk::ImageSubresourceRange,
) {
    command!(
        cb,
        cmd_clear_color_image(image, layout, color, count, ranges),
        |state| state.begin_opaque(OpaqueKind::ClearImage),
        |state, ()| state.end_opaque()
    );
}

pub unsafe extern "system" fn pipeline_barrier(
    cb: vk::CommandBuffer,
    from: vk::PipelineStageFlags,
    to: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    command!(
        cb,
        cmd_pipeline_barrier(
            from,
            to,
            flags,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images
        ),
        |_state| (),
        |state, ()| state.push(Command::new(
            Op::Barrier,
            NO_QUERY,
            [from.as_raw(), 0, to.as_raw(), 0]
        ))
    );
}

pub unsafe extern "system" fn pipeline_barrier2(
    cb: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    command!(cb, cmd_pipeline_barrier2(info), |_state| (), |state, ()| {
        let info = &*info;
        let (mut from, mut to) = (0, 0);
        let mut add = |a: vk::PipelineStageFlags2, b: vk::PipelineStageFlags2| {
            from |= a.as_raw();
            to |= b.as_raw();
        };
        for b in slice(info.p_memory_barriers, info.memory_barrier_count) {
            add(b.src_stage_mask, b.dst_stage_mask);
        }
        for b in slice(
            info.p_buffer_memory_barriers,
            info.buffer_memory_barrier_count,
        ) {
            add(b.src_stage_mask, b.dst_stage_mask);
        }
        for b in slice(
            info.p_image_memory_barriers,
            info.image_memory_barrier_count,
        ) {
            add(b.src_stage_mask, b.dst_stage_mask);
        }
        let operands = [
            from as u32,
            (from >> 32) as u32,
            to as u32,
            (to >> 32) as u32,
        ];
        state.push(Command::new(Op::Barrier, NO_QUERY, operands));
    });
}

pub unsafe extern "system" fn execute_commands(
    cb: vk::CommandBuffer,
    count: u32,
    secondaries: *const vk::CommandBuffer,
) {
    command!(
        cb,
        cmd_execute_commands(count, secondaries),
        |state| {
            if CommandBuffer::needs_time_around(slice(secondaries, count)) {
                state.begin_timed()
            } else {
                NO_QUERY
            }
        },
        |state, query| {
            state.end_timed(query);
            state.execute(slice(secondaries, count), query);
        }
    );
}

macro_rules! render_pass {
    ($begin:ident = $begin_function:ident($($argument:ident: $type:ty),*), $end:ident = $end_function:ident($($end_argument:ident: $end_type:ty),*)) => {
        pub unsafe extern "system" fn $begin(cb: vk::CommandBuffer $(, $argument: $type)*) {
            command!(
                cb,
                $begin_function($($argument),*),
                |state| state.begin_opaque(OpaqueKind::RenderPass),
                |state, ()| state.in_render_pass = true
            );
        }

        pub unsafe extern "system" fn $end(cb: vk::CommandBuffer $(, $end_argument: $end_type)*) {
            command!(cb, $end_function($($end_argument),*), |_state| (), |state, ()| {
                state.in_render_pass = false;
                state.end_opaque();
            });
        }
    };
}

render_pass!(
    begin_render_pass = cmd_begin_render_pass(info: *const vk::RenderPassBeginInfo<'_>, contents: vk::SubpassContents),
    end_render_pass = cmd_end_render_pass()
);
render_pass!(
    begin_render_pass2 = cmd_begin_render_pass2(
        info: *const vk::RenderPassBeginInfo<'_>,
        subpass: *const vk::SubpassBeginInfo<'_>
    ),
    end_render_pass2 = cmd_end_render_pass2(subpass: *const vk::SubpassEndInfo<'_>)
);
render_pass!(
    begin_rendering = cmd_begin_rendering(info: *const vk::RenderingInfo<'_>),
    end_rendering = cmd_end_rendering()
);

pub unsafe extern "system" fn trace_rays(
    cb: vk::CommandBuffer,
    generation: *const vk::StridedDeviceAddressRegionKHR,
    miss: *const vk::StridedDeviceAddressRegionKHR,
    hit: *const vk::StridedDeviceAddressRegionKHR,
    callable: *const vk::StridedDeviceAddressRegionKHR,
    width: u32,
    height: u32,
    depth: u32,
) {
    command!(
        cb,
        cmd_trace_rays(generation, miss, hit, callable, width, height, depth),
        |state| state.begin_opaque(OpaqueKind::RayTracing),
        |state, ()| state.end_opaque()
    );
}

pub unsafe extern "system" fn build_acceleration_structures(
    cb: vk::CommandBuffer,
    count: u32,
    infos: *const vk::AccelerationStructureBuildGeometryInfoKHR<'_>,
    ranges: *const *const vk::AccelerationStructureBuildRangeInfoKHR,
) {
    command!(
        cb,
        cmd_build_acceleration_structures(count, infos, ranges),
        |state| state.begin_opaque(OpaqueKind::AccelerationStructure),
        |state, ()| state.end_opaque()
    );
}
