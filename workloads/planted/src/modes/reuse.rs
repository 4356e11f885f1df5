//! Command buffers that are used more than once.

use anyhow::Result;
use ash::vk::CommandBufferUsageFlags as Usage;

use crate::args::Args;
use crate::gpu::Gpu;
use crate::spin::Spin;
use crate::truth::Truth;

pub fn resubmit(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let (buffer, fence) = (gpu.command_buffer()?, gpu.fence()?);
    let recorded = spin.record(&gpu, buffer, Usage::empty(), args.n)?;
    for _ in 0..args.iterations {
        gpu.submit(&[&recorded], fence)?;
        gpu.wait(fence)?;
    }
    spin.report(&gpu, truth)
}
