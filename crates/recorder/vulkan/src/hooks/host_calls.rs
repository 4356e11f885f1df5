//! Hooks the host calls that wait, ask for a state (polls), signal, or present images; each call is recorded with
//! its time, and a wait with the submission that it was for. After a call that may have waited, results of timing are collected.

use crate::api::arguments::slice;
use crate::device::Device;
use crate::hooks::timed_calls::timed_hooks;
use crate::objects::awaited::Awaited;
use crate::submitted::Submitted;
use ash::vk;
use gapscope_spool::event::{HostCallKind, VulkanEvent};
use gapscope_spool::monotonic_ns;
use gapscope_vulkan_layer::device_hooks;

/// Returns the submission for which a call waits that waits for fences.
///
/// # Safety
/// The program's own fences, in its call.
unsafe fn awaited_fences(
    device: &Device,
    fences: *const vk::Fence,
    count: u32,
    all: bool,
) -> Option<Submitted> {
    // SAFETY: as the caller promises.
    let fences = unsafe { slice(fences, count) };
    let awaited = fences.iter().map(|fence| device.fences.awaited(*fence));
    // The wait for one fence is for all of them.
    match all || count == 1 {
        true => Awaited::all(awaited),
        false => Awaited::any(awaited),
    }
}

/// Returns the submission for which a call waits that waits for timeline semaphores.
///
/// # Safety
/// The program's own structure, in its call.
unsafe fn awaited_semaphores(
    device: &Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
) -> Option<Submitted> {
    // SAFETY: as the caller promises.
    let (info, semaphores, values) = unsafe {
        let info = &*info;
        let count = info.semaphore_count;
        (
            info,
            slice(info.p_semaphores, count),
            slice(info.p_values, count),
        )
    };
    let awaited = semaphores.iter().zip(values);
    let awaited = awaited.map(|(semaphore, value)| device.semaphores.awaited(*semaphore, *value));
    let is_any = info.flags.contains(vk::SemaphoreWaitFlags::ANY);
    match is_any && semaphores.len() > 1 {
        true => Awaited::any(awaited),
        false => Awaited::all(awaited),
    }
}

timed_hooks! {
    // A wait with a timeout of 0 only asks for the state, so it is a poll.
    fn wait_for_fences(
        handle: vk::Device,
        count: u32,
        fences: *const vk::Fence,
        all: vk::Bool32,
        timeout: u64,
    ) = |device, timer, result| {
        let awaited = || awaited_fences(device, fences, count, all != 0);
        if timeout == 0 {
            timer.finish_poll(HostCallKind::PollFence, result, awaited);
        } else if timer.start_ns().is_some() {
            timer.finish_wait(HostCallKind::WaitFences, result, awaited());
        }
        device.after_wait(result);
    };

    fn get_fence_status(handle: vk::Device, fence: vk::Fence) = |device, timer, result| {
        timer.finish_poll(HostCallKind::PollFence, result, || {
            awaited_fences(device, &fence, 1, true)
        });
        device.after_wait(result);
    };

    fn wait_semaphores(
        handle: vk::Device,
        info: *const vk::SemaphoreWaitInfo<'_>,
        timeout: u64,
    ) = |device, timer, result| {
        let awaited = || awaited_semaphores(device, info);
        if timeout == 0 {
            timer.finish_poll(HostCallKind::PollSemaphore, result, awaited);
        } else if timer.start_ns().is_some() {
            timer.finish_wait(HostCallKind::WaitSemaphores, result, awaited());
        }
        device.after_wait(result);
    };

    fn get_semaphore_counter_value(
        handle: vk::Device,
        semaphore: vk::Semaphore,
        value: *mut u64,
    ) = |device, timer, result| {
        // The call succeeds whatever the value, so its outcome is written as that of a fence would be.
        let is_done = result != vk::Result::SUCCESS || device.semaphores.is_done(semaphore, *value);
        let outcome = match is_done {
            true => result,
            false => vk::Result::NOT_READY,
        };
        timer.finish_poll(HostCallKind::PollSemaphore, outcome, || {
            Awaited::all([device.semaphores.awaited(semaphore, *value)].into_iter())
        });
        device.after_wait(outcome);
    };

    fn get_query_pool_results(
        handle: vk::Device,
        pool: vk::QueryPool,
        first: u32,
        count: u32,
        bytes: usize,
        data: *mut std::ffi::c_void,
        stride: u64,
        flags: vk::QueryResultFlags,
    ) = |_, timer, result| timer.finish_poll(HostCallKind::GetQueryResults, result, || None);

    fn queue_present(
        handle: vk::Queue,
        info: *const vk::PresentInfoKHR<'_>,
    ) = |device, timer, result| {
        // A binary semaphore that a present waits for is consumed: its next signal is another use.
        if timer.start_ns().is_some() {
            for handle in slice((*info).p_wait_semaphores, (*info).wait_semaphore_count) {
                if let Some(consumed) = device.semaphores.with_value(*handle, 0) {
                    device.recorder.write(&VulkanEvent::SemaphoreEnd {
                        semaphore: consumed.semaphore,
                    });
                }
            }
        }
        timer.finish_on_queue(HostCallKind::Present, result, device.queue_id(handle));
        device.note_result(result);
    };
}

device_hooks! {
    [Device]

    /// The event is written before the call, as it must precede the work that the signal releases.
    fn signal_semaphore(
        handle: vk::Device,
        info: *const vk::SemaphoreSignalInfo<'_>,
    ) -> vk::Result = before |device| {
        let (semaphore, value) = ((*info).semaphore, (*info).value);
        device.semaphores.will_reach_otherwise(semaphore, value);
        if let Some(semaphore) = device.semaphores.with_value(semaphore, value) {
            device.recorder.write(&VulkanEvent::HostSignal {
                semaphore,
                at_ns: monotonic_ns(),
            });
        }
    };

    fn reset_fences(handle: vk::Device, count: u32, fences: *const vk::Fence) -> vk::Result = before |device| {
        for fence in slice(fences, count) {
            device.fences.forget(*fence);
        }
    };

    fn destroy_fence(
        handle: vk::Device,
        fence: vk::Fence,
        allocator: *const vk::AllocationCallbacks<'_>,
    ) = before |device| device.fences.forget(fence);

    /// From now on another program may signal the fence.
    fn import_fence_fd(
        handle: vk::Device,
        info: *const vk::ImportFenceFdInfoKHR<'_>,
    ) -> vk::Result = before |device| device.fences.forget((*info).fence);
}
