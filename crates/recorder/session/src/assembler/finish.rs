//! Finished instances: from their last event to their rows.

use super::device::{Device, Queue};
use super::expand::{Expansion, State};
use super::instance::{Instance, Place, Why};
use super::placement::{NO_CLOCK, Placement};
use super::{Activity, Assembler};
use crate::clock::{Ticks, Unplaced};
use gapscope_spool::event::{NO_TICKS, Outcome};
use gapscope_trace::TraceWriter;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Table, Tables, Timing};

/// More memory than this does not wait for a clock sample.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// So many rows of a table are written before more are made: a clock sample may settle the work of a million dispatches at
/// once. A table that has so many is always written by the next flush.
const MOST_ROWS: usize = 2 * TraceWriter::BATCH_ROWS;

impl Assembler {
    /// Nothing more comes for an instance: its rows are made as soon as its device's clock allows.
    pub(super) fn finished(&mut self, mut instance: Instance, tables: &mut Tables) {
        self.place(&mut instance);
        let device = self.queues[instance.queue as usize].facts.device as usize;
        match instance.place {
            Place::Nowhere(_) => self.expand(&instance, tables),
            Place::Open | Place::At { .. } => {
                if let Place::At { base, end, .. } = instance.place {
                    self.note_activity(device, base.1, end);
                }
                let device = &mut self.devices[device];
                device.waiting_bytes += instance.bytes();
                device.waiting.push_back(instance);
            }
        }
        self.settle(device as u32, false, tables);
    }

    fn note_activity(&mut self, device: usize, begin: Ticks, end: Ticks) {
        if let Some(clock) = &self.devices[device].clock
            && let (Some(begin_ns), Some(end_ns)) =
                (clock.estimate_ns(begin), clock.estimate_ns(end))
        {
            self.recent.push(Activity { begin_ns, end_ns });
        }
    }

    /// Expands instances of a process that is gone, whose clocks get no more samples. True: there are more, for when the
    /// rows have been written.
    pub fn settle_some(&mut self, process: u32, tables: &mut Tables) -> bool {
        for device in 0..self.devices.len() as u32 {
            if self.devices[device as usize].facts.process == process {
                self.settle_up_to(device, true, MOST_ROWS, tables);
            }
        }
        let of_process = |d: &Device| d.facts.process == process && !d.waiting.is_empty();
        self.devices.iter().any(of_process)
    }

    /// Expands the instances of a device whose times no later sample changes; all of them when no more samples come. What
    /// would make too many rows at once is left to the next call.
    pub(super) fn settle(&mut self, device: u32, all: bool, tables: &mut Tables) {
        let most = if all { usize::MAX } else { MOST_ROWS };
        self.settle_up_to(device, all, most, tables);
    }

    fn settle_up_to(&mut self, device: u32, all: bool, most_rows: usize, tables: &mut Tables) {
        while rows(tables) < most_rows {
            let waiting = &mut self.devices[device as usize].waiting;
            let Some(mut instance) = waiting.pop_front() else {
                break;
            };
            if instance.place == Place::Open {
                self.place(&mut instance);
            }
            let state = &mut self.devices[device as usize];
            let all = all || state.ended || state.waiting_bytes > MOST_WAITING_BYTES;
            let ready = match (instance.place, &state.clock) {
                (Place::At { end, .. }, Some(clock)) => clock.settled(end),
                (Place::Open, _) => false,
                _ => true,
            };
            if !ready && !all {
                state.waiting.push_front(instance);
                break;
            }
            state.waiting_bytes = state.waiting_bytes.saturating_sub(instance.bytes());
            self.expand(&instance, tables);
        }
    }

    /// Finds the place of an instance on its device's clock.
    fn place(&mut self, instance: &mut Instance) {
        let latest_ns = instance
            .seen_ns
            .unwrap_or(self.latest_ns)
            .max(instance.submitted_ns);
        let timed = matches!(instance.outcome, Some(Outcome::Timed) | None);
        let queue = &mut self.queues[instance.queue as usize];
        let bits = queue.facts.timestamp_bits;
        let clock = self.devices[queue.facts.device as usize].clock.as_mut();
        let (Some(clock), true) = (clock, timed && bits > 0) else {
            instance.place = Place::Nowhere(Why::NotTimed);
            return;
        };
        let recording = self.processes[instance.process as usize]
            .recordings
            .get(&instance.recording);
        let ends = recording.map(|r| (r.begin_query, r.end_query));
        let (begin, end) = match instance.extent(ends) {
            Ok(extent) => extent,
            Err(why) => {
                instance.place = Place::Nowhere(why);
                return;
            }
        };
        let mut found = clock.unwrap(begin, bits, instance.submitted_ns, latest_ns);
        if found == Err(Unplaced::Ambiguous) {
            // Command buffers of a queue begin in order.
            let previous = queue.last_begin.and_then(|t| clock.estimate_ns(t));
            let earliest_ns = instance.submitted_ns.max(previous.unwrap_or(i64::MIN));
            found = clock.unwrap(begin, bits, earliest_ns.min(latest_ns), latest_ns);
        }
        let base = match found {
            Ok(ticks) => ticks,
            Err(Unplaced::NoSamples) => return,
            Err(unplaced) => {
                instance.place = Place::Nowhere(Why::Unplaced(unplaced));
                return;
            }
        };
        let longest = longest(
            clock.ticks_of_ns(latest_ns.saturating_sub(instance.submitted_ns)),
            bits,
        );
        let mask = if bits >= 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        };
        let length = (end.wrapping_sub(begin) & mask) as i64;
        if !(0..=longest).contains(&length) {
            instance.place = Place::Nowhere(Why::Invalid);
            return;
        }
        let end = Ticks(base.0.saturating_add(length));
        if let Some(seen_ns) = instance.seen_ns {
            clock.bracket(base, end, instance.submitted_ns, seen_ns);
        }
        queue.last_begin = Some(base);
        instance.place = Place::At {
            base: (begin, base),
            end,
            longest,
        };
    }

    /// The rows of an instance.
    fn expand(&mut self, instance: &Instance, tables: &mut Tables) {
        let Queue {
            facts: queue,
            spans,
            ..
        } = &mut self.queues[instance.queue as usize];
        let clock = self.devices[queue.device as usize].clock.as_mut();
        let placement = match (instance.place, clock) {
            (Place::At { base, longest, .. }, Some(clock)) => Some(Placement {
                clock,
                bits: queue.timestamp_bits,
                base,
                longest,
            }),
            _ => None,
        };
        let (timing, reason) = timing(instance, queue.timestamp_bits);
        let (dispatches, _) = Expansion {
            instance,
            recordings: &self.processes[instance.process as usize].recordings,
            placement,
            reason,
            timing,
            sampled: self.mode != SamplingMode::CommandBuffer,
            kernels: &mut self.kernels,
            labels: &mut self.labels,
            spans,
            ledger: &mut self.ledger,
            tables,
            state: State::default(),
        }
        .run();
        self.dispatches += u64::from(dispatches);
        self.processes[instance.process as usize].release(instance.recording);
    }
}

impl Instance {
    /// The raw ticks of its begin and end, or the outermost that are there. `ends`: the queries of both.
    fn extent(&self, ends: Option<(u32, u32)>) -> Result<(u64, u64), Why> {
        let valid = |tick: &u64| *tick != NO_TICKS && *tick != 0;
        if let Some((begin, end)) = self.bracket {
            return match (begin, end) {
                (NO_TICKS, _) | (_, NO_TICKS) => Err(Why::NotDelivered),
                (0, _) | (_, 0) => Err(Why::Invalid),
                extent => Ok(extent),
            };
        }
        let ticks = self.ticks(self.recording);
        let tick = |query: u32| ticks.get(query as usize).copied().filter(valid);
        let (begin, end) = ends.map_or((None, None), |(b, e)| (tick(b), tick(e)));
        let begin = begin.or_else(|| ticks.iter().copied().find(valid));
        let end = end.or_else(|| ticks.iter().rev().copied().find(valid));
        match begin.zip(end) {
            Some(extent) => Ok(extent),
            None if ticks.contains(&0) => Err(Why::Invalid),
            None if self.outcome.is_none() => Err(Why::NotTimed),
            None => Err(Why::NotDelivered),
        }
    }
}

/// Rows of the longest of the tables that grow with each command.
fn rows(tables: &Tables) -> usize {
    let (dispatches, transfers) = (tables.dispatches.len(), tables.transfers.len());
    let (barriers, markers) = (tables.barriers.len(), tables.markers.len());
    dispatches.max(transfers).max(barriers).max(markers)
}

/// The longest time that can lie inside an instance, in ticks: a device may not run longer than the host saw it run,
/// and where that is longer than the clock's period, backward times must still be told from long ones.
fn longest(host: i64, bits: u32) -> i64 {
    let period = if bits >= 63 { i64::MAX } else { 1 << bits };
    let host = host.saturating_add(host / 1000);
    let slack = (host / 16).max(1 << 20).min(period / 8);
    let host = host.saturating_add(slack);
    if host < period { host } else { period / 2 }
}

/// What the trace says of an instance's times, and the reason in the ledger where they are unknown.
fn timing(instance: &Instance, bits: u32) -> (Timing, &'static str) {
    let outcome = instance.outcome.unwrap_or(Outcome::NotSeen);
    match (instance.place, outcome) {
        (Place::At { .. }, _) if instance.bracket.is_some() => (
            Timing::Bracketed,
            "the command buffer may run twice at once",
        ),
        (Place::At { .. }, _) => (Timing::Measured, ""),
        (Place::Open, _) => (Timing::Unknown, NO_CLOCK),
        (Place::Nowhere(Why::NotDelivered), _) => {
            (Timing::Unknown, "the device wrote no timestamp")
        }
        (Place::Nowhere(Why::Invalid), _) => (Timing::Unknown, "invalid device timestamps"),
        (Place::Nowhere(Why::Unplaced(Unplaced::Ambiguous)), _) => (
            Timing::Unknown,
            "the device's clock wrapped more often than the host times around it can tell",
        ),
        (Place::Nowhere(Why::Unplaced(Unplaced::Contradiction)), _) => (
            Timing::Unknown,
            "device timestamps outside the host times around them",
        ),
        (Place::Nowhere(Why::Unplaced(Unplaced::NoSamples)), _) => (Timing::Unknown, NO_CLOCK),
        (Place::Nowhere(Why::NotTimed), Outcome::DeviceLost) => {
            (Timing::DeviceLost, "the device was lost")
        }
        (Place::Nowhere(Why::NotTimed), Outcome::NotInstrumented) => {
            (Timing::NotInstrumented, "recorded while recording was off")
        }
        (Place::Nowhere(Why::NotTimed), Outcome::NoQueries) => {
            (Timing::NoQueries, "timestamps could not be added to it")
        }
        (Place::Nowhere(Why::NotTimed), Outcome::NoTimestamps) => {
            (Timing::NoTimestamps, "the queue family has no timestamps")
        }
        (Place::Nowhere(Why::NotTimed), Outcome::NotSeen) => (
            Timing::NotSeen,
            "the program ended, reset or freed the command buffer before it was seen finished",
        ),
        (Place::Nowhere(Why::NotTimed), Outcome::Timed) if bits == 0 => {
            (Timing::NoTimestamps, "the queue family has no timestamps")
        }
        (Place::Nowhere(Why::NotTimed), Outcome::Timed) => (Timing::Unknown, NO_CLOCK),
    }
}
