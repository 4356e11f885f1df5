//! Compares how large the dispatches of kernels are before and after a change: the sizes of the kernels on both sides go in, and
//! whether they speak for equal work comes out.
//!
//! A dispatch of fewer threads may do less, or the same in fewer threads that do more each: a kernel that was tuned. Only
//! where every kernel of a program runs fewer threads, in workgroups of the same size, is less work the only likely reason. A kernel of the
//! same code whose dispatches have other sizes, with as many threads in all, was called for other work.

use gapscope_timeline::launch_size::{LaunchSize, SizeMoments};
use gapscope_timeline::quantity::{count, mean_count};
use gapscope_timeline::thresholds::SAME_SIZE_SHARE;
use gapscope_timeline::vocabulary::Words;
use schemars::JsonSchema;
use serde::Serialize;

/// The mean workgroups and threads of a dispatch of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SizeChange {
    /// Workgroups before and after.
    pub groups: [f64; 2],
    /// Threads before and after; absent where the size of a workgroup is not known.
    pub threads: Option<[f64; 2]>,
    /// Whether the sizes of single dispatches are distributed alike, in any order: by their threads, or by their workgroups where threads are
    /// not known. Absent where the sizes are known as sums only.
    pub same_sizes: Option<bool>,
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
    /// True where the kernel ran as often on both sides.
    pub ran_as_often: bool,
}

impl SizedKernel<'_> {
    /// Returns true where single dispatches have other sizes, and that is not because some of them are missing on one side.
    fn has_other_sizes(&self) -> bool {
        self.ran_as_often && self.size.same_sizes == Some(false)
    }
}

/// What the sizes of dispatches say of the work of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeEvidence {
    /// Nothing against equal work: each kernel runs as many threads.
    Equal,
    /// Some kernels ran fewer or more threads, which may do the same work.
    Doubtful,
    /// All kernels ran fewer threads, or all more, in workgroups of the same size, or a kernel ran in dispatches of other sizes with as many
    /// threads in all: not the same work.
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
        let alike = |a: Option<SizeMoments>, b: Option<SizeMoments>| Some(a?.is_like(b?));
        let same_sizes = alike(before.0.single_threads, after.0.single_threads)
            .or_else(|| alike(before.0.single_groups, after.0.single_groups));
        let (before, after) = (mean(before)?, mean(after)?);
        let threads = before.1.zip(after.1);
        Some(SizeChange {
            groups: [before.0, after.0],
            threads: threads.map(|(before, after)| [before, after]),
            same_sizes,
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

    /// Describes the launches of a kernel, such as `500 workgroups of 256 threads instead of 1,000`, on average.
    fn launches(&self, words: &Words) -> String {
        let [before, after] = self.groups.map(mean_count);
        let workgroups = match self.groups[1] {
            1.0 => words.workgroup.one,
            _ => words.workgroup.many,
        };
        match self.group_threads() {
            Some(threads) if is_same(threads) => format!(
                "{after} {workgroups} of {} threads instead of {before}",
                mean_count(threads[1])
            ),
            Some([first, second]) => format!(
                "{after} {workgroups} of {} threads instead of {before} of {}",
                mean_count(second),
                mean_count(first)
            ),
            None => format!("{after} {workgroups} instead of {before}"),
        }
    }
}

/// Returns true where two sizes, or counts, differ by next to nothing.
pub fn is_same([before, after]: [f64; 2]) -> bool {
    (after - before).abs() <= SAME_SIZE_SHARE * before.max(after)
}

/// Judges the sizes of the dispatches of kernels, and says in sentences what differs, in the words of an API. `same_data` is true where the bytes bound
/// to all dispatches are known and the same, so that fewer threads do not mean less data.
pub fn judge(
    kernels: &[SizedKernel],
    same_data: bool,
    words: &Words,
) -> (SizeEvidence, Vec<String>) {
    let (resized, as_many): (Vec<&SizedKernel>, Vec<_>) =
        (kernels.iter()).partition(|kernel| kernel.size.has_other_threads());
    let (mixed, alike): (Vec<&SizedKernel>, Vec<_>) =
        (as_many.into_iter()).partition(|kernel| kernel.has_other_sizes());
    let reshaped = alike.into_iter();
    let reshaped: Vec<&SizedKernel> = reshaped
        .filter(|kernel| kernel.size.has_other_shape())
        .collect();
    let mut sentences = Vec::new();
    if !mixed.is_empty() {
        let names = mixed.iter().map(|kernel| format!("`{}`", kernel.name));
        sentences.push(format!(
            "Launched in other sizes, with as many threads in all: {}.",
            listed(names.collect())
        ));
    }
    if !reshaped.is_empty() {
        sentences.push(format!(
            "Launched in another shape, with as many threads: {}.",
            told(&reshaped, words)
        ));
    }
    // A kernel that was tuned runs all of its dispatches in other sizes; with one code, other sizes are other work.
    if mixed.iter().any(|kernel| !kernel.has_other_code) && !same_data {
        return (SizeEvidence::Unequal, sentences);
    }
    let Some(first) = resized.first() else {
        let evidence = match mixed.is_empty() {
            true => SizeEvidence::Equal,
            false => SizeEvidence::Doubtful,
        };
        return (evidence, sentences);
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
            "{all} kernels ran in {fewer} {} of the same size: {}.",
            words.workgroup.many,
            told(&resized, words)
        ));
        return (SizeEvidence::Unequal, sentences);
    }
    sentences.push(format!(
        "Launched with another number of threads: {}. Whether that is other work, or the same work in other threads, is not known.",
        told(&resized, words)
    ));
    (SizeEvidence::Doubtful, sentences)
}

/// Lists the launches of the first of some kernels, and how many more there are.
fn told(kernels: &[&SizedKernel], words: &Words) -> String {
    let text =
        |kernel: &&SizedKernel| format!("`{}` as {}", kernel.name, kernel.size.launches(words));
    listed(kernels.iter().map(text).collect())
}

/// Lists the first of some texts, and how many more there are.
fn listed(mut texts: Vec<String>) -> String {
    if texts.len() > MAX_TOLD {
        let more = texts.len() - MAX_TOLD;
        texts.truncate(MAX_TOLD);
        texts.push(format!("and {more} more"));
    }
    texts.join(", ")
}
