//! A table of the calls at which CUPTI calls back, by CUPTI's numbers: the domain (driver or runtime) and the call's
//! number in it. For each call it has the name, and the parts that are recorded.

use super::effect::Effect;
use crate::cupti::Cupti;
use crate::cupti::numbers::{CALL_NUMBERS, domain};
use crate::driver;
use gapscope_spool::event::CudaEvent;
use gapscope_spool::ids;
use gapscope_spool::model::cuda::{self, FunctionClass};
use std::borrow::Cow;

/// The parts of calls that the user wants recorded.
#[derive(Debug, Clone, Copy)]
pub struct CallSelection {
    /// The calls themselves.
    pub calls: bool,
    /// The waits of host and streams.
    pub waits: bool,
    /// The records of events on queues.
    pub events: bool,
}

impl CallSelection {
    /// Returns whether calls with this effect are to be followed.
    fn wants(self, effect: Effect) -> bool {
        match effect {
            Effect::Wait(_) | Effect::WaitForNamedContext | Effect::ContextWait => self.waits,
            Effect::Submit { .. }
            | Effect::SubmitOperations
            | Effect::Instantiate
            | Effect::LaunchGraph
            | Effect::DestroyGraphExec => self.calls,
            _ => self.events,
        }
    }
}

/// A function of the driver or the runtime.
#[derive(Debug)]
pub struct Call {
    /// The name in CUPTI, with its version.
    name: &'static str,
    domain: u32,
    /// The id of the function in events.
    pub function: ids::Function,
    /// What the function does, by its name.
    pub class: FunctionClass,
    /// Whether the call itself is recorded.
    pub is_recorded: bool,
    /// The effect on events, graphs and streams; `None` where nobody needs it.
    pub effect: Option<Effect>,
    /// Whether the call's default stream is the thread's own.
    pub per_thread: bool,
}

impl Call {
    /// Classifies a function by its name; `None` where nothing of it is recorded.
    fn new(domain: u32, number: u32, name: &'static str, selection: CallSelection) -> Option<Call> {
        let class = FunctionClass::from_function(name)?;
        // The driver's call inside is the same call; a launch pays for one pair of callbacks only.
        let is_twice = domain == domain::RUNTIME && class.is_launch();
        let is_recorded = selection.calls && class.is_recorded() && !is_twice;
        let effect = Effect::for_function(class, name)
            .filter(|effect| selection.wants(*effect) && !is_twice);
        (is_recorded || effect.is_some()).then(|| Call {
            name,
            domain,
            function: ids::Function(1 + number * 2 + u32::from(domain == domain::RUNTIME)),
            class,
            is_recorded,
            effect,
            per_thread: cuda::is_per_thread(name),
        })
    }

    /// Returns the name with its version.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the event that defines the call's function, which has to be written before the first call.
    pub fn definition(&self) -> CudaEvent<'static> {
        CudaEvent::Function {
            function: self.function,
            class: self.class,
            name: Cow::Borrowed(cuda::base_name(self.name)),
        }
    }

    /// Returns whether the program can make the call: a CUPTI that is newer than the driver has functions that the
    /// driver lacks.
    pub fn exists(&self) -> bool {
        self.domain != domain::DRIVER || driver::has(self.name)
    }
}

/// All calls: for each of [`DOMAINS`] a list in which the index is CUPTI's number.
#[derive(Debug)]
pub struct Calls([Vec<Option<Call>>; 2]);

/// The domains of calls, in the order of the lists in [`Calls`].
const DOMAINS: [u32; 2] = [domain::DRIVER, domain::RUNTIME];

impl Calls {
    /// Returns the calls that this CUPTI has and the user wants.
    pub fn find(cupti: &Cupti, selection: CallSelection) -> Calls {
        let call =
            |domain, number| Call::new(domain, number, cupti.call_name(domain, number)?, selection);
        Calls(DOMAINS.map(|domain| {
            (0..CALL_NUMBERS)
                .map(|number| call(domain, number))
                .collect()
        }))
    }

    /// Returns the call with CUPTI's numbers; `None` if CUPTI lacks the call, or nothing of it is recorded.
    #[inline]
    pub fn get(&self, domain: u32, number: u32) -> Option<&Call> {
        let at = DOMAINS.iter().position(|d| *d == domain)?;
        self.0[at].get(number as usize)?.as_ref()
    }

    /// Returns each call with its domain and number.
    pub fn all(&self) -> impl Iterator<Item = (u32, u32, &Call)> {
        let domains = DOMAINS.into_iter().zip(&self.0);
        domains.flat_map(|(domain, calls)| {
            let numbered = (0..).zip(calls);
            numbered.filter_map(move |(number, call)| Some((domain, number, call.as_ref()?)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_spool::event::WaitKind;

    const ALL: CallSelection = CallSelection {
        calls: true,
        waits: true,
        events: true,
    };

    fn call(name: &'static str) -> Option<Call> {
        let domain = match name.starts_with("cuda") {
            true => domain::RUNTIME,
            false => domain::DRIVER,
        };
        Call::new(domain, 7, name, ALL)
    }

    #[test]
    fn every_version_of_a_call_has_the_same_effect() {
        use Effect::*;
        for (effect, names) in [
            (
                Some(Record { has_flags: false }),
                &[
                    "cudaEventRecord_v3020",
                    "cudaEventRecord_ptsz_v7000",
                    "cuEventRecord",
                    "cuEventRecord_ptsz",
                ][..],
            ),
            (
                Some(Record { has_flags: true }),
                &[
                    "cudaEventRecordWithFlags_v11010",
                    "cuEventRecordWithFlags_ptsz",
                ],
            ),
            (
                Some(Wait(WaitKind::QueueForEvent)),
                &["cudaStreamWaitEvent_ptsz_v7000", "cuStreamWaitEvent"],
            ),
            (
                Some(Wait(WaitKind::HostForQueue)),
                &["cudaStreamSynchronize_v3020", "cuStreamQuery_ptsz"],
            ),
            (
                Some(Wait(WaitKind::HostForEvent)),
                &["cuEventSynchronize", "cudaEventQuery_v3020"],
            ),
            (
                Some(Wait(WaitKind::HostForContext)),
                &["cudaDeviceSynchronize_v3020", "cuCtxSynchronize"],
            ),
            (Some(WaitForNamedContext), &["cuCtxSynchronize_v2"]),
            (
                Some(RecordInGraph { event_parameter: 4 }),
                &[
                    "cuGraphAddEventRecordNode",
                    "cudaGraphAddEventRecordNode_v11010",
                ],
            ),
            (
                Some(RecordInGraph { event_parameter: 2 }),
                &["cudaGraphExecEventRecordNodeSetEvent_v11010"],
            ),
            (
                Some(Submit {
                    stream_parameter: 0,
                }),
                &[
                    "cudaLaunchHostFunc_v10000",
                    "cuStreamAddCallback_ptsz",
                    "cuStreamWaitValue32_v2",
                ],
            ),
            (
                Some(Submit {
                    stream_parameter: 3,
                }),
                &["cudaWaitExternalSemaphoresAsync_ptsz_v11020"],
            ),
            (Some(SubmitOperations), &["cuStreamBatchMemOp_v2"]),
            (
                Some(Instantiate),
                &["cuGraphInstantiateWithFlags", "cudaGraphInstantiate_v12000"],
            ),
            (Some(LaunchGraph), &["cuGraphLaunch_ptsz"]),
            (
                Some(Destroy),
                &[
                    "cudaEventDestroy_v3020",
                    "cuEventDestroy",
                    "cuEventDestroy_v2",
                ],
            ),
            (
                Some(RecordInContext),
                &["cuCtxRecordEvent", "cudaExecutionCtxRecordEvent_v13010"],
            ),
            (
                None,
                &[
                    "cudaExecutionCtxSynchronize_v13010",
                    "cudaEventCreate_v3020",
                    "cuGraphEventRecordNodeGetEvent",
                    "cuStreamWriteValue32_v2",
                    "cudaGetDevice_v3020",
                ],
            ),
        ] {
            for name in names {
                assert_eq!(call(name).and_then(|c| c.effect), effect, "{name}");
            }
        }
    }

    #[test]
    fn launches_are_recorded_as_the_drivers_calls_alone() {
        let is_recorded = |name| call(name).is_some_and(|call| call.is_recorded);
        for name in [
            "cuLaunchKernel",
            "cuGraphLaunch_ptsz",
            "cudaLaunchHostFunc_v10000",
        ] {
            assert!(is_recorded(name), "{name}");
        }
        for name in [
            "cudaLaunchKernel_v7000",
            "cudaGraphLaunch_v10000",
            "cuEventDestroy_v2",
        ] {
            assert!(!is_recorded(name), "{name}");
        }
        assert!(is_recorded("cudaMemcpyAsync_v3020"));
    }

    #[test]
    fn the_default_stream_of_some_calls_is_the_threads_own() {
        let per_thread = |name| call(name).is_some_and(|call| call.per_thread);
        assert!(per_thread("cuStreamSynchronize_ptsz"));
        assert!(per_thread("cudaStreamSynchronize_ptsz_v7000"));
        assert!(!per_thread("cuStreamSynchronize"));
    }
}
