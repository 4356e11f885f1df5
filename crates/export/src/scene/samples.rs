//! Groups by host thread the samples of stacks that stand for a period of time.

use gapscope_trace::Trace;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::SampleSource;
use std::collections::BTreeMap;

/// The samples of a thread.
#[derive(Debug)]
pub(crate) struct ThreadSamples {
    /// The name of the thread.
    pub name: String,
    pub thread: ThreadId,
    /// Rows of the table `samples`, by time. Each has a period.
    pub rows: Vec<u32>,
}

/// Returns the rows of samples by thread, each list in order of time. Samples of hooks are left out: they stand for a
/// moment, and tools count samples as time.
pub(super) fn by_thread(trace: &Trace) -> BTreeMap<(ProcessId, ThreadId), Vec<u32>> {
    let table = &trace.tables.samples;
    let mut threads: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (row, source) in table.source.iter().enumerate() {
        let stands_for_time = table.period_ns.at(row).is_some_and(|ns| ns > 0);
        if *source == SampleSource::Sampled && stands_for_time {
            let key = (table.process[row], table.thread[row]);
            threads.entry(key).or_default().push(row as u32);
        }
    }
    for rows in threads.values_mut() {
        rows.sort_by_key(|row| table.time_ns[*row as usize]);
    }
    threads
}
