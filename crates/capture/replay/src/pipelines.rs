//! Makes the Vulkan pipelines, pipeline layouts and set layouts of a capture on a device.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::rc::Rc;

use ash::vk;
use gapscope_capture::Capture;
use gapscope_capture::model::{Pipeline, PipelineId, PipelineLayoutId, SetLayoutId};

use crate::check::kernel::{FULL_SUBGROUPS, STORAGE, VARYING_SUBGROUP_SIZE, is_buffer};
use crate::error::Error;
use crate::gpu::Gpu;
use crate::shader::Shader;

/// `VK_PIPELINE_CREATE_DISABLE_OPTIMIZATION_BIT`
const DISABLE_OPTIMIZATION: u64 = 1;

/// The pipelines and layouts of a program, by their ids in the capture.
pub struct Pipelines {
    gpu: Rc<Gpu>,
    set_layouts: BTreeMap<SetLayoutId, vk::DescriptorSetLayout>,
    /// The layout of sets that the program left out.
    empty: vk::DescriptorSetLayout,
    layouts: BTreeMap<PipelineLayoutId, vk::PipelineLayout>,
    pipelines: BTreeMap<PipelineId, vk::Pipeline>,
}

impl Pipelines {
    /// Makes a pipeline for each shader. `with_base` has the pipelines with dispatches that do not begin at workgroup
    /// 0, for which Vulkan wants a flag.
    pub fn new(
        gpu: &Rc<Gpu>,
        capture: &Capture,
        shaders: &BTreeMap<PipelineId, Shader>,
        with_base: &BTreeSet<PipelineId>,
    ) -> Result<Pipelines, Error> {
        let mut made = Pipelines {
            gpu: Rc::clone(gpu),
            set_layouts: BTreeMap::new(),
            empty: set_layout(gpu, &BTreeMap::new())?,
            layouts: BTreeMap::new(),
            pipelines: BTreeMap::new(),
        };
        for (id, shader) in shaders {
            let pipeline = &capture.pipelines[id];
            let layout = made.layout(capture, pipeline.layout)?;
            let raw = made.pipeline(pipeline, shader, layout, with_base.contains(id))?;
            made.pipelines.insert(*id, raw);
        }
        Ok(made)
    }

    /// Returns a pipeline with its layout.
    pub fn get(&self, capture: &Capture, id: PipelineId) -> (vk::Pipeline, vk::PipelineLayout) {
        (
            self.pipelines[&id],
            self.layouts[&capture.pipelines[&id].layout],
        )
    }

    /// Returns the layout of a set.
    pub fn set_layout(&self, id: SetLayoutId) -> vk::DescriptorSetLayout {
        self.set_layouts[&id]
    }

    /// Returns a pipeline layout, and makes it with its sets' layouts at its first use.
    fn layout(
        &mut self,
        capture: &Capture,
        id: PipelineLayoutId,
    ) -> Result<vk::PipelineLayout, Error> {
        if let Some(known) = self.layouts.get(&id) {
            return Ok(*known);
        }
        let layout = &capture.pipeline_layouts[&id];
        let mut sets = Vec::new();
        for set in &layout.sets {
            let Some(set) = set else {
                sets.push(self.empty);
                continue;
            };
            if !self.set_layouts.contains_key(set) {
                let raw = set_layout(&self.gpu, &bindings(capture, *set))?;
                self.set_layouts.insert(*set, raw);
            }
            sets.push(self.set_layouts[set]);
        }
        let bytes = layout.push_constant_bytes();
        let range = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(bytes)];
        let ranges = if bytes == 0 { &range[..0] } else { &range };
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&sets)
            .push_constant_ranges(ranges);
        // SAFETY: the layouts are of this device; the limits were checked.
        let made = unsafe { self.gpu.raw.create_pipeline_layout(&info, None) }
            .map_err(Error::from_call("make a pipeline layout"))?;
        self.layouts.insert(id, made);
        Ok(made)
    }

    /// Makes a pipeline with the options of the captured one.
    fn pipeline(
        &self,
        pipeline: &Pipeline,
        shader: &Shader,
        layout: vk::PipelineLayout,
        with_base: bool,
    ) -> Result<vk::Pipeline, Error> {
        let mut data = Vec::new();
        let mut entries = Vec::new();
        for constant in &pipeline.constants {
            entries.push(
                vk::SpecializationMapEntry::default()
                    .constant_id(constant.id)
                    .offset(data.len() as u32)
                    .size(constant.value.len()),
            );
            data.extend_from_slice(&constant.value);
        }
        let specialisation = vk::SpecializationInfo::default()
            .map_entries(&entries)
            .data(&data);
        // The shader has an entry point of this name, so that the name holds no zero byte.
        let entry = CString::new(pipeline.entry.as_str()).unwrap_or_default();
        let stage_flags = pipeline.stage_flags & (VARYING_SUBGROUP_SIZE | FULL_SUBGROUPS);
        let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
            .required_subgroup_size(pipeline.required_subgroup_size.unwrap_or(0));
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .flags(vk::PipelineShaderStageCreateFlags::from_raw(stage_flags))
            .name(&entry)
            .specialization_info(&specialisation);
        if pipeline.required_subgroup_size.is_some() {
            stage = stage.push_next(&mut size);
        }
        let mut flags = vk::PipelineCreateFlags::empty();
        if pipeline.flags & DISABLE_OPTIMIZATION != 0 {
            flags |= vk::PipelineCreateFlags::DISABLE_OPTIMIZATION;
        }
        if with_base {
            flags |= vk::PipelineCreateFlags::DISPATCH_BASE;
        }
        let robustness = pipeline.robustness.unwrap_or_default();
        let buffers = |number: u32| match number {
            0..=3 => vk::PipelineRobustnessBufferBehaviorEXT::from_raw(number as i32),
            _ => vk::PipelineRobustnessBufferBehaviorEXT::DEVICE_DEFAULT,
        };
        let mut robust = vk::PipelineRobustnessCreateInfoEXT::default()
            .storage_buffers(buffers(robustness.storage_buffers))
            .uniform_buffers(buffers(robustness.uniform_buffers))
            .vertex_inputs(vk::PipelineRobustnessBufferBehaviorEXT::DEVICE_DEFAULT)
            .images(vk::PipelineRobustnessImageBehaviorEXT::DEVICE_DEFAULT);
        let mut info = vk::ComputePipelineCreateInfo::default()
            .flags(flags)
            .layout(layout);
        if pipeline.robustness.is_some() {
            info = info.push_next(&mut robust);
        }
        // What the words declare and the structures need of the device was checked.
        compute_pipeline(&self.gpu.raw, &shader.words, stage, info)
    }
}

/// Makes a compute pipeline from valid SPIR-V, of whose entry point `stage` has the name.
pub fn compute_pipeline(
    raw: &ash::Device,
    words: &[u32],
    stage: vk::PipelineShaderStageCreateInfo<'_>,
    info: vk::ComputePipelineCreateInfo<'_>,
) -> Result<vk::Pipeline, Error> {
    let module = vk::ShaderModuleCreateInfo::default().code(words);
    // SAFETY: the words are valid in structure, and the device has all that they declare.
    let module = unsafe { raw.create_shader_module(&module, None) }
        .map_err(Error::from_call("make a shader module"))?;
    let stage = stage.stage(vk::ShaderStageFlags::COMPUTE).module(module);
    // SAFETY: all that the structure points to is alive; a pipeline no longer needs its module.
    let made = unsafe {
        let infos = [info.stage(stage)];
        let made = raw.create_compute_pipelines(vk::PipelineCache::null(), &infos, None);
        raw.destroy_shader_module(module, None);
        made
    };
    let made = made.map_err(|(_, result)| Error::from_call("make a pipeline")(result))?;
    Ok(made[0])
}

impl Drop for Pipelines {
    fn drop(&mut self) {
        let raw = &self.gpu.raw;
        // SAFETY: all handles are of this device, and nothing runs.
        unsafe {
            let _ = raw.device_wait_idle();
            for pipeline in self.pipelines.values() {
                raw.destroy_pipeline(*pipeline, None);
            }
            for layout in self.layouts.values() {
                raw.destroy_pipeline_layout(*layout, None);
            }
            for layout in self.set_layouts.values().chain([&self.empty]) {
                raw.destroy_descriptor_set_layout(*layout, None);
            }
        }
    }
}

/// Returns the bindings of a set's layout: by binding number the descriptor type without dynamic offsets, and the
/// count.
pub fn bindings(capture: &Capture, id: SetLayoutId) -> BTreeMap<u32, (vk::DescriptorType, u32)> {
    let of = capture.set_layouts[&id].bindings.iter();
    let buffers = of.filter(|binding| is_buffer(binding.descriptor_type) && binding.count > 0);
    buffers
        .map(|binding| {
            let kind = match STORAGE.contains(&binding.descriptor_type) {
                true => vk::DescriptorType::STORAGE_BUFFER,
                false => vk::DescriptorType::UNIFORM_BUFFER,
            };
            (binding.binding, (kind, binding.count))
        })
        .collect()
}

/// Makes a set's layout from the type and the count of each binding.
pub fn set_layout<'a>(
    gpu: &Gpu,
    bindings: impl IntoIterator<Item = (&'a u32, &'a (vk::DescriptorType, u32))>,
) -> Result<vk::DescriptorSetLayout, Error> {
    let bindings: Vec<_> = bindings
        .into_iter()
        .map(|(number, (kind, count))| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(*number)
                .descriptor_type(*kind)
                .descriptor_count(*count)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect();
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the structure is complete, and the limits were checked.
    unsafe { gpu.raw.create_descriptor_set_layout(&info, None) }
        .map_err(Error::from_call("make a layout of descriptors"))
}
