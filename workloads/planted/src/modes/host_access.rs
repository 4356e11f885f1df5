//! Accesses memory and semaphores from the host between submissions and while they run.

use std::fs::File;

use anyhow::{Result, bail};
use ash::vk;

use crate::Unsupported;
use crate::args::Args;
use crate::buffer::Buffer;
use crate::gpu::Gpu;
use crate::setup::Setup;
use crate::spin::Spin;
use crate::truth::Truth;

/// Writes from the host to the mapped buffer before each submission: directly, by another thread, and by the system
/// in a `read`.
pub fn host_writes(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, data) = (&setup.gpu, &setup.spin.data);
    for iteration in 0..args.iterations {
        let bytes = [iteration as u8 + 1; 64];
        match iteration % 3 {
            0 => data.write(gpu, &bytes)?,
            1 => data.write_by_thread(gpu, &bytes)?,
            _ => data.read_from(gpu, &mut File::open("/proc/self/exe")?, 256)?,
        }
        setup.run_dispatches(args.n)?;
    }
    setup.report(truth)
}

/// Submits work that waits for a value of a timeline semaphore, which the host signals afterwards.
pub fn wait_first(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    if !gpu.timeline_submit2 {
        bail!(Unsupported(
            "the device has no timeline semaphores or no vkQueueSubmit2".into()
        ));
    }
    let spin = Spin::new(&gpu, args)?;
    let timeline = gpu.timeline(0)?;
    let fence = gpu.fence()?;
    let buffers = gpu.primaries(&gpu.queues[0], args.iterations + 1)?;
    let first = spin.record_once(&gpu, buffers[0], args.n)?;
    gpu.submit(&[&first], fence)?;
    gpu.wait(fence)?;
    for (value, buffer) in (1..).zip(&buffers[1..]) {
        let recorded = spin.record_once(&gpu, *buffer, args.n)?;
        let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(recorded.buffer)];
        let waits = [vk::SemaphoreSubmitInfo::default()
            .semaphore(timeline)
            .value(value)
            .stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)];
        let batch = vk::SubmitInfo2::default()
            .wait_semaphore_infos(&waits)
            .command_buffer_infos(&buffers);
        gpu.queues[0].submit(&[&recorded], |queue| unsafe {
            gpu.device.queue_submit2(queue, &[batch], fence)
        })?;
        let signal = vk::SemaphoreSignalInfo::default()
            .semaphore(timeline)
            .value(value);
        unsafe { gpu.device.signal_semaphore(&signal)? };
        gpu.wait(fence)?;
    }
    truth.add_result(spin.data.read(&gpu)?);
    gpu.report(truth);
    Ok(())
}

/// Copies timestamps of the program to a buffer and on to another, and orders the dispatches by an event.
pub fn queries(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let pool = gpu.timestamps(2)?;
    let [results, copied] = [Buffer::new(gpu, 16)?, Buffer::new(gpu, 16)?];
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        spin.bind(&recording);
        unsafe {
            gpu.device
                .cmd_reset_query_pool(recording.buffer, pool, 0, 2)
        };
        recording.write_timestamp(vk::PipelineStageFlags::TOP_OF_PIPE, pool, 0);
        for _ in 0..args.n {
            recording.dispatch_in_order(args.groups);
        }
        recording.write_timestamp(vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, 1);
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        unsafe {
            gpu.device.cmd_copy_query_pool_results(
                recording.buffer,
                pool,
                0,
                2,
                results.handle,
                0,
                8,
                flags,
            )
        };
        recording.barrier();
        recording.copy(&results, &copied);
        setup.run(&[&recording.end()?])?;
        let times = copied.read(gpu)?;
        let [start, end] =
            [0, 8].map(|at| u64::from_le_bytes(times[at..at + 8].try_into().expect("eight bytes")));
        anyhow::ensure!(start != 0 && end >= start, "timestamps {start} and {end}");
    }
    setup.report(truth)
}
