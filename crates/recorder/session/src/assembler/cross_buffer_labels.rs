//! Labels that start in one command buffer of a queue and end in another.
//!
//! Vulkan balances the labels of a queue over all that is submitted to it, so that programs may open a label in one
//! command buffer, run work in the next and close it in a third. Which labels are open is decided when command buffers
//! are submitted; their times come when these are expanded, in whatever order they finish.

use gapscope_timeline_builder::CoveringSpan;
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::{CommandBufferId, LabelId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A program that opens labels and never closes them would nest without end: from this depth on, its labels end with
/// their command buffer.
const DEEPEST: usize = 16;

/// The spanning labels of one queue.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SpanningLabels {
    next: u32,
    /// Those that are open behind what was submitted last, outermost first.
    open: Vec<SpanningId>,
    spans: FxHashMap<SpanningId, SpanningLabel>,
    /// The program does not balance its labels.
    unbalanced: bool,
}

/// A label over several command buffers of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpanningId(u32);

/// What is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanningLabel {
    /// Id of the label.
    pub label: LabelId,
    /// Id of its text.
    pub text: TextId,
    /// The command buffer in which it starts.
    pub command_buffer: CommandBufferId,
    /// The span of all that was timed inside it so far.
    pub covered: CoveringSpan,
    /// Command buffers inside it that are not expanded yet.
    outstanding: u32,
    ended: bool,
}

/// The spanning labels in one command buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpannedBuffer {
    /// Those that are open where it starts, outermost first.
    pub inherited: Vec<SpanningId>,
    /// Those that it opens and leaves open.
    pub left_open: Vec<SpanningId>,
}

impl SpanningLabels {
    /// A command buffer is submitted that ends `ends` labels that it did not start, and leaves `opens` (texts) open.
    pub fn submit(
        &mut self,
        command_buffer: CommandBufferId,
        ends: u32,
        opens: &[TextId],
        labels: &mut Labels,
    ) -> SpannedBuffer {
        let mut spanning = SpannedBuffer::default();
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
            let id = SpanningId(self.next);
            self.next = self.next.wrapping_add(1);
            let span = SpanningLabel {
                label,
                text: *text,
                command_buffer,
                covered: CoveringSpan::default(),
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
    pub fn get(&self, id: SpanningId) -> Option<&SpanningLabel> {
        self.spans.get(&id)
    }

    /// A command buffer inside a label has been expanded: `covered` is what was timed there. Gives the label when that
    /// was the last.
    pub fn expanded(&mut self, id: SpanningId, covered: CoveringSpan) -> Option<SpanningLabel> {
        let span = self.spans.get_mut(&id)?;
        span.covered.join(covered);
        span.outstanding = span.outstanding.saturating_sub(1);
        let over = span.ended && span.outstanding == 0;
        if over { self.spans.remove(&id) } else { None }
    }

    /// Nothing more is submitted: the labels that are still there, in the order in which they started.
    pub fn finish(&mut self) -> Vec<SpanningLabel> {
        self.open.clear();
        let mut rest: Vec<_> = self.spans.drain().collect();
        rest.sort_unstable_by_key(|(id, span)| (span.command_buffer, *id));
        rest.into_iter().map(|(_, span)| span).collect()
    }
}
