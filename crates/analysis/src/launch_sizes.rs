//! Compares how large the dispatches of kernels are before and after a change: the sizes of the kernels on both sides go in, and
//! whether they speak for equal work comes out.
//!
//! A dispatch of fewer threads may do less, or the same in fewer threads that do more each: a kernel that was tuned. Only
//! where every kernel of a program runs fewer threads, in workgroups of the same size, is less work the only likely reason.

use gapscope_timeline::launch_size::LaunchSize;
use gapscope_timeline::quantity::{count, mean_count};
use gapscope_timeline::thresholds::SAME_SIZE_SHARE;
use schemars::JsonSchema;
use serde::Serialize;

/// The mean workgroups and threads of a dispatch of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SizeChange {
    /// Workgroups before and after.
    pub groups: [f64; 2],
    /// Threads before and after; absent where the size of a workgroup is not known.
    pub threads: Option<[f64; 2]>,
}

/// A kernel that ran on both sides, with the sizes of its dispatches.
#[derive(Debug, Clone, Copy)]
pub struct SizedKernel<'a> {
    /// The name of the kernel after.
    pub name: &'a str,
    /// The sizes.
    pub size: SizeChange,
    /// True where the code of the kernel is known on both sides, and differs.
    pub has_other_code: bool,
}

/// What the sizes of dispatches say of the work of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeEvidence {
    /// Nothing against equal work: each kernel runs as many threads.
    Equal,
    /// Some kernels ran fewer or more threads, which may do the same work.
    Doubtful,
    /// All kernels ran fewer threads, or all more, in workgroups of the same size: not the same work.
    Unequal,
}

/// The least number of kernels of which a change of all says more than that of one.
const MIN_KERNELS: usize = 2;

/// The maximum number of kernels whose sizes are told.
const MAX_TOLD: usize = 4;

impl SizeChange {
    /// Compares the sums over dispatches of both sides, each with the number of its dispatches. Returns `None` where the
    /// workgroups of a side are not known.
    pub fn new(before: (LaunchSize, u64), after: (LaunchSize, u64)) -> Option<SizeChange> {
        let mean = |(size, count): (LaunchSize, u64)| {
            let mean = |sum: Option<u64>| Some(sum? as f64 / count as f64);
            Some((mean(size.groups).filter(|_| count > 0)?, mean(size.threads)))
        };
        let (before, after) = (mean(before)?, mean(after)?);
        let threads = before.1.zip(after.1);
        Some(SizeChange {
            groups: [before.0, after.0],
            threads: threads.map(|(before, after)| [before, after]),
        })
    }

    fn has_other_shape(&self) -> bool {
        !is_same(self.groups) || self.threads.is_some_and(|threads| !is_same(threads))
    }

    /// Returns true where the number of threads differs, or may.
    fn has_other_threads(&self) -> bool {
        match self.threads {
            Some(threads) => !is_same(threads),
            None => self.has_other_shape(),
        }
    }

    /// Returns the threads of a workgroup before and after.
    fn group_threads(&self) -> Option<[f64; 2]> {
        let threads = self.threads?;
        Some([0, 1].map(|side| threads[side] / self.groups[side]))
    }

    fn grew(&self) -> bool {
        let [before, after] = self.threads.unwrap_or(self.groups);
        after > before
    }

    /// Describes the launches of a kernel, such as `500 workgroups of 256 threads a dispatch instead of 1,000`.
    fn launches(&self) -> String {
        let [before, after] = self.groups.map(mean_count);
        let workgroups = match self.groups[1] {
            1.0 => "workgroup",
            _ => "workgroups",
        };
        match self.group_threads() {
            Some(threads) if is_same(threads) => format!(
                "{after} {workgroups} of {} threads a dispatch instead of {before}",
                mean_count(threads[1])
            ),
            Some([first, second]) => format!(
                "{after} {workgroups} of {} threads a dispatch instead of {before} of {}",
                mean_count(second),
                mean_count(first)
            ),
            None => format!("{after} {workgroups} a dispatch instead of {before}"),
        }
    }
}

/// Returns true where two sizes differ by next to nothing.
fn is_same([before, after]: [f64; 2]) -> bool {
    (after - before).abs() <= SAME_SIZE_SHARE * before.max(after)
}

/// Judges the sizes of the dispatches of kernels, and says in sentences what differs. `same_data` is true where the bytes bound
/// to all dispatches are known and the same, so that fewer threads do not mean less data.
pub fn judge(kernels: &[SizedKernel], same_data: bool) -> (SizeEvidence, Vec<String>) {
    let (resized, reshaped): (Vec<&SizedKernel>, Vec<_>) = (kernels.iter())
        .filter(|kernel| kernel.size.has_other_shape())
        .partition(|kernel| kernel.size.has_other_threads());
    let mut sentences = Vec::new();
    if !reshaped.is_empty() {
        sentences.push(format!(
            "Launched in another shape, with as many threads: {}.",
            told(&reshaped)
        ));
    }
    let Some(first) = resized.first() else {
        return (SizeEvidence::Equal, sentences);
    };
    // More or fewer workgroups of the same size, and no other code.
    let is_alike = |kernel: &SizedKernel| {
        kernel.size.group_threads().is_some_and(is_same)
            && kernel.size.grew() == first.size.grew()
            && !kernel.has_other_code
    };
    let all_alike = kernels
        .iter()
        .all(|kernel| kernel.size.has_other_threads() && is_alike(kernel));
    if all_alike && kernels.len() >= MIN_KERNELS && !same_data {
        let all = match kernels.len() {
            2 => "Both".to_owned(),
            all => format!("All {}", count(all as u64)),
        };
        let fewer = if first.size.grew() { "more" } else { "fewer" };
        sentences.push(format!(
            "{all} kernels ran in {fewer} workgroups of the same size: {}.",
            told(&resized)
        ));
        return (SizeEvidence::Unequal, sentences);
    }
    sentences.push(format!(
        "Launched with another number of threads: {}. Whether that is other work, or the same work in other threads, is not known.",
        told(&resized)
    ));
    (SizeEvidence::Doubtful, sentences)
}

/// Lists the launches of the first of some kernels, and how many more there are.
fn told(kernels: &[&SizedKernel]) -> String {
    let text = |kernel: &&SizedKernel| format!("`{}` as {}", kernel.name, kernel.size.launches());
    let mut texts: Vec<String> = kernels.iter().take(MAX_TOLD).map(text).collect();
    if kernels.len() > MAX_TOLD {
        texts.push(format!("and {} more", kernels.len() - MAX_TOLD));
    }
    texts.join(", ")
}
