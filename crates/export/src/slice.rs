//! Slices: rows with a start and an end.

use gapscope_trace::ids::{CommandBufferId, KernelId, LabelId, SubmissionId};
use gapscope_trace::tables::{Dispatches, MarkerScope, Markers};

/// A row that is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub start_ns: i64,
    /// Not before `start_ns`.
    pub end_ns: i64,
    /// Row of the table that `kind` names. Of dispatches and labels 0 once they are drawn: their tables are not in memory.
    pub row: u32,
    /// 0: none. For a host call, one more than its place in the scene's flows; otherwise one more than the target that
    /// begins with this slice.
    pub flow: u32,
    pub kind: Kind,
}

/// What is said of a dispatch besides its times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dispatch {
    pub kernel: KernelId,
    /// In x, y and z.
    pub groups: [Option<u32>; 3],
    pub command_buffer: Option<CommandBufferId>,
    pub submission: Option<SubmissionId>,
    pub position: u32,
    pub label: Option<LabelId>,
}

impl Dispatch {
    /// That of a row.
    pub fn of(table: &Dispatches, row: usize) -> Dispatch {
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

/// A slice in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub slice: Slice,
    /// Nothing but defaults where the slice is of another kind.
    pub dispatch: Dispatch,
    /// Likewise.
    pub marker: Marker,
}

/// What is said of a label besides its times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marker {
    pub label: LabelId,
    pub scope: MarkerScope,
    pub command_buffer: Option<CommandBufferId>,
}

impl Marker {
    /// That of a row.
    pub fn of(table: &Markers, row: usize) -> Marker {
        Marker {
            label: table.label[row],
            scope: table.scope[row],
            command_buffer: table.command_buffer.at(row),
        }
    }
}

/// What a slice is a row of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Dispatch,
    Transfer,
    Opaque,
    CommandBuffer,
    Marker,
    HostCall,
    /// Of the analyses, not of a table.
    Gap,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Dispatch,
        Kind::Transfer,
        Kind::Opaque,
        Kind::CommandBuffer,
        Kind::Marker,
        Kind::HostCall,
        Kind::Gap,
    ];

    /// Its name as a category of events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Dispatch => "dispatch",
            Kind::Transfer => "transfer",
            Kind::Opaque => "opaque work",
            Kind::CommandBuffer => "command buffer",
            Kind::Marker => "label",
            Kind::HostCall => "host call",
            Kind::Gap => "gap",
        }
    }
}
