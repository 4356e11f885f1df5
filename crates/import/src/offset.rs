//! Finds the offset between the clocks of two files of one run, one of which has the launches of GPU work and the other
//! the ranges of host code in which launches happen.
//!
//! The launches and the ranges of the same threads go in; the offset at which most launches lie inside of ranges comes
//! out, with its error, and with how well the next best offset fits. A launch is a call of native code: it begins and
//! ends inside of one segment, the time between two neighbouring borders of ranges, and the innermost range of that
//! segment is an operator or a built-in function. Clocks that drift apart have an offset that grows, see [`drift`].

mod drift;
mod repetition;

pub(crate) use drift::Drift;
pub(crate) use repetition::Repetition;

use gapscope_model::Span;
use std::ops::Range;
use std::sync::Arc;

/// Offsets up to this one, in either direction, are tried. Both files take their times from the clocks of one machine,
/// which agreed within 3 µs in real pairs.
pub(crate) const MAX_OFFSET_NS: i64 = 5_000_000;
/// The distance between the offsets that are tried.
const STEP_NS: i64 = 100;
const STEPS: usize = (2 * MAX_OFFSET_NS / STEP_NS) as usize + 1;
/// By how much the ends of a launch may lie outside of its segment: what the clocks' readings and the rounding to whole
/// microseconds in older files of PyTorch's profiler cost.
const TOLERANCE_NS: i64 = 1_000;
/// The maximum number of launches with which each offset is tried; of more, every n-th is taken.
const MAX_TRIED: usize = 4_096;
/// The smallest share of launches that lie inside of an operator in files of one run. In the real pairs all do; with the
/// files of another run of the same program at most 54 % do, at the best of all offsets.
pub(crate) const MIN_SHARE: f64 = 0.9;
/// How far apart the clocks of both files may be for them to agree.
const CLOCKS_AGREE_NS: i64 = 20_000;
/// The smallest share where the clocks do not agree or drift apart, so that the launches alone must show it. Of one thread of
/// another run of the same program, 92 % lie inside of operators at the best of all offsets, because both do the same.
const MIN_SHARE_APART: f64 = 0.97;
/// The smallest number of launches that show anything: fewer fit by chance.
const MIN_LAUNCHES: u64 = 20;
/// The number of parts of the time whose offsets on one line show a drift as surely as clocks that agree.
const SURE_PARTS: usize = 5;
/// By how much the next best offset must fit worse. In the real pairs it fits worse by 35 % and more. Where the launches
/// repeat themselves, an offset by a whole repetition fits nearly as well as the true one.
const MIN_LEAD: f64 = 0.05;
/// By how much fewer launches may fit at an offset for it to count as as good as the best.
const AS_GOOD: f64 = 0.01;

/// Why files without common launches are not joined.
pub(crate) const NO_LAUNCHES: &str =
    "none of its operators' threads launches GPU work in that time";

/// A call that launched GPU work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub span: Span,
    /// The function's name without the suffix of a version.
    pub function: Arc<str>,
}

/// The segments and the launches of one thread, both in order of time. The segments' times are on the clock of the
/// launches as far as the files say it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadPair<'a> {
    pub segments: &'a [Range<i64>],
    pub launches: &'a [Launch],
}

/// How well launches and ranges fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// The launches in the time of the ranges of their threads, and those of them inside of an operator.
    pub launches: u64,
    pub inside: u64,
    /// What is added to the times of the ranges, and by how much that may be wrong. Where the clocks drift apart, this is the
    /// offset in the middle.
    pub offset_ns: i64,
    pub error_ns: i64,
    pub drift: Drift,
    /// The parts of the time whose offsets show the drift.
    drift_parts: usize,
    /// Another time, further away than the offsets that are tried, at which the launches repeat themselves.
    pub repetition: Option<Repetition>,
    /// The launches in the time of the ranges by the clocks of the files, and those of them inside of an operator.
    by_clocks: (u64, u64),
    /// The share of launches inside of an operator at the best offset elsewhere; `None` where there is no other.
    pub next_best_share: Option<f64>,
    /// The middle of the offsets that fit as well as the best.
    middle_ns: i64,
    /// Whether offsets on both sides of the best ones fit worse.
    is_bounded: bool,
}

impl Fit {
    /// Returns the share of launches inside of an operator.
    pub fn share(&self) -> f64 {
        match self.launches {
            0 => 0.0,
            launches => self.inside as f64 / launches as f64,
        }
    }

    /// Returns why the fit does not show that the files are of one run; `None` where it does.
    pub fn doubt(&self) -> Option<String> {
        let Fit {
            launches, inside, ..
        } = self;
        if *launches == 0 {
            return Some(NO_LAUNCHES.to_owned());
        }
        let apart_ns = (self.offset_ns.abs()).saturating_sub(self.error_ns);
        let agree = apart_ns <= CLOCKS_AGREE_NS;
        let (of_clocks, inside_by_clocks) = self.by_clocks;
        if !agree && of_clocks < MIN_LAUNCHES && inside_by_clocks == of_clocks {
            return Some(too_few(of_clocks));
        }
        let (least, place) = match !agree {
            // So many parts of another run would not have offsets on one line.
            _ if self.drift_parts >= SURE_PARTS => {
                (MIN_SHARE, "at the best offset of clocks that drift apart")
            }
            _ if self.drift.ns_per_s != 0 => (
                MIN_SHARE_APART,
                "at the best offset of clocks that drift apart",
            ),
            true => (
                MIN_SHARE_APART,
                "at the best offset, which the clocks of the files do not say",
            ),
            false => (MIN_SHARE, "at the best offset of the clocks"),
        };
        if self.share() < least {
            return Some(format!(
                "only {inside} of {launches} launches lie inside an operator of their thread {place}, where {:.0} % must: the files are not of one run, much of its GPU work is launched outside of operators, or their clocks are over 5 ms apart or drift by over 500 µs a second",
                least * 100.0
            ));
        }
        if *launches < MIN_LAUNCHES {
            return Some(too_few(*launches));
        }
        if let Some(other) = self.repetition
            && (!agree && self.drift.ns_per_s == 0 || other.share >= self.share() + AS_GOOD)
        {
            return Some(format!(
                "{inside} of {launches} launches lie inside an operator of their thread, and {:.1} % do {}, where they repeat themselves: which repetition the file is of cannot be told",
                other.share * 100.0,
                other.distance()
            ));
        }
        let next_best = self.next_best_share.unwrap_or(0.0);
        if !self.is_bounded || next_best > self.share() - MIN_LEAD {
            return Some(format!(
                "{inside} of {launches} launches lie inside an operator of their thread, and at another offset of the clocks {:.1} % do: these launches are too few or too regular to show that the files are of one run",
                if self.is_bounded {
                    next_best
                } else {
                    self.share()
                } * 100.0
            ));
        }
        None
    }
}

/// Returns why few launches show nothing.
fn too_few(launches: u64) -> String {
    format!(
        "only {launches} launches are in the time of its operators, which are too few to show that the files are of one run ({MIN_LAUNCHES} are enough)"
    )
}

/// Returns the segments of a thread's ranges, in order of time, in which launches may lie. Each range comes with its
/// times and whether it is native code. A range that ends after the range around it is cut there.
pub(crate) fn segments(mut ranges: Vec<(Span, bool)>) -> Vec<Range<i64>> {
    ranges.sort_unstable_by_key(|(span, is_native)| (span.start_ns, -span.duration_ns, *is_native));
    let mut segments: Vec<Range<i64>> = Vec::new();
    let mut add = |from: i64, to: i64, is_native: bool| {
        if is_native && from < to {
            segments.push(from..to);
        }
    };
    // The ends of the ranges around the current position.
    let mut open: Vec<(i64, bool)> = Vec::new();
    let mut at = i64::MIN;
    for (span, is_native) in ranges {
        while let Some((end, inner)) = open.pop_if(|(end, _)| *end <= span.start_ns) {
            add(at, end, inner);
            at = at.max(end);
        }
        let around = open.last().copied();
        if let Some((_, inner)) = around {
            add(at, span.start_ns, inner);
        }
        at = at.max(span.start_ns);
        let end = span.end_ns();
        open.push((around.map_or(end, |(outer, _)| end.min(outer)), is_native));
    }
    while let Some((end, inner)) = open.pop() {
        add(at, end, inner);
        at = at.max(end);
    }
    segments
}

/// Counts the tried offsets by the intervals of them that are added.
struct Offsets {
    /// By how much the count changes from one offset to the next.
    changes: Vec<i32>,
}

impl Offsets {
    fn new() -> Offsets {
        Offsets {
            changes: vec![0; STEPS + 1],
        }
    }

    fn add(&mut self, from_ns: i64, to_ns: i64) {
        if from_ns > MAX_OFFSET_NS || to_ns < -MAX_OFFSET_NS {
            return;
        }
        let from = (from_ns.max(-MAX_OFFSET_NS) + MAX_OFFSET_NS) as usize;
        let to = (to_ns.min(MAX_OFFSET_NS) + MAX_OFFSET_NS) as usize;
        let (from, end) = (from.div_ceil(STEP_NS as usize), to / STEP_NS as usize + 1);
        if from < end {
            self.changes[from] += 1;
            self.changes[end] -= 1;
        }
    }

    fn counts(self) -> impl Iterator<Item = i32> {
        let changes = self.changes.into_iter().take(STEPS);
        changes.scan(0, |count, change| {
            *count += change;
            Some(*count)
        })
    }
}

/// Returns the offset at a step.
fn offset_of(step: usize) -> i64 {
    step as i64 * STEP_NS - MAX_OFFSET_NS
}

/// Drifts from which the clocks' own is measured, in nanoseconds a second, until one fits: a part of the time in which a
/// drift moves the launches out of their ranges shows no offset.
const TRIED_DRIFTS: [i64; 5] = [0, 200_000, -200_000, 400_000, -400_000];

/// Returns the offset at which most launches lie inside of segments, with the drift of the clocks where more launches lie
/// inside of segments with it; `None` without launches near the segments.
pub(crate) fn fit_drifting(pairs: &[ThreadPair]) -> Option<Fit> {
    let mut best = fit(pairs)?;
    for tried in TRIED_DRIFTS {
        if best.inside == best.launches || best.share() >= MIN_SHARE && tried != 0 {
            break;
        }
        let drifting = drift::measure(pairs, tried).and_then(|(drift, drift_parts)| {
            let fit = moved_by(pairs, |segments| drift.moved(segments), fit)?;
            Some(Fit {
                drift,
                drift_parts,
                ..fit
            })
        });
        let is_better = |drifting: &Fit| drifting.share() >= best.share() + AS_GOOD;
        best = drifting.filter(is_better).unwrap_or(best);
    }
    best.repetition = moved_by(
        pairs,
        |segments| best.drift.moved(segments),
        |pairs| repetition::find(pairs, best.offset_ns),
    );
    Some(best)
}

/// Returns what a function finds for pairs whose segments are moved.
fn moved_by<T>(
    pairs: &[ThreadPair],
    moved: impl Fn(&[Range<i64>]) -> Vec<Range<i64>>,
    of: impl Fn(&[ThreadPair]) -> Option<T>,
) -> Option<T> {
    let segments: Vec<Vec<Range<i64>>> = pairs.iter().map(|pair| moved(pair.segments)).collect();
    let pairs = pairs.iter().zip(&segments);
    let pairs: Vec<ThreadPair> = pairs
        .map(|(pair, segments)| ThreadPair { segments, ..*pair })
        .collect();
    of(&pairs)
}

/// Returns the offset at which most launches lie inside of segments; `None` without launches near the segments.
pub(crate) fn fit(pairs: &[ThreadPair]) -> Option<Fit> {
    let near: Vec<ThreadPair> = pairs.iter().filter_map(ThreadPair::near).collect();
    let shares = shares(&near)?;
    let middle = STEPS / 2;
    let distance = |step: usize| step.abs_diff(middle);
    let best = (0..STEPS).max_by(|a, b| {
        let order = shares[*a].total_cmp(&shares[*b]);
        order.then(distance(*b).cmp(&distance(*a)))
    })?;
    let best_share = shares[best];
    let as_good = around(best, |step| shares[step] >= best_share - AS_GOOD);
    let middle_of_best = (as_good.start + as_good.end - 1) / 2;
    // The clocks are believed where the launches do not contradict them.
    let chosen = match as_good.contains(&middle) {
        true => middle,
        false => middle_of_best,
    };
    let error_steps = (chosen - as_good.start).max(as_good.end - 1 - chosen) as i64;
    // The slopes of the best offsets are no offsets of their own.
    let mut sorted = shares.clone();
    let (_, usual, _) = sorted.select_nth_unstable_by(middle, f64::total_cmp);
    let half = (best_share + *usual) / 2.0;
    let hill = around(best, |step| shares[step] >= half);
    let others = shares[..hill.start].iter().chain(&shares[hill.end..]);
    let offset_ns = offset_of(chosen);
    let (launches, inside) = inside_at(&near, offset_ns);
    Some(Fit {
        launches,
        inside,
        offset_ns,
        error_ns: (error_steps + 1) * STEP_NS,
        drift: Drift::default(),
        drift_parts: 0,
        repetition: None,
        by_clocks: inside_at(&near, 0),
        middle_ns: offset_of(middle_of_best),
        next_best_share: others.copied().max_by(f64::total_cmp),
        is_bounded: as_good.start > 0 && as_good.end < STEPS,
    })
}

/// Returns the launches in the time of the segments at an offset, and those inside of a segment.
fn inside_at(pairs: &[ThreadPair], offset_ns: i64) -> (u64, u64) {
    let counts = pairs.iter().map(|pair| pair.inside(offset_ns));
    counts.fold((0, 0), |sum, (all, inside)| (sum.0 + all, sum.1 + inside))
}

/// Returns the steps around one that a condition holds for without a break.
fn around(step: usize, holds: impl Fn(usize) -> bool) -> Range<usize> {
    let start = (0..step).rev().take_while(|step| holds(*step)).last();
    let last = (step + 1..STEPS).take_while(|step| holds(*step)).last();
    start.unwrap_or(step)..last.unwrap_or(step) + 1
}

/// Returns for each offset the share of launches that lie inside of segments; `None` without launches.
fn shares(pairs: &[ThreadPair]) -> Option<Vec<f64>> {
    let all: usize = pairs.iter().map(|pair| pair.launches.len()).sum();
    let every = all.div_ceil(MAX_TRIED).max(1);
    let (mut near, mut inside) = (Offsets::new(), Offsets::new());
    for pair in pairs {
        for launch in pair.launches.iter().step_by(every) {
            pair.try_offsets(launch, &mut near, &mut inside);
        }
    }
    let near: Vec<i32> = near.counts().collect();
    let most = near.iter().copied().max().filter(|most| *most > 0)?;
    let shares = near.iter().zip(inside.counts()).map(|(near, inside)| {
        // Offsets at which few launches remain show nothing.
        let of = f64::from(*near).max(f64::from(most) / 2.0);
        (f64::from(inside) / of).min(1.0)
    });
    Some(shares.collect())
}

impl<'a> ThreadPair<'a> {
    /// Returns the pair with those launches alone that some offset puts into the time of the segments.
    fn near(&self) -> Option<ThreadPair<'a>> {
        let from_ns = self.segments.first()?.start.saturating_sub(MAX_OFFSET_NS);
        let to_ns = self.segments.last()?.end.saturating_add(MAX_OFFSET_NS);
        let launches = self.launches;
        let from = launches.partition_point(|launch| launch.span.start_ns < from_ns);
        let to = launches.partition_point(|launch| launch.span.start_ns <= to_ns);
        let launches = launches.get(from..to)?;
        (!launches.is_empty()).then_some(ThreadPair {
            segments: self.segments,
            launches,
        })
    }

    /// Returns the time from the first segment to the end of the last.
    fn window(&self) -> Option<Range<i64>> {
        Some(self.segments.first()?.start..self.segments.last()?.end)
    }

    /// Adds the offsets at which a launch is in the time of the segments, and those at which it lies inside of one.
    fn try_offsets(&self, launch: &Launch, near: &mut Offsets, inside: &mut Offsets) {
        let Some(window) = self.window() else { return };
        let Range { start, end } = inner(launch.span);
        near.add(
            end.saturating_sub(window.end),
            start.saturating_sub(window.start),
        );
        let from_ns = end.saturating_sub(MAX_OFFSET_NS);
        let to_ns = start.saturating_add(MAX_OFFSET_NS);
        let first = (self.segments).partition_point(|segment| segment.end < from_ns);
        let segments = self.segments[first..].iter();
        for segment in segments.take_while(|segment| segment.start <= to_ns) {
            inside.add(
                end.saturating_sub(segment.end),
                start.saturating_sub(segment.start),
            );
        }
    }

    /// Counts the launches in the time of the segments at an offset, and those inside of a segment.
    fn inside(&self, offset_ns: i64) -> (u64, u64) {
        let Some(window) = self.window() else {
            return (0, 0);
        };
        let (mut near, mut inside) = (0, 0);
        for launch in self.launches {
            let Range { start, end } = inner(launch.span);
            let start = start.saturating_sub(offset_ns);
            let end = end.saturating_sub(offset_ns);
            if start < window.start || end > window.end {
                continue;
            }
            near += 1;
            let next = (self.segments).partition_point(|segment| segment.start <= start);
            // A launch without length may lie on the border of two segments.
            let around = self.segments[..next].last();
            inside += u64::from(around.is_some_and(|segment| end <= segment.end));
        }
        (near, inside)
    }
}

/// Returns the part of a launch that must lie inside of a segment.
fn inner(span: Span) -> Range<i64> {
    let tolerance_ns = TOLERANCE_NS.min(span.duration_ns.max(0) / 2);
    span.start_ns.saturating_add(tolerance_ns)..span.end_ns().saturating_sub(tolerance_ns)
}

#[cfg(test)]
#[path = "offset/tests.rs"]
mod tests;
