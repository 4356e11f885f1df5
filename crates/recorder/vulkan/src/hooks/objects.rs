//! Records memory, buffers, shader modules, pipelines, semaphores and descriptors as programs create and destroy
//! them. The shared hooks (`gapscope-vulkan-layer`) call these methods; most pass on to `crate::objects`.

use crate::device::Device;
use crate::hooks::labels;
use crate::host_call::HostCallTimer;
use crate::objects::descriptors::Bindings;
use crate::objects::memory::Memory;
use crate::objects::semaphores::Semaphore;
use ash::vk;
use gapscope_spool::event::{HostCallKind, VulkanEvent};
use gapscope_vulkan_layer::descriptors::Descriptors;
use gapscope_vulkan_layer::layer::{ObjectHooks, SemaphoreInfo, TimedCall};

impl ObjectHooks for Device {
    type Contents = Bindings;
    type Timer = HostCallTimer;

    fn start_timer(&self) -> HostCallTimer {
        HostCallTimer::start(self.recorder)
    }

    fn finish_timer(
        &self,
        timer: HostCallTimer,
        call: TimedCall,
        result: vk::Result,
        bytes: Option<u64>,
    ) {
        let call = match call {
            TimedCall::AllocateMemory => HostCallKind::AllocateMemory,
            TimedCall::FreeMemory => HostCallKind::FreeMemory,
            TimedCall::CreateShaderModule => HostCallKind::CreateShaderModule,
            TimedCall::CreatePipelines => HostCallKind::CreatePipelines,
        };
        timer.finish_with_bytes(call, result, bytes);
    }

    unsafe fn add_memory(&self, memory: vk::DeviceMemory, info: &vk::MemoryAllocateInfo<'_>) {
        self.memory.add_allocation(memory, info);
    }

    fn remove_memory(&self, memory: vk::DeviceMemory) {
        self.memory.remove_allocation(memory);
    }

    /// Leaves buffers as the program creates them.
    unsafe fn change_buffer<'a>(
        &self,
        _: &vk::BufferCreateInfo<'a>,
    ) -> Option<vk::BufferCreateInfo<'a>> {
        None
    }

    unsafe fn add_buffer(&self, buffer: vk::Buffer, info: &vk::BufferCreateInfo<'_>, _: bool) {
        self.memory.add_buffer(buffer, info.size);
    }

    fn remove_buffer(&self, buffer: vk::Buffer) {
        self.memory.remove_buffer(buffer);
    }

    fn bind_buffer(&self, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64) {
        self.memory.bind_buffer(buffer, memory, offset);
    }

    fn add_module(&self, module: vk::ShaderModule, code: &[u32]) {
        self.kernels.add_module(module, code);
    }

    fn remove_module(&self, module: vk::ShaderModule) {
        self.kernels.remove_module(module);
    }

    unsafe fn add_pipeline(
        &self,
        pipeline: vk::Pipeline,
        info: &vk::ComputePipelineCreateInfo<'_>,
    ) {
        // SAFETY: as the caller promises.
        unsafe { self.kernels.add_pipeline(pipeline, info) };
    }

    fn remove_pipeline(&self, pipeline: vk::Pipeline) {
        self.kernels.remove_pipeline(pipeline);
    }

    fn add_semaphore(&self, semaphore: vk::Semaphore, info: SemaphoreInfo) {
        let id = self.recorder.ids.semaphore.next();
        let new = Semaphore::new(id, info.initial_value);
        self.semaphores.add(semaphore, new);
    }

    fn remove_semaphore(&self, semaphore: vk::Semaphore) {
        if let Some(semaphore) = self.semaphores.remove(semaphore) {
            self.recorder
                .write(&VulkanEvent::SemaphoreEnd { semaphore });
        }
    }

    unsafe fn name_object(&self, kind: vk::ObjectType, handle: u64, name: &str) {
        // SAFETY: as the caller promises.
        unsafe { labels::name_object(self, kind, handle, name) };
    }

    fn descriptors(&self) -> &Descriptors<Bindings> {
        &self.descriptors
    }

    fn descriptor_context(&self) -> &Memory {
        &self.memory
    }
}
