//! Finds when each process of a trace first used a GPU, so that a device that idles before is not said to wait for a thread of
//! the process. Only traces in which several processes use GPUs need this.

use gapscope_timeline::Timeline;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::Table;
use std::collections::{HashMap, HashSet};

/// The time of the first use of a GPU by each process; empty where at most one process uses GPUs.
#[derive(Debug, Default)]
pub(super) struct FirstUse(HashMap<ProcessId, i64>);

impl FirstUse {
    pub(super) fn new(timeline: &Timeline) -> FirstUse {
        let trace = timeline.trace;
        let processes: HashSet<ProcessId> = (trace.manifest.devices.iter())
            .map(|device| device.process)
            .collect();
        let mut first = HashMap::new();
        if processes.len() < 2 {
            return FirstUse(first);
        }
        let mut see = |process, at_ns: i64| {
            let first_ns = first.entry(process).or_insert(at_ns);
            *first_ns = at_ns.min(*first_ns);
        };
        let calls = &trace.tables.host_calls;
        let submissions = &trace.tables.submissions;
        for row in 0..calls.len() {
            see(calls.process[row], calls.start_ns[row]);
        }
        for row in 0..submissions.len() {
            see(submissions.process[row], submissions.start_ns[row]);
        }
        // Work whose submission is not in the trace shows its process, too.
        let owners = queue_owners(timeline);
        timeline.each_work(|work| {
            if let Some(process) = owners[timeline.queue_of(work) as usize] {
                see(process, work.interval.start_ns);
            }
        });
        FirstUse(first)
    }

    /// Returns the time at which a process first used a GPU; `None` where that does not matter.
    pub(super) fn of_process(&self, process: ProcessId) -> Option<i64> {
        self.0.get(&process).copied()
    }
}

/// Returns for each queue the process that its device belongs to, where the manifest says.
fn queue_owners(timeline: &Timeline) -> Vec<Option<ProcessId>> {
    let manifest = &timeline.trace.manifest;
    let owner = |row: u32| {
        let device = manifest.queues.get(row as usize)?.device;
        let mut devices = manifest.devices.iter();
        Some(devices.find(|row| row.id == device)?.process)
    };
    (timeline.queues.iter())
        .map(|queue| queue.row.and_then(owner))
        .collect()
}
