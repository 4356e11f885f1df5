//! Hooks of submissions of work to queues, waits for queues, and semaphores.

use ash::vk;

use super::{Allocator, hooks};
use crate::arguments::{find, slice};
use crate::layer::SemaphoreInfo;

/// Returns whether a program passes null instead of an array that is not empty: the driver answers that.
fn is_missing<T>(array: *const T, count: u32) -> bool {
    count > 0 && array.is_null()
}

hooks! {
    L: QueueHooks;

    fn queue_submit(
        handle: vk::Queue,
        count: u32,
        infos: *const vk::SubmitInfo<'_>,
        fence: vk::Fence,
    ) -> vk::Result = |device, call| {
        match is_missing(infos, count) {
            true => call(handle, count, infos, fence),
            false => device.submit(handle, slice(infos, count), fence, call),
        }
    }

    fn queue_submit2(
        handle: vk::Queue,
        count: u32,
        infos: *const vk::SubmitInfo2<'_>,
        fence: vk::Fence,
    ) -> vk::Result = |device, call| {
        match is_missing(infos, count) {
            true => call(handle, count, infos, fence),
            false => device.submit2(handle, slice(infos, count), fence, call),
        }
    }

    fn queue_bind_sparse(
        handle: vk::Queue,
        count: u32,
        infos: *const vk::BindSparseInfo<'_>,
        fence: vk::Fence,
    ) -> vk::Result = |device, call| {
        device.bind_sparse(handle, slice(infos, count), || call(handle, count, infos, fence))
    }

    fn queue_wait_idle(handle: vk::Queue) -> vk::Result = |device, call| {
        device.wait_idle(Some(handle), || call(handle))
    }

    fn device_wait_idle(handle: vk::Device) -> vk::Result = |device, call| {
        device.wait_idle(None, || call(handle))
    }
}

hooks! {
    L: ObjectHooks;

    fn create_semaphore(
        handle: vk::Device,
        info: *const vk::SemaphoreCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::Semaphore,
    ) -> vk::Result = |device, call| {
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            L::guard(|| {
                let kind = vk::StructureType::SEMAPHORE_TYPE_CREATE_INFO;
                let kind = find::<vk::SemaphoreTypeCreateInfo<'_>>((*info).p_next, kind);
                let exported = vk::StructureType::EXPORT_SEMAPHORE_CREATE_INFO;
                let exported = find::<vk::ExportSemaphoreCreateInfo<'_>>((*info).p_next, exported);
                let info = SemaphoreInfo {
                    initial_value: kind.and_then(|kind| (kind.semaphore_type == vk::SemaphoreType::TIMELINE).then_some(kind.initial_value)),
                    is_shared: exported.is_some_and(|exported| !exported.handle_types.is_empty()),
                };
                device.add_semaphore(*out, info);
            });
        }
        result
    }

    fn destroy_semaphore(handle: vk::Device, semaphore: vk::Semaphore, allocator: Allocator<'_>) = |device, call| {
        L::guard(|| device.remove_semaphore(semaphore));
        call(handle, semaphore, allocator);
    }
}
