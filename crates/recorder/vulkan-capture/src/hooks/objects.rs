//! Keeps the memory, buffers, modules, pipelines, semaphores and descriptors that programs create and destroy,
//! because a window (the captured part of the run) may need them: the shared hooks call these functions after the
//! program has made an object, and before it destroys one.

use std::sync::{Arc, Mutex, OnceLock};

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::descriptors::Descriptors;
use gapscope_vulkan_layer::handles::{Serial, lock};
use gapscope_vulkan_layer::layer::{ObjectHooks, SemaphoreInfo, TimedCall};

use crate::api::device::Device;
use crate::hooks::memory::{self, SOURCE};
use crate::objects::kernels::{Module, Pipeline};
use crate::objects::memory::{Buffer, Memory, refusal};
use crate::objects::{Contents, Semaphore};
use crate::window;

impl ObjectHooks for Device {
    type Contents = Contents;
    type Timer = ();

    fn start_timer(&self) {}

    fn finish_timer(&self, (): (), _: TimedCall, _: vk::Result, _: Option<u64>) {}

    unsafe fn add_memory(&self, memory: vk::DeviceMemory, info: &vk::MemoryAllocateInfo<'_>) {
        let new = Memory {
            serial: Serial::next(),
            bytes: info.allocation_size,
            properties: self.properties_of(info.memory_type_index),
            // SAFETY: as the caller promises.
            refusal: unsafe { refusal(info.p_next) },
        };
        let memories = &self.objects.memories;
        memories.insert(memory.as_raw(), Arc::new(new));
    }

    fn remove_memory(&self, memory: vk::DeviceMemory) {
        self.objects.memories.remove(memory.as_raw());
    }

    unsafe fn change_buffer<'a>(
        &self,
        info: &vk::BufferCreateInfo<'a>,
    ) -> Option<vk::BufferCreateInfo<'a>> {
        // SAFETY: as the caller promises.
        unsafe { memory::with_source(info) }
    }

    unsafe fn add_buffer(
        &self,
        buffer: vk::Buffer,
        info: &vk::BufferCreateInfo<'_>,
        is_changed: bool,
    ) {
        // SAFETY: as the caller promises.
        let (usage, _) = unsafe { memory::usage(info) };
        let new = Buffer {
            serial: Serial::next(),
            handle: buffer,
            bytes: info.size,
            usage,
            flags: info.flags,
            is_readable: is_changed || usage & SOURCE != 0,
            place: OnceLock::new(),
            name: Mutex::default(),
        };
        let buffers = &self.objects.buffers;
        buffers.insert(buffer.as_raw(), Arc::new(new));
    }

    fn remove_buffer(&self, buffer: vk::Buffer) {
        self.objects.buffers.remove(buffer.as_raw());
    }

    fn bind_buffer(&self, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64) {
        let memory = self.objects.memories.get(memory.as_raw());
        let buffer = self.objects.buffers.get(buffer.as_raw());
        if let (Some(memory), Some(buffer)) = (memory, buffer) {
            let _ = buffer.place.set((memory, offset));
        }
    }

    fn add_module(&self, module: vk::ShaderModule, code: &[u32]) {
        let new = Arc::new(Module::new(code));
        self.objects.modules.insert(module.as_raw(), new);
    }

    fn remove_module(&self, module: vk::ShaderModule) {
        self.objects.modules.remove(module.as_raw());
    }

    unsafe fn add_pipeline(
        &self,
        pipeline: vk::Pipeline,
        info: &vk::ComputePipelineCreateInfo<'_>,
    ) {
        let objects = &self.objects;
        let Some(layout) = objects.pipeline_layouts.get(info.layout.as_raw()) else {
            return;
        };
        let module = objects.modules.get(info.stage.module.as_raw());
        // SAFETY: as the caller promises.
        let new = unsafe { Pipeline::from_info(pipeline, info, layout, module) };
        objects.pipelines.insert(pipeline.as_raw(), Arc::new(new));
    }

    fn remove_pipeline(&self, pipeline: vk::Pipeline) {
        self.objects.pipelines.remove(pipeline.as_raw());
    }

    fn add_semaphore(&self, semaphore: vk::Semaphore, info: SemaphoreInfo) {
        let new = Semaphore {
            serial: Serial::next(),
            is_timeline: info.initial_value.is_some(),
            is_shared: info.is_shared,
        };
        self.objects.semaphores.insert(semaphore.as_raw(), new);
    }

    fn remove_semaphore(&self, semaphore: vk::Semaphore) {
        self.objects.semaphores.remove(semaphore.as_raw());
    }

    unsafe fn name_object(&self, kind: vk::ObjectType, handle: u64, name: &str) {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        let objects = &self.objects;
        match kind {
            vk::ObjectType::BUFFER => {
                objects
                    .buffers
                    .with(handle, |buffer| *lock(&buffer.name) = name);
            }
            vk::ObjectType::PIPELINE => {
                objects
                    .pipelines
                    .with(handle, |pipeline| *lock(&pipeline.name) = name);
            }
            vk::ObjectType::SHADER_MODULE => {
                objects
                    .modules
                    .with(handle, |module| *lock(&module.name) = name);
            }
            _ => {}
        }
    }

    fn descriptors(&self) -> &Descriptors<Contents> {
        &self.objects.descriptors
    }

    fn descriptor_context(&self) -> &() {
        &()
    }

    fn follow(work: impl FnOnce()) {
        window::unless_over(work);
    }
}
