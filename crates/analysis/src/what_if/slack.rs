//! Finds by how much each launch of a kernel could be longer before the run gets longer: a run laid out for replays goes in, a [`KernelSlack`]
//! for each of the kernels with the most time comes out.

use super::change::{Target, To};
use super::effects::Effects;
use super::recorded::Work;
use super::replay::Choices;
use super::{KeptReplay, PathPart, WhatIf};
use gapscope_trace::lookup::NONE;
use gapscope_trace::parallel;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use wildmatch::WildMatch;

/// The most kernels whose slack is found.
const MAX_KERNELS: usize = 5;
/// So much of the time that launches take longer may make the run longer: single launches, such as the last one, are on the critical path
/// of each run.
const MAX_SHARE_SEEN: f64 = 0.01;
/// The number of halvings after which the slack is known well enough: to a millionth of the run.
const HALVINGS: usize = 20;

/// By how much the launches of a kernel could be longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KernelSlack {
    /// The name of the kernel.
    pub kernel: String,
    /// The number of its launches in the replayed part of the run.
    pub launches: u64,
    /// The sum of their times in the recording.
    pub total_ns: i64,
    /// The time by which each of them could be longer until more than 1 % of the added time made the run longer; 0 for kernels on the
    /// critical path.
    pub slack_ns: i64,
}

/// A kernel with much of the time of a run.
#[derive(Debug, Default)]
pub(super) struct LongKernel {
    pub(super) name: String,
    launches: u64,
    total_ns: i64,
}

impl WhatIf<'_, '_> {
    /// Returns the slack of kernels in a changed run, in their order. `replayed` is the replay of that run, and `path` its critical path.
    pub(super) fn slack(
        &self,
        effects: &[Effects],
        replayed: &KeptReplay,
        path: &[PathPart],
        kernels: Vec<LongKernel>,
    ) -> Vec<KernelSlack> {
        let length_ns = self.length_of(&replayed.0);
        let is_on_path = |kernel: &str| {
            let mut parts = path.iter().filter(|part| part.what == "kernel");
            parts.any(|part| part.name.as_deref() == Some(kernel) && part.share > MAX_SHARE_SEEN)
        };
        parallel::each(kernels, |kernel| KernelSlack {
            slack_ns: match is_on_path(&kernel.name) {
                true => 0,
                false => self.slack_of(&kernel, effects, length_ns),
            },
            kernel: kernel.name,
            launches: kernel.launches,
            total_ns: kernel.total_ns,
        })
    }

    /// Returns the slack of a kernel in a changed run that takes `length_ns`.
    fn slack_of(&self, kernel: &LongKernel, effects: &[Effects], length_ns: i64) -> i64 {
        let target = Target::Kernels(WildMatch::new(&kernel.name));
        let is_seen = |by_ns: i64| {
            let runs = self.runs.iter().zip(effects);
            let effects: Vec<Effects> = runs
                .map(|(run, effects)| effects.with_time(run.timeline(), &target, To::Longer(by_ns)))
                .collect();
            let longer_ns = self.length_ns(&effects, Choices::RECORDED) - length_ns;
            longer_ns as f64 > MAX_SHARE_SEEN * by_ns as f64 * kernel.launches as f64
        };
        let (mut least, mut most) = (0, length_ns.max(1));
        for _ in 0..HALVINGS {
            let middle = least + (most - least) / 2;
            match is_seen(middle) {
                true => most = middle,
                false => least = middle,
            }
        }
        // What a millionth of the run cannot tell from nothing is none.
        match least <= length_ns >> HALVINGS {
            true => 0,
            false => least,
        }
    }

    /// Returns the time of each kernel that is known by its name.
    pub(super) fn kernels(&self) -> BTreeMap<String, i64> {
        let sums = self.kernel_sums().into_iter();
        sums.map(|(name, kernel)| (name.to_owned(), kernel.total_ns))
            .collect()
    }

    /// Returns the kernels with the most time, the kernel with the most time first.
    pub(super) fn longest_kernels(&self) -> Vec<LongKernel> {
        let kernels = self.kernel_sums().into_iter();
        let mut kernels: Vec<LongKernel> = kernels
            .map(|(name, kernel)| LongKernel {
                name: name.to_owned(),
                ..kernel
            })
            .collect();
        kernels.sort_by(|a, b| (b.total_ns.cmp(&a.total_ns)).then_with(|| a.name.cmp(&b.name)));
        kernels.truncate(MAX_KERNELS);
        kernels
    }

    /// Returns the launches and times of all kernels by their names.
    fn kernel_sums(&self) -> FxHashMap<&str, LongKernel> {
        let mut sums: FxHashMap<&str, LongKernel> = FxHashMap::default();
        for run in &self.runs {
            let names = &run.timeline().kernel_names;
            for work in run.recorded.works() {
                // What ranks do together has its end from all of them.
                if let Work::Kernel(row) = work.content
                    && row != NONE
                    && work.collective == NONE
                {
                    let kernel = sums.entry(names.name(row as usize)).or_default();
                    kernel.launches += 1;
                    kernel.total_ns = kernel.total_ns.saturating_add(work.length_ns);
                }
            }
        }
        sums
    }
}
