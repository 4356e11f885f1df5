//! Computes from two sides of run digests (what is kept of each run) the change of each figure and kernel, and marks
//! those that are more than noise. An evaluation is one instance of a label, by whose number figures are
//! divided; the blocks of a figure are its sums over consecutive parts of a run.

use super::change::{Change, ChangeKind};
use super::common_change::CommonChange;
use super::disturbance::{Disturbance, drifts};
use super::estimate::{self, Design, Estimate, Sample};
use super::evaluations::Evaluated;
use super::matching::{self, Pair, SideKernel};
use super::metric::{Metric, Unit};
use super::options::Options;
use super::run::{KernelDigest, RunDigest, add_sizes};
use super::sentences;
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::launch_size::SizeMoments;
use gapscope_timeline::quantity::share;
use gapscope_timeline::vocabulary::Words;
use gapscope_trace::manifest::Api;
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::SQRT_2;

/// The least share of the time that is tested. Kernels below this share of the GPU time of both sides, and causes
/// below this share of the time from start to end, are not tested, because each test makes the others less sensitive.
const TESTED_SHARE: f64 = 0.001;

/// The part of the greatest reason of an interval's width from which on another is told.
const MIN_REASON: f64 = 0.2;

/// The two sides of a comparison, before and after, and their changes.
pub(super) struct Comparison<'a> {
    sides: [&'a [RunDigest]; 2],
    design: &'a Design,
    /// The label whose instances figures are divided by; `None` if figures are for a run.
    pub evaluated: Option<Evaluated>,
    /// The kernels of both sides, matched.
    pub pairs: Vec<Pair<'a>>,
    /// The disturbances of one run of each side; `None` where runs measure that themselves, or the user gave the spread.
    disturbance: Option<Disturbance<'a>>,
    /// By how much the kernels of one run a side changed together; `None` as above.
    common: Option<CommonChange<'a>>,
    /// By how much kernels got slower in the course of one run of each side.
    drift: [f64; 2],
    /// The changes of figures and kernels, the most important first.
    pub changes: Vec<Change>,
    /// The number of differences that were tested.
    pub tested: u64,
}

impl<'a> Comparison<'a> {
    /// Matches the kernels, computes and tests all changes, and sorts them.
    pub fn new(
        before: &'a [RunDigest],
        after: &'a [RunDigest],
        design: &'a Design,
        evaluated: Option<Evaluated>,
        options: &Options,
    ) -> Comparison<'a> {
        let evaluations = [0, 1].map(|side| match &evaluated {
            Some(evaluated) => mean(&evaluated.counts[side]),
            None => 1.0,
        });
        let pairs = matching::pairs(matching::side(before), matching::side(after), evaluations);
        let single = match (before, after) {
            ([before], [after]) if !design.spread.is_given() => Some([before, after]),
            _ => None,
        };
        let mut comparison = Comparison {
            disturbance: single.map(|runs| Disturbance::new(&pairs, runs)),
            common: single.map(|_| CommonChange::new(&pairs)),
            drift: single.map_or([0.0; 2], drifts),
            sides: [before, after],
            design,
            evaluated,
            pairs,
            changes: Vec::new(),
            tested: 0,
        };
        let mut changes = comparison.metric_changes();
        changes.extend(
            comparison
                .pairs
                .iter()
                .map(|pair| comparison.pair_change(pair)),
        );
        comparison.changes = changes;
        comparison.test(options.level);
        comparison.sort();
        comparison
    }

    /// Returns the mean number of evaluations of a side's runs.
    pub fn evaluations_of(&self, side: usize) -> Option<f64> {
        Some(mean(&self.evaluated.as_ref()?.counts[side]))
    }

    /// Returns the number that a figure of a run is divided by, so that it is for one evaluation; 1 if it does not
    /// grow with the work.
    fn divisor(&self, side: usize, run: usize, grows_with_work: bool) -> f64 {
        match &self.evaluated {
            Some(evaluated) if grows_with_work => evaluated.counts[side][run],
            _ => 1.0,
        }
    }

    /// Returns the numbers of runs before and after.
    fn samples(&self) -> [u64; 2] {
        self.sides.map(|runs| runs.len() as u64)
    }

    /// Estimates the change of a figure. Idle time of a cause that a run does not have is 0 where idle time is known.
    pub fn estimate(&self, metric: Metric) -> Estimate {
        let [before, after] = [0, 1].map(|side| {
            let runs = self.sides[side].iter().enumerate();
            let sample = |(run, digest): (usize, &'a RunDigest)| {
                let reading = digest.figures.get(&metric);
                let absent = match metric {
                    Metric::IdleOf(_) if digest.idle_known => Some(0.0),
                    _ => None,
                };
                let value = reading.and_then(|reading| reading.value).or(absent);
                let divisor = self.divisor(side, run, metric.grows_with_work());
                Sample {
                    value: value.map(|value| value / divisor),
                    blocks: reading.map_or(&[], |reading| &reading.blocks),
                    spread: (self.design.spread.of_metric(digest, metric)).hypot(self.drift[side]),
                }
            };
            runs.map(sample).collect::<Vec<_>>()
        });
        let at_least = self.at_least(metric);
        if at_least != [false; 2] {
            return Estimate::bounds(&before, &after, at_least);
        }
        match metric.unit() {
            Unit::Ns => Estimate::from_times(&before, &after, self.design),
            Unit::Bytes | Unit::Count => Estimate::from_counts(&before, &after, self.design),
        }
    }

    /// Returns for each side whether a figure is a lower bound there: some of what it counts was lost in a run, or one side lacks
    /// what the other has.
    fn at_least(&self, metric: Metric) -> [bool; 2] {
        let any = |side: usize, of: fn(&RunDigest) -> &BTreeSet<Metric>| {
            let mut runs = self.sides[side].iter();
            runs.any(|run| of(run).contains(&metric))
        };
        let partial = [0, 1].map(|side| any(side, |run| &run.partial));
        [0, 1].map(|side| {
            let lacks = partial[side] && !partial[1 - side];
            lacks || any(side, |run| &run.at_least)
        })
    }

    /// Returns the words that suit the APIs of all runs.
    pub fn words(&self) -> Words {
        let runs = self.sides.iter().flat_map(|runs| runs.iter());
        let apis = runs.flat_map(|run| {
            let names = run.machine.interfaces.iter();
            names.map(|name| Api::from_text_or_unknown(name))
        });
        Words::common(apis)
    }

    /// Says what the width of the interval of the time from start to end comes from, with the greatest part first; `None` where runs
    /// measure that.
    pub fn width(&self) -> Option<String> {
        let ([before], [after]) = (self.sides[0], self.sides[1]) else {
            return None;
        };
        let runs = [before, after];
        let mut reasons = self.design.spread.reasons(&runs);
        if let Some(inside) = self.estimate(Metric::WallTime).inside {
            let text = format!(
                "parts of these runs, which differ among themselves ({} of the ratio)",
                share(inside)
            );
            reasons.push((inside / SQRT_2, text));
        }
        let drift = self.drift[0].max(self.drift[1]);
        if drift > 0.0 {
            let has_clocks = runs.iter().all(|run| run.surroundings.clocks.is_some());
            let text = match has_clocks {
                true => "clocks of the GPU that were not the same",
                false => "kernels that got slower or faster in the course of a run",
            };
            reasons.push((drift, format!("{text} ({})", share(drift))));
        }
        reasons.sort_by(|a, b| b.0.total_cmp(&a.0));
        let greatest = reasons.first()?.0;
        let texts = reasons.iter();
        let texts: Vec<&str> = (texts.filter(|(spread, _)| *spread >= MIN_REASON * greatest))
            .map(|(_, text)| text.as_str())
            .collect();
        Some(texts.join("; "))
    }

    /// Returns the changes of all figures, and of the idle time of each cause that a run has.
    fn metric_changes(&self) -> Vec<Change> {
        let causes = Cause::ALL.into_iter().map(Metric::IdleOf);
        let there = |metric: &Metric| {
            let runs = self.sides.iter().flat_map(|runs| runs.iter());
            runs.filter_map(|run| run.figures.get(metric))
                .any(|reading| reading.value.is_some())
        };
        let wanted = |metric: &Metric| match metric {
            Metric::IdleOf(_) => there(metric),
            _ => true,
        };
        let metrics = Metric::WHOLE.into_iter().chain(causes).filter(wanted);
        let words = self.words();
        let change = |metric: Metric| {
            let kind = match (metric, metric.unit()) {
                (Metric::IdleOf(_), _) => ChangeKind::Idle,
                (_, Unit::Ns) => ChangeKind::Time,
                _ => ChangeKind::Count,
            };
            let estimate = self.estimate(metric);
            let mut change =
                Change::new(kind, metric.key(), metric.unit(), estimate, self.samples());
            change.what = metric.name(&words);
            change
        };
        metrics.map(change).collect()
    }

    /// Returns the change of the time of matched kernels.
    fn pair_change(&self, pair: &Pair) -> Change {
        let estimate = self.estimate_of(std::slice::from_ref(&pair));
        let [before, after] = [&pair.before, &pair.after].map(|kernels| names_of(kernels));
        let name = match (after.as_slice(), before.as_slice()) {
            ([only], _) | ([], [only]) => only.clone(),
            (_, [only, ..]) => only.clone(),
            _ => String::new(),
        };
        let mut change = Change::new(
            ChangeKind::Kernel,
            name.clone(),
            Unit::Ns,
            estimate,
            self.samples(),
        );
        change.what = sentences::kernel(pair);
        let label = [&pair.after, &pair.before].into_iter().flatten().next();
        change.label = label
            .map(|kernel| kernel.path.to_owned())
            .filter(|path| !path.is_empty());
        change.matched = Some(pair.how);
        let others = |names: Vec<String>| match names.iter().all(|other| *other == name) {
            true => Vec::new(),
            false => names,
        };
        change.before_names = others(before);
        change.after_names = others(after);
        change.counts = Some(self.counts(pair));
        change.size = pair.size().map(Box::new);
        if self.samples() != [1, 1] {
            change.typical = self.typical(pair).map(Box::new);
        }
        change
    }

    /// Returns the numbers of dispatches of a pair before and after, for one evaluation or run.
    pub fn counts(&self, pair: &Pair) -> [f64; 2] {
        [0, 1].map(|side| self.count(side, pair))
    }

    /// Returns for each side whether its runs have no GPU work at all.
    pub fn empty_sides(&self) -> [bool; 2] {
        let is_empty = |run: &RunDigest| {
            let value = |metric: Metric| run.figures.get(&metric)?.value;
            let counts = [
                Metric::Dispatches,
                Metric::Transfers,
                Metric::CommandBuffers,
            ];
            counts.map(value) == [Some(0.0); 3] && value(Metric::WallTime).is_none()
        };
        self.sides.map(|runs| runs.iter().all(is_empty))
    }

    /// Returns the bytes of single transfers of a side by kind, with the number of evaluations, or runs, that they are of; `None`
    /// where they are not known.
    pub fn transfer_sizes(&self, side: usize) -> Option<(BTreeMap<String, SizeMoments>, f64)> {
        let runs = &self.sides[side];
        let divisors = (0..runs.len()).map(|run| self.divisor(side, run, true));
        let sizes = runs.iter().map(|run| run.transfer_sizes.clone());
        let sum = sizes.reduce(|sum, other| sum.zip(other).map(add_sizes));
        Some((sum??, divisors.sum()))
    }

    /// Returns the number of dispatches of a side's kernels, for one evaluation or run.
    fn count(&self, side: usize, pair: &Pair) -> f64 {
        let kernels = [&pair.before, &pair.after][side];
        let runs = self.sides[side].len();
        let of_run = |run: usize| -> f64 {
            let counts = kernels.iter().filter_map(|kernel| kernel.runs[run]);
            let count: u64 = counts.map(|digest| digest.count).sum();
            count as f64 / self.divisor(side, run, true)
        };
        mean(&(0..runs).map(of_run).collect::<Vec<_>>()) + 0.0
    }

    /// Returns true where the number of dispatches is known of every run.
    pub fn is_counted(&self) -> bool {
        let mut runs = self.sides.iter().flat_map(|runs| runs.iter());
        runs.all(RunDigest::is_counted) && self.at_least(Metric::Dispatches) == [false; 2]
    }

    /// Returns for each side whether the dispatches of some pairs are a lower bound: some of its dispatches were lost, and these
    /// kernels have other numbers of them on both sides. Of kernels that ran as often, none was lost.
    fn lacks_dispatches(&self, pairs: &[&Pair]) -> [bool; 2] {
        let at_least = self.at_least(Metric::Dispatches);
        let sum = |side: usize| -> f64 { pairs.iter().map(|pair| self.count(side, pair)).sum() };
        match at_least != [false; 2] && sum(0) != sum(1) {
            true => at_least,
            false => [false; 2],
        }
    }

    /// Estimates the change of the summed time of the kernels in some pairs.
    pub fn estimate_of(&self, pairs: &[&Pair]) -> Estimate {
        let disturbed = self.disturbed(pairs);
        let common = self.common(pairs);
        let lacks = self.lacks_dispatches(pairs);
        let sides = [0, 1].map(|side| {
            let kernels: Vec<&SideKernel> = (pairs.iter())
                .flat_map(|pair| [&pair.before, &pair.after][side])
                .collect();
            let of_run = |run: usize| {
                let there = kernels.iter().filter_map(|kernel| kernel.runs[run]);
                let there: Vec<&KernelDigest> = there.collect();
                let is_timed =
                    |digest: &&KernelDigest| digest.timed == digest.count || digest.timed > 0;
                // Where dispatches were lost, nobody knows of which kernels they were.
                let known = self.sides[side][run].is_counted()
                    && there.iter().all(is_timed)
                    && !(lacks[side] && there.is_empty());
                // Dispatches of unknown times are assumed to take as long as the others.
                let ns = (there.iter().filter(|digest| digest.timed > 0))
                    .map(|digest| {
                        digest.total_ns as f64 * digest.count as f64 / digest.timed as f64
                    })
                    .fold(0.0, |sum, ns| sum + ns);
                let value = known.then(|| ns / self.divisor(side, run, true));
                let spread = (self.design.spread).of_kernel(&self.sides[side][run], common);
                let spread = spread.hypot(self.drift[side]).hypot(disturbed / SQRT_2);
                (value, blocks(&there), spread)
            };
            (0..self.sides[side].len()).map(of_run).collect::<Vec<_>>()
        });
        let [before, after] = [&sides[0], &sides[1]].map(|side| borrowed(side));
        if lacks != [false; 2] {
            return Estimate::bounds(&before, &after, lacks);
        }
        let mut estimate = Estimate::from_times(&before, &after, self.design);
        if self.are_on_one_side(pairs) {
            // A kernel that is in all runs of one side and in none of the other is no noise.
            estimate.exact = true;
            estimate.noise = None;
            (estimate.low, estimate.high) = (estimate.ratio, estimate.ratio);
            estimate.p = (self.samples().iter().all(|runs| *runs > 1)).then_some(0.0);
        }
        estimate
    }

    /// Returns how much what disturbed one run of each side may have changed the kernels in some pairs, as a logarithm.
    fn disturbed(&self, pairs: &[&Pair]) -> f64 {
        (self.disturbance.as_ref()).map_or(0.0, |disturbance| {
            disturbance.logarithm_of([&in_first_run(pairs, 0), &in_first_run(pairs, 1)])
        })
    }

    /// Returns by how much the kernels outside of some pairs changed together, as a logarithm; `None` where that is not known.
    fn common(&self, pairs: &[&Pair]) -> Option<f64> {
        self.common.as_ref()?.of_others(&in_first_run(pairs, 0))
    }

    /// Returns true for kernels of which some are in every run of one side, and none is in a run of the other.
    fn are_on_one_side(&self, pairs: &[&Pair]) -> bool {
        let kernels = |side: usize| {
            let kernels = pairs
                .iter()
                .map(move |pair| [&pair.before, &pair.after][side]);
            kernels.flatten()
        };
        let in_all_runs = |side: usize| {
            let runs = 0..self.sides[side].len();
            runs.into_iter()
                .all(|run| kernels(side).any(|kernel| kernel.runs[run].is_some()))
        };
        [(0, 1), (1, 0)]
            .into_iter()
            .any(|(none, some)| kernels(none).next().is_none() && in_all_runs(some))
    }

    /// Returns the change of the time of one dispatch, for kernels on both sides.
    fn typical(&self, pair: &Pair) -> Option<Change> {
        let ([before], [after]) = (pair.before.as_slice(), pair.after.as_slice()) else {
            return None;
        };
        let samples = |kernel: &SideKernel| -> Option<Vec<OwnedSample>> {
            let of_run = |digest: &Option<&KernelDigest>| {
                Some((Some(digest.as_ref()?.lengths.typical()?), Vec::new(), 0.0))
            };
            kernel.runs.iter().map(of_run).collect()
        };
        let (before, after) = (samples(before)?, samples(after)?);
        let estimate = Estimate::from_times(&borrowed(&before), &borrowed(&after), self.design);
        let name = names_of(&pair.after).pop()?;
        let mut change = Change::new(
            ChangeKind::Dispatch,
            name.clone(),
            Unit::Ns,
            estimate,
            self.samples(),
        );
        change.what = format!("a typical dispatch of {name}");
        Some(change)
    }

    /// Corrects the chances of all tested changes, and marks those that are more than noise.
    fn test(&mut self, level: f64) {
        let value = |metric: Metric| {
            let key = metric.key();
            let of = |change: &&Change| change.kind != ChangeKind::Kernel && change.name == key;
            let change = self.changes.iter().find(of);
            let most = change.and_then(|change| Some(change.before?.max(change.after?)));
            most.unwrap_or(0.0)
        };
        let (gpu_ns, wall_ns) = (value(Metric::GpuTime), value(Metric::WallTime));
        let large = |change: &Change| {
            let sides = [change.before, change.after].map(|side| side.unwrap_or(0.0));
            let most = sides[0].max(sides[1]);
            match change.kind {
                ChangeKind::Kernel => most >= TESTED_SHARE * gpu_ns,
                ChangeKind::Idle => most >= TESTED_SHARE * wall_ns,
                _ => true,
            }
        };
        let changes = self.changes.iter_mut();
        let (tested, small): (Vec<&mut Change>, Vec<_>) = changes.partition(|change| large(change));
        for change in small {
            change.p_alone = None;
            change.typical = None;
            change.is_small = true;
        }
        let mut chances = Vec::new();
        for change in &tested {
            chances.push(change.p_alone);
            chances.push(change.typical.as_ref().and_then(|typical| typical.p_alone));
        }
        let count = chances.iter().flatten().filter(|p| **p > 0.0).count() as u64;
        // The least chance must be so small for its difference to be told.
        let level_each = level / count.max(1) as f64;
        let corrected = estimate::corrected(&chances);
        let settle = |change: &mut Change, p: Option<f64>| {
            change.p_noise = p;
            change.significant |= p.is_some_and(|p| p <= level) && change.before != change.after;
            change.least_ratio_told = (change.noise.filter(|_| change.before > Some(0.0)))
                .map(|noise| noise.least_ratio(level_each));
        };
        for (change, two) in tested.into_iter().zip(corrected.chunks(2)) {
            settle(change, two[0]);
            if let Some(typical) = change.typical.as_mut() {
                settle(typical, two[1]);
            }
        }
        self.tested = count;
    }

    /// Sorts the changes: times by how much they add or save, then counts.
    fn sort(&mut self) {
        let rank = |change: &Change| {
            let by = change.by().map_or(0.0, f64::abs);
            (change.unit != Unit::Ns, by)
        };
        self.changes.sort_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then_with(|| match a.0 {
                true => std::cmp::Ordering::Equal,
                false => f64::total_cmp(&b.1, &a.1),
            })
        });
    }

    /// Describes in sentences the kernels that were matched although their names differ.
    pub fn matched(&self) -> Vec<String> {
        sentences::matched(&self.pairs, &self.words())
    }
}

/// A figure of a run (`None` where it is unknown), then its blocks, then its assumed spread.
type OwnedSample = (Option<f64>, Vec<f64>, f64);

/// Returns the samples as the estimate takes them.
fn borrowed(samples: &[OwnedSample]) -> Vec<Sample<'_>> {
    let samples = samples.iter();
    samples
        .map(|(value, blocks, spread)| Sample {
            value: *value,
            blocks,
            spread: *spread,
        })
        .collect()
}

/// Returns the kernels of some pairs in the first run of a side.
fn in_first_run<'p>(pairs: &[&Pair<'p>], side: usize) -> Vec<&'p KernelDigest> {
    let kernels = (pairs.iter()).flat_map(|pair| [&pair.before, &pair.after][side]);
    kernels.filter_map(|kernel| kernel.runs[0]).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn names_of(kernels: &[SideKernel]) -> Vec<String> {
    let names = kernels.iter().map(|kernel| kernel.name.to_owned());
    names.collect()
}

/// Returns the sums of the blocks of several kernels; empty unless these have equally many dispatches and blocks.
fn blocks(kernels: &[&KernelDigest]) -> Vec<f64> {
    let Some((first, rest)) = kernels.split_first() else {
        return Vec::new();
    };
    let mut sums = first.blocks.whole().to_vec();
    for kernel in rest {
        let other = kernel.blocks.whole();
        if other.len() != sums.len() || kernel.count != first.count {
            return Vec::new();
        }
        sums.iter_mut()
            .zip(other)
            .for_each(|(sum, block)| *sum += block);
    }
    sums
}
