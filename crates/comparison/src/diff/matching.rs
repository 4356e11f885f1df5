//! Matches the kernels of the runs on one side of a comparison with those of the other: [`side`] collects the kernels
//! of a side, [`pairs`] matches them.
//!
//! Kernels are matched by name and label path first; then by names that differ only in counters, hashes and architectures, in
//! their order of appearance under one label path; then by the same name under another path. A remaining kernel under a label is
//! matched with several under the same label that it must have replaced: where it is the only one that remains there, or where
//! its name lists their operations.

use super::names;
use super::run::{KernelDigest, RunDigest};
use std::collections::{BTreeMap, HashMap};

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

/// How kernels were matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Their names and label paths are the same.
    Same,
    /// Their names differ in counters, hashes or architectures.
    Renamed,
    /// Their label paths differ.
    Moved,
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

/// Matches all kernels; each is in one pair.
pub(super) fn pairs<'a>(before: Vec<SideKernel<'a>>, after: Vec<SideKernel<'a>>) -> Vec<Pair<'a>> {
    let mut left = Unmatched {
        before,
        after,
        pairs: Vec::new(),
    };
    left.match_by(How::Same, |kernel| (kernel.name.to_owned(), kernel.path));
    left.match_by(How::Renamed, |kernel| {
        (names::normal_kernel(kernel.name), kernel.path)
    });
    left.match_by(How::Moved, |kernel| (kernel.name.to_owned(), ""));
    left.match_by(How::Moved, |kernel| (names::normal_kernel(kernel.name), ""));
    for (fused, several) in chains(&mut left.after, &mut left.before) {
        left.pair(several, vec![fused], How::Fused);
    }
    for (split, several) in chains(&mut left.before, &mut left.after) {
        left.pair(vec![split], several, How::Split);
    }
    for kernel in std::mem::take(&mut left.before) {
        left.pair(vec![kernel], Vec::new(), How::OnlyBefore);
    }
    for kernel in std::mem::take(&mut left.after) {
        left.pair(Vec::new(), vec![kernel], How::OnlyAfter);
    }
    left.pairs
}

/// The kernels of both sides that are not matched yet, and the pairs so far.
struct Unmatched<'a> {
    before: Vec<SideKernel<'a>>,
    after: Vec<SideKernel<'a>>,
    pairs: Vec<Pair<'a>>,
}

impl<'a> Unmatched<'a> {
    /// Adds a pair.
    fn pair(&mut self, before: Vec<SideKernel<'a>>, after: Vec<SideKernel<'a>>, how: How) {
        self.pairs.push(Pair { before, after, how });
    }

    /// Pairs kernels with the same key, in order of appearance; the others stay unmatched.
    fn match_by<'k>(&mut self, how: How, key: impl Fn(&SideKernel<'a>) -> (String, &'k str)) {
        let mut there: HashMap<(String, &str), Vec<usize>> = HashMap::new();
        for (at, kernel) in self.after.iter().enumerate().rev() {
            there.entry(key(kernel)).or_default().push(at);
        }
        let mut taken: Vec<Option<SideKernel>> = self.after.drain(..).map(Some).collect();
        for kernel in std::mem::take(&mut self.before) {
            let partner = there.get_mut(&key(&kernel)).and_then(Vec::pop);
            match partner.and_then(|at| taken[at].take()) {
                Some(partner) => self.pair(vec![kernel], vec![partner], how),
                None => self.before.push(kernel),
            }
        }
        self.after = taken.into_iter().flatten().collect();
    }
}

/// Removes from `ones` each kernel that took the place of at least two of `others`, and returns it with the kernels
/// it replaced.
fn chains<'a>(
    ones: &mut Vec<SideKernel<'a>>,
    others: &mut Vec<SideKernel<'a>>,
) -> Vec<(SideKernel<'a>, Vec<SideKernel<'a>>)> {
    let mut alone: BTreeMap<&str, u32> = BTreeMap::new();
    for one in ones.iter() {
        *alone.entry(one.path).or_default() += 1;
    }
    let mut chains = Vec::new();
    for one in std::mem::take(ones) {
        let here = |other: &SideKernel| other.path == one.path;
        let operations = names::fused_operations(one.name).unwrap_or_default();
        let listed = |other: &SideKernel| {
            let name = other.name.to_ascii_lowercase();
            here(other) && operations.iter().any(|operation| name.contains(operation))
        };
        let is_only = !one.path.is_empty() && alone.get(one.path) == Some(&1);
        let takes = |other: &SideKernel| match is_only {
            true => here(other),
            false => listed(other),
        };
        if others.iter().filter(|other| takes(other)).count() < 2 {
            ones.push(one);
            continue;
        }
        let (several, rest) = others.drain(..).partition(|other| takes(other));
        *others = rest;
        chains.push((one, several));
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kernels: &[(&str, &str)]) -> Vec<RunDigest> {
        let kernel = |(path, name): &(&str, &str)| KernelDigest {
            name: (*name).to_owned(),
            path: (*path).to_owned(),
            ..KernelDigest::default()
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
        let pairs = pairs(side(&before), side(&after)).into_iter();
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
            &[("", "fusion.3"), ("", "fusion.4"), ("", "gone")],
            &[("", "fusion.10"), ("", "fusion.11"), ("", "fresh")],
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
    fn one_that_became_several_is_split() {
        let found = matched(&[("x", "whole")], &[("x", "first"), ("x", "second")]);
        assert_eq!(found, ["Split whole first+second"]);
    }
}
