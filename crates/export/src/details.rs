//! What exports say of a slice besides its times: its name and its details.

mod names;

pub(crate) use names::Names;

use crate::scene::Scene;
use crate::slice::{Drawn, Kind};
use crate::texts::TextId;
use gapscope_trace::ids::{Id, LabelId};

macro_rules! keys {
    ($($key:ident = $name:literal,)+) => {
        /// A detail: the names are those of the trace's columns where it has them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Key { $($key,)+ }

        impl Key {
            pub const ALL: &[Key] = &[$(Key::$key),+];
            pub const fn as_str(self) -> &'static str {
                match self { $(Key::$key => $name,)+ }
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
pub(crate) enum Value {
    Unsigned(u64),
    Signed(i64),
    Text(TextId),
}

impl Scene<'_> {
    /// What is written on a slice.
    pub(crate) fn name(&self, drawn: &Drawn) -> TextId {
        let (tables, names) = (&self.trace.tables, &self.names);
        let Drawn {
            slice,
            dispatch,
            marker,
        } = drawn;
        let row = slice.row as usize;
        match slice.kind {
            Kind::Dispatch => names.kernel(dispatch.kernel).name,
            Kind::Transfer => names.of_static(tables.transfers.kind[row].as_str()),
            Kind::Opaque => names.of_static(tables.opaque_work.kind[row].as_str()),
            Kind::CommandBuffer => names.command_buffer(row),
            Kind::Marker => names.label(marker.label).text,
            Kind::HostCall => names.of_static(tables.host_calls.call[row].as_str()),
            Kind::Gap => names.of_static(self.gaps[row].cause.as_str()),
        }
    }

    /// Gives each detail of a slice that is known. `E` is the error of the taker.
    pub(crate) fn details<E>(
        &self,
        drawn: &Drawn,
        mut take: impl FnMut(Key, Value) -> Result<(), E>,
    ) -> Result<(), E> {
        use Value::{Signed, Text, Unsigned};
        let Drawn {
            slice,
            dispatch,
            marker,
        } = drawn;
        let (tables, names) = (&self.trace.tables, &self.names);
        let row = slice.row as usize;
        macro_rules! known_id {
            ($key:ident, $value:expr) => {
                if let Some(value) = $value {
                    take(Key::$key, Unsigned(value.number()))?;
                }
            };
        }
        macro_rules! known_number {
            ($key:ident, $value:expr) => {
                if let Some(value) = $value {
                    take(Key::$key, Unsigned(u64::from(value)))?;
                }
            };
        }
        let label = |id: Option<LabelId>| id.map(|id| Text(names.label(id).path));
        match slice.kind {
            Kind::Dispatch => {
                let [x, y, z] = dispatch.groups;
                known_number!(GroupsX, x);
                known_number!(GroupsY, y);
                known_number!(GroupsZ, z);
                let kernel = names.kernel(dispatch.kernel);
                for (key, text) in &kernel.details {
                    take(*key, Text(*text))?;
                }
                take(Key::Kernel, Unsigned(dispatch.kernel.number()))?;
                known_id!(CommandBuffer, dispatch.command_buffer);
                known_id!(Submission, dispatch.submission);
                take(Key::Position, Unsigned(dispatch.position.into()))?;
                if let Some(path) = label(dispatch.label) {
                    take(Key::Label, path)?;
                }
            }
            Kind::Transfer => {
                let t = &tables.transfers;
                known_number!(Bytes, t.bytes.at(row));
                known_id!(SourceBuffer, t.source.at(row));
                known_id!(DestinationBuffer, t.destination.at(row));
                known_id!(CommandBuffer, t.command_buffer.at(row));
                known_id!(Submission, t.submission.at(row));
                take(Key::Position, Unsigned(t.position[row].into()))?;
                if let Some(path) = label(t.label.at(row)) {
                    take(Key::Label, path)?;
                }
            }
            Kind::Opaque => {
                let t = &tables.opaque_work;
                known_id!(CommandBuffer, t.command_buffer.at(row));
                known_id!(Submission, t.submission.at(row));
                take(Key::Position, Unsigned(t.position[row].into()))?;
                if let Some(path) = label(t.label.at(row)) {
                    take(Key::Label, path)?;
                }
            }
            Kind::CommandBuffer => {
                let t = &tables.command_buffers;
                take(Key::CommandBuffer, Unsigned(t.id[row].number()))?;
                take(Key::Submission, Unsigned(t.submission[row].number()))?;
                take(Key::Dispatches, Unsigned(t.dispatches[row].into()))?;
                take(Key::Transfers, Unsigned(t.transfers[row].into()))?;
                take(Key::Timing, Text(names.of_static(t.timing[row].as_str())))?;
                if let Some(path) = label(t.label.at(row)) {
                    take(Key::Label, path)?;
                }
            }
            Kind::Marker => {
                take(Key::Label, Text(names.label(marker.label).path))?;
                take(Key::Scope, Text(names.of_static(marker.scope.as_str())))?;
                known_id!(CommandBuffer, marker.command_buffer);
            }
            Kind::HostCall => {
                let t = &tables.host_calls;
                take(Key::Count, Unsigned(t.count[row].into()))?;
                take(Key::BusyNs, Signed(t.busy_ns[row]))?;
                known_id!(Queue, t.queue.at(row));
                known_number!(Bytes, t.bytes.at(row));
                take(Key::Result, Signed(t.result[row].into()))?;
            }
            Kind::Gap => {
                let gap = &self.gaps[row];
                take(Key::Meaning, Text(names.of_static(gap.cause.explanation())))?;
                take(Key::GapNs, Signed(gap.gap_ns))?;
                known_id!(Submission, gap.submission);
            }
        }
        Ok(())
    }
}
