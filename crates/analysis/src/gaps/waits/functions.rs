//! Finds the times at which the host functions of queues ran, and the submissions that they belong to.
//!
//! A queue runs its host functions one after the other, so the first function to start after a piece of work belongs
//! to the first submission after that work. A host function is code of the program that a queue runs on the host, put
//! there by a submission of its own or as a host node of a graph. Functions are matched with submissions by time,
//! since calls do not name their submission.

use gapscope_timeline::intervals::{self, Interval};
use gapscope_timeline::{Standing, Timeline};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{HostCallKind, SubmissionKind, Table};
use std::collections::{HashMap, HashSet};

/// The times of host functions by queue and by submission.
#[derive(Debug, Default)]
pub(super) struct HostFunctions {
    /// For each queue's index, the set of times at which functions ran for the queue. Empty where no times are known.
    during: Vec<Vec<Interval>>,
    /// The time at which the function of a submission ran, by the submission's row, where that time is known.
    times: HashMap<u32, Interval>,
    /// The rows of submissions whose graphs have more host nodes than functions are known to have run.
    untimed_nodes: HashSet<u32>,
}

/// Counts the host nodes of the graphs that submissions launch, by row. Submissions without any are left out, and so are all
/// where graphs are timed as a whole, host nodes included.
pub(super) fn host_nodes(timeline: &Timeline) -> HashMap<u32, u64> {
    let mut nodes = HashMap::new();
    if timeline.trace.manifest.sampling_mode == SamplingMode::CommandBuffer {
        return nodes;
    }
    let counts = &timeline.trace.tables.command_buffers.host_functions;
    for (times, count) in timeline.command_buffers.iter().zip(counts) {
        if let Some(count @ 1..) = count
            && times.submission != NONE
        {
            *nodes.entry(times.submission).or_default() += u64::from(count);
        }
    }
    nodes
}

impl HostFunctions {
    /// Finds the functions of submissions, which `queues` has by queue in the order of their calls. `nodes` comes
    /// from [`host_nodes`].
    pub fn new(
        timeline: &Timeline,
        queues: &[Vec<u32>],
        nodes: &HashMap<u32, u64>,
    ) -> HostFunctions {
        let mut functions = HostFunctions {
            during: calls(timeline),
            ..HostFunctions::default()
        };
        for (queue, rows) in queues.iter().enumerate() {
            functions.find(timeline, queue, rows, nodes);
        }
        functions.during.iter_mut().for_each(intervals::union);
        functions
    }

    /// Finds the call that ran the function of each submission of a queue, whose submissions are `rows`: the first
    /// that starts after the call and the work before, and before the next work starts. Notes the graphs with too few
    /// calls.
    fn find(&mut self, timeline: &Timeline, queue: usize, rows: &[u32], nodes: &HashMap<u32, u64>) {
        let table = &timeline.trace.tables.submissions;
        let is_function = |row: u32| table.kind[row as usize] == SubmissionKind::HostFunction;
        if !(rows.iter()).any(|row| is_function(*row) || nodes.contains_key(row)) {
            return;
        }
        let calls = self.during.get(queue).map_or(&[][..], Vec::as_slice);
        let before = |ns: i64| calls.partition_point(|call| call.start_ns < ns);
        let gpu = timeline.queues[queue].gpu as usize;
        let error_ns = timeline.clock_error_ns(gpu).unwrap_or(0).clamp(0, 1 << 40);
        // When the next work after each submission starts, at the latest.
        let mut limits_ns = vec![i64::MAX; rows.len()];
        let mut next_ns = i64::MAX;
        for (row, limit_ns) in rows.iter().zip(&mut limits_ns).rev() {
            *limit_ns = next_ns;
            if let Standing::Timed(work) = timeline.standing(*row) {
                next_ns = work.start_ns.saturating_add(error_ns);
            }
        }
        let (mut taken, mut ended_ns) = (0, i64::MIN);
        for (row, limit_ns) in rows.iter().zip(limits_ns) {
            let from_ns = table.start_ns[*row as usize].max(ended_ns);
            if let Some(count) = nodes.get(row)
                && (before(limit_ns).saturating_sub(before(from_ns)) as u64) < *count
            {
                self.untimed_nodes.insert(*row);
            }
            match timeline.standing(*row) {
                Standing::Timed(work) => {
                    ended_ns = ended_ns.max(work.end_ns.saturating_sub(error_ns));
                }
                Standing::NoWork(SubmissionKind::HostFunction) => {
                    taken = before(from_ns).max(taken);
                    if let Some(call) = calls.get(taken)
                        && call.start_ns < limit_ns
                    {
                        self.times.insert(*row, *call);
                        taken += 1;
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the times at which functions ran for a queue that overlap `window`.
    pub fn during(&self, queue: u32, window: Interval) -> &[Interval] {
        let Some(all) = self.during.get(queue as usize) else {
            return &[];
        };
        let rest = &all[all.partition_point(|call| call.end_ns <= window.start_ns)..];
        &rest[..rest.partition_point(|call| call.start_ns < window.end_ns)]
    }

    /// Returns the time at which the function of a submission ran, or `None` where it is not known.
    pub fn time_of(&self, row: u32) -> Option<Interval> {
        self.times.get(&row).copied()
    }

    /// Returns true where no function is known to have run, and no graph has host nodes of unknown times.
    pub fn is_empty(&self) -> bool {
        self.during.iter().all(Vec::is_empty) && self.untimed_nodes.is_empty()
    }

    /// Returns true where a submission's graph has host nodes of unknown times.
    pub fn has_untimed_nodes(&self, row: u32) -> bool {
        !self.untimed_nodes.is_empty() && self.untimed_nodes.contains(&row)
    }
}

/// Returns the times at which the host ran functions, by queue, in order of start.
fn calls(timeline: &Timeline) -> Vec<Vec<Interval>> {
    let table = &timeline.trace.tables.host_calls;
    let mut queues: Vec<Vec<Interval>> = Vec::new();
    for row in 0..table.len() {
        if table.call[row] != HostCallKind::HostFunction {
            continue;
        }
        let Some(queue) = table
            .queue
            .at(row)
            .and_then(|id| timeline.queue_ids.get(id))
        else {
            continue;
        };
        let (start_ns, duration_ns) = (table.start_ns[row], table.duration_ns[row]);
        if let Some(call) = Interval::from_row(Some(start_ns), Some(duration_ns)) {
            queues.resize(timeline.queues.len(), Vec::new());
            queues[queue].push(call);
        }
    }
    for calls in &mut queues {
        calls.sort_unstable();
    }
    queues
}
