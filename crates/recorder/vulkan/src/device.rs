//! Keeps a logical device (`VkDevice`) of the program: the next layer's functions, the program's objects, and the
//! timing. [`Device::new`] runs when the program has created one, [`Device::finish`] before the program destroys it;
//! both write an event.

use crate::api::device_plan::RecordingPlan;
use crate::api::families::Families;
use crate::api::functions::{DeviceFunctions, ash_device};
use crate::api::instance::Instance;
use crate::api::opaque::OpaqueFunctions;
use crate::api::physical_device::PhysicalDevice;
use crate::api::timed_calls::TimedCallFunctions;
use crate::objects::awaited::Fences;
use crate::objects::descriptors::Bindings;
use crate::objects::images::Images;
use crate::objects::kernels::Kernels;
use crate::objects::memory::Memory;
use crate::objects::queues::{Queue, Queues};
use crate::objects::semaphores::Semaphores;
use crate::recorder::Recorder;
use crate::timing::brackets::Brackets;
use crate::timing::clock::Clock;
use crate::timing::counting::CounterQueries;
use crate::timing::harvester::Harvester;
use crate::timing::queries::Queries;
use ash::vk;
use gapscope_spool::event::{Api, ClockSource, CommonEvent, VulkanEvent};
use gapscope_spool::{ids, monotonic_ns};
use gapscope_vulkan_layer::command_pools::CommandPools;
use gapscope_vulkan_layer::descriptors::Descriptors;
use gapscope_vulkan_layer::layer::{self, NewDevice};
use std::borrow::Cow;

/// A logical device. It and its parts are never freed, because pointers to them may be used for a short time after
/// the device's end.
pub struct Device {
    pub id: ids::Device,
    pub recorder: &'static Recorder,
    pub instance: &'static Instance,
    /// The next layer's functions, for calls of the program.
    pub functions: &'static DeviceFunctions,
    /// The next layer's functions, for calls of this layer.
    pub next: &'static ash::Device,
    /// The next layer's functions of commands that are recorded by their effect only.
    pub opaque: &'static OpaqueFunctions,
    /// The next layer's functions of host calls of which only the time is recorded.
    pub timed_calls: TimedCallFunctions,
    /// What each queue family can do, and how its timestamps reach the host.
    pub families: Families,

    pub queues: Queues,
    pub command_pools: CommandPools,
    pub kernels: Kernels,
    pub memory: Memory,
    pub images: Images,
    pub semaphores: Semaphores,
    pub fences: Fences,
    pub descriptors: Descriptors<Bindings>,

    /// The timestamp queries that no command recording uses.
    pub queries: &'static Queries,
    /// The layer's own command buffers that write timestamps around one of the program's.
    pub brackets: &'static Brackets,
    /// The queries that count for hardware counters; `None` where the user did not ask for counters, or the driver
    /// has none.
    pub counters: Option<&'static CounterQueries>,
    clock: &'static Clock,
    /// Collects the results of timing from submitted work.
    pub harvester: &'static Harvester,
}

/// Makes a value live for ever.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

impl Device {
    /// Creates the state of a device that has just been made, writes its event, and samples its clock. Why counters
    /// or the reset of queries by the host are missing is written too.
    ///
    /// # Safety
    /// The device is live, and has been made as `plan` says.
    pub unsafe fn new(
        recorder: &'static Recorder,
        plan: &RecordingPlan,
        made: &NewDevice<'_>,
    ) -> &'static Device {
        let id = recorder.ids.device.next();
        let handle = made.handle;
        // SAFETY: as the caller promises.
        let (physical, functions, next, opaque, timed_calls) = unsafe {
            let get = made.next.get_device_proc_addr;
            (
                PhysicalDevice::new(made.instance, made.physical),
                leak(DeviceFunctions::load(handle, get)),
                leak(ash_device(handle, get)),
                leak(OpaqueFunctions::load(handle, get)),
                TimedCallFunctions::load(handle, get),
            )
        };
        let families = physical.families(plan.host_query_reset);
        let memory = physical.memory();
        let host_clock = plan
            .calibrated
            .then(|| physical.host_clock(made.next.get_instance_proc_addr))
            .flatten();

        let clock = leak(Clock::new(recorder, functions, id, host_clock));
        let queries = leak(Queries::new(next, &families, &memory));
        let brackets = leak(Brackets::new(queries, made.set_loader_data));
        let harvester = leak(Harvester::new(recorder, clock, queries, brackets));
        let counted = plan.counters().map(|possible| {
            // SAFETY: the device has been made as the plan says.
            possible.and_then(|()| unsafe {
                let get = made.next.get_instance_proc_addr;
                CounterQueries::start(next, functions, recorder, physical, &families, get, id)
            })
        });
        let (counters, refused) = match counted {
            Some(Ok(counters)) => (Some(leak(counters)), None),
            Some(Err(reason)) => (None, Some(reason)),
            None => (None, None),
        };
        let device = leak(Device {
            id,
            recorder,
            instance: made.instance,
            functions,
            next,
            opaque,
            timed_calls,
            families,
            queues: Queues::default(),
            command_pools: CommandPools::default(),
            kernels: Kernels::new(recorder),
            memory: Memory::new(recorder, id, memory),
            images: Images::default(),
            semaphores: Semaphores::default(),
            fences: Fences::default(),
            descriptors: Descriptors::default(),
            queries,
            brackets,
            counters,
            clock,
            harvester,
        });
        device.write(physical, &memory);
        if let Some(reason) = refused {
            device.recorder.write(&VulkanEvent::CountersRefused {
                device: id,
                reason: Cow::Borrowed(reason),
            });
        }
        if let Some(reason) = plan.no_host_query_reset {
            device.say_that_results_are_copied(physical, reason);
        }
        clock.sample();
        harvester.start();
        device
    }

    /// Writes the events that describe the device and its limits.
    fn write(&self, physical: PhysicalDevice, memory: &vk::PhysicalDeviceMemoryProperties) {
        let identity = physical.identity();
        let heaps = &memory.memory_heaps[..memory.memory_heap_count as usize];
        self.recorder.write(&CommonEvent::Device {
            device: self.id,
            api: Api::Vulkan,
            name: Cow::Owned(identity.name),
            driver: Cow::Owned(identity.driver),
            uuid: identity.uuid,
            nanoseconds_per_tick: f64::from(identity.nanoseconds_per_tick),
            clock: if self.clock.is_calibrated() {
                ClockSource::Calibrated
            } else {
                ClockSource::Brackets
            },
            heaps: heaps.iter().map(|heap| heap.size).collect(),
        });
        if let Some(limits) = physical.limits() {
            let device = self.id;
            self.recorder
                .write(&VulkanEvent::DeviceProperties { device, limits });
        }
    }

    /// Writes a note that the timing made command buffers wait, and why.
    #[cold]
    fn say_that_results_are_copied(&self, physical: PhysicalDevice, reason: &str) {
        let name = physical.identity().name;
        self.recorder.write(&CommonEvent::Note {
            text: Cow::Owned(format!(
                "On {name} each command buffer waited at its end for its own work, so that work which could have overlapped with \
                 the next one did not, and queues that only transfer have no times: the timestamps need host query reset to be \
                 read otherwise, and {reason}."
            )),
        });
    }

    /// Writes the event of a queue when the program asks for the queue the first time.
    pub fn write_queue(&self, queue: layer::Queue) {
        self.queues.add(queue.handle, || {
            let properties = self.families.get(queue.family)?;
            let id = self.recorder.ids.queue.next();
            self.recorder.write(&CommonEvent::Queue {
                queue: id,
                device: self.id,
                family: queue.family,
                index: queue.index,
                flags: properties.flags.as_raw(),
                timestamp_bits: properties.timestamp_bits,
            });
            Some(Queue::new(id, queue.family))
        });
    }

    /// Returns the id of a queue; `None` for a queue that the program has not asked for.
    pub fn queue_id(&self, handle: vk::Queue) -> Option<ids::Queue> {
        self.queues.get(handle).map(|queue| queue.id)
    }

    /// Gives up the device's pending work and writes its end, once, when the result of a call says that it is lost.
    pub fn note_result(&self, result: vk::Result) {
        if result == vk::Result::ERROR_DEVICE_LOST && self.harvester.lose() {
            self.write_end(true);
        }
    }

    /// Collects results of timing after a host call that may have waited for the GPU; only a success shows that work
    /// has finished.
    pub fn after_wait(&self, result: vk::Result) {
        self.note_result(result);
        if result == vk::Result::SUCCESS {
            self.harvester.harvest_small();
        }
    }

    /// Collects the remaining results, destroys the layer's own objects if none is in use any more, and writes the
    /// device's end, before the program destroys the device.
    ///
    /// # Safety
    /// The device is live and idle.
    pub unsafe fn finish(&self) {
        self.stop_counting();
        self.harvester.stop();
        self.clock.sample();
        if self.harvester.abandon() == 0 {
            // SAFETY: every submitted instance has been seen finished, and its results read.
            unsafe {
                self.brackets.destroy();
                self.queries.destroy();
                if let Some(counters) = self.counters {
                    counters.destroy();
                }
            }
        }
        self.write_end(false);
    }

    /// Lets nobody wait for results of hardware counters any more.
    pub fn stop_counting(&self) {
        if let Some(counters) = self.counters {
            counters.stop_waiting();
        }
    }

    /// Writes the device's end; `lost` says that the driver has given it up.
    fn write_end(&self, lost: bool) {
        self.recorder.write(&CommonEvent::DeviceEnd {
            device: self.id,
            lost,
            at_ns: monotonic_ns(),
        });
    }
}
