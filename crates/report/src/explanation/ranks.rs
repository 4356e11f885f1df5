//! Says of which rank a thing in a trace of several ranks is: a GPU goes in, the name of its rank comes out.

use super::{Claim, ClaimKind};
use crate::number;
use crate::rank_first_step::first_step;
use gapscope_analysis::Findings;
use gapscope_comparison::ranks::{RankFindings, named};
use gapscope_timeline::Timeline;
use gapscope_timeline::WorkKind;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The most ranks whose part of a time is told.
const MAX_RANKS: usize = 8;

/// The ranks in a trace.
pub(super) struct RanksInTrace<'a> {
    ranks: &'a RankFindings,
    /// The numbers of the ranks of each GPU.
    by_gpu: Vec<Vec<u32>>,
}

impl<'a> RanksInTrace<'a> {
    pub(super) fn new(findings: &Findings, ranks: &'a RankFindings) -> RanksInTrace<'a> {
        let of_gpu = |ids: &[_]| {
            let rows = ranks.ranks.iter();
            let rows = rows.filter(|row| row.device_ids.iter().any(|id| ids.contains(id)));
            rows.map(|row| row.rank).collect()
        };
        let devices = findings.devices.iter();
        RanksInTrace {
            ranks,
            by_gpu: devices.map(|device| of_gpu(&device.device_ids)).collect(),
        }
    }

    /// Returns claims on all ranks: what bounds them, and which of them are late.
    pub(super) fn claims(&self) -> impl Iterator<Item = Claim> {
        let verdict = format!(
            "{} ({}).",
            self.ranks.verdict_sentence.trim_end_matches('.'),
            self.ranks.verdict
        );
        let verdict = Some(verdict).filter(|_| !self.ranks.verdict_sentence.is_empty());
        let texts = verdict
            .into_iter()
            .chain(self.ranks.sentences.iter().cloned());
        texts.map(|text| Claim {
            kind: ClaimKind::Verdict,
            text,
            ..Claim::default()
        })
    }

    /// Returns what to do first about late ranks, as the report says it.
    pub(super) fn do_first(&self) -> Option<String> {
        let [action, rest] = first_step(self.ranks)?;
        Some(format!("Do first: {action}{rest}"))
    }

    /// Returns the ranks of a GPU as text; `None` where it is of none.
    pub(super) fn of_gpu(&self, gpu: usize) -> Option<String> {
        let numbers = self.by_gpu.get(gpu).filter(|numbers| !numbers.is_empty())?;
        Some(named(numbers))
    }

    /// Returns a sentence on how much of a time each rank has, by the GPUs' parts of it, with a space before; empty where no rank has some.
    pub(super) fn shares(&self, of_gpus: impl Iterator<Item = (usize, i64)>) -> String {
        let mut by_rank: BTreeMap<String, i64> = BTreeMap::new();
        for (gpu, ns) in of_gpus.filter(|(_, ns)| *ns > 0) {
            if let Some(name) = self.of_gpu(gpu) {
                let sum = by_rank.entry(name).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        let mut by_rank: Vec<(String, i64)> = by_rank.into_iter().collect();
        by_rank.sort_by_key(|(_, ns)| Reverse(*ns));
        let others = by_rank.len().saturating_sub(MAX_RANKS);
        by_rank.truncate(MAX_RANKS);
        let mut shares: Vec<String> = (by_rank.iter())
            .map(|(name, ns)| format!("{name} {}", number::duration(*ns)))
            .collect();
        if others > 0 {
            shares.push(format!("{others} more less each"));
        }
        match shares.is_empty() {
            true => String::new(),
            false => format!(" By rank: {}.", shares.join(", ")),
        }
    }

    /// Returns the same for a kernel: how long its launches took on each GPU.
    pub(super) fn of_kernel(&self, timeline: &Timeline, name: &str) -> String {
        let names = &timeline.kernel_names;
        let is_meant: Vec<bool> = names.all().iter().map(|of| of.name == name).collect();
        let times = timeline.gpus.iter().enumerate().map(|(gpu, of_gpu)| {
            let works = of_gpu.works.iter();
            let mine = works.filter(|work| {
                let row = (work.kind() == WorkKind::Dispatch)
                    .then(|| timeline.kernel_row(work.row()))
                    .flatten();
                let index = row.and_then(|row| names.index_of_row(row));
                index.is_some_and(|index| is_meant[index])
            });
            let ns = mine.fold(0i64, |sum, work| {
                sum.saturating_add(work.interval.length_ns())
            });
            (gpu, ns)
        });
        self.shares(times)
    }
}
