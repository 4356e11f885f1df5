//! Computes the changes of two compared works by kernel and by cause of idle time: means of evaluations (for causes,
//! of those that are samples), or totals. An evaluation is one instance of the label of a side.
use super::comparison::{CauseChange, CopyEvidence, KernelChange, WorkComparison};
use super::work_cost::WorkCost;
use crate::copy_sizes::other_copies;
use crate::gaps::Cause;
use crate::launch_sizes::{SizeChange, SizeEvidence, SizedKernel, is_same, judge};
use gapscope_timeline::vocabulary::Words;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Returns the changes by kernel, the greatest difference in time first, and then in dispatches. Kernels of both
/// sides are the same if they have the same name.
pub(super) fn kernels(comparison: &WorkComparison) -> Vec<KernelChange> {
    let WorkComparison { before, after, .. } = comparison;
    let names: BTreeSet<&String> = before.kernels.keys().chain(after.kernels.keys()).collect();
    let evaluations = |work: &WorkCost| evaluations(comparison, work);
    let cost = |work: &WorkCost, name: &String| -> (Option<f64>, Option<f64>) {
        let known = work.dispatch_count.is_some();
        match work.kernels.get(name) {
            Some(kernel) => (
                known.then(|| kernel.runs.count as f64 / evaluations(work)),
                (kernel.runs.total_ns).map(|ns| ns as f64 / evaluations(work)),
            ),
            None => (known.then_some(0.0), known.then_some(0.0)),
        }
    };
    let mut rows: Vec<KernelChange> = (names.into_iter())
        .map(|name| {
            let told = before.kernels.get(name).or_else(|| after.kernels.get(name));
            let (before_count, before_ns) = cost(before, name);
            let (after_count, after_ns) = cost(after, name);
            KernelChange {
                name: told.map_or_else(|| name.clone(), |kernel| kernel.name.clone()),
                before_count,
                after_count,
                before_ns,
                after_ns,
            }
        })
        .collect();
    rows.sort_by_key(|row| {
        let time = apart(row.before_ns, row.after_ns);
        Reverse((time, apart(row.before_count, row.after_count)))
    });
    rows
}

/// Returns the number by which sums over all evaluations of a side are divided.
fn evaluations(comparison: &WorkComparison, work: &WorkCost) -> f64 {
    match comparison.per_evaluation {
        true => work.evaluations.unwrap_or(1).max(1) as f64,
        false => 1.0,
    }
}

/// Judges the sizes of the dispatches of the kernels that ran on both sides, and says in sentences what differs. Returns `None`
/// where no sizes are known.
pub(super) fn sizes(comparison: &WorkComparison) -> Option<(SizeEvidence, Vec<String>)> {
    let WorkComparison { before, after, .. } = comparison;
    let evaluations = [before, after].map(|work| evaluations(comparison, work));
    let common = before.kernels.iter().filter_map(|(name, kernel)| {
        let [before, after] = [kernel, after.kernels.get(name)?].map(|kernel| kernel.runs);
        let counts = [(before.count, 0), (after.count, 1)];
        Some(SizedKernel {
            name: &kernel.name,
            size: SizeChange::new((before.size, before.count), (after.size, after.count))?,
            // Both sides are of one program.
            has_other_code: false,
            ran_as_often: is_same(counts.map(|(count, side)| count as f64 / evaluations[side])),
        })
    });
    let common: Vec<SizedKernel> = common.collect();
    let bytes = before.bound_bytes();
    let same_data = bytes.is_some() && bytes == after.bound_bytes();
    let words = Words::common([before.api, after.api]);
    (!common.is_empty()).then(|| judge(&common, same_data, &words))
}

/// Judges the transfers of both sides.
pub(super) fn copies(comparison: &WorkComparison) -> CopyEvidence {
    let works = [&comparison.before, &comparison.after];
    let each = works.map(|work| evaluations(comparison, work));
    let [Some(before), Some(after)] = works.map(|work| work.copies.as_ref()) else {
        return CopyEvidence::Equal;
    };
    let [counts, bytes] = [
        works.map(|work| Some(work.transfer_count)),
        works.map(|work| work.transfer_bytes),
    ];
    let is_alike = |sums: [Option<u64>; 2]| {
        let [first, second] = [0, 1].map(|side| sums[side].unwrap_or(0) as f64 / each[side]);
        is_same([first, second])
    };
    if !is_alike(counts) || !is_alike(bytes) {
        return CopyEvidence::OtherSums;
    }
    other_copies([(before, each[0]), (after, each[1])])
        .map_or(CopyEvidence::Equal, CopyEvidence::OtherSizes)
}

/// Returns the changes by cause of idle time, the greatest difference first; nothing where neither side's is known.
pub(super) fn causes(comparison: &WorkComparison) -> Vec<CauseChange> {
    let idle = |work: &WorkCost, cause: Cause| -> Option<f64> {
        let evaluations = match comparison.per_evaluation {
            true => work.counted_evaluations.max(1) as f64,
            false => 1.0,
        };
        let totals = work.idle.as_ref()?;
        let total = totals.iter().find(|total| total.cause == cause);
        Some(total.map_or(0.0, |total| total.total_ns as f64 / evaluations))
    };
    let mut rows: Vec<CauseChange> = (Cause::ALL.into_iter())
        .map(|cause| CauseChange {
            cause,
            before_ns: idle(&comparison.before, cause),
            after_ns: idle(&comparison.after, cause),
        })
        .filter(|row| row.before_ns.unwrap_or(0.0) + row.after_ns.unwrap_or(0.0) > 0.0)
        .collect();
    rows.sort_by_key(|row| Reverse(apart(row.before_ns, row.after_ns)));
    rows
}

/// Returns the distance between two figures in thousandths, or 0 where a figure is not known.
fn apart(before: Option<f64>, after: Option<f64>) -> i64 {
    let apart = before.zip(after).map(|(a, b)| (a - b).abs() * 1e3);
    apart.unwrap_or(0.0) as i64
}
