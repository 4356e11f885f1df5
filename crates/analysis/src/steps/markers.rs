//! Finds steps by ranges that are called like one: `ProfilerStep`, `step`, `iteration 12`.
//!
//! A *family* is the ranges of one thread (or of a process, a queue, a device) whose texts differ in numbers only. A family tells steps where
//! its ranges follow each other without overlap, and hold [`STEP_LAUNCHES`] of what its process submits from the first to the last:
//! those of a part of each step, such as of its optimiser, hold less. Of several families the surest name decides, then which holds more
//! of all submissions, then the outer.

use super::words::{Kind, kind_of, number_of, without_numbers};
use super::{FoundSteps, StepsFoundBy};
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Nanoseconds, Percent, ratio};
use gapscope_timeline::thresholds::{LEAST_STEPS, OUTER_STEPS, STEP_LAG, STEP_LAUNCHES};
use gapscope_timeline::{Timeline, is_work};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{MarkerScope, Table};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Parts of programs whose ranges are functions and modules, not steps.
const DOMAINS_WITHOUT_STEPS: [&str; 4] = ["torch.module", "torch.operator", "operator", "host"];

/// Ranges overlap where they do by more than one part in so many of the shorter.
const ROUNDING: i64 = 100;

/// Where ranges of a family were set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct FamilyPlace {
    process: ProcessId,
    thread: Option<ThreadId>,
    /// True where their times are of a device.
    on_device: bool,
    on_queue: bool,
}

/// A range of a family.
#[derive(Debug, Clone, Copy)]
struct LabelledRange {
    range: Interval,
    /// The row of its label.
    label: u32,
    /// The number of the step, where its label or its value says it.
    number: Option<u64>,
}

/// Ranges that may be steps.
struct Family {
    text: String,
    kind: Kind,
    place: FamilyPlace,
    ranges: Vec<LabelledRange>,
    /// The share of all submissions of its process that lie in its ranges; `None` where the process has none.
    held: Option<f64>,
    /// The same of those from the first range to the last.
    held_within: Option<f64>,
}

impl LabelledRange {
    fn is_same_step(&self, other: &LabelledRange) -> bool {
        (self.label, self.number) == (other.label, other.number)
    }
}

/// The submissions of a process: the start of each call and its row, in order of start.
type Submissions = Vec<(i64, u32)>;

/// Returns the steps that ranges tell.
pub(super) fn find(timeline: &Timeline) -> Option<FoundSteps> {
    let mut families = families(timeline);
    let mut submissions: FxHashMap<ProcessId, Submissions> = FxHashMap::default();
    for family in &mut families {
        let process = family.place.process;
        let all = submissions
            .entry(process)
            .or_insert_with(|| submissions_of(timeline, process));
        family.hold(all);
    }
    let any_submission = timeline.trace.tables.submissions.len() > 0;
    families.retain(
        |family| match (family.held_within, family.place.on_device) {
            (_, true) => true,
            (Some(share), false) => share >= STEP_LAUNCHES,
            (None, false) => !any_submission,
        },
    );
    let best = families.iter().map(|family| family.kind).min()?;
    families.retain(|family| family.kind == best);
    let held = |family: &Family| family.held.unwrap_or(0.0);
    let most = families.iter().map(held).fold(0.0, f64::max);
    families.retain(|family| held(family) >= OUTER_STEPS * most);
    // Of families that hold as much the one with fewer ranges is around the others.
    let family = families
        .into_iter()
        .min_by_key(|family| (family.ranges.len(), family.place, family.text.clone()))?;
    let of_process = submissions.get(&family.place.process);
    Some(family.steps(timeline, of_process))
}

/// Returns all families whose ranges follow each other.
fn families(timeline: &Timeline) -> Vec<Family> {
    let tables = &timeline.trace.tables;
    let (markers, labels) = (&tables.markers, &tables.labels);
    // The number of the text of each label that is called like a step, or `NONE`.
    let mut texts: Vec<(String, Kind)> = Vec::new();
    let mut text_numbers: FxHashMap<String, u32> = FxHashMap::default();
    let text_of_row: Vec<u32> = (labels.text.iter())
        .map(|text| {
            let Some(kind) = kind_of(text) else {
                return NONE;
            };
            let plain = without_numbers(text);
            *text_numbers.entry(plain).or_insert_with_key(|plain| {
                texts.push((plain.clone(), kind));
                texts.len() as u32 - 1
            })
        })
        .collect();
    let mut families: FxHashMap<(u32, FamilyPlace), Vec<LabelledRange>> = FxHashMap::default();
    // An analysis that does not read when markers began has no ranges.
    let timed = markers.start_ns.len().min(markers.scope.len());
    for row in 0..timed {
        let label = timeline.label_ids.row(markers.label[row]);
        let Some(text) = text_of_row
            .get(label as usize)
            .filter(|text| **text != NONE)
        else {
            continue;
        };
        let range = Interval::from_row(markers.start_ns.at(row), markers.duration_ns.at(row));
        let Some(range) = range.filter(|range| !range.is_empty()) else {
            continue;
        };
        let domain = markers.domain.get(row).and_then(|domain| domain.as_deref());
        if domain.is_some_and(|domain| DOMAINS_WITHOUT_STEPS.contains(&domain)) {
            continue;
        }
        let scope = markers.scope[row];
        let place = FamilyPlace {
            process: markers.process[row],
            thread: (markers.thread.at(row)).filter(|_| scope == MarkerScope::Thread),
            on_device: scope == MarkerScope::CommandBuffer,
            on_queue: scope == MarkerScope::Queue,
        };
        let payload = markers.payload.get(row).and_then(|value| value.as_deref());
        families
            .entry((*text, place))
            .or_default()
            .push(LabelledRange {
                range,
                label,
                number: number_of(&labels.text[label as usize], payload),
            });
    }
    let families = families.into_iter();
    let families = families.filter_map(|((text, place), ranges)| {
        let (text, kind) = texts[text as usize].clone();
        let ranges = in_sequence(ranges, place.on_device)?;
        Some(Family {
            text,
            kind,
            place,
            ranges,
            held: None,
            held_within: None,
        })
    });
    families.collect()
}

/// Returns the ranges in order, without those inside of others; `None` where they are too few or overlap. Those on a device that
/// have one label with a number are one: a step may need several command buffers.
fn in_sequence(mut ranges: Vec<LabelledRange>, on_device: bool) -> Option<Vec<LabelledRange>> {
    ranges.sort_by_key(|one| (one.range.start_ns, Reverse(one.range.end_ns), one.label));
    let is_numbered = ranges.iter().any(|one| !one.is_same_step(&ranges[0]));
    let mut outer: Vec<LabelledRange> = Vec::with_capacity(ranges.len());
    for mut one in ranges {
        let range = one.range;
        match outer.last_mut() {
            Some(last) if on_device && is_numbered && last.is_same_step(&one) => {
                last.range = last.range.hull(range)
            }
            Some(last) if range.end_ns <= last.range.end_ns => {}
            Some(last) if range.start_ns < last.range.end_ns => {
                // Profilers round the times of ranges that follow each other.
                let last = last.range;
                let overlap_ns = last.end_ns.saturating_sub(range.start_ns);
                if overlap_ns.saturating_mul(ROUNDING) > range.length_ns().min(last.length_ns()) {
                    return None;
                }
                one.range.start_ns = last.end_ns;
                outer.push(one);
            }
            _ => outer.push(one),
        }
    }
    (outer.len() >= LEAST_STEPS).then_some(outer)
}

/// Returns the submissions of a process that hand work to a queue.
fn submissions_of(timeline: &Timeline, process: ProcessId) -> Submissions {
    let table = &timeline.trace.tables.submissions;
    let rows =
        (0..table.len()).filter(|row| table.process[*row] == process && is_work(table.kind[*row]));
    let mut all: Submissions = rows.map(|row| (table.start_ns[row], row as u32)).collect();
    if !all.is_sorted() {
        all.sort_unstable();
    }
    all
}

/// Returns the submissions that begin in a range.
fn in_range(all: &Submissions, range: Interval) -> &[(i64, u32)] {
    let from = all.partition_point(|(ns, _)| *ns < range.start_ns);
    let to = all.partition_point(|(ns, _)| *ns < range.end_ns);
    &all[from..to.max(from)]
}

impl Family {
    /// Notes which share of the submissions the ranges hold.
    fn hold(&mut self, all: &Submissions) {
        let (Some(first), Some(last)) = (self.ranges.first(), self.ranges.last()) else {
            return;
        };
        let held = self.ranges.iter().map(|one| in_range(all, one.range).len());
        let held = held.sum::<usize>() as i64;
        let share = |of: usize| (of > 0).then(|| ratio(held, of as i64));
        self.held = share(all.len());
        self.held_within = share(in_range(all, first.range.hull(last.range)).len());
    }

    /// Returns the steps.
    fn steps(self, timeline: &Timeline, submissions: Option<&Submissions>) -> FoundSteps {
        let numbers: Option<Vec<u64>> = self.ranges.iter().map(|one| one.number).collect();
        // The same number again and again tells no step from another.
        let numbers = numbers.filter(|numbers| numbers.windows(2).all(|two| two[0] < two[1]));
        let mut ranges: Vec<Interval> = self.ranges.iter().map(|one| one.range).collect();
        let mut found = format!(
            "Steps are the ranges \"{}\"{}.",
            self.text,
            self.whose(timeline)
        );
        if self.place.on_device {
            for at in (1..ranges.len()).rev() {
                ranges[at].start_ns = ranges[at - 1].end_ns;
            }
            found += " Each goes from the end of the one before to its own end.";
        }
        if let Some(lag) = submissions.and_then(|all| self.lag(timeline, all)) {
            found += &lag;
        }
        FoundSteps {
            by: StepsFoundBy::Markers,
            label: Some(self.text),
            process_id: Some(self.place.process),
            thread: self.place.thread,
            found,
            ranges,
            numbers: numbers.unwrap_or_default(),
        }
    }

    /// Returns who set the ranges, where several may have.
    fn whose(&self, timeline: &Timeline) -> String {
        let manifest = &timeline.trace.manifest;
        let thread = HostThread::from_row(self.place.process, self.place.thread);
        match thread {
            Some(thread) => {
                let name = thread.name(manifest);
                match name {
                    // Profilers put the word into the name.
                    Some(name) if name.starts_with("thread") => format!(" of {name}"),
                    Some(name) => format!(" of thread {name}"),
                    None => format!(" of thread {}", thread.thread),
                }
            }
            None if self.place.on_device => " in command buffers".to_owned(),
            None if self.place.on_queue => " of queues".to_owned(),
            None => String::new(),
        }
    }

    /// Returns a sentence on how much later than the ranges their work ends, where that is much.
    fn lag(&self, timeline: &Timeline, all: &Submissions) -> Option<String> {
        if self.place.on_device {
            return None;
        }
        let late = self.ranges.iter().filter_map(|one| {
            let range = one.range;
            let ends = in_range(all, range).iter();
            let ends =
                ends.filter_map(|(_, row)| timeline.submissions.get(*row as usize)?.interval());
            let end_ns = ends.map(|ran| ran.end_ns).max()?;
            Some((
                end_ns.saturating_sub(range.end_ns).max(0),
                range.length_ns(),
            ))
        });
        let mut late: Vec<(i64, i64)> = late.collect();
        if late.is_empty() {
            return None;
        }
        let middle = late.len() / 2;
        let (_, (late_ns, of_ns), _) = late.select_nth_unstable(middle);
        let share = ratio(*late_ns, *of_ns);
        (share >= STEP_LAG).then(|| {
            format!(
                " The program submits ahead: in the median the work of a step ends {} after its range ({} of its length), so that the GPU runs work of a step in the time of the next.",
                Nanoseconds(*late_ns),
                Percent(share)
            )
        })
    }
}
