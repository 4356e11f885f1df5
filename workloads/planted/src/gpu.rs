//! Opens a device with its queues, and makes objects on it. Objects that are created on the device live until it is
//! destroyed.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use ash::{ext, khr, nv, vk};

use crate::Unsupported;
use crate::args::{Args, Mode};
use crate::instance::{Instance, has};
use crate::queue::{self, Queue};
use crate::recorded::Recorded;
use crate::truth::Truth;

/// An object that is destroyed with its device, see [`Gpu::own`].
pub enum Object {
    Buffer(vk::Buffer),
    CommandPool(vk::CommandPool),
    DescriptorPool(vk::DescriptorPool),
    Fence(vk::Fence),
    Image(vk::Image),
    ImageView(vk::ImageView),
    Memory(vk::DeviceMemory),
    Pipeline(vk::Pipeline),
    PipelineLayout(vk::PipelineLayout),
    QueryPool(vk::QueryPool),
    Semaphore(vk::Semaphore),
    Shader(vk::ShaderEXT),
    SetLayout(vk::DescriptorSetLayout),
    UpdateTemplate(vk::DescriptorUpdateTemplate),
}

/// An open device; extensions and features are there only where the driver has them and the mode needs them.
pub struct Gpu {
    pub device: ash::Device,
    pub queues: Vec<Queue>,
    pub debug_utils: Option<ext::debug_utils::Device>,
    pub push_descriptor: Option<khr::push_descriptor::Device>,
    pub shader_object: Option<ext::shader_object::Device>,
    pub decompression: Option<nv::memory_decompression::Device>,
    pub dynamic_rendering: bool,
    /// Whether timeline semaphores and `vkQueueSubmit2` can be used.
    pub timeline_submit2: bool,
    pub memory_types: Vec<vk::MemoryType>,
    memory: Mutex<MemoryUse>,
    name: String,
    owned: Mutex<Vec<Object>>,
    // The instance comes after the device for the order of destruction.
    instance: Arc<Instance>,
}

/// The extension of vkCmdEndRendering2EXT, which ash does not know.
const FRAGMENT_DENSITY_MAP_OFFSET: &CStr = c"VK_EXT_fragment_density_map_offset";

/// Returns the extensions without which a mode cannot run.
fn needed_extensions(mode: Mode) -> &'static [&'static CStr] {
    match mode {
        Mode::ShaderObjects => &[ext::shader_object::NAME],
        Mode::Extensions => &[nv::memory_decompression::NAME, FRAGMENT_DENSITY_MAP_OFFSET],
        _ => &[],
    }
}

#[derive(Clone, Copy, Default)]
/// The memory that was allocated: how often, and how many bytes in all, now, and at most at one time.
struct MemoryUse {
    allocations: u64,
    allocated: u64,
    live: u64,
    peak: u64,
}

impl Gpu {
    /// Opens a device with one queue for dispatches.
    pub fn open(args: &Args) -> Result<Self> {
        Self::with_queues(args, 1, vk::QueueFlags::COMPUTE)
    }

    /// Opens a device with `count` queues that can do `work`.
    pub fn with_queues(args: &Args, count: usize, work: vk::QueueFlags) -> Result<Self> {
        Self::on(Arc::new(Instance::new(args)?), args, count, work)
    }

    /// Opens a device on an instance. It fails with [`Unsupported`] where the device lacks what the mode needs.
    pub fn on(
        instance: Arc<Instance>,
        args: &Args,
        count: usize,
        work: vk::QueueFlags,
    ) -> Result<Self> {
        let raw = &instance.raw;
        let devices = unsafe { raw.enumerate_physical_devices()? };
        let Some(&physical) = devices.get(args.device_index) else {
            bail!(
                "there is no device {}: the driver has {}",
                args.device_index,
                devices.len()
            );
        };
        let properties = unsafe { raw.get_physical_device_properties(physical) };
        if properties.api_version < vk::API_VERSION_1_3 {
            bail!(Unsupported("the device has no Vulkan 1.3".into()));
        }
        let families = unsafe { raw.get_physical_device_queue_family_properties(physical) };
        let positions = queue::choose(&families, args.family, count, work)?;
        let priorities = [1.0; 2];
        let flags = match args.mode {
            Mode::Protected => vk::DeviceQueueCreateFlags::PROTECTED,
            _ => vk::DeviceQueueCreateFlags::empty(),
        };
        let mut queue_infos: Vec<vk::DeviceQueueCreateInfo> = Vec::new();
        // A family is created with as many queues as its last position needs; second queues come last.
        for position in positions.iter().rev() {
            if queue_infos
                .iter()
                .all(|info| info.queue_family_index != position.family)
            {
                queue_infos.push(
                    vk::DeviceQueueCreateInfo::default()
                        .flags(flags)
                        .queue_family_index(position.family)
                        .queue_priorities(&priorities[..=position.index as usize]),
                );
            }
        }

        let asks_for_13 = args.api_minor >= 3;
        let mut has12 = vk::PhysicalDeviceVulkan12Features::default();
        let mut has13 = vk::PhysicalDeviceVulkan13Features::default();
        if asks_for_13 {
            let mut features = vk::PhysicalDeviceFeatures2::default()
                .push_next(&mut has12)
                .push_next(&mut has13);
            unsafe { raw.get_physical_device_features2(physical, &mut features) };
        }
        let timeline_submit2 = has12.timeline_semaphore != 0 && has13.synchronization2 != 0;
        let dynamic_rendering = has13.dynamic_rendering != 0;
        let mut use12 =
            vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(timeline_submit2);
        let mut use13 = vk::PhysicalDeviceVulkan13Features::default()
            .synchronization2(timeline_submit2)
            .dynamic_rendering(dynamic_rendering);
        let extensions = unsafe { raw.enumerate_device_extension_properties(physical)? };
        // The feature needs Vulkan 1.1, or an extension of the instance.
        let has_push_descriptor =
            args.api_minor >= 1 && has(&extensions, khr::push_descriptor::NAME);
        let needed = needed_extensions(args.mode);
        if let Some(missing) = needed.iter().find(|name| !has(&extensions, name)) {
            let missing = missing.to_string_lossy();
            bail!(Unsupported(format!("the device has no {missing}")));
        }
        // It gives vkQueueSubmit2 its older name.
        let has_older_submit2 = args.mode == Mode::Submit2
            && timeline_submit2
            && has(&extensions, khr::synchronization2::NAME);
        let optional = [
            has_push_descriptor.then_some(khr::push_descriptor::NAME),
            has_older_submit2.then_some(khr::synchronization2::NAME),
        ];
        let names: Vec<_> = (optional.iter().flatten())
            .chain(needed)
            .map(|name| name.as_ptr())
            .collect();
        let shader_objects = needed.contains(&ext::shader_object::NAME);
        let decompresses = needed.contains(&nv::memory_decompression::NAME);
        let mut use_shader_objects =
            vk::PhysicalDeviceShaderObjectFeaturesEXT::default().shader_object(true);
        let mut use_decompression =
            vk::PhysicalDeviceMemoryDecompressionFeaturesNV::default().memory_decompression(true);
        let mut info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queue_infos)
            .enabled_extension_names(&names);
        if asks_for_13 {
            info = info.push_next(&mut use12).push_next(&mut use13);
        }
        if shader_objects {
            info = info.push_next(&mut use_shader_objects);
        }
        let mut use_protected =
            vk::PhysicalDeviceProtectedMemoryFeatures::default().protected_memory(true);
        if args.mode == Mode::Protected {
            info = info.push_next(&mut use_protected);
        }
        if decompresses {
            info = info.push_next(&mut use_decompression);
        }
        let device = unsafe { raw.create_device(physical, &info, None) }
            .context("the device could not be created")?;

        Ok(Self {
            queues: positions
                .iter()
                .map(|at| {
                    let queue = if flags.is_empty() {
                        unsafe { device.get_device_queue(at.family, at.index) }
                    } else {
                        let info = vk::DeviceQueueInfo2::default()
                            .flags(flags)
                            .queue_family_index(at.family)
                            .queue_index(at.index);
                        unsafe { device.get_device_queue2(&info) }
                    };
                    Queue::new(queue, at.family)
                })
                .collect(),
            debug_utils: instance
                .has_debug_utils
                .then(|| ext::debug_utils::Device::new(raw, &device)),
            push_descriptor: has_push_descriptor
                .then(|| khr::push_descriptor::Device::new(raw, &device)),
            shader_object: shader_objects.then(|| ext::shader_object::Device::new(raw, &device)),
            decompression: decompresses
                .then(|| nv::memory_decompression::Device::new(raw, &device)),
            dynamic_rendering,
            timeline_submit2,
            memory_types: unsafe { raw.get_physical_device_memory_properties(physical) }
                .memory_types_as_slice()
                .to_vec(),
            memory: Mutex::default(),
            name: properties
                .device_name_as_c_str()
                .unwrap_or(c"")
                .to_string_lossy()
                .into_owned(),
            owned: Mutex::default(),
            device,
            instance,
        })
    }

    pub fn function(&self, name: &CStr) -> vk::PFN_vkVoidFunction {
        unsafe {
            self.instance
                .raw
                .get_device_proc_addr(self.device.handle(), name.as_ptr())
        }
    }

    /// Destroys an object with the device; later objects are destroyed first.
    pub fn own(&self, object: Object) {
        self.owned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(object);
    }

    /// Allocates memory of a type of `allowed`, with the first of the properties `wanted` that any type has. The
    /// caller owns or frees it.
    pub fn allocate(
        &self,
        bytes: u64,
        allowed: u32,
        wanted: &[vk::MemoryPropertyFlags],
    ) -> Result<(vk::DeviceMemory, vk::MemoryPropertyFlags)> {
        let (index, flags) = wanted
            .iter()
            .find_map(|&wanted| {
                (0..)
                    .zip(&self.memory_types)
                    .find_map(|(index, memory_type)| {
                        let fits = allowed & (1 << index) != 0
                            && memory_type.property_flags.contains(wanted);
                        fits.then_some((index, memory_type.property_flags))
                    })
            })
            .context("the device has no memory of the kind that the mode needs")?;
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(bytes)
            .memory_type_index(index);
        let memory = unsafe { self.device.allocate_memory(&info, None)? };
        let mut used = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        used.allocations += 1;
        used.allocated += bytes;
        used.live += bytes;
        used.peak = used.peak.max(used.live);
        Ok((memory, flags))
    }

    /// Frees `bytes` of memory from `allocate`.
    pub fn free(&self, memory: vk::DeviceMemory, bytes: u64) {
        unsafe { self.device.free_memory(memory, None) };
        self.memory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .live -= bytes;
    }

    /// Makes a pool for a queue, whose command buffers can be reset one by one.
    pub fn command_pool(&self, queue: &Queue) -> Result<vk::CommandPool> {
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(queue.family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        let pool = unsafe { self.device.create_command_pool(&info, None)? };
        self.own(Object::CommandPool(pool));
        Ok(pool)
    }

    pub fn command_buffers(
        &self,
        pool: vk::CommandPool,
        level: vk::CommandBufferLevel,
        count: u32,
    ) -> Result<Vec<vk::CommandBuffer>> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(level)
            .command_buffer_count(count);
        Ok(unsafe { self.device.allocate_command_buffers(&info)? })
    }

    /// Allocates primary command buffers from a new pool for `queue`.
    pub fn primaries(&self, queue: &Queue, count: u32) -> Result<Vec<vk::CommandBuffer>> {
        self.command_buffers(
            self.command_pool(queue)?,
            vk::CommandBufferLevel::PRIMARY,
            count,
        )
    }

    pub fn fence(&self) -> Result<vk::Fence> {
        let fence = unsafe { self.device.create_fence(&Default::default(), None)? };
        self.own(Object::Fence(fence));
        Ok(fence)
    }

    /// Waits for `fence` and resets it.
    pub fn wait(&self, fence: vk::Fence) -> Result<()> {
        unsafe {
            self.device.wait_for_fences(&[fence], true, u64::MAX)?;
            self.device.reset_fences(&[fence])?;
        }
        Ok(())
    }

    pub fn semaphore(&self) -> Result<vk::Semaphore> {
        self.semaphore_of(vk::SemaphoreTypeCreateInfo::default())
    }

    /// Makes a timeline semaphore that starts with a value.
    pub fn timeline(&self, initial_value: u64) -> Result<vk::Semaphore> {
        self.semaphore_of(
            vk::SemaphoreTypeCreateInfo::default()
                .semaphore_type(vk::SemaphoreType::TIMELINE)
                .initial_value(initial_value),
        )
    }

    fn semaphore_of(&self, mut kind: vk::SemaphoreTypeCreateInfo) -> Result<vk::Semaphore> {
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let semaphore = unsafe { self.device.create_semaphore(&info, None)? };
        self.own(Object::Semaphore(semaphore));
        Ok(semaphore)
    }

    pub fn timestamps(&self, count: u32) -> Result<vk::QueryPool> {
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(count);
        let pool = unsafe { self.device.create_query_pool(&info, None)? };
        self.own(Object::QueryPool(pool));
        Ok(pool)
    }

    /// Submits to the first queue, as one batch.
    pub fn submit(&self, recorded: &[&Recorded], fence: vk::Fence) -> Result<()> {
        let buffers: Vec<_> = recorded.iter().map(|recorded| recorded.buffer).collect();
        let batch = [vk::SubmitInfo::default().command_buffers(&buffers)];
        self.queues[0].submit(recorded, |queue| unsafe {
            self.device.queue_submit(queue, &batch, fence)
        })
    }

    /// Names an object if the driver supports names.
    pub fn name<T: vk::Handle>(&self, object: T, name: &CStr) -> Result<()> {
        if let Some(debug_utils) = &self.debug_utils {
            let info = vk::DebugUtilsObjectNameInfoEXT::default()
                .object_handle(object)
                .object_name(name);
            unsafe { debug_utils.set_debug_utils_object_name(&info)? };
        }
        Ok(())
    }

    /// Adds the work of this device to the truth.
    pub fn report(&self, truth: &mut Truth) {
        truth.device.clone_from(&self.name);
        for queue in &self.queues {
            truth.tally += *queue.lock();
        }
        let used = *self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        truth.memory_allocations += used.allocations;
        truth.memory_allocated_bytes += used.allocated;
        truth.memory_peak_bytes += used.peak;
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let owned = std::mem::take(self.owned.get_mut().unwrap_or_else(PoisonError::into_inner));
        let device = &self.device;
        unsafe {
            // The call fails after a lost device, and destroying is still allowed then.
            let _ = device.device_wait_idle();
            for object in owned.into_iter().rev() {
                match object {
                    Object::Buffer(handle) => device.destroy_buffer(handle, None),
                    Object::CommandPool(handle) => device.destroy_command_pool(handle, None),
                    Object::DescriptorPool(handle) => device.destroy_descriptor_pool(handle, None),
                    Object::Fence(handle) => device.destroy_fence(handle, None),
                    Object::Image(handle) => device.destroy_image(handle, None),
                    Object::ImageView(handle) => device.destroy_image_view(handle, None),
                    Object::Memory(handle) => device.free_memory(handle, None),
                    Object::Pipeline(handle) => device.destroy_pipeline(handle, None),
                    Object::PipelineLayout(handle) => device.destroy_pipeline_layout(handle, None),
                    Object::QueryPool(handle) => device.destroy_query_pool(handle, None),
                    Object::Semaphore(handle) => device.destroy_semaphore(handle, None),
                    Object::Shader(handle) => {
                        if let Some(shader_object) = &self.shader_object {
                            shader_object.destroy_shader(handle, None);
                        }
                    }
                    Object::SetLayout(handle) => device.destroy_descriptor_set_layout(handle, None),
                    Object::UpdateTemplate(handle) => {
                        device.destroy_descriptor_update_template(handle, None)
                    }
                }
            }
            device.destroy_device(None);
        }
    }
}
