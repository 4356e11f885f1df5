//! Writes what a snapshot says as rows of a trace.

use super::{DeviceMemory, MemorySnapshot, Piece};
use gapscope_trace::build::{Interner, Labels};
use gapscope_trace::ids::{DeviceId, FrameId, LabelId, ProcessId, StackId};
use gapscope_trace::tables::{
    AllocatorMemoryKind, AllocatorRow, Frame, FrameKind, Stack, Table, Tables,
};
use std::sync::Arc;

/// The ids of a snapshot's stacks in a trace.
#[derive(Debug)]
pub struct SnapshotStacks(Vec<Option<StackId>>);

impl MemorySnapshot {
    /// Returns the first and the last time of the history; `None` where it has no entries.
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        let spans = self.devices.iter().filter_map(|device| device.span_ns);
        spans.reduce(|(first, last), (from, to)| (first.min(from), last.max(to)))
    }

    /// Writes the stacks into a trace that has none.
    pub fn write_stacks(&self, tables: &mut Tables) -> SnapshotStacks {
        type Facts = (FrameKind, Option<Arc<str>>, Option<Arc<str>>, Option<u32>);
        let mut frames: Interner<Facts, FrameId> = Interner::default();
        let mut stacks: Interner<(Option<StackId>, FrameId), StackId> = Interner::default();
        let frame_ids: Vec<FrameId> = (self.frames.iter())
            .map(|frame| {
                // Frames of Python have a file of Python, or one in angle brackets; those of C++ have a source file at
                // best.
                let file = frame.file.as_deref();
                let is_python =
                    file.is_some_and(|file| file.ends_with(".py") || file.starts_with('<'));
                let kind = match is_python {
                    true => FrameKind::Python,
                    false => FrameKind::Native,
                };
                frames.id((kind, frame.function.clone(), frame.file.clone(), frame.line))
            })
            .collect();
        for (id, (kind, function, file, line)) in frames.iter() {
            tables.frames.push(Frame {
                id,
                kind: *kind,
                function: function.clone(),
                file: file.clone(),
                line: *line,
                library: None,
                address: None,
            });
        }
        let ids = (self.stacks.iter())
            .map(|stack| {
                let outermost_first = stack.iter().rev();
                outermost_first.fold(None, |callers, frame| {
                    Some(stacks.id((callers, frame_ids[*frame])))
                })
            })
            .collect();
        for (id, (parent, frame)) in stacks.iter() {
            tables.stacks.push(Stack {
                id,
                parent: *parent,
                frame: *frame,
            });
        }
        SnapshotStacks(ids)
    }
}

impl DeviceMemory {
    /// Writes the segments and blocks of the device; `shift_ns` is added to times, which count from 1970.
    pub fn write(
        &self,
        (process, device): (ProcessId, DeviceId),
        shift_ns: i64,
        stacks: &SnapshotStacks,
        (labels, tables): (&mut Labels, &mut Tables),
    ) {
        let of_blocks = self.labels(labels);
        let of_blocks = of_blocks.into_iter().chain(std::iter::repeat(None));
        let shifted = |ns: Option<i64>| ns.map(|ns| ns.saturating_add(shift_ns));
        let blocks = self.blocks.iter().zip(of_blocks);
        let segments = self.segments.iter().map(|segment| (segment, None));
        let all = (segments.map(|segment| (AllocatorMemoryKind::Segment, segment)))
            .chain(blocks.map(|block| (AllocatorMemoryKind::Block, block)));
        for (kind, (piece, label)) in all {
            tables.allocator_memory.push(AllocatorRow {
                process,
                device,
                kind,
                address: piece.address,
                bytes: piece.bytes,
                allocated_ns: shifted(piece.allocated_ns),
                freed_ns: shifted(piece.freed_ns),
                label,
                stack: piece
                    .stack
                    .and_then(|stack| stacks.0.get(stack).copied().flatten()),
            });
        }
    }

    /// Returns the innermost range of the program in which each block was allocated, as a label.
    fn labels(&self, labels: &mut Labels) -> Vec<Option<LabelId>> {
        let mut result = vec![None; self.blocks.len()];
        let mut order: Vec<(i64, usize)> = (self.blocks.iter().enumerate())
            .filter_map(|(at, block): (usize, &Piece)| Some((block.allocated_ns?, at)))
            .collect();
        order.sort_unstable();
        let mut ranges: Vec<_> = self.ranges.iter().collect();
        ranges.sort_by_key(|range| range.begin_ns);
        let mut ranges = ranges.into_iter().peekable();
        // The open ranges with their ends, the innermost last.
        let mut open: Vec<(Option<i64>, LabelId)> = Vec::new();
        let close = |open: &mut Vec<(Option<i64>, LabelId)>, at_ns: i64| {
            while open
                .pop_if(|(end_ns, _)| end_ns.is_some_and(|end_ns| end_ns <= at_ns))
                .is_some()
            {}
        };
        for (at_ns, block) in order {
            while let Some(range) = ranges.next_if(|range| range.begin_ns <= at_ns) {
                close(&mut open, range.begin_ns);
                let around = open.last().map(|(_, label)| *label);
                open.push((range.end_ns, labels.named(around, &range.name)));
            }
            close(&mut open, at_ns);
            result[block] = open.last().map(|(_, label)| *label);
        }
        result
    }
}
