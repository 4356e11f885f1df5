//! Makes the comparisons that a file (a saved page) has. A file has no server, so that all answers are made beforehand:
//! of whole traces with each other, of labels with their siblings in a trace, and of a label with itself in other
//! traces. A side is a whole trace or the work under one label; its cost is what a comparison needs of its work.

use super::FileAnswer;
use crate::analysed_trace::AnalysedTrace;
use crate::answers::{Extent, compared, cost_of};
use crate::texts::cut;
use form_urlencoded::Serializer;
use gapscope_analysis::equal_work::WorkCost;
use gapscope_analysis::unread::{CAUSES, unknown_because};

/// The most labels of a trace that are compared with each other; [`ComparisonCosts::left_out`] counts the others.
const MAX_COMPARED_LABELS: usize = 6;

/// The costs of the sides of one trace: the whole trace, and the labels that are likeliest to be compared.
#[derive(Debug, Default)]
pub(super) struct ComparisonSides {
    sides: Vec<(Extent, WorkCost)>,
    /// Number of labels that are not among the sides.
    left_out: usize,
}

impl ComparisonSides {
    /// Computes the costs of a trace. `with_labels` means that the trace is small enough for the comparison of its
    /// labels; `alone` means that the file has no other trace.
    pub(super) fn new(analysed: &AnalysedTrace, with_labels: bool, alone: bool) -> ComparisonSides {
        // A cost has idle time by cause, and there is none without causes.
        if unknown_because(analysed.timeline.trace, CAUSES).is_some() {
            return ComparisonSides::default();
        }
        let labels = &analysed.found().labels;
        let mut paths: Vec<String> = labels.iter().map(|label| cut(&label.path)).collect();
        paths.dedup();
        // Compared are the labels with siblings, at the smallest depth where there are any: `step / forward` and
        // `step / backward`.
        let depth = |path: &str| path.matches(" / ").count();
        let has_siblings = |path: &String| {
            let siblings = paths.iter().filter(|other| parent(other) == parent(path));
            siblings.count() > 1
        };
        let outermost = paths
            .iter()
            .filter(|path| has_siblings(path))
            .map(|path| depth(path))
            .min();
        let listed = paths
            .iter()
            .filter(|path| Some(depth(path)) == outermost && has_siblings(path));
        let room = if with_labels { MAX_COMPARED_LABELS } else { 0 };
        let extents: Vec<Extent> = (listed.clone().take(room))
            .map(|path| Extent::Label(path.clone()))
            .collect();
        let left_out = listed.count().saturating_sub(extents.len());
        // Whole traces are compared only with other traces.
        let all = (!alone).then_some(Extent::All).into_iter().chain(extents);
        let sides = all.map(|extent| (extent.clone(), cost_of(analysed, &extent)));
        ComparisonSides {
            sides: sides.filter(|(_, cost)| !cost.is_empty()).collect(),
            left_out,
        }
    }
}

/// Returns the path of the label around the one with this path; empty for an outermost label.
fn parent(path: &str) -> &str {
    path.rsplit_once(" / ").map_or("", |(parent, _)| parent)
}

/// The costs of all sides of a file.
#[derive(Debug, Default)]
pub(super) struct ComparisonCosts {
    /// Each side with the index of its trace.
    sides: Vec<(usize, Extent, WorkCost)>,
    left_out: usize,
}

impl ComparisonCosts {
    /// Adds the sides of a trace.
    pub(super) fn add(&mut self, trace: usize, added: ComparisonSides) {
        let sides = added.sides.into_iter();
        self.sides
            .extend(sides.map(|(extent, cost)| (trace, extent, cost)));
        self.left_out += added.left_out;
    }

    /// Returns a sentence with the number of labels that are not compared; `None` if all are.
    pub(super) fn left_out(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            format!(
                "{} labels are not compared in this file: `gapscope view` compares all.",
                self.left_out
            )
        })
    }

    /// Returns the comparisons of every side with every other side that may be its counterpart: whole traces with
    /// other traces, labels with other labels of their trace and with the same label of other traces.
    pub(super) fn answers(&self) -> Vec<FileAnswer> {
        let mut answers = Vec::new();
        for (a, before_extent, before) in &self.sides {
            for (b, after_extent, after) in &self.sides {
                let fits = match (before_extent, after_extent) {
                    (Extent::All, Extent::All) => a != b,
                    (Extent::Label(x), Extent::Label(y)) => (a == b) == (x != y),
                    _ => false,
                };
                if fits {
                    let key = key([(*a, before_extent), (*b, after_extent)]);
                    answers.push(FileAnswer::json(
                        key,
                        &compared(before.clone(), after.clone()),
                    ));
                }
            }
        }
        answers
    }
}

/// Returns the key by which the page asks for a comparison.
fn key(sides: [(usize, &Extent); 2]) -> String {
    let mut query = Serializer::for_suffix("compare?".to_owned(), "compare?".len());
    for (name, (trace, extent)) in ["a", "b"].into_iter().zip(sides) {
        query.append_pair(name, &trace.to_string());
        if let Extent::Label(path) = extent {
            query.append_pair(&format!("{name}_label"), path);
        }
    }
    query.finish()
}
