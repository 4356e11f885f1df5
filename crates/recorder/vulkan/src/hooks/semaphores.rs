//! Semaphores as programs create and destroy them.

use crate::api::arguments::find;
use crate::devices;
use crate::objects::semaphores::Semaphore;
use ash::vk;
use gapscope_spool::event::VulkanEvent;
use gapscope_spool::hook::guard;

pub unsafe extern "system" fn create_semaphore(
    handle: vk::Device,
    info: *const vk::SemaphoreCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Semaphore,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.create_semaphore) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let kind = find::<vk::SemaphoreTypeCreateInfo<'_>>(
                    (*info).p_next,
                    vk::StructureType::SEMAPHORE_TYPE_CREATE_INFO,
                );
                let semaphore = Semaphore {
                    id: device.recorder.ids.semaphore.next(),
                    timeline: kind.is_some_and(|k| k.semaphore_type == vk::SemaphoreType::TIMELINE),
                    last_value: 0,
                };
                device.semaphores.add(*out, semaphore);
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
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.destroy_semaphore) else {
            return;
        };
        guard(|| {
            if let Some(gone) = device.semaphores.remove(semaphore) {
                let semaphore = gone.id;
                device
                    .recorder
                    .write(&VulkanEvent::SemaphoreEnd { semaphore });
            }
        });
        call(handle, semaphore, allocator);
    }
}
