//! What a function of a GPU's API does for a timeline, by its name: CUDA, HIP, Vulkan.

use gapscope_trace::tables::HostCallKind;

/// What a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuntimeCall {
    /// It launches GPU work.
    Launch,
    /// A call that may take time.
    Call(HostCallKind),
}

impl RuntimeCall {
    /// What a function is; `None` for a name that is of no such API. Functions that are not known here are other calls.
    pub fn of(function: &str) -> Option<RuntimeCall> {
        use RuntimeCall::{Call, Launch};
        let end = function.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let function = &function[..end.unwrap_or(function.len())];
        if let Some(rest) = after(function, "vk") {
            return Some(match rest {
                "QueueSubmit" | "QueueSubmit2" | "QueueSubmit2KHR" => Launch,
                "WaitForFences" => Call(HostCallKind::WaitFences),
                "WaitSemaphores" | "WaitSemaphoresKHR" => Call(HostCallKind::WaitSemaphores),
                "QueueWaitIdle" => Call(HostCallKind::WaitQueueIdle),
                "DeviceWaitIdle" => Call(HostCallKind::WaitDeviceIdle),
                "GetFenceStatus" => Call(HostCallKind::PollFence),
                "AllocateMemory" => Call(HostCallKind::AllocateMemory),
                "FreeMemory" => Call(HostCallKind::FreeMemory),
                "MapMemory" => Call(HostCallKind::MapMemory),
                "QueuePresentKHR" => Call(HostCallKind::Present),
                "AcquireNextImageKHR" => Call(HostCallKind::AcquireImage),
                "CreateShaderModule" => Call(HostCallKind::CreateShaderModule),
                "CreateComputePipelines" | "CreateGraphicsPipelines" => {
                    Call(HostCallKind::CreatePipelines)
                }
                _ => Call(HostCallKind::OtherCall),
            });
        }
        let rest = ["cuda", "hip", "cu"];
        let rest = rest.into_iter().find_map(|api| after(function, api))?;
        let asynchronous = rest.contains("Async");
        let call = match rest {
            "StreamSynchronize" => HostCallKind::WaitQueueIdle,
            "DeviceSynchronize" | "CtxSynchronize" | "ThreadSynchronize" => {
                HostCallKind::WaitDeviceIdle
            }
            "EventSynchronize" => HostCallKind::WaitEvent,
            "EventQuery" | "StreamQuery" => HostCallKind::PollEvent,
            _ if rest.contains("Graph") && rest.contains("Launch") => return Some(Launch),
            _ if rest.contains("Graph") || rest.contains("Capture") => HostCallKind::BuildGraph,
            _ if rest.contains("LaunchHostFunc") => HostCallKind::OtherCall,
            _ if rest.contains("Launch") => return Some(Launch),
            _ if rest.starts_with("Memset") => return Some(Launch),
            _ if rest.starts_with("Memcpy") && asynchronous => return Some(Launch),
            _ if rest.starts_with("Memcpy") => HostCallKind::CopyAndWait,
            _ if rest.contains("Free") || rest.contains("HostUnregister") => {
                HostCallKind::FreeMemory
            }
            _ if rest.contains("Malloc") || rest.contains("Alloc") => HostCallKind::AllocateMemory,
            _ if rest.starts_with("HostRegister") => HostCallKind::AllocateMemory,
            _ if rest.starts_with("Module") || rest.starts_with("Library") => {
                HostCallKind::LoadModule
            }
            _ => HostCallKind::OtherCall,
        };
        Some(Call(call))
    }
}

/// What follows a prefix, if it starts with a capital letter as functions do.
fn after<'a>(function: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = function.strip_prefix(prefix)?;
    let rest = rest.strip_prefix('_').unwrap_or(rest);
    rest.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_names() {
        let call = |kind| Some(RuntimeCall::Call(kind));
        let launch = Some(RuntimeCall::Launch);
        for (function, expected) in [
            ("cudaLaunchKernel", launch),
            ("hipModuleLaunchKernel", launch),
            ("cuLaunchKernelEx", launch),
            ("cudaGraphLaunch", launch),
            ("hipMemcpyAsync", launch),
            ("vkQueueSubmit", launch),
            ("cudaMemcpy", call(HostCallKind::CopyAndWait)),
            ("cuStreamSynchronize", call(HostCallKind::WaitQueueIdle)),
            ("hipDeviceSynchronize", call(HostCallKind::WaitDeviceIdle)),
            ("cudaFreeAsync", call(HostCallKind::FreeMemory)),
            ("hipMalloc", call(HostCallKind::AllocateMemory)),
            ("vkWaitForFences", call(HostCallKind::WaitFences)),
            ("cudaGetDevice", call(HostCallKind::OtherCall)),
            ("cumsum", None),
            ("custom", None),
            ("aten::copy_", None),
            ("hipster", None),
        ] {
            assert_eq!(RuntimeCall::of(function), expected, "{function}");
        }
    }
}
