//! Labels that begin in one command buffer of a queue and end in another.
//!
//! Vulkan balances the labels of a queue over all that is submitted to it, so that programs may open a label in one
//! command buffer, run work in the next and close it in a third. Which labels are open is decided when command buffers
//! are submitted; their times come when these are expanded, in whatever order they finish.

use super::labels::Labels;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A program that opens labels and never closes them would nest without end: from this depth on its labels end with
/// their command buffer.
const DEEPEST: usize = 16;

/// The spanning labels of one queue.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Spans {
    next: u32,
    /// Those that are open behind what was submitted last, outermost first.
    open: Vec<u32>,
    spans: FxHashMap<u32, Span>,
    /// The program does not balance its labels.
    unbalanced: bool,
}

/// A label over several command buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Id of the label.
    pub label: u32,
    /// Id of its text.
    pub text: u32,
    /// The command buffer in which it begins.
    pub command_buffer: u64,
    /// The hull of what was timed inside it so far.
    pub hull: Option<(i64, i64)>,
    /// Command buffers inside it that are not expanded yet.
    outstanding: u32,
    ended: bool,
}

/// The spanning labels of one command buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spanning {
    /// Those that are open where it begins, outermost first.
    pub inherited: Vec<u32>,
    /// Those that it opens and leaves open.
    pub left_open: Vec<u32>,
}

impl Spans {
    /// A command buffer is submitted that ends `ends` labels that it did not begin, and leaves `opens` (texts) open.
    pub fn submit(
        &mut self,
        command_buffer: u64,
        ends: u32,
        opens: &[u32],
        labels: &mut Labels,
    ) -> Spanning {
        let mut spanning = Spanning::default();
        if self.open.is_empty() && (opens.is_empty() || self.unbalanced) {
            return spanning;
        }
        spanning.inherited.clone_from(&self.open);
        for id in &self.open {
            if let Some(span) = self.spans.get_mut(id) {
                span.outstanding += 1;
            }
        }
        for _ in 0..ends.min(self.open.len() as u32) {
            if let Some(span) = self.open.pop().and_then(|id| self.spans.get_mut(&id)) {
                span.ended = true;
            }
        }
        if self.open.len() + opens.len() > DEEPEST {
            self.unbalanced = true;
            for id in self.open.drain(..) {
                if let Some(span) = self.spans.get_mut(&id) {
                    span.ended = true;
                }
            }
            return spanning;
        }
        for text in opens {
            let parent = self.open.last().and_then(|id| self.spans.get(id));
            let label = labels.label(parent.map(|p| p.label), *text);
            let id = self.next;
            self.next = self.next.wrapping_add(1);
            let span = Span {
                label,
                text: *text,
                command_buffer,
                hull: None,
                outstanding: 1,
                ended: false,
            };
            self.spans.insert(id, span);
            self.open.push(id);
            spanning.left_open.push(id);
        }
        spanning
    }

    /// A label that spans.
    pub fn get(&self, id: u32) -> Option<&Span> {
        self.spans.get(&id)
    }

    /// A command buffer inside a label has been expanded: `hull` is what was timed there. Gives the label when that
    /// was the last.
    pub fn expanded(&mut self, id: u32, hull: Option<(i64, i64)>) -> Option<Span> {
        let span = self.spans.get_mut(&id)?;
        if let Some(hull) = hull {
            span.hull = Some(join(span.hull, hull));
        }
        span.outstanding = span.outstanding.saturating_sub(1);
        let over = span.ended && span.outstanding == 0;
        if over { self.spans.remove(&id) } else { None }
    }

    /// Nothing more is submitted: the labels that are still there, in the order in which they began.
    pub fn finish(&mut self) -> Vec<Span> {
        self.open.clear();
        let mut rest: Vec<_> = self.spans.drain().collect();
        rest.sort_unstable_by_key(|(id, span)| (span.command_buffer, *id));
        rest.into_iter().map(|(_, span)| span).collect()
    }
}

/// The hull of two intervals.
pub fn join(so_far: Option<(i64, i64)>, (start, end): (i64, i64)) -> (i64, i64) {
    so_far.map_or((start, end), |(first, last)| {
        (first.min(start), last.max(end))
    })
}
