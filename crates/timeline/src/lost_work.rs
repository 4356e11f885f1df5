//! Says what a loss takes from the GPU work of a trace. The kind of a loss goes in; out comes [`LostWork`], or nothing for losses that
//! leave the work whole, such as those of labels. Whoever asks whether work is missing asks here.

use gapscope_trace::manifest::Manifest;
use gapscope_trace::{Loss, LossKind};

/// What a loss takes from the GPU work of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostWork {
    /// Pieces of work: at least as many as were counted have no rows.
    Pieces,
    /// Times of work, or the list of what ran in a command buffer or graph.
    Details,
    /// Calls that hand work over, or the link from work to its call.
    Calls,
    /// Parts of a file, which may have held work, its calls or anything else.
    FileParts,
}

/// Returns the losses from the time that a trace covers. The CUDA activities that the profiler of another tool left out lie outside of
/// the time that its file covers.
pub fn losses_inside(manifest: &Manifest) -> impl Iterator<Item = &Loss> {
    let mut processes = manifest.processes.iter();
    let is_imported = processes.any(|process| process.other_tool().is_some());
    let losses = manifest.losses.iter();
    losses.filter(move |loss| !is_imported || loss.kind != LossKind::CudaActivities)
}

/// Returns the losses that take something from the GPU work of the time that a trace covers, with what they take.
pub fn losses_of_work(manifest: &Manifest) -> impl Iterator<Item = (&Loss, LostWork)> {
    losses_inside(manifest).filter_map(|loss| Some((loss, lost_work(&loss.kind)?)))
}

/// Returns what a loss of a kind takes from the GPU work; `None` where it takes nothing.
fn lost_work(kind: &LossKind) -> Option<LostWork> {
    use LossKind::*;
    match kind {
        Copies
        | CopiesBetweenDevices
        | CommandBuffers
        | CudaActivities
        | CudaActivitiesAtSuddenEnd
        | CudaWork
        | DispatchRows
        | Dispatches
        | DroppedCudaActivities
        | Fills
        | GpuIntervals
        | Transfers => Some(LostWork::Pieces),
        CommandBufferContents
        | CommandBufferRows
        | CommandBufferTimes
        | Commands
        | DispatchTimes
        | GraphLaunches
        | GraphTimes
        | ImportedCommandBufferTimes
        | OpaqueWorkTimes
        | SecondaryContents
        | TransferTimes
        | UnlistedDispatches => Some(LostWork::Details),
        HostCalls | HostCallsOfWork | Submissions | UnambiguousCallsOfWork => Some(LostWork::Calls),
        DatabasePages | DatabaseRows | FileParts | FileRests => Some(LostWork::FileParts),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_say_what_work_they_take() {
        for (kind, expected) in [
            (LossKind::Dispatches, Some(LostWork::Pieces)),
            (LossKind::UnlistedDispatches, Some(LostWork::Details)),
            (LossKind::HostCalls, Some(LostWork::Calls)),
            (LossKind::FileRests, Some(LostWork::FileParts)),
            (LossKind::DatabaseRows, Some(LostWork::FileParts)),
            (LossKind::Labels, None),
            (LossKind::StackSamples, None),
            (LossKind::Other("moon phases".into()), None),
        ] {
            assert_eq!(lost_work(&kind), expected, "{kind}");
        }
    }
}
