//! Makes the bindings of kernels (a storage buffer and a push constant), with their pipelines and descriptor sets.

use std::ffi::CString;

use anyhow::Result;
use ash::vk;

use crate::buffer::Buffer;
use crate::gpu::{Gpu, Object};
use crate::kernel::{SPEC_ID, Shader};

/// The way in which the buffer reaches the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    Set,
    DynamicOffset,
    /// The second of two dynamic descriptors; the first one is never written.
    SecondDynamicOffset,
    Push,
}

#[derive(Clone, Copy)]
/// The layout of a kernel's one buffer and one push constant.
pub struct Layout {
    pub set: vk::DescriptorSetLayout,
    pub pipeline: vk::PipelineLayout,
    descriptor: vk::DescriptorType,
    /// The number of the storage buffer's binding.
    number: u32,
}

impl Layout {
    pub fn new(gpu: &Gpu, binding: Binding) -> Result<Self> {
        let descriptor = match binding {
            Binding::DynamicOffset | Binding::SecondDynamicOffset => {
                vk::DescriptorType::STORAGE_BUFFER_DYNAMIC
            }
            Binding::Set | Binding::Push => vk::DescriptorType::STORAGE_BUFFER,
        };
        let flags = match binding {
            Binding::Push => vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR,
            _ => vk::DescriptorSetLayoutCreateFlags::empty(),
        };
        let stage = vk::ShaderStageFlags::COMPUTE;
        let number = u32::from(binding == Binding::SecondDynamicOffset);
        let bindings: Vec<_> = (0..=number)
            .map(|number| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(number)
                    .descriptor_type(descriptor)
                    .descriptor_count(1)
                    .stage_flags(stage)
            })
            .collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default()
            .bindings(&bindings)
            .flags(flags);
        let set = unsafe { gpu.device.create_descriptor_set_layout(&info, None)? };
        gpu.own(Object::SetLayout(set));
        let ranges = [vk::PushConstantRange::default().size(4).stage_flags(stage)];
        let sets = [set];
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&sets)
            .push_constant_ranges(&ranges);
        let pipeline = unsafe { gpu.device.create_pipeline_layout(&info, None)? };
        gpu.own(Object::PipelineLayout(pipeline));
        Ok(Self {
            set,
            pipeline,
            descriptor,
            number,
        })
    }

    /// Makes a pipeline of a kernel. Its shader module is destroyed at once.
    pub fn pipeline(&self, gpu: &Gpu, shader: &Shader) -> Result<vk::Pipeline> {
        let info = vk::ShaderModuleCreateInfo::default().code(shader.spirv);
        let module = unsafe { gpu.device.create_shader_module(&info, None)? };
        let name = CString::new(shader.entry_point)?;
        let entries = [vk::SpecializationMapEntry::default()
            .constant_id(SPEC_ID)
            .size(4)];
        let value = shader.constant.unwrap_or_default().to_le_bytes();
        let specialisation = vk::SpecializationInfo::default()
            .map_entries(&entries)
            .data(&value);
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(&name);
        if shader.constant.is_some() {
            stage = stage.specialization_info(&specialisation);
        }
        let info = [vk::ComputePipelineCreateInfo::default()
            .flags(shader.flags)
            .stage(stage)
            .layout(self.pipeline)];
        let created = unsafe {
            gpu.device
                .create_compute_pipelines(vk::PipelineCache::null(), &info, None)
        };
        unsafe { gpu.device.destroy_shader_module(module, None) };
        let pipeline = created.map_err(|(_, error)| error)?[0];
        gpu.own(Object::Pipeline(pipeline));
        Ok(pipeline)
    }

    /// Makes a descriptor set in a pool of its own.
    pub fn allocate_set(&self, gpu: &Gpu) -> Result<vk::DescriptorSet> {
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(self.descriptor)
            .descriptor_count(self.number + 1)];
        let info = vk::DescriptorPoolCreateInfo::default()
            .max_sets(1)
            .pool_sizes(&sizes);
        let pool = unsafe { gpu.device.create_descriptor_pool(&info, None)? };
        gpu.own(Object::DescriptorPool(pool));
        let layouts = [self.set];
        let info = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(pool)
            .set_layouts(&layouts);
        Ok(unsafe { gpu.device.allocate_descriptor_sets(&info)? }[0])
    }

    /// Points `set` at the first `range` bytes of `buffer`.
    pub fn point(&self, gpu: &Gpu, set: vk::DescriptorSet, buffer: &Buffer, range: u64) {
        let info = [vk::DescriptorBufferInfo::default()
            .buffer(buffer.handle)
            .range(range)];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(self.number)
            .descriptor_type(self.descriptor)
            .buffer_info(&info);
        unsafe { gpu.device.update_descriptor_sets(&[write], &[]) };
    }
}
