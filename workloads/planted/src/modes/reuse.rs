//! Uses command buffers more than once.

use anyhow::Result;
use ash::vk::{self, CommandBufferUsageFlags as Usage};

use crate::args::Args;
use crate::gpu::{Gpu, Object};
use crate::recording::Recording;
use crate::setup::Setup;
use crate::truth::Truth;

/// Submits one command buffer again and again, and waits each time.
pub fn resubmit(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let recorded = setup
        .spin
        .record(&setup.gpu, setup.buffer, Usage::empty(), args.n)?;
    for _ in 0..args.iterations {
        setup.run(&[&recorded])?;
    }
    setup.report(truth)
}

/// Submits one command buffer while it may still run: in calls of its own, in many batches of one call, and twice in
/// one batch.
pub fn simultaneous(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let gpu = &setup.gpu;
    let recorded = setup
        .spin
        .record(gpu, setup.buffer, Usage::SIMULTANEOUS_USE, args.n)?;
    for _ in 0..args.iterations {
        gpu.submit(&[&recorded], vk::Fence::null())?;
    }
    let buffers = [recorded.buffer];
    let batches =
        vec![vk::SubmitInfo::default().command_buffers(&buffers); args.iterations as usize];
    gpu.queues[0].submit(&vec![&recorded; batches.len()], |queue| unsafe {
        gpu.device.queue_submit(queue, &batches, vk::Fence::null())
    })?;
    setup.run(&[&recorded, &recorded])?;
    // This execution is alone, so that nothing overwrites the times inside it.
    setup.run(&[&recorded])?;
    setup.report(truth)
}

/// Submits two primary command buffers, one of which executes a secondary one, and the other executes another twice.
pub fn secondary(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let pool = gpu.command_pool(&gpu.queues[0])?;
    let secondaries = gpu.command_buffers(pool, vk::CommandBufferLevel::SECONDARY, 2)?;
    let once = spin.record(gpu, secondaries[0], Usage::empty(), args.n)?;
    let twice = spin.record(gpu, secondaries[1], Usage::SIMULTANEOUS_USE, args.n)?;
    let mut primaries = Vec::new();
    for (buffer, executed) in gpu
        .primaries(&gpu.queues[0], 2)?
        .into_iter()
        .zip([&[&once][..], &[&twice, &twice]])
    {
        let mut recording = Recording::start(gpu, buffer, Usage::empty())?;
        recording.execute(executed);
        primaries.push(recording.end()?);
    }
    for _ in 0..args.iterations {
        setup.run(&[&primaries[0], &primaries[1]])?;
    }
    truth.note("secondaries", args.iterations * 3);
    setup.report(truth)
}

/// Resets the pool, frees the command buffers or destroys the pool in turn, so that handles are used anew.
pub fn host_pool_reset(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let mut pool = unowned_pool(gpu)?;
    let mut buffers = Vec::new();
    for iteration in 0..args.iterations {
        if buffers.is_empty() {
            buffers = gpu.command_buffers(pool, vk::CommandBufferLevel::PRIMARY, 4)?;
        }
        for &buffer in &buffers {
            let recorded = spin.record_once(gpu, buffer, args.n)?;
            gpu.submit(&[&recorded], vk::Fence::null())?;
        }
        unsafe {
            gpu.device.queue_wait_idle(gpu.queues[0].handle)?;
            match iteration % 3 {
                0 => gpu
                    .device
                    .reset_command_pool(pool, vk::CommandPoolResetFlags::empty())?,
                1 => gpu
                    .device
                    .free_command_buffers(pool, &std::mem::take(&mut buffers)),
                _ => {
                    gpu.device.destroy_command_pool(pool, None);
                    buffers.clear();
                    pool = unowned_pool(gpu)?;
                }
            }
        }
    }
    gpu.own(Object::CommandPool(pool));
    setup.report(truth)
}

/// Makes a pool that the mode itself destroys.
fn unowned_pool(gpu: &Gpu) -> Result<vk::CommandPool> {
    let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.queues[0].family);
    Ok(unsafe { gpu.device.create_command_pool(&info, None)? })
}
