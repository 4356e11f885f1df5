//! Finds out whether other commands read the values that a chain (dispatches to be merged into one) stores, so that
//! stores without a reader can be left out. A node is a dispatch or transfer of the window with the bytes that it
//! accesses; a region is memory through which a chain passes values.

use std::collections::HashMap;
use std::ops::Range;

use gapscope_capture::Capture;
use gapscope_capture::model::MemoryId;
use gapscope_dependencies::{Access, ByteSet, Node};

use crate::proof::Region;

/// Returns the index in the graph of the command with the index `executed` among [`Capture::executed`].
pub fn node_of(capture: &Capture, executed: usize) -> usize {
    let before = capture.executed().take(executed);
    before.filter(|command| command.is_work()).count()
}

/// Returns whether everything that the kernel `writer` of a chain stores in a region is overwritten before a command
/// after the chain reads it. `last` is the index of the chain's last dispatch among [`Capture::executed`]. The end of
/// the window counts as a read, and so does a command that may reach other memory.
pub fn is_dead(
    nodes: &[Node],
    capture: &Capture,
    last: usize,
    region: &Region,
    writer: usize,
) -> bool {
    // Another queue may read the bytes at any time.
    if capture.queues.len() > 1 {
        return false;
    }
    let first = node_of(capture, last + 1);
    let mut left = region.stores[writer].clone();
    for node in &nodes[first.min(nodes.len())..] {
        if node.beyond.is_some() {
            return false;
        }
        let memory = region.memory;
        if reached(node, memory, |of| !of.writes()).any(|range| left.overlaps(&range)) {
            return false;
        }
        for range in reached(node, memory, |of| of.writes() && of.bound.is_none()) {
            left.remove(&range);
        }
        if left.is_empty() {
            return true;
        }
    }
    left.is_empty()
}

/// Removes the bytes that a command writes, or may write, from those that are undefined.
pub fn written(node: &Node, undefined: &mut HashMap<MemoryId, ByteSet>) {
    for (memory, bytes) in undefined.iter_mut() {
        for range in reached(node, *memory, Access::writes) {
            bytes.remove(&range);
        }
    }
}

/// Returns the ranges of an allocation that a command reaches by accesses of one kind.
fn reached(
    node: &Node,
    memory: MemoryId,
    is_of_kind: impl Fn(&Access) -> bool,
) -> impl Iterator<Item = Range<u64>> {
    let here =
        (node.accesses.iter()).filter(move |of| of.memory == u64::from(memory.0) && is_of_kind(of));
    here.flat_map(|of| of.set.shifted(of.offset))
}
