//! The records of the program's objects: memory, buffers, shaders, layouts, pipelines and queues.

use serde::{Deserialize, Serialize};

use super::{BufferId, MemoryId, ModuleId, PipelineId, PipelineLayoutId, QueueId, SetLayoutId};
use crate::content::Hash;

/// `VK_SHADER_STAGE_COMPUTE_BIT`
pub(crate) const COMPUTE_STAGE: u32 = 0x20;

/// An allocation of device memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Id of the allocation.
    pub id: MemoryId,
    /// Size of the allocation.
    pub bytes: u64,
    /// `VkMemoryPropertyFlags` of its memory type.
    pub properties: u32,
}

/// A buffer and its place in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Id of the buffer.
    pub id: BufferId,
    /// Name that the program gave the buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Size of the buffer.
    pub bytes: u64,
    /// `VkBufferUsageFlags2` as the program asked for them.
    pub usage: u64,
    /// `VkBufferCreateFlags`
    pub flags: u32,
    /// The allocation that the buffer is bound to.
    pub memory: MemoryId,
    /// The buffer's first byte in the allocation.
    pub offset: u64,
}

/// A shader module, with its SPIR-V as the program handed it over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Id of the module.
    pub id: ModuleId,
    /// Hash of the chunk with the module's words, little-endian.
    pub code: Hash,
}

/// `VkDescriptorSetLayoutCreateInfo`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLayout {
    /// Id of the layout.
    pub id: SetLayoutId,
    /// `VkDescriptorSetLayoutCreateFlags`
    pub flags: u32,
    /// Bindings of the layout.
    pub bindings: Vec<LayoutBinding>,
}

/// `VkDescriptorSetLayoutBinding`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutBinding {
    /// Number of the binding in the shader.
    pub binding: u32,
    /// `VkDescriptorType`
    pub descriptor_type: u32,
    /// Number of descriptors.
    pub count: u32,
    /// `VkShaderStageFlags`
    pub stages: u32,
    /// `VkDescriptorBindingFlags`
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub flags: u32,
}

impl LayoutBinding {
    /// Returns a binding of one descriptor for compute shaders.
    pub fn for_compute(binding: u32, descriptor_type: u32) -> LayoutBinding {
        LayoutBinding {
            binding,
            descriptor_type,
            count: 1,
            stages: COMPUTE_STAGE,
            flags: 0,
        }
    }
}

/// `VkPipelineLayoutCreateInfo`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineLayout {
    /// Id of the layout.
    pub id: PipelineLayoutId,
    /// `VkPipelineLayoutCreateFlags`
    pub flags: u32,
    /// Layouts of the sets by number; `None` for a set that the layout leaves out.
    pub sets: Vec<Option<SetLayoutId>>,
    /// Ranges of push constants.
    pub push_constants: Vec<PushConstantRange>,
}

impl PipelineLayout {
    /// Returns the number of bytes of push constants, which are whole words.
    pub fn push_constant_bytes(&self) -> u32 {
        let ends = (self.push_constants.iter()).map(|range| range.offset + range.bytes);
        ends.max().unwrap_or(0)
    }
}

/// `VkPushConstantRange`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushConstantRange {
    /// `VkShaderStageFlags`
    pub stages: u32,
    /// The first byte.
    pub offset: u32,
    /// The size.
    pub bytes: u32,
}

/// A compute pipeline: the part of `VkComputePipelineCreateInfo` that its results depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Id of the pipeline.
    pub id: PipelineId,
    /// Name of the kernel as a trace shows it.
    pub name: String,
    /// The pipeline's layout.
    pub layout: PipelineLayoutId,
    /// The pipeline's shader.
    pub module: ModuleId,
    /// Name of the entry point.
    pub entry: String,
    /// `VkPipelineCreateFlags2`
    pub flags: u64,
    /// `VkPipelineShaderStageCreateFlags`
    pub stage_flags: u32,
    /// Specialisation constants that the program set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<Constant>,
    /// `requiredSubgroupSize`, if the program asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_subgroup_size: Option<u32>,
    /// `VkPipelineRobustnessCreateInfo`, if the program gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robustness: Option<Robustness>,
}

/// A specialisation constant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    /// `SpecId`
    pub id: u32,
    /// The value's bytes as the program gave them: 1, 2, 4 or 8.
    #[serde(with = "crate::hex")]
    pub value: Vec<u8>,
}

impl Constant {
    /// Returns the first 8 bytes of the value as a number.
    pub fn bits(&self) -> u64 {
        let mut bytes = [0; 8];
        let size = self.value.len().min(8);
        bytes[..size].copy_from_slice(&self.value[..size]);
        u64::from_le_bytes(bytes)
    }
}

/// The four behaviours of `VkPipelineRobustnessCreateInfo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Robustness {
    /// `storageBuffers`
    pub storage_buffers: u32,
    /// `uniformBuffers`
    pub uniform_buffers: u32,
    /// `vertexInputs`
    pub vertex_inputs: u32,
    /// `images`
    pub images: u32,
}

/// A queue that the window submitted to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Id of the queue.
    pub id: QueueId,
    /// Index of the queue's family.
    pub family: u32,
    /// Index of the queue in its family.
    pub index: u32,
    /// `VkQueueFlags` of the family.
    pub flags: u32,
}
