//! Chooses the advice where transfers or communication are the verdict. Advice on idle time is chosen by [`crate::gaps`].
//!
//! Work that overlaps with computing already cannot be hidden by more overlap, and little computing can hide little: then the
//! advice is on the work itself.

use crate::bound::Bound;
use crate::gaps::{Advice, AdviceSubject, pinned};
use crate::verdict::Judgement;
use gapscope_timeline::quantity::{Percent, count_of, duration, ratio};
use gapscope_timeline::thresholds::{
    COMMUNICATION_SHARE, MOST_OF_CALLS_SHARE, SLACK_SHARE, SMALL_WORK_NS, TRANSFER_SHARE,
};
use gapscope_timeline::vocabulary::{Vocabulary, Words};
use gapscope_timeline::{Content, Timeline};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{MemoryPlace, Table, TransferKind};

/// Returns the advice on a verdict that transfers or communication have; `None` for other verdicts.
pub(crate) fn work_advice(timeline: &Timeline, judged: &Judgement) -> Option<Advice> {
    let vocabulary = Vocabulary::new(&timeline.trace.manifest);
    let words = vocabulary.words();
    let (subject, text) = match judged.bound {
        Bound::TransferBound => {
            let transfers = Transfers::new(timeline, words);
            let hidden = hideable(judged, "transfer", TRANSFER_SHARE, transfers.total_ns);
            ("transfer", transfers.advice(words, timeline, hidden))
        }
        Bound::CommunicationBound => ("communication", for_communication(timeline, words, judged)),
        _ => return None,
    };
    Some(Advice {
        cause: AdviceSubject::Work(subject),
        text,
    })
}

/// Returns the share of the time that overlapping a part of the verdict with computing would win at most, where that part has
/// the share of a verdict by itself and the win is worth an advice. Such work took `total_ns` in all: computing that overlaps with it
/// already hides no more.
fn hideable(judged: &Judgement, what: &str, least_share: f64, total_ns: i64) -> Option<f64> {
    let ns = |what| {
        let mut parts = judged.evidence.parts.iter();
        parts
            .find(|part| part.what == what)
            .map_or(0, |part| part.total_ns)
    };
    let (exposed_ns, compute_ns) = (ns(what), ns("compute"));
    let overlapped_ns = total_ns.saturating_sub(exposed_ns).max(0);
    let free_ns = compute_ns.saturating_sub(overlapped_ns);
    let window_ns = judged.evidence.window_ns?;
    let win = ratio(exposed_ns.min(free_ns), window_ns);
    (ratio(exposed_ns, window_ns) >= least_share && win >= SLACK_SHARE).then_some(win)
}

/// The time of transfers by what can be done about them.
#[derive(Debug, Default)]
struct Transfers {
    count: u64,
    total_ns: i64,
    pageable_ns: i64,
    page_moves_ns: i64,
    within_device_ns: i64,
    fills_ns: i64,
}

impl Transfers {
    fn new(timeline: &Timeline, words: &Words) -> Transfers {
        let rows = &timeline.trace.tables.transfers;
        let is_cuda = matches!(words.api, Api::Cuda | Api::Hip);
        let mut sums = Transfers::default();
        for row in 0..rows.len() {
            let Some(ns) = rows.duration_ns.at(row) else {
                continue;
            };
            let add = |sum: &mut i64, counts: bool| {
                if counts {
                    *sum = sum.saturating_add(ns);
                }
            };
            let kind = rows.kind[row];
            let is_pageable = rows.host_memory[row] == Some(MemoryPlace::Pageable);
            sums.count += 1;
            add(&mut sums.total_ns, true);
            add(&mut sums.pageable_ns, is_pageable);
            add(&mut sums.page_moves_ns, timeline.is_page_move(row));
            // Elsewhere a copy between buffers may be one from the host.
            add(
                &mut sums.within_device_ns,
                is_cuda && kind == TransferKind::Copy,
            );
            add(&mut sums.fills_ns, kind == TransferKind::Fill);
        }
        sums
    }

    /// Returns the advice. `hideable` is the share of the time that overlap with computing would win at most.
    fn advice(&self, words: &Words, timeline: &Timeline, hideable: Option<f64>) -> String {
        let is_most = |ns: i64| ratio(ns, self.total_ns) >= MOST_OF_CALLS_SHARE;
        let mean_ns = self.total_ns / i64::try_from(self.count).unwrap_or(i64::MAX).max(1);
        match hideable {
            _ if is_most(self.pageable_ns) => {
                format!("most of this time goes to copies of pageable memory: {}", pinned(timeline))
            }
            _ if is_most(self.page_moves_ns) => {
                "most of this time goes to moves of pages of managed memory: prefetch the pages in large pieces before kernels touch them, or keep the pages on the device".to_owned()
            }
            _ if is_most(self.within_device_ns) => {
                "most of this time goes to copies within the device: let kernels write their results where they are read".to_owned()
            }
            _ if is_most(self.fills_ns) => {
                "most of this time goes to fills of memory: leave out what is overwritten before it is read".to_owned()
            }
            _ if mean_ns < SMALL_WORK_NS => format!(
                "{} take {} each: join small ones",
                count_of(self.count, "transfer", "transfers"),
                duration(mean_ns)
            ),
            Some(win) => format!(
                "copy ahead on a {} of its own while kernels run, which would win at most {} of the time",
                words.queue.one,
                Percent(win)
            ),
            None => {
                "move fewer bytes: keep data on the device, or use smaller types".to_owned()
            }
        }
    }
}

/// Returns what to do where the trace is of one rank, and nobody knows whether it communicates or waits for the others.
fn other_ranks(timeline: &Timeline) -> String {
    let of = match timeline.trace.manifest.rank {
        Some(rank) => format!("all {} ranks", rank.world_size),
        None => "all ranks".to_owned(),
    };
    format!(
        "the trace of one rank does not tell communication from waiting for the others: bring the traces of {of} into one folder, and report on that"
    )
}

/// Returns the advice on communication.
fn for_communication(timeline: &Timeline, words: &Words, judged: &Judgement) -> String {
    let works = timeline.gpus.iter().flat_map(|gpu| gpu.works.iter());
    let mine = works.filter(|work| timeline.content(work) == Content::Communication);
    let (count, total_ns) = mine.fold((0u64, 0i64), |(count, total_ns), work| {
        (
            count + 1,
            total_ns.saturating_add(work.interval.length_ns()),
        )
    });
    let mean_ns = total_ns / i64::try_from(count).unwrap_or(i64::MAX).max(1);
    match hideable(judged, "communication", COMMUNICATION_SHARE, total_ns) {
        _ if mean_ns < SMALL_WORK_NS => format!(
            "{} take {} each: join small messages into large ones",
            count_of(count, "collective or message", "collectives and messages"),
            duration(mean_ns)
        ),
        _ if judged.hides_waits_for_ranks() => other_ranks(timeline),
        Some(win) => format!(
            "send each part as soon as it is ready, on a {} of its own beside computing, which would win at most {} of the time",
            words.queue.one,
            Percent(win)
        ),
        None => {
            "send fewer bytes: accumulate results over several steps before they are exchanged, or use smaller types".to_owned()
        }
    }
}
