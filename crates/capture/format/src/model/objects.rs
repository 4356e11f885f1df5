//! Objects of the program.

use serde::{Deserialize, Serialize};

use super::{BufferId, MemoryId, ModuleId, PipelineId, PipelineLayoutId, QueueId, SetLayoutId};
use crate::content::Hash;

/// An allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Its number.
    pub id: MemoryId,
    /// Its size.
    pub bytes: u64,
    /// `VkMemoryPropertyFlags` of its type.
    pub properties: u32,
}

/// A buffer, and where its memory is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Its number.
    pub id: BufferId,
    /// The name that the program gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// `VkBufferUsageFlags2` as the program asked for them.
    pub usage: u64,
    /// `VkBufferCreateFlags`
    pub flags: u32,
    /// The allocation that it is bound to.
    pub memory: MemoryId,
    /// Where it begins there.
    pub offset: u64,
}

/// SPIR-V as the program handed it over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its number.
    pub id: ModuleId,
    /// The chunk with its words, little-endian.
    pub code: Hash,
}

/// `VkDescriptorSetLayoutCreateInfo`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLayout {
    /// Its number.
    pub id: SetLayoutId,
    /// `VkDescriptorSetLayoutCreateFlags`
    pub flags: u32,
    /// Its bindings.
    pub bindings: Vec<LayoutBinding>,
}

/// `VkDescriptorSetLayoutBinding`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutBinding {
    /// The number in the shader.
    pub binding: u32,
    /// `VkDescriptorType`
    pub descriptor_type: u32,
    /// How many descriptors.
    pub count: u32,
    /// `VkShaderStageFlags`
    pub stages: u32,
    /// `VkDescriptorBindingFlags`
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub flags: u32,
}

/// `VkPipelineLayoutCreateInfo`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineLayout {
    /// Its number.
    pub id: PipelineLayoutId,
    /// `VkPipelineLayoutCreateFlags`
    pub flags: u32,
    /// By number of the set; a set that the layout leaves out is none.
    pub sets: Vec<Option<SetLayoutId>>,
    /// Ranges of push constants.
    pub push_constants: Vec<PushConstantRange>,
}

/// `VkPushConstantRange`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushConstantRange {
    /// `VkShaderStageFlags`
    pub stages: u32,
    /// Where it begins.
    pub offset: u32,
    /// Its size.
    pub bytes: u32,
}

/// A compute pipeline: everything of `VkComputePipelineCreateInfo` that has a meaning for its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Its number.
    pub id: PipelineId,
    /// The name of the kernel as a recording shows it.
    pub name: String,
    /// Its layout.
    pub layout: PipelineLayoutId,
    /// Its shader.
    pub module: ModuleId,
    /// The entry point.
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
    /// Its bytes, as the program gave them: 1, 2, 4 or 8.
    #[serde(with = "crate::hex")]
    pub value: Vec<u8>,
}

/// `VkPipelineRobustnessCreateInfo`: its four behaviours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Its number.
    pub id: QueueId,
    /// Its family's index.
    pub family: u32,
    /// Its index in the family.
    pub index: u32,
    /// `VkQueueFlags` of the family.
    pub flags: u32,
}
