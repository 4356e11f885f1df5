//! Logical devices: what is known of each, how they are made and destroyed.

use crate::brackets::Brackets;
use crate::clock::Clock;
use crate::command_pool::CommandPool;
use crate::handles::{HandleMap, Handles};
use crate::harvest::Harvester;
use crate::instance::Instance;
use crate::kernels::{Module, Pipeline};
use crate::loader::{self, GetDeviceProcAddr, SetDeviceLoaderData};
use crate::next::DeviceFunctions;
use crate::queries::{Delivery, Queries};
use crate::recorder::{Recorder, next_id, recorder};
use crate::submit::{Queue, Semaphore};
use crate::{bindings, memory};
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::CommonEvent;
use gapscope_spool::hook::guard;
use gapscope_spool::{ids, monotonic_ns};
use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, RwLock};

/// A logical device. Devices are leaked: pointers to them are kept in places that outlive them by a little.
pub struct Device {
    pub handle: vk::Device,
    /// Its id in events.
    pub id: ids::Device,
    instance: &'static Instance,
    /// The next layer's vkGetDeviceProcAddr.
    pub get: GetDeviceProcAddr,
    pub next: DeviceFunctions,
    pub recorder: &'static Recorder,
    pub families: Vec<Family>,
    pub physical: PhysicalProperties,
    pub set_loader_data: Option<SetDeviceLoaderData>,
    pub queues: RwLock<HandleMap<&'static Queue>>,
    pub command_pools: Mutex<HandleMap<CommandPool>>,
    pub pipelines: Handles<Pipeline>,
    pub modules: Handles<Module>,
    pub buffers: Handles<memory::Buffer>,
    /// Bytes of a texel, of images where it is fixed.
    pub images: Handles<u64>,
    pub allocations: Handles<ids::Allocation>,
    pub semaphores: Handles<Semaphore>,
    pub descriptors: bindings::Descriptors,
    pub queries: Queries,
    pub brackets: Brackets,
    pub clock: Clock,
    pub harvester: Harvester,
    pub lost: AtomicBool,
    /// There are command buffers with queries of ours, which must be prepared even while recording is off.
    pub has_queries: AtomicBool,
}

/// What the physical device says that we need later.
#[derive(Clone)]
pub struct PhysicalProperties {
    pub memory: vk::PhysicalDeviceMemoryProperties,
    pub nanoseconds_per_tick: f32,
    /// The memory type for results, and whether it is coherent; `None`: none is host-visible.
    pub result_memory: Option<(u32, bool)>,
}

/// A host-visible memory type, cached where there is one, and whether it is coherent.
pub fn result_memory(memory: &vk::PhysicalDeviceMemoryProperties) -> Option<(u32, bool)> {
    use vk::MemoryPropertyFlags as Flags;
    let types = &memory.memory_types[..memory.memory_type_count as usize];
    let wishes = [
        Flags::HOST_VISIBLE | Flags::HOST_COHERENT | Flags::HOST_CACHED,
        Flags::HOST_VISIBLE | Flags::HOST_COHERENT,
        Flags::HOST_VISIBLE,
    ];
    wishes.into_iter().find_map(|wish| {
        let index = types.iter().position(|t| {
            t.property_flags.contains(wish)
                && !t
                    .property_flags
                    .intersects(Flags::PROTECTED | Flags::DEVICE_COHERENT_AMD)
        })?;
        Some((
            index as u32,
            types[index].property_flags.contains(Flags::HOST_COHERENT),
        ))
    })
}

/// A queue family.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    pub flags: vk::QueueFlags,
    pub queues: u32,
    pub timestamp_bits: u32,
    pub delivery: Delivery,
}

impl Family {
    /// Queries can be reset in its command buffers.
    pub fn resets_queries(&self) -> bool {
        self.flags
            .intersects(vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE)
    }
}

/// Devices that are not recorded: all that they need is the way on.
static UNRECORDED: RwLock<Vec<(usize, GetDeviceProcAddr)>> = RwLock::new(Vec::new());

/// The next layer's vkGetDeviceProcAddr of a device that is not recorded.
///
/// # Safety
/// `handle` is live.
pub unsafe fn next_get_device_proc_addr(handle: vk::Device) -> Option<GetDeviceProcAddr> {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle.as_raw()) };
    let devices = UNRECORDED.read().unwrap_or_else(PoisonError::into_inner);
    devices
        .iter()
        .rev()
        .find(|(k, _)| *k == key)
        .map(|(_, get)| *get)
}

static DEVICES: RwLock<Vec<(usize, &'static Device)>> = RwLock::new(Vec::new());

/// The device to which a dispatchable handle belongs.
///
/// # Safety
/// `handle` is a live VkDevice, VkQueue or VkCommandBuffer.
pub unsafe fn of(handle: u64) -> Option<&'static Device> {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle) };
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    devices
        .iter()
        .find(|(k, _)| *k == key)
        .map(|(_, device)| *device)
}

/// Lets the threads of all devices end at the exit of the process, with what has finished. Handlers run in the reverse
/// order of their registration: this one is registered when a driver has made a device, and so it runs while the
/// driver still works.
fn stop_at_exit() {
    extern "C" fn stop() {
        guard(|| {
            if DEVICES_OF.load(Relaxed) != std::process::id() {
                // A forked child has none of our threads, and what is pending is its parent's.
                return;
            }
            if let Ok(devices) = DEVICES.try_read() {
                for (_, device) in devices.iter() {
                    device.harvester.stop_at_exit(device);
                }
            }
        });
    }
    let pid = std::process::id();
    if DEVICES_OF.swap(pid, Relaxed) == 0 {
        // SAFETY: the handler is a plain function of this library, which is pinned.
        unsafe { libc::atexit(stop) };
    }
}

/// The process that made a device last.
static DEVICES_OF: AtomicU32 = AtomicU32::new(0);

/// An instance is about to be destroyed: its driver must not be asked for anything any more, even if the program has
/// left devices behind.
pub fn instance_ends(instance: &'static Instance) {
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    for (_, device) in devices
        .iter()
        .filter(|(_, d)| std::ptr::eq(d.instance, instance))
    {
        device.harvester.stop(device);
    }
}

/// Collects what has finished on all devices; true when nothing is pending any more.
pub fn flush_all() -> bool {
    // Held throughout: a device is taken from the list before it is destroyed.
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    let flushed = |(_, device): &(usize, &'static Device)| {
        device.lost.load(Relaxed) || device.harvester.flush(device)
    };
    // Not `all`: each is to be flushed.
    devices.iter().map(flushed).fold(true, |all, one| all & one)
}

impl Device {
    /// Results of some queue family are asked for.
    pub fn asks(&self) -> bool {
        self.families.iter().any(|f| f.delivery == Delivery::Asked)
    }

    /// Makes host writes to results visible to the device (`written`) or the device's to the host, where the memory
    /// is not coherent.
    pub fn sync_results(&self, range: vk::MappedMemoryRange<'_>, written: bool) {
        if self
            .physical
            .result_memory
            .is_none_or(|(_, coherent)| coherent)
        {
            return;
        }
        let sync = if written {
            self.next.flush_mapped_memory_ranges
        } else {
            self.next.invalidate_mapped_memory_ranges
        };
        if let Some(sync) = sync {
            // SAFETY: the range lies in a mapping of ours and is aligned to 256 bytes, the greatest atom size that
            // the specification allows.
            unsafe {
                let _ = sync(self.handle, 1, &range);
            }
        }
    }

    /// The device has no second queue.
    pub fn has_one_queue(&self) -> bool {
        self.families.iter().map(|f| f.queues).sum::<u32>() == 1
    }

    pub fn family(&self, index: u32) -> Option<&Family> {
        self.families.get(index as usize)
    }

    /// Notes that a call answered that the device is lost.
    pub fn note_result(&'static self, result: vk::Result) {
        if result == vk::Result::ERROR_DEVICE_LOST && !self.lost.swap(true, Relaxed) {
            self.harvester.abandon(self);
            self.recorder.write(&CommonEvent::DeviceEnd {
                device: self.id,
                lost: true,
                at_ns: monotonic_ns(),
            });
        }
    }
}

pub unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Device,
) -> vk::Result {
    // SAFETY: the loader passes a valid chain, and handles of an instance that we have seen made.
    unsafe {
        let chain = (*info).p_next;
        let set_loader_data = loader::set_device_loader_data(chain);
        let Some(link) = loader::next_device(chain) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let Some(instance) = Instance::of(physical.as_raw()) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let Some(create) = instance.create_device(link.get_instance_proc_addr) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let plan = recorder().and_then(|_| guard(|| instance.plan_device(physical, &*info)));
        let Some(mut plan) = plan else {
            let result = create(physical, info, allocator, out);
            if result == vk::Result::SUCCESS {
                let key = loader::dispatch_key((*out).as_raw());
                UNRECORDED
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((key, link.get_device_proc_addr));
            }
            return result;
        };
        let mut result = create(physical, &plan.create_info(&*info), allocator, out);
        if result != vk::Result::SUCCESS && plan.adds() {
            // Nothing that we wish for may keep the program from its device.
            plan.drop_additions();
            link.restore();
            result = create(physical, info, allocator, out);
        }
        if result == vk::Result::SUCCESS {
            let handle = *out;
            guard(|| {
                let Some(recorder) = recorder() else { return };
                let next = DeviceFunctions::load(handle, link.get_device_proc_addr);
                let id = next_id(&recorder.ids.device);
                let clock = Clock::new(
                    instance,
                    physical,
                    plan.calibrated,
                    link.get_instance_proc_addr,
                );
                let device = Device {
                    handle,
                    id,
                    instance,
                    get: link.get_device_proc_addr,
                    next,
                    recorder,
                    families: instance.families(physical, plan.host_query_reset),
                    physical: instance.properties(physical),
                    set_loader_data,
                    queues: RwLock::default(),
                    command_pools: Mutex::default(),
                    pipelines: Handles::default(),
                    modules: Handles::default(),
                    buffers: Handles::default(),
                    images: Handles::default(),
                    allocations: Handles::default(),
                    semaphores: Handles::default(),
                    descriptors: bindings::Descriptors::default(),
                    queries: Queries::default(),
                    brackets: Brackets::default(),
                    clock,
                    harvester: Harvester::default(),
                    lost: AtomicBool::new(false),
                    has_queries: AtomicBool::new(false),
                };
                let device: &'static Device = Box::leak(Box::new(device));
                instance.write_device(device, physical);
                device.clock.sample(device);
                let key = loader::dispatch_key(handle.as_raw());
                DEVICES
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((key, device));
                stop_at_exit();
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_device(
    handle: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if handle == vk::Device::null() {
        return;
    }
    // SAFETY: the program destroys a live device.
    let Some(device) = (unsafe { of(handle.as_raw()) }) else {
        return;
    };
    guard(|| {
        device.harvester.stop(device);
        device.clock.sample(device);
        if device.harvester.abandon(device) == 0 {
            // SAFETY: every submitted instance has been seen finished, and its results read.
            unsafe {
                device.brackets.destroy(device);
                device.queries.destroy(device);
            }
        }
        device.recorder.write(&CommonEvent::DeviceEnd {
            device: device.id,
            lost: false,
            at_ns: monotonic_ns(),
        });
        DEVICES
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(_, d)| !std::ptr::eq(*d, device));
    });
    if let Some(destroy) = device.next.destroy_device {
        // SAFETY: the program's own call.
        unsafe { destroy(handle, allocator) };
    }
}

pub unsafe extern "system" fn get_device_queue(
    handle: vk::Device,
    family: u32,
    index: u32,
    out: *mut vk::Queue,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = of(handle.as_raw()) else {
            return;
        };
        if let Some(get) = device.next.get_device_queue {
            get(handle, family, index, out);
            guard(|| device.add_queue(*out, family, index));
        }
    }
}

pub unsafe extern "system" fn get_device_queue2(
    handle: vk::Device,
    info: *const vk::DeviceQueueInfo2<'_>,
    out: *mut vk::Queue,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = of(handle.as_raw()) else {
            return;
        };
        if let Some(get) = device.next.get_device_queue2 {
            get(handle, info, out);
            guard(|| device.add_queue(*out, (*info).queue_family_index, (*info).queue_index));
        }
    }
}

impl Device {
    fn add_queue(&'static self, handle: vk::Queue, family: u32, index: u32) {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        if handle == vk::Queue::null() || queues.contains_key(&handle.as_raw()) {
            return;
        }
        let Some(properties) = self.family(family) else {
            return;
        };
        let id = next_id(&self.recorder.ids.queue);
        queues.insert(
            handle.as_raw(),
            Box::leak(Box::new(Queue::new(self, id, family))),
        );
        self.recorder.write(&CommonEvent::Queue {
            queue: id,
            device: self.id,
            family,
            index,
            flags: properties.flags.as_raw(),
            timestamp_bits: properties.timestamp_bits,
        });
    }

    /// What is known of a queue.
    pub fn queue(&self, handle: vk::Queue) -> Option<&'static Queue> {
        self.queues
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&handle.as_raw())
            .copied()
    }
}

/// A C string of a fixed array, up to its NUL.
pub fn text_of(characters: &[std::ffi::c_char]) -> Cow<'_, str> {
    // SAFETY: c_char and u8 have one layout.
    let bytes =
        unsafe { std::slice::from_raw_parts(characters.as_ptr().cast::<u8>(), characters.len()) };
    match CStr::from_bytes_until_nul(bytes) {
        Ok(text) => text.to_string_lossy(),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// A C string that a program passes, which may be null.
///
/// # Safety
/// A non-null pointer is a NUL-terminated string that outlives the result.
pub unsafe fn text_at<'a>(text: *const std::ffi::c_char) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// A dispatchable handle that belongs to a device.
pub trait DeviceHandle {
    /// The raw handle.
    fn raw(self) -> u64;
}

impl DeviceHandle for vk::Device {
    fn raw(self) -> u64 {
        self.as_raw()
    }
}

impl DeviceHandle for vk::Queue {
    fn raw(self) -> u64 {
        self.as_raw()
    }
}

impl DeviceHandle for vk::CommandBuffer {
    fn raw(self) -> u64 {
        self.as_raw()
    }
}

/// The device of a handle together with a function of the next layer. Both exist in every hook that the program can
/// reach: hooks are given out only for functions that the next layer has.
///
/// # Safety
/// `handle` is live.
#[inline]
pub unsafe fn with<F>(
    handle: impl DeviceHandle,
    function: impl FnOnce(&'static DeviceFunctions) -> Option<F>,
) -> Option<(&'static Device, F)> {
    // SAFETY: as the caller promises.
    let device = unsafe { of(handle.raw()) }?;
    Some((device, function(&device.next)?))
}
