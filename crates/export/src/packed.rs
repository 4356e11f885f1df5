//! Packs the slices of a lane (slices that follow or contain each other) until they are written, in blocks that cores
//! unpack independently: a slice takes some fifteen bytes instead of a hundred, before compression.
//!
//! A slice is its times, in one column of bytes, and its other facts, in another: a head of flags and kind, then what
//! the kind has. [`Lane::push`] packs, [`Lane::slices`] and [`Block::slices`] unpack.

use crate::slice::{Dispatch, LaneSlice, Marker, Slice, SliceKind};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::{CommandBufferId, Id, KernelId, LabelId, SubmissionId};
use gapscope_trace::tables::{MarkerScope, Markers};
use std::borrow::Cow;

/// The number of slices in a full block.
const BLOCK_SLICES: u32 = 4096;

/// Slices in order of time that follow or contain each other.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// The blocks, of which all but the last are full.
    pub blocks: Vec<Block>,
    /// The start of the last slice, 0 before the first.
    last_start_ns: i64,
}

/// A part of the slices of a lane.
#[derive(Debug)]
pub(crate) struct Block {
    /// The start of the slice before the block, 0 for the first block.
    before_ns: i64,
    pub count: u32,
    /// For each slice the time since the start of the slice before, and its length.
    times: PackedBytes,
    /// The other facts of each slice, which resemble those of its neighbours as times do not.
    rest: PackedBytes,
}

/// Packed bytes, which are compressed once the block is full: `frame` is zstd's, and `length` that of the plain
/// bytes.
#[derive(Debug)]
enum PackedBytes {
    Plain(Vec<u8>),
    Compressed { frame: Box<[u8]>, length: usize },
}

/// zstd's default level.
const ZSTD_LEVEL: i32 = 3;

impl Lane {
    /// Packs slices by the rows that they come from, which stay in memory.
    pub fn from_slices(slices: impl IntoIterator<Item = Slice>) -> Lane {
        Lane::packed(slices, pack_row)
    }

    /// Packs labels, which are rows of a table.
    pub fn from_labels(slices: Vec<Slice>, table: &Markers) -> Lane {
        Lane::packed(slices, |slice, rest| {
            pack_marker(&Marker::from_row(table, slice.row as usize), rest);
        })
    }

    /// Packs slices in order of time. `pack` appends the facts of a slice without its times.
    fn packed(
        slices: impl IntoIterator<Item = Slice>,
        pack: impl Fn(&Slice, &mut Vec<u8>),
    ) -> Lane {
        let (mut lane, mut rest) = (Lane::default(), Vec::new());
        for slice in slices {
            rest.clear();
            pack(&slice, &mut rest);
            lane.push(slice.start_ns, slice.end_ns, &rest);
        }
        lane.finish();
        lane
    }

    /// Appends a slice, which begins no earlier than the slice before. `rest` comes from [`pack_dispatch`],
    /// [`pack_marker`] or [`pack_row`].
    pub fn push(&mut self, start_ns: i64, end_ns: i64, rest: &[u8]) {
        let full = |block: &Block| block.count == BLOCK_SLICES;
        if self.blocks.last().is_none_or(full) {
            self.finish();
            self.blocks.push(Block {
                before_ns: self.last_start_ns,
                count: 0,
                times: PackedBytes::Plain(Vec::new()),
                rest: PackedBytes::Plain(Vec::new()),
            });
        }
        let Some(Block {
            count,
            times: PackedBytes::Plain(times),
            rest: PackedBytes::Plain(all),
            ..
        }) = self.blocks.last_mut()
        else {
            return;
        };
        // Differences wrap, so that any two times have one.
        let since_ns = start_ns.wrapping_sub(self.last_start_ns) as u64;
        pack(times, since_ns);
        pack(times, end_ns.wrapping_sub(start_ns) as u64);
        all.extend_from_slice(rest);
        *count += 1;
        self.last_start_ns = start_ns;
    }

    /// Compresses the last block.
    pub fn finish(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.times.finish();
            block.rest.finish();
        }
    }

    /// Returns the unpacked slices in order.
    pub fn slices(&self) -> impl Iterator<Item = LaneSlice> {
        self.blocks.iter().flat_map(Block::slices)
    }

    /// Returns the number of slices.
    pub fn count(&self) -> u64 {
        let counts = self.blocks.iter().map(|block| u64::from(block.count));
        counts.sum()
    }
}

impl PackedBytes {
    /// Compresses the bytes, unless they would not be smaller.
    fn finish(&mut self) {
        if let PackedBytes::Plain(bytes) = self {
            match zstd::bulk::compress(bytes, ZSTD_LEVEL) {
                Ok(frame) if frame.len() < bytes.len() => {
                    *self = PackedBytes::Compressed {
                        length: bytes.len(),
                        frame: frame.into(),
                    };
                }
                _ => bytes.shrink_to_fit(),
            }
        }
    }

    /// Returns the uncompressed bytes.
    fn plain(&self) -> Cow<'_, [u8]> {
        match self {
            PackedBytes::Plain(bytes) => Cow::Borrowed(bytes),
            PackedBytes::Compressed { frame, length } => {
                let bytes = zstd::bulk::decompress(frame, *length);
                Cow::Owned(bytes.expect("it was compressed here, so that it cannot be damaged"))
            }
        }
    }
}

impl Block {
    /// Unpacks the slices.
    pub fn slices(&self) -> impl Iterator<Item = LaneSlice> {
        let mut rest = Unpack::new(&self.rest);
        (self.times()).map(move |times| rest.rest(times.start_ns, times.end_ns))
    }

    /// Returns the times of the slices, without unpacking their other facts.
    pub fn times(&self) -> impl Iterator<Item = Interval> {
        let mut times = Unpack::new(&self.times);
        let mut before_ns = self.before_ns;
        (0..self.count).map(move |_| {
            let start_ns = before_ns.wrapping_add(times.number() as i64);
            let end_ns = start_ns.wrapping_add(times.number() as i64);
            before_ns = start_ns;
            Interval { start_ns, end_ns }
        })
    }
}

// Flags of the known facts of a slice, above the kind in the low three bits. `ALL_GROUPS`: the sizes of all three
// axes are known; otherwise each is packed as one more than itself, or 0.
const FLOW: u64 = 1 << 3;
const COMMAND_BUFFER: u64 = 1 << 4;
const SUBMISSION: u64 = 1 << 5;
const LABEL: u64 = 1 << 6;
const ALL_GROUPS: u64 = 1 << 7;

/// Appends the facts of a row that is in memory, without its times.
pub(crate) fn pack_row(slice: &Slice, to: &mut Vec<u8>) {
    let flow = if slice.flow == 0 { 0 } else { FLOW };
    pack(to, slice.kind as u64 | flow);
    pack_flow(slice.flow, to);
    pack(to, slice.row.into());
}

/// Appends the facts of a dispatch, without its times.
pub(crate) fn pack_dispatch(dispatch: &Dispatch, flow: u32, to: &mut Vec<u8>) {
    let Dispatch {
        kernel,
        groups,
        command_buffer,
        submission,
        position,
        label,
    } = dispatch;
    let known = [
        (flow != 0, FLOW),
        (command_buffer.is_some(), COMMAND_BUFFER),
        (submission.is_some(), SUBMISSION),
        (label.is_some(), LABEL),
        (groups.iter().all(Option::is_some), ALL_GROUPS),
    ];
    let known = known.into_iter().filter(|(known, _)| *known);
    let head = known.fold(SliceKind::Dispatch as u64, |head, (_, bit)| head | bit);
    pack(to, head);
    pack_flow(flow, to);
    pack(to, kernel.number());
    pack(to, (*position).into());
    for size in groups {
        match (head & ALL_GROUPS != 0, size) {
            (true, Some(size)) => pack(to, (*size).into()),
            _ => pack(to, size.map_or(0, |size| u64::from(size) + 1)),
        }
    }
    let (command_buffer, submission) = (command_buffer.map(Id::number), submission.map(Id::number));
    let ids = [command_buffer, submission, label.map(Id::number)];
    ids.into_iter().flatten().for_each(|id| pack(to, id));
}

/// Appends the facts of a label, without its times.
pub(crate) fn pack_marker(marker: &Marker, to: &mut Vec<u8>) {
    let around = marker.command_buffer.map(Id::number);
    let known = around.map_or(0, |_| COMMAND_BUFFER);
    pack(to, SliceKind::Marker as u64 | known);
    pack(to, marker.label.number());
    pack(to, marker.scope.number().into());
    around.into_iter().for_each(|id| pack(to, id));
}

/// Appends a flow (the number by which a slice's arrows are found), unless it is 0, which the slice's flags tell.
fn pack_flow(flow: u32, to: &mut Vec<u8>) {
    if flow != 0 {
        pack(to, flow.into());
    }
}

/// Appends a number in groups of seven bits, the lowest first, so that small numbers take one byte.
#[inline]
fn pack(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Reads packed numbers, each once and in order. Behind the end all are 0.
struct Unpack<'a> {
    bytes: Cow<'a, [u8]>,
    /// The offset of the next number.
    at: usize,
}

impl<'a> Unpack<'a> {
    fn new(bytes: &'a PackedBytes) -> Unpack<'a> {
        Unpack {
            bytes: bytes.plain(),
            at: 0,
        }
    }
    /// Reads the next number.
    #[inline]
    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.bytes.get(self.at).copied().unwrap_or(0);
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift > 63 {
                return number;
            }
        }
    }

    /// Reads the facts of the next slice, which has these times.
    fn rest(&mut self, start_ns: i64, end_ns: i64) -> LaneSlice {
        let head = self.number();
        let kind = SliceKind::ALL[(head & 7) as usize % SliceKind::ALL.len()];
        let mut when = |bit| (head & bit != 0).then(|| self.number());
        let flow = when(FLOW).unwrap_or(0) as u32;
        let mut drawn = LaneSlice {
            slice: Slice {
                start_ns,
                end_ns,
                row: 0,
                flow,
                kind,
            },
            dispatch: Dispatch::default(),
            marker: Marker::default(),
        };
        match kind {
            SliceKind::Dispatch => drawn.dispatch = self.dispatch(head),
            SliceKind::Marker => {
                drawn.marker.label = LabelId(self.number() as u32);
                drawn.marker.scope = MarkerScope::from_number(self.number() as u8);
                let around = (head & COMMAND_BUFFER != 0).then(|| self.number());
                drawn.marker.command_buffer = around.map(CommandBufferId);
            }
            _ => drawn.slice.row = self.number() as u32,
        }
        drawn
    }

    /// Reads what follows the flow of a dispatch, whose flags are in `head`.
    fn dispatch(&mut self, head: u64) -> Dispatch {
        let kernel = KernelId(self.number() as u32);
        let position = self.number() as u32;
        let groups = [(); 3].map(|()| match (head & ALL_GROUPS, self.number()) {
            (0, size) => size.checked_sub(1).map(|size| size as u32),
            (_, size) => Some(size as u32),
        });
        let mut when = |bit| (head & bit != 0).then(|| self.number());
        Dispatch {
            kernel,
            groups,
            position,
            command_buffer: when(COMMAND_BUFFER).map(CommandBufferId),
            submission: when(SUBMISSION).map(SubmissionId),
            label: when(LABEL).map(|id| LabelId(id as u32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn() -> impl Strategy<Value = LaneSlice> {
        let size = proptest::option::of(any::<u32>());
        let dispatch = (
            any::<u32>(),
            [size.clone(), size.clone(), size.clone()],
            proptest::option::of(any::<u64>()),
            proptest::option::of(any::<u64>()),
            any::<u32>(),
            size,
        );
        let slice = (
            any::<i64>(),
            any::<i64>(),
            any::<u32>(),
            any::<u32>(),
            0..SliceKind::ALL.len(),
        );
        (slice, dispatch).prop_map(|((start_ns, end_ns, row, flow, kind), dispatch)| {
            let (kernel, groups, command_buffer, submission, position, label) = dispatch;
            let kind = SliceKind::ALL[kind];
            let is_dispatch = kind == SliceKind::Dispatch;
            let dispatch = Dispatch {
                kernel: KernelId(kernel),
                groups,
                command_buffer: command_buffer.map(CommandBufferId),
                submission: submission.map(SubmissionId),
                position,
                label: label.map(LabelId),
            };
            let is_marker = kind == SliceKind::Marker;
            let marker = Marker {
                label: dispatch.label.unwrap_or_default(),
                scope: MarkerScope::ALL[row as usize % MarkerScope::ALL.len()],
                command_buffer: dispatch.command_buffer,
            };
            let slice = Slice {
                start_ns,
                end_ns,
                row: if is_dispatch || is_marker { 0 } else { row },
                flow: if is_marker { 0 } else { flow },
                kind,
            };
            LaneSlice {
                slice,
                dispatch: if is_dispatch {
                    dispatch
                } else {
                    Dispatch::default()
                },
                marker: if is_marker { marker } else { Marker::default() },
            }
        })
    }

    proptest! {
        #[test]
        fn a_lane_gives_back_what_was_put_into_it(all in proptest::collection::vec(drawn(), 0..50)) {
            let mut lane = Lane::default();
            for LaneSlice { slice, dispatch, marker } in &all {
                let mut rest = Vec::new();
                match slice.kind {
                    SliceKind::Dispatch => pack_dispatch(dispatch, slice.flow, &mut rest),
                    SliceKind::Marker => pack_marker(marker, &mut rest),
                    _ => pack_row(slice, &mut rest),
                }
                lane.push(slice.start_ns, slice.end_ns, &rest);
            }
            prop_assert_eq!(lane.count(), all.len() as u64);
            prop_assert_eq!(lane.slices().collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn blocks_follow_each_other() {
        let slice = |row: u32| Slice {
            start_ns: 10 * i64::from(row),
            end_ns: 10 * i64::from(row) + 7,
            row,
            flow: 0,
            kind: SliceKind::HostCall,
        };
        let lane = Lane::from_slices((0..3 * BLOCK_SLICES + 5).map(slice));
        assert_eq!(lane.blocks.len(), 4);
        let slices = lane.slices().map(|drawn| drawn.slice);
        assert!(slices.eq((0..3 * BLOCK_SLICES + 5).map(slice)));
        let is_compressed = |block: &Block| matches!(block.times, PackedBytes::Compressed { .. });
        assert!(lane.blocks[..3].iter().all(is_compressed));
    }
}
