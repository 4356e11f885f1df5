//! Times of single calls, for measuring what a profiler adds.

use anyhow::Result;
use ash::vk::CommandBufferUsageFlags as Usage;

use crate::args::Args;
use crate::recording::Recording;
use crate::setup::Setup;
use crate::truth::{Truth, monotonic_ns};

pub fn bench(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let mut best = [u64::MAX; 3];
    for _ in 0..args.iterations {
        let mut recording = Recording::begin(gpu, setup.buffer, Usage::ONE_TIME_SUBMIT)?;
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
        gpu.submit(&[&recorded], setup.fence)?;
        let submit = monotonic_ns() - start;
        setup.wait()?;
        let fence = monotonic_ns() - start;
        for (best, time) in best.iter_mut().zip([record, submit, fence]) {
            *best = time.min(*best);
        }
    }
    let [record, submit, fence] = best;
    truth.note("record_ns_per_dispatch", record as f64 / f64::from(args.n));
    truth.note("submit_ns", submit);
    truth.note("submit_to_fence_ns", fence);
    // No result: the dispatches may overlap, and so differ from run to run.
    gpu.report(truth);
    Ok(())
}
