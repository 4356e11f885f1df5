//! Opens the device that a replay runs on, with one queue, and submits command buffers to it: [`Gpu::begin`], record,
//! [`Gpu::end`], then [`Gpu::run`].

use std::collections::BTreeSet;
use std::ffi::{CString, c_char};
use std::rc::Rc;

use ash::{ext, vk};

use crate::adapter::{Adapter, Instance, Properties};
use crate::error::Error;
use crate::features::Features;

/// An open device with its queue.
pub struct Gpu {
    pub raw: ash::Device,
    pub queue: vk::Queue,
    /// Index of the queue's family.
    pub family: u32,
    /// What queues of the family can do.
    pub family_flags: vk::QueueFlags,
    /// Number of valid bits of a timestamp; 0 if the queue has no timestamps.
    pub timestamp_bits: u32,
    pub properties: Properties,
    pub memory: vk::PhysicalDeviceMemoryProperties,
    /// Functions that record labels; `None` if the instance lacks them.
    pub labels: Option<ext::debug_utils::Device>,
    /// Functions that read the clocks of device and host at once; `None` if the device lacks them.
    pub calibrated: Option<ext::calibrated_timestamps::Device>,
    pool: vk::CommandPool,
    /// Signalled when submitted work has ended; one for all, so that one submission runs at a time.
    fence: vk::Fence,
    /// The instance, which must outlive everything above.
    _instance: Rc<Instance>,
}

impl Gpu {
    /// Opens a device with these features and extensions, the extensions that the features belong to, and the one for
    /// its clock. The queue is of the family that [`Adapter::family`] chooses.
    pub fn open(
        adapter: &Adapter,
        queue_flags: Option<u32>,
        features: &BTreeSet<&'static str>,
        extensions: &BTreeSet<String>,
    ) -> Result<Rc<Gpu>, Error> {
        let family = adapter.family(queue_flags)?;
        let mut extensions = extensions.clone();
        let mut on = Features::none(&adapter.extensions);
        for feature in features {
            extensions.extend(on.turn_on(feature).map(str::to_owned));
        }
        let calibrates = adapter.calibrates;
        if calibrates {
            extensions.insert("VK_EXT_calibrated_timestamps".to_owned());
        }
        // A device of a layer over another API must be opened with this extension.
        let subset = "VK_KHR_portability_subset";
        if adapter.extensions.contains(subset) {
            extensions.insert(subset.to_owned());
        }
        on.retain(&extensions);
        let names: Vec<CString> = extensions
            .iter()
            .filter_map(|name| CString::new(name.as_str()).ok())
            .collect();
        let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&[1.0])];
        let mut info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&names);
        info.p_next = on.chain().cast_const();
        let instance = &adapter.instance;
        // SAFETY: all that the structure points to is alive; the chain has only structures that the device knows.
        let raw = unsafe { instance.raw.create_device(adapter.physical, &info, None) }
            .map_err(Error::from_call("make a device"))?;
        // If a later call fails, the device is destroyed.
        let closed = |error| {
            // SAFETY: nothing of the device is in use.
            unsafe { raw.destroy_device(None) };
            error
        };
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: the device has this family.
        let pool = unsafe { raw.create_command_pool(&pool, None) }
            .map_err(|result| closed(Error::from_call("make a command pool")(result)))?;
        // SAFETY: the device lives.
        let fence = unsafe { raw.create_fence(&vk::FenceCreateInfo::default(), None) }
            .map_err(|result| closed(Error::from_call("make a fence")(result)))?;
        let family_properties = adapter.families[family as usize];
        Ok(Rc::new(Gpu {
            // SAFETY: the device was made with one queue of this family.
            queue: unsafe { raw.get_device_queue(family, 0) },
            family,
            family_flags: family_properties.queue_flags,
            timestamp_bits: family_properties.timestamp_valid_bits,
            properties: adapter.properties.clone(),
            memory: adapter.memory,
            labels: (instance.has_labels)
                .then(|| ext::debug_utils::Device::new(&instance.raw, &raw)),
            calibrated: calibrates
                .then(|| ext::calibrated_timestamps::Device::new(&instance.raw, &raw)),
            pool,
            fence,
            _instance: Rc::clone(instance),
            raw,
        }))
    }

    /// Allocates a command buffer and begins recording.
    pub fn begin(&self, flags: vk::CommandBufferUsageFlags) -> Result<vk::CommandBuffer, Error> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(1);
        // SAFETY: the pool is of this device, and this thread alone uses it.
        let buffers = unsafe { self.raw.allocate_command_buffers(&info) }
            .map_err(Error::from_call("make a command buffer"))?;
        let begin = vk::CommandBufferBeginInfo::default().flags(flags);
        // SAFETY: the command buffer is new.
        unsafe { self.raw.begin_command_buffer(buffers[0], &begin) }
            .map_err(Error::from_call("begin a command buffer"))?;
        Ok(buffers[0])
    }

    /// Ends a command buffer.
    pub fn end(&self, buffer: vk::CommandBuffer) -> Result<(), Error> {
        // SAFETY: the command buffer is being recorded.
        unsafe { self.raw.end_command_buffer(buffer) }
            .map_err(Error::from_call("end a command buffer"))
    }

    /// Runs a command buffer and waits for it. Here and below, `what` names the call in an error.
    pub fn run(&self, buffer: vk::CommandBuffer, what: &'static str) -> Result<(), Error> {
        self.submit(buffer, what)?;
        self.wait(what)
    }

    /// Submits a command buffer to the queue. [`Self::wait`] must be called before the next submission.
    pub fn submit(&self, buffer: vk::CommandBuffer, what: &'static str) -> Result<(), Error> {
        let buffers = [buffer];
        let info = vk::SubmitInfo::default().command_buffers(&buffers);
        // SAFETY: the command buffer has been recorded, and the fence is not in use.
        unsafe { self.raw.queue_submit(self.queue, &[info], self.fence) }
            .map_err(Error::from_call(what))
    }

    /// Waits for the command buffer that was submitted.
    pub fn wait(&self, what: &'static str) -> Result<(), Error> {
        // SAFETY: the fence is of this device.
        unsafe {
            self.raw
                .wait_for_fences(&[self.fence], true, u64::MAX)
                .map_err(Error::from_call(what))?;
            self.raw
                .reset_fences(&[self.fence])
                .map_err(Error::from_call(what))
        }
    }

    /// Records commands, runs them once and waits for them.
    pub fn once(
        &self,
        what: &'static str,
        record: impl FnOnce(vk::CommandBuffer),
    ) -> Result<(), Error> {
        let buffer = self.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
        record(buffer);
        self.end(buffer)?;
        let ran = self.run(buffer, what);
        self.free(buffer);
        ran
    }

    /// Frees a command buffer that no longer runs.
    pub fn free(&self, buffer: vk::CommandBuffer) {
        // SAFETY: the command buffer is of this pool, and has run to its end.
        unsafe { self.raw.free_command_buffers(self.pool, &[buffer]) };
    }

    /// Records a barrier between everything before and everything after.
    pub fn full_barrier(&self, buffer: vk::CommandBuffer) {
        let everything = vk::AccessFlags2::MEMORY_READ | vk::AccessFlags2::MEMORY_WRITE;
        let barrier = [vk::MemoryBarrier2::default()
            .src_stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
            .src_access_mask(vk::AccessFlags2::MEMORY_WRITE)
            .dst_stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
            .dst_access_mask(everything)];
        let info = vk::DependencyInfo::default().memory_barriers(&barrier);
        // SAFETY: the command buffer is being recorded; synchronization2 is always on.
        unsafe { self.raw.cmd_pipeline_barrier2(buffer, &info) };
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: whatever else was made from the device holds a reference to this, so that nothing is left.
        unsafe {
            let _ = self.raw.device_wait_idle();
            self.raw.destroy_fence(self.fence, None);
            self.raw.destroy_command_pool(self.pool, None);
            self.raw.destroy_device(None);
        }
    }
}
