//! Slices: rows with a start and an end.

/// A row that is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub start_ns: i64,
    /// Not before `start_ns`.
    pub end_ns: i64,
    /// Row of the table that `kind` names.
    pub row: u32,
    /// 0: none. For a host call, one more than its place in the scene's flows; otherwise one more than the target that
    /// begins with this slice.
    pub flow: u32,
    pub kind: Kind,
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
