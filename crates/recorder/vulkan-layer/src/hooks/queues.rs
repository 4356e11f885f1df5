//! Hooks submissions of work to queues and waits for queues, which the layer passes on itself ([`QueueHooks`]), and
//! the creation and destruction of semaphores ([`ObjectHooks`](crate::layer::ObjectHooks)).

use ash::vk;

use super::Allocator;
use crate::arguments::{find, slice};
use crate::device_hooks;
use crate::layer::{QueueHooks, SemaphoreInfo};
use crate::submissions::{SubmitFunction, SubmitInfo};

/// Hands `count` structures of a submission to the layer, which passes them or others on with `call`. The driver
/// answers a program that passes null instead of an array that is not empty.
///
/// # Safety
/// The program's own call.
unsafe fn submit<L: QueueHooks, I: SubmitInfo>(
    (device, function): (&'static L, SubmitFunction),
    queue: vk::Queue,
    (infos, count, fence): (*const I, u32, vk::Fence),
    call: impl Fn(*const I, u32) -> vk::Result,
) -> vk::Result {
    if count > 0 && infos.is_null() {
        return call(infos, count);
    }
    // SAFETY: as the caller promises.
    unsafe {
        device.submit(queue, function, slice(infos, count), fence, |infos| {
            call(infos.as_ptr(), infos.len() as u32)
        })
    }
}

device_hooks! {
    [L: QueueHooks]

    fn queue_submit(
        handle: vk::Queue,
        count: u32,
        infos: *const vk::SubmitInfo<'_>,
        fence: vk::Fence,
    ) -> vk::Result = around |device, call| {
        let by = (device, SubmitFunction::Submit);
        submit(by, handle, (infos, count, fence), |infos, count| call(handle, count, infos, fence))
    };

    fn queue_submit2(
        handle: vk::Queue,
        count: u32,
        infos: *const vk::SubmitInfo2<'_>,
        fence: vk::Fence,
    ) -> vk::Result = around |device, call| {
        let by = (device, SubmitFunction::Submit2);
        submit(by, handle, (infos, count, fence), |infos, count| call(handle, count, infos, fence))
    };

    fn queue_submit2_khr(
        handle: vk::Queue,
        count: u32,
        infos: *const vk::SubmitInfo2<'_>,
        fence: vk::Fence,
    ) -> vk::Result = around |device, call| {
        let by = (device, SubmitFunction::Submit2Khr);
        submit(by, handle, (infos, count, fence), |infos, count| call(handle, count, infos, fence))
    };

    fn queue_bind_sparse(
        handle: vk::Queue,
        count: u32,
        infos: *const vk::BindSparseInfo<'_>,
        fence: vk::Fence,
    ) -> vk::Result = around |device, call| {
        device.bind_sparse(handle, slice(infos, count), fence, || call(handle, count, infos, fence))
    };

    fn queue_wait_idle(handle: vk::Queue) -> vk::Result =
        around |device, call| device.wait_idle(Some(handle), || call(handle));

    fn device_wait_idle(handle: vk::Device) -> vk::Result =
        around |device, call| device.wait_idle(None, || call(handle));
}

device_hooks! {
    [L: ObjectHooks]

    fn create_semaphore(
        handle: vk::Device,
        info: *const vk::SemaphoreCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::Semaphore,
    ) -> vk::Result = after |device| {
        let kind = vk::StructureType::SEMAPHORE_TYPE_CREATE_INFO;
        let kind = find::<vk::SemaphoreTypeCreateInfo<'_>>((*info).p_next, kind);
        let exported = vk::StructureType::EXPORT_SEMAPHORE_CREATE_INFO;
        let exported = find::<vk::ExportSemaphoreCreateInfo<'_>>((*info).p_next, exported);
        let info = SemaphoreInfo {
            initial_value: kind
                .filter(|kind| kind.semaphore_type == vk::SemaphoreType::TIMELINE)
                .map(|kind| kind.initial_value),
            is_shared: exported.is_some_and(|exported| !exported.handle_types.is_empty()),
        };
        device.add_semaphore(*out, info);
    };

    fn destroy_semaphore(handle: vk::Device, semaphore: vk::Semaphore, allocator: Allocator<'_>) =
        before |device| device.remove_semaphore(semaphore);
}
