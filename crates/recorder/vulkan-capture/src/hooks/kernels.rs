//! Hooks the creation and destruction of pipeline layouts (a kernel's bindings), which are kept for the capture.

use std::sync::Arc;

use ash::vk::{self, Handle};
use gapscope_capture::model;
use gapscope_vulkan_layer::arguments::slice;
use gapscope_vulkan_layer::device_hooks;
use gapscope_vulkan_layer::handles::Serial;

use crate::api::device::Device;
use crate::objects::kernels::PipelineLayout;

device_hooks! {
    [Device]

    fn create_pipeline_layout(
        handle: vk::Device,
        info: *const vk::PipelineLayoutCreateInfo<'_>,
        allocator: *const vk::AllocationCallbacks<'_>,
        out: *mut vk::PipelineLayout,
    ) -> vk::Result = after |device| {
        let info = &*info;
        let sets = slice(info.p_set_layouts, info.set_layout_count).iter();
        let ranges = slice(info.p_push_constant_ranges, info.push_constant_range_count);
        let layout = PipelineLayout {
            serial: Serial::next(),
            handle: *out,
            flags: info.flags.as_raw(),
            sets: sets
                .map(|set| device.objects.descriptors.layout(*set))
                .collect(),
            push_constants: (ranges.iter())
                .map(|range| model::PushConstantRange {
                    stages: range.stage_flags.as_raw(),
                    offset: range.offset,
                    bytes: range.size,
                })
                .collect(),
        };
        let layouts = &device.objects.pipeline_layouts;
        layouts.insert((*out).as_raw(), Arc::new(layout));
    };

    fn destroy_pipeline_layout(
        handle: vk::Device,
        layout: vk::PipelineLayout,
        allocator: *const vk::AllocationCallbacks<'_>,
    ) = before |device| device.objects.pipeline_layouts.remove(layout.as_raw());
}
