//! Records the barriers (which order commands) that the layer adds to command buffers.

use crate::api::functions::DeviceFunctions;
use ash::vk;

/// Makes copied results visible to the host.
///
/// # Safety
/// `cb` is being recorded outside a render pass.
pub unsafe fn to_host(functions: &DeviceFunctions, cb: vk::CommandBuffer) {
    let barrier = vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
        .dst_access_mask(vk::AccessFlags::HOST_READ);
    let stages = (
        vk::PipelineStageFlags::TRANSFER,
        vk::PipelineStageFlags::HOST,
    );
    // SAFETY: as the caller promises.
    unsafe { record(functions, cb, stages, &barrier) };
}

/// Lets what follows start only when everything before has ended.
///
/// # Safety
/// As [`to_host`].
pub unsafe fn between_commands(functions: &DeviceFunctions, cb: vk::CommandBuffer) {
    let barrier = vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
        .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE);
    let all = vk::PipelineStageFlags::ALL_COMMANDS;
    // SAFETY: as the caller promises.
    unsafe { record(functions, cb, (all, all), &barrier) };
}

/// # Safety
/// As [`to_host`].
unsafe fn record(
    functions: &DeviceFunctions,
    cb: vk::CommandBuffer,
    (from, to): (vk::PipelineStageFlags, vk::PipelineStageFlags),
    barrier: &vk::MemoryBarrier<'_>,
) {
    let Some(call) = functions.cmd_pipeline_barrier else {
        return;
    };
    let (flags, none) = (vk::DependencyFlags::empty(), std::ptr::null());
    // SAFETY: as the caller promises; one memory barrier and no others.
    unsafe {
        call(
            cb,
            from,
            to,
            flags,
            1,
            barrier,
            0,
            none,
            0,
            std::ptr::null(),
        )
    };
}
