//! Events of the Vulkan layer.
//!
//! A command buffer is *recorded* once and may run many times. So its commands are written once, as a recording, and
//! each submitted instance refers to it; the session expands instances into dispatches.

use super::{DeviceLimits, Span};
use crate::ids;
use gapscope_model::HostCallKind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event of the Vulkan layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum VulkanEvent<'a> {
    /// A buffer was made.
    Buffer {
        /// The buffer.
        buffer: ids::Buffer,
        /// Its device.
        device: ids::Device,
        /// Its size.
        bytes: u64,
        /// When.
        at_ns: i64,
    },
    /// A buffer got its memory.
    BufferMemory {
        /// The buffer.
        buffer: ids::Buffer,
        /// The allocation.
        memory: ids::Allocation,
        /// Where in it.
        offset: u64,
    },
    /// A buffer is gone.
    BufferEnd {
        /// The buffer.
        buffer: ids::Buffer,
        /// When.
        at_ns: i64,
    },
    /// The buffers that a descriptor set (or a push) holds at one moment. Immutable: a change makes a new content.
    Bindings {
        /// The content.
        content: ids::BindingContent,
        /// One entry for each buffer descriptor.
        entries: Cow<'a, [Binding]>,
    },
    /// Commands, in order, appended to a recording.
    Commands {
        /// The recording.
        recording: ids::Recording,
        /// Whole [`super::Command`]s as bytes.
        #[serde(with = "serde_bytes")]
        commands: &'a [u8],
    },
    /// The recording cannot be submitted any more.
    RecordingEnd {
        /// The recording.
        recording: ids::Recording,
    },
    /// One batch (VkSubmitInfo) of a submission call reached a queue. Written after the call.
    Submit {
        /// The queue.
        queue: ids::Queue,
        /// The call.
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
        /// The recording whose queries these are: the instance's own, or a secondary one that it executed.
        recording: ids::Recording,
        /// Index of the first query.
        first_query: u32,
        /// Raw ticks as little-endian u64, [`super::NO_TICKS`] where the device gave none.
        #[serde(with = "serde_bytes")]
        ticks: &'a [u8],
    },
    /// The times of an instance that was bracketed by command buffers of ours, because it may run twice at once.
    Bracket {
        /// The instance.
        instance: ids::Instance,
        /// Raw ticks before it.
        begin_ticks: u64,
        /// Raw ticks after it.
        end_ticks: u64,
    },
    /// No more timestamps come for this instance.
    InstanceEnd {
        /// The instance.
        instance: ids::Instance,
        /// Whether and why it has no times.
        outcome: Outcome,
        /// When the hook saw that it had finished (no earlier than it did); when it gave up otherwise.
        seen_ns: i64,
    },
    /// A host call, or several of one kind folded into one.
    HostCall {
        /// Which call.
        call: HostCallKind,
        /// From the start of the (first) call to the return of the (last) one.
        span: Span,
        /// How many calls.
        count: u32,
        /// Time inside the calls.
        busy_ns: i64,
        /// The queue, where the call names one.
        queue: Option<ids::Queue>,
        /// Bytes allocated or mapped, where the call has a size.
        bytes: Option<u64>,
        /// The call's VkResult.
        result: i32,
    },
    /// The host set a timeline semaphore.
    HostSignal {
        /// The semaphore and the value.
        semaphore: SemaphoreValue,
        /// When.
        at_ns: i64,
    },
    /// A semaphore is gone, or what is no submission has waited for its signal, such as a presentation: no later wait is for
    /// an earlier signal.
    SemaphoreEnd {
        /// The semaphore.
        semaphore: ids::Semaphore,
    },
    /// How large a device is, as far as its driver tells.
    DeviceLimits {
        /// The device.
        device: ids::Device,
        /// Its limits.
        limits: DeviceLimits,
    },
    /// What the performance queries of a queue family count, from here on.
    CounterSet {
        /// The device.
        device: ids::Device,
        /// The queue family.
        family: u32,
        /// The counters, in the order of their values.
        counters: Cow<'a, [PerformanceCounter]>,
    },
    /// Nothing is counted on a device though it was asked for.
    CountersRefused {
        /// The device.
        device: ids::Device,
        /// Why, as the end of a sentence.
        reason: Cow<'a, str>,
    },
    /// What was counted while an instance ran, from its first command that acts on.
    Counted {
        /// The instance.
        instance: ids::Instance,
        /// The family of its [`VulkanEvent::CounterSet`].
        family: u32,
        /// A value for each counter of that.
        values: Cow<'a, [f64]>,
    },
}

/// What a performance query counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerformanceCounter {
    /// As the driver names it.
    pub name: String,
    /// Of what it is one.
    pub category: String,
    /// Its unit.
    pub unit: PerformanceUnit,
}

/// The unit of a performance counter: those of `VkPerformanceCounterUnitKHR`.
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
    /// Bytes a second.
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

/// One buffer range that kernels may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Number of the binding in its set.
    pub binding: u32,
    /// Element of an array binding.
    pub element: u32,
    /// The buffer.
    pub buffer: ids::Buffer,
    /// First byte.
    pub offset: u64,
    /// Size; `u64::MAX`: to the end of the buffer.
    pub bytes: u64,
    /// VkDescriptorType.
    pub kind: u32,
}

/// A command buffer in a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// This execution.
    pub instance: ids::Instance,
    /// What it executes.
    pub recording: ids::Recording,
}

/// A semaphore, with its value when it is a timeline semaphore (0 otherwise).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemaphoreValue {
    /// The semaphore.
    pub semaphore: ids::Semaphore,
    /// The value waited for or signalled.
    pub value: u64,
}

/// How an instance's timing ended. All but `Timed` mean unknown times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Its timestamps have been written.
    Timed,
    /// The queue's family has no timestamps.
    NoTimestamps,
    /// It ran (or may have run) but its timestamps never came: the program ended, reset or freed it first.
    NotSeen,
    /// The device was lost.
    DeviceLost,
    /// Recorded while recording was off.
    NotInstrumented,
    /// The hook could get no queries, or nothing could be added to the submission.
    NoQueries,
    /// A rendering is suspended across its start or its end, where nothing may be added.
    SuspendedRendering,
}
