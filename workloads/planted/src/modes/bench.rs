//! Times of single calls, for measuring what a profiler adds.

use anyhow::Result;
use ash::vk::CommandBufferUsageFlags as Usage;

use crate::args::Args;
use crate::gpu::Gpu;
use crate::recording::Recording;
use crate::spin::Spin;
use crate::truth::{Truth, monotonic_ns};

pub fn bench(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let (buffer, fence) = (gpu.command_buffer()?, gpu.fence()?);
    let mut best = [u64::MAX; 3];
    for _ in 0..args.iterations {
        let mut recording = Recording::begin(&gpu, buffer, Usage::ONE_TIME_SUBMIT)?;
        spin.bind(&recording);
        let start = monotonic_ns();
        for _ in 0..args.n {
            if args.bind {
                spin.bind_set(&recording);
            }
            recording.dispatch(spin.groups);
        }
        let record = monotonic_ns() - start;
        let recorded = recording.end()?;
        let start = monotonic_ns();
        gpu.submit(&[&recorded], fence)?;
        let submit = monotonic_ns() - start;
        gpu.wait(fence)?;
        let fence = monotonic_ns() - start;
        for (best, time) in best.iter_mut().zip([record, submit, fence]) {
            *best = time.min(*best);
        }
    }
    let [record, submit, fence] = best;
    truth.note("record_ns_per_dispatch", record as f64 / f64::from(args.n));
    truth.note("submit_ns", submit);
    truth.note("submit_to_fence_ns", fence);
    // The dispatches may overlap, so their result is not the same in every run.
    gpu.report(truth);
    Ok(())
}
