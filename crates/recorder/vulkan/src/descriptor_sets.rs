//! Descriptor sets as programs allocate, update and free them.

use crate::bindings::Set;
use crate::device::{self, Device};
use crate::handles::lock;
use crate::instance::slice;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::Binding;
use gapscope_spool::hook::guard;
use std::ffi::c_void;

pub unsafe extern "system" fn allocate_descriptor_sets(
    handle: vk::Device,
    info: *const vk::DescriptorSetAllocateInfo<'_>,
    out: *mut vk::DescriptorSet,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.allocate_descriptor_sets) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let made = slice(out.cast_const(), (*info).descriptor_set_count);
                for set in made {
                    device.descriptors.sets.insert(set.as_raw(), Set::default());
                }
                let pool = (*info).descriptor_pool.as_raw();
                lock(&device.descriptors.pools)
                    .entry(pool)
                    .or_default()
                    .extend(made);
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
        let Some((device, call)) = device::with(handle, |f| f.free_descriptor_sets) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| {
            let freed = slice(sets, count);
            device.descriptors.forget(freed);
            if let Some(members) = lock(&device.descriptors.pools).get_mut(&pool.as_raw()) {
                members.retain(|set| !freed.contains(set));
            }
        });
        call(handle, pool, count, sets)
    }
}

fn forget_pool(device: &Device, pool: vk::DescriptorPool) {
    let members = lock(&device.descriptors.pools).remove(&pool.as_raw());
    device.descriptors.forget(&members.unwrap_or_default());
}

pub unsafe extern "system" fn reset_descriptor_pool(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    flags: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.reset_descriptor_pool) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| forget_pool(device, pool));
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
        let Some((device, call)) = device::with(handle, |f| f.destroy_descriptor_pool) else {
            return;
        };
        guard(|| forget_pool(device, pool));
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
        let Some((device, call)) = device::with(handle, |f| f.update_descriptor_sets) else {
            return;
        };
        guard(|| {
            let sets = &device.descriptors.sets;
            for write in slice(writes, write_count) {
                sets.with(write.dst_set.as_raw(), |set| set.write(device, write));
            }
            for copy in slice(copies, copy_count) {
                let from = copy.src_array_element..copy.src_array_element + copy.descriptor_count;
                let taken = sets.with(copy.src_set.as_raw(), |set| {
                    let wanted =
                        |e: &&Binding| e.binding == copy.src_binding && from.contains(&e.element);
                    set.entries
                        .iter()
                        .filter(wanted)
                        .copied()
                        .collect::<Vec<_>>()
                });
                sets.with(copy.dst_set.as_raw(), |set| {
                    for entry in taken.iter().flatten() {
                        let element =
                            entry.element - copy.src_array_element + copy.dst_array_element;
                        set.entries
                            .retain(|e| (e.binding, e.element) != (copy.dst_binding, element));
                        set.entries.push(Binding {
                            binding: copy.dst_binding,
                            element,
                            ..*entry
                        });
                    }
                    set.entries.sort_by_key(|e| (e.binding, e.element));
                    set.content = gapscope_spool::ids::BindingContent::NONE;
                });
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
        let Some((device, call)) = device::with(handle, |f| f.create_descriptor_update_template)
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
                device
                    .descriptors
                    .templates
                    .insert((*out).as_raw(), entries.into());
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
        let Some((device, call)) = device::with(handle, |f| f.destroy_descriptor_update_template)
        else {
            return;
        };
        guard(|| device.descriptors.templates.remove(template.as_raw()));
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
        let Some((device, call)) = device::with(handle, |f| f.update_descriptor_set_with_template)
        else {
            return;
        };
        guard(|| {
            if let Some(entries) = device.descriptors.template(template) {
                let sets = &device.descriptors.sets;
                sets.with(set.as_raw(), |set| {
                    set.write_template(device, &entries, data)
                });
            }
        });
        call(handle, set, template, data);
    }
}
