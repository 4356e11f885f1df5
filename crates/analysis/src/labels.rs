//! Breaks work down by label: which parts of the program cost what.
//!
//! Labels with the same texts around them are one row, regardless of who set them and how often. Work belongs to its innermost
//! label, and work without a label to the label of its command buffer. *Exclusive* figures are of that work alone,
//! *inclusive* ones also of the labels inside. Busy times are unions, so children that ran at the same time sum to
//! more than their parent.
//!
//! Order: `tree.rs` merges labels into a tree of nodes, `rows.rs` adds up the work of each node, and `folded.rs` does
//! both again for a tree with repeated modules folded.

mod folded;
mod origin;
mod rows;
mod tree;

pub use folded::FoldedLabel;
pub(crate) use origin::LabelOrigins;
pub use rows::{LabelRow, LabelWork};
pub use tree::LabelTree;

use gapscope_timeline::Timeline;
use rows::{rows, sorted};

/// The labels of the whole recording that have work or were set.
#[derive(Debug, Default)]
pub struct Labels {
    /// A row for each label. Parents come before their children, and siblings are sorted by busy time.
    pub rows: Vec<LabelRow>,
    /// The rows with repeated modules folded into one; empty where no modules repeat.
    pub folded: Vec<FoldedLabel>,
}

/// Returns the work of a trace by label.
pub fn labels(timeline: &Timeline) -> Labels {
    let tree = LabelTree::new(timeline.trace);
    if tree.count() == 0 {
        return Labels::default();
    }
    let rows = rows(timeline, &tree);
    Labels {
        folded: folded::folded(timeline, &tree, &rows),
        rows: sorted(&tree, rows, |row| row),
    }
}
