//! Hooks the creation, change and destruction of descriptor sets (tables of buffers that kernels use), their layouts
//! and their update templates, and keeps them in the layer's [`crate::descriptors::Descriptors`]. The word after `=`
//! says when a hook's work runs: `before` the next layer's function, or `after` that has succeeded; with `around` the
//! work itself calls that function. `L::follow` may skip its work, where the layer does not need it any more.

use std::ffi::c_void;

use ash::vk;

use super::Allocator;
use crate::arguments::slice;
use crate::device_hooks;

device_hooks! {
    [L: ObjectHooks]

    fn create_descriptor_set_layout(
        handle: vk::Device,
        info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::DescriptorSetLayout,
    ) -> vk::Result = after |device| device.descriptors().add_layout(*out, &*info);

    fn destroy_descriptor_set_layout(
        handle: vk::Device,
        layout: vk::DescriptorSetLayout,
        allocator: Allocator<'_>,
    ) = before |device| device.descriptors().remove_layout(layout);

    fn allocate_descriptor_sets(
        handle: vk::Device,
        info: *const vk::DescriptorSetAllocateInfo<'_>,
        out: *mut vk::DescriptorSet,
    ) -> vk::Result = after |device| {
        let count = (*info).descriptor_set_count;
        let layouts = slice((*info).p_set_layouts, count);
        let made = slice(out.cast_const(), count);
        device.descriptors().add_sets((*info).descriptor_pool, layouts, made);
    };

    fn free_descriptor_sets(
        handle: vk::Device,
        pool: vk::DescriptorPool,
        count: u32,
        sets: *const vk::DescriptorSet,
    ) -> vk::Result = before |device| device.descriptors().free(pool, slice(sets, count));

    fn reset_descriptor_pool(
        handle: vk::Device,
        pool: vk::DescriptorPool,
        flags: vk::DescriptorPoolResetFlags,
    ) -> vk::Result = before |device| device.descriptors().empty_pool(pool);

    fn destroy_descriptor_pool(
        handle: vk::Device,
        pool: vk::DescriptorPool,
        allocator: Allocator<'_>,
    ) = before |device| device.descriptors().empty_pool(pool);

    fn update_descriptor_sets(
        handle: vk::Device,
        write_count: u32,
        writes: *const vk::WriteDescriptorSet<'_>,
        copy_count: u32,
        copies: *const vk::CopyDescriptorSet<'_>,
    ) = around |device, call| {
        L::follow(|| {
            for write in slice(writes, write_count) {
                device.descriptors().write(device.descriptor_context(), write);
            }
            for copy in slice(copies, copy_count) {
                device.descriptors().copy(copy);
            }
        });
        call(handle, write_count, writes, copy_count, copies);
    };

    fn create_descriptor_update_template(
        handle: vk::Device,
        info: *const vk::DescriptorUpdateTemplateCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::DescriptorUpdateTemplate,
    ) -> vk::Result = after |device| {
        device.descriptors().add_template(*out, &*info);
    };

    fn destroy_descriptor_update_template(
        handle: vk::Device,
        template: vk::DescriptorUpdateTemplate,
        allocator: Allocator<'_>,
    ) = before |device| device.descriptors().remove_template(template);

    fn update_descriptor_set_with_template(
        handle: vk::Device,
        set: vk::DescriptorSet,
        template: vk::DescriptorUpdateTemplate,
        data: *const c_void,
    ) = around |device, call| {
        L::follow(|| {
            let context = device.descriptor_context();
            device.descriptors().write_template(context, set, template, data);
        });
        call(handle, set, template, data);
    };
}
