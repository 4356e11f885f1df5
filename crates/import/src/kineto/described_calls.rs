//! Finds the description of a collective around a call: operators of PyTorch have it (`record_param_comms`), and the kernels that
//! are launched inside of them are of that collective.

use super::collect::Collector;
use crate::profile::{ApiCall, Span};
use gapscope_trace::ids::{ProcessId, ThreadId};
use rustc_hash::FxHashMap;

/// PyTorch's descriptions of collectives, by the thread and the time of the operators that have them.
pub(super) struct DescribedCalls {
    /// In order of lane and start.
    calls: Vec<(u32, Span, String)>,
    lanes: FxHashMap<(ProcessId, Option<ThreadId>), u32>,
}

impl DescribedCalls {
    /// Takes the descriptions that were collected.
    pub(super) fn take(collector: &mut Collector) -> DescribedCalls {
        let mut calls = std::mem::take(&mut collector.described_calls);
        calls.sort_by_key(|(lane, span, _)| (*lane, span.start_ns));
        let lanes = collector.lanes.all.iter().zip(0..);
        let lanes = lanes.map(|(lane, index)| ((lane.process, Some(lane.thread)), index));
        DescribedCalls {
            lanes: lanes.collect(),
            calls,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the description of the innermost operator around a call.
    pub(super) fn around(&self, process: ProcessId, call: &ApiCall) -> Option<&str> {
        let lane = *self.lanes.get(&(process, call.thread))?;
        let key = (lane, call.span.start_ns);
        let before = (self.calls).partition_point(|(lane, span, _)| (*lane, span.start_ns) <= key);
        let (own, span, payload) = self.calls.get(before.checked_sub(1)?)?;
        let is_inside = *own == lane && call.span.start_ns <= span.end_ns();
        is_inside.then_some(payload)
    }
}
