//! Descriptor sets as programs make and update them.

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk::{self, Handle};
use gapscope_capture::model;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::arguments::slice;

use crate::api::device;
use crate::objects::descriptors::SetLayout;
use crate::objects::kernels::binding_flags;
use crate::window;

pub unsafe extern "system" fn create_descriptor_set_layout(
    handle: vk::Device,
    info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DescriptorSetLayout,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let create = device.next.fp_v1_0().create_descriptor_set_layout;
        let result = create(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let info = &*info;
                let flags = binding_flags(info);
                let bindings = slice(info.p_bindings, info.binding_count)
                    .iter()
                    .enumerate();
                let bindings = bindings.map(|(index, binding)| model::LayoutBinding {
                    binding: binding.binding,
                    descriptor_type: binding.descriptor_type.as_raw() as u32,
                    count: binding.descriptor_count,
                    stages: binding.stage_flags.as_raw(),
                    flags: flags.get(index).map_or(0, |flags| flags.as_raw()),
                });
                let layout = SetLayout::new(info.flags.as_raw(), bindings.collect());
                let layouts = &device.objects.descriptors.layouts;
                layouts.insert((*out).as_raw(), Arc::new(layout));
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
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| device.objects.descriptors.layouts.remove(layout.as_raw()));
        (device.next.fp_v1_0().destroy_descriptor_set_layout)(handle, layout, allocator);
    }
}

pub unsafe extern "system" fn allocate_descriptor_sets(
    handle: vk::Device,
    info: *const vk::DescriptorSetAllocateInfo<'_>,
    out: *mut vk::DescriptorSet,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let result = (device.next.fp_v1_0().allocate_descriptor_sets)(handle, info, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let info = &*info;
                let layouts = slice(info.p_set_layouts, info.descriptor_set_count);
                let sets = slice(out, info.descriptor_set_count);
                device
                    .objects
                    .descriptors
                    .add(info.descriptor_pool, layouts, sets);
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
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        guard(|| device.objects.descriptors.free(pool, slice(sets, count)));
        (device.next.fp_v1_0().free_descriptor_sets)(handle, pool, count, sets)
    }
}

pub unsafe extern "system" fn reset_descriptor_pool(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    flags: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        guard(|| device.objects.descriptors.empty(pool));
        (device.next.fp_v1_0().reset_descriptor_pool)(handle, pool, flags)
    }
}

pub unsafe extern "system" fn destroy_descriptor_pool(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| device.objects.descriptors.empty(pool));
        (device.next.fp_v1_0().destroy_descriptor_pool)(handle, pool, allocator);
    }
}

pub unsafe extern "system" fn update_descriptor_sets(
    handle: vk::Device,
    write_count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
    copy_count: u32,
    copies: *const vk::CopyDescriptorSet<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        window::keep(|| {
            let descriptors = &device.objects.descriptors;
            for write in slice(writes, write_count) {
                descriptors.write(write);
            }
            for copy in slice(copies, copy_count) {
                descriptors.copy(copy);
            }
        });
        let update = device.next.fp_v1_0().update_descriptor_sets;
        update(handle, write_count, writes, copy_count, copies);
    }
}

pub unsafe extern "system" fn create_descriptor_update_template(
    handle: vk::Device,
    info: *const vk::DescriptorUpdateTemplateCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DescriptorUpdateTemplate,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let create = device.next.fp_v1_1().create_descriptor_update_template;
        let result = create(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let descriptors = &device.objects.descriptors;
                let template = Arc::new(descriptors.template(&*info));
                descriptors.templates.insert((*out).as_raw(), template);
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
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| {
            device
                .objects
                .descriptors
                .templates
                .remove(template.as_raw())
        });
        (device.next.fp_v1_1().destroy_descriptor_update_template)(handle, template, allocator);
    }
}

pub unsafe extern "system" fn update_descriptor_set_with_template(
    handle: vk::Device,
    set: vk::DescriptorSet,
    template: vk::DescriptorUpdateTemplate,
    data: *const c_void,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        window::keep(|| {
            let descriptors = &device.objects.descriptors;
            let Some(known) = descriptors.templates.get(template.as_raw()) else {
                return;
            };
            descriptors.sets.with(set.as_raw(), |set| {
                let written = known.written(&set.layout, data);
                set.contents.extend(written);
            });
        });
        (device.next.fp_v1_1().update_descriptor_set_with_template)(handle, set, template, data);
    }
}
