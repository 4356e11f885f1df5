//! Chooses the advice on idle time inside of submission calls: by what most of the time submits, and for slow calls by what holds them
//! up.

use super::super::slow_launches::Reasons;
use super::super::submit_calls::{SlowCalls, Submitted};
use super::{Adviser, READ_LESS, pinned};
use gapscope_timeline::quantity::duration;
use gapscope_timeline::thresholds::SEVERAL;
use gapscope_timeline::{Work, WorkKind};
use gapscope_trace::ids::SubmissionId;
use gapscope_trace::manifest::Api;

impl Adviser<'_> {
    /// Returns the advice on idle time inside of submission calls: first on what has most of it.
    pub(super) fn for_submit_calls(&self, usual: &str, total_ns: i64) -> String {
        let calls = &self.idle_time.submit_calls;
        if let Some(slow) = calls.slow(self.timeline, total_ns) {
            return self.for_slow_calls(&slow);
        }
        if let Some(slow) = calls
            .slow_launches(self.timeline, total_ns)
            .filter(|_| self.is_cuda())
        {
            return self.for_slow_calls(&slow);
        }
        if calls.is_mostly(Submitted::PageableCopy, total_ns) {
            return format!(
                "most of this time passes in copies of pageable memory, which the call itself moves: {}",
                pinned(self.timeline)
            );
        }
        match self.words.api {
            Api::Cuda | Api::Hip => {}
            _ if self.mean_command_buffers >= SEVERAL => {
                return format!(
                    "{} are in each submission already: submit less often, or from a thread of its own",
                    self.command_buffers(),
                );
            }
            _ => return usual.to_owned(),
        }
        match self.mean_dispatches {
            Some(kernels) if calls.is_mostly(Submitted::Graph, total_ns) => match kernels < SEVERAL {
                true => format!(
                    "most of this time passes in launches of graphs, of {kernels:.1} kernels each: a graph helps only with more kernels in it"
                ),
                false => format!(
                    "most of this time passes in launches of graphs, of {kernels:.1} kernels each: launch the next before the last has ended"
                ),
            },
            _ if calls.is_mostly(Submitted::Read, total_ns) => {
                format!("most of this time passes in reads of small results: {READ_LESS}")
            }
            _ if calls.is_mostly(Submitted::Copy, total_ns) => {
                "most of this time passes in starts of copies: join small ones, and start them before the last work has ended".to_owned()
            }
            _ if !self.helps_graph() => "launch the next before the last work has ended".to_owned(),
            Some(_) => "put the launches that are in no graph into one, or fuse kernels".to_owned(),
            None => usual.to_owned(),
        }
    }

    /// Returns what is known of slow calls that took most of the time.
    fn for_slow_calls(&self, slow: &SlowCalls) -> String {
        let (name, is_first) = self.submitted_by(slow.submission);
        let longest = match &name {
            Some(name) => format!("{} for {name}", duration(slow.longest_ns)),
            None => duration(slow.longest_ns),
        };
        let calls = match slow.count {
            1 => format!(
                "one call took {} of this time ({longest})",
                duration(slow.idle_ns)
            ),
            several => format!(
                "{several} calls took {} of this time (the longest {longest})",
                duration(slow.idle_ns)
            ),
        };
        let usual = match slow.usual_ns {
            Some(ns) => format!("where the usual call takes {}", duration(ns)),
            None => "where a launch takes some µs".to_owned(),
        };
        let why = match (slow.count, self.why_slow(slow)) {
            (1, _) if is_first => {
                "the call was the first of this kernel, for which the driver loads code: launch each kernel once before the loop".to_owned()
            }
            (_, Some(why)) => why,
            (1, None) => {
                "what held the call up is not in the trace, such as memory that the driver had to allocate, or a lock".to_owned()
            }
            (_, None) => {
                "what held the calls up is not in the trace, such as memory that the driver had to allocate, a lock, or a tool".to_owned()
            }
        };
        format!("{calls}, {usual}: {why}")
    }

    /// Returns why most of the slow calls took so long, with what to do; `None` where the trace does not show it.
    fn why_slow(&self, slow: &SlowCalls) -> Option<String> {
        let reasons = Reasons::new(self.timeline, slow.least_ns);
        if reasons.are_first() {
            return Some("most were the first of their kernel, for which the driver loads code: keep kernels the same, and launch each once before the loop".to_owned());
        }
        let function = reasons.behind()?;
        Some(format!(
            "most waited while another thread was in {function}, perhaps for one lock of the driver: call it at another time, or less often"
        ))
    }

    /// Returns the name of the work that a submission starts with, and whether that is a kernel that had not run before.
    fn submitted_by(&self, submission: SubmissionId) -> (Option<String>, bool) {
        let timeline = self.timeline;
        let row = timeline.submission_ids.row(submission);
        let Some(times) = timeline.submissions.get(row as usize) else {
            return (None, false);
        };
        let gpu = &timeline.gpus[timeline.queues[times.queue as usize].gpu as usize];
        let from =
            (gpu.works).partition_point(|work| work.interval.start_ns < times.first_start_ns);
        let mut later = gpu.works.range(from..gpu.works.len());
        let Some(work) = later.find(|work| timeline.submission_of(work) == row) else {
            return (None, false);
        };
        let kernel = |work: &Work| match work.kind() {
            WorkKind::Dispatch => timeline.kernel_row(work.row()),
            _ => None,
        };
        let mine = kernel(&work);
        let mut earlier = gpu.works.range(0..from);
        let is_first = mine.is_some() && !earlier.any(|work| kernel(&work) == mine);
        (Some(timeline.name_of(&work)), is_first)
    }
}
