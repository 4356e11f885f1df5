//! Finds the median step and the slow ones, and says why these are slow.
//!
//! A step is slow that is longer than [`STEP_SLOW`] times the median and by more than [`STEP_NOISE`] times the median distance from
//! it. The reason is the kind of its time that grew most against the median step; of idle time its cause, and the code that the host
//! ran in its longest gap.

use super::sums::{Kind, Sum};
use super::words::kind_of;
use super::{Step, StepSummary, StepSums, StepsFoundBy};
use crate::code::{CodeLine, CodeTime, HostCode, loads_data};
use crate::gaps::{Cause, GapFinder};
use gapscope_timeline::Vocabulary;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Nanoseconds, Percent, count, count_of, factor, ratio};
use gapscope_timeline::thresholds::{ADVICE_SHARE, LEAST_STEPS, STEP_GREW, STEP_NOISE, STEP_SLOW};
use std::cmp::Reverse;

/// The most slow steps of which the code is told.
const MAX_WITH_CODE: usize = 16;

impl StepSums {
    /// Returns the steps with the reasons of the slow ones, and what is said of all; nothing where too few are in the judged window.
    pub(crate) fn judged(
        mut self,
        finder: &GapFinder,
        host_code: Option<&HostCode>,
    ) -> (Vec<Step>, Option<StepSummary>) {
        let steps = &self.steps;
        let mut order: Vec<usize> = (0..steps.len())
            .filter(|at| !steps[*at].is_left_out)
            .collect();
        if order.len() < LEAST_STEPS {
            return (Vec::new(), None);
        }
        order.sort_by_key(|at| (steps[*at].duration_ns, *at));
        let median = order[(order.len() - 1) / 2];
        let median_ns = steps[median].duration_ns;
        let mut distances: Vec<i64> = (order.iter())
            .map(|at| (steps[*at].duration_ns - median_ns).abs())
            .collect();
        let middle = (distances.len() - 1) / 2;
        let usual_ns = *distances.select_nth_unstable(middle).1;
        let least_ns = median_ns as f64 * STEP_SLOW;
        let least_ns = least_ns.max(median_ns as f64 + STEP_NOISE * usual_ns as f64);
        let is_slow = |at: &usize| steps[*at].duration_ns as f64 > least_ns;
        let slow: Vec<usize> = order.iter().copied().filter(is_slow).rev().collect();
        for (place, at) in slow.iter().enumerate() {
            let code = host_code.filter(|_| place < MAX_WITH_CODE);
            let grew = grew(&self.sums[*at], &self.sums[median]);
            let reason = grew.map(|(kind, ns)| self.reason(finder, *at, kind, ns, code));
            let step = &mut self.steps[*at];
            step.is_slow = true;
            step.because = reason;
        }
        let not_recorded = finder.timeline().host_threads().not_recorded();
        let between_ns = self.outside_within(not_recorded);
        let sentences = self.sentences(order.len(), median, &slow, between_ns);
        let outside = self.outside.parts();
        let summary = StepSummary {
            found_by: self.found.by,
            label: self.found.label,
            process_id: self.found.process_id,
            thread: self.found.thread,
            found: self.found.found,
            count: order.len() as u64,
            median,
            median_ns,
            slow,
            outside_ns: outside
                .iter()
                .fold(0, |sum, part| sum.saturating_add(part.total_ns)),
            outside,
            sentences,
        };
        (self.steps, Some(summary))
    }

    /// Says why a step is slow, of which `kind` grew most.
    fn reason(
        &self,
        finder: &GapFinder,
        at: usize,
        kind: Kind,
        ns: i64,
        code: Option<&HostCode>,
    ) -> String {
        let timeline = finder.timeline();
        let more = match timeline
            .gpus
            .iter()
            .filter(|gpu| !gpu.works.is_empty())
            .count()
        {
            0 | 1 => format!("{} more", Nanoseconds(ns)),
            several => format!("over {several} GPUs {} more", Nanoseconds(ns)),
        };
        let cause = match kind {
            Kind::Part(what) => return format!("{more} {}", part_words(what)),
            Kind::Idle(cause) => cause,
        };
        let longest = self.sums[at].longest;
        let gap = code.and_then(|_| finder.at(longest.device, longest.start_ns));
        let times = code.zip(gap.as_ref()).map(|(code, gap)| code.in_gap(gap));
        let mut times = times.unwrap_or_default();
        // The range of the step itself says nothing new.
        let tells = |time: &CodeTime| {
            let innermost = time
                .frames
                .first()
                .and_then(|frame| frame.function.as_deref());
            innermost.is_some_and(|function| kind_of(function).is_none())
        };
        times.retain(|time| time.cause == cause && tells(time));
        let line = CodeLine::from_times(&times).into_iter().next();
        let place = line
            .as_ref()
            .map_or(String::new(), |line| format!(" ({})", line.text));
        let loads = line.is_some_and(|line| loads_data(&line.first.frames));
        let vocabulary = Vocabulary::new(&timeline.trace.manifest);
        let facts = cause.facts(vocabulary.words().api);
        let because = match (cause, facts.host_was) {
            (Cause::HostLate, _) if loads => "because the host was late, loading data".to_owned(),
            (Cause::HostLate, _) => "because the host was late".to_owned(),
            (_, Some(was)) => format!("because the host was {was}"),
            (_, None) => format!("for the cause {}", facts.name),
        };
        format!("{more} idle {because}{place}")
    }

    /// Says what the median step is made of, and how many steps are slow.
    fn sentences(&self, of: usize, median: usize, slow: &[usize], between_ns: i64) -> Vec<String> {
        let step = &self.steps[median];
        let parts = step.parts.iter().filter(|part| part.share >= ADVICE_SHARE);
        let parts: Vec<String> = parts
            .map(|part| format!("{} {}", part.what, Percent(part.share)))
            .collect();
        let parts = match parts.is_empty() {
            true => String::new(),
            false => format!(": {}", parts.join(", ")),
        };
        let left_out = self.steps.len() - of;
        let left_out = match left_out {
            0 => String::new(),
            1 => " (1 more is outside of the judged time)".to_owned(),
            _ => format!(
                " ({} more are outside of the judged time)",
                count(left_out as u64)
            ),
        };
        let mut sentences = vec![format!(
            "The median of {}{left_out} takes {}{parts}.",
            count_of(of as u64, "step", "steps"),
            Nanoseconds(step.duration_ns)
        )];
        let more = slow
            .iter()
            .map(|at| self.steps[*at].duration_ns - step.duration_ns);
        let more_ns = more.fold(0, i64::saturating_add);
        sentences.push(match slow.len() {
            0 => format!("No step takes over {STEP_SLOW} times as long."),
            number => format!(
                "{} over {STEP_SLOW} times as long, {} longer in all.",
                match number {
                    1 => "1 takes".to_owned(),
                    _ => format!("{} take", count(number as u64)),
                },
                Nanoseconds(more_ns)
            ),
        });
        let all_ns = self.steps.iter().filter(|step| !step.is_left_out);
        let all_ns = all_ns.fold(between_ns, |sum, step| sum.saturating_add(step.duration_ns));
        if ratio(between_ns, all_ns) >= ADVICE_SHARE {
            sentences.push(format!(
                "Between the steps, outside of their ranges, lie {} ({} of the time from the first to the last).",
                Nanoseconds(between_ns),
                Percent(ratio(between_ns, all_ns))
            ));
        }
        if self.found.by == StepsFoundBy::Launches {
            sentences.push("Steps are told by launches that repeat.".to_owned());
        }
        sentences
    }

    /// Returns the time between the first and the last step that is in no step, without the times in which nothing was recorded.
    fn outside_within(&self, not_recorded: &[Interval]) -> i64 {
        let steps = self.steps.iter().filter(|step| !step.is_left_out);
        let steps: Vec<&Step> = steps.collect();
        let between = steps.windows(2).map(|two| {
            let end_ns = two[0].start_ns.saturating_add(two[0].duration_ns);
            let between = Interval::new(end_ns, two[1].start_ns.max(end_ns));
            let from = not_recorded.partition_point(|time| time.end_ns <= between.start_ns);
            let inside = not_recorded[from..].iter();
            let inside = inside.take_while(|time| time.start_ns < between.end_ns);
            inside.fold(between.length_ns(), |left_ns, time| {
                left_ns.saturating_sub(time.intersection(between).length_ns())
            })
        });
        between.fold(0, i64::saturating_add)
    }
}

/// Returns the kind of time that a step has most more of than the median one; `None` where none makes up [`STEP_GREW`] of all that grew.
fn grew(step: &Sum, median: &Sum) -> Option<(Kind, i64)> {
    let usual = median.kinds();
    let more = step.kinds().into_iter().map(|(kind, ns)| {
        let of_median = usual.iter().find(|(of, _)| *of == kind);
        (kind, ns - of_median.map_or(0, |(_, ns)| *ns))
    });
    let mut more: Vec<(Kind, i64)> = more.filter(|(_, ns)| *ns > 0).collect();
    more.sort_by_key(|(_, ns)| Reverse(*ns));
    let all_ns = more
        .iter()
        .fold(0, |sum: i64, (_, ns)| sum.saturating_add(*ns));
    let most = more.first().copied()?;
    (ratio(most.1, all_ns) >= STEP_GREW).then_some(most)
}

/// Returns what a device did in a part of the verdict's time, as the end of a sentence that begins with a time.
fn part_words(what: &str) -> &'static str {
    match what {
        "compute" => "computing",
        "communication" => "communication and nothing else",
        "peers" => "waiting in communication for another device",
        "transfer" => "transfers and nothing else",
        "imbalance" => "without work while another GPU had some",
        _ => "of which the trace does not say what ran",
    }
}

/// Says how long a slow step is.
pub fn slow_text(step: &Step, median_ns: i64) -> String {
    let times = factor(ratio(step.duration_ns, median_ns));
    format!("{}, {times} the median", Nanoseconds(step.duration_ns))
}
