//! Returns the name and the details of slices, such as the kernel and the workgroups of a dispatch, as pairs of key
//! and value that all formats show.

use super::Scene;
use crate::slice::{LaneSlice, SliceKind};
use crate::texts::TextId;
use gapscope_trace::ids::{Id, LabelId};

macro_rules! keys {
    ($($key:ident = $name:literal,)+) => {
        /// The key of a detail, named after the column of the trace if there is one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum DetailKey { $($key,)+ }

        impl DetailKey {
            pub const ALL: &[DetailKey] = &[$(DetailKey::$key),+];
            pub const fn as_str(self) -> &'static str {
                match self { $(DetailKey::$key => $name,)+ }
            }
        }
    };
}
keys! {
    CommandBuffer = "command_buffer",
    Position = "position",
    Label = "label",
    GroupsX = "groups_x",
    GroupsY = "groups_y",
    GroupsZ = "groups_z",
    Local = "local_size",
    EntryPoint = "entry_point",
    Source = "source",
    Specialisation = "specialisation",
    Kernel = "kernel",
    Bytes = "bytes",
    SourceBuffer = "source_buffer",
    DestinationBuffer = "destination_buffer",
    Submission = "submission",
    Dispatches = "dispatches",
    Transfers = "transfers",
    Timing = "timing",
    Count = "count",
    BusyNs = "busy_ns",
    Queue = "queue",
    Result = "result",
    Scope = "scope",
    Meaning = "meaning",
    GapNs = "gap_ns",
}

/// The value of a detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailValue {
    Unsigned(u64),
    Signed(i64),
    Text(TextId),
}

impl Scene<'_> {
    /// Returns the name of a slice.
    pub(crate) fn name(&self, drawn: &LaneSlice) -> TextId {
        let (tables, names) = (&self.trace.tables, &self.names);
        let LaneSlice {
            slice,
            dispatch,
            marker,
        } = drawn;
        let row = slice.row as usize;
        match slice.kind {
            SliceKind::Dispatch => names.kernel(dispatch.kernel).name,
            SliceKind::Transfer => names.of_static(tables.transfers.kind[row].as_str()),
            SliceKind::Opaque => names.of_static(tables.opaque_work.kind[row].as_str()),
            SliceKind::CommandBuffer => names.command_buffer(row),
            SliceKind::Marker => names.label(marker.label).text,
            SliceKind::HostCall => names.of_static(tables.host_calls.call[row].as_str()),
            SliceKind::Gap => names.of_static(self.gaps[row].cause.as_str()),
        }
    }

    /// Calls `take` with each known detail of a slice. `E` is the error of `take`.
    pub(crate) fn details<E>(
        &self,
        drawn: &LaneSlice,
        mut take: impl FnMut(DetailKey, DetailValue) -> Result<(), E>,
    ) -> Result<(), E> {
        use DetailValue::{Signed, Text, Unsigned};
        let LaneSlice {
            slice,
            dispatch,
            marker,
        } = drawn;
        let (tables, names) = (&self.trace.tables, &self.names);
        let row = slice.row as usize;
        macro_rules! known_id {
            ($key:ident, $value:expr) => {
                if let Some(value) = $value {
                    take(DetailKey::$key, Unsigned(value.number()))?;
                }
            };
        }
        macro_rules! known_number {
            ($key:ident, $value:expr) => {
                if let Some(value) = $value {
                    take(DetailKey::$key, Unsigned(u64::from(value)))?;
                }
            };
        }
        let label = |id: Option<LabelId>| id.map(|id| Text(names.label(id).path));
        match slice.kind {
            SliceKind::Dispatch => {
                let [x, y, z] = dispatch.groups;
                known_number!(GroupsX, x);
                known_number!(GroupsY, y);
                known_number!(GroupsZ, z);
                let kernel = names.kernel(dispatch.kernel);
                for (key, text) in &kernel.details {
                    take(*key, Text(*text))?;
                }
                take(DetailKey::Kernel, Unsigned(dispatch.kernel.number()))?;
                known_id!(CommandBuffer, dispatch.command_buffer);
                known_id!(Submission, dispatch.submission);
                take(DetailKey::Position, Unsigned(dispatch.position.into()))?;
                if let Some(path) = label(dispatch.label) {
                    take(DetailKey::Label, path)?;
                }
            }
            SliceKind::Transfer => {
                let t = &tables.transfers;
                known_number!(Bytes, t.bytes.at(row));
                known_id!(SourceBuffer, t.source.at(row));
                known_id!(DestinationBuffer, t.destination.at(row));
                known_id!(CommandBuffer, t.command_buffer.at(row));
                known_id!(Submission, t.submission.at(row));
                take(DetailKey::Position, Unsigned(t.position[row].into()))?;
                if let Some(path) = label(t.label.at(row)) {
                    take(DetailKey::Label, path)?;
                }
            }
            SliceKind::Opaque => {
                let t = &tables.opaque_work;
                known_id!(CommandBuffer, t.command_buffer.at(row));
                known_id!(Submission, t.submission.at(row));
                take(DetailKey::Position, Unsigned(t.position[row].into()))?;
                if let Some(path) = label(t.label.at(row)) {
                    take(DetailKey::Label, path)?;
                }
            }
            SliceKind::CommandBuffer => {
                let t = &tables.command_buffers;
                take(DetailKey::CommandBuffer, Unsigned(t.id[row].number()))?;
                take(DetailKey::Submission, Unsigned(t.submission[row].number()))?;
                take(DetailKey::Dispatches, Unsigned(t.dispatches[row].into()))?;
                take(DetailKey::Transfers, Unsigned(t.transfers[row].into()))?;
                take(
                    DetailKey::Timing,
                    Text(names.of_static(t.timing[row].as_str())),
                )?;
                if let Some(path) = label(t.label.at(row)) {
                    take(DetailKey::Label, path)?;
                }
            }
            SliceKind::Marker => {
                take(DetailKey::Label, Text(names.label(marker.label).path))?;
                take(
                    DetailKey::Scope,
                    Text(names.of_static(marker.scope.as_str())),
                )?;
                known_id!(CommandBuffer, marker.command_buffer);
            }
            SliceKind::HostCall => {
                let t = &tables.host_calls;
                take(DetailKey::Count, Unsigned(t.count[row].into()))?;
                take(DetailKey::BusyNs, Signed(t.busy_ns[row]))?;
                known_id!(Queue, t.queue.at(row));
                known_number!(Bytes, t.bytes.at(row));
                take(DetailKey::Result, Signed(t.result[row].into()))?;
            }
            SliceKind::Gap => {
                let gap = &self.gaps[row];
                take(
                    DetailKey::Meaning,
                    Text(names.of_static(gap.cause.explanation())),
                )?;
                take(DetailKey::GapNs, Signed(gap.gap_ns))?;
                known_id!(Submission, gap.submission);
            }
        }
        Ok(())
    }
}
