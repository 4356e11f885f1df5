//! Modes that use several queues, threads or devices, or vkQueueSubmit2. Their work is [`Spin`], a kernel that spins
//! over its own buffer; tests compare a trace with what a mode did, which [`Truth`] records.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use ash::vk;

use crate::Unsupported;
use crate::args::Args;
use crate::gpu::{Gpu, Object};
use crate::instance::Instance;
use crate::recording::Recording;
use crate::setup::Setup;
use crate::spin::Spin;
use crate::truth::Truth;

/// Submits to two queues in turn, each submission waiting for the other queue's by a semaphore.
pub fn ping_pong(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::with_queues(args, 2, vk::QueueFlags::COMPUTE)?;
    let fence = gpu.fence()?;
    let spins = [Spin::new(&gpu, args)?, Spin::new(&gpu, args)?];
    let buffers = [
        gpu.primaries(&gpu.queues[0], args.iterations)?,
        gpu.primaries(&gpu.queues[1], args.iterations)?,
    ];
    let done = [gpu.semaphore()?, gpu.semaphore()?];
    for iteration in 0..args.iterations {
        for side in [0, 1] {
            let recorded =
                spins[side].record_once(&gpu, buffers[side][iteration as usize], args.n)?;
            let first = iteration == 0 && side == 0;
            let last = iteration + 1 == args.iterations && side == 1;
            let command_buffers = [recorded.buffer];
            let waits = [done[1 - side]];
            let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
            let signals = [done[side]];
            let mut batch = vk::SubmitInfo::default().command_buffers(&command_buffers);
            if !first {
                batch = batch.wait_semaphores(&waits).wait_dst_stage_mask(&stages);
            }
            if !last {
                batch = batch.signal_semaphores(&signals);
            }
            let fence = if last { fence } else { vk::Fence::null() };
            gpu.queues[side].submit(&[&recorded], |queue| unsafe {
                gpu.device.queue_submit(queue, &[batch], fence)
            })?;
        }
    }
    gpu.wait(fence)?;
    truth.note(
        "families",
        gpu.queues
            .iter()
            .map(|queue| queue.family)
            .collect::<Vec<_>>(),
    );
    for spin in &spins {
        truth.add_result(spin.data.read(&gpu)?);
    }
    gpu.report(truth);
    Ok(())
}

/// The value with which the timeline semaphore of [`submit2`] starts: the first submission waits for it.
const START: u64 = 40;

/// Submits by vkQueueSubmit2, and every second time by vkQueueSubmit2KHR where the device has it; each submission waits
/// for the value of a timeline semaphore that the one before signals.
pub fn submit2(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    if !gpu.timeline_submit2 {
        bail!(Unsupported(
            "the device has no timeline semaphores or no vkQueueSubmit2".into()
        ));
    }
    let newer = gpu.device.fp_v1_3().queue_submit2;
    let older = gpu
        .function(c"vkQueueSubmit2KHR")
        .map_or(newer, |function| unsafe {
            std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkQueueSubmit2>(function)
        });
    let spin = Spin::new(&gpu, args)?;
    let timeline = gpu.timeline(START)?;
    let at = |iterations: u32| {
        [vk::SemaphoreSubmitInfo::default()
            .semaphore(timeline)
            .value(START + u64::from(iterations))
            .stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)]
    };
    for (iteration, buffer) in (0..).zip(gpu.primaries(&gpu.queues[0], args.iterations)?) {
        let recorded = spin.record_once(&gpu, buffer, args.n)?;
        let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(recorded.buffer)];
        let (waits, signals) = (at(iteration), at(iteration + 1));
        let batch = vk::SubmitInfo2::default()
            .wait_semaphore_infos(&waits)
            .command_buffer_infos(&buffers)
            .signal_semaphore_infos(&signals);
        let submit = if iteration % 2 == 0 { newer } else { older };
        gpu.queues[0].submit(&[&recorded], |queue| unsafe {
            submit(queue, 1, &batch, vk::Fence::null()).result()
        })?;
    }
    let (semaphores, values) = ([timeline], [START + u64::from(args.iterations)]);
    let wait = vk::SemaphoreWaitInfo::default()
        .semaphores(&semaphores)
        .values(&values);
    unsafe { gpu.device.wait_semaphores(&wait, u64::MAX)? };
    truth.add_result(spin.data.read(&gpu)?);
    gpu.report(truth);
    Ok(())
}

/// Submits a protected command buffer, with nothing but a barrier in it, again and again.
pub fn protected(args: &Args, truth: &mut Truth) -> Result<()> {
    let work = vk::QueueFlags::COMPUTE | vk::QueueFlags::PROTECTED;
    let gpu = Gpu::with_queues(args, 1, work)?;
    let queue = &gpu.queues[0];
    let info = vk::CommandPoolCreateInfo::default()
        .queue_family_index(queue.family)
        .flags(vk::CommandPoolCreateFlags::PROTECTED);
    let pool = unsafe { gpu.device.create_command_pool(&info, None)? };
    gpu.own(Object::CommandPool(pool));
    let buffer = gpu.command_buffers(pool, vk::CommandBufferLevel::PRIMARY, 1)?[0];
    let usage = vk::CommandBufferUsageFlags::SIMULTANEOUS_USE;
    let recorded = Recording::start(&gpu, buffer, usage)?.end()?;
    let fence = gpu.fence()?;
    for _ in 0..args.iterations {
        let buffers = [recorded.buffer];
        let mut protected = vk::ProtectedSubmitInfo::default().protected_submit(true);
        let batch = [vk::SubmitInfo::default()
            .command_buffers(&buffers)
            .push_next(&mut protected)];
        queue.submit(&[&recorded], |queue| unsafe {
            gpu.device.queue_submit(queue, &batch, fence)
        })?;
        gpu.wait(fence)?;
    }
    gpu.report(truth);
    Ok(())
}

/// Binds sparse memory (nothing, in fact) between submissions, in order by semaphores.
pub fn sparse(args: &Args, truth: &mut Truth) -> Result<()> {
    let work = vk::QueueFlags::COMPUTE | vk::QueueFlags::SPARSE_BINDING;
    let setup = Setup::on(Gpu::with_queues(args, 1, work)?, args)?;
    let (gpu, queue) = (&setup.gpu, &setup.gpu.queues[0]);
    let [worked, bound] = [0; 2].map(|_| gpu.semaphore());
    let (worked, bound) = ([worked?], [bound?]);
    for (iteration, buffer) in (0..).zip(gpu.primaries(queue, args.iterations)?) {
        let recorded = setup.spin.record_once(gpu, buffer, args.n)?;
        let buffers = [recorded.buffer];
        let mut batch = vk::SubmitInfo::default()
            .command_buffers(&buffers)
            .signal_semaphores(&worked);
        if iteration > 0 {
            let stages = &[vk::PipelineStageFlags::ALL_COMMANDS];
            batch = batch.wait_semaphores(&bound).wait_dst_stage_mask(stages);
        }
        queue.submit(&[&recorded], |queue| unsafe {
            gpu.device.queue_submit(queue, &[batch], vk::Fence::null())
        })?;
        let bind = [vk::BindSparseInfo::default()
            .wait_semaphores(&worked)
            .signal_semaphores(&bound)];
        // A sparse binding counts as a submission without command buffers.
        queue.submit(&[], |queue| unsafe {
            gpu.device
                .queue_bind_sparse(queue, &bind, vk::Fence::null())
        })?;
    }
    unsafe { gpu.device.device_wait_idle()? };
    setup.report(truth)
}

/// Lets `count` threads share the queue, each with a buffer, a pool and a fence of its own.
pub fn threads(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let work = || -> Result<Spin> {
        let spin = Spin::new(&gpu, args)?;
        let fence = gpu.fence()?;
        let buffer = gpu.primaries(&gpu.queues[0], 1)?[0];
        for _ in 0..args.iterations {
            let recorded = spin.record_once(&gpu, buffer, args.n)?;
            gpu.submit(&[&recorded], fence)?;
            gpu.wait(fence)?;
        }
        Ok(spin)
    };
    let spins = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.count).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
            .collect::<Result<Vec<_>>>()
    })?;
    truth.note("threads", args.count);
    for spin in &spins {
        truth.add_result(spin.data.read(&gpu)?);
    }
    gpu.report(truth);
    Ok(())
}

/// Submits one recording again and again on a thread that does nothing else, with as little stack as the command line says.
pub fn submitter(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::open(args)?;
    let spin = Spin::new(&gpu, args)?;
    let fence = gpu.fence()?;
    let buffer = gpu.primaries(&gpu.queues[0], 1)?[0];
    let usage = vk::CommandBufferUsageFlags::empty();
    let recorded = spin.record(&gpu, buffer, usage, args.n)?;
    std::thread::scope(|scope| {
        let stack_bytes = args.stack_kib.unwrap_or(1 << 10) << 10;
        let thread = std::thread::Builder::new().stack_size(stack_bytes);
        let work = || -> Result<()> {
            for _ in 0..args.iterations {
                gpu.submit(&[&recorded], fence)?;
                gpu.wait(fence)?;
            }
            Ok(())
        };
        let thread = thread.spawn_scoped(scope, work)?;
        thread.join().map_err(|_| anyhow!("the thread panicked"))?
    })?;
    truth.add_result(spin.data.read(&gpu)?);
    gpu.report(truth);
    Ok(())
}

/// Lets three devices on two instances work at the same time.
pub fn devices(args: &Args, truth: &mut Truth) -> Result<()> {
    let first = Arc::new(Instance::new(args)?);
    let second = Arc::new(Instance::new(args)?);
    let mut setups = Vec::new();
    for instance in [&first, &first, &second] {
        let gpu = Gpu::on(Arc::clone(instance), args, 1, vk::QueueFlags::COMPUTE)?;
        setups.push(Setup::on(gpu, args)?);
    }
    for _ in 0..args.iterations {
        for setup in &setups {
            setup.submit(args.n)?;
        }
        for setup in &setups {
            setup.wait()?;
        }
    }
    truth.note("instances", 2);
    truth.note("devices", setups.len());
    for setup in &setups {
        setup.report(truth)?;
    }
    Ok(())
}
