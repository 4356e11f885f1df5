//! Polls that follow each other closely are one row, as in a recording.

use gapscope_trace::Tables;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::{HostCall, Table, UNKNOWN_RESULT};
use rustc_hash::FxHashMap;

/// Polls that are further apart are not one.
const BETWEEN_POLLS_NS: i64 = 100_000;

/// The polls of each thread that may go on.
#[derive(Debug, Default)]
pub(super) struct Polls {
    open: FxHashMap<(ProcessId, Option<ThreadId>), HostCall>,
}

impl Polls {
    /// A poll. What it found is not in the file.
    pub(super) fn poll(&mut self, mut row: HostCall, tables: &mut Tables) {
        row.result = UNKNOWN_RESULT;
        let key = (row.process, row.thread);
        if let Some(open) = self.open.get_mut(&key) {
            let end_ns = open.start_ns + open.duration_ns;
            if open.function == row.function && row.start_ns - end_ns <= BETWEEN_POLLS_NS {
                let end_ns = end_ns.max(row.start_ns + row.duration_ns);
                open.duration_ns = end_ns - open.start_ns;
                open.count = open.count.saturating_add(1);
                open.busy_ns = open.busy_ns.saturating_add(row.busy_ns);
                return;
            }
        }
        if let Some(before) = self.open.insert(key, row) {
            tables.host_calls.push(before);
        }
    }

    /// A thread does something else.
    pub(super) fn end_of(
        &mut self,
        process: ProcessId,
        thread: Option<ThreadId>,
        tables: &mut Tables,
    ) {
        if let Some(open) = self.open.remove(&(process, thread)) {
            tables.host_calls.push(open);
        }
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self, tables: &mut Tables) {
        let mut open: Vec<HostCall> = self.open.drain().map(|(_, row)| row).collect();
        open.sort_by_key(|row| (row.start_ns, row.thread));
        for row in open {
            tables.host_calls.push(row);
        }
    }
}
