//! Hooks the host calls that wait, ask for a state (polls), signal, or present images; each call is recorded with
//! its time. After a call that may have waited, results of timing are collected.

use crate::api::arguments::slice;
use crate::device::Device;
use crate::hooks::timed_calls::timed_hooks;
use ash::vk;
use gapscope_spool::event::{HostCallKind, VulkanEvent};
use gapscope_spool::monotonic_ns;
use gapscope_vulkan_layer::device_hooks;

timed_hooks! {
    // A wait with a timeout of 0 only asks for the state, so it is a poll.
    fn wait_for_fences(
        handle: vk::Device,
        count: u32,
        fences: *const vk::Fence,
        all: vk::Bool32,
        timeout: u64,
    ) = |device, timer, result| {
        if timeout == 0 {
            timer.finish_poll(HostCallKind::PollFence, result);
        } else {
            timer.finish(HostCallKind::WaitFences, result);
        }
        device.after_wait(result);
    };

    fn get_fence_status(handle: vk::Device, fence: vk::Fence) = |device, timer, result| {
        timer.finish_poll(HostCallKind::PollFence, result);
        device.after_wait(result);
    };

    fn wait_semaphores(
        handle: vk::Device,
        info: *const vk::SemaphoreWaitInfo<'_>,
        timeout: u64,
    ) = |device, timer, result| {
        if timeout == 0 {
            timer.finish_poll(HostCallKind::PollSemaphore, result);
        } else {
            timer.finish(HostCallKind::WaitSemaphores, result);
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
        timer.finish_poll(HostCallKind::PollSemaphore, outcome);
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
    ) = |_, timer, result| timer.finish_poll(HostCallKind::GetQueryResults, result);

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
        if let Some(semaphore) = device.semaphores.with_value(semaphore, value) {
            device.recorder.write(&VulkanEvent::HostSignal {
                semaphore,
                at_ns: monotonic_ns(),
            });
        }
    };
}
