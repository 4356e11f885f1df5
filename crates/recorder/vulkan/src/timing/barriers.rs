//! Records the barriers (which order commands) that the layer adds to command buffers.

use ash::vk;

/// Makes results of queries, which the GPU has copied to memory, visible to the host.
///
/// # Safety
/// `cb` is being recorded outside a render pass.
pub unsafe fn to_host(next: &ash::Device, cb: vk::CommandBuffer) {
    let barrier = vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
        .dst_access_mask(vk::AccessFlags::HOST_READ);
    let (transfer, host) = (
        vk::PipelineStageFlags::TRANSFER,
        vk::PipelineStageFlags::HOST,
    );
    let none = vk::DependencyFlags::empty();
    // SAFETY: as the caller promises.
    unsafe { next.cmd_pipeline_barrier(cb, transfer, host, none, &[barrier], &[], &[]) };
}

/// Lets what follows start only when everything before has ended.
///
/// # Safety
/// As [`to_host`].
pub unsafe fn between_commands(next: &ash::Device, cb: vk::CommandBuffer) {
    let barrier = vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
        .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE);
    let all = vk::PipelineStageFlags::ALL_COMMANDS;
    let none = vk::DependencyFlags::empty();
    // SAFETY: as the caller promises.
    unsafe { next.cmd_pipeline_barrier(cb, all, all, none, &[barrier], &[], &[]) };
}
