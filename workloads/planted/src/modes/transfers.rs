//! Runs copies, fills and updates of known sizes.

use anyhow::Result;
use ash::vk::{self, CommandBufferUsageFlags as Usage};

use crate::args::Args;
use crate::buffer::Buffer;
use crate::gpu::Gpu;
use crate::recording::Recording;
use crate::setup::Setup;
use crate::truth::Truth;

/// The maximum size of vkCmdUpdateBuffer.
const MAX_UPDATE: u64 = 65536;

/// Fills and copies a buffer after each dispatch.
pub fn transfer_stall(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let (from, to) = (Buffer::new(gpu, args.bytes)?, Buffer::new(gpu, args.bytes)?);
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        spin.bind(&recording);
        for dispatch in 0..args.n {
            recording.dispatch_in_order(spin.groups);
            recording.fill(&from, dispatch);
            recording.barrier();
            recording.copy(&from, &to);
            recording.barrier();
        }
        setup.run(&[&recording.end()?])?;
    }
    truth.add_result(to.read(gpu)?);
    setup.report(truth)
}

/// Fills, updates and copies buffers, on a queue that need only do that.
pub fn transfers(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::with_queues(args, 1, vk::QueueFlags::TRANSFER)?;
    let (from, to) = (
        Buffer::new(&gpu, args.bytes)?,
        Buffer::new(&gpu, args.bytes)?,
    );
    let (buffer, fence) = (gpu.primaries(&gpu.queues[0], 1)?[0], gpu.fence()?);
    let update = vec![0xa5; args.bytes.min(MAX_UPDATE) as usize];
    for iteration in 0..args.iterations {
        let mut recording = Recording::start(&gpu, buffer, Usage::ONE_TIME_SUBMIT)?;
        for _ in 0..args.n {
            recording.fill(&from, iteration);
            recording.barrier();
            recording.update(&from, &update);
            recording.barrier();
            recording.copy(&from, &to);
            recording.barrier();
        }
        gpu.submit(&[&recording.end()?], fence)?;
        gpu.wait(fence)?;
    }
    truth.add_result(to.read(&gpu)?);
    gpu.report(truth);
    Ok(())
}
