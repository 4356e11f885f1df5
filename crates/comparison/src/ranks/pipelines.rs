//! Recognises ranks that are stages of a pipeline: ranks that send each other messages in one direction at a time. The parts of
//! ranks in collectives go in; a [`Pipelines`] comes out, which says whose arrival at a collective tells of lateness. Two ranks are stages
//! where one sends the other at least as many messages as there are collectives of both: each micro-batch is a message, while a
//! step of many has few collectives.
//!
//! A stage posts its receive early and then waits for what the stage before computes. To come late to a message, or to a collective with
//! other stages, is therefore the order of a pipeline's work and nobody's fault. Collectives of equal stages of several pipelines, and
//! exchanges in which each rank sends and receives at once, do tell of lateness.

use super::digest::RankDigest;
use super::matched::{Matched, Ranks};
use super::part::Communicator;
use gapscope_timeline::collectives::SEND_RECV;
use gapscope_timeline::quantity::{Percent, ratio};
use gapscope_timeline::rank_list::list;
use gapscope_timeline::thresholds::OUTLIER_SHARE;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The number of messages from which on ranks may be stages of a pipeline.
const LEAST_MESSAGES: u64 = 2;

/// Ranks that are the stages of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pipeline {
    /// The numbers of the ranks.
    pub ranks: Vec<u32>,
    /// The least share of a rank's analysed time in which its devices computed. Absent where it is not known of all.
    pub least_compute_share: Option<f64>,
    /// The greatest share.
    pub most_compute_share: Option<f64>,
    /// The rank that computes for longer than the others by so much that they wait for it. Absent where there is none.
    pub slowest: Option<u32>,
    /// The pipeline in a sentence.
    pub sentence: String,
}

/// The pipeline of each rank, if it is a stage of one.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipelines {
    /// The least index of a rank of the same pipeline, by the index of the rank.
    first_of: BTreeMap<usize, usize>,
}

impl Pipelines {
    /// Finds the pipelines of ranks in these communicators.
    pub(super) fn new(
        ranks: &[&RankDigest],
        communicators: &BTreeMap<Communicator, Ranks>,
    ) -> Pipelines {
        let mut sent: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut received: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut collectives: Vec<BTreeMap<Communicator, u64>> = vec![BTreeMap::new(); ranks.len()];
        for (at, rank) in ranks.iter().enumerate() {
            for part in &rank.device {
                let Some(communicator) = part.communicator else {
                    continue;
                };
                if part.kind != SEND_RECV {
                    *collectives[at].entry(communicator).or_default() += 1;
                    continue;
                }
                // A rank that scatters to many, or gathers from many, has several peers in one kernel.
                let group = communicators.get(&communicator);
                let peer = part
                    .only_peer()
                    .and_then(|message| Some((group?.rank_of(message.peer)?, message.sends)));
                match peer {
                    Some((other, true)) => *sent.entry((at, other)).or_default() += 1,
                    Some((other, false)) => *received.entry((other, at)).or_default() += 1,
                    None => {}
                }
            }
        }
        let mut first_of: BTreeMap<usize, usize> = BTreeMap::new();
        for ((from, to), count) in sent {
            let both = count.min(received.get(&(from, to)).copied().unwrap_or(0));
            let shared: u64 = (collectives[from].iter())
                .filter_map(|(group, count)| Some(*collectives[to].get(group)?.min(count)))
                .sum();
            if from == to || both < shared.max(LEAST_MESSAGES) {
                continue;
            }
            let a = *first_of.entry(from).or_insert(from);
            let b = *first_of.entry(to).or_insert(to);
            for first in first_of.values_mut().filter(|first| **first == a.max(b)) {
                *first = a.min(b);
            }
        }
        Pipelines { first_of }
    }

    /// Returns true where the last to arrive at a collective kept the others waiting.
    pub(super) fn tells_lateness(&self, one: &Matched) -> bool {
        if one.kind == SEND_RECV && one.parts.iter().any(|(_, part)| part.goes_one_way()) {
            return false;
        }
        let mut seen = BTreeSet::new();
        let pipelines = one
            .parts
            .iter()
            .filter_map(|(rank, _)| self.first_of.get(rank));
        pipelines.into_iter().all(|pipeline| seen.insert(pipeline))
    }

    /// Returns true for a stage of a pipeline.
    pub(super) fn has(&self, rank: usize) -> bool {
        self.first_of.contains_key(&rank)
    }

    /// Describes the pipelines.
    pub(super) fn rows(&self, ranks: &[&RankDigest]) -> Vec<Pipeline> {
        let mut stages: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (rank, first) in &self.first_of {
            stages.entry(*first).or_default().push(*rank);
        }
        stages
            .into_values()
            .map(|own| pipeline(ranks, &own))
            .collect()
    }
}

/// Describes a pipeline from the indices of its ranks.
fn pipeline(ranks: &[&RankDigest], own: &[usize]) -> Pipeline {
    let rows = own.iter().map(|at| &ranks[*at].row);
    let computed: Option<Vec<(i64, f64, u32)>> = rows
        .map(|row| {
            let ns = row.gpu_busy_ns?.saturating_sub(row.collective_ns?);
            let window_ns = row.idle?.window_ns;
            Some((ns, ratio(ns, window_ns).min(1.0), row.rank))
        })
        .collect();
    let numbers: Vec<u32> = own.iter().map(|at| ranks[*at].row.rank).collect();
    let named = list(&numbers);
    let mut row = Pipeline {
        ranks: numbers,
        least_compute_share: None,
        most_compute_share: None,
        slowest: None,
        sentence: format!(
            "Ranks {named} are stages of a pipeline: that a stage waits for the one before is not lateness."
        ),
    };
    let Some(mut computed) = computed else {
        return row;
    };
    computed.sort_by_key(|(ns, ..)| *ns);
    let shares = computed.iter().map(|(_, share, _)| *share);
    let (least, most) = (
        shares.clone().fold(1.0, f64::min),
        shares.fold(0.0, f64::max),
    );
    (row.least_compute_share, row.most_compute_share) = (Some(least), Some(most));
    let (low, high) = (Percent(least).to_string(), Percent(most).to_string());
    let share = match low == high {
        true => high,
        false => format!("{low} to {high}"),
    };
    row.sentence = format!(
        "Ranks {named} are stages of a pipeline: each computes for {share} of its time, and the rest is the pipeline's bubble, messages and gaps."
    );
    if let [.., (second_ns, ..), (longest_ns, _, rank)] = computed.as_slice() {
        let more = ratio(longest_ns - second_ns, *second_ns);
        if more > OUTLIER_SHARE {
            row.slowest = Some(*rank);
            row.sentence += &format!(
                " Rank {rank} computes for {} longer than the next: the others wait for it.",
                Percent(more)
            );
        }
    }
    row
}
