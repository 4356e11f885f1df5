//! Returns the name and the details of slices (intervals that tools draw), such as the kernel and the workgroups of a
//! dispatch, as pairs of key and value that all formats show.

use super::Scene;
use crate::slice::{LaneSlice, SliceKind};
use crate::texts::TextId;
use gapscope_trace::ids::{Id, LabelId};

/// Declares [`DetailKey`] from pairs of a variant and its text in exports.
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
    Call = "call",
    Submits = "submits",
    CommandBuffers = "command_buffers",
    Duration = "duration",
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
            SliceKind::HostCall => names.host_call(&tables.host_calls, row),
            SliceKind::Launch => names.launch(&tables.submissions, row),
            SliceKind::Gap => names.of_static(self.gaps[row].cause.as_str()),
        }
    }

    /// Calls `take` with each known detail of a slice.
    pub(crate) fn details(&self, drawn: &LaneSlice, mut take: impl FnMut(DetailKey, DetailValue)) {
        use DetailKey::*;
        let LaneSlice {
            slice,
            dispatch,
            marker,
        } = drawn;
        let (tables, names) = (&self.trace.tables, &self.names);
        let row = slice.row as usize;
        let mut add = |key, value: Option<DetailValue>| {
            if let Some(value) = value {
                take(key, value);
            }
        };
        let number = |number: u64| Some(DetailValue::Unsigned(number));
        let signed = |number: i64| Some(DetailValue::Signed(number));
        let text = |text: &'static str| Some(DetailValue::Text(names.of_static(text)));
        let label = |id: LabelId| DetailValue::Text(names.label(id).path);
        match slice.kind {
            SliceKind::Dispatch => {
                for (key, size) in [GroupsX, GroupsY, GroupsZ].into_iter().zip(dispatch.groups) {
                    add(key, size.and_then(|size| number(size.into())));
                }
                for (key, text) in &names.kernel(dispatch.kernel).details {
                    add(*key, Some(DetailValue::Text(*text)));
                }
                add(Kernel, number(dispatch.kernel.number()));
                add(CommandBuffer, dispatch.command_buffer.map(id));
                add(Submission, dispatch.submission.map(id));
                add(Position, number(dispatch.position.into()));
                add(Label, dispatch.label.map(label));
            }
            SliceKind::Transfer => {
                let t = &tables.transfers;
                add(Bytes, t.bytes.at(row).and_then(number));
                add(SourceBuffer, t.source.at(row).map(id));
                add(DestinationBuffer, t.destination.at(row).map(id));
                add(CommandBuffer, t.command_buffer.at(row).map(id));
                add(Submission, t.submission.at(row).map(id));
                add(Position, number(t.position[row].into()));
                add(Label, t.label.at(row).map(label));
            }
            SliceKind::Opaque => {
                let t = &tables.opaque_work;
                add(CommandBuffer, t.command_buffer.at(row).map(id));
                add(Submission, t.submission.at(row).map(id));
                add(Position, number(t.position[row].into()));
                add(Label, t.label.at(row).map(label));
            }
            SliceKind::CommandBuffer => {
                let t = &tables.command_buffers;
                add(CommandBuffer, Some(id(t.id[row])));
                add(Submission, t.submission[row].if_known().map(id));
                add(Dispatches, number(t.dispatches[row].into()));
                add(Transfers, number(t.transfers[row].into()));
                add(Timing, text(t.timing[row].as_str()));
                add(Label, t.label.at(row).map(label));
            }
            SliceKind::Marker => {
                add(Label, Some(label(marker.label)));
                add(Scope, text(marker.scope.as_str()));
                add(CommandBuffer, marker.command_buffer.map(id));
            }
            SliceKind::HostCall => {
                let t = &tables.host_calls;
                add(Call, text(t.call[row].as_str()));
                add(Count, number(t.count[row].into()));
                add(BusyNs, signed(t.busy_ns[row]));
                add(Queue, t.queue.at(row).map(id));
                add(Bytes, t.bytes.at(row).and_then(number));
                add(Result, signed(t.result[row].into()));
            }
            SliceKind::Launch => {
                let t = &tables.submissions;
                add(Submission, Some(id(t.id[row])));
                add(Submits, text(t.kind[row].as_str()));
                add(Queue, Some(id(t.queue[row])));
                if t.command_buffers[row] > 0 {
                    add(CommandBuffers, number(t.command_buffers[row].into()));
                }
                // Some producers know only the start of a call.
                if t.duration_ns[row] == 0 {
                    add(Duration, text("unknown"));
                }
            }
            SliceKind::Gap => {
                let gap = &self.gaps[row];
                add(Meaning, text(gap.cause.explanation()));
                add(GapNs, signed(gap.gap_ns));
                add(Submission, gap.submission.map(id));
            }
        }
    }
}

/// Returns an id as the value of a detail.
fn id(id: impl Id) -> DetailValue {
    DetailValue::Unsigned(id.number())
}
