//! The calls that are recorded, and those that make waits and events.

use super::names::{is_launch, is_poll, is_wanted, plain_name};
use crate::cupti::numbers::domain;
use crate::cupti::{self, Cupti};
use crate::streams::Handle;
use gapscope_spool::event::{CudaEvent, WaitKind};
use gapscope_spool::ids;
use std::borrow::Cow;
use std::ffi::{c_int, c_void};

/// Numbers of calls are below this in every CUPTI so far.
const MOST_CALLS: u32 = 2000;

/// What the user wants to know of calls.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The calls themselves.
    pub calls: bool,
    /// Who waits for what.
    pub waits: bool,
    /// Events that are put on queues.
    pub events: bool,
}

/// What a call does with events, or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Puts an event on a stream.
    Record,
    /// Puts an event behind all work of a context, which is no queue.
    RecordOfContext,
    /// Lets a graph put an event, which is this parameter, on the streams that it is launched on.
    GraphRecords(usize),
    /// Waits, finds that what it asks for is done, or lets a stream wait.
    Wait(WaitKind),
    /// Lets all work of a context wait for an event.
    ContextWaits,
    /// Destroys an event: another one may get its handle.
    Destroy,
}

impl Does {
    /// What the call of this name does.
    fn of(name: &str) -> Option<Does> {
        let plain = plain_name(name);
        let rest = plain
            .strip_prefix("cuda")
            .or_else(|| plain.strip_prefix("cu"))?;
        Some(match rest {
            "EventRecord" | "EventRecordWithFlags" => Does::Record,
            "GraphAddEventRecordNode" => Does::GraphRecords(4),
            "GraphEventRecordNodeSetEvent" => Does::GraphRecords(1),
            "GraphExecEventRecordNodeSetEvent" => Does::GraphRecords(2),
            "CtxRecordEvent" | "GreenCtxRecordEvent" | "ExecutionCtxRecordEvent" => {
                Does::RecordOfContext
            }
            "StreamWaitEvent" => Does::Wait(WaitKind::QueueForEvent),
            "CtxWaitEvent" | "GreenCtxWaitEvent" | "ExecutionCtxWaitEvent" => Does::ContextWaits,
            "StreamSynchronize" | "StreamQuery" => Does::Wait(WaitKind::HostForQueue),
            "EventSynchronize" | "EventQuery" => Does::Wait(WaitKind::HostForEvent),
            "CtxSynchronize" | "DeviceSynchronize" | "ThreadSynchronize" => {
                Does::Wait(WaitKind::HostForContext)
            }
            "EventDestroy" => Does::Destroy,
            _ => return None,
        })
    }

    /// Which parameter is the event: see generated_cuda_meta.h and generated_cuda_runtime_api_meta.h.
    pub fn event(self) -> Option<usize> {
        match self {
            Does::Record | Does::Wait(WaitKind::HostForEvent) | Does::Destroy => Some(0),
            Does::RecordOfContext | Does::Wait(WaitKind::QueueForEvent) | Does::ContextWaits => {
                Some(1)
            }
            Does::GraphRecords(at) => Some(at),
            Does::Wait(_) => None,
        }
    }

    /// Which parameter is the stream.
    pub fn stream(self) -> Option<usize> {
        match self {
            Does::Wait(WaitKind::QueueForEvent | WaitKind::HostForQueue) => Some(0),
            Does::Record => Some(1),
            _ => None,
        }
    }

    /// Whether it puts something on the stream, or, in a capture, into a graph.
    pub fn puts(self) -> bool {
        matches!(self, Does::Record | Does::Wait(WaitKind::QueueForEvent))
    }

    fn is_wanted(self, wanted: Wanted) -> bool {
        match self {
            Does::Wait(_) | Does::ContextWaits => wanted.waits,
            _ => wanted.events,
        }
    }
}

/// A call, by its number.
#[derive(Debug)]
pub struct Call {
    /// As CUPTI has it, with its version.
    name: &'static str,
    /// The id of its function.
    pub function: ids::Function,
    /// It is recorded itself.
    pub is_recorded: bool,
    /// It asks for a state.
    pub asks: bool,
    pub does: Option<Does>,
    /// Its default stream is the thread's own.
    pub per_thread: bool,
    /// Its third parameter says more of what it does.
    pub has_flags: bool,
    /// Its first parameter is the context, which is the current one otherwise.
    pub names_context: bool,
}

impl Call {
    /// Its function, which has to be written before the first call.
    pub fn definition(&self) -> CudaEvent<'static> {
        CudaEvent::Function {
            function: self.function,
            name: Cow::Borrowed(plain_name(self.name)),
        }
    }

    /// Whether the driver has this function of its own.
    pub fn is_in_driver(&self) -> bool {
        cupti::driver_function(self.name).is_some()
    }
}

/// cuStreamIsCapturing
type IsCapturing = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;

/// All calls, by domain and number.
#[derive(Debug)]
pub struct Calls {
    of_domain: [Vec<Option<Call>>; 2],
    is_capturing: Option<IsCapturing>,
}

const DOMAINS: [u32; 2] = [domain::DRIVER, domain::RUNTIME];

impl Calls {
    /// Those that this CUPTI has and the user wants.
    pub fn find(cupti: &Cupti, wanted: Wanted) -> Calls {
        let call = |domain, number| {
            let name = cupti.call_name(domain, number)?;
            // The driver's call inside has the same correlation; a launch shall pay for one of them.
            let is_twice = domain == domain::RUNTIME && is_launch(name);
            let is_recorded = wanted.calls && is_wanted(name) && !is_twice;
            let does = Does::of(name).filter(|does| does.is_wanted(wanted));
            (is_recorded || does.is_some()).then(|| Call {
                name,
                function: ids::Function(1 + number * 2 + u32::from(domain == domain::RUNTIME)),
                is_recorded,
                asks: is_poll(name),
                does,
                per_thread: name.contains("_ptsz"),
                has_flags: name.contains("WithFlags"),
                names_context: name.starts_with("cuCtxSynchronize_v2"),
            })
        };
        let function = cupti::driver_function("cuStreamIsCapturing");
        Calls {
            of_domain: DOMAINS
                .map(|domain| (0..MOST_CALLS).map(|number| call(domain, number)).collect()),
            // SAFETY: it is this function of the driver.
            is_capturing: function
                .map(|at| unsafe { std::mem::transmute::<*mut c_void, IsCapturing>(at) }),
        }
    }

    #[inline]
    pub fn get(&self, domain: u32, number: u32) -> Option<&Call> {
        let at = DOMAINS.iter().position(|d| *d == domain)?;
        self.of_domain[at].get(number as usize)?.as_ref()
    }

    /// Each, with its domain and number.
    pub fn all(&self) -> impl Iterator<Item = (u32, u32, &Call)> {
        let domains = DOMAINS.into_iter().zip(&self.of_domain);
        domains.flat_map(|(domain, calls)| {
            let numbered = (0..).zip(calls);
            numbered.filter_map(move |(number, call)| Some((domain, number, call.as_ref()?)))
        })
    }

    /// Whether what is put on a stream goes into a graph; `None`: the driver does not say.
    pub fn is_capturing(&self, stream: Handle) -> Option<bool> {
        let mut status = 0;
        let function = self.is_capturing?;
        // SAFETY: the driver's function with a stream that the program just used; it changes nothing.
        let code = unsafe { function(stream.for_driver(), &mut status) };
        (code == 0).then_some(status != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_a_call_does_the_same() {
        use Does::*;
        use WaitKind::*;
        for (does, names) in [
            (
                Some(Record),
                &[
                    "cudaEventRecord_v3020",
                    "cudaEventRecord_ptsz_v7000",
                    "cudaEventRecordWithFlags_v11010",
                    "cuEventRecord",
                    "cuEventRecord_ptsz",
                    "cuEventRecordWithFlags_ptsz",
                ][..],
            ),
            (
                Some(Wait(QueueForEvent)),
                &["cudaStreamWaitEvent_ptsz_v7000", "cuStreamWaitEvent"],
            ),
            (
                Some(Wait(HostForQueue)),
                &["cudaStreamSynchronize_v3020", "cuStreamQuery_ptsz"],
            ),
            (
                Some(Wait(HostForEvent)),
                &["cuEventSynchronize", "cudaEventQuery_v3020"],
            ),
            (
                Some(Wait(HostForContext)),
                &[
                    "cudaDeviceSynchronize_v3020",
                    "cuCtxSynchronize",
                    "cuCtxSynchronize_v2",
                ],
            ),
            (
                Some(GraphRecords(4)),
                &[
                    "cuGraphAddEventRecordNode",
                    "cudaGraphAddEventRecordNode_v11010",
                ],
            ),
            (
                Some(GraphRecords(2)),
                &["cudaGraphExecEventRecordNodeSetEvent_v11010"],
            ),
            (
                Some(Destroy),
                &[
                    "cudaEventDestroy_v3020",
                    "cuEventDestroy",
                    "cuEventDestroy_v2",
                ],
            ),
            (
                Some(RecordOfContext),
                &["cuCtxRecordEvent", "cudaExecutionCtxRecordEvent_v13010"],
            ),
            (
                None,
                &[
                    "cudaExecutionCtxSynchronize_v13010",
                    "cudaEventCreate_v3020",
                    "cuGraphEventRecordNodeGetEvent",
                    "cuStreamWaitValue32_v2",
                    "cudaGetDevice_v3020",
                ],
            ),
        ] {
            for name in names {
                assert_eq!(Does::of(name), does, "{name}");
            }
        }
    }
}
