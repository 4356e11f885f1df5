//! Finds the host call that made each submission.
//!
//! A trace of Vulkan or Metal has a row of `host_calls` for each call that submits, and the call may make several
//! submissions. A launch of CUDA or HIP has only a row of `submissions`, which is then the call itself: it has the
//! thread, the times and the function. Everything that draws or lists calls has to take both.

use gapscope_trace::Trace;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, Table};
use rustc_hash::FxHashMap;

/// The rows of the host calls that made the submissions of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmitCalls {
    /// The row of the call of each submission, or [`NONE`]. Submissions after the last one with such a row are left
    /// out, so that traces without such rows need no memory.
    calls: Vec<u32>,
}

impl SubmitCalls {
    /// Finds the calls of a trace. A call is that of a submission when process, thread and start are the same; of
    /// several such calls it is the first.
    pub fn new(trace: &Trace) -> SubmitCalls {
        let (calls, submissions) = (&trace.tables.host_calls, &trace.tables.submissions);
        let mut starts: FxHashMap<(ProcessId, ThreadId, i64), u32> = FxHashMap::default();
        for (row, kind) in (0..).zip(&calls.call) {
            if may_submit(*kind)
                && let Some(thread) = calls.thread.at(row as usize)
            {
                let key = (
                    calls.process[row as usize],
                    thread,
                    calls.start_ns[row as usize],
                );
                starts.entry(key).or_insert(row);
            }
        }
        let mut all = SubmitCalls::default();
        if starts.is_empty() {
            return all;
        }
        for row in 0..submissions.len() {
            let thread = submissions.thread.at(row);
            let call = thread.and_then(|thread| {
                let key = (submissions.process[row], thread, submissions.start_ns[row]);
                starts.get(&key)
            });
            if let Some(call) = call {
                all.calls.resize(row, NONE);
                all.calls.push(*call);
            }
        }
        all
    }

    /// Returns the row of the host call that made a submission; `None` where the trace has no such row.
    #[inline]
    pub fn call(&self, submission: usize) -> Option<usize> {
        let call = *self.calls.get(submission)?;
        (call != NONE).then_some(call as usize)
    }

    /// Returns true where the row of a submission is the only row of its call and says which thread called, or which
    /// function was called.
    #[inline]
    pub fn is_launch(&self, trace: &Trace, submission: usize) -> bool {
        let submissions = &trace.tables.submissions;
        self.call(submission).is_none()
            && (submissions.thread.at(submission).is_some()
                || matches!(submissions.function.get(submission), Some(Some(_))))
    }
}

/// Returns true for the kinds of calls that may have a row of `host_calls` besides their submissions.
fn may_submit(kind: HostCallKind) -> bool {
    matches!(
        kind,
        HostCallKind::Submit | HostCallKind::BindSparse | HostCallKind::CopyAndWait
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_is_a_launch_only_without_a_host_call_of_its_own() {
        let trace = Trace::from_text(
            "host_call process=1 thread=7 call=submit start_ns=5 duration_ns=2
            host_call process=1 thread=7 call=copy-and-wait start_ns=20 duration_ns=2
            host_call process=1 thread=7 call=other-call start_ns=30 duration_ns=2
            submission id=1 process=1 queue=1 thread=7 start_ns=5 duration_ns=2
            submission id=2 process=1 queue=1 thread=7 start_ns=5 duration_ns=2
            submission id=3 process=1 queue=1 thread=8 start_ns=5 duration_ns=2
            submission id=4 process=1 queue=1 thread=7 start_ns=20 duration_ns=2 function=cudaMemcpy
            submission id=5 process=1 queue=1 thread=7 start_ns=30 duration_ns=2 function=cudaLaunchKernel
            submission id=6 process=1 queue=1 start_ns=40 duration_ns=0
            submission id=7 process=1 queue=1 start_ns=40 duration_ns=2 function=cuLaunchKernel",
        )
        .unwrap();
        let calls = SubmitCalls::new(&trace);
        let rows: Vec<_> = (0..7).map(|row| calls.call(row)).collect();
        assert_eq!(rows, [Some(0), Some(0), None, Some(1), None, None, None]);
        let launches: Vec<_> = (0..7).map(|row| calls.is_launch(&trace, row)).collect();
        assert_eq!(launches, [false, false, true, false, true, false, true]);
    }
}
