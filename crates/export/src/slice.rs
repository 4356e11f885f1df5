//! Defines slices, rows of a trace with a start and an end that a timeline draws, and their facts. A lane holds
//! slices that follow or contain each other. The flow of a call leads to its targets, the work that it submits.

use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::{CommandBufferId, KernelId, LabelId, SubmissionId};
use gapscope_trace::tables::{Dispatches, MarkerScope, Markers};

/// A row that is drawn: its times, its table and row, and the arrows that begin or end there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub start_ns: i64,
    /// The end, which is not before `start_ns`.
    pub end_ns: i64,
    /// The row of the table that `kind` names. Drawn dispatches and labels have 0, because their tables are not in
    /// memory.
    pub row: u32,
    /// 0 for none. For a call, one more than its index in the scene's flows; otherwise one more than the target
    /// that begins with this slice.
    pub flow: u32,
    pub kind: SliceKind,
}

impl Slice {
    /// Makes the slice of a row, without an arrow.
    pub fn new(kind: SliceKind, row: u32, interval: Interval) -> Slice {
        Slice {
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            row,
            flow: 0,
            kind,
        }
    }
}

/// The facts of a dispatch, without its times, as in the table `dispatches`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dispatch {
    pub kernel: KernelId,
    /// The numbers of workgroups in x, y and z.
    pub groups: [Option<u32>; 3],
    pub command_buffer: Option<CommandBufferId>,
    pub submission: Option<SubmissionId>,
    /// The place among the commands of its command buffer, or of its submission without one, from 0.
    pub position: u32,
    pub label: Option<LabelId>,
}

impl Dispatch {
    /// Takes the facts from a row of the table.
    pub fn from_row(table: &Dispatches, row: usize) -> Dispatch {
        Dispatch {
            kernel: table.kernel[row],
            groups: [
                table.groups_x.at(row),
                table.groups_y.at(row),
                table.groups_z.at(row),
            ],
            command_buffer: table.command_buffer.at(row),
            submission: table.submission.at(row),
            position: table.position[row],
            label: table.label.at(row),
        }
    }
}

/// A slice as it is unpacked from its lane, with those facts that no table in memory has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneSlice {
    pub slice: Slice,
    /// The facts of a slice of this kind; the default where the slice is of another kind.
    pub dispatch: Dispatch,
    /// The default where the slice is of another kind.
    pub marker: Marker,
}

/// The facts of a label, without its times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marker {
    pub label: LabelId,
    pub scope: MarkerScope,
    pub command_buffer: Option<CommandBufferId>,
}

impl Marker {
    /// Takes the facts from a row of the table.
    pub fn from_row(table: &Markers, row: usize) -> Marker {
        Marker {
            label: table.label[row],
            scope: table.scope[row],
            command_buffer: table.command_buffer.at(row),
        }
    }
}

/// The table that a slice is a row of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SliceKind {
    Dispatch,
    Transfer,
    Opaque,
    CommandBuffer,
    Marker,
    HostCall,
    /// A submission that has no row of `host_calls`, which is the call itself, such as a launch of CUDA.
    Launch,
    /// A gap comes from the analyses instead of a table.
    Gap,
}

impl SliceKind {
    pub const ALL: [SliceKind; 8] = [
        SliceKind::Dispatch,
        SliceKind::Transfer,
        SliceKind::Opaque,
        SliceKind::CommandBuffer,
        SliceKind::Marker,
        SliceKind::HostCall,
        SliceKind::Launch,
        SliceKind::Gap,
    ];

    /// Returns the name, as a category of events.
    pub const fn as_str(self) -> &'static str {
        match self {
            SliceKind::Dispatch => "dispatch",
            SliceKind::Transfer => "transfer",
            SliceKind::Opaque => "opaque work",
            SliceKind::CommandBuffer => "command buffer",
            SliceKind::Marker => "label",
            SliceKind::HostCall => "host call",
            SliceKind::Launch => "launch",
            SliceKind::Gap => "gap",
        }
    }

    /// Returns true for calls of host threads, from which arrows lead to work.
    pub const fn is_call(self) -> bool {
        matches!(self, SliceKind::HostCall | SliceKind::Launch)
    }
}
