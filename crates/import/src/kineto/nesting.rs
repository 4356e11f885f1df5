//! Which label is the innermost on a thread at a time.

use super::facts::Annotation;
use super::texts::{TextId, Texts};
use gapscope_trace::build::Labels;
use gapscope_trace::ids::LabelId;
use std::cmp::Reverse;

/// A step of the profiler's schedule: `ProfilerStep#12`. All are one label.
const STEP: &str = "ProfilerStep#";

/// A range with its label.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labelled {
    pub(super) range: Annotation,
    pub(super) label: LabelId,
}

/// The labels of a thread over time.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    /// From when which label is the innermost.
    changes: Vec<(i64, Option<LabelId>)>,
    pub(super) ranges: Vec<Labelled>,
}

impl Nesting {
    /// Of ranges in any order. Of those that do not nest, the later one counts until it ends.
    pub(super) fn of(mut ranges: Vec<Annotation>, texts: &Texts, labels: &mut Labels) -> Nesting {
        ranges.sort_by_key(|range| (range.start_ns, Reverse(range.end_ns)));
        let mut nesting = Nesting::default();
        let mut open: Vec<(i64, LabelId)> = Vec::new();
        for range in ranges {
            nesting.close(&mut open, range.start_ns);
            let text = label_of(texts.get(range.name)).0;
            let label = labels.named(open.last().map(|(_, label)| *label), text);
            open.push((range.end_ns, label));
            nesting.change(range.start_ns, Some(label));
            nesting.ranges.push(Labelled { range, label });
        }
        nesting.close(&mut open, i64::MAX);
        nesting
    }

    /// Ends what is over at a time.
    fn close(&mut self, open: &mut Vec<(i64, LabelId)>, at_ns: i64) {
        while let Some((end_ns, _)) = open.last().copied()
            && end_ns <= at_ns
        {
            open.pop();
            self.change(end_ns, open.last().map(|(_, label)| *label));
        }
    }

    fn change(&mut self, at_ns: i64, label: Option<LabelId>) {
        // One that ends within another that is over already changes nothing before that.
        let at_ns = at_ns.max(self.changes.last().map_or(i64::MIN, |(ns, _)| *ns));
        match self.changes.last_mut() {
            Some(last) if last.0 == at_ns => last.1 = label,
            _ => self.changes.push((at_ns, label)),
        }
    }

    /// The innermost label at a time.
    pub(super) fn at(&self, at_ns: i64) -> Option<LabelId> {
        let after = self.changes.partition_point(|(ns, _)| *ns <= at_ns);
        self.changes.get(after.checked_sub(1)?)?.1
    }
}

/// The text of an annotation's label, and what tells its instances apart.
pub(super) fn label_of(name: &str) -> (&str, Option<&str>) {
    match name.strip_prefix(STEP) {
        Some(number) => (&STEP[..STEP.len() - 1], Some(number)),
        None => (name, None),
    }
}

/// True for the steps of the profiler's schedule, which are of the whole process.
pub(super) fn is_step(name: TextId, texts: &Texts) -> bool {
    texts.get(name).starts_with(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_nest_and_steps_are_one_label() {
        let (mut texts, mut labels) = (Texts::default(), Labels::default());
        let mut range = |name: &str, start_ns, end_ns| Annotation {
            name: texts.id(name.as_bytes()),
            start_ns,
            end_ns,
        };
        let ranges = vec![
            range("inner", 20, 30),
            range("ProfilerStep#1", 0, 50),
            range("ProfilerStep#2", 50, 90),
            range("crossing", 40, 60),
        ];
        let nesting = Nesting::of(ranges, &texts, &mut labels);
        let step = labels.named(None, "ProfilerStep");
        let inner = labels.named(Some(step), "inner");
        assert_eq!(nesting.at(-1), None);
        assert_eq!(nesting.at(0), Some(step));
        assert_eq!(nesting.at(20), Some(inner));
        assert_eq!(nesting.at(30), Some(step));
        assert_eq!(nesting.at(90), None);
        assert_eq!(label_of("ProfilerStep#12"), ("ProfilerStep", Some("12")));
    }
}
