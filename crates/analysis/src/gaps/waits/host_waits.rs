//! Finds when host threads returned from waits for a device: calls of a trace go in, and a time for each thread and moment comes
//! out. Of calls whose work the trace names, that time is known for the submission itself (`recorded_waits.rs`).

use gapscope_timeline::Timeline;
use gapscope_timeline::host::{CallClass, HostThread};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::tables::{HostCallKind, Table, UNKNOWN_RESULT};
use std::collections::HashMap;

/// The waits of host threads for a device, by thread.
pub(super) struct HostWaits(HashMap<HostThread, Vec<Interval>>);

impl HostWaits {
    /// Collects the waits of a trace that did not run into their time limit. Each ends where the first of it and of
    /// all later ones does. Waits for events are left out: the event may have been recorded before the work that was submitted last,
    /// so that their return bounds no work. So are the calls in those rows of their table that `is_left_out` names.
    pub(super) fn new(timeline: &Timeline, is_left_out: &[bool]) -> HostWaits {
        let table = &timeline.trace.tables.host_calls;
        let mut threads: HashMap<HostThread, Vec<Interval>> = HashMap::new();
        for row in 0..table.len() {
            if CallClass::from_call(table.call[row]) != CallClass::Wait
                || table.call[row] == HostCallKind::WaitEvent
                || is_left_out.get(row) == Some(&true)
                || !matches!(table.result[row], 0 | UNKNOWN_RESULT)
            {
                continue;
            }
            let thread = HostThread::from_row(table.process[row], table.thread.at(row));
            let times = (table.start_ns[row], table.duration_ns[row]);
            let wait = Interval::from_row(Some(times.0), Some(times.1));
            if let (Some(thread), Some(wait)) = (thread, wait) {
                threads.entry(thread).or_default().push(wait);
            }
        }
        for waits in threads.values_mut() {
            waits.sort_unstable();
            let mut end_ns = i64::MAX;
            for wait in waits.iter_mut().rev() {
                end_ns = end_ns.min(wait.end_ns);
                wait.end_ns = end_ns;
            }
        }
        HostWaits(threads)
    }

    /// Returns when a thread first returned from a wait that it began at `from_ns` or later.
    pub(super) fn first_return(&self, thread: HostThread, from_ns: i64) -> Option<i64> {
        let waits = self.0.get(&thread)?;
        let at = waits.partition_point(|wait| wait.start_ns < from_ns);
        waits.get(at).map(|wait| wait.end_ns)
    }
}
