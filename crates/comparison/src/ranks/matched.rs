//! Matches the parts of ranks (a kernel or a call each) that belong to one collective, an operation of all ranks of a
//! communicator.
//!
//! Parts that have the number of their operation on the communicator are matched by it. Others are matched in their order, by kind, size
//! and time (`alignment.rs`), each rank with the one that has most. Messages between two ranks are matched in each direction: the n-th that one
//! sends is the n-th that the other receives, but for those received before they were sent, whose sending was not recorded. PyTorch's
//! numbers of messages do not help: each rank counts its own, to and from all others.

use super::alignment::Alignment;
use super::digest::RankDigest;
use super::part::{CollectivePart, Communicator};
use gapscope_timeline::collectives::{SEND_RECV, facts};
use std::cmp::Reverse;
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
    pub(super) parts: Parts<'a>,
    /// True for a match by order although a recording lacks some of the kind: the parts may be those of neighbours.
    pub(super) may_be_shifted: bool,
}

/// Returns the index of the part whose time, such as its start, is the median, of an even number the lower middle one; `None` with fewer
/// than three parts, of which the median says nothing.
pub(super) fn median_part(
    one: &Matched,
    time_ns: impl Fn(&CollectivePart) -> i64,
) -> Option<usize> {
    if one.parts.len() < 3 {
        return None;
    }
    let mut order: Vec<usize> = (0..one.parts.len()).collect();
    let middle = (order.len() - 1) / 2;
    let (_, median, _) =
        order.select_nth_unstable_by_key(middle, |at| (time_ns(one.parts[*at].1), *at));
    Some(*median)
}

/// Returns the parts that are later than another, each with its index, the time by which it is later, and the error within which both
/// compare. Parts whose times do not compare are left out.
pub(super) fn later_parts(
    one: &Matched,
    than: usize,
    time_ns: impl Fn(&CollectivePart) -> i64,
    error_ns: impl Fn(usize, usize) -> Option<i64>,
) -> Vec<(usize, i64, i64)> {
    let (rank, part) = one.parts[than];
    let from_ns = time_ns(part);
    let each = one.parts.iter().enumerate();
    each.filter_map(|(at, (other, part))| {
        let later_ns = time_ns(part).saturating_sub(from_ns);
        (later_ns > 0).then_some(())?;
        Some((at, later_ns, error_ns(*other, rank)?))
    })
    .collect()
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
    /// The number of parts without a counterpart in the recording of some rank that took part.
    pub(super) unpaired: u64,
    /// The number of collectives that were matched by order although a recording lacks some.
    pub(super) shifted: u64,
    /// True if ranks of a communicator differ in their numbers of collectives.
    pub(super) unequal: bool,
    /// True if some matches rest on the order alone: their operations have no numbers, and the ranks' times do not compare.
    pub(super) order_alone: bool,
}

/// The parts that belong to one collective, each with the index of its rank.
type Parts<'a> = Vec<(usize, &'a CollectivePart)>;

/// The parts of the ranks of a communicator, by the index of the rank, in order of time.
type PartsByRank<'a> = BTreeMap<usize, Vec<&'a CollectivePart>>;

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

impl Ranks {
    /// Returns the index of the rank that has a number in the communicator.
    pub(super) fn rank_of(&self, number: u32) -> Option<usize> {
        self.numbers.get(&number).copied()
    }
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

/// Returns the error within which times of two ranks (indices) compare, or `None` where they do not.
type ErrorNs<'a> = &'a dyn Fn(usize, usize) -> Option<i64>;

/// Matches the parts of all kinds, calls `visit` with each collective, and returns counts by kind. `parts` chooses
/// the parts of a rank: those on its device, or its calls. `error_ns` says within what times of two devices compare; `None` for calls,
/// whose times do not say which are one.
pub(super) fn matched<'a>(
    ranks: &[&'a RankDigest],
    parts: impl Fn(&'a RankDigest) -> &'a [CollectivePart],
    communicators: &BTreeMap<Communicator, Ranks>,
    error_ns: ErrorNs,
    mut visit: impl FnMut(Matched<'a>),
) -> BTreeMap<&'static str, KindCounts> {
    let mut kinds: BTreeMap<&'static str, KindCounts> = BTreeMap::new();
    let mut collectives: BTreeMap<Communicator, PartsByRank<'a>> = BTreeMap::new();
    let mut messages: BTreeMap<Communicator, PartsByRank<'a>> = BTreeMap::new();
    for (at, rank) in ranks.iter().enumerate() {
        for part in parts(rank) {
            let kind = kinds.entry(part.kind).or_default();
            kind.counts.resize(ranks.len(), 0);
            kind.counts[at] += 1;
            let communicator = part.communicator.filter(|c| communicators.contains_key(c));
            let is_message = part.kind == SEND_RECV;
            match communicator.filter(|_| !is_message || !part.messages.is_empty()) {
                Some(communicator) => {
                    let of_type = match is_message {
                        true => &mut messages,
                        false => &mut collectives,
                    };
                    let own = of_type.entry(communicator).or_default();
                    own.entry(at).or_default().push(part);
                }
                None => kind.unassigned += 1,
            }
        }
    }
    for (communicator, by_rank) in messages {
        let of = &communicators[&communicator];
        let counts = kinds.entry(SEND_RECV).or_default();
        exchanged(
            ranks,
            communicator,
            of,
            &by_rank,
            counts,
            error_ns,
            &mut visit,
        );
    }
    for (communicator, by_rank) in collectives {
        let of = &communicators[&communicator];
        if of.complete {
            let rank_set =
                (of.known.iter()).map(|at| (*at, by_rank.get(at).map_or(&[][..], |v| v)));
            let lost = of.known.iter().any(|at| ranks[*at].has_lost_work);
            whole(
                (communicator, lost),
                &rank_set.collect(),
                &mut kinds,
                error_ns,
                &mut visit,
            );
            continue;
        }
        for part in by_rank.values().flatten() {
            kinds.entry(part.kind).or_default().incomplete += 1;
        }
    }
    kinds
}

/// Matches the collectives of a communicator of which all ranks have a trace; `lost` says whether a recording lacks GPU work.
fn whole<'a>(
    (communicator, lost): (Communicator, bool),
    by_rank: &BTreeMap<usize, &[&'a CollectivePart]>,
    kinds: &mut BTreeMap<&'static str, KindCounts>,
    error_ns: ErrorNs,
    visit: &mut impl FnMut(Matched<'a>),
) {
    let size = by_rank.len();
    let mut numbered: BTreeMap<(&'static str, u64, u64), Parts<'a>> = BTreeMap::new();
    let mut others: BTreeMap<usize, Vec<&'a CollectivePart>> = BTreeMap::new();
    let mut lengths: BTreeMap<&'static str, BTreeMap<usize, u64>> = BTreeMap::new();
    for (at, own) in by_rank {
        // Several kernels may have one number, such as those of a group of calls.
        let mut seen: BTreeMap<(&'static str, u64), u64> = BTreeMap::new();
        let without = others.entry(*at).or_default();
        for part in own.iter() {
            *lengths
                .entry(part.kind)
                .or_default()
                .entry(*at)
                .or_default() += 1;
            let Some(operation) = part.operation else {
                without.push(part);
                continue;
            };
            let again = seen.entry((part.kind, operation)).or_default();
            let of_number = numbered.entry((part.kind, operation, *again)).or_default();
            of_number.push((*at, part));
            *again += 1;
        }
    }
    for (kind, lengths) in &lengths {
        let of_kind = kinds.entry(kind).or_default();
        let first = lengths.values().next();
        of_kind.unequal |= lengths.len() < size || lengths.values().any(|n| Some(n) != first);
    }
    let mut sets: Vec<Parts<'a>> = numbered.into_values().collect();
    sets.extend(in_order(&others, kinds, error_ns));
    sets.sort_by_key(|set| set.iter().map(|(_, part)| part.interval.start_ns).min());
    let mut numbers: BTreeMap<&'static str, u64> = BTreeMap::new();
    for parts in sets {
        let Some((_, first)) = parts.first() else {
            continue;
        };
        let kind = first.kind;
        let number = numbers.entry(kind).or_default();
        if parts.len() == size {
            // Kernels of other kinds overlap where they are one collective.
            let by_order = facts(kind).is_none_or(|facts| facts.may_end_early)
                && parts.iter().any(|(_, part)| part.operation.is_none());
            let of_kind = kinds.entry(kind).or_default();
            let may_be_shifted = by_order && (lost || of_kind.unequal);
            of_kind.shifted += u64::from(may_be_shifted);
            visit(Matched {
                kind,
                communicator,
                number: *number,
                size: size as u32,
                parts,
                may_be_shifted,
            });
        } else {
            kinds.entry(kind).or_default().unpaired += parts.len() as u64;
        }
        *number += 1;
    }
}

/// Matches collectives without numbers: those of each rank with those of the rank that has most.
fn in_order<'a>(
    by_rank: &BTreeMap<usize, Vec<&'a CollectivePart>>,
    kinds: &mut BTreeMap<&'static str, KindCounts>,
    error_ns: ErrorNs,
) -> Vec<Parts<'a>> {
    let Some((longest, all)) = by_rank
        .iter()
        .max_by_key(|(at, own)| (own.len(), Reverse(*at)))
    else {
        return Vec::new();
    };
    let mut sets: Vec<Parts<'a>> = all.iter().map(|part| vec![(*longest, *part)]).collect();
    for (at, own) in by_rank.iter().filter(|(at, _)| *at != longest) {
        let error_ns = error_ns(*longest, *at);
        if error_ns.is_none() {
            for part in own {
                kinds.entry(part.kind).or_default().order_alone = true;
            }
        }
        let alignment = Alignment {
            first: all,
            second: own,
            error_ns,
        };
        for (part, same) in own.iter().zip(alignment.pairs()) {
            match same {
                Some(same) => sets[same].push((*at, *part)),
                None => sets.push(vec![(*at, *part)]),
            }
        }
    }
    for set in &mut sets {
        set.sort_by_key(|(at, _)| *at);
    }
    sets
}

/// Matches messages: parts of two ranks that have a message for each other are one collective of two.
fn exchanged<'a>(
    ranks: &[&RankDigest],
    communicator: Communicator,
    of: &Ranks,
    by_rank: &PartsByRank<'a>,
    counts: &mut KindCounts,
    error_ns: ErrorNs,
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
    let mut shifted: BTreeSet<(usize, usize)> = BTreeSet::new();
    let none = Vec::new();
    let between: BTreeSet<(usize, usize)> = sent.keys().chain(received.keys()).copied().collect();
    for (from, to) in between {
        let (sent, received) = (
            sent.get(&(from, to)).unwrap_or(&none),
            received.get(&(from, to)).unwrap_or(&none),
        );
        let lost = ranks[from].has_lost_work || ranks[to].has_lost_work;
        if lost || sent.len() != received.len() {
            shifted.insert((from.min(to), from.max(to)));
        }
        counts.unequal |= sent.len() != received.len();
        let one_way = message_pairs(sent, received, error_ns(from, to));
        counts.unpaired += (sent.len() + received.len() - 2 * one_way.len()) as u64;
        let pair = pairs.entry((from.min(to), from.max(to))).or_default();
        pair.extend(one_way.into_iter().map(|(a, b)| match from < to {
            true => (a, b),
            false => (b, a),
        }));
    }
    for ((low, high), mut of_pair) in pairs {
        of_pair.sort_by_key(|(a, b)| (a.interval, b.interval));
        // The two directions of an exchange are one collective.
        of_pair.dedup_by_key(|(a, b)| (a.interval, b.interval));
        let may_be_shifted = shifted.contains(&(low, high));
        for (number, (a, b)) in of_pair.into_iter().enumerate() {
            counts.shifted += u64::from(may_be_shifted);
            visit(Matched {
                may_be_shifted,
                kind: SEND_RECV,
                communicator,
                number: number as u64,
                size: 2,
                parts: vec![(low, a), (high, b)],
            });
        }
    }
}

/// Returns the messages from one rank to another, each with the part that sends it and the part that receives it.
fn message_pairs<'a>(
    sent: &[&'a CollectivePart],
    received: &[&'a CollectivePart],
    error_ns: Option<i64>,
) -> Vec<(&'a CollectivePart, &'a CollectivePart)> {
    let mut waiting = sent.iter();
    let mut next = waiting.next();
    let mut pairs = Vec::new();
    for part in received {
        let Some(sender) = next else {
            break;
        };
        let sent_later = |error_ns: i64| {
            sender.interval.start_ns > part.interval.end_ns.saturating_add(error_ns)
        };
        if !error_ns.is_some_and(sent_later) {
            pairs.push((*sender, *part));
            next = waiting.next();
        }
    }
    pairs
}
