//! What changed, figure by figure and kernel by kernel.

use super::digest::{KernelDigest, RunDigest};
use super::equal::Evaluated;
use super::estimate::{self, Design, Estimate, Sample};
use super::matching::{self, How, Pair, SideKernel};
use super::metric::{Metric, Unit};
use super::{Options, sentences};
use crate::gaps::Cause;
use schemars::JsonSchema;
use serde::Serialize;

/// Kernels below this share of the GPU time of both sides, and causes below this share of the time from start to end, are not
/// tested: each test makes the others less sharp.
const TESTED_SHARE: f64 = 0.001;

/// A figure before and after.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// What it is, for people: `kernel softmax`.
    pub what: String,
    /// What kind of figure it is of.
    pub kind: ChangeKind,
    /// Its stable name: a metric as in gates, or the kernel's name after (before, where it is only there).
    pub name: String,
    /// Label path of the kernel, numbers as `#`.
    pub label: Option<String>,
    /// What `before` and `after` are counted in.
    pub unit: Unit,
    /// For one evaluation where [`EqualWork`](super::EqualWork) says so, else for a run; of several runs their geometric mean.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    /// `before`, of times.
    pub before_ns: Option<f64>,
    /// `after`, of times.
    pub after_ns: Option<f64>,
    /// `after / before`: above 1 it grew. Absent where there is nothing before.
    pub ratio: Option<f64>,
    /// The true ratio is between this one, ...
    pub low: Option<f64>,
    /// ... and this one, in 95 of 100 cases.
    pub high: Option<f64>,
    /// The chance that noise alone makes a difference as great, or one as unlikely in any other figure of this diff. Absent where
    /// nothing varies or the figure was not tested.
    pub p_noise: Option<f64>,
    /// The same of this figure alone.
    pub p_alone: Option<f64>,
    /// It changed, and that is more than noise.
    pub significant: bool,
    /// Runs before and after.
    pub samples: [u64; 2],
    /// How the kernel was matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<How>,
    /// Names of the kernels before, where they are not `name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before_names: Vec<String>,
    /// Names of the kernels after, where they are not `name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_names: Vec<String>,
    /// Dispatches of the kernel before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<[f64; 2]>,
    /// What a typical dispatch of the kernel takes: the mean of the middle half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical: Option<Box<Change>>,
}

/// What kind of figure a change is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A time of the whole run.
    Time,
    /// Idle time of one cause.
    Idle,
    /// The time of a kernel.
    Kernel,
    /// The time of one typical dispatch of a kernel.
    Dispatch,
    /// A count or a size.
    Count,
}

impl Change {
    fn new(
        kind: ChangeKind,
        name: String,
        unit: Unit,
        estimate: Estimate,
        samples: [u64; 2],
    ) -> Change {
        let ns = |value: Option<f64>| value.filter(|_| unit == Unit::Ns);
        Change {
            what: name.clone(),
            kind,
            name,
            label: None,
            unit,
            before: estimate.before,
            after: estimate.after,
            before_ns: ns(estimate.before),
            after_ns: ns(estimate.after),
            ratio: estimate.ratio,
            low: estimate.low,
            high: estimate.high,
            p_noise: None,
            p_alone: estimate.p,
            // What is counted and does not vary is no noise.
            significant: estimate.exact && estimate.before != estimate.after,
            samples,
            matched: None,
            before_names: Vec::new(),
            after_names: Vec::new(),
            counts: None,
            typical: None,
        }
    }

    /// What it adds; less than 0 where it saves.
    pub fn by(&self) -> Option<f64> {
        Some(self.after? - self.before?)
    }

    /// It grew by more than noise.
    pub fn grew(&self) -> bool {
        self.significant && self.by().is_some_and(|by| by > 0.0)
    }
}

/// Two sides with what is compared.
pub(super) struct Comparison<'a> {
    sides: [&'a [RunDigest]; 2],
    design: &'a Design,
    pub evaluated: Option<Evaluated>,
    pub pairs: Vec<Pair<'a>>,
    /// By kernel, in the order of `pairs`.
    pub changes: Vec<Change>,
    pub tested: u64,
}

impl<'a> Comparison<'a> {
    pub fn of(
        before: &'a [RunDigest],
        after: &'a [RunDigest],
        design: &'a Design,
        evaluated: Option<Evaluated>,
        options: &Options,
    ) -> Comparison<'a> {
        let pairs = matching::pairs(matching::side(before), matching::side(after));
        let mut comparison = Comparison {
            sides: [before, after],
            design,
            evaluated,
            pairs,
            changes: Vec::new(),
            tested: 0,
        };
        let mut changes = comparison.of_metrics();
        changes.extend(comparison.pairs.iter().map(|pair| comparison.of_pair(pair)));
        comparison.changes = changes;
        comparison.test(options.level);
        comparison.sort();
        comparison
    }

    /// Evaluations of a run of a side, on average.
    pub fn evaluations_of(&self, side: usize) -> Option<f64> {
        let counts = &self.evaluated.as_ref()?.counts[side];
        Some(counts.iter().sum::<f64>() / counts.len() as f64)
    }

    /// What divides a figure of a run.
    fn divisor(&self, side: usize, run: usize, of_the_work: bool) -> f64 {
        match &self.evaluated {
            Some(evaluated) if of_the_work => evaluated.counts[side][run],
            _ => 1.0,
        }
    }

    fn samples(&self) -> [u64; 2] {
        self.sides.map(|runs| runs.len() as u64)
    }

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
                let divisor = self.divisor(side, run, metric.is_of_the_work());
                Sample {
                    value: value.map(|value| value / divisor),
                    blocks: reading.map_or(&[], |reading| &reading.blocks),
                }
            };
            runs.map(sample).collect::<Vec<_>>()
        });
        match metric.unit() {
            Unit::Ns => Estimate::of_times(&before, &after, self.design),
            Unit::Bytes | Unit::Count => Estimate::of_counts(&before, &after, self.design),
        }
    }

    fn of_metrics(&self) -> Vec<Change> {
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
        let change = |metric: Metric| {
            let kind = match (metric, metric.unit()) {
                (Metric::IdleOf(_), _) => ChangeKind::Idle,
                (_, Unit::Ns) => ChangeKind::Time,
                _ => ChangeKind::Count,
            };
            let estimate = self.estimate(metric);
            let mut change =
                Change::new(kind, metric.key(), metric.unit(), estimate, self.samples());
            change.what = metric.name();
            change
        };
        metrics.map(change).collect()
    }

    fn of_pair(&self, pair: &Pair) -> Change {
        let mut estimate = self.estimate_of(std::slice::from_ref(&pair));
        if self.is_there_or_not(pair) {
            // That a kernel is there in all runs of a side, and in none of the other, is no noise.
            estimate.exact = true;
            (estimate.low, estimate.high) = (estimate.ratio, estimate.ratio);
            estimate.p = (self.samples().iter().all(|runs| *runs > 1)).then_some(0.0);
        }
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
        change.what = sentences::kernel(pair.how, &before, &after);
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
        change.counts = Some([0, 1].map(|side| self.count(side, pair)));
        if self.samples() != [1, 1] {
            change.typical = self.typical(pair).map(Box::new);
        }
        change
    }

    /// It is on one side only, and there in every run.
    fn is_there_or_not(&self, pair: &Pair) -> bool {
        let all = |kernels: &[SideKernel]| {
            kernels
                .iter()
                .all(|kernel| kernel.runs.iter().all(Option::is_some))
        };
        match (pair.before.as_slice(), pair.after.as_slice()) {
            ([], there) | (there, []) => all(there),
            _ => false,
        }
    }

    /// Dispatches of the kernels of a side, for one evaluation or run.
    fn count(&self, side: usize, pair: &Pair) -> f64 {
        let kernels = [&pair.before, &pair.after][side];
        let runs = self.sides[side].len();
        let of_run = |run: usize| -> f64 {
            let counts = kernels.iter().filter_map(|kernel| kernel.runs[run]);
            let count: u64 = counts.map(|digest| digest.count).sum();
            count as f64 / self.divisor(side, run, true)
        };
        (0..runs).map(of_run).sum::<f64>() / runs as f64
    }

    /// The time of the kernels of some pairs together.
    pub fn estimate_of(&self, pairs: &[&Pair]) -> Estimate {
        let sides = [0, 1].map(|side| {
            let kernels: Vec<&SideKernel> = (pairs.iter())
                .flat_map(|pair| [&pair.before, &pair.after][side])
                .collect();
            let of_run = |run: usize| {
                let there: Vec<&KernelDigest> = kernels
                    .iter()
                    .filter_map(|kernel| kernel.runs[run])
                    .collect();
                let known = there
                    .iter()
                    .all(|digest| digest.timed == digest.count || digest.timed > 0);
                // Dispatches whose times are not known take what the others do.
                let ns: f64 = (there.iter().filter(|digest| digest.timed > 0))
                    .map(|digest| {
                        digest.total_ns as f64 * digest.count as f64 / digest.timed as f64
                    })
                    .sum();
                let value = known.then(|| ns / self.divisor(side, run, true));
                (value, blocks(&there))
            };
            (0..self.sides[side].len()).map(of_run).collect::<Vec<_>>()
        });
        let [before, after] = [&sides[0], &sides[1]].map(|side| borrowed(side));
        Estimate::of_times(&before, &after, self.design)
    }

    /// What one dispatch takes, of kernels that are on both sides.
    fn typical(&self, pair: &Pair) -> Option<Change> {
        let ([before], [after]) = (pair.before.as_slice(), pair.after.as_slice()) else {
            return None;
        };
        let samples = |kernel: &SideKernel| -> Option<Vec<Value>> {
            let of_run = |digest: &Option<&KernelDigest>| {
                Some((Some(digest.as_ref()?.lengths.typical()?), Vec::new()))
            };
            kernel.runs.iter().map(of_run).collect()
        };
        let (before, after) = (samples(before)?, samples(after)?);
        let estimate = Estimate::of_times(&borrowed(&before), &borrowed(&after), self.design);
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

    /// Corrects the chances of all that is tested, and says what is more than noise.
    fn test(&mut self, level: f64) {
        let value = |metric: Metric| {
            let key = metric.key();
            let of = |change: &&Change| change.kind != ChangeKind::Kernel && change.name == key;
            let change = self.changes.iter().find(of);
            change
                .and_then(|c| c.before?.max(c.after?).into())
                .unwrap_or(0.0)
        };
        let (gpu_ns, wall_ns) = (value(Metric::GpuTime), value(Metric::WallTime));
        let large = |change: &Change| {
            let most = change
                .before
                .unwrap_or(0.0)
                .max(change.after.unwrap_or(0.0));
            match change.kind {
                ChangeKind::Kernel => most >= TESTED_SHARE * gpu_ns,
                ChangeKind::Idle => most >= TESTED_SHARE * wall_ns,
                _ => true,
            }
        };
        let mut tested: Vec<&mut Change> = Vec::new();
        for change in &mut self.changes {
            if !large(change) {
                change.p_alone = None;
                change.typical = None;
                continue;
            }
            tested.push(change);
        }
        let mut chances = Vec::new();
        for change in &tested {
            chances.push(change.p_alone);
            chances.push(change.typical.as_ref().and_then(|typical| typical.p_alone));
        }
        let count = chances.iter().flatten().filter(|p| **p > 0.0).count() as u64;
        let corrected = estimate::corrected(&chances);
        let settle = |change: &mut Change, p: Option<f64>| {
            change.p_noise = p;
            change.significant |= p.is_some_and(|p| p <= level) && change.before != change.after;
        };
        for (change, two) in tested.into_iter().zip(corrected.chunks(2)) {
            settle(change, two[0]);
            if let Some(typical) = change.typical.as_mut() {
                settle(typical, two[1]);
            }
        }
        self.tested = count;
    }

    /// Times by what they add or save, then counts.
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

    /// Sentences on kernels that were matched though they are not called the same.
    pub fn matched(&self) -> Vec<String> {
        sentences::matched(&self.pairs)
    }
}

/// A figure of a run with its blocks.
type Value = (Option<f64>, Vec<f64>);

fn borrowed(samples: &[Value]) -> Vec<Sample<'_>> {
    let samples = samples.iter();
    samples
        .map(|(value, blocks)| Sample {
            value: *value,
            blocks,
        })
        .collect()
}

fn names_of(kernels: &[SideKernel]) -> Vec<String> {
    kernels
        .iter()
        .map(|kernel| kernel.name.to_owned())
        .collect()
}

/// The blocks of several kernels together, where they are of equally many dispatches.
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
