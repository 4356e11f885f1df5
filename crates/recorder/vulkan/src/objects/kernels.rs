//! Keeps shader modules (code), compute pipelines and shader objects (kernels), and writes each new code and kernel
//! as an event.

use crate::api::arguments::{self, inline_code, slice, text_at};
use crate::handles::{Handles, lock};
use crate::recorder::Recorder;
use ash::vk;
use ash::vk::Handle;
use gapscope_spirv::Description;
use gapscope_spirv::numbers::storage_class;
use gapscope_spool::event::{BindingAccess, CommonEvent, Object, SourceFormat};
use gapscope_spool::ids;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// A live shader module, as its kernels need it.
#[derive(Clone)]
struct Module {
    /// The first 16 bytes of the BLAKE3 hash of the code.
    hash: [u8; 16],
    description: Arc<Description>,
    /// The program's name for the module, empty if it has given none.
    name: String,
}

/// The hashes of sources (code of modules) that this process has written.
static WRITTEN: Mutex<Option<HashSet<[u8; 16]>>> = Mutex::new(None);

/// The kernels of a device.
pub struct Kernels {
    recorder: &'static Recorder,
    modules: Handles<Module>,
    pipelines: Handles<ids::Kernel>,
    /// Shader objects of the compute stage.
    shaders: Handles<ids::Kernel>,
}

impl Kernels {
    pub fn new(recorder: &'static Recorder) -> Kernels {
        Kernels {
            recorder,
            modules: Handles::default(),
            pipelines: Handles::default(),
            shaders: Handles::default(),
        }
    }

    /// Returns the id of the kernel of a pipeline; `None` where it is not known, as of graphics pipelines.
    pub fn kernel_of(&self, pipeline: vk::Pipeline) -> Option<ids::Kernel> {
        self.pipelines.get(pipeline.as_raw())
    }

    /// Returns the id of the kernel of a shader object; `None` where it is not known, as of other stages.
    pub fn kernel_of_shader(&self, shader: vk::ShaderEXT) -> Option<ids::Kernel> {
        self.shaders.get(shader.as_raw())
    }

    /// Keeps a shader module, and writes its code if the code is new.
    pub fn add_module(&self, handle: vk::ShaderModule, code: &[u32]) {
        self.modules.insert(handle.as_raw(), self.describe(code));
    }

    pub fn remove_module(&self, handle: vk::ShaderModule) {
        self.modules.remove(handle.as_raw());
    }

    /// Names a module, which is the source of kernels that are made from now on.
    pub fn name_module(&self, handle: vk::ShaderModule, name: &str) {
        self.modules
            .with(handle.as_raw(), |module| name.clone_into(&mut module.name));
    }

    /// Describes the code of a module, and writes the code unless it has been written before.
    fn describe(&self, code: &[u32]) -> Module {
        let bytes: &[u8] = bytemuck::cast_slice(code);
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        let new = lock(&WRITTEN).get_or_insert_default().insert(hash);
        if new {
            self.recorder.write(&CommonEvent::Source {
                hash,
                format: SourceFormat::SpirV,
                bytes,
            });
        }
        Module {
            hash,
            description: Arc::new(Description::read(code)),
            name: String::new(),
        }
    }

    /// Writes the kernel of a new pipeline.
    ///
    /// # Safety
    /// The pipeline was made from `info`.
    pub unsafe fn add_pipeline(
        &self,
        pipeline: vk::Pipeline,
        info: &vk::ComputePipelineCreateInfo<'_>,
    ) {
        let stage = &info.stage;
        // SAFETY: the program's structures are valid during its call.
        let (module, entry_point, specialisation) = unsafe {
            let module = self
                .modules
                .get(stage.module.as_raw())
                .or_else(|| inline_code(stage).map(|code| self.describe(code)));
            (
                module,
                text_at(stage.p_name),
                specialisation(stage.p_specialization_info),
            )
        };
        let kernel = self.add(module, entry_point, specialisation);
        self.pipelines.insert(pipeline.as_raw(), kernel);
    }

    /// Writes the kernel of a new shader object of the compute stage.
    ///
    /// # Safety
    /// The shader object was made from `info`.
    pub unsafe fn add_shader(&self, shader: vk::ShaderEXT, info: &vk::ShaderCreateInfoEXT<'_>) {
        // SAFETY: the program's structures are valid during its call; SPIR-V is aligned to its words.
        let (module, entry_point, specialisation) = unsafe {
            let code = || slice(info.p_code.cast::<u32>(), (info.code_size / 4) as u32);
            let is_spirv = info.code_type == vk::ShaderCodeTypeEXT::SPIRV;
            (
                is_spirv.then(|| self.describe(code())),
                text_at(info.p_name),
                specialisation(info.p_specialization_info),
            )
        };
        let kernel = self.add(module, entry_point, specialisation);
        self.shaders.insert(shader.as_raw(), kernel);
    }

    pub fn remove_shader(&self, handle: vk::ShaderEXT) {
        self.shaders.remove(handle.as_raw());
    }

    /// Writes a kernel, and its module's name if that has one; returns the kernel's id. A kernel without a known
    /// module has a hash and sizes of zero.
    fn add(
        &self,
        module: Option<Module>,
        entry_point: Cow<'_, str>,
        specialisation: String,
    ) -> ids::Kernel {
        let kernel = self.recorder.ids.kernel.next();
        let description = module
            .as_ref()
            .map(|m| Arc::clone(&m.description))
            .unwrap_or_default();
        let local_size = description
            .entry_points
            .iter()
            .find(|known| known.name == entry_point)
            .map_or([0; 3], |known| known.local_size);
        self.recorder.write(&CommonEvent::Kernel {
            kernel,
            source: module.as_ref().map_or([0; 16], |m| m.hash),
            entry_point,
            specialisation: Cow::Owned(specialisation),
            source_name: Cow::Borrowed(&description.source_name),
            local_size,
            accesses: buffer_accesses(&description),
        });
        if let Some(module) = module.filter(|m| !m.name.is_empty()) {
            self.recorder.write(&CommonEvent::Name {
                object: Object::KernelSource(kernel),
                name: &module.name,
            });
        }
        kernel
    }

    pub fn remove_pipeline(&self, handle: vk::Pipeline) {
        self.pipelines.remove(handle.as_raw());
    }
}

/// Returns for each buffer binding whether any code of the module reads or writes it.
fn buffer_accesses(description: &Description) -> Vec<BindingAccess> {
    let variables = description.variables.iter();
    let buffers = variables.filter(|variable| {
        matches!(
            variable.class,
            storage_class::STORAGE_BUFFER | storage_class::UNIFORM
        )
    });
    let access = buffers.map(|variable| BindingAccess {
        set: variable.set,
        binding: variable.binding,
        reads: variable.reads,
        writes: variable.writes,
    });
    access.collect()
}

/// Returns specialisation constants as `id:hex`, joined by commas, in the order of their ids.
///
/// # Safety
/// A non-null pointer is a valid VkSpecializationInfo.
unsafe fn specialisation(info: *const vk::SpecializationInfo<'_>) -> String {
    // SAFETY: as the caller promises.
    let mut constants: Vec<_> = unsafe { arguments::specialisation(info) }.collect();
    constants.sort_by_key(|(id, _)| *id);
    let mut text = String::new();
    for (id, value) in constants {
        let separator = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{separator}{id}:");
        value.iter().for_each(|byte| {
            let _ = write!(text, "{byte:02x}");
        });
    }
    text
}
