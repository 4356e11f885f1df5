//! The effects of calls on events, graphs and streams, as far as recording must know them; a call's effect follows
//! from its name. A device record is CUPTI's report of work on the device; calls without one are followed here.

use gapscope_spool::event::WaitKind;
use gapscope_spool::model::cuda::{self, FunctionClass};

/// The effect of a call, apart from the time that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Records an event on a stream; `has_flags` says that the third parameter has flags.
    Record { has_flags: bool },
    /// Records an event after all work of a context, which is not a queue.
    RecordInContext,
    /// Makes a graph record an event, which is this parameter, on the streams that it is launched on.
    RecordInGraph { event_parameter: usize },
    /// Waits, finds that the awaited work is done, or lets a stream wait.
    Wait(WaitKind),
    /// Waits for the context that is the first parameter.
    WaitForNamedContext,
    /// Lets all work of a context wait for an event.
    ContextWait,
    /// Destroys an event, whose handle another one may get.
    Destroy,
    /// Puts something without a device record on the stream that is this parameter.
    Submit { stream_parameter: usize },
    /// Does the same as [`Effect::Submit`] if one of the operations is a wait; the third parameter points to them and
    /// the second one counts them.
    SubmitOperations,
    /// Instantiates a graph.
    Instantiate,
    /// Launches an instantiated graph.
    LaunchGraph,
    /// Destroys an instantiated graph, whose handle another one may get.
    DestroyGraphExec,
}

impl Effect {
    /// Returns the effect of a function. Execution contexts of the runtime are unknown to CUPTI, so that waits for
    /// them have none.
    pub fn for_function(class: FunctionClass, name: &str) -> Option<Effect> {
        let graph = |event_parameter| Some(Effect::RecordInGraph { event_parameter });
        let submit = |stream_parameter| Some(Effect::Submit { stream_parameter });
        match class {
            FunctionClass::LaunchHostFunction | FunctionClass::WaitValue => submit(0),
            FunctionClass::BatchMemoryOperations => Some(Effect::SubmitOperations),
            FunctionClass::WaitExternal => submit(3),
            FunctionClass::Prefetch => submit(stream_of_prefetch(name)?),
            FunctionClass::Decompress => submit(4),
            FunctionClass::InstantiateGraph => Some(Effect::Instantiate),
            FunctionClass::LaunchGraph => Some(Effect::LaunchGraph),
            FunctionClass::DestroyGraphExec => Some(Effect::DestroyGraphExec),
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

    /// Returns the kind of wait.
    pub fn wait(self) -> Option<WaitKind> {
        match self {
            Effect::Wait(kind) => Some(kind),
            Effect::WaitForNamedContext => Some(WaitKind::HostForContext),
            _ => None,
        }
    }

    /// Returns the index of the parameter that is the event: see generated_cuda_meta.h and
    /// generated_cuda_runtime_api_meta.h.
    pub fn event_parameter(self) -> Option<usize> {
        match self {
            Effect::Record { .. } | Effect::Wait(WaitKind::HostForEvent) | Effect::Destroy => {
                Some(0)
            }
            Effect::RecordInContext
            | Effect::Wait(WaitKind::QueueForEvent)
            | Effect::ContextWait => Some(1),
            Effect::RecordInGraph { event_parameter } => Some(event_parameter),
            _ => None,
        }
    }

    /// Returns the index of the parameter that is the stream.
    pub fn stream_parameter(self) -> Option<usize> {
        match self {
            Effect::Wait(WaitKind::QueueForEvent | WaitKind::HostForQueue) => Some(0),
            Effect::Record { .. } => Some(1),
            Effect::Submit { stream_parameter } => Some(stream_parameter),
            Effect::SubmitOperations => Some(0),
            _ => None,
        }
    }

    /// Returns whether the call puts something on the stream or, in a capture, into a graph.
    pub fn is_on_stream(self) -> bool {
        matches!(
            self,
            Effect::Record { .. }
                | Effect::Wait(WaitKind::QueueForEvent)
                | Effect::Submit { .. }
                | Effect::SubmitOperations
        )
    }

    /// Returns whether the call is a submission without a device record.
    pub fn is_submission(self) -> bool {
        matches!(self, Effect::Submit { .. } | Effect::SubmitOperations)
    }
}

/// Returns the index of the parameter of a prefetch that is the stream. Flags follow a destination that is a
/// structure of 8 bytes.
fn stream_of_prefetch(name: &str) -> Option<usize> {
    let has = |version| name.split('_').any(|part| part == version);
    match cuda::base_name(name) {
        "cuMemPrefetchAsync" if has("v2") => Some(4),
        "cuMemPrefetchAsync" => Some(3),
        "cudaMemPrefetchAsync" if has("v8000") => Some(3),
        "cudaMemPrefetchAsync" if has("v12020") => Some(4),
        "cuMemDiscardBatchAsync" | "cudaMemDiscardBatchAsync" => Some(4),
        "cuMemPrefetchBatchAsync"
        | "cudaMemPrefetchBatchAsync"
        | "cuMemDiscardAndPrefetchBatchAsync"
        | "cudaMemDiscardAndPrefetchBatchAsync" => Some(7),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_prefetch_says_which_parameter_is_its_stream() {
        let names = include_str!("../../../../model/src/cuda/names.txt").lines();
        let names = names.filter_map(|line| line.split(' ').next());
        let of_class = names.filter(|name| {
            FunctionClass::from_function(name) == Some(FunctionClass::Prefetch)
                && *name != "cudaMemPrefetchAsync"
        });
        assert_eq!(
            of_class
                .map(stream_of_prefetch)
                .filter(Option::is_none)
                .count(),
            0
        );
        for (name, at) in [
            ("cuMemPrefetchAsync_ptsz", Some(3)),
            ("cuMemPrefetchAsync_v2_ptsz", Some(4)),
            ("cudaMemPrefetchAsync_v8000", Some(3)),
            ("cudaMemPrefetchAsync_ptsz_v12020", Some(4)),
            ("cudaMemPrefetchBatchAsync_v13000", Some(7)),
            ("cuMemDiscardBatchAsync", Some(4)),
            // A later version may have other parameters.
            ("cudaMemPrefetchAsync_v15000", None),
        ] {
            assert_eq!(stream_of_prefetch(name), at, "{name}");
        }
    }
}
