//! Chooses the part of a run that a question is about: from the findings, or by the name of a label.

use crate::steps::Step;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::label_match::LabelName;
use gapscope_timeline::thresholds::LEAST_STEPS;
use gapscope_trace::tables::Table;

/// The part of a run that is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// The part.
    pub window: Interval,
    /// The number of steps in it; `None` where it is a run without steps.
    pub steps: Option<u64>,
    /// The length of the median step; of an even number the shorter of both in the middle.
    pub median_ns: Option<i64>,
}

impl Extent {
    /// Returns the steps of the program that are not in its warm-up, without a first and a last one that were cut or are not like the others, or else the part of the run that the verdict is about; `None`
    /// without work. Without steps it begins with the calls that submitted the first work.
    pub fn from_steps(
        timeline: &Timeline,
        steps: &[Step],
        analysed_window: Option<Interval>,
    ) -> Option<Extent> {
        let steps = steps.iter().filter(|step| !step.is_left_out);
        let ranges = steps.map(|step| {
            Interval::new(
                step.start_ns,
                step.start_ns.saturating_add(step.duration_ns),
            )
        });
        let mut ranges: Vec<Interval> = ranges.collect();
        let median_ns = median_ns(&ranges);
        let is_cut = |range: &Interval| {
            let usual_ns = median_ns.unwrap_or(0);
            range.length_ns() > usual_ns.saturating_mul(2) || range.length_ns() < usual_ns / 2
        };
        if ranges.len() > LEAST_STEPS && ranges.first().is_some_and(is_cut) {
            ranges.remove(0);
        }
        if ranges.len() > LEAST_STEPS && ranges.last().is_some_and(is_cut) {
            ranges.pop();
        }
        let count = ranges.len() as u64;
        match ranges.into_iter().reduce(Interval::hull) {
            Some(window) => Some(Extent {
                window,
                steps: Some(count),
                median_ns,
            }),
            None => Some(Extent {
                window: with_first_calls(timeline, analysed_window?),
                steps: None,
                median_ns: None,
            }),
        }
    }

    /// Returns the part of a run from the first to the last range with a label.
    ///
    /// # Errors
    /// A sentence without a full stop, where no range has the label.
    pub fn from_label(timeline: &Timeline, name: &str) -> Result<Extent, String> {
        let tables = &timeline.trace.tables;
        let means = LabelName::new(timeline.trace, name);
        let meant: Vec<bool> = tables
            .labels
            .text
            .iter()
            .map(|text| means.means(text))
            .collect();
        let markers = &tables.markers;
        let rows = (0..markers.len()).filter(|row| {
            let label = timeline.label_ids.row(markers.label[*row]);
            meant.get(label as usize).copied().unwrap_or_default()
        });
        let ranges = rows.filter_map(|row| {
            let range = Interval::from_row(markers.start_ns.at(row), markers.duration_ns.at(row))?;
            (!range.is_empty()).then_some(range)
        });
        let mut ranges: Vec<Interval> = ranges.collect();
        ranges.sort_unstable();
        // Ranges inside of others, or of other threads at the same time, belong to one step.
        let mut steps: Vec<Interval> = Vec::new();
        for range in ranges {
            match steps.last_mut() {
                Some(last) if range.start_ns < last.end_ns => *last = last.hull(range),
                _ => steps.push(range),
            }
        }
        let window = steps.iter().copied().reduce(Interval::hull);
        let window = window.ok_or_else(|| format!("no range of it is called {name:?}"))?;
        Ok(Extent {
            window,
            steps: Some(steps.len() as u64),
            median_ns: median_ns(&steps),
        })
    }
}

/// Returns the length of the median step.
fn median_ns(steps: &[Interval]) -> Option<i64> {
    let mut lengths: Vec<i64> = steps.iter().map(|step| step.length_ns()).collect();
    let middle = lengths.len().checked_sub(1)? / 2;
    Some(*lengths.select_nth_unstable(middle).1)
}

/// Returns a window that begins with the calls that submitted its first work on each device, where they lie before it.
fn with_first_calls(timeline: &Timeline, window: Interval) -> Interval {
    let calls_ns = &timeline.trace.tables.submissions.start_ns;
    let first = timeline.gpus.iter().filter_map(|gpu| {
        let works = &gpu.works;
        let at = works.partition_point(|work| work.interval.start_ns < window.start_ns);
        let row = timeline.submission_of(&works.get(at)?);
        let call_ns = calls_ns.get(row as usize).copied();
        call_ns.filter(|call_ns| Interval::from_row(Some(*call_ns), Some(0)).is_some())
    });
    let start_ns = first.min().unwrap_or(window.start_ns);
    Interval::new(start_ns.min(window.start_ns), window.end_ns)
}
