//! Finds by how much each launch of a kernel could be longer before the run gets longer: a run laid out for replays goes in, a [`KernelSlack`]
//! for each of the kernels with the most time comes out.

use super::change::{Target, To};
use super::effects::Effects;
use super::recorded::Work;
use super::replay::Choices;
use super::{PathPart, WhatIf};
use gapscope_trace::lookup::NONE;
use gapscope_trace::parallel;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
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

impl WhatIf<'_, '_> {
    /// Returns the slack of the kernels with the most time in a changed run, the kernel with the most time first. `path` is the critical
    /// path of that run.
    pub(super) fn slack(&self, effects: &Effects, path: &[PathPart]) -> Vec<KernelSlack> {
        let length_ns = self.length_ns(effects, Choices::RECORDED);
        let is_on_path = |kernel: &str| {
            let mut parts = path.iter().filter(|part| part.what == "kernel");
            parts.any(|part| part.name.as_deref() == Some(kernel) && part.share > MAX_SHARE_SEEN)
        };
        parallel::each(self.longest_kernels(), |(kernel, launches, total_ns)| {
            if is_on_path(&kernel) {
                return KernelSlack {
                    kernel,
                    launches,
                    total_ns,
                    slack_ns: 0,
                };
            }
            let target = Target::Kernels(WildMatch::new(&kernel));
            let is_seen = |by_ns: i64| {
                let effects = effects.with_time(self.timeline, &target, To::Longer(by_ns));
                let longer_ns = self.length_ns(&effects, Choices::RECORDED) - length_ns;
                longer_ns as f64 > MAX_SHARE_SEEN * by_ns as f64 * launches as f64
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
            let slack_ns = match least <= length_ns >> HALVINGS {
                true => 0,
                false => least,
            };
            KernelSlack {
                kernel,
                launches,
                total_ns,
                slack_ns,
            }
        })
    }

    /// Returns the names of the kernels with the most time, with the number of their launches and the time.
    pub(super) fn longest_kernels(&self) -> Vec<(String, u64, i64)> {
        let mut sums: FxHashMap<&str, (u64, i64)> = FxHashMap::default();
        for work in self.recorded.works() {
            if let Work::Kernel(row) = work.content
                && row != NONE
            {
                let name = self.timeline.kernel_names.name(row as usize);
                let (launches, total_ns) = sums.entry(name).or_default();
                *launches += 1;
                *total_ns = total_ns.saturating_add(work.length_ns);
            }
        }
        let kernels = sums.into_iter();
        let mut kernels: Vec<(String, u64, i64)> = kernels
            .map(|(name, (launches, total_ns))| (name.to_owned(), launches, total_ns))
            .collect();
        kernels.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        kernels.truncate(MAX_KERNELS);
        kernels
    }
}
