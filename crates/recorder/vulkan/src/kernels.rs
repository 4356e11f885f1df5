//! Shader modules and compute pipelines: what kernels are.

use crate::device::{self, Device, text_at};
use crate::host_calls::HostCallTimer;
use crate::instance::{find, slice};
use crate::recorder::next_id;
use crate::spirv::{self, Description};
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{CommonEvent, HostCallKind as Call, Object, SourceFormat};
use gapscope_spool::hook::guard;
use gapscope_spool::ids;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// A shader module.
#[derive(Clone)]
pub struct Module {
    hash: [u8; 16],
    description: Arc<Description>,
    pub name: String,
}

/// A compute pipeline.
#[derive(Clone, Copy)]
pub struct Pipeline {
    pub kernel: ids::Kernel,
}

/// Hashes of sources that have been written.
static WRITTEN: Mutex<Option<HashSet<[u8; 16]>>> = Mutex::new(None);

impl Device {
    /// The kernel of a pipeline; none where it is not known.
    pub fn kernel_of(&self, pipeline: vk::Pipeline) -> ids::Kernel {
        self.pipelines
            .with(pipeline.as_raw(), |p| p.kernel)
            .unwrap_or_default()
    }

    fn module_of(&self, code: &[u32]) -> Module {
        let bytes: &[u8] = bytemuck::cast_slice(code);
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        let new = crate::handles::lock(&WRITTEN)
            .get_or_insert_default()
            .insert(hash);
        if new {
            self.recorder.write(&CommonEvent::Source {
                hash,
                format: SourceFormat::SpirV,
                bytes,
            });
        }
        Module {
            hash,
            description: Arc::new(spirv::describe(code)),
            name: String::new(),
        }
    }

    /// Writes the kernel of a new pipeline.
    ///
    /// # Safety
    /// `info` is what the pipeline was made of.
    unsafe fn add_kernel(&self, pipeline: vk::Pipeline, info: &vk::ComputePipelineCreateInfo<'_>) {
        let stage = &info.stage;
        // SAFETY: the program's structures are valid during its call.
        let (module, entry_point, specialisation) = unsafe {
            let module = self
                .modules
                .get(stage.module.as_raw())
                .or_else(|| self.inline_module(stage.p_next));
            (
                module,
                text_at(stage.p_name),
                specialisation(stage.p_specialization_info),
            )
        };
        let kernel = next_id(&self.recorder.ids.kernel);
        self.pipelines
            .insert(pipeline.as_raw(), Pipeline { kernel });
        let description = module
            .as_ref()
            .map(|m| Arc::clone(&m.description))
            .unwrap_or_default();
        let local_size = description
            .entry_points
            .iter()
            .find(|(name, _)| *name == entry_point)
            .map_or([0; 3], |(_, size)| *size);
        self.recorder.write(&CommonEvent::Kernel {
            kernel,
            source: module.as_ref().map_or([0; 16], |m| m.hash),
            entry_point,
            specialisation: Cow::Owned(specialisation),
            source_name: Cow::Borrowed(&description.source_name),
            local_size,
            accesses: description.accesses.clone(),
        });
        if let Some(module) = module.filter(|m| !m.name.is_empty()) {
            self.recorder.write(&CommonEvent::Name {
                object: Object::KernelSource(kernel),
                name: &module.name,
            });
        }
    }

    /// Since maintenance5, a pipeline's code may be in its own chain.
    ///
    /// # Safety
    /// `chain` is a valid pNext chain.
    unsafe fn inline_module(&self, chain: *const std::ffi::c_void) -> Option<Module> {
        let kind = vk::StructureType::SHADER_MODULE_CREATE_INFO;
        // SAFETY: as the caller promises; the code is valid during the call.
        unsafe {
            let info = find::<vk::ShaderModuleCreateInfo<'_>>(chain, kind)?;
            Some(self.module_of(slice(info.p_code, (info.code_size / 4) as u32)))
        }
    }
}

/// Specialisation constants as `id:hex`, joined by commas, in the order of their ids.
///
/// # Safety
/// A non-null pointer is a valid VkSpecializationInfo.
unsafe fn specialisation(info: *const vk::SpecializationInfo<'_>) -> String {
    let mut text = String::new();
    // SAFETY: as the caller promises; entries outside the data are passed over.
    unsafe {
        if info.is_null() {
            return text;
        }
        let data = slice((*info).p_data.cast::<u8>(), (*info).data_size as u32);
        let mut entries = slice((*info).p_map_entries, (*info).map_entry_count).to_vec();
        entries.sort_by_key(|entry| entry.constant_id);
        for entry in entries {
            let start = entry.offset as usize;
            let Some(value) = start
                .checked_add(entry.size)
                .and_then(|end| data.get(start..end))
            else {
                continue;
            };
            let separator = if text.is_empty() { "" } else { "," };
            let _ = write!(text, "{separator}{}:", entry.constant_id);
            value.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
        }
    }
    text
}

pub unsafe extern "system" fn create_shader_module(
    handle: vk::Device,
    info: *const vk::ShaderModuleCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::ShaderModule,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.create_shader_module) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, info, allocator, out);
        guard(|| {
            timer.finish(
                device,
                Call::CreateShaderModule,
                result.as_raw(),
                None,
                None,
            );
            if result == vk::Result::SUCCESS {
                let code = slice((*info).p_code, ((*info).code_size / 4) as u32);
                device
                    .modules
                    .insert((*out).as_raw(), device.module_of(code));
            }
        });
        result
    }
}

pub unsafe extern "system" fn destroy_shader_module(
    handle: vk::Device,
    module: vk::ShaderModule,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.destroy_shader_module) else {
            return;
        };
        guard(|| device.modules.remove(module.as_raw()));
        call(handle, module, allocator);
    }
}

pub unsafe extern "system" fn create_compute_pipelines(
    handle: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    // SAFETY: the program's own call. A pipeline that could not be made is null.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.create_compute_pipelines) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, cache, count, infos, allocator, out);
        guard(|| {
            timer.finish(device, Call::CreatePipelines, result.as_raw(), None, None);
            let made = slice(out.cast_const(), count);
            for (pipeline, info) in made.iter().zip(slice(infos, count)) {
                if *pipeline != vk::Pipeline::null() && result.as_raw() >= 0 {
                    device.add_kernel(*pipeline, info);
                }
            }
        });
        result
    }
}

pub unsafe extern "system" fn create_graphics_pipelines(
    handle: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::GraphicsPipelineCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.create_graphics_pipelines) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, cache, count, infos, allocator, out);
        guard(|| timer.finish(device, Call::CreatePipelines, result.as_raw(), None, None));
        result
    }
}

pub unsafe extern "system" fn destroy_pipeline(
    handle: vk::Device,
    pipeline: vk::Pipeline,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.destroy_pipeline) else {
            return;
        };
        guard(|| device.pipelines.remove(pipeline.as_raw()));
        call(handle, pipeline, allocator);
    }
}
