//! What the host does between submissions.

use anyhow::Result;

use crate::args::Args;
use crate::gpu::Gpu;
use crate::spin::Spin;
use crate::truth::{Truth, monotonic_ns};

pub fn steady(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let (buffer, fence) = (gpu.command_buffer()?, gpu.fence()?);
    for _ in 0..args.iterations {
        let recorded = spin.record_once(&gpu, buffer, args.n)?;
        gpu.submit(&[&recorded], fence)?;
        gpu.wait(fence)?;
    }
    spin.report(&gpu, truth)
}

pub fn spin(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let (buffer, fence) = (gpu.command_buffer()?, gpu.fence()?);
    let recorded = spin.record_once(&gpu, buffer, 1)?;
    let start = monotonic_ns();
    gpu.submit(&[&recorded], fence)?;
    gpu.wait(fence)?;
    truth.note("submit_to_fence_ns", monotonic_ns() - start);
    spin.report(&gpu, truth)
}

pub fn host_sleep(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let (buffer, fence) = (gpu.command_buffer()?, gpu.fence()?);
    for iteration in 0..args.iterations {
        if iteration > 0 {
            truth.sleep_idle(args.sleep_us);
        }
        let recorded = spin.record_once(&gpu, buffer, args.n)?;
        gpu.submit(&[&recorded], fence)?;
        gpu.wait(fence)?;
    }
    spin.report(&gpu, truth)
}

pub fn host_sleep_async(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let (buffer, fence) = (gpu.command_buffer()?, gpu.fence()?);
    for iteration in 0..args.iterations {
        if iteration > 0 {
            truth.sleep_idle(args.sleep_us);
        }
        let recorded = spin.record_once(&gpu, buffer, args.n)?;
        gpu.submit(&[&recorded], fence)?;
        poll(&gpu, fence)?;
    }
    spin.report(&gpu, truth)
}

pub fn fence_each(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let (buffer, fence) = (gpu.command_buffer()?, gpu.fence()?);
    for _ in 0..args.iterations * args.n {
        let recorded = spin.record_once(&gpu, buffer, 1)?;
        gpu.submit(&[&recorded], fence)?;
        gpu.wait(fence)?;
    }
    spin.report(&gpu, truth)
}

pub fn polling(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let (buffer, fence) = (gpu.command_buffer()?, gpu.fence()?);
    let mut polls = 0;
    for _ in 0..args.iterations {
        let recorded = spin.record_once(&gpu, buffer, args.n)?;
        gpu.submit(&[&recorded], fence)?;
        polls += poll(&gpu, fence)?;
    }
    truth.note("polls", polls);
    spin.report(&gpu, truth)
}

/// Asks for the state of `fence` until it is signalled, resets it, and returns how often it asked.
fn poll(gpu: &Gpu, fence: ash::vk::Fence) -> Result<u64> {
    let mut polls = 1;
    while !unsafe { gpu.device.get_fence_status(fence)? } {
        polls += 1;
        std::hint::spin_loop();
    }
    unsafe { gpu.device.reset_fences(&[fence])? };
    Ok(polls)
}
