//! Finds out whether other commands read what a chain stores.

use std::collections::HashMap;
use std::ops::Range;

use gapscope_capture::Capture;
use gapscope_capture::model::{Command, MemoryId};
use gapscope_dependencies::Node;

use crate::proof::Region;

/// Bytes of an allocation, as sorted ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bytes(Vec<Range<u64>>);

impl Bytes {
    /// Makes a set from any ranges.
    pub fn new(mut ranges: Vec<Range<u64>>) -> Bytes {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Bytes(merged)
    }

    /// Adds other bytes.
    pub fn add(&mut self, more: &Bytes) {
        let all = std::mem::take(&mut self.0);
        *self = Bytes::new(all.into_iter().chain(more.0.iter().cloned()).collect());
    }

    fn remove(&mut self, gone: &Range<u64>) {
        let parts = self.0.drain(..).flat_map(|of| {
            let before = of.start..of.end.min(gone.start);
            let after = of.start.max(gone.end)..of.end;
            [before, after]
        });
        self.0 = parts.filter(|part| !part.is_empty()).collect();
    }

    /// Returns whether a byte is in a range.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.0
            .iter()
            .any(|of| of.start < range.end && range.start < of.end)
    }
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
    let before = capture.executed().take(last + 1);
    let first = before
        .filter(|of| !matches!(of, Command::Barrier(_) | Command::Label(_)))
        .count();
    let mut left = Bytes::new(region.stores[writer].ranges().to_vec());
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
        if left.0.is_empty() {
            return true;
        }
    }
    left.0.is_empty()
}

/// Removes what a command writes from the bytes that are undefined.
pub fn written(node: &Node, undefined: &mut HashMap<MemoryId, Bytes>) {
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
