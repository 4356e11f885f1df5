//! What a function of CUDA does, by its name.

use gapscope_trace::tables::HostCallKind;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A function that the program calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: Arc<str>,
    /// What it does.
    pub does: Does,
}

/// What a function does, as far as a timeline is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Does {
    /// Hands work to the device and returns.
    Launch(Launches),
    /// Copies, and returns when that is done.
    CopyAndWait,
    /// Waits for a stream.
    WaitStream,
    /// Waits for a device.
    WaitDevice,
    /// Waits for an event.
    WaitEvent,
    /// Asks for a state.
    Poll,
    /// Allocates memory.
    Allocate,
    /// Frees memory.
    Free,
    /// Loads or compiles code.
    Load,
    /// Begins to capture a stream's work into a graph.
    BeginCapture,
    /// Ends that.
    EndCapture,
    /// Builds or instantiates a graph.
    BuildGraph,
    /// Anything else.
    Other,
}

/// What a launch hands to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Launches {
    /// A kernel.
    Kernel,
    /// A copy or a fill.
    Transfer,
    /// A graph.
    Graph,
}

impl Function {
    /// A function by its name, which has no suffix for its version.
    pub fn of(name: &str) -> Function {
        Function {
            name: Arc::from(name),
            does: does(name),
        }
    }
}

impl Does {
    /// True for functions whose call causes work on the device.
    pub fn submits(self) -> bool {
        matches!(self, Does::Launch(_) | Does::CopyAndWait)
    }

    /// True for functions that return when the device has got somewhere.
    pub fn waits(self) -> bool {
        matches!(self, Does::WaitStream | Does::WaitDevice | Does::WaitEvent)
    }

    /// The kind of its row.
    pub fn kind(self) -> HostCallKind {
        match self {
            Does::Launch(_) => HostCallKind::Launch,
            Does::CopyAndWait => HostCallKind::CopyAndWait,
            Does::WaitStream => HostCallKind::WaitQueueIdle,
            Does::WaitDevice => HostCallKind::WaitDeviceIdle,
            Does::WaitEvent => HostCallKind::WaitEvent,
            Does::Poll => HostCallKind::PollEvent,
            Does::Allocate => HostCallKind::AllocateMemory,
            Does::Free => HostCallKind::FreeMemory,
            Does::Load => HostCallKind::LoadModule,
            Does::BeginCapture | Does::EndCapture | Does::BuildGraph => HostCallKind::BuildGraph,
            Does::Other => HostCallKind::OtherCall,
        }
    }
}

/// The runtime's functions begin with `cuda`, the driver's with `cu`; what follows mostly agrees.
fn does(name: &str) -> Does {
    let rest = name
        .strip_prefix("cuda")
        .or_else(|| name.strip_prefix("cu"))
        .unwrap_or(name);
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| rest.starts_with(prefix));
    match rest {
        "GraphLaunch" => return Does::Launch(Launches::Graph),
        "StreamSynchronize" => return Does::WaitStream,
        "DeviceSynchronize" | "CtxSynchronize" | "ThreadSynchronize" => return Does::WaitDevice,
        "EventSynchronize" => return Does::WaitEvent,
        "EventQuery" | "StreamQuery" => return Does::Poll,
        _ => {}
    }
    if begins(&["Launch"]) && !begins(&["LaunchHostFunc"]) {
        return Does::Launch(Launches::Kernel);
    }
    if begins(&["Memset"]) {
        return Does::Launch(Launches::Transfer);
    }
    if begins(&["Memcpy"]) {
        return match rest.contains("Async") {
            true => Does::Launch(Launches::Transfer),
            false => Does::CopyAndWait,
        };
    }
    if begins(&[
        "Malloc",
        "HostAlloc",
        "HostRegister",
        "MemAlloc",
        "MemHostAlloc",
        "MemHostRegister",
        "MemCreate",
        "MemMap",
        "MemAddressReserve",
        "MemSetAccess",
        "MemPoolCreate",
        "ArrayCreate",
        "Array3DCreate",
        "MipmappedArrayCreate",
    ]) {
        return Does::Allocate;
    }
    if begins(&[
        "Free",
        "HostUnregister",
        "MemFree",
        "MemHostUnregister",
        "MemRelease",
        "MemUnmap",
        "MemAddressFree",
        "MemPoolDestroy",
        "MemPoolTrimTo",
        "ArrayDestroy",
        "MipmappedArrayDestroy",
    ]) {
        return Does::Free;
    }
    if begins(&[
        "Module",
        "Library",
        "Link",
        "Kernel",
        "FuncGetModule",
        "FuncLoad",
    ]) {
        return Does::Load;
    }
    if begins(&["StreamBeginCapture"]) {
        return Does::BeginCapture;
    }
    if begins(&["StreamEndCapture"]) {
        return Does::EndCapture;
    }
    if begins(&["Graph", "StreamUpdateCapture", "UserObject"]) {
        return Does::BuildGraph;
    }
    Does::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_both_interfaces_are_told_by_their_names() {
        use Launches::*;
        for (name, expected) in [
            ("cudaLaunchKernel", Does::Launch(Kernel)),
            ("cudaLaunchKernelExC", Does::Launch(Kernel)),
            ("cuLaunchKernelEx", Does::Launch(Kernel)),
            ("cudaLaunchHostFunc", Does::Other),
            ("cudaGraphLaunch", Does::Launch(Graph)),
            ("cuGraphLaunch", Does::Launch(Graph)),
            ("cudaGraphInstantiateWithFlags", Does::BuildGraph),
            ("cudaStreamBeginCaptureToGraph", Does::BeginCapture),
            ("cuStreamEndCapture", Does::EndCapture),
            ("cudaMemcpyAsync", Does::Launch(Transfer)),
            ("cuMemcpyDtoHAsync", Does::Launch(Transfer)),
            ("cudaMemcpy", Does::CopyAndWait),
            ("cuMemcpyHtoD", Does::CopyAndWait),
            ("cudaMemsetAsync", Does::Launch(Transfer)),
            ("cuMemsetD32", Does::Launch(Transfer)),
            ("cudaStreamSynchronize", Does::WaitStream),
            ("cuCtxSynchronize", Does::WaitDevice),
            ("cudaEventSynchronize", Does::WaitEvent),
            ("cudaEventQuery", Does::Poll),
            ("cudaMallocAsync", Does::Allocate),
            ("cuMemAllocManaged", Does::Allocate),
            ("cudaFreeAsync", Does::Free),
            ("cudaFree", Does::Free),
            ("cuMemFree", Does::Free),
            ("cuModuleLoadData", Does::Load),
            ("cuLibraryLoadData", Does::Load),
            ("cudaEventRecord", Does::Other),
            ("cudaStreamWaitEvent", Does::Other),
        ] {
            assert_eq!(does(name), expected, "{name}");
        }
    }
}
