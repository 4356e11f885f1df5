//! Says where a recording was to have samples of stacks and has none.

use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::manifest::Loss;
use gapscope_trace::tables::{SampleSource, Samples, Submissions, Table};
use gapscope_trace::{LossKind, Selection, Trace};
use std::collections::BTreeSet;

/// Returns the loss of all samples of stacks: the recording asked for some, threads submitted work, and none was taken, for which the
/// trace gives no reason.
///
/// The columns that this reads are those of [`lost_stacks_selection`].
pub fn lost_stacks(trace: &Trace) -> Option<Loss> {
    trace.manifest.stack_rate_hz?;
    let is_unread = (trace.unread.iter()).any(|unread| unread.table == Samples::NAME);
    let has_samples = trace.tables.samples.source.contains(&SampleSource::Sampled);
    let is_explained = (trace.manifest.losses.iter())
        .any(|loss| [LossKind::Stacks, LossKind::StackSamples].contains(&loss.kind));
    let submissions = &trace.tables.submissions;
    let threads: BTreeSet<(ProcessId, ThreadId)> = (0..submissions.len())
        .filter_map(|row| Some((submissions.process[row], submissions.thread.at(row)?)))
        .collect();
    let is_lost = !is_unread && !has_samples && !is_explained && !threads.is_empty();
    is_lost.then(|| {
        let because = "no sample was taken of the threads that submitted, which ended too soon for one: no code is named";
        Loss::new(LossKind::Stacks, threads.len() as u64, because)
    })
}

/// Returns the part of a trace that [`lost_stacks`] reads.
pub fn lost_stacks_selection() -> Selection {
    Selection::manifest()
        .columns::<Samples>(&["source"])
        .columns::<Submissions>(&["process", "thread"])
}
