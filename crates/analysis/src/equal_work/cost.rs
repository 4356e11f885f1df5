//! Turns the sums over the work of one side of a comparison into the side's cost, and chooses the evaluations
//! (instances of its label) that count.

use super::extent::{Extent, Instance};
use super::figure::Figure;
use super::measure::Measured;
use super::sum::{Evaluation, Runs, Side};
use super::work_cost::{KernelCost, LeftOut, Reason, WorkCost};
use crate::copy_sizes::by_name;
use crate::gaps::{GapFinder, GapTotal};
use crate::verdict::{Bound, Judgement};
use crate::warm_up::FirstUses;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::{Busy, Interval};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{KNOWN_SHARE, OWN_SHARE};
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::LossKind;
use gapscope_trace::manifest::SamplingMode;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the cost of the side with an index and a name from its sums. Figures that need dispatches are unknown
/// where the trace lacks them.
pub(super) fn cost(
    timeline: &Timeline,
    extent: &Extent,
    measured: &Measured,
    (number, name): (usize, &str),
    first_uses: Option<&FirstUses>,
) -> WorkCost {
    let side = &measured.sides[number];
    let sum = &side.sum;
    let missing = dispatches_missing(timeline);
    let names = &timeline.trace.tables.kernels.name;
    let mut kernels: BTreeMap<String, KernelCost> = BTreeMap::new();
    for (row, runs) in &side.kernels {
        let Some(name) = names.get(*row as usize) else {
            continue;
        };
        let kernel = kernels
            .entry(name.to_string())
            .or_insert_with(|| KernelCost {
                name: timeline.kernel_names.name(*row as usize).to_owned(),
                runs: Runs {
                    count: 0,
                    total_ns: Some(0),
                    ..Runs::default()
                },
            });
        kernel.runs = kernel.runs.plus(*runs);
    }
    let own = own_evaluations(extent, measured, number);
    let by_command_buffers = own.iter().any(|(instance, _)| instance.is_command_buffer);
    let Choice { counted, left_out } = choose(own, first_uses);
    let evaluations = counted.len() as u64 + left_out.iter().map(|out| out.count).sum::<u64>();
    let samples = Figure::ALL.map(|figure| samples(figure, side, missing.is_some(), &counted));
    let of_dispatches = |sum: Option<u64>| sum.filter(|_| missing.is_none());
    let (window, own_ns) = match counted.is_empty() {
        true => (sum.hull, sum.busy.length_ns),
        false => {
            let hulls = counted.iter().filter_map(|evaluation| evaluation.sum.hull);
            let busy = counted.iter().map(|evaluation| evaluation.sum.busy);
            let own_ns = busy.map(|busy| busy.length_ns).fold(0, i64::saturating_add);
            (hulls.reduce(Interval::hull), own_ns)
        }
    };
    let judged = judged(timeline, window, own_ns);
    WorkCost {
        name: name.to_owned(),
        evaluations: (evaluations > 0).then_some(evaluations),
        counted_evaluations: counted.len() as u64,
        left_out,
        dispatch_count: missing.is_none().then_some(sum.dispatches),
        workgroup_count: of_dispatches(sum.size.groups),
        thread_count: of_dispatches(sum.size.threads),
        command_buffer_count: side.command_buffers.known(),
        submission_count: side.submissions.known(),
        bound_read_bytes: of_dispatches(sum.read_bytes),
        bound_written_bytes: of_dispatches(sum.written_bytes),
        transfer_count: sum.transfers,
        whole_count: sum.wholes,
        transfer_bytes: sum.transfer_bytes,
        copies: by_name(&side.copies),
        meanwhile_ns: None,
        is_around_other: false,
        untimed_count: sum.untimed,
        gpu_busy_ns: sum.hull.map(|_| sum.busy.length_ns),
        wall_ns: sum.hull.map(|_| side.wall_ns),
        dispatches_unknown_because: missing,
        window,
        verdict: judged.verdict,
        verdict_sentence: judged.sentence,
        idle: judged.idle,
        samples,
        by_command_buffers,
        kernels,
        api: Vocabulary::new(&timeline.trace.manifest).words().api,
    }
}

/// Returns why the dispatches of a trace are not known, or `None` where they are: some were lost, or only passes were
/// sampled.
fn dispatches_missing(timeline: &Timeline) -> Option<String> {
    let manifest = &timeline.trace.manifest;
    let mut losses = manifest.losses.iter();
    if let Some(loss) = losses.find(|loss| loss.kind == LossKind::UnlistedDispatches) {
        return Some(loss.reason.clone().into_owned());
    }
    let passes = manifest.sampling_mode == SamplingMode::Pass && timeline.dispatches.count() == 0;
    passes.then(|| "passes say nothing of the dispatches in them".to_owned())
}

/// Pairs of an instance of a side's label and the sums over the work in it.
type Evaluations<'a> = Vec<(&'a Instance, &'a Evaluation)>;

/// Returns the evaluations of a side. Where work ran under some of its labels, the instances of its other labels are left out,
/// such as labels of the host with the same text.
fn own_evaluations<'a>(extent: &'a Extent, measured: &'a Measured, side: usize) -> Evaluations<'a> {
    let all = extent.instances().iter().zip(&measured.evaluations);
    let own: Evaluations = all.filter(|(instance, _)| instance.side == side).collect();
    let works = |(instance, evaluation): &(&Instance, &Evaluation)| {
        (!evaluation.is_empty() || evaluation.unclear).then_some(instance.node)
    };
    let working: BTreeSet<u32> = own.iter().filter_map(works).collect();
    let is_one = |instance: &Instance| working.is_empty() || working.contains(&instance.node);
    own.into_iter()
        .filter(|(instance, _)| is_one(instance))
        .collect()
}

/// The evaluations that count, in order of time, and those that are left out.
struct Choice<'a> {
    counted: Vec<&'a Evaluation>,
    left_out: Vec<LeftOut>,
}

/// Chooses the evaluations that count. Left out are those that are unfinished, unclear (work may be another's) or
/// without work, those in warm-up, and the first with a first use of code; the last two count if no other is left.
fn choose<'a>(mut own: Evaluations<'a>, first_uses: Option<&FirstUses>) -> Choice<'a> {
    let start_ns = |(instance, evaluation): &(&Instance, &Evaluation)| {
        let hull = evaluation.sum.hull;
        hull.map(|hull| hull.start_ns).or(instance.host_start_ns)
    };
    own.sort_by_key(start_ns);
    let mut out: BTreeMap<Reason, u64> = BTreeMap::new();
    own.retain(|(instance, evaluation)| {
        let reason = if instance.unfinished {
            Reason::Unfinished
        } else if evaluation.unclear {
            Reason::Unclear
        } else if evaluation.is_empty() {
            Reason::NoWork
        } else {
            return true;
        };
        *out.entry(reason).or_default() += 1;
        false
    });
    let cold = |first: bool, one: &(&Instance, &Evaluation)| {
        let first_uses = first_uses?;
        let start_ns = start_ns(one)?;
        if first_uses.is_warm_up(start_ns) {
            return Some(Reason::WarmUp);
        }
        let (instance, evaluation) = one;
        let from_ns = instance.host_start_ns.unwrap_or(start_ns).min(start_ns);
        let end_ns = evaluation.sum.hull?.end_ns;
        (first && first_uses.any_in(Interval::new(from_ns, end_ns))).then_some(Reason::FirstUse)
    };
    let reasons: Vec<_> = (own.iter().enumerate())
        .map(|(at, one)| cold(at == 0, one))
        .collect();
    // Where all evaluations are warm-up there is nothing else to compare.
    let all = reasons.iter().all(Option::is_some);
    let mut counted = Vec::with_capacity(own.len());
    for ((_, evaluation), reason) in own.into_iter().zip(reasons) {
        match reason.filter(|_| !all) {
            Some(reason) => *out.entry(reason).or_default() += 1,
            None => counted.push(evaluation),
        }
    }
    let left_out = out.into_iter();
    Choice {
        counted,
        left_out: left_out
            .map(|(because, count)| LeftOut { because, count })
            .collect(),
    }
}

/// Returns a figure of each evaluation that counts, or nothing where it is not known. A time is also unknown where
/// less than `KNOWN_SHARE` of the evaluations have it, because these may be special.
fn samples(figure: Figure, side: &Side, no_dispatches: bool, counted: &[&Evaluation]) -> Vec<f64> {
    let missing = match figure {
        Figure::Dispatches | Figure::Workgroups | Figure::Threads | Figure::BoundBytes => {
            no_dispatches
        }
        Figure::CommandBuffers => side.command_buffers.unknown,
        Figure::Submissions => side.submissions.unknown,
        _ => false,
    };
    if missing {
        return Vec::new();
    }
    let values = counted.iter().map(|evaluation| evaluation.figure(figure));
    if !figure.is_time() {
        return values.collect::<Option<_>>().unwrap_or_default();
    }
    let known: Vec<f64> = values.flatten().collect();
    match known.len() as f64 >= KNOWN_SHARE * counted.len() as f64 {
        true => known,
        false => Vec::new(),
    }
}

/// The verdict on a window.
struct Judged {
    verdict: Bound,
    sentence: String,
    /// The idle time by cause; `None` where it is not known.
    idle: Option<Vec<GapTotal>>,
}

/// Judges a window, in which `own_ns` of the busy time are the side's own work. There is no verdict where that is
/// less than `OWN_SHARE` of the busy time.
fn judged(timeline: &Timeline, window: Option<Interval>, own_ns: i64) -> Judged {
    let unknown = |sentence: &str| Judged {
        verdict: Bound::Unknown,
        sentence: sentence.to_owned(),
        idle: None,
    };
    let Some(window) = window else {
        return unknown("No times of its work are known.");
    };
    let mut all = Busy::default();
    timeline.each_work(|work| {
        if window.contains(work.interval.start_ns) {
            all.add(work.interval);
        }
    });
    if ratio(own_ns, all.length_ns) < OWN_SHARE {
        return unknown("Other work runs in between: a verdict would be of that too.");
    }
    let judged = Judgement::new(&GapFinder::new(timeline), Some(window), 0, 0, None);
    Judged {
        verdict: judged.bound,
        sentence: judged.evidence.sentence,
        idle: Some(judged.idle_time.causes),
    }
}
