//! What hooks tell the session.
//!
//! Ids are made by the hook, from one counter a kind, never reused within a process. Host times are nanoseconds of
//! the monotonic clock; device times are raw ticks, which the session maps with [`Event::ClockSample`]s, unless the
//! device's clock is [`ClockSource::Host`].
//!
//! A command buffer is *recorded* once and may run many times. So its commands are written once, as a recording, and
//! each submitted instance refers to it; the session expands instances into dispatches.
//!
//! A tracing library of the driver (CUDA) tells of single kernels and transfers after they happened. They come packed in
//! batches of [`Activity`] entries; what many entries share ([`Event::Launch`], [`Event::Route`]) is written once, before
//! the first batch that refers to it. Calls are written by the threads that make them ([`Event::Called`]).

mod activity;
mod command;
mod cuda;
mod encoding;
mod label;
mod object;
mod packed;

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub use activity::{Activity, BETWEEN_POLLS_NS, GraphNode, Span};
pub use command::{Command, Op, OpaqueKind};
pub use cuda::{
    LaunchShape, MemoryPlace, OverheadKind, PoolEdge, StreamKind, TransferKind, WaitKind, heap,
};
pub use label::{LabelEdge, LabelScope, Payload};
pub use object::{
    Binding, BindingAccess, Call, ClockSource, Instance, ObjectKind, Outcome, SemaphoreValue,
    SourceFormat,
};
pub use packed::{Packer, Torn, unpack};

/// No query: the command is not timed.
pub const NO_QUERY: u32 = u32::MAX;
/// A tick that the device has not delivered.
pub const NO_TICKS: u64 = u64::MAX;

/// A record of the spool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event<'a> {
    /// The first record of a process: its greeting.
    Process {
        /// The process.
        pid: u32,
        /// Its parent.
        parent: u32,
        /// The path of its executable.
        executable: Cow<'a, str>,
        /// Its arguments, the command included.
        arguments: Vec<Cow<'a, str>>,
        /// The hook that records it: `vulkan`, `cuda`.
        hook: Cow<'a, str>,
    },
    /// The process ends in an orderly way; absent after SIGKILL or `_exit`.
    ProcessEnd {
        /// When.
        at_ns: i64,
    },
    /// A thread begins to write; the first record of its log, but for the greeting.
    Thread {
        /// The system's thread id.
        thread: u32,
        /// Its name at that time.
        name: &'a str,
    },
    /// A logical device was made.
    Device {
        /// Id of the device.
        device: u32,
        /// `vulkan`, `cuda`.
        api: Cow<'a, str>,
        /// As the driver names it.
        name: Cow<'a, str>,
        /// Driver name and version.
        driver: Cow<'a, str>,
        /// Distinguishes physical devices of one name.
        uuid: [u8; 16],
        /// Nanoseconds for each tick, as the driver says.
        nanoseconds_per_tick: f64,
        /// How clock samples come about.
        clock: ClockSource,
        /// Sizes of the memory heaps in bytes.
        heaps: Vec<u64>,
    },
    /// The device is gone; `lost`: by an error and not by the program.
    DeviceEnd {
        /// Id of the device.
        device: u32,
        /// The driver answered that the device is lost.
        lost: bool,
        /// When.
        at_ns: i64,
    },
    /// A queue that the program uses.
    Queue {
        /// Id of the queue.
        queue: u32,
        /// Its device.
        device: u32,
        /// Queue family. CUDA: id of the context.
        family: u32,
        /// Index in the family. CUDA: id of the stream, unique in the process.
        index: u32,
        /// VkQueueFlags. CUDA: compute and transfer.
        flags: u32,
        /// Valid bits of a timestamp; 0: the queue has none.
        timestamp_bits: u32,
    },
    /// Both clocks at one moment.
    ClockSample {
        /// The device.
        device: u32,
        /// Raw ticks of the device.
        ticks: u64,
        /// The host at the same moment.
        host_ns: i64,
        /// The two readings lie at most so far apart.
        error_ns: u32,
    },
    /// The code of kernels.
    Source {
        /// First 16 bytes of the BLAKE3 hash of `bytes`.
        hash: [u8; 16],
        /// What `bytes` is.
        format: SourceFormat,
        /// The code.
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
    /// A kernel: code with entry point and specialisation.
    Kernel {
        /// Id of the kernel.
        kernel: u32,
        /// Its device; 0: any of the process.
        device: u32,
        /// Its [`Event::Source`]. All zero: not known.
        source: [u8; 16],
        /// The entry point. CUDA: the name in the code, as the compiler mangled it.
        entry_point: Cow<'a, str>,
        /// Specialisation: (constant id, value bytes) pairs as `id:hex` joined by `,`; empty when there is none.
        specialisation: Cow<'a, str>,
        /// Name in the source debug information, such as the file; empty when there is none.
        source_name: Cow<'a, str>,
        /// Threads in a workgroup; zeros: not known.
        local_size: [u32; 3],
        /// Access to each buffer binding, as the code declares it.
        accesses: Vec<BindingAccess>,
    },
    /// The program named an object.
    Name {
        /// Its kind.
        object: ObjectKind,
        /// Its id.
        id: u32,
        /// The name.
        name: &'a str,
    },
    /// A text that commands refer to by id.
    Text {
        /// Id of the text.
        text: u32,
        /// The text.
        value: &'a str,
    },
    /// Device memory was allocated.
    Allocate {
        /// Id of the allocation.
        memory: u32,
        /// Its device.
        device: u32,
        /// Its heap. CUDA: one of [`heap`].
        heap: u32,
        /// VkMemoryPropertyFlags of its type.
        flags: u32,
        /// Its size.
        bytes: u64,
        /// When.
        at_ns: i64,
    },
    /// Device memory was freed.
    Free {
        /// Id of the allocation.
        memory: u32,
        /// When.
        at_ns: i64,
    },
    /// A buffer was made.
    Buffer {
        /// Id of the buffer.
        buffer: u32,
        /// Its device.
        device: u32,
        /// Its size.
        bytes: u64,
        /// When.
        at_ns: i64,
    },
    /// A buffer got its memory.
    BufferMemory {
        /// Id of the buffer.
        buffer: u32,
        /// The allocation.
        memory: u32,
        /// Where in it.
        offset: u64,
    },
    /// A buffer is gone.
    BufferEnd {
        /// Id of the buffer.
        buffer: u32,
        /// When.
        at_ns: i64,
    },
    /// The buffers that a descriptor set (or a push) holds at one moment. Immutable: a change makes a new content.
    Bindings {
        /// Id of the content.
        content: u32,
        /// One entry a buffer descriptor.
        entries: Cow<'a, [Binding]>,
    },
    /// Commands, in order, appended to a recording.
    Commands {
        /// Id of the recording.
        recording: u32,
        /// Whole [`Command`]s as bytes.
        #[serde(with = "serde_bytes")]
        commands: &'a [u8],
    },
    /// The recording cannot be submitted any more.
    RecordingEnd {
        /// Id of the recording.
        recording: u32,
    },
    /// One submission call's batch reached a queue. Written after the call.
    Submit {
        /// Id of the submission: one batch (VkSubmitInfo) of a call.
        submission: u32,
        /// The queue.
        queue: u32,
        /// When the call began.
        begin_ns: i64,
        /// When it returned.
        end_ns: i64,
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
        instance: u64,
        /// The recording whose queries these are: the instance's own, or a secondary one that it executed.
        recording: u32,
        /// Index of the first query.
        first_query: u32,
        /// Raw ticks as little-endian u64, [`NO_TICKS`] where the device gave none.
        #[serde(with = "serde_bytes")]
        ticks: &'a [u8],
    },
    /// The times of an instance that was bracketed by command buffers of ours, because it may run twice at once.
    Bracket {
        /// The instance.
        instance: u64,
        /// Raw ticks before it.
        begin_ticks: u64,
        /// Raw ticks after it.
        end_ticks: u64,
    },
    /// No more timestamps come for this instance.
    InstanceEnd {
        /// The instance.
        instance: u64,
        /// Whether and why it has no times.
        outcome: Outcome,
        /// When the hook saw that it had finished (no earlier than it did); when it gave up otherwise.
        seen_ns: i64,
    },
    /// A host call, or several of one kind folded into one.
    HostCall {
        /// Which call.
        call: Call,
        /// When the (first) call began.
        begin_ns: i64,
        /// When the (last) call returned.
        end_ns: i64,
        /// How many calls.
        count: u32,
        /// Time inside the calls.
        busy_ns: i64,
        /// The queue, where the call names one.
        queue: Option<u32>,
        /// Bytes allocated or mapped, where the call has a size.
        bytes: Option<u64>,
        /// The call's VkResult.
        result: i32,
    },
    /// A label on a queue or on a thread.
    Label {
        /// Where it is.
        scope: LabelScope,
        /// Begin, end or instant.
        edge: LabelEdge,
        /// The text's id; 0 at the end.
        text: u32,
        /// When the program said so.
        at_ns: i64,
    },
    /// The host set a timeline semaphore.
    HostSignal {
        /// Id of the semaphore and the value.
        semaphore: SemaphoreValue,
        /// When.
        at_ns: i64,
    },
    /// Something was not recorded.
    Loss {
        /// What: a stable phrase, e.g. `dispatch times`.
        what: Cow<'a, str>,
        /// How many of it.
        count: u64,
        /// Why: a stable phrase.
        reason: Cow<'a, str>,
    },
    /// The program begins or ends a capture: a window in which it is recorded.
    Capture {
        /// Its number in the process, from 1.
        capture: u32,
        /// Begin or end.
        edge: LabelEdge,
        /// At the begin: the absolute path of the trace that the session shall write; empty: none.
        #[serde(with = "serde_bytes")]
        path: Cow<'a, [u8]>,
        /// When.
        at_ns: i64,
    },
    /// Activities, packed. Any thread may write it; see [`Activity`] for what is promised.
    Activities {
        /// How many activities the process had written before these. A hole between batches is thus an exact loss; the
        /// batch that a process writes at its end has no entries and closes the last hole.
        first: u64,
        /// Entries in `bytes`.
        count: u32,
        /// For [`unpack`].
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
    /// A function of an API that the program calls ([`Event::Called`]).
    Function {
        /// Id of the function.
        function: u32,
        /// The API: `cuda-runtime`, `cuda-driver`.
        interface: Cow<'a, str>,
        /// Its name, without suffixes for versions: `cudaMalloc`.
        name: Cow<'a, str>,
    },
    /// The thread that writes this has called a function, which has returned.
    Called {
        /// Which: [`Event::Function`].
        function: u32,
        /// From its begin to its return.
        span: Span,
        /// Its own correlation; see [`Activity`].
        correlation: u32,
        /// What it returned (CUresult, cudaError_t); 0 is success.
        result: u32,
    },
    /// A thread asked again and again for the same state (cudaEventQuery): several calls as one. Any thread may write it.
    Polled {
        /// Which: [`Event::Function`].
        function: u32,
        /// The system's id of the thread that called.
        thread: u32,
        /// From the begin of the first call to the return of the last.
        span: Span,
        /// Calls.
        count: u32,
        /// Time inside the calls.
        busy_ns: i64,
        /// What the last one returned.
        result: u32,
    },
    /// A way in which the program launches a kernel ([`Activity::Kernel`]).
    Launch {
        /// Id of the launch shape.
        launch: u32,
        /// What it is.
        shape: LaunchShape,
    },
    /// No later batch refers to launch shapes below this id: they may be forgotten.
    LaunchesEnd {
        /// The least id that may still come.
        below: u32,
    },
    /// A way for data ([`Activity::Transfer`]).
    Route {
        /// Id of the route.
        route: u32,
        /// The queue.
        queue: u32,
        /// What the transfer does.
        kind: TransferKind,
        /// Where it reads.
        source: MemoryPlace,
        /// Where it writes.
        destination: MemoryPlace,
        /// Between devices: the ids of source and destination.
        devices: Option<(u32, u32)>,
    },
    /// What is known of a queue that is a CUDA stream, besides [`Event::Queue`].
    Stream {
        /// Id of the queue.
        queue: u32,
        /// What kind of stream.
        kind: StreamKind,
        /// As the program set it; lower is more urgent, 0 is the default.
        priority: i32,
    },
    /// What a CUDA device can do, besides [`Event::Device`]. 0: not known.
    DeviceLimits {
        /// Id of the device.
        device: u32,
        /// Compute capability, major and minor.
        capability: (u32, u32),
        /// Streaming multiprocessors.
        multiprocessors: u32,
        /// Clock of the cores, kHz.
        core_clock_khz: u32,
        /// Bandwidth of the device's memory by its data sheet, bytes a second.
        memory_bytes_per_s: u64,
        /// Size of the L2 cache.
        l2_bytes: u64,
        /// Threads that a multiprocessor can hold.
        threads_per_multiprocessor: u32,
        /// Registers of a multiprocessor.
        registers_per_multiprocessor: u32,
        /// Shared memory of a multiprocessor.
        shared_bytes_per_multiprocessor: u64,
        /// Workgroups that a multiprocessor can hold.
        groups_per_multiprocessor: u32,
        /// It is a part of a device (MIG).
        partition: bool,
    },
    /// The state of a memory pool.
    Pool {
        /// Id of the pool.
        pool: u32,
        /// Its device.
        device: u32,
        /// Why it is written.
        edge: PoolEdge,
        /// Bytes that the pool holds of the device's memory.
        bytes: u64,
        /// Bytes of them that the program has allocated.
        used_bytes: u64,
        /// When.
        at_ns: i64,
    },
    /// More of the label that the same thread wrote last.
    LabelDetail {
        /// Id of its category, which [`Event::Name`] may name; 0: none.
        category: u32,
        /// Its colour as ARGB.
        color: Option<u32>,
        /// Its value.
        payload: Option<Payload>,
    },
    /// A sentence that belongs in every report of the recording.
    Note {
        /// The sentence.
        text: Cow<'a, str>,
    },
    /// The value of a label, where it has several parts.
    LabelPayload {
        /// Of the label that the same thread ends next in this scope. `None`: of the one that it wrote last.
        ending: Option<LabelScope>,
        /// Names and values: `bytes=4096, root=0`.
        text: &'a str,
    },
}
