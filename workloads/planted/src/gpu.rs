//! A device with its queues. What is made on it lives until it goes, unless a mode is about destroying things.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use ash::{ext, vk};

use crate::args::Args;
use crate::recording::Recorded;
use crate::truth::{Tally, Truth};

/// The device or driver lacks what the mode needs; the program exits with 3.
#[derive(Debug)]
pub struct Unsupported(pub String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

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
    Semaphore(vk::Semaphore),
    SetLayout(vk::DescriptorSetLayout),
    UpdateTemplate(vk::DescriptorUpdateTemplate),
}

pub struct Queue {
    pub handle: vk::Queue,
    pub family: u32,
    pub flags: vk::QueueFlags,
    // Vulkan wants one thread at a time on a queue.
    tally: Mutex<Tally>,
}

impl Queue {
    pub fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Gpu {
    pub device: ash::Device,
    pub queues: Vec<Queue>,
    pub name: String,
    pub debug_utils: Option<ext::debug_utils::Device>,
    pub extensions: Vec<String>,
    pub instance: ash::Instance,
    pub physical: vk::PhysicalDevice,
    memory: vk::PhysicalDeviceMemoryProperties,
    owned: Mutex<Vec<Object>>,
    _entry: ash::Entry,
}

impl Gpu {
    /// A device with one queue for dispatches.
    pub fn open(args: &Args) -> Result<Self> {
        Self::open_with(args, 1, vk::QueueFlags::COMPUTE)
    }

    /// A device with `count` queues that can do `work`, of different families where there are any.
    pub fn open_with(args: &Args, count: usize, work: vk::QueueFlags) -> Result<Self> {
        let entry = unsafe { ash::Entry::load() }
            .context("the Vulkan loader could not be loaded: install libvulkan1")?;
        let debug_utils = unsafe { entry.enumerate_instance_extension_properties(None)? }
            .iter()
            .any(|extension| extension.extension_name_as_c_str() == Ok(ext::debug_utils::NAME));
        let application = vk::ApplicationInfo::default()
            .application_name(c"planted")
            .api_version(vk::API_VERSION_1_3);
        let names: Vec<_> = debug_utils
            .then_some(ext::debug_utils::NAME.as_ptr())
            .into_iter()
            .collect();
        let info = vk::InstanceCreateInfo::default()
            .application_info(&application)
            .enabled_extension_names(&names);
        let instance = unsafe { entry.create_instance(&info, None) }
            .context("no Vulkan driver could be used")?;
        match Self::open_device(&instance, args, count, work) {
            Ok((physical, device, queues)) => {
                let properties = unsafe { instance.get_physical_device_properties(physical) };
                Ok(Self {
                    debug_utils: debug_utils
                        .then(|| ext::debug_utils::Device::new(&instance, &device)),
                    name: properties
                        .device_name_as_c_str()?
                        .to_string_lossy()
                        .into_owned(),
                    extensions: device_extensions(&instance, physical)?,
                    memory: unsafe { instance.get_physical_device_memory_properties(physical) },
                    owned: Mutex::default(),
                    device,
                    queues,
                    physical,
                    instance,
                    _entry: entry,
                })
            }
            Err(error) => {
                unsafe { instance.destroy_instance(None) };
                Err(error)
            }
        }
    }

    fn open_device(
        instance: &ash::Instance,
        args: &Args,
        count: usize,
        work: vk::QueueFlags,
    ) -> Result<(vk::PhysicalDevice, ash::Device, Vec<Queue>)> {
        let devices = unsafe { instance.enumerate_physical_devices()? };
        let Some(&physical) = devices.get(args.device_index) else {
            bail!(
                "there is no device {}: the driver has {}",
                args.device_index,
                devices.len()
            );
        };
        let properties = unsafe { instance.get_physical_device_properties(physical) };
        if properties.api_version < vk::API_VERSION_1_3 {
            bail!(Unsupported("the device has no Vulkan 1.3".into()));
        }
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let chosen = choose_queues(&families, args.family, count, work)?;

        let priorities = [1.0; 2];
        let mut infos: Vec<vk::DeviceQueueCreateInfo> = Vec::new();
        for &(family, index) in chosen.iter().rev() {
            // The highest index of a family comes first and says how many queues it needs.
            if !infos.iter().any(|info| info.queue_family_index == family) {
                let info = vk::DeviceQueueCreateInfo::default().queue_family_index(family);
                infos.push(info.queue_priorities(&priorities[..=index as usize]));
            }
        }
        let mut has12 = vk::PhysicalDeviceVulkan12Features::default();
        let mut has13 = vk::PhysicalDeviceVulkan13Features::default();
        let mut has = vk::PhysicalDeviceFeatures2::default()
            .push_next(&mut has12)
            .push_next(&mut has13);
        unsafe { instance.get_physical_device_features2(physical, &mut has) };
        let mut wants12 = vk::PhysicalDeviceVulkan12Features::default()
            .timeline_semaphore(has12.timeline_semaphore != 0);
        let mut wants13 = vk::PhysicalDeviceVulkan13Features::default()
            .synchronization2(has13.synchronization2 != 0)
            .dynamic_rendering(has13.dynamic_rendering != 0);
        let push = ash::khr::push_descriptor::NAME;
        let names: Vec<_> = device_extensions(instance, physical)?
            .iter()
            .any(|name| push.to_str() == Ok(name.as_str()))
            .then_some(push.as_ptr())
            .into_iter()
            .collect();
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&infos)
            .enabled_extension_names(&names)
            .push_next(&mut wants12)
            .push_next(&mut wants13);
        let device = unsafe { instance.create_device(physical, &info, None) }
            .context("the device could not be created")?;
        let queues = chosen
            .into_iter()
            .map(|(family, index)| Queue {
                handle: unsafe { device.get_device_queue(family, index) },
                family,
                flags: families[family as usize].queue_flags,
                tally: Mutex::default(),
            })
            .collect();
        Ok((physical, device, queues))
    }

    pub fn own(&self, object: Object) {
        self.owned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(object);
    }

    pub fn has_extension(&self, name: &std::ffi::CStr) -> bool {
        self.extensions
            .iter()
            .any(|extension| name.to_str() == Ok(extension.as_str()))
    }

    /// The best host-visible memory type among `allowed`, for reading back.
    pub fn host_visible_memory(&self, allowed: u32) -> Option<(u32, vk::MemoryPropertyFlags)> {
        use vk::MemoryPropertyFlags as Flags;
        let types = self.memory.memory_types_as_slice();
        [
            Flags::HOST_COHERENT | Flags::HOST_CACHED,
            Flags::HOST_COHERENT,
            Flags::empty(),
        ]
        .into_iter()
        .find_map(|wanted| {
            (0..types.len() as u32).find_map(|index| {
                let flags = types[index as usize].property_flags;
                let fits =
                    allowed & (1 << index) != 0 && flags.contains(wanted | Flags::HOST_VISIBLE);
                fits.then_some((index, flags))
            })
        })
    }

    pub fn command_pool(&self, queue: usize) -> Result<vk::CommandPool> {
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(self.queues[queue].family)
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

    /// A primary command buffer of a pool of its own, for the first queue.
    pub fn command_buffer(&self) -> Result<vk::CommandBuffer> {
        let pool = self.command_pool(0)?;
        Ok(self.command_buffers(pool, vk::CommandBufferLevel::PRIMARY, 1)?[0])
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

    /// Submits to the first queue, as one batch.
    pub fn submit(&self, recorded: &[&Recorded], fence: vk::Fence) -> Result<()> {
        let buffers: Vec<_> = recorded.iter().map(|recorded| recorded.buffer).collect();
        let batch = [vk::SubmitInfo::default().command_buffers(&buffers)];
        self.submit_batches(0, &batch, recorded, fence)
    }

    /// Submits `batches`, which hold the command buffers of `recorded`.
    pub fn submit_batches(
        &self,
        queue: usize,
        batches: &[vk::SubmitInfo],
        recorded: &[&Recorded],
        fence: vk::Fence,
    ) -> Result<()> {
        let queue = &self.queues[queue];
        let mut tally = queue.lock();
        unsafe { self.device.queue_submit(queue.handle, batches, fence)? };
        add_submission(&mut tally, recorded);
        Ok(())
    }

    /// Adds what ran on this device to the truth.
    pub fn report(&self, truth: &mut Truth) {
        truth.device.clone_from(&self.name);
        for queue in &self.queues {
            truth.tally += *queue.lock();
        }
    }
}

pub fn add_submission(tally: &mut Tally, recorded: &[&Recorded]) {
    tally.submits += 1;
    for recorded in recorded {
        tally.command_buffers += 1;
        *tally += recorded.tally;
    }
}

fn device_extensions(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> Result<Vec<String>> {
    let extensions = unsafe { instance.enumerate_device_extension_properties(physical)? };
    Ok(extensions
        .iter()
        .filter_map(|extension| {
            extension
                .extension_name_as_c_str()
                .ok()?
                .to_str()
                .ok()
                .map(str::to_owned)
        })
        .collect())
}

/// Queues as (family, index): of the wanted family first, then of other families, then a second of a family.
fn choose_queues(
    families: &[vk::QueueFamilyProperties],
    wanted: Option<u32>,
    count: usize,
    work: vk::QueueFlags,
) -> Result<Vec<(u32, u32)>> {
    let able = |family: u32| {
        let mut flags = families[family as usize].queue_flags;
        // Every queue that can draw or compute can also transfer, and need not say so.
        if flags.intersects(vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE) {
            flags |= vk::QueueFlags::TRANSFER;
        }
        flags.contains(work)
    };
    let mut order: Vec<u32> = (0..families.len() as u32)
        .filter(|&family| able(family))
        .collect();
    if let Some(wanted) = wanted {
        if !order.contains(&wanted) {
            bail!(Unsupported(format!(
                "queue family {wanted} does not exist or has no {work:?}"
            )));
        }
        order.sort_by_key(|&family| family != wanted);
    }
    let firsts = order.iter().map(|&family| (family, 0));
    let seconds = order
        .iter()
        .filter(|&&family| families[family as usize].queue_count > 1)
        .map(|&family| (family, 1));
    let chosen: Vec<_> = firsts.chain(seconds).take(count).collect();
    if chosen.len() < count {
        bail!(Unsupported(format!(
            "the mode needs {count} queues with {work:?}, and the device has {}",
            chosen.len()
        )));
    }
    Ok(chosen)
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let owned = std::mem::take(self.owned.get_mut().unwrap_or_else(PoisonError::into_inner));
        unsafe {
            // After a lost device this fails, and destroying is still allowed.
            let _ = self.device.device_wait_idle();
            for object in owned.into_iter().rev() {
                match object {
                    Object::Buffer(handle) => self.device.destroy_buffer(handle, None),
                    Object::CommandPool(handle) => self.device.destroy_command_pool(handle, None),
                    Object::DescriptorPool(handle) => {
                        self.device.destroy_descriptor_pool(handle, None)
                    }
                    Object::Fence(handle) => self.device.destroy_fence(handle, None),
                    Object::Image(handle) => self.device.destroy_image(handle, None),
                    Object::ImageView(handle) => self.device.destroy_image_view(handle, None),
                    Object::Memory(handle) => self.device.free_memory(handle, None),
                    Object::Pipeline(handle) => self.device.destroy_pipeline(handle, None),
                    Object::PipelineLayout(handle) => {
                        self.device.destroy_pipeline_layout(handle, None)
                    }
                    Object::Semaphore(handle) => self.device.destroy_semaphore(handle, None),
                    Object::SetLayout(handle) => {
                        self.device.destroy_descriptor_set_layout(handle, None)
                    }
                    Object::UpdateTemplate(handle) => {
                        self.device.destroy_descriptor_update_template(handle, None)
                    }
                }
            }
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}
