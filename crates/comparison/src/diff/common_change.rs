//! Tells by how much the kernels of one run a side changed together: matched kernels go in, and for some kernels the change of the
//! others comes out, as a logarithm. What another clock of the GPU does to one kernel, it does to the others, too.

use super::matching::Pair;
use super::run::KernelDigest;

/// The changes of all kernels that one of each side was matched with.
#[derive(Debug)]
pub(super) struct CommonChange<'a> {
    /// The changes, the smallest first.
    changes: Vec<KernelDifference<'a>>,
}

/// The change of the mean time of a kernel.
#[derive(Debug)]
struct KernelDifference<'a> {
    by: f64,
    weight_ns: f64,
    /// The kernel before.
    kernel: &'a KernelDigest,
}

/// The least number of other kernels of which a change says that it is common.
const MIN_OTHERS: usize = 2;

impl<'a> CommonChange<'a> {
    pub fn new(pairs: &[Pair<'a>]) -> CommonChange<'a> {
        let mut changes: Vec<KernelDifference> = pairs.iter().filter_map(difference).collect();
        changes.sort_by(|a, b| a.by.total_cmp(&b.by));
        CommonChange { changes }
    }

    /// Returns the change of which half of the time of the other kernels has a smaller one; `None` where there are too few others.
    pub fn of_others(&self, kernels: &[&KernelDigest]) -> Option<f64> {
        let is_other = |change: &&KernelDifference| {
            let mut kernels = kernels.iter();
            !kernels.any(|kernel| std::ptr::eq(*kernel, change.kernel))
        };
        let others = || self.changes.iter().filter(is_other);
        let whole_ns: f64 = others().map(|change| change.weight_ns).sum();
        let mut below_ns = 0.0;
        let middle = others().find(|change| {
            below_ns += change.weight_ns;
            2.0 * below_ns >= whole_ns
        })?;
        (others().count() >= MIN_OTHERS).then_some(middle.by)
    }
}

/// Returns the change of the mean time of one kernel of each side; `None` where times are not known.
fn difference<'a>(pair: &Pair<'a>) -> Option<KernelDifference<'a>> {
    let ([before], [after]) = (pair.before.as_slice(), pair.after.as_slice()) else {
        return None;
    };
    let [before, after] = [*before.runs.first()?, *after.runs.first()?];
    let (before, after) = (before?, after?);
    let is_timed = |kernel: &KernelDigest| kernel.timed > 0 && kernel.total_ns > 0;
    (is_timed(before) && is_timed(after)).then(|| {
        let mean = |kernel: &KernelDigest| kernel.total_ns as f64 / kernel.timed as f64;
        KernelDifference {
            by: (mean(after) / mean(before)).ln(),
            weight_ns: (before.total_ns as f64 * after.total_ns as f64).sqrt(),
            kernel: before,
        }
    })
}
