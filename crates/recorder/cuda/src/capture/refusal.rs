//! Defines the reasons for which a launch cannot be captured right, with their sentences.

use super::synchronise::{MAX_WAIT, NotIdle};

/// Why a launch cannot be captured. The text ends a sentence; names of kernels are as the code spells them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the name of a kernel is not known, because the driver answered {0}")]
    NoName(i32),
    #[error(
        "{kernel} waits for kernels of other GPUs or processes, and alone it would never end or compute something else"
    )]
    WaitsForOthers { kernel: String },
    #[error("the code of {kernel} was not seen when the driver loaded it")]
    NoCode { kernel: String },
    #[error(
        "the code of {kernel} is one of {count} that were loaded, and the driver does not say which"
    )]
    SeveralCodes { kernel: String, count: usize },
    #[error("the code of {kernel} is no cubin that can be read")]
    UnreadableCode { kernel: String },
    #[error(
        "the code of {kernel} allocates memory on the GPU (malloc), which a replay cannot give it at the same address"
    )]
    Allocates { kernel: String },
    #[error("the parameters of {kernel} are not known: the driver does not say how large they are")]
    NoParameters { kernel: String },
    #[error(
        "{kernel} reaches managed memory at {address:#x}, which moves between GPU and host while it is copied"
    )]
    Managed { kernel: String, address: u64 },
    #[error("{kernel} reaches memory of GPU {device} at {address:#x}, and runs on another one")]
    OtherGpu {
        kernel: String,
        device: i32,
        address: u64,
    },
    #[error("{kernel} has a texture or a surface among its parameters")]
    Texture { kernel: String },
    #[error("{kernel} reaches an array (of a texture or a surface) at {address:#x}")]
    Array { kernel: String, address: u64 },
    #[error(
        "a pointer in memory that {kernel} reaches leads to the variable {name} of the code, whose address is another one in each process"
    )]
    PointsToGlobal { kernel: String, name: String },
    #[error(
        "{kernel} reaches at least {bytes} bytes of memory, and the limit is {most} (--most-bytes); the largest allocation has {largest}"
    )]
    TooLarge {
        kernel: String,
        bytes: u64,
        most: u64,
        largest: u64,
    },
    #[error(
        "the work before {kernel} did not end within {seconds} s: a kernel may wait for one that comes later"
    )]
    NoIdle { kernel: String, seconds: u64 },
    #[error("{kernel} did not end within {seconds} s")]
    NoEnd { kernel: String, seconds: u64 },
    #[error(
        "the work before {kernel} has failed, or cannot be waited for: cuCtxSynchronize answered {code}"
    )]
    NotIdle { kernel: String, code: i32 },
    #[error("{kernel} failed on the GPU: cuCtxSynchronize answered {code}")]
    Failed { kernel: String, code: i32 },
    #[error("the launch of {kernel} is on another GPU or in another context than the window")]
    OtherContext { kernel: String },
    #[error("memory that {kernel} reaches cannot be copied: {function} answered {code}")]
    Driver {
        kernel: String,
        function: &'static str,
        code: i32,
    },
    #[error("{kernel} runs in a graph, and cannot be captured there: {reason}")]
    InGraph {
        kernel: String,
        reason: &'static str,
    },
    #[error(
        "the launch of {kernel} waited {seconds} s for a call of another thread, or for a copy of what that reaches"
    )]
    HeldUp { kernel: String, seconds: u64 },
}

impl Refusal {
    /// Returns the refusal of a launch before which, or after which, the GPU is not idle.
    pub fn not_idle(kernel: &str, why: NotIdle, is_after: bool) -> Refusal {
        let (kernel, seconds) = (kernel.to_owned(), MAX_WAIT.as_secs());
        match (why, is_after) {
            (NotIdle::Busy, false) => Refusal::NoIdle { kernel, seconds },
            (NotIdle::Busy, true) => Refusal::NoEnd { kernel, seconds },
            (NotIdle::Failed(code), false) => Refusal::NotIdle { kernel, code },
            (NotIdle::Failed(code), true) => Refusal::Failed { kernel, code },
        }
    }
}

/// Parts of the names of kernels that wait for kernels on other GPUs or in other processes: those of NCCL, NVSHMEM and
/// of the all-reduces that vLLM, TensorRT-LLM, PyTorch's symmetric memory, DeepEP and MSCCL++ have of their own.
const WAITING: [&str; 14] = [
    "nccldev",
    "ncclkernel",
    "ncclsym",
    "nvshmem",
    "cross_device_reduce",
    "oneshotallreduce",
    "twoshotallreduce",
    "one_shot_all_reduce",
    "two_shot_all_reduce",
    "multimem_all",
    "symm_mem",
    "deep_ep",
    "mscclpp",
    "allreduce_fusion",
];

/// Returns whether kernels of this name wait for others.
pub fn waits_for_others(kernel: &str) -> bool {
    let kernel = kernel.to_ascii_lowercase();
    WAITING.iter().any(|part| kernel.contains(part))
}
