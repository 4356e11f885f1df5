//! The figures by which two works are compared, such as busy time or the number of dispatches. A work is the work of
//! one side of a comparison: of a label, a window or a trace. An evaluation is one execution of a work.

use schemars::JsonSchema;
use serde::Serialize;

/// What of two works is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Figure {
    /// Dispatches.
    #[default]
    #[serde(rename = "dispatches")]
    Dispatches,
    /// Workgroups of all dispatches.
    #[serde(rename = "workgroups")]
    Workgroups,
    /// Threads in these workgroups.
    #[serde(rename = "threads")]
    Threads,
    /// Command buffers (CUDA: graph launches). One that several evaluations share counts for each in part.
    #[serde(rename = "command buffers")]
    CommandBuffers,
    /// Submissions; shared ones likewise.
    #[serde(rename = "submissions")]
    Submissions,
    /// Bytes of the ranges bound for reading and for writing.
    #[serde(rename = "bytes bound")]
    BoundBytes,
    /// Bytes that transfers wrote.
    #[serde(rename = "transfer bytes")]
    TransferBytes,
    /// Time in which the GPU was busy.
    #[serde(rename = "GPU busy ns")]
    GpuBusy,
    /// Time from the start of the first work to the end of the last.
    #[serde(rename = "wall ns")]
    Wall,
    /// Time from the start of an evaluation's work to the start of the next one's, where they follow each other and no other work
    /// starts in between: what an evaluation takes in a loop, the host's part included.
    #[serde(rename = "start to start ns")]
    Pace,
}

impl Figure {
    /// All figures, in the order in which reports list them.
    pub const ALL: [Figure; 10] = [
        Figure::Dispatches,
        Figure::Workgroups,
        Figure::Threads,
        Figure::CommandBuffers,
        Figure::Submissions,
        Figure::BoundBytes,
        Figure::TransferBytes,
        Figure::GpuBusy,
        Figure::Wall,
        Figure::Pace,
    ];

    /// Returns true for times; the others are counts and bytes.
    pub const fn is_time(self) -> bool {
        matches!(self, Figure::GpuBusy | Figure::Wall | Figure::Pace)
    }
}
