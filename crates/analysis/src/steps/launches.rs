//! Finds steps by the period of launches: the same kernels and transfers in the same order, again and again.
//!
//! The work of the queue with the most of it is a sequence of symbols, one for each kernel and kind of transfer. A symbol that comes once
//! in each period is its *anchor*: from one to the next lies a *turn*. An anchor tells steps where [`PERIOD_SHARE`] of its turns are equal,
//! and where the host takes part in as many of them: it waits in each, or the longest pause of the queue in each is at one place and
//! [`PERIOD_PAUSE`] times any other. Layers of a model repeat as steps do, and the host takes no part in them.
//!
//! Where anchors of different periods tell steps, such as layers in which the host waits, too, nothing is told: a wrong step is worse than none.
//! Turns of one launch are none, either. A step begins at the place of the longest pause.

use super::{FoundSteps, StepsFoundBy};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Percent, count, ratio};
use gapscope_timeline::thresholds::{PERIOD_LEAST, PERIOD_OF_WORK, PERIOD_PAUSE, PERIOD_SHARE};
use gapscope_timeline::{Timeline, Work, WorkKind};
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::{HostCallKind, Table};
use rustc_hash::FxHashMap;

/// The most pieces of work that are looked at, so that memory is bounded: later ones are outside of steps.
const MAX_WORKS: usize = 1 << 23;
/// The most anchors that are tried, from the most frequent on.
const MAX_ANCHORS: usize = 1 << 12;
/// The most turns whose pauses are compared.
const MAX_TURNS: usize = 1 << 12;

/// The work of a queue.
struct Sequence {
    /// The symbol of each piece.
    symbols: Vec<u32>,
    ran: Vec<Interval>,
    /// When the host began to submit each piece, or the least number where that is not known.
    submitted_ns: Vec<i64>,
    process: Option<ProcessId>,
    /// For each length, the hash of so many first symbols.
    hashes: Vec<u64>,
}

/// Turns that are equal.
struct Period {
    /// Where turns begin.
    starts: Vec<usize>,
    /// The number of pieces of work of the equal turns.
    length: usize,
    /// The hash of the equal turns.
    hash: u64,
    /// How many of the turns from one anchor to the next are equal.
    equal: usize,
    turns: usize,
    /// True where the turn after the last anchor is equal, too.
    ends_equal: bool,
}

/// How the host takes part in turns.
enum HostPart {
    /// It waits in each.
    Waits,
    /// The longest pause is at one place.
    Pauses,
}

/// Returns the steps that repeating launches tell.
pub(super) fn find(timeline: &Timeline) -> Option<FoundSteps> {
    let queue = busiest_queue(timeline)?;
    let sequence = Sequence::new(timeline, queue);
    let waits = waits_of(timeline, sequence.process);
    let mut told: Option<(Period, HostPart)> = None;
    for period in sequence.periods() {
        let Some(part) = sequence.host_part(&period, &waits) else {
            continue;
        };
        match &told {
            None => told = Some((period, part)),
            // Anchors of one period differ by odd turns only.
            Some((known, _)) if known.length == period.length => {
                if period.equal > known.equal {
                    told = Some((period, part));
                }
            }
            Some(_) => return None,
        }
    }
    let (period, part) = told?;
    sequence.steps(&period, &part)
}

/// Returns the queue with the most work, by its index.
fn busiest_queue(timeline: &Timeline) -> Option<u32> {
    let mut counts = vec![0_u64; timeline.queues.len()];
    timeline.each_work(|work| counts[timeline.queue_of(work) as usize] += 1);
    let most = (0..counts.len()).rev().max_by_key(|queue| counts[*queue])?;
    (counts[most] as usize >= 2 * PERIOD_LEAST).then_some(most as u32)
}

/// Returns when the host began to wait for the device, in order of time.
fn waits_of(timeline: &Timeline, process: Option<ProcessId>) -> Vec<i64> {
    let calls = &timeline.trace.tables.host_calls;
    let waits = (0..calls.len()).filter(|row| {
        use HostCallKind::{AcquireImage, Present, WaitPresent};
        let kind = calls.call[*row];
        let waits = kind.is_wait() && !kind.is_poll();
        Some(calls.process[*row]) == process
            && (waits || matches!(kind, Present | AcquireImage | WaitPresent))
    });
    let mut waits: Vec<i64> = waits.map(|row| calls.start_ns[row]).collect();
    waits.sort_unstable();
    waits
}

/// Returns the symbol of a piece of work.
fn symbol(timeline: &Timeline, work: &Work) -> u32 {
    const OTHERS: u32 = 1 << 31;
    let tables = &timeline.trace.tables;
    let row = work.row();
    match work.kind() {
        WorkKind::Dispatch => timeline
            .kernel_row(row)
            .and_then(|kernel| timeline.kernel_names.index_of_row(kernel))
            .map_or(OTHERS, |kernel| kernel as u32),
        WorkKind::Transfer => OTHERS + 1 + tables.transfers.kind[row] as u32,
        WorkKind::Opaque => OTHERS + 1000 + tables.opaque_work.kind[row] as u32,
        WorkKind::CommandBuffer => {
            let rows = &tables.command_buffers;
            let size = rows.dispatches[row]
                .wrapping_mul(31)
                .wrapping_add(rows.transfers[row]);
            OTHERS + 2000 + size % OTHERS.div_ceil(2)
        }
    }
}

/// Returns true where most of the turns that are looked at, spread over all, have one length. Most symbols have no period, and their turns need no hashes.
fn has_usual_length(starts: &[usize]) -> bool {
    const LOOKED_AT: usize = 256;
    let apart = (starts.len() / LOOKED_AT).max(1);
    let turns = starts.windows(2).step_by(apart);
    let mut lengths: Vec<usize> = turns.map(|two| two[1] - two[0]).collect();
    lengths.sort_unstable();
    let most = lengths.chunk_by(|a, b| a == b).map(<[usize]>::len).max();
    most.is_some_and(|most| ratio(most as i64, lengths.len() as i64) >= PERIOD_SHARE / 2.0)
}

/// A factor of the hashes of sequences.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Sequence {
    fn new(timeline: &Timeline, queue: u32) -> Sequence {
        let gpu = timeline.queues[queue as usize].gpu as usize;
        let table = &timeline.trace.tables.submissions;
        let mut sequence = Sequence {
            symbols: Vec::new(),
            ran: Vec::new(),
            submitted_ns: Vec::new(),
            process: None,
            hashes: vec![0],
        };
        let works = timeline.gpus[gpu].works.iter();
        let works = works.filter(|work| timeline.queue_of(work) == queue);
        let mut hash = 0_u64;
        for work in works.take(MAX_WORKS) {
            let symbol = symbol(timeline, &work);
            let submission = timeline.submission_of(&work) as usize;
            sequence.process = sequence.process.or(table.process.get(submission).copied());
            let submitted_ns = table.start_ns.get(submission).copied();
            sequence.submitted_ns.push(submitted_ns.unwrap_or(i64::MIN));
            sequence.symbols.push(symbol);
            sequence.ran.push(work.interval);
            hash = hash
                .wrapping_mul(FACTOR)
                .wrapping_add(u64::from(symbol) + 1);
            sequence.hashes.push(hash);
        }
        sequence
    }

    fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Returns the hash of the symbols from one place up to another.
    fn hash(&self, from: usize, to: usize) -> u64 {
        let (mut factor, mut power, mut left) = (1_u64, FACTOR, to - from);
        while left > 0 {
            if left & 1 == 1 {
                factor = factor.wrapping_mul(power);
            }
            power = power.wrapping_mul(power);
            left >>= 1;
        }
        self.hashes[to].wrapping_sub(self.hashes[from].wrapping_mul(factor))
    }

    /// Returns the periods of all symbols that have one.
    fn periods(&self) -> Vec<Period> {
        let mut places: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (at, symbol) in self.symbols.iter().enumerate() {
            places.entry(*symbol).or_default().push(at);
        }
        let mut anchors: Vec<Vec<usize>> = places.into_values().collect();
        anchors.retain(|places| places.len() >= PERIOD_LEAST && places.len() * 2 <= self.len());
        // The first of equally frequent ones comes first.
        anchors.sort_by_key(|places| (std::cmp::Reverse(places.len()), places[0]));
        anchors.truncate(MAX_ANCHORS);
        let periods = anchors.into_iter().filter_map(|starts| self.period(starts));
        periods.collect()
    }

    /// Returns the period of an anchor, which is at `starts`.
    fn period(&self, starts: Vec<usize>) -> Option<Period> {
        if !has_usual_length(&starts) {
            return None;
        }
        let mut counts: FxHashMap<(usize, u64), usize> = FxHashMap::default();
        for two in starts.windows(2) {
            let key = (two[1] - two[0], self.hash(two[0], two[1]));
            *counts.entry(key).or_default() += 1;
        }
        let equal = counts.into_iter().max_by_key(|(key, count)| (*count, *key));
        let ((length, hash), mut equal) = equal?;
        let mut turns = starts.len() - 1;
        // What comes after the last anchor and before the first may be whole turns, or the two parts of one.
        let last = *starts.last()?;
        let mut all = starts.windows(2).map(|two| (two[0], two[1]));
        let one = all.find(|(from, to)| to - from == length && self.hash(*from, *to) == hash)?;
        let after = (self.len() - last).min(length);
        let before = starts[0].min(length);
        let is_begin = self.hash(last, last + after) == self.hash(one.0, one.0 + after);
        let is_end = self.hash(starts[0] - before, starts[0]) == self.hash(one.1 - before, one.1);
        let ends_equal = is_begin && after == length;
        let more = [(is_begin, after), (is_end, before)];
        let more: usize = more
            .iter()
            .map(|(is_part, count)| if *is_part { *count } else { 0 })
            .sum();
        equal += more / length;
        turns += more / length;
        let is_period = length > 1
            && equal >= PERIOD_LEAST
            && ratio(equal as i64, turns as i64) >= PERIOD_SHARE
            && ratio((equal * length) as i64, self.len() as i64) >= PERIOD_OF_WORK;
        is_period.then_some(Period {
            starts,
            length,
            hash,
            equal,
            turns,
            ends_equal,
        })
    }

    /// Returns the starts of the equal turns of a period.
    fn equal_turns<'a>(&'a self, period: &'a Period) -> impl Iterator<Item = usize> + 'a {
        let turns = period.starts.windows(2);
        let last = period.starts.last().filter(|_| period.ends_equal);
        let turns = turns.filter_map(|two| {
            let is_equal =
                two[1] - two[0] == period.length && self.hash(two[0], two[1]) == period.hash;
            is_equal.then_some(two[0])
        });
        turns.chain(last.copied())
    }

    /// Returns how the host takes part in the turns of a period; `None` where it does not, or where that is not known.
    fn host_part(&self, period: &Period, waits: &[i64]) -> Option<HostPart> {
        let all = self.equal_turns(period).count() as i64;
        let waited = self.equal_turns(period).filter(|start| {
            let from_ns = self.submitted_ns[*start];
            let next_ns = self.submitted_ns.get(start + period.length).copied();
            let to_ns = next_ns.unwrap_or(i64::MAX);
            let first = waits.partition_point(|ns| *ns < from_ns);
            from_ns > i64::MIN && waits.get(first).is_some_and(|ns| *ns < to_ns)
        });
        if ratio(waited.count() as i64, all) >= PERIOD_SHARE {
            return Some(HostPart::Waits);
        }
        let mut places = vec![0_i64; period.length];
        let mut turns = 0;
        for start in self.equal_turns(period).take(MAX_TURNS) {
            let pauses = self.pauses(start, period.length);
            let (place, longest_ns, next_ns) = pauses.enumerate().fold(
                (0, 0, 0),
                |(place, longest_ns, next_ns), (at, ns)| match ns > longest_ns {
                    true => (at, ns, longest_ns),
                    false => (place, longest_ns, next_ns.max(ns)),
                },
            );
            turns += 1;
            if longest_ns > 0 && longest_ns >= next_ns.saturating_mul(PERIOD_PAUSE) {
                places[place] += 1;
            }
        }
        let most = places.into_iter().max().unwrap_or(0);
        (ratio(most, turns) >= PERIOD_SHARE).then_some(HostPart::Pauses)
    }

    /// Returns the pause before each piece of work of a turn.
    fn pauses(&self, start: usize, length: usize) -> impl Iterator<Item = i64> {
        (start..start + length).map(|at| match at {
            0 => 0,
            at => (self.ran[at].start_ns - self.ran[at - 1].end_ns).max(0),
        })
    }

    /// Returns the place in a turn at which steps begin: that of the longest pause, by the median over turns.
    fn first_place(&self, period: &Period) -> usize {
        // Of many turns so many are looked at that their pauses fit into memory.
        let most = ((1 << 22) / period.length).clamp(PERIOD_LEAST, MAX_TURNS);
        let turns: Vec<usize> = self.equal_turns(period).take(most).collect();
        let median = |place: usize| {
            let pauses = turns.iter().filter(|start| **start + place > 0);
            let pauses = pauses.map(|start| {
                let at = start + place;
                (self.ran[at].start_ns - self.ran[at - 1].end_ns).max(0)
            });
            let mut pauses: Vec<i64> = pauses.collect();
            let middle = pauses.len() / 2;
            match pauses.is_empty() {
                true => 0,
                false => *pauses.select_nth_unstable(middle).1,
            }
        };
        let places = (0..period.length).rev();
        places.max_by_key(|place| median(*place)).unwrap_or(0)
    }

    /// Returns the steps of a period.
    fn steps(&self, period: &Period, part: &HostPart) -> Option<FoundSteps> {
        let place = self.first_place(period);
        let length = period.length;
        // A rotated turn lies in two neighbours, which must both be equal to all others.
        let turns: Vec<usize> = self.equal_turns(period).collect();
        let mut neighbours = turns.windows(2).filter(|two| two[1] == two[0] + length);
        let rotated = neighbours.next().map(|two| {
            let from = two[0] + place;
            self.hash(from, from + length)
        });
        let is_turn = |from: usize| {
            from + length <= self.len() && Some(self.hash(from, from + length)) == rotated
        };
        let mut begins: Vec<usize> = period.starts.iter().map(|start| start + place).collect();
        if let Some(first) = begins[0]
            .checked_sub(length)
            .filter(|first| is_turn(*first))
        {
            begins.insert(0, first);
        }
        let mut ranges: Vec<Interval> = Vec::with_capacity(begins.len());
        let mut before: Option<usize> = None;
        for (at, from) in begins.iter().enumerate() {
            let to = begins
                .get(at + 1)
                .copied()
                .unwrap_or(from + length)
                .min(self.len());
            let is_last = at + 1 == begins.len();
            // Turns of far more or fewer pieces of work hold something else.
            let is_step = match is_last {
                true => is_turn(*from),
                false => (length / 2..=length + length / 2).contains(&(to.saturating_sub(*from))),
            };
            if !is_step || to <= *from {
                before = None;
                continue;
            }
            let ends = self.ran[*from..to].iter().map(|ran| ran.end_ns);
            let end_ns = ends.max()?;
            let start_ns = match (before, ranges.last()) {
                (Some(_), Some(last)) => last.end_ns,
                _ if at == 0 || *from == 0 => self.ran[*from].start_ns,
                _ => self.ran[from - 1]
                    .end_ns
                    .max(ranges.last().map_or(i64::MIN, |last| last.end_ns)),
            };
            let range = Interval::new(start_ns, end_ns);
            if range.is_empty() {
                return None;
            }
            ranges.push(range);
            before = Some(to);
        }
        let host = match part {
            HostPart::Waits => "the host waits for the device in each",
            HostPart::Pauses => "the queue pauses before each for longer than anywhere within",
        };
        let share = match period.equal == period.turns {
            true => format!("all {} turns have", count(period.turns as u64)),
            false => format!(
                "{} of {} turns ({}) have",
                count(period.equal as u64),
                count(period.turns as u64),
                Percent(ratio(period.equal as i64, period.turns as i64))
            ),
        };
        (ranges.len() >= PERIOD_LEAST).then(|| FoundSteps {
            by: StepsFoundBy::Launches,
            label: None,
            process_id: self.process,
            thread: None,
            found: format!(
                "No label names steps. They were found by the period of launches: {share} the same {} pieces of work, and {host}. Each goes from the end of the one before to the end of its own work.",
                count(length as u64)
            ),
            ranges,
            numbers: Vec::new(),
        })
    }
}
