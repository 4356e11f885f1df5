//! Says what a loss takes from the GPU work of a trace. The kind of a loss goes in; out comes [`LostWork`], or nothing for losses that
//! leave the work whole, such as those of labels. Whoever asks whether work is missing asks here.

use gapscope_trace::LossKind;

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

/// Returns what a loss of a kind takes from the GPU work; `None` where it takes nothing.
pub fn lost_work(kind: &LossKind) -> Option<LostWork> {
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
