//! Times single calls, to measure the overhead of a profiler, and notes the times in the truth (the printed facts).

use anyhow::Result;
use ash::vk;

use crate::args::Args;
use crate::setup::Setup;
use crate::truth::{Truth, monotonic_ns};

/// Notes the best times of all iterations: of recording a dispatch, of the submission, and from it to the signalled
/// fence.
pub fn bench(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let timestamps = args
        .timestamps
        .then(|| gpu.timestamps(2 * args.n))
        .transpose()?;
    let mut best = [u64::MAX; 3];
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        spin.bind(&recording);
        if let Some(pool) = timestamps {
            unsafe {
                gpu.device
                    .cmd_reset_query_pool(recording.buffer, pool, 0, 2 * args.n)
            };
        }
        let start = monotonic_ns();
        for dispatch in 0..args.n {
            if args.bind {
                spin.bind_set(&recording);
            }
            if let Some(pool) = timestamps {
                let stage = vk::PipelineStageFlags::TOP_OF_PIPE;
                recording.write_timestamp(stage, pool, 2 * dispatch);
            }
            recording.dispatch(spin.groups);
            if let Some(pool) = timestamps {
                let stage = vk::PipelineStageFlags::COMPUTE_SHADER;
                recording.write_timestamp(stage, pool, 2 * dispatch + 1);
            }
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
    // The report has no result: the dispatches may overlap, so that it differs from run to run.
    gpu.report(truth);
    Ok(())
}
