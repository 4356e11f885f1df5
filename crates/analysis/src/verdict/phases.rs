//! Finds phases of a program that have verdicts of their own: the work under different labels, or times before and
//! after a change.
//!
//! One walk adds up, for each of [`SLICES`] equal slices of the window and for each label, the parts of the verdict's time.
//! The outermost level of labels that has several counts. Without labels whose verdicts differ, the slices are split
//! where the parts differ most, at most twice.
//!
//! A phase has [`VERDICT_PHASE_SHARE`] of the time and [`PHASE_WORKS`] pieces of work, no gap makes up [`PHASE_DIFFERENCE`] of its time
//! alone, and some part of its time differs by that share from another phase's. Idle time before work counts for the
//! label of that work. Nothing is told where these sums, which leave out the critical path and how much kernels fill, give
//! another verdict on the whole than [`Judgement`](super::Judgement).

use super::Times;
use crate::bound::Bound;
use crate::gaps::explain::Explainer;
use crate::gaps::visit::visit_gaps;
use crate::gaps::{Cause, GapPart, Side};
use gapscope_timeline::busy::BusyParts;
use gapscope_timeline::intervals::{Busy, Interval};
use gapscope_timeline::quantity::{Nanoseconds, Percent, ratio};
use gapscope_timeline::thresholds::{PHASE_DIFFERENCE, PHASE_WORKS, VERDICT_PHASE_SHARE};
use gapscope_timeline::{Content, Timeline, Work};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::Table;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::ops::Range;

/// The number of slices of the window. A phase has several of them.
const SLICES: usize = 64;
/// The most phases that are told.
const MAX_PHASES: usize = 3;
/// The most labels of a level that count as phases. Of more, such as one for each step, none has a share that counts.
const MAX_LABELS: usize = 64;

/// A part of the program with a verdict of its own.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// The label of its work; absent where a change in time tells the phase.
    pub label: Option<String>,
    /// When it begins: its first work, where it is a label.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
    /// The judged device time in it.
    pub window_ns: i64,
    /// What bounds its speed.
    pub verdict: Bound,
    /// The same in one sentence.
    pub sentence: String,
}

/// The sums over the slices and labels of a window, from which phases are told.
pub(crate) struct PhaseSums {
    window: Interval,
    origin_ns: i64,
    labels: PhaseLabels,
    walk: Walk,
}

impl PhaseSums {
    /// Adds up the work and the gaps in `window`.
    pub(crate) fn new(timeline: &Timeline, window: Interval) -> PhaseSums {
        let labels = PhaseLabels::new(timeline);
        PhaseSums {
            window,
            origin_ns: timeline.trace.manifest.start_ns,
            walk: Walk::new(timeline, window, &labels),
            labels,
        }
    }

    /// Returns the phases in order of time; none where no two have different verdicts. `bound` is the verdict on the whole.
    pub(crate) fn phases(&self, bound: Bound) -> Vec<Phase> {
        let whole = Sum::new(&self.walk.slices);
        if whole.bound() != bound {
            return Vec::new();
        }
        let by_label = self.labels.phases(&self.walk.labels, &whole);
        match by_label.is_empty() {
            true => by_change(&self.walk.slices, self.window, self.origin_ns),
            false => by_label,
        }
    }
}

/// The parts of the verdict's time in a slice or under a label.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    busy: BusyParts,
    /// The idle time of each side, in the order of [`Side::ALL`].
    sides: [i64; Side::ALL.len()],
    works: u64,
    longest_gap_ns: i64,
    /// From the first work or gap to the end of the last.
    hull: Option<Interval>,
}

/// The unions of the work of one device in a slice or under a label. Each includes the one before it.
#[derive(Debug, Clone, Copy, Default)]
struct Unions {
    compute: Busy,
    communication: Busy,
    transfers: Busy,
    /// The union that also includes work that is timed as a whole and may idle within.
    all: Busy,
}

impl Unions {
    #[inline]
    fn add(&mut self, interval: Interval, content: Content) {
        self.all.add(interval);
        if matches!(content, Content::Whole { idle: true, .. }) {
            return;
        }
        self.transfers.add(interval);
        if content == Content::Transfer {
            return;
        }
        self.communication.add(interval);
        if content != Content::Communication {
            self.compute.add(interval);
        }
    }

    fn parts(&self) -> BusyParts {
        BusyParts {
            compute_ns: self.compute.length_ns,
            communication_ns: self.communication.length_ns - self.compute.length_ns,
            transfer_ns: self.transfers.length_ns - self.communication.length_ns,
            whole_ns: self.all.length_ns - self.transfers.length_ns,
            ..BusyParts::default()
        }
    }
}

impl Sum {
    fn new<'s>(parts: impl IntoIterator<Item = &'s Sum>) -> Sum {
        (parts.into_iter()).fold(Sum::default(), |sum, part| Sum {
            busy: sum.busy.plus(part.busy),
            sides: std::array::from_fn(|side| sum.sides[side].saturating_add(part.sides[side])),
            works: sum.works + part.works,
            longest_gap_ns: sum.longest_gap_ns.max(part.longest_gap_ns),
            hull: match (sum.hull, part.hull) {
                (Some(one), Some(other)) => Some(one.hull(other)),
                (one, other) => one.or(other),
            },
        })
    }

    fn add_hull(&mut self, interval: Interval) {
        self.hull = Some(self.hull.map_or(interval, |hull| hull.hull(interval)));
    }

    /// Returns the parts of the time with their names.
    fn parts(&self) -> [(&'static str, i64); 7] {
        let [host, sync, launch, unknown] = self.sides;
        [
            ("compute", self.busy.compute_ns),
            ("communication", self.busy.communication_ns),
            ("transfer", self.busy.transfer_ns),
            ("host", host),
            ("sync", sync),
            ("launch", launch),
            ("unknown", unknown.saturating_add(self.busy.whole_ns)),
        ]
    }

    fn window_ns(&self) -> i64 {
        let parts = self.parts().into_iter();
        parts.fold(0, |sum, (_, ns)| i64::saturating_add(sum, ns))
    }

    fn bound(&self) -> Bound {
        let [host_ns, sync_ns, launch_ns, unknown_ns] = self.sides;
        Bound::from_times(&Times {
            window_ns: self.window_ns(),
            busy: self.busy,
            host_ns,
            sync_ns,
            launch_ns,
            unknown_ns,
            ..Times::default()
        })
    }

    /// Returns the greatest difference between a part's shares of the two times.
    fn difference(&self, other: &Sum) -> f64 {
        let windows = [self.window_ns(), other.window_ns()];
        let pairs = self.parts().into_iter().zip(other.parts());
        let differences = pairs.map(|((_, mine), (_, theirs))| {
            (ratio(mine, windows[0]) - ratio(theirs, windows[1])).abs()
        });
        differences.fold(0.0, f64::max)
    }

    /// Returns true where the time is long, and alike enough within, to be a phase.
    fn is_phase(&self, whole_ns: i64) -> bool {
        let window_ns = self.window_ns();
        ratio(window_ns, whole_ns) >= VERDICT_PHASE_SHARE
            && self.works >= PHASE_WORKS
            && ratio(self.longest_gap_ns, window_ns) < PHASE_DIFFERENCE
    }

    /// Returns the phase of this time. `place` names it at the start of its sentence.
    fn phase(&self, label: Option<String>, interval: Interval, place: &str) -> Phase {
        const NAMED: usize = 2;
        let window_ns = self.window_ns();
        let mut parts = self.parts();
        parts.sort_by_key(|(_, ns)| Reverse(*ns));
        let parts = parts.iter().filter(|(_, ns)| *ns > 0).take(NAMED);
        let parts = parts.map(|(what, ns)| format!("{what} {}", Percent(ratio(*ns, window_ns))));
        let parts: Vec<String> = parts.collect();
        let verdict = self.bound();
        Phase {
            label,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            window_ns,
            verdict,
            sentence: format!("{place}: {verdict} ({}).", parts.join(", ")),
        }
    }
}

/// The labels of the outermost level of which several have work.
#[derive(Debug, Default)]
struct PhaseLabels {
    texts: Vec<String>,
    /// For each row of the table of labels, the index in `texts`, or [`NONE`].
    by_row: Vec<u32>,
}

impl PhaseLabels {
    fn new(timeline: &Timeline) -> PhaseLabels {
        const LEVELS: usize = 3;
        let table = &timeline.trace.tables.labels;
        let mut has_work = vec![false; table.len()];
        for gpu in &timeline.gpus {
            for work in &gpu.works {
                if let Some(has) = has_work.get_mut(timeline.label_row_of(&work) as usize) {
                    *has = true;
                }
            }
        }
        // The rows from a label outwards. Damaged traces may have parents in a circle.
        let outwards = |row: usize| {
            let parent = |row: &usize| {
                let parent = timeline.label_ids.row(table.parent.at(*row)?);
                (parent != NONE).then_some(parent as usize)
            };
            let mut path: Vec<usize> = std::iter::successors(Some(row), parent).take(64).collect();
            path.reverse();
            path
        };
        let used = || (0..table.len()).filter(|row| has_work[*row]);
        for level in 0..LEVELS {
            let mut texts: Vec<String> = Vec::new();
            let mut by_row = vec![NONE; table.len()];
            for row in used() {
                let Some(row_of_level) = outwards(row).get(level).copied() else {
                    continue;
                };
                let text = &*table.text[row_of_level];
                let known = texts.iter().position(|known| known == text);
                if known.is_none() && texts.len() == MAX_LABELS {
                    return PhaseLabels::default();
                }
                by_row[row] = known.unwrap_or(texts.len()) as u32;
                if known.is_none() {
                    texts.push(text.to_owned());
                }
            }
            match texts.len() {
                0 => return PhaseLabels::default(),
                1 => {}
                _ => return PhaseLabels { texts, by_row },
            }
        }
        PhaseLabels::default()
    }

    /// Returns the index of the label of a piece of work, or the number of labels for work under none.
    #[inline]
    fn index(&self, timeline: &Timeline, work: &Work) -> usize {
        if self.texts.is_empty() {
            return 0;
        }
        let index = self.by_row.get(timeline.label_row_of(work) as usize);
        (index.copied())
            .filter(|index| *index != NONE)
            .map_or(self.texts.len(), |index| index as usize)
    }

    /// Returns the labels whose work makes up phases, in the order of their first work; none where their verdicts are
    /// alike.
    fn phases(&self, sums: &[Sum], whole: &Sum) -> Vec<Phase> {
        let whole_ns = whole.window_ns();
        let labels = self.texts.iter().zip(sums);
        let mut labels: Vec<(&String, &Sum)> =
            labels.filter(|(_, sum)| sum.is_phase(whole_ns)).collect();
        labels.sort_by_key(|(_, sum)| Reverse(sum.window_ns()));
        labels.truncate(MAX_PHASES);
        let differ = labels.iter().any(|(_, one)| {
            labels.iter().any(|(_, other)| {
                one.bound() != other.bound() && one.difference(other) >= PHASE_DIFFERENCE
            })
        });
        if !differ {
            return Vec::new();
        }
        labels.sort_by_key(|(_, sum)| sum.hull.map(|hull| hull.start_ns));
        (labels.into_iter())
            .map(|(label, sum)| {
                let share = Percent(ratio(sum.window_ns(), whole_ns));
                let place = format!("Under {label}, {share} of the time");
                sum.phase(Some(label.clone()), sum.hull.unwrap_or_default(), &place)
            })
            .collect()
    }
}

/// The sums of one walk over all devices.
struct Walk {
    slices: Vec<Sum>,
    /// The sums of each of [`PhaseLabels::texts`], and of what is under none of these.
    labels: Vec<Sum>,
}

impl Walk {
    fn new(timeline: &Timeline, window: Interval, labels: &PhaseLabels) -> Walk {
        let explainer = Explainer::new(timeline);
        let bounds = bounds_ns(window);
        let mut walk = Walk {
            slices: vec![Sum::default(); SLICES],
            labels: vec![Sum::default(); labels.texts.len() + 1],
        };
        for (device, gpu) in timeline.gpus.iter().enumerate() {
            let mut slices = vec![Unions::default(); SLICES];
            let mut by_label = vec![Unions::default(); walk.labels.len()];
            let mut place = 0;
            for work in &gpu.works {
                let inside = work.interval.intersection(window);
                if inside.is_empty() {
                    continue;
                }
                let content = timeline.content(&work);
                let label = labels.index(timeline, &work);
                by_label[label].add(inside, content);
                walk.labels[label].works += 1;
                walk.labels[label].add_hull(inside);
                walk.slices[cut(&bounds, &mut place, inside, |slice, piece| {
                    slices[slice].add(piece, content);
                })]
                .works += 1;
            }
            for (sum, unions) in walk.slices.iter_mut().zip(&slices) {
                sum.busy = sum.busy.plus(unions.parts());
            }
            for (sum, unions) in walk.labels.iter_mut().zip(&by_label) {
                sum.busy = sum.busy.plus(unions.parts());
            }
            let mut place = 0;
            visit_gaps(&explainer, device, |gap, [_, after], parts| {
                let gap_ns = gap.intersection(window).length_ns();
                let label = &mut walk.labels[labels.index(timeline, after)];
                label.longest_gap_ns = label.longest_gap_ns.max(gap_ns);
                for part in parts.iter().filter(|part| part.cause != Cause::Recording) {
                    walk.add_idle(
                        &bounds,
                        &mut place,
                        part,
                        labels.index(timeline, after),
                        window,
                    );
                }
                if gap_ns > 0 {
                    let slice = slice_of(&bounds, gap.intersection(window).start_ns);
                    let longest_ns = &mut walk.slices[slice].longest_gap_ns;
                    *longest_ns = (*longest_ns).max(gap_ns);
                }
            });
        }
        walk
    }

    /// Adds idle time with a cause to its slices and to a label.
    fn add_idle(
        &mut self,
        bounds: &[i64],
        place: &mut usize,
        part: &GapPart,
        label: usize,
        window: Interval,
    ) {
        let inside = part.interval().intersection(window);
        if inside.is_empty() {
            return;
        }
        let side = part.cause.side() as usize;
        let slices = &mut self.slices;
        cut(bounds, place, inside, |slice, piece| {
            slices[slice].sides[side] += piece.length_ns();
        });
        self.labels[label].sides[side] += inside.length_ns();
    }
}

/// Returns the start of each slice, and the end of the last.
fn bounds_ns(window: Interval) -> Vec<i64> {
    let bound = |slice: usize| {
        let offset = i128::from(window.length_ns()) * slice as i128 / SLICES as i128;
        window.start_ns + offset as i64
    };
    (0..=SLICES).map(bound).collect()
}

/// Returns the slice that holds a moment of the window.
fn slice_of(bounds: &[i64], at_ns: i64) -> usize {
    let after = bounds.partition_point(|bound| *bound <= at_ns);
    after.saturating_sub(1).min(SLICES - 1)
}

/// Calls `add` with the pieces of an interval in the window, by slice, and returns the slice in which the interval begins.
/// `place` is the slice of the interval before, and intervals come in order of start.
#[inline]
fn cut(
    bounds: &[i64],
    place: &mut usize,
    interval: Interval,
    mut add: impl FnMut(usize, Interval),
) -> usize {
    while *place + 1 < SLICES && bounds[*place + 1] <= interval.start_ns {
        *place += 1;
    }
    let mut slice = *place;
    let mut from_ns = interval.start_ns;
    while from_ns < interval.end_ns && slice < SLICES {
        let until_ns = bounds[slice + 1].min(interval.end_ns);
        add(slice, Interval::new(from_ns, until_ns));
        from_ns = until_ns;
        slice += 1;
    }
    *place
}

/// Splits the slices where their parts differ most, and returns the pieces as phases; none where all have one
/// verdict.
fn by_change(slices: &[Sum], window: Interval, origin_ns: i64) -> Vec<Phase> {
    let whole_ns = Sum::new(slices).window_ns();
    let mut pieces: Vec<Range<usize>> = std::iter::once(0..slices.len()).collect();
    while pieces.len() < MAX_PHASES {
        let splits = pieces.iter().enumerate().filter_map(|(at, piece)| {
            let (middle, gain) = best_split(slices, piece.clone(), whole_ns)?;
            Some((at, middle, gain))
        });
        let Some((at, middle, _)) = splits.max_by(|a, b| a.2.total_cmp(&b.2)) else {
            break;
        };
        let piece = pieces[at].clone();
        pieces.splice(at..=at, [piece.start..middle, middle..piece.end]);
    }
    let mut at = 0;
    while at + 1 < pieces.len() {
        let bound = |piece: &Range<usize>| Sum::new(&slices[piece.clone()]).bound();
        match bound(&pieces[at]) == bound(&pieces[at + 1]) {
            true => {
                pieces[at].end = pieces[at + 1].end;
                pieces.remove(at + 1);
            }
            false => at += 1,
        }
    }
    if pieces.len() < 2 {
        return Vec::new();
    }
    let bounds = bounds_ns(window);
    let from_start = |ns: i64| Nanoseconds(ns.saturating_sub(origin_ns));
    (pieces.into_iter())
        .map(|piece| {
            let interval = Interval::new(bounds[piece.start], bounds[piece.end]);
            let place = format!(
                "From {} to {}",
                from_start(interval.start_ns),
                from_start(interval.end_ns)
            );
            Sum::new(&slices[piece]).phase(None, interval, &place)
        })
        .collect()
}

/// Returns the slice at which a piece is best split into two phases, and how much that tells them apart.
fn best_split(slices: &[Sum], piece: Range<usize>, whole_ns: i64) -> Option<(usize, f64)> {
    let splits = (piece.start + 1..piece.end).filter_map(|middle| {
        let left = Sum::new(&slices[piece.start..middle]);
        let right = Sum::new(&slices[middle..piece.end]);
        let difference = left.difference(&right);
        let counts = difference >= PHASE_DIFFERENCE
            && [left, right].iter().all(|side| side.is_phase(whole_ns));
        let lengths = [left, right].map(|side| side.window_ns() as f64);
        let weight = lengths[0] * lengths[1] / (lengths[0] + lengths[1]);
        counts.then_some((middle, difference * difference * weight))
    });
    splits.max_by(|a, b| a.1.total_cmp(&b.1))
}
