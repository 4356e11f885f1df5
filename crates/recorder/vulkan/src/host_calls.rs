//! Host calls that explain gaps. Calls that only ask for a state are folded: programs make thousands of them.

use crate::device::{self, Device};
use crate::recorder::Recorder;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{HostCallKind as Call, SemaphoreValue, Span, VulkanEvent};
use gapscope_spool::hook::guard;
use gapscope_spool::{ids, monotonic_ns};
use std::cell::RefCell;

/// Polls further apart than this are separate rows.
const FOLD_GAP_NS: i64 = 1_000_000;
/// A row of folded polls covers at most this time, so that little is lost at a sudden end.
const FOLD_SPAN_NS: i64 = 10_000_000;

/// Several polls of one kind.
struct Fold {
    recorder: &'static Recorder,
    call: Call,
    begin_ns: i64,
    end_ns: i64,
    count: u32,
    busy_ns: i64,
    result: i32,
}

thread_local! {
    static FOLD: RefCell<Option<Fold>> = const { RefCell::new(None) };
}

impl Drop for Fold {
    fn drop(&mut self) {
        guard(|| {
            self.recorder.write(&VulkanEvent::HostCall {
                call: self.call,
                span: Span::between(self.begin_ns, self.end_ns),
                count: self.count,
                busy_ns: self.busy_ns,
                queue: None,
                bytes: None,
                result: self.result,
            });
        });
    }
}

/// Writes the polls that this thread has folded so far.
pub fn flush() {
    let _ = FOLD.try_with(|fold| fold.try_borrow_mut().map(|mut fold| fold.take()));
}

fn fold(recorder: &'static Recorder, call: Call, begin_ns: i64, end_ns: i64, result: i32) {
    let _ = FOLD.try_with(|slot| {
        let Ok(mut slot) = slot.try_borrow_mut() else {
            return;
        };
        if let Some(fold) = slot.as_mut()
            && fold.call == call
            && begin_ns - fold.end_ns < FOLD_GAP_NS
            && end_ns - fold.begin_ns < FOLD_SPAN_NS
        {
            fold.end_ns = end_ns;
            fold.count += 1;
            fold.busy_ns += end_ns - begin_ns;
            fold.result = result;
            return;
        }
        // Assigning drops, and so writes, the fold before.
        *slot = Some(Fold {
            recorder,
            call,
            begin_ns,
            end_ns,
            count: 1,
            busy_ns: end_ns - begin_ns,
            result,
        });
    });
}

/// Times a host call; does nothing while recording is off.
pub struct HostCallTimer {
    begin_ns: Option<i64>,
}

impl HostCallTimer {
    pub fn start(device: &Device) -> HostCallTimer {
        HostCallTimer {
            begin_ns: device.recorder.recording().then(monotonic_ns),
        }
    }

    pub fn begin_ns(&self) -> Option<i64> {
        self.begin_ns
    }

    /// Writes the call.
    pub fn finish(
        self,
        device: &Device,
        call: Call,
        result: i32,
        queue: Option<ids::Queue>,
        bytes: Option<u64>,
    ) {
        let Some(begin_ns) = self.begin_ns else {
            return;
        };
        let end_ns = monotonic_ns();
        flush();
        device.recorder.write(&VulkanEvent::HostCall {
            call,
            span: Span::between(begin_ns, end_ns),
            count: 1,
            busy_ns: end_ns - begin_ns,
            queue,
            bytes,
            result,
        });
    }

    /// Folds the call with others of its kind.
    pub fn finish_poll(self, device: &Device, call: Call, result: i32) {
        if let Some(begin_ns) = self.begin_ns {
            fold(device.recorder, call, begin_ns, monotonic_ns(), result);
        }
    }
}

pub unsafe extern "system" fn queue_wait_idle(handle: vk::Queue) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.queue_wait_idle) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle);
        guard(|| {
            timer.finish(
                device,
                Call::WaitQueueIdle,
                result.as_raw(),
                device.queue(handle).map(|q| q.id),
                None,
            );
            device.after_wait(result);
        });
        result
    }
}

pub unsafe extern "system" fn device_wait_idle(handle: vk::Device) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.device_wait_idle) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle);
        guard(|| {
            timer.finish(device, Call::WaitDeviceIdle, result.as_raw(), None, None);
            device.after_wait(result);
        });
        result
    }
}

pub unsafe extern "system" fn wait_for_fences(
    handle: vk::Device,
    count: u32,
    fences: *const vk::Fence,
    all: vk::Bool32,
    timeout: u64,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.wait_for_fences) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, count, fences, all, timeout);
        guard(|| {
            if timeout == 0 {
                timer.finish_poll(device, Call::PollFence, result.as_raw());
            } else {
                timer.finish(device, Call::WaitFences, result.as_raw(), None, None);
            }
            device.after_wait(result);
        });
        result
    }
}

pub unsafe extern "system" fn get_fence_status(handle: vk::Device, fence: vk::Fence) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.get_fence_status) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, fence);
        guard(|| {
            timer.finish_poll(device, Call::PollFence, result.as_raw());
            device.after_wait(result);
        });
        result
    }
}

pub unsafe extern "system" fn wait_semaphores(
    handle: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.wait_semaphores) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, info, timeout);
        guard(|| {
            if timeout == 0 {
                timer.finish_poll(device, Call::PollSemaphore, result.as_raw());
            } else {
                timer.finish(device, Call::WaitSemaphores, result.as_raw(), None, None);
            }
            device.after_wait(result);
        });
        result
    }
}

pub unsafe extern "system" fn get_semaphore_counter_value(
    handle: vk::Device,
    semaphore: vk::Semaphore,
    value: *mut u64,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.get_semaphore_counter_value) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, semaphore, value);
        guard(|| {
            timer.finish_poll(device, Call::PollSemaphore, result.as_raw());
            device.note_result(result);
        });
        result
    }
}

pub unsafe extern "system" fn signal_semaphore(
    handle: vk::Device,
    info: *const vk::SemaphoreSignalInfo<'_>,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.signal_semaphore) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        // Before the call: it must precede what it lets run.
        guard(|| {
            if let Some(known) = device.semaphores.get((*info).semaphore.as_raw()) {
                let semaphore = SemaphoreValue {
                    semaphore: known.id,
                    value: (*info).value,
                };
                device.recorder.write(&VulkanEvent::HostSignal {
                    semaphore,
                    at_ns: monotonic_ns(),
                });
            }
        });
        call(handle, info)
    }
}

pub unsafe extern "system" fn get_query_pool_results(
    handle: vk::Device,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    bytes: usize,
    data: *mut std::ffi::c_void,
    stride: u64,
    flags: vk::QueryResultFlags,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.get_query_pool_results) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, pool, first, count, bytes, data, stride, flags);
        guard(|| timer.finish_poll(device, Call::GetQueryResults, result.as_raw()));
        result
    }
}

pub unsafe extern "system" fn queue_present(
    handle: vk::Queue,
    info: *const vk::PresentInfoKHR<'_>,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.queue_present) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, info);
        guard(|| {
            timer.finish(
                device,
                Call::Present,
                result.as_raw(),
                device.queue(handle).map(|q| q.id),
                None,
            );
            device.note_result(result);
        });
        result
    }
}

pub unsafe extern "system" fn acquire_next_image(
    handle: vk::Device,
    swapchain: vk::SwapchainKHR,
    timeout: u64,
    semaphore: vk::Semaphore,
    fence: vk::Fence,
    index: *mut u32,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.acquire_next_image) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, swapchain, timeout, semaphore, fence, index);
        guard(|| timer.finish(device, Call::AcquireImage, result.as_raw(), None, None));
        result
    }
}

impl Device {
    /// After a call that returns when the GPU has got somewhere.
    fn after_wait(&'static self, result: vk::Result) {
        self.note_result(result);
        if result == vk::Result::SUCCESS {
            self.harvester.harvest_small(self);
        }
    }
}
