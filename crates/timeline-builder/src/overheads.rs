//! Time of a host thread that the driver or the tracing took, such as for the compilation of a kernel. A trace shows
//! it as host calls.

use gapscope_model::{HostCallKind, OverheadKind, Span};
use gapscope_trace::ids::ThreadId;

/// Time of a host thread that belongs to no call of the program.
#[derive(Debug, Clone, Copy)]
pub struct Overhead {
    /// The thread, where it is known.
    pub thread: Option<ThreadId>,
    /// When.
    pub span: Span,
    /// What took the time.
    pub kind: OverheadKind,
    /// The tool whose tracing it was, where the kind is one of tracing: `CUPTI`.
    pub tool: &'static str,
}

impl Overhead {
    /// Returns how a trace shows the time: as which host call, of which function.
    pub(crate) fn host_call(&self) -> (HostCallKind, &'static str) {
        use OverheadKind::*;
        match self.kind {
            Compiler => (HostCallKind::LoadModule, "driver compiler"),
            ModuleLoading => (HostCallKind::LoadModule, "lazy module loading"),
            FunctionLoading => (HostCallKind::LoadModule, "lazy function loading"),
            CommandBufferFull => (HostCallKind::QueueFull, "driver queue full"),
            kind if kind.is_tracing() => (HostCallKind::Recording, self.tool),
            _ => (HostCallKind::OtherCall, "unknown overhead"),
        }
    }
}
