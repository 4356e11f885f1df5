//! A piece of work of a device, as it is kept until the whole file is read.

use gapscope_model::Span;
use gapscope_timeline_builder::{TransferFacts, WorkPlace};
use gapscope_trace::ids::KernelId;
use gapscope_trace::tables::OpaqueWorkKind;

/// The identity of a command buffer: its process, its submission and the handle in the file. In gapscope's own
/// exports, handles are unique among all processes and the process is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CommandBufferKey {
    pub pid: u32,
    /// The number of the submission in the file.
    pub submission: Option<u32>,
    pub handle: u64,
}

/// A piece of work.
pub(super) struct Work {
    pub place: WorkPlace,
    pub span: Option<Span>,
    /// The command buffer in which it is.
    pub command_buffer: Option<CommandBufferKey>,
    /// The process and the number of the submission in gapscope's own exports, where its call is told by another piece of its work.
    pub own_submission: Option<(u32, u32)>,
    pub row: WorkRow,
}

/// The part of a row that differs by the kind of work.
pub(super) enum WorkRow {
    Dispatch(KernelId, [Option<u32>; 3]),
    Transfer(TransferFacts),
    Opaque(OpaqueWorkKind),
}
