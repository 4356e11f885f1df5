//! Opens a device of the fake driver with all its queues, and makes, records and runs what the tests need.

use std::cell::Cell;

use ash::vk;

pub struct Gpu {
    pub entry: ash::Entry,
    pub instance: ash::Instance,
    pub physical_device: vk::PhysicalDevice,
    pub device: ash::Device,
    pub period_ns: f64,
}

pub struct Buffer {
    pub buffer: vk::Buffer,
    pub memory: vk::DeviceMemory,
    bytes: u64,
}

/// A compute pipeline and what it is made of.
pub struct Kernel {
    pub pipeline: vk::Pipeline,
    pub layout: vk::PipelineLayout,
    module: vk::ShaderModule,
}

/// The code of `void main() {}`.
const EMPTY_KERNEL: &[u32] = &[
    0x0723_0203,
    0x0001_0000,
    0,
    5,
    0, // header
    2 << 16 | 17,
    1, // OpCapability Shader
    3 << 16 | 14,
    0,
    1, // OpMemoryModel Logical GLSL450
    5 << 16 | 15,
    5,
    1,
    0x6e69_616d,
    0, // OpEntryPoint GLCompute %1 "main"
    6 << 16 | 16,
    1,
    17,
    1,
    1,
    1, // OpExecutionMode %1 LocalSize 1 1 1
    2 << 16 | 19,
    2, // %2 = OpTypeVoid
    3 << 16 | 33,
    3,
    2, // %3 = OpTypeFunction %2
    5 << 16 | 54,
    2,
    1,
    0,
    3, // %1 = OpFunction
    2 << 16 | 248,
    4,             // OpLabel
    1 << 16 | 253, // OpReturn
    1 << 16 | 56,  // OpFunctionEnd
];

impl Gpu {
    pub fn new() -> Self {
        Self::with_host_query_reset(true)
    }

    pub fn with_host_query_reset(host_query_reset: bool) -> Self {
        unsafe {
            let entry = ash::Entry::load().expect("the loader");
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let info = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&info, None).expect("an instance");
            let devices = instance.enumerate_physical_devices().expect("devices");
            let physical_device = devices[0];
            let properties = instance.get_physical_device_properties(physical_device);
            assert_eq!(properties.device_name_as_c_str(), Ok(c"gapscope fake GPU"));
            let families = instance.get_physical_device_queue_family_properties(physical_device);
            let priorities = [1.0; 8];
            let queues: Vec<_> = (0..)
                .zip(&families)
                .map(|(index, family)| {
                    vk::DeviceQueueCreateInfo::default()
                        .queue_family_index(index)
                        .queue_priorities(&priorities[..family.queue_count as usize])
                })
                .collect();
            let mut v12 = vk::PhysicalDeviceVulkan12Features::default()
                .host_query_reset(host_query_reset)
                .timeline_semaphore(true);
            let mut v13 = vk::PhysicalDeviceVulkan13Features::default().synchronization2(true);
            let extensions = [ash::ext::calibrated_timestamps::NAME.as_ptr()];
            let info = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&extensions)
                .push_next(&mut v12)
                .push_next(&mut v13);
            let device = instance
                .create_device(physical_device, &info, None)
                .expect("a device");
            let period_ns = properties.limits.timestamp_period.into();
            Self {
                entry,
                instance,
                physical_device,
                device,
                period_ns,
            }
        }
    }

    pub fn destroy(self) {
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }

    pub fn queue(&self, family: u32, index: u32) -> vk::Queue {
        unsafe { self.device.get_device_queue(family, index) }
    }

    pub fn kernel(&self) -> Kernel {
        unsafe {
            let info = vk::ShaderModuleCreateInfo::default().code(EMPTY_KERNEL);
            let module = self
                .device
                .create_shader_module(&info, None)
                .expect("a shader");
            let info = vk::PipelineLayoutCreateInfo::default();
            let layout = self
                .device
                .create_pipeline_layout(&info, None)
                .expect("a layout");
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(c"main");
            let info = vk::ComputePipelineCreateInfo::default()
                .stage(stage)
                .layout(layout);
            let pipelines =
                self.device
                    .create_compute_pipelines(vk::PipelineCache::null(), &[info], None);
            Kernel {
                pipeline: pipelines.expect("a pipeline")[0],
                layout,
                module,
            }
        }
    }

    pub fn destroy_kernel(&self, kernel: Kernel) {
        unsafe {
            self.device.destroy_pipeline(kernel.pipeline, None);
            self.device.destroy_pipeline_layout(kernel.layout, None);
            self.device.destroy_shader_module(kernel.module, None);
        }
    }

    /// Makes a host-visible buffer for transfers.
    pub fn buffer(&self, bytes: u64) -> Buffer {
        unsafe {
            let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
            let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
            let buffer = self.device.create_buffer(&info, None).expect("a buffer");
            let needed = self.device.get_buffer_memory_requirements(buffer);
            let types = self
                .instance
                .get_physical_device_memory_properties(self.physical_device);
            let visible = vk::MemoryPropertyFlags::HOST_VISIBLE;
            let index = types
                .memory_types_as_slice()
                .iter()
                .position(|kind| kind.property_flags.contains(visible))
                .expect("host-visible memory");
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needed.size)
                .memory_type_index(index as u32);
            let memory = self.device.allocate_memory(&info, None).expect("memory");
            self.device
                .bind_buffer_memory(buffer, memory, 0)
                .expect("bound");
            Buffer {
                buffer,
                memory,
                bytes,
            }
        }
    }

    /// Returns the words of a buffer, mapped until it is destroyed. The GPU may write them.
    pub fn map<'a>(&self, buffer: &'a Buffer) -> &'a [Cell<u32>] {
        let flags = vk::MemoryMapFlags::empty();
        unsafe {
            let start = self
                .device
                .map_memory(buffer.memory, 0, vk::WHOLE_SIZE, flags)
                .expect("mapped");
            std::slice::from_raw_parts(start.cast(), buffer.bytes as usize / 4)
        }
    }

    pub fn destroy_buffer(&self, buffer: Buffer) {
        unsafe {
            self.device.destroy_buffer(buffer.buffer, None);
            self.device.free_memory(buffer.memory, None);
        }
    }

    pub fn timestamps(&self, count: u32) -> vk::QueryPool {
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(count);
        unsafe {
            self.device
                .create_query_pool(&info, None)
                .expect("a query pool")
        }
    }

    pub fn results(&self, pool: vk::QueryPool, count: usize) -> Vec<u64> {
        let mut ticks = vec![0u64; count];
        let flags = vk::QueryResultFlags::TYPE_64;
        unsafe {
            self.device
                .get_query_pool_results(pool, 0, &mut ticks, flags)
                .expect("available")
        };
        ticks
    }

    pub fn pool(&self, family: u32) -> vk::CommandPool {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        unsafe {
            self.device
                .create_command_pool(&info, None)
                .expect("a command pool")
        }
    }

    pub fn record(
        &self,
        pool: vk::CommandPool,
        commands: impl FnOnce(vk::CommandBuffer),
    ) -> vk::CommandBuffer {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .command_buffer_count(1);
        unsafe {
            let buffer = self
                .device
                .allocate_command_buffers(&info)
                .expect("a command buffer")[0];
            let begin = vk::CommandBufferBeginInfo::default();
            self.device
                .begin_command_buffer(buffer, &begin)
                .expect("begun");
            commands(buffer);
            self.device.end_command_buffer(buffer).expect("ended");
            buffer
        }
    }

    pub fn submit(&self, queue: vk::Queue, buffer: vk::CommandBuffer) -> Result<(), vk::Result> {
        let buffers = [buffer];
        let info = vk::SubmitInfo::default().command_buffers(&buffers);
        unsafe { self.device.queue_submit(queue, &[info], vk::Fence::null()) }
    }

    /// Records, submits, waits and frees.
    pub fn execute(&self, family: u32, commands: impl FnOnce(vk::CommandBuffer)) {
        let (pool, queue) = (self.pool(family), self.queue(family, 0));
        let buffer = self.record(pool, commands);
        self.submit(queue, buffer).expect("submitted");
        unsafe {
            self.device.queue_wait_idle(queue).expect("idle");
            self.device.destroy_command_pool(pool, None);
        }
    }
}
