//! Work that is timed as a whole: render passes, ray tracing, clears and blits.

use crate::hooks::command::command;
use ash::vk;
use gapscope_spool::event::OpaqueWorkKind;

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
        |state| state.start_opaque(OpaqueWorkKind::Other),
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
        |state| state.start_opaque(OpaqueWorkKind::ClearImage),
        |state, ()| state.end_opaque()
    );
}

macro_rules! render_pass {
    ($begin:ident = $begin_function:ident($($argument:ident: $type:ty),*), $end:ident = $end_function:ident($($end_argument:ident: $end_type:ty),*)) => {
        pub unsafe extern "system" fn $begin(cb: vk::CommandBuffer $(, $argument: $type)*) {
            command!(
                cb,
                $begin_function($($argument),*),
                |state| state.start_opaque(OpaqueWorkKind::RenderPass),
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
        |state| state.start_opaque(OpaqueWorkKind::RayTracing),
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
        |state| state.start_opaque(OpaqueWorkKind::AccelerationStructure),
        |state, ()| state.end_opaque()
    );
}

pub unsafe extern "system" fn blit_image2(
    cb: vk::CommandBuffer,
    info: *const vk::BlitImageInfo2<'_>,
) {
    command!(
        cb,
        cmd_blit_image2(info),
        |state| state.start_opaque(OpaqueWorkKind::Other),
        |state, ()| state.end_opaque()
    );
}

pub unsafe extern "system" fn resolve_image2(
    cb: vk::CommandBuffer,
    info: *const vk::ResolveImageInfo2<'_>,
) {
    command!(
        cb,
        cmd_resolve_image2(info),
        |state| state.start_opaque(OpaqueWorkKind::Other),
        |state, ()| state.end_opaque()
    );
}
