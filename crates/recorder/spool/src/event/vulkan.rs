//! Defines the events that only the Vulkan layer writes, and the session reads.
//!
//! A command buffer is recorded once and may run many times. Its commands are written once, as a command recording,
//! and each submitted instance (one execution of it) refers to it; the session expands instances into dispatches.

use super::{DeviceProperties, Span};
use crate::ids;
use gapscope_model::HostCallKind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event of the Vulkan layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum VulkanEvent<'a> {
    /// A buffer was created.
    Buffer {
        /// The buffer.
        buffer: ids::Buffer,
        /// The device.
        device: ids::Device,
        /// The size in bytes.
        bytes: u64,
        /// The time of the event.
        at_ns: i64,
    },
    /// A buffer got its memory.
    BufferMemory {
        /// The buffer.
        buffer: ids::Buffer,
        /// The allocation.
        memory: ids::Allocation,
        /// The offset in the allocation.
        offset: u64,
    },
    /// A buffer is gone.
    BufferEnd {
        /// The buffer.
        buffer: ids::Buffer,
        /// The time of the event.
        at_ns: i64,
    },
    /// The buffers in a descriptor set (or a push) at one moment. Contents are immutable: a change creates a new one.
    Bindings {
        /// The content.
        content: ids::BindingContent,
        /// One entry for each buffer descriptor.
        entries: Cow<'a, [Binding]>,
    },
    /// Commands to append to a command recording, in order.
    Commands {
        /// The command recording.
        recording: ids::CommandRecording,
        /// Whole [`super::Command`]s as bytes.
        #[serde(with = "serde_bytes")]
        commands: &'a [u8],
    },
    /// The command recording can no longer be submitted.
    CommandRecordingEnd {
        /// The command recording.
        recording: ids::CommandRecording,
    },
    /// One batch (VkSubmitInfo) of a submission call reached a queue. Written after the call.
    Submit {
        /// The id of the submission.
        submission: ids::Submission,
        /// The function that the program called.
        function: SubmitFunction,
        /// The queue.
        queue: ids::Queue,
        /// The interval of the call.
        span: Span,
        /// The command buffers in order.
        instances: Cow<'a, [Instance]>,
        /// Semaphores that the batch waits for.
        waits: Cow<'a, [SemaphoreValue]>,
        /// Semaphores that the batch signals.
        signals: Cow<'a, [SemaphoreValue]>,
    },
    /// Timestamps of an instance.
    Timestamps {
        /// The instance.
        instance: ids::Instance,
        /// The command recording that the queries belong to: the instance's own, or a secondary one that it executed.
        recording: ids::CommandRecording,
        /// The index of the first query.
        first_query: u32,
        /// Raw ticks as little-endian u64; [`super::NO_TICKS`] where the device delivered none.
        #[serde(with = "serde_bytes")]
        ticks: &'a [u8],
    },
    /// The times of an instance that the hook enclosed in its own command buffers, because it may run twice at once.
    Bracket {
        /// The instance.
        instance: ids::Instance,
        /// Raw ticks before the instance.
        begin_ticks: u64,
        /// Raw ticks after the instance.
        end_ticks: u64,
    },
    /// No more timestamps come for an instance.
    InstanceEnd {
        /// The instance.
        instance: ids::Instance,
        /// Whether it has times, or why not.
        outcome: Outcome,
        /// Time at which the hook saw that the instance had finished, which is never before its end, or gave up.
        seen_ns: i64,
    },
    /// A host call, or several of one kind folded into one.
    HostCall {
        /// The kind of call.
        call: HostCallKind,
        /// The function, where the call submits.
        function: Option<SubmitFunction>,
        /// From the start of the (first) call to the return of the (last) one.
        span: Span,
        /// The number of calls.
        count: u32,
        /// The time inside the calls.
        busy_ns: i64,
        /// The queue, where the call names one, or that of the submission that it waited for.
        queue: Option<ids::Queue>,
        /// Bytes allocated or mapped, where the call has a size.
        bytes: Option<u64>,
        /// The call's VkResult.
        result: i32,
        /// The submission that the call waited for, or found done, where it is known.
        waits_for: Option<ids::Submission>,
    },
    /// The host set a timeline semaphore.
    HostSignal {
        /// The semaphore and the value.
        semaphore: SemaphoreValue,
        /// The time of the event.
        at_ns: i64,
    },
    /// A semaphore is gone, or an operation other than a submission, such as a presentation, has waited for its
    /// signal: no later wait is for an earlier signal.
    SemaphoreEnd {
        /// The semaphore.
        semaphore: ids::Semaphore,
    },
    /// Properties of a device, as far as its driver tells.
    DeviceProperties {
        /// The device.
        device: ids::Device,
        /// The properties.
        limits: DeviceProperties,
    },
    /// The counters of a queue family's performance queries, from here on.
    CounterSet {
        /// The device.
        device: ids::Device,
        /// The queue family.
        family: u32,
        /// The counters, in the order of their values.
        counters: Cow<'a, [PerformanceCounter]>,
    },
    /// Counters were requested, but a device has none.
    CountersRefused {
        /// The device.
        device: ids::Device,
        /// The reason, as the end of a sentence.
        reason: Cow<'a, str>,
    },
    /// Counter values of an instance, which are counted from the first of its commands that does work.
    Counted {
        /// The instance.
        instance: ids::Instance,
        /// The family of its [`VulkanEvent::CounterSet`].
        family: u32,
        /// A value for each counter of the set.
        values: Cow<'a, [f64]>,
    },
}

/// A function of Vulkan that hands work to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubmitFunction {
    /// `vkQueueSubmit`
    QueueSubmit,
    /// `vkQueueSubmit2`
    QueueSubmit2,
    /// `vkQueueSubmit2KHR`
    QueueSubmit2Khr,
    /// `vkQueueBindSparse`
    QueueBindSparse,
}

impl SubmitFunction {
    /// All functions, in the order of their numbers.
    pub const ALL: [SubmitFunction; 4] = [
        SubmitFunction::QueueSubmit,
        SubmitFunction::QueueSubmit2,
        SubmitFunction::QueueSubmit2Khr,
        SubmitFunction::QueueBindSparse,
    ];

    /// Returns the name that the program calls.
    pub fn name(self) -> &'static str {
        match self {
            SubmitFunction::QueueSubmit => "vkQueueSubmit",
            SubmitFunction::QueueSubmit2 => "vkQueueSubmit2",
            SubmitFunction::QueueSubmit2Khr => "vkQueueSubmit2KHR",
            SubmitFunction::QueueBindSparse => "vkQueueBindSparse",
        }
    }

    /// Returns the kind of its calls.
    pub fn call(self) -> HostCallKind {
        match self {
            SubmitFunction::QueueBindSparse => HostCallKind::BindSparse,
            _ => HostCallKind::Submit,
        }
    }
}

/// A counter of performance queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerformanceCounter {
    /// The name according to the driver.
    pub name: String,
    /// The category according to the driver.
    pub category: String,
    /// The unit of the values.
    pub unit: PerformanceUnit,
}

/// The unit of a performance counter, from `VkPerformanceCounterUnitKHR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PerformanceUnit {
    /// A number of something.
    Generic,
    /// Percent.
    Percentage,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Kelvin.
    Kelvin,
    /// Watts.
    Watts,
    /// Volts.
    Volts,
    /// Amperes.
    Amps,
    /// Hertz.
    Hertz,
    /// Cycles of a clock.
    Cycles,
}

/// A buffer range that kernels may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The number of the binding in its set.
    pub binding: u32,
    /// The element of an array binding.
    pub element: u32,
    /// The buffer.
    pub buffer: ids::Buffer,
    /// First byte.
    pub offset: u64,
    /// Size; `u64::MAX` for the rest of the buffer.
    pub bytes: u64,
    /// VkDescriptorType.
    pub kind: u32,
}

/// A command buffer in a submission: the id of the execution, and of the executed recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The id of this execution.
    pub instance: ids::Instance,
    /// The command recording that it executes.
    pub recording: ids::CommandRecording,
}

/// A semaphore, with its value when it is a timeline semaphore (0 otherwise).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemaphoreValue {
    /// The semaphore.
    pub semaphore: ids::Semaphore,
    /// The value waited for or signalled.
    pub value: u64,
}

/// Whether an instance has times, and if not, why. All values but `Timed` mean unknown times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The timestamps have been written.
    Timed,
    /// The queue's family has no timestamps.
    NoTimestamps,
    /// The instance ran (or may have run), but its timestamps never came: the program ended, or reset or freed the
    /// command buffer first.
    NotSeen,
    /// The device was lost.
    DeviceLost,
    /// Recorded while the recorder was off.
    NotInstrumented,
    /// The hook got no queries, or could add nothing to the submission.
    NoQueries,
    /// A rendering is suspended across its start or end, where nothing may be added.
    SuspendedRendering,
}
