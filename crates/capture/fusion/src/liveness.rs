//! Finds out whether other commands read the values that a chain stores, so that stores without a reader can be left
//! out.

use std::collections::HashMap;

use gapscope_capture::Capture;
use gapscope_capture::model::{Command, MemoryId};
use gapscope_dependencies::{ByteSet, Node};

use crate::proof::Region;

/// Returns the index in the graph of the command with the index `executed` among [`Capture::executed`].
pub fn node_of(capture: &Capture, executed: usize) -> usize {
    let before = capture.executed().take(executed);
    before
        .filter(|of| !matches!(of, Command::Barrier(_) | Command::Label(_)))
        .count()
}

/// Returns whether everything that a kernel of a chain stores in a region is overwritten before a command after the
/// chain reads it. The end of the window counts as a read.
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
        let here = || {
            node.accesses
                .iter()
                .filter(|of| of.memory == u64::from(region.memory.0))
        };
        let reads = here().filter(|of| !of.writes());
        for range in reads.flat_map(|of| of.set.shifted(of.offset)) {
            if left.overlaps(&range) {
                return false;
            }
        }
        for range in here()
            .filter(|of| of.writes() && of.bound.is_none())
            .flat_map(|of| of.set.shifted(of.offset))
        {
            left.remove(&range);
        }
        if left.is_empty() {
            return true;
        }
    }
    left.is_empty()
}

/// Removes the bytes that a command writes from those that are undefined.
pub fn written(node: &Node, undefined: &mut HashMap<MemoryId, ByteSet>) {
    for (memory, bytes) in undefined.iter_mut() {
        let here = node
            .accesses
            .iter()
            .filter(|of| of.memory == u64::from(memory.0));
        for range in here
            .filter(|of| of.writes())
            .flat_map(|of| of.set.shifted(of.offset))
        {
            bytes.remove(&range);
        }
    }
}
