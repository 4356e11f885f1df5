//! Matches the parts of ranks (a kernel or a call each) that belong to one collective, an operation of all ranks of a
//! communicator. The n-th collective of a kind on one rank of a communicator is the n-th of that kind on the others.
//! The n-th message that one rank sends to another is the n-th that the other receives from it.

use super::digest::RankDigest;
use super::part::{CollectivePart, Communicator};
use gapscope_timeline::collectives::SEND_RECV;
use std::collections::{BTreeMap, BTreeSet};

/// A collective, with the parts of its ranks.
pub(super) struct Matched<'a> {
    pub(super) kind: &'static str,
    pub(super) communicator: Communicator,
    /// The collective's number, from 0, among those of its kind and communicator, or among the messages from one rank
    /// to another.
    pub(super) number: u64,
    /// The number of ranks of the communicator, or 2 for a message.
    pub(super) size: u32,
    /// The index of each rank that takes part, with its part.
    pub(super) parts: Vec<(usize, &'a CollectivePart)>,
}

/// Counts of the collectives of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct KindCounts {
    /// The number of parts of each rank, by the rank's index.
    pub(super) counts: Vec<u64>,
    /// The number of parts whose communicator, or whose messages, are not known.
    pub(super) unassigned: u64,
    /// The number of parts in collectives that a rank without a trace takes part in.
    pub(super) incomplete: u64,
    /// True if ranks of a communicator differ in their numbers of collectives.
    pub(super) unequal: bool,
}

/// The ranks of a communicator.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranks {
    /// The number of ranks; `None` when it is not known.
    pub(super) size: Option<u32>,
    /// The indices of the ranks that have a trace.
    pub(super) known: BTreeSet<usize>,
    /// True if all ranks have a trace.
    pub(super) complete: bool,
    /// The index of each rank by its number in the communicator, as far as these numbers are known.
    numbers: BTreeMap<u32, usize>,
}

/// Returns the communicators of all ranks. If `all_traced`, no rank of the program is without a trace.
pub(super) fn communicators<'a>(
    ranks: &[&'a RankDigest],
    parts: impl Fn(&'a RankDigest) -> &'a [CollectivePart],
    all_traced: bool,
) -> BTreeMap<Communicator, Ranks> {
    let mut found: BTreeMap<Communicator, Ranks> = BTreeMap::new();
    for (at, rank) in ranks.iter().enumerate() {
        for part in parts(rank) {
            if let Some(communicator) = part.communicator {
                found.entry(communicator).or_default().known.insert(at);
            }
        }
        for (communicator, member) in &rank.members {
            let of = found.entry(*communicator).or_default();
            of.known.insert(at);
            of.size = of.size.or(member.size);
            if let Some(number) = member.rank {
                of.numbers.entry(number).or_insert(at);
            }
        }
    }
    for of in found.values_mut() {
        let known = of.known.len() as u32;
        of.complete = match of.size {
            Some(size) => size == known,
            None => all_traced && known > 1,
        };
    }
    // Ranks that each have one communicator may have different ones.
    let one_group = |of: &Ranks| {
        let sizes: BTreeSet<Option<u32>> = (of.known.iter())
            .map(|at| ranks[*at].members.get(&Communicator::Only))
            .map(|member| member?.size)
            .collect();
        of.complete && sizes.len() == 1 && of.numbers.len() == of.known.len()
    };
    found.retain(|communicator, of| *communicator != Communicator::Only || one_group(of));
    found
}

/// Matches the parts of all kinds, calls `visit` with each collective, and returns counts by kind. `parts` chooses
/// the parts of a rank: those on its device, or its calls.
pub(super) fn matched<'a>(
    ranks: &[&'a RankDigest],
    parts: impl Fn(&'a RankDigest) -> &'a [CollectivePart],
    communicators: &BTreeMap<Communicator, Ranks>,
    mut visit: impl FnMut(Matched<'a>),
) -> BTreeMap<&'static str, KindCounts> {
    let mut kinds: BTreeMap<&'static str, KindCounts> = BTreeMap::new();
    let mut of_kind: BTreeMap<
        (Communicator, &'static str),
        BTreeMap<usize, Vec<&'a CollectivePart>>,
    > = BTreeMap::new();
    for (at, rank) in ranks.iter().enumerate() {
        for part in parts(rank) {
            let kind = kinds.entry(part.kind).or_default();
            kind.counts.resize(ranks.len(), 0);
            kind.counts[at] += 1;
            let communicator = part.communicator.filter(|c| communicators.contains_key(c));
            let known = part.kind != SEND_RECV || !part.messages.is_empty();
            match communicator.filter(|_| known) {
                Some(communicator) => {
                    let own = of_kind.entry((communicator, part.kind)).or_default();
                    own.entry(at).or_default().push(part);
                }
                None => kind.unassigned += 1,
            }
        }
    }
    for ((communicator, kind), by_rank) in of_kind {
        let of = &communicators[&communicator];
        let counts = kinds.entry(kind).or_default();
        if kind == SEND_RECV {
            exchanged(ranks, communicator, of, &by_rank, counts, &mut visit);
            continue;
        }
        if !of.complete {
            counts.incomplete += by_rank.values().map(|own| own.len() as u64).sum::<u64>();
            continue;
        }
        let lengths = (of.known.iter()).map(|at| by_rank.get(at).map_or(0, Vec::len));
        let length = lengths.clone().min().unwrap_or(0);
        counts.unequal |= lengths.max() != Some(length);
        for number in 0..length {
            visit(Matched {
                kind,
                communicator,
                number: number as u64,
                size: of.known.len() as u32,
                parts: by_rank.iter().map(|(at, own)| (*at, own[number])).collect(),
            });
        }
    }
    kinds
}

/// Matches messages: parts of two ranks that have a message for each other are one collective of two.
fn exchanged<'a>(
    ranks: &[&RankDigest],
    communicator: Communicator,
    of: &Ranks,
    by_rank: &BTreeMap<usize, Vec<&'a CollectivePart>>,
    counts: &mut KindCounts,
    visit: &mut impl FnMut(Matched<'a>),
) {
    // The parts with a message, by the indices of its sender and receiver.
    let mut sent: BTreeMap<(usize, usize), Vec<&'a CollectivePart>> = BTreeMap::new();
    let mut received: BTreeMap<(usize, usize), Vec<&'a CollectivePart>> = BTreeMap::new();
    for (at, own) in by_rank {
        let numbered = ranks[*at].members.get(&communicator).and_then(|m| m.rank);
        for part in own {
            if numbered.is_none() {
                counts.unassigned += 1;
                continue;
            }
            let mut incomplete = false;
            for message in &part.messages {
                match (of.numbers.get(&message.peer), message.sends) {
                    (Some(peer), _) if peer == at => {}
                    (Some(peer), true) => sent.entry((*at, *peer)).or_default().push(part),
                    (Some(peer), false) => received.entry((*peer, *at)).or_default().push(part),
                    (None, _) => incomplete = true,
                }
            }
            counts.incomplete += u64::from(incomplete);
        }
    }
    let mut pairs: BTreeMap<(usize, usize), Vec<(&'a CollectivePart, &'a CollectivePart)>> =
        BTreeMap::new();
    let none = Vec::new();
    let between: BTreeSet<(usize, usize)> = sent.keys().chain(received.keys()).copied().collect();
    for (from, to) in between {
        let (sent, received) = (
            sent.get(&(from, to)).unwrap_or(&none),
            received.get(&(from, to)).unwrap_or(&none),
        );
        counts.unequal |= sent.len() != received.len();
        let pair = pairs.entry((from.min(to), from.max(to))).or_default();
        pair.extend(sent.iter().zip(received).map(|(a, b)| match from < to {
            true => (*a, *b),
            false => (*b, *a),
        }));
    }
    for ((low, high), mut of_pair) in pairs {
        of_pair.sort_by_key(|(a, b)| (a.interval, b.interval));
        // The two directions of an exchange are one collective.
        of_pair.dedup_by_key(|(a, b)| (a.interval, b.interval));
        for (number, (a, b)) in of_pair.into_iter().enumerate() {
            visit(Matched {
                kind: SEND_RECV,
                communicator,
                number: number as u64,
                size: 2,
                parts: vec![(low, a), (high, b)],
            });
        }
    }
}
