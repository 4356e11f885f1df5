//! Keeps shader modules (code), pipeline layouts (which bindings the code has) and compute pipelines (kernels) with
//! all that a capture needs to make them again.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};

use ash::vk;
use gapscope_capture::{Hash, model};
use gapscope_spirv::Description;
use gapscope_vulkan_layer::arguments::{chain, inline_code, specialisation, text_at};
use gapscope_vulkan_layer::descriptors::SetLayout;
use gapscope_vulkan_layer::handles::{Serial, lock};

use super::refusal::Refusal;

/// A shader module.
pub struct Module {
    pub serial: Serial,
    /// The SPIR-V; empty when it is not known.
    pub code: Vec<u32>,
    /// The name that the program gave.
    pub name: Mutex<Option<String>>,
    /// What the code can reach, once that was asked for.
    interface: OnceLock<Interface>,
}

impl Module {
    pub fn new(code: &[u32]) -> Module {
        Module {
            serial: Serial::next(),
            code: code.to_vec(),
            name: Mutex::default(),
            interface: OnceLock::new(),
        }
    }

    /// Returns the words as bytes, little-endian.
    pub fn bytes(&self) -> Vec<u8> {
        self.code
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Returns the memory that the module can reach; nothing for code that is not SPIR-V. The code is read at the first
    /// call.
    pub fn interface(&self) -> &Interface {
        self.interface.get_or_init(|| {
            let described = Description::read(&self.code);
            let mut interface = Interface {
                bindings: BTreeMap::new(),
                uses_addresses: described.uses_addresses,
            };
            for variable in &described.variables {
                let binding = (variable.set, variable.binding);
                // Several variables may share a descriptor.
                *interface.bindings.entry(binding).or_default() |= variable.may_be_written;
            }
            interface
        })
    }
}

/// The memory that the code of a module can reach.
pub struct Interface {
    /// The descriptors that variables name, in pairs of set and binding, each with whether the code may write through
    /// it.
    pub bindings: BTreeMap<(u32, u32), bool>,
    /// Whether the code has pointers to memory that no descriptor names.
    pub uses_addresses: bool,
}

/// A pipeline layout.
pub struct PipelineLayout {
    pub serial: Serial,
    pub handle: vk::PipelineLayout,
    pub flags: u32,
    /// The layouts of descriptor sets by index; `None` where they are not known.
    pub sets: Vec<Option<Arc<SetLayout>>>,
    pub push_constants: Vec<model::PushConstantRange>,
}

impl PipelineLayout {
    /// Returns the size of all push constants, from byte 0.
    pub fn push_constant_bytes(&self) -> usize {
        let ends = self
            .push_constants
            .iter()
            .map(|range| range.offset + range.bytes);
        ends.max().unwrap_or(0) as usize
    }
}

/// A compute pipeline.
pub struct Pipeline {
    pub serial: Serial,
    pub handle: vk::Pipeline,
    pub layout: Arc<PipelineLayout>,
    pub module: Arc<Module>,
    /// The entry point in the module.
    pub entry: String,
    /// Vulkan's flags of the pipeline, and those of its stage.
    pub flags: u64,
    pub stage_flags: u32,
    /// The specialisation constants.
    pub constants: Vec<model::Constant>,
    pub required_subgroup_size: Option<u32>,
    pub robustness: Option<model::Robustness>,
    pub name: Mutex<Option<String>>,
    /// The reason why the pipeline cannot be captured; `None` if it can.
    pub refusal: Option<Refusal>,
}

impl Pipeline {
    /// Returns the name of the kernel as a trace shows it: the pipeline's or the module's own, otherwise the entry
    /// point, or a hash of the code where that is `main`.
    pub fn name(&self) -> String {
        let program_name = lock(&self.name)
            .clone()
            .or_else(|| lock(&self.module.name).clone());
        program_name.unwrap_or_else(|| match self.entry.as_str() {
            "main" | "" => {
                let hash = Hash::new(&self.module.bytes()).to_string();
                format!("spv:{}", &hash[..8])
            }
            entry => entry.to_owned(),
        })
    }
}

impl Pipeline {
    /// Returns a pipeline with all from which it was made; `module` is the stage's shader module, unless that is
    /// not known.
    ///
    /// # Safety
    /// `info` is the program's, during its call.
    pub unsafe fn from_info(
        handle: vk::Pipeline,
        info: &vk::ComputePipelineCreateInfo<'_>,
        layout: Arc<PipelineLayout>,
        module: Option<Arc<Module>>,
    ) -> Pipeline {
        let stage = &info.stage;
        let mut chained = ChainedInfo {
            flags: info.flags.as_raw().into(),
            ..ChainedInfo::default()
        };
        // SAFETY: the program's structures are valid.
        let (entry, constants, inline) = unsafe {
            chained.read(info.p_next);
            chained.read(stage.p_next);
            let constants = specialisation(stage.p_specialization_info);
            let constants = constants.map(|(id, value)| model::Constant {
                id,
                value: value.to_vec(),
            });
            (
                text_at(stage.p_name).into_owned(),
                constants.collect(),
                inline_code(stage),
            )
        };
        let module = module.or_else(|| inline.map(|code| Arc::new(Module::new(code))));
        let missing = module
            .is_none()
            .then(|| Refusal::from("a pipeline without its SPIR-V"));
        Pipeline {
            serial: Serial::next(),
            handle,
            layout,
            module: module.unwrap_or_else(|| Arc::new(Module::new(&[]))),
            entry,
            flags: chained.flags,
            stage_flags: stage.flags.as_raw(),
            constants,
            required_subgroup_size: chained.required_subgroup_size,
            robustness: chained.robustness,
            name: Mutex::default(),
            refusal: missing.or(chained.refusal),
        }
    }
}

/// The structures that are chained to a pipeline's create-info and its stage's.
#[derive(Default)]
struct ChainedInfo {
    flags: u64,
    required_subgroup_size: Option<u32>,
    robustness: Option<model::Robustness>,
    refusal: Option<Refusal>,
}

/// VkPipelineCreateFlags2CreateInfo: the flags of a pipeline, in a structure of its own.
#[repr(C)]
struct Flags2 {
    head: vk::BaseInStructure<'static>,
    flags: u64,
}

impl ChainedInfo {
    /// # Safety
    /// `structures` is a valid pNext chain.
    unsafe fn read(&mut self, structures: *const c_void) {
        // SAFETY: as the caller promises; each structure is of the type that it says.
        unsafe { chain(structures).for_each(|structure| self.read_one(structure)) };
    }

    /// # Safety
    /// `node` is a structure of the type that it says.
    unsafe fn read_one(&mut self, node: *const vk::BaseInStructure<'_>) {
        use vk::StructureType as Type;
        // SAFETY: as the caller promises.
        unsafe {
            match (*node).s_type {
                Type::PIPELINE_CREATE_FLAGS_2_CREATE_INFO_KHR => {
                    self.flags = (*node.cast::<Flags2>()).flags;
                }
                Type::PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO => {
                    let info =
                        &*node.cast::<vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo<'_>>();
                    self.required_subgroup_size = Some(info.required_subgroup_size);
                }
                Type::PIPELINE_ROBUSTNESS_CREATE_INFO_EXT => {
                    let info = &*node.cast::<vk::PipelineRobustnessCreateInfoEXT<'_>>();
                    self.robustness = Some(model::Robustness {
                        storage_buffers: info.storage_buffers.as_raw() as u32,
                        uniform_buffers: info.uniform_buffers.as_raw() as u32,
                        vertex_inputs: info.vertex_inputs.as_raw() as u32,
                        images: info.images.as_raw() as u32,
                    });
                }
                Type::SHADER_MODULE_CREATE_INFO
                | Type::PIPELINE_CREATION_FEEDBACK_CREATE_INFO
                | Type::PIPELINE_COMPILER_CONTROL_CREATE_INFO_AMD
                | Type::DEBUG_UTILS_OBJECT_NAME_INFO_EXT
                | Type::SHADER_MODULE_VALIDATION_CACHE_CREATE_INFO_EXT => {}
                other => {
                    self.refusal =
                        Some(format!("a pipeline that was made with a {other:?}").into());
                }
            }
        }
    }
}
