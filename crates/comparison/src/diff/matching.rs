//! Matches the kernels of the runs on one side of a comparison with those of the other: [`side`] collects the kernels
//! of a side, [`pairs`] matches them.
//!
//! Kernels are matched by name and label path first, unless the hashes of their code say that names were exchanged; then by
//! the same code under one path, or another function of a code that has one function on each side; then by names that differ only in counters, hashes and architectures, in
//! their order of appearance under one label path; then by the same name or code under another path. A remaining kernel under a label is
//! matched with several under the same label that it must have replaced: where it is the only one that remains there, or where
//! its name lists their operations. At last, a kernel is matched with the only other that can have replaced it.

mod unmatched;

use super::names;
use super::run::{KernelDigest, RunDigest};
use gapscope_analysis::launch_sizes::SizeChange;
use gapscope_timeline::launch_size::LaunchSize;
use std::collections::{BTreeSet, HashMap};
use unmatched::{Unmatched, chains};

/// A kernel under a label in the runs of one side.
#[derive(Debug, Clone)]
pub(super) struct SideKernel<'a> {
    pub name: &'a str,
    /// The path of the label, with numbers as `#`; empty outside of labels.
    pub path: &'a str,
    /// The digest (sums of the dispatches) of the kernel in each run; `None` for runs without it.
    pub runs: Vec<Option<&'a KernelDigest>>,
}

/// Kernels of both sides that did the same work, and the rule by which they were matched.
#[derive(Debug, Clone)]
pub(super) struct Pair<'a> {
    /// The kernels before: none if the kernels are only after, several if they were fused.
    pub before: Vec<SideKernel<'a>>,
    pub after: Vec<SideKernel<'a>>,
    pub how: How,
}

impl Pair<'_> {
    /// Compares the sizes of the dispatches of one kernel with those of one other, where they are known.
    pub fn size(&self) -> Option<SizeChange> {
        match (self.before.as_slice(), self.after.as_slice()) {
            ([before], [after]) => SizeChange::new(before.size(), after.size()),
            _ => None,
        }
    }

    /// Returns true where the codes of one kernel on each side are known, and differ.
    pub fn has_other_code(&self) -> bool {
        let codes = [&self.before, &self.after].map(|kernels| match kernels.as_slice() {
            [kernel] if !kernel.codes().is_empty() => Some(kernel.codes()),
            _ => None,
        });
        matches!(codes, [Some(before), Some(after)] if before != after)
    }
}

/// How kernels were matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Their names and label paths are the same.
    Same,
    /// Their names differ in counters, hashes or architectures.
    Renamed,
    /// Their names differ, and their code is the same.
    SameCode,
    /// Their label paths differ.
    Moved,
    /// Their names differ; nothing else can have taken the place of the kernel that is gone.
    Replaced,
    /// One took the place of several.
    Fused,
    /// Several took the place of one.
    Split,
    /// It is only on the side before.
    OnlyBefore,
    /// It is only on the side after.
    OnlyAfter,
}

/// Returns the kernels of a side in the order in which they first appear.
pub(super) fn side(runs: &[RunDigest]) -> Vec<SideKernel<'_>> {
    let mut kernels: Vec<SideKernel> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    for (run, digest) in runs.iter().enumerate() {
        for kernel in &digest.kernels {
            let key = (kernel.name.as_str(), kernel.path.as_str());
            let place = *places.entry(key).or_insert_with(|| {
                kernels.push(SideKernel {
                    name: key.0,
                    path: key.1,
                    runs: vec![None; runs.len()],
                });
                kernels.len() - 1
            });
            kernels[place].runs[run] = Some(kernel);
        }
    }
    kernels
}

impl SideKernel<'_> {
    /// Returns what identifies the code in all runs that have the kernel; empty where that is not known, or runs differ.
    pub fn codes(&self) -> &BTreeSet<String> {
        const NONE: &BTreeSet<String> = &BTreeSet::new();
        let mut codes = self.runs.iter().flatten().map(|digest| &digest.codes);
        match codes.next() {
            Some(first) if codes.all(|other| other == first) => first,
            _ => NONE,
        }
    }

    /// Returns the code as a key; `None` where it is not known.
    fn code(&self) -> Option<String> {
        let codes: Vec<&str> = self.codes().iter().map(String::as_str).collect();
        (!codes.is_empty()).then(|| codes.join(" "))
    }

    /// Returns the hash of the only code with its specialisation constants, whatever function of it runs; `None` where that is not known.
    fn module(&self) -> Option<String> {
        let mut codes = self.codes().iter();
        let (code, None) = (codes.next()?, codes.next()) else {
            return None;
        };
        let (hash, rest) = code.split_once('/')?;
        let (_, constants) = rest.rsplit_once('/')?;
        Some(format!("{hash}/{constants}"))
    }

    /// Returns the size of all dispatches in the runs that have the kernel, and the number of these dispatches.
    pub fn size(&self) -> (LaunchSize, u64) {
        let mut size = LaunchSize::default();
        let mut count = 0;
        for digest in self.runs.iter().flatten() {
            size.add(digest.size);
            count += digest.count;
        }
        (size, count)
    }

    /// Returns the mean number of workgroups of a dispatch, then that of its threads, where they are known.
    pub fn mean_size(&self) -> Option<[f64; 2]> {
        let (size, count) = self.size();
        let mean = |sum: u64| sum as f64 / count as f64;
        (count > 0).then_some(())?;
        Some([mean(size.groups?), mean(size.threads?)])
    }

    /// Returns the number of dispatches for each run of the side.
    fn count_each(&self) -> f64 {
        self.size().1 as f64 / self.runs.len().max(1) as f64
    }
}

/// Matches all kernels; each is in one pair.
/// `evaluations` are the mean numbers of evaluations, or runs, that the dispatches of each side's runs are of.
pub(super) fn pairs<'a>(
    before: Vec<SideKernel<'a>>,
    after: Vec<SideKernel<'a>>,
    evaluations: [f64; 2],
) -> Vec<Pair<'a>> {
    let mut left = Unmatched {
        before,
        after,
        pairs: Vec::new(),
    };
    let exchanged = left.exchanged();
    let modules = left.single_functions();
    let module = |kernel: &SideKernel| kernel.module().filter(|module| modules.contains(module));
    left.match_by(How::Same, |kernel| {
        let key = (kernel.name, kernel.path);
        (!exchanged.contains(&key)).then(|| (kernel.name.to_owned(), kernel.path))
    });
    left.match_by(How::SameCode, |kernel| Some((kernel.code()?, kernel.path)));
    left.match_by(How::Same, |kernel| {
        Some((kernel.name.to_owned(), kernel.path))
    });
    left.match_by(How::SameCode, |kernel| Some((module(kernel)?, kernel.path)));
    left.match_by(How::Renamed, |kernel| {
        Some((names::normal_kernel(kernel.name), kernel.path))
    });
    left.match_by(How::Moved, |kernel| Some((kernel.name.to_owned(), "")));
    left.match_by(How::SameCode, |kernel| Some((kernel.code()?, "")));
    left.match_by(How::SameCode, |kernel| Some((module(kernel)?, "")));
    left.match_by(How::Moved, |kernel| {
        Some((names::normal_kernel(kernel.name), ""))
    });
    for (fused, several) in chains(&mut left.after, &mut left.before) {
        left.pair(several, vec![fused], How::Fused);
    }
    for (split, several) in chains(&mut left.before, &mut left.after) {
        left.pair(vec![split], several, How::Split);
    }
    left.match_only_ones(evaluations);
    for kernel in std::mem::take(&mut left.before) {
        left.pair(vec![kernel], Vec::new(), How::OnlyBefore);
    }
    for kernel in std::mem::take(&mut left.after) {
        left.pair(Vec::new(), vec![kernel], How::OnlyAfter);
    }
    left.pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of kernels under their labels. A name may have a code behind `@`, and may have a size, of one dispatch, behind `*`.
    fn run(kernels: &[(&str, &str)]) -> Vec<RunDigest> {
        let kernel = |(path, name): &(&str, &str)| {
            let (name, size) = name.split_once('*').unwrap_or((name, ""));
            let (name, code) = name.split_once('@').unwrap_or((name, ""));
            let threads = size.parse().ok();
            KernelDigest {
                name: name.to_owned(),
                path: (*path).to_owned(),
                codes: [code.to_owned()]
                    .into_iter()
                    .filter(|code| !code.is_empty())
                    .collect(),
                count: 1,
                size: LaunchSize::new(threads, threads),
                ..KernelDigest::default()
            }
        };
        vec![RunDigest {
            kernels: kernels.iter().map(kernel).collect(),
            ..RunDigest::default()
        }]
    }

    fn matched(before: &[(&str, &str)], after: &[(&str, &str)]) -> Vec<String> {
        let (before, after) = (run(before), run(after));
        let names = |kernels: &[SideKernel]| -> String {
            let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name).collect();
            names.join("+")
        };
        let pairs = pairs(side(&before), side(&after), [1.0; 2]).into_iter();
        let pairs = pairs.map(|pair| (pair.how, names(&pair.before), names(&pair.after)));
        let pairs = pairs.map(|(how, before, after)| format!("{how:?} {before} {after}"));
        let mut pairs: Vec<String> = pairs.collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn the_same_name_under_the_same_label_comes_first() {
        let found = matched(
            &[("a", "add_0"), ("a", "add_1"), ("b", "add_0")],
            &[("b", "add_0"), ("a", "add_1"), ("a", "add_7")],
        );
        let expected = [
            "Renamed add_0 add_7",
            "Same add_0 add_0",
            "Same add_1 add_1",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn renumbered_kernels_are_matched_in_their_order() {
        let found = matched(
            &[("", "fusion.3"), ("", "fusion.4"), ("", "gone*7")],
            &[("", "fusion.10"), ("", "fusion.11"), ("", "fresh*8")],
        );
        let expected = [
            "OnlyAfter  fresh",
            "OnlyBefore gone ",
            "Renamed fusion.3 fusion.10",
            "Renamed fusion.4 fusion.11",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_only_new_kernel_under_a_label_replaced_the_chain_that_is_gone_there() {
        let before = [
            ("mlp", "mul"),
            ("mlp", "add"),
            ("mlp", "gelu"),
            ("out", "add"),
        ];
        let found = matched(&before, &[("mlp", "fused_mlp"), ("out", "add")]);
        assert_eq!(found, ["Fused mul+add+gelu fused_mlp", "Same add add"]);
        // Outside of labels, and where two are new, nothing says which is which.
        let found = matched(&[("", "mul"), ("", "add")], &[("", "fused")]);
        assert_eq!(
            found,
            ["OnlyAfter  fused", "OnlyBefore add ", "OnlyBefore mul "]
        );
    }

    #[test]
    fn a_fused_name_says_which_operations_it_replaced() {
        let before = [
            ("", "add<float> (vec4)"),
            ("", "relu<float>"),
            ("", "softmax"),
        ];
        let after = [
            ("", "triton_poi_fused_add_relu_0"),
            ("", "triton_red_fused_norm_1"),
        ];
        assert_eq!(
            matched(&before, &after),
            [
                "Fused add<float> (vec4)+relu<float> triton_poi_fused_add_relu_0",
                "OnlyAfter  triton_red_fused_norm_1",
                "OnlyBefore softmax ",
            ]
        );
    }

    #[test]
    fn the_same_code_is_matched_whatever_its_name_is() {
        let found = matched(
            &[("a", "softmax@5f"), ("a", "add@77"), ("b", "mul@99")],
            &[("a", "softmax_v2@5f"), ("a", "add@77"), ("c", "times@99")],
        );
        let expected = [
            "Same add add",
            "SameCode mul times",
            "SameCode softmax softmax_v2",
        ];
        assert_eq!(found, expected);
        // Two kernels exchanged their names.
        let found = matched(
            &[("a", "softmax@5f"), ("a", "add@77")],
            &[("a", "softmax@77"), ("a", "add@5f")],
        );
        assert_eq!(found, ["SameCode add softmax", "SameCode softmax add"]);
        // The code of a kernel that keeps its name was changed, and what it was before runs beside it.
        let found = matched(
            &[("a", "gemm@1")],
            &[("a", "gemm@2"), ("a", "gemm_reference@1")],
        );
        assert_eq!(found, ["OnlyAfter  gemm_reference", "Same gemm gemm"]);
    }

    #[test]
    fn the_only_function_of_a_code_is_matched_with_the_only_one_after() {
        let found = matched(
            &[("a", "softmax@5f/softmax/"), ("a", "add@77/add/")],
            &[("a", "softmax_v2@5f/softmax_v2/"), ("a", "add@77/add/")],
        );
        assert_eq!(found, ["Same add add", "SameCode softmax softmax_v2"]);
        // Of several functions of one code, nothing says which became which.
        let found = matched(
            &[("", "gemm@5f/gemm/"), ("", "add@5f/add/")],
            &[("", "gemm@5f/gemm/"), ("", "mul@5f/mul/")],
        );
        let expected = ["OnlyAfter  mul", "OnlyBefore add ", "Same gemm gemm"];
        assert_eq!(found, expected);
        // Other constants make other code.
        let found = matched(&[("", "a@5f/a/1")], &[("", "b@5f/b/2")]);
        assert_eq!(found, ["OnlyAfter  b", "OnlyBefore a "]);
    }

    #[test]
    fn a_kernel_takes_the_place_of_the_only_one_that_is_gone() {
        let found = matched(
            &[("step", "gemm"), ("step", "softmax")],
            &[("step", "gemm"), ("step", "softmax_v2")],
        );
        assert_eq!(found, ["Replaced softmax softmax_v2", "Same gemm gemm"]);
        // Of several, only those that no other resembles.
        let found = matched(
            &[("", "a*64"), ("", "b*128"), ("", "c*128")],
            &[("", "x*64"), ("", "y*128"), ("", "z*128")],
        );
        let expected = [
            "OnlyAfter  y",
            "OnlyAfter  z",
            "OnlyBefore b ",
            "OnlyBefore c ",
            "Replaced a x",
        ];
        assert_eq!(found, expected);
        // Outside of labels, and without sizes, nothing says that one took the other's place.
        let found = matched(&[("", "a")], &[("", "b")]);
        assert_eq!(found, ["OnlyAfter  b", "OnlyBefore a "]);
    }

    #[test]
    fn one_that_became_several_is_split() {
        let found = matched(&[("x", "whole")], &[("x", "first"), ("x", "second")]);
        assert_eq!(found, ["Split whole first+second"]);
    }
}
