//! Tracks labels that start in one command buffer of a queue and end in another.
//!
//! Vulkan balances the labels of a queue over everything that is submitted to it, so that programs may open a label
//! in one command buffer, run work in the next and close the label in a third. The submission of command buffers
//! decides which labels are open; the times come when the command buffers are expanded (become rows), in the order
//! in which they finish.

use gapscope_timeline_builder::CoveringSpan;
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::{CommandBufferId, LabelId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// The maximum number of open labels of a queue. A program that opens labels and never closes them would nest without
/// end; beyond this depth, labels end with their command buffer.
const MAX_OPEN_LABELS: usize = 16;

/// The cross-buffer labels of one queue.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CrossBufferLabels {
    /// The id of the next label.
    next: u32,
    /// The labels that are open after the last submission, outermost first.
    open: Vec<CrossBufferLabelId>,
    /// The labels that are open, or have command buffers that are not expanded yet.
    spans: FxHashMap<CrossBufferLabelId, CrossBufferLabel>,
    /// Whether the program once left too many labels open: from then on no label spans several command buffers.
    unbalanced: bool,
}

/// The id of a label that spans several command buffers of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CrossBufferLabelId(u32);

/// The state of a cross-buffer label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossBufferLabel {
    /// The id of the label.
    pub label: LabelId,
    /// The id of the label's text.
    pub text: TextId,
    /// The command buffer in which the label starts.
    pub command_buffer: CommandBufferId,
    /// The span of the work inside the label that was timed so far.
    pub covered: CoveringSpan,
    /// The number of command buffers inside the label that are not expanded yet.
    outstanding: u32,
    /// Whether it was closed, so that no further command buffer is inside.
    ended: bool,
}

/// The cross-buffer labels in one command buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferLabels {
    /// The labels that are open where the command buffer starts, outermost first.
    pub inherited: Vec<CrossBufferLabelId>,
    /// The labels that the command buffer opens and leaves open.
    pub left_open: Vec<CrossBufferLabelId>,
}

impl CrossBufferLabels {
    /// Adds a submitted command buffer that ends `ends` labels which it did not start, and leaves labels with the
    /// texts `opens` open. Returns the labels in it that span several command buffers.
    pub fn submit(
        &mut self,
        command_buffer: CommandBufferId,
        ends: u32,
        opens: &[TextId],
        labels: &mut Labels,
    ) -> BufferLabels {
        let mut spanning = BufferLabels::default();
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
        if self.open.len() + opens.len() > MAX_OPEN_LABELS {
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
            let id = CrossBufferLabelId(self.next);
            self.next = self.next.wrapping_add(1);
            let span = CrossBufferLabel {
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

    /// Returns the state of a label.
    pub fn get(&self, id: CrossBufferLabelId) -> Option<&CrossBufferLabel> {
        self.spans.get(&id)
    }

    /// Records that a command buffer inside a label was expanded; `covered` is the span of its timed work. Returns
    /// the label if the command buffer was the last.
    pub fn expanded(
        &mut self,
        id: CrossBufferLabelId,
        covered: CoveringSpan,
    ) -> Option<CrossBufferLabel> {
        let span = self.spans.get_mut(&id)?;
        span.covered.join(covered);
        span.outstanding = span.outstanding.saturating_sub(1);
        let over = span.ended && span.outstanding == 0;
        if over { self.spans.remove(&id) } else { None }
    }

    /// Ends all labels and returns them in the order in which they started.
    pub fn finish(&mut self) -> Vec<CrossBufferLabel> {
        self.open.clear();
        let mut rest: Vec<_> = self.spans.drain().collect();
        rest.sort_unstable_by_key(|(id, span)| (span.command_buffer, *id));
        rest.into_iter().map(|(_, span)| span).collect()
    }
}
