//! Semaphores: which are timelines.

use ash::vk::{self, Handle};
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::arguments::find;

use crate::api::device;
use crate::objects::{Semaphore, Serial};

pub unsafe extern "system" fn create_semaphore(
    handle: vk::Device,
    info: *const vk::SemaphoreCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Semaphore,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let result = (device.next.fp_v1_0().create_semaphore)(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let wanted = vk::StructureType::SEMAPHORE_TYPE_CREATE_INFO;
                let kind = find::<vk::SemaphoreTypeCreateInfo<'_>>((*info).p_next, wanted);
                let exported = vk::StructureType::EXPORT_SEMAPHORE_CREATE_INFO;
                let exported = find::<vk::ExportSemaphoreCreateInfo<'_>>((*info).p_next, exported);
                let semaphore = Semaphore {
                    is_shared: exported.is_some_and(|info| !info.handle_types.is_empty()),
                    serial: Serial::next(),
                    is_timeline: kind
                        .is_some_and(|kind| kind.semaphore_type == vk::SemaphoreType::TIMELINE),
                };
                device.objects.semaphores.insert((*out).as_raw(), semaphore);
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_semaphore(
    handle: vk::Device,
    semaphore: vk::Semaphore,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| device.objects.semaphores.remove(semaphore.as_raw()));
        (device.next.fp_v1_0().destroy_semaphore)(handle, semaphore, allocator);
    }
}
