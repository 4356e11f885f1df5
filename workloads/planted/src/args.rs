//! Defines the command line: the modes, and how much work each does.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Runs Vulkan work with one planted cause of idle GPU time, or one use of the API, and prints what it did as JSON.
///
/// Exits with 3 when the device or driver lacks what the mode needs.
#[derive(Clone, Debug, Parser)]
#[command(
    version,
    after_help = "\
Examples:
  planted steady --n 50 --iterations 10
  planted host-sleep --sleep-us 5000
  planted bench --n 5000 --groups 1 --spin 0 --bind"
)]
pub struct Args {
    #[arg(value_enum)]
    pub mode: Mode,
    /// Dispatches in a command buffer
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub n: u32,
    /// How often the mode does its work; in bench, the number of runs from which the best is taken
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub iterations: u32,
    /// Workgroups of 64 invocations in a dispatch
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65535))]
    pub groups: u32,
    /// Loop count in the kernel: how long a dispatch takes
    #[arg(long, default_value_t = 1000)]
    pub spin: u32,
    /// Sleep of the host, for modes that sleep
    #[arg(long, default_value_t = 2000)]
    pub sleep_us: u64,
    /// Bytes of a transfer, for modes that transfer; a multiple of 4
    #[arg(long, default_value_t = 1 << 20, value_parser = transfer_bytes)]
    pub bytes: u64,
    /// Threads, child processes or devices, for modes with several
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub count: u32,
    /// Position of the device among those of the driver
    #[arg(long, default_value_t = 0)]
    pub device_index: usize,
    /// Queue family; by default the first that fits
    #[arg(long)]
    pub family: Option<u32>,
    /// The version of Vulkan that it asks for, 1.0 to 1.3, by its second number
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=3))]
    pub api_minor: u32,
    /// bench: bind the descriptor set again before each dispatch
    #[arg(long)]
    pub bind: bool,
    /// bench: the program writes two timestamps of its own around each dispatch
    #[arg(long)]
    pub timestamps: bool,
    /// abandon, in-flight: exit by _exit, so that no destructor and no atexit handler runs
    #[arg(long)]
    pub hard_exit: bool,
    /// windows: folder that the captures are written to; without it they have no path
    #[arg(long)]
    pub captures: Option<PathBuf>,
    /// Behave as few programs do
    #[arg(long, value_enum)]
    pub conduct: Option<Conduct>,
    /// From which moment on it behaves so
    #[arg(long, value_enum, default_value_t = Moment::Work)]
    pub moment: Moment,
    /// Run all on a thread whose stack has so many KiB
    #[arg(long)]
    pub stack_kib: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// One command buffer of n dispatches per submission, without planted idle time
    Steady,
    /// One dispatch, with the time from submit to fence as the host saw it
    Spin,
    /// The host sleeps between submissions, after a blocking wait
    HostSleep,
    /// The host sleeps between submissions and only polls the fence, so that no call blocks
    HostSleepAsync,
    /// One dispatch per submission, each waited for
    FenceEach,
    /// Completion is awaited by polling vkGetFenceStatus
    Polling,
    /// A new kernel is compiled before each submission
    PipelinesInLoop,
    /// Best times of recording, submitting and running n dispatches without barriers
    Bench,
    /// One command buffer submitted again and again, each time waited for
    Resubmit,
    /// One command buffer submitted again while it may still run, also in one call and in one batch
    Simultaneous,
    /// Secondary command buffers, one of them executed twice
    Secondary,
    /// Command buffers and pools are reset, freed and destroyed, so that handles are reused
    HostPoolReset,
    /// vkCmdDispatchIndirect
    Indirect,
    /// vkCmdDispatchBase
    Base,
    /// One SPIR-V module specialised into several kernels
    Specialise,
    /// VK_KHR_push_descriptor, by writes and by a template
    PushDescriptors,
    /// A descriptor set points elsewhere from one recording to the next
    #[value(alias = "update-after-record")]
    UpdatedSets,
    /// One descriptor set with changing dynamic offsets
    DynamicOffsets,
    /// The same, where the first of two dynamic descriptors is never written
    PartlyWritten,
    /// Two queues that wait for each other in turn
    PingPong,
    /// vkQueueSubmit2 with a timeline semaphore
    Submit2,
    /// A protected command buffer that may run twice at once, in protected submissions
    Protected,
    /// Sparse binding between submissions: each waits for the one before
    Sparse,
    /// Threads that record each in a pool of its own and share a queue
    Threads,
    /// A thread that does nothing but submit one recording again and again, with the stack of --stack-kib
    Submitter,
    /// Two devices on one instance and one on another, all at once
    Devices,
    /// Big copies and fills between dispatches
    TransferStall,
    /// Copies, fills and updates only; works on a queue that can do nothing else
    Transfers,
    /// A render pass between dispatches
    RenderPass,
    /// Renderings that are suspended and resumed, in one command buffer and across two
    Suspended,
    /// Command buffers with nothing but vkCmdResolveImage
    Resolve,
    /// Command buffers with nothing but vkCmdDecompressMemoryNV, then a rendering that vkCmdEndRendering2EXT ends
    Extensions,
    /// Kernels that are shader objects (VK_EXT_shader_object), bound in turn with a pipeline
    ShaderObjects,
    /// Labels in command buffers and on the queue, and names of objects
    Labels,
    /// Allocations and frees of known sizes
    Memory,
    /// Child processes that do `steady`, as this one does
    Children,
    /// A fork without exec that does `steady`, as this process does, and another that exits at once
    Fork,
    /// Ends normally but destroys nothing
    Abandon,
    /// Ends by SIGKILL after its work
    Killed,
    /// Ends while work is pending
    InFlight,
    /// Creates and destroys two instances with devices, again and again
    #[value(alias = "two-instances-churn")]
    Churn,
    /// Works until the driver loses the device, which only the fake driver does
    DeviceLost,
    /// Windows of its work are captured by the program itself, through the recorder's C interface
    Windows,
    /// The host writes to a mapped buffer before each submission: directly, by another thread and by `read`
    HostWrites,
    /// Submissions wait for a timeline semaphore that the host signals after them
    WaitFirst,
    /// Timestamps of the program are copied to a buffer inside its command buffers
    Queries,
}

/// A way to behave that few programs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Conduct {
    /// From then on a system call that opens, makes, maps or deletes files or starts threads ends the process
    FilterKill,
    /// The same, where such a call fails with EPERM
    FilterError,
    /// The same, where such a call raises SIGSYS
    FilterTrap,
    /// The same as filter-kill, in the calling thread and those that it starts alone
    FilterThread,
    /// From then on a system call that makes, sizes or deletes files, or connects, ends the process
    FilterWrites,
    /// Closes all descriptors but the standard ones, and opens others under their numbers
    CloseAll,
    /// No more descriptors may be opened
    NoDescriptors,
    /// No file may grow beyond 64 KiB
    SmallFiles,
    /// No more memory may be mapped than now, but for 64 MiB
    NoMemory,
    /// All memory, also what is mapped later, is locked
    LockMemory,
    /// The root folder is an empty one
    Chroot,
    /// The process gives up being root
    Setuid,
    /// Handlers of all signals without SA_RESTART on a stack of their own, and SIGALRM each millisecond
    Signals,
    /// 200 children that end at once: by exit, by _exit, or as another program without an environment
    Forks,
    /// A child that filters its system calls as filter-kill does, and ends by exit
    SandboxedChild,
    /// 40 other programs, by posix_spawn and by vfork and execve
    Spawns,
    /// The Vulkan loader is loaded, used and unloaded three times
    Unload,
}

/// Where in the run a program behaves so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Moment {
    /// Before Vulkan is loaded
    Start,
    /// Between the instance and the device
    Instance,
    /// Once all objects are made, before the first submission
    Work,
}

fn transfer_bytes(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(bytes) if bytes > 0 && bytes % 4 == 0 && bytes <= 1 << 30 => Ok(bytes),
        _ => Err("it must be a multiple of 4 between 4 and 1073741824".into()),
    }
}
