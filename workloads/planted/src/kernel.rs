//! Compute kernels: WGSL to SPIR-V at run time, and the pipelines made of it.

use anyhow::{Context, Result};
use ash::vk;

use crate::gpu::{Gpu, Object};

pub const WORKGROUP_SIZE: u32 = 64;

/// A kernel that turns a value in each element of its buffer for `spin` rounds. The result depends on the number of
/// rounds and dispatches, so a lost or repeated dispatch shows in it.
pub fn spin_wgsl(name: &str, multiplier: u32) -> String {
    format!(
        "
struct Parameters {{ spin: u32 }}
var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size({WORKGROUP_SIZE})
fn {name}(@builtin(global_invocation_id) id: vec3u) {{
    if id.x >= arrayLength(&data) {{
        return;
    }}
    var value = data[id.x] + id.x + 1u;
    for (var round = 0u; round < parameters.spin; round++) {{
        value = (value ^ (value >> 15u)) * {multiplier}u + 1013904223u;
    }}
    data[id.x] = value;
}}
"
    )
}

pub const SPIN_MULTIPLIER: u32 = 739_982_445;

pub fn compile(wgsl: &str) -> Result<Vec<u32>> {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let module = naga::front::wgsl::parse_str(wgsl).context("the kernel does not parse")?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::IMMEDIATES)
        .validate(&module)
        .context("the kernel is not valid")?;
    let options = naga::back::spv::Options {
        lang_version: (1, 3),
        force_loop_bounding: false,
        ..Default::default()
    };
    naga::back::spv::write_vec(&module, &info, &options, None)
        .context("the kernel has no SPIR-V form")
}

/// How a kernel's buffer reaches it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    Set,
    DynamicOffset,
    Push,
}

impl Binding {
    pub fn descriptor_type(self) -> vk::DescriptorType {
        match self {
            Binding::DynamicOffset => vk::DescriptorType::STORAGE_BUFFER_DYNAMIC,
            Binding::Set | Binding::Push => vk::DescriptorType::STORAGE_BUFFER,
        }
    }
}

/// The layouts that all kernels here share: one storage buffer and one push constant.
#[derive(Clone, Copy)]
pub struct Layout {
    pub set: vk::DescriptorSetLayout,
    pub pipeline: vk::PipelineLayout,
}

impl Layout {
    pub fn new(gpu: &Gpu, binding: Binding) -> Result<Self> {
        let bindings = [vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(binding.descriptor_type())
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)];
        let flags = match binding {
            Binding::Push => vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR,
            _ => vk::DescriptorSetLayoutCreateFlags::empty(),
        };
        let info = vk::DescriptorSetLayoutCreateInfo::default()
            .bindings(&bindings)
            .flags(flags);
        let set = unsafe { gpu.device.create_descriptor_set_layout(&info, None)? };
        gpu.own(Object::SetLayout(set));
        let ranges = [vk::PushConstantRange::default()
            .size(4)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)];
        let sets = [set];
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&sets)
            .push_constant_ranges(&ranges);
        let pipeline = unsafe { gpu.device.create_pipeline_layout(&info, None)? };
        gpu.own(Object::PipelineLayout(pipeline));
        Ok(Self { set, pipeline })
    }

    /// A pipeline that the caller destroys. `constant` is the value of the specialisation constant 0, if any.
    pub fn pipeline_unowned(
        &self,
        gpu: &Gpu,
        spirv: &[u32],
        entry_point: &str,
        flags: vk::PipelineCreateFlags,
        constant: Option<u32>,
    ) -> Result<vk::Pipeline> {
        let info = vk::ShaderModuleCreateInfo::default().code(spirv);
        let module = unsafe { gpu.device.create_shader_module(&info, None)? };
        let name = std::ffi::CString::new(entry_point)?;
        let entries = [vk::SpecializationMapEntry::default().size(4)];
        let value = constant.unwrap_or_default().to_le_bytes();
        let specialisation = vk::SpecializationInfo::default()
            .map_entries(&entries)
            .data(&value);
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(&name);
        if constant.is_some() {
            stage = stage.specialization_info(&specialisation);
        }
        let info = vk::ComputePipelineCreateInfo::default()
            .flags(flags)
            .stage(stage)
            .layout(self.pipeline);
        let created = unsafe {
            gpu.device
                .create_compute_pipelines(vk::PipelineCache::null(), &[info], None)
        };
        unsafe { gpu.device.destroy_shader_module(module, None) };
        Ok(created.map_err(|(_, error)| error)?[0])
    }

    pub fn pipeline(
        &self,
        gpu: &Gpu,
        spirv: &[u32],
        entry_point: &str,
        constant: Option<u32>,
    ) -> Result<vk::Pipeline> {
        let pipeline = self.pipeline_unowned(
            gpu,
            spirv,
            entry_point,
            vk::PipelineCreateFlags::empty(),
            constant,
        )?;
        gpu.own(Object::Pipeline(pipeline));
        Ok(pipeline)
    }
}
