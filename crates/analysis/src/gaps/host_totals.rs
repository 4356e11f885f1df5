//! Adds up the time that host threads spent in each kind of call while devices were idle. A segment is a stretch of a
//! thread's time in one call.

use super::HostTime;
use gapscope_timeline::host::{HostThreads, Segment};
use gapscope_trace::tables::HostCallKind;

/// The name of the time that a thread spends outside of the calls that the trace knows.
const OUTSIDE: &str = "outside of GPU calls";

/// The sum of the time in calls of one kind and function.
#[derive(Debug, Clone, Copy)]
struct CallTotal {
    call: HostCallKind,
    /// The index of the function's name, or [`NONE`](gapscope_trace::lookup::NONE).
    function: u32,
    count: u64,
    total_ns: i64,
}

/// Sums of host time by call, and outside of calls.
#[derive(Debug, Clone, Default)]
pub(super) struct HostTotals {
    /// A sum for each pair of call and function that occurs.
    calls: Vec<CallTotal>,
    outside_ns: i64,
}

impl HostTotals {
    /// Adds `ns` of a segment, a stretch of a thread's time in one call, or in a folded row of several.
    pub(super) fn add_segment(&mut self, segment: &Segment, ns: i64) {
        let Segment { call, function, .. } = *segment;
        // A program calls few functions.
        let known = |total: &CallTotal| total.call == call && total.function == function;
        let at = match self.calls.iter().position(known) {
            Some(at) => at,
            None => {
                self.calls.push(CallTotal {
                    call,
                    function,
                    count: 0,
                    total_ns: 0,
                });
                self.calls.len() - 1
            }
        };
        let total = &mut self.calls[at];
        total.count = total.count.saturating_add(u64::from(segment.count));
        total.total_ns = total.total_ns.saturating_add(ns);
    }

    /// Adds the sums of later time.
    pub(super) fn add_all(&mut self, later: HostTotals) {
        for total in later.calls {
            let known =
                |mine: &&mut CallTotal| mine.call == total.call && mine.function == total.function;
            match self.calls.iter_mut().find(known) {
                Some(mine) => {
                    mine.count = mine.count.saturating_add(total.count);
                    mine.total_ns = mine.total_ns.saturating_add(total.total_ns);
                }
                None => self.calls.push(total),
            }
        }
        self.add_outside(later.outside_ns);
    }

    pub(super) fn add_outside(&mut self, ns: i64) {
        self.outside_ns = self.outside_ns.saturating_add(ns);
    }

    /// Returns a row for each call, the longest first.
    pub(super) fn into_rows(self, host: &HostThreads) -> Vec<HostTime> {
        let calls = self.calls.into_iter().map(|total| HostTime {
            call: total.call.as_str(),
            function: host.function_name(total.function).map(str::to_owned),
            count: total.count,
            total_ns: total.total_ns,
        });
        let outside = (self.outside_ns > 0).then_some(HostTime {
            call: OUTSIDE,
            function: None,
            count: 0,
            total_ns: self.outside_ns,
        });
        let mut rows: Vec<HostTime> = calls.chain(outside).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        rows
    }
}
