//! What calls do to events, and what they wait for.

use gapscope_spool::event::WaitKind;
use gapscope_spool::model::cuda::FunctionClass;

/// What a call does to events, or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Records an event on a stream; `has_flags`: its third parameter says more.
    Record { has_flags: bool },
    /// Records an event after all work of a context, which is not a queue.
    RecordInContext,
    /// Makes a graph record an event, which is this parameter, on the streams that it is launched on.
    RecordInGraph { event_parameter: usize },
    /// Waits, finds that what it asks for is done, or lets a stream wait.
    Wait(WaitKind),
    /// Waits for the context that is its first parameter.
    WaitForNamedContext,
    /// Lets all work of a context wait for an event.
    ContextWait,
    /// Destroys an event: another one may get its handle.
    Destroy,
}

impl Effect {
    /// Of functions of a class. An execution context of the runtime is not one of CUPTI's: a wait for it has none.
    pub fn of(class: FunctionClass) -> Option<Effect> {
        let graph = |event_parameter| Some(Effect::RecordInGraph { event_parameter });
        match class {
            FunctionClass::RecordEvent => Some(Effect::Record { has_flags: false }),
            FunctionClass::RecordEventWithFlags => Some(Effect::Record { has_flags: true }),
            FunctionClass::RecordContextEvent => Some(Effect::RecordInContext),
            FunctionClass::AddEventNode => graph(4),
            FunctionClass::SetNodeEvent => graph(1),
            FunctionClass::SetExecNodeEvent => graph(2),
            FunctionClass::StreamWaitEvent => Some(Effect::Wait(WaitKind::QueueForEvent)),
            FunctionClass::ContextWaitEvent => Some(Effect::ContextWait),
            FunctionClass::WaitStream | FunctionClass::PollStream => {
                Some(Effect::Wait(WaitKind::HostForQueue))
            }
            FunctionClass::WaitEvent | FunctionClass::PollEvent => {
                Some(Effect::Wait(WaitKind::HostForEvent))
            }
            FunctionClass::WaitContext => Some(Effect::Wait(WaitKind::HostForContext)),
            FunctionClass::WaitNamedContext => Some(Effect::WaitForNamedContext),
            FunctionClass::DestroyEvent => Some(Effect::Destroy),
            _ => None,
        }
    }

    /// What it is a wait for.
    pub fn wait(self) -> Option<WaitKind> {
        match self {
            Effect::Wait(kind) => Some(kind),
            Effect::WaitForNamedContext => Some(WaitKind::HostForContext),
            _ => None,
        }
    }

    /// Which parameter is the event: see generated_cuda_meta.h and generated_cuda_runtime_api_meta.h.
    pub fn event_parameter(self) -> Option<usize> {
        match self {
            Effect::Record { .. } | Effect::Wait(WaitKind::HostForEvent) | Effect::Destroy => {
                Some(0)
            }
            Effect::RecordInContext
            | Effect::Wait(WaitKind::QueueForEvent)
            | Effect::ContextWait => Some(1),
            Effect::RecordInGraph { event_parameter } => Some(event_parameter),
            Effect::Wait(_) | Effect::WaitForNamedContext => None,
        }
    }

    /// Which parameter is the stream.
    pub fn stream_parameter(self) -> Option<usize> {
        match self {
            Effect::Wait(WaitKind::QueueForEvent | WaitKind::HostForQueue) => Some(0),
            Effect::Record { .. } => Some(1),
            _ => None,
        }
    }

    /// Whether it puts something on the stream, or, in a capture, into a graph.
    pub fn is_on_stream(self) -> bool {
        matches!(
            self,
            Effect::Record { .. } | Effect::Wait(WaitKind::QueueForEvent)
        )
    }
}
