//! Descriptor sets as programs allocate, update and free them.

use crate::api::arguments::slice;
use crate::devices;
use ash::vk;
use gapscope_spool::hook::guard;
use std::ffi::c_void;

pub unsafe extern "system" fn create_descriptor_set_layout(
    handle: vk::Device,
    info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DescriptorSetLayout,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.create_descriptor_set_layout) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let bindings = slice((*info).p_bindings, (*info).binding_count);
                device.descriptors.add_layout(*out, bindings);
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_descriptor_set_layout(
    handle: vk::Device,
    layout: vk::DescriptorSetLayout,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.destroy_descriptor_set_layout)
        else {
            return;
        };
        guard(|| device.descriptors.remove_layout(layout));
        call(handle, layout, allocator);
    }
}

pub unsafe extern "system" fn allocate_descriptor_sets(
    handle: vk::Device,
    info: *const vk::DescriptorSetAllocateInfo<'_>,
    out: *mut vk::DescriptorSet,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.allocate_descriptor_sets) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let count = (*info).descriptor_set_count;
                let made = slice(out.cast_const(), count);
                let layouts = slice((*info).p_set_layouts, count);
                (device.descriptors).add((*info).descriptor_pool, layouts, made);
            });
        }
        result
    }
}

pub unsafe extern "system" fn free_descriptor_sets(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    count: u32,
    sets: *const vk::DescriptorSet,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.free_descriptor_sets) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| device.descriptors.free(pool, slice(sets, count)));
        call(handle, pool, count, sets)
    }
}

pub unsafe extern "system" fn reset_descriptor_pool(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    flags: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.reset_descriptor_pool) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| device.descriptors.forget_pool(pool));
        call(handle, pool, flags)
    }
}

pub unsafe extern "system" fn destroy_descriptor_pool(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.destroy_descriptor_pool) else {
            return;
        };
        guard(|| device.descriptors.forget_pool(pool));
        call(handle, pool, allocator);
    }
}

pub unsafe extern "system" fn update_descriptor_sets(
    handle: vk::Device,
    write_count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
    copy_count: u32,
    copies: *const vk::CopyDescriptorSet<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.update_descriptor_sets) else {
            return;
        };
        guard(|| {
            let (descriptors, memory) = (&device.descriptors, &device.memory);
            for write in slice(writes, write_count) {
                descriptors.with(write.dst_set, |set| set.write(memory, write));
            }
            for copy in slice(copies, copy_count) {
                descriptors.copy(copy);
            }
        });
        call(handle, write_count, writes, copy_count, copies);
    }
}

pub unsafe extern "system" fn create_descriptor_update_template(
    handle: vk::Device,
    info: *const vk::DescriptorUpdateTemplateCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DescriptorUpdateTemplate,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.create_descriptor_update_template)
        else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let entries = slice(
                    (*info).p_descriptor_update_entries,
                    (*info).descriptor_update_entry_count,
                );
                device.descriptors.add_template(*out, entries);
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_descriptor_update_template(
    handle: vk::Device,
    template: vk::DescriptorUpdateTemplate,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.destroy_descriptor_update_template)
        else {
            return;
        };
        guard(|| device.descriptors.remove_template(template));
        call(handle, template, allocator);
    }
}

pub unsafe extern "system" fn update_descriptor_set_with_template(
    handle: vk::Device,
    set: vk::DescriptorSet,
    template: vk::DescriptorUpdateTemplate,
    data: *const c_void,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.update_descriptor_set_with_template)
        else {
            return;
        };
        guard(|| {
            if let Some(entries) = device.descriptors.template(template) {
                device.descriptors.with(set, |set| {
                    set.write_template(&device.memory, &entries, data)
                });
            }
        });
        call(handle, set, template, data);
    }
}
