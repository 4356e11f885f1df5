//! Tells how much a disturbance of one run a side may have changed the time of a kernel: the kernels' times in parts of both runs go
//! in, and the size of a change that is not the kernel's own comes out, as a logarithm.
//!
//! What slows a machine for a while slows all kernels that run meanwhile. A kernel whose dispatches lie in that while as a whole does not
//! show it, but its neighbours do: by how much they changed in the parts of the run in which the kernel ran, it may have
//! changed without being another. Where both runs have equally many dispatches, each part is compared with the part in its
//! place, so that other work in another part of the program does not count; else each run with itself.
//!
//! A run in which kernels get slower from its start to its end, as a GPU does that gets hot, may differ from the next by as much.

use super::matching::Pair;
use super::parts::{RunPart, RunPlace};
use super::run::{KernelDigest, RunDigest};
use gapscope_timeline::thresholds::{DRIFT_SPREAD, DRIFTING_SHARE};
use std::collections::HashMap;
use std::f64::consts::SQRT_2;

/// The disturbances of one run before and one after.
#[derive(Debug)]
pub(super) enum Disturbance<'a> {
    /// The parts of one run against those of the other.
    Between(Profile<'a>),
    /// The parts of each run against the run as a whole.
    Within([Profile<'a>; 2]),
}

/// By how much the kernels in each part of a run are slower than elsewhere.
#[derive(Debug)]
pub(super) struct Profile<'a> {
    /// For each part, its kernels in the order of their slowness.
    parts: Vec<Vec<Slowness<'a>>>,
    /// The slowness of the part in the middle.
    usual: f64,
}

/// By how much a kernel is slower in a part.
#[derive(Debug)]
struct Slowness<'a> {
    by: f64,
    dispatches: u64,
    /// The kernel in the run before, or in the only run.
    kernel: &'a KernelDigest,
}

/// The least number of parts with a kernel that tell in which of them it was slow.
const MIN_PARTS: usize = 4;
/// The least number of parts with a kernel from which a drift is computed.
const MIN_DRIFT_PARTS: usize = 8;

impl<'a> Disturbance<'a> {
    pub fn new(pairs: &[Pair<'a>], [before, after]: [&'a RunDigest; 2]) -> Disturbance<'a> {
        match before.place == after.place {
            true => Disturbance::Between(Profile::between(pairs, before.place)),
            false => Disturbance::Within([before, after].map(Profile::within)),
        }
    }

    /// Returns how much longer kernels may take after than before because of what disturbed the runs, as a logarithm.
    pub fn logarithm_of(&self, [before, after]: [&[&KernelDigest]; 2]) -> f64 {
        match self {
            Disturbance::Between(profile) => {
                let mut sums = [0.0, 0.0];
                for part in common_parts(before, after) {
                    let by = profile.others(part.number, before);
                    let usual_ns = (part.before.ns * part.after.ns).sqrt();
                    sums[0] += usual_ns * (-by / 2.0).exp();
                    sums[1] += usual_ns * (by / 2.0).exp();
                }
                logarithm(sums)
            }
            Disturbance::Within([first, second]) => {
                let own = |profile: &Profile, kernels: &[&KernelDigest]| {
                    let parts = kernels.iter().flat_map(|kernel| kernel.parts.all());
                    let mut sums = [0.0, 0.0];
                    for part in parts {
                        sums[0] += part.ns * (-profile.others(part.number, kernels)).exp();
                        sums[1] += part.ns;
                    }
                    logarithm(sums)
                };
                own(first, before).hypot(own(second, after))
            }
        }
    }
}

/// Returns the logarithm of the ratio of two sums, the second over the first; 0 where there is none.
fn logarithm([first, second]: [f64; 2]) -> f64 {
    match first > 0.0 && second > 0.0 {
        true => (second / first).ln(),
        false => 0.0,
    }
}

/// The dispatches of a kernel in the same part of both runs.
struct CommonPart {
    number: u32,
    before: RunPart,
    after: RunPart,
}

/// Returns the parts of both runs that have dispatches of some kernels.
fn common_parts(before: &[&KernelDigest], after: &[&KernelDigest]) -> Vec<CommonPart> {
    let in_order = |kernels: &[&KernelDigest]| {
        let mut parts: Vec<RunPart> = (kernels.iter().flat_map(|kernel| kernel.parts.all()))
            .copied()
            .collect();
        if kernels.len() > 1 {
            parts.sort_by_key(|part| part.number);
        }
        parts
    };
    let after = in_order(after);
    let mut rest = after.as_slice();
    let mut common = Vec::new();
    for part in in_order(before) {
        rest = &rest[rest.partition_point(|other| other.number < part.number)..];
        if let Some(other) = rest.first().filter(|other| other.number == part.number) {
            common.push(CommonPart {
                number: part.number,
                before: part,
                after: *other,
            });
        }
    }
    common
}

impl<'a> Profile<'a> {
    /// Compares the parts of two runs, kernel by kernel. A change of a kernel that is the same throughout the run is its own, and no
    /// disturbance; of a kernel in few parts, that cannot be told.
    fn between(pairs: &[Pair<'a>], end: RunPlace) -> Profile<'a> {
        let (mut parts, mut own) = (empty(end), Vec::new());
        for pair in pairs {
            let ([before], [after]) = (pair.before.as_slice(), pair.after.as_slice()) else {
                continue;
            };
            let ([Some(before)], [Some(after)]) = (before.runs.as_slice(), after.runs.as_slice())
            else {
                continue;
            };
            let common = common_parts(&[before], &[after]);
            let changes: Vec<f64> = common
                .iter()
                .map(|part| (part.after.mean() / part.before.mean()).ln())
                .collect();
            let ends = common.first().zip(common.last());
            let length = ends.map_or(0, |(first, last)| last.number - first.number) as usize;
            let mut sorted = changes.clone();
            sorted.sort_by(f64::total_cmp);
            let is_throughout = sorted.len() >= MIN_DRIFT_PARTS && 2 * length >= end.parts();
            if is_throughout {
                own.push((std::ptr::from_ref(*before), sorted[sorted.len() / 2]));
            }
            for (part, by) in common.iter().zip(changes) {
                // A run of ranks has kernels with more parts than the whole.
                let Some(of_part) = parts.get_mut(part.number as usize) else {
                    continue;
                };
                of_part.push(Slowness {
                    by,
                    dispatches: part.before.count.min(part.after.count),
                    kernel: before,
                });
            }
        }
        let usual = Profile::new(parts);
        let own: HashMap<*const KernelDigest, f64> = own.into_iter().collect();
        let mut parts = usual.parts;
        for slowness in parts.iter_mut().flatten() {
            let steady = own.get(&std::ptr::from_ref(slowness.kernel));
            slowness.by -= steady.copied().unwrap_or(usual.usual);
        }
        Profile::new(parts)
    }

    /// Compares the parts of a run with the middle one of each kernel.
    fn within(run: &'a RunDigest) -> Profile<'a> {
        let mut parts = empty(run.place);
        for kernel in &run.kernels {
            let own = kernel.parts.all();
            if own.len() < MIN_PARTS {
                continue;
            }
            let mut means: Vec<f64> = own.iter().map(|part| part.mean()).collect();
            let at = means.len() / 2;
            let (_, middle, _) = means.select_nth_unstable_by(at, f64::total_cmp);
            for part in own {
                let Some(of_part) = parts.get_mut(part.number as usize) else {
                    continue;
                };
                of_part.push(Slowness {
                    by: (part.mean() / *middle).ln(),
                    dispatches: part.count,
                    kernel,
                });
            }
        }
        Profile::new(parts)
    }

    fn new(mut parts: Vec<Vec<Slowness<'a>>>) -> Profile<'a> {
        for part in &mut parts {
            part.retain(|slowness| slowness.by.is_finite());
            part.sort_by(|a, b| a.by.total_cmp(&b.by));
        }
        let mut profile = Profile { parts, usual: 0.0 };
        let mut all: Vec<(f64, u64)> = (0..profile.parts.len())
            .filter_map(|number| Some((profile.middle(number, &[])?, 1)))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        profile.usual = middle(all.iter().copied()).unwrap_or(0.0);
        profile
    }

    /// Returns the slowness of a part in which half of the dispatches of other kernels are slower; `None` where only the kernels given
    /// run in it.
    fn middle(&self, number: usize, kernels: &[&KernelDigest]) -> Option<f64> {
        let others = self.parts.get(number)?.iter();
        let others = others.filter(|slowness| {
            !kernels
                .iter()
                .any(|kernel| std::ptr::eq(*kernel, slowness.kernel))
        });
        middle(others.map(|slowness| (slowness.by, slowness.dispatches)))
    }

    /// Returns how much slower than usual the other kernels are in a part. Where only the kernels given run in it, it may have
    /// been disturbed as the most disturbed part was.
    fn others(&self, number: u32, kernels: &[&KernelDigest]) -> f64 {
        let by = |number: usize| Some(self.middle(number, kernels)? - self.usual);
        by(number as usize).unwrap_or_else(|| {
            let all = (0..self.parts.len()).filter_map(by);
            all.max_by(|a, b| a.abs().total_cmp(&b.abs()))
                .unwrap_or(0.0)
        })
    }
}

/// Returns the value in the middle of values in order, each with a weight.
fn middle(values: impl Iterator<Item = (f64, u64)> + Clone) -> Option<f64> {
    let whole: u64 = values.clone().map(|(_, weight)| weight).sum();
    let mut below = 0;
    let mut values = values;
    values
        .find(|(_, weight)| {
            below += weight;
            2 * below >= whole
        })
        .map(|(value, _)| value)
}

fn empty<'a>(end: RunPlace) -> Vec<Vec<Slowness<'a>>> {
    (0..end.parts()).map(|_| Vec::new()).collect()
}

/// Returns by how much a run before and one after may differ because GPUs get hot, as a logarithm for each: by the range of the clocks
/// that a GPU reached at the start and at the end of both where these were recorded, and else by how much the kernels of
/// each run got slower or faster from its start to its end.
pub(super) fn drifts(runs: [&RunDigest; 2]) -> [f64; 2] {
    if let [Some(before), Some(after)] = runs.map(|run| run.surroundings.clocks) {
        let clocks = [before, after].into_iter().flatten();
        let (least, most) = clocks
            .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), clock| {
                (least.min(clock), most.max(clock))
            });
        return [logarithm([least, most]).min(DRIFT_SPREAD) / SQRT_2; 2];
    }
    runs.map(drift)
}

/// Returns by how much the kernels of a run got slower, or faster, from its start to its end: by as much as half of them did for certain, and no more
/// than [`DRIFTING_SHARE`] of them may have, within the error of each. A GPU that gets hot slows all alike; where sizes change in a
/// program, some kernels surely did not get slower.
fn drift(run: &RunDigest) -> f64 {
    let parts = run.place.parts() as f64;
    let slopes: Vec<(Slope, f64)> = (run.kernels.iter())
        .filter_map(|kernel| {
            let own = kernel.parts.all();
            let (first, last) = (own.first()?, own.last()?);
            let is_spread = f64::from(last.number - first.number) >= parts / 2.0;
            let slope = slope(own).filter(|_| own.len() >= MIN_DRIFT_PARTS && is_spread)?;
            let dispatches = own.iter().map(|part| part.count as f64);
            Some((slope, dispatches.sum()))
        })
        .collect();
    let weights = || slopes.iter().map(|(_, weight)| *weight);
    let squares: f64 = weights().map(|weight| weight * weight).sum();
    // So many kernels with equally many dispatches would say as much.
    let number = weights().sum::<f64>().powi(2) / squares;
    if slopes.is_empty() {
        return 0.0;
    }
    let of_sign = |sign: f64| {
        let most = |slope: &Slope| sign * slope.by + MAX_ERRORS * slope.error;
        let at = |share: f64| lower(&slopes, share, |slope| sign * slope.by);
        // The standard error of the median, from the quartiles.
        let error = 0.93 * (at(0.75) - at(0.25)) / number.sqrt();
        (at(0.5) - error).min(lower(&slopes, 1.0 - DRIFTING_SHARE, most)) * parts
    };
    of_sign(1.0).max(of_sign(-1.0)).clamp(0.0, DRIFT_SPREAD)
}

/// The number of standard errors by which a slope may be greater than it seems.
const MAX_ERRORS: f64 = 2.0;

/// Returns the value below which a share of the weight of some slopes lies; 0 without slopes.
fn lower(slopes: &[(Slope, f64)], share: f64, value: impl Fn(&Slope) -> f64) -> f64 {
    let mut values: Vec<(f64, f64)> = slopes
        .iter()
        .map(|(slope, weight)| (value(slope), *weight))
        .collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rest = share * values.iter().map(|(_, weight)| weight).sum::<f64>();
    let found = values.iter().find(|(_, weight)| {
        rest -= weight;
        rest < 0.0
    });
    found.map_or(0.0, |(value, _)| *value)
}

/// The slope of the logarithms of a kernel's times over the numbers of its parts, with its standard error.
#[derive(Debug, Clone, Copy)]
struct Slope {
    by: f64,
    error: f64,
}

/// Returns the slope of a kernel by least squares; `None` where its parts do not show it.
fn slope(parts: &[RunPart]) -> Option<Slope> {
    let points = || {
        let points = parts.iter();
        points.map(|part| [part.count as f64, f64::from(part.number), part.mean().ln()])
    };
    let whole: f64 = points().map(|point| point[0]).sum();
    let mean = |axis: usize| points().map(|point| point[0] * point[axis]).sum::<f64>() / whole;
    let (x, y) = (mean(1), mean(2));
    let [mut along, mut both] = [0.0, 0.0];
    for [weight, at, by] in points() {
        along += weight * (at - x).powi(2);
        both += weight * (at - x) * (by - y);
    }
    let by = both / along;
    let rest = points().map(|[weight, at, of]| weight * (of - y - by * (at - x)).powi(2));
    let error = (rest.sum::<f64>() / (parts.len() as f64 - 2.0) / along).sqrt();
    (by.is_finite() && error.is_finite()).then_some(Slope { by, error })
}
