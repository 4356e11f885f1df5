//! Turns finished instances into rows once their device's clock is settled (no later sample changes the host times
//! of their ticks). A tick is a time as the device wrote it, an instance a submitted execution of a command
//! recording.

use super::device::{Device, Queue};
use super::expand::{Expansion, State};
use super::instance::{ClockPosition, Instance, NoPosition, RawInterval, Reading};
use super::placement::{NO_CLOCK, Placement, mask};
use super::recording::QueryPair;
use super::{Assembler, BusyInterval};
use crate::clock::{Ticks, Unplaced};
use gapscope_model::LossKind;
use gapscope_spool::event::{NO_TICKS, Outcome};
use gapscope_trace::TraceWriter;
use gapscope_trace::ids::{DeviceId, ProcessId};
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Table, Tables, Timing};

/// The maximum memory of instances that wait for a clock sample.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// The number of rows in a table from which on they are written before more are made: a clock sample may settle the
/// work of a million dispatches at once. The next flush always writes a table with this many rows.
const MAX_ROWS: usize = 2 * TraceWriter::BATCH_ROWS;

impl Assembler {
    /// Records that an instance is finished. Its rows are made as soon as its device's clock allows.
    pub(super) fn finished(&mut self, mut instance: Instance, tables: &mut Tables) {
        instance.position = self.position_of(&instance);
        let device = self.queues[instance.queue].facts.device;
        match instance.position {
            ClockPosition::Unknown(_) => self.expand(&instance, tables),
            ClockPosition::Pending | ClockPosition::Known { .. } => {
                if let ClockPosition::Known { start, end, .. } = instance.position {
                    self.note_busy(device, start.ticks, end);
                }
                let device = &mut self.devices[device];
                device.waiting_bytes += instance.bytes();
                device.waiting.push_back(instance);
            }
        }
        self.settle(device, false, tables);
    }

    /// Notes an interval for the progress line, at estimated times.
    fn note_busy(&mut self, device: DeviceId, start: Ticks, end: Ticks) {
        if let Some(clock) = &self.devices[device].clock
            && let (Some(start_ns), Some(end_ns)) =
                (clock.estimate_ns(start), clock.estimate_ns(end))
        {
            self.recent.push(BusyInterval { start_ns, end_ns });
        }
    }

    /// Expands (makes the rows of) instances of a process that is gone, whose clocks get no more samples. Returns
    /// true if there are more, which must wait until the rows were written.
    pub fn settle_some(&mut self, process: ProcessId, tables: &mut Tables) -> bool {
        for device in self.devices.ids() {
            if self.devices[device].facts.process == process {
                self.settle_up_to(device, true, MAX_ROWS, tables);
            }
        }
        let of_process = |d: &Device| d.facts.process == process && !d.waiting.is_empty();
        self.devices.iter().any(of_process)
    }

    /// Expands the instances of a device whose times no later sample changes, or all instances if there are no more
    /// samples. Instances that would make too many rows at once are left to the next call.
    pub(super) fn settle(&mut self, device: DeviceId, all: bool, tables: &mut Tables) {
        let most = if all { usize::MAX } else { MAX_ROWS };
        self.settle_up_to(device, all, most, tables);
    }

    /// Expands instances in the order in which they finished, until one is not settled or `tables` have `most_rows`
    /// rows. With `all`, at the device's end or where too much memory waits, unsettled ones are expanded, too.
    fn settle_up_to(&mut self, device: DeviceId, all: bool, most_rows: usize, tables: &mut Tables) {
        while rows(tables) < most_rows {
            let waiting = &mut self.devices[device].waiting;
            let Some(mut instance) = waiting.pop_front() else {
                break;
            };
            if instance.position == ClockPosition::Pending {
                instance.position = self.position_of(&instance);
            }
            let state = &mut self.devices[device];
            let all = all || state.ended || state.waiting_bytes > MAX_WAITING_BYTES;
            let ready = match (instance.position, &state.clock) {
                (ClockPosition::Known { end, .. }, Some(clock)) => clock.settled(end),
                (ClockPosition::Pending, _) => false,
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

    /// Finds the position of an instance on its device's clock, from its first and last timestamps. A known position
    /// bounds the clock further.
    fn position_of(&mut self, instance: &Instance) -> ClockPosition {
        let latest_ns = instance
            .seen_ns
            .unwrap_or(self.latest_ns)
            .max(instance.submitted_ns);
        let timed = matches!(instance.outcome, Some(Outcome::Timed) | None);
        let queue = &mut self.queues[instance.queue];
        let bits = queue.facts.timestamp_bits;
        let clock = self.devices[queue.facts.device].clock.as_mut();
        let (Some(clock), true) = (clock, timed && bits > 0) else {
            return ClockPosition::Unknown(NoPosition::NotTimed);
        };
        let recording = self.processes[instance.process]
            .recordings
            .get(&instance.recording);
        let ends = recording.map(|r| r.ends());
        let RawInterval { start, end } = match instance.extent(ends) {
            Ok(extent) => extent,
            Err(why) => return ClockPosition::Unknown(why),
        };
        let mut found = clock.unwrap(start, bits, instance.submitted_ns, latest_ns);
        if found == Err(Unplaced::Ambiguous) {
            // Command buffers of a queue start in order.
            let previous = queue.last_start.and_then(|t| clock.estimate_ns(t));
            let earliest_ns = instance.submitted_ns.max(previous.unwrap_or(i64::MIN));
            found = clock.unwrap(start, bits, earliest_ns.min(latest_ns), latest_ns);
        }
        let base = match found {
            Ok(ticks) => ticks,
            Err(Unplaced::NoSamples) => return ClockPosition::Pending,
            Err(unplaced) => return ClockPosition::Unknown(NoPosition::Unplaced(unplaced)),
        };
        let longest = longest(
            clock.ticks_of_ns(latest_ns.saturating_sub(instance.submitted_ns)),
            bits,
        );
        let length = (end.wrapping_sub(start) & mask(bits)) as i64;
        if !(0..=longest).contains(&length) {
            return ClockPosition::Unknown(NoPosition::Invalid);
        }
        let end = Ticks(base.0.saturating_add(length));
        if let Some(seen_ns) = instance.seen_ns {
            clock.bracket(base, end, instance.submitted_ns, seen_ns);
        }
        queue.last_start = Some(base);
        ClockPosition::Known {
            start: Reading {
                raw: start,
                ticks: base,
            },
            end,
            longest,
        }
    }

    /// Appends the rows of an instance and of the values that it counted, and gives up its use of the recording.
    fn expand(&mut self, instance: &Instance, tables: &mut Tables) {
        let Queue {
            facts: queue,
            spanning,
            ..
        } = &mut self.queues[instance.queue];
        let clock = self.devices[queue.device].clock.as_mut();
        let placement = match (instance.position, clock) {
            (ClockPosition::Known { start, longest, .. }, Some(clock)) => Some(Placement {
                clock,
                bits: queue.timestamp_bits,
                base: start,
                longest,
            }),
            _ => None,
        };
        let (timing, reason) = timing(instance, queue.timestamp_bits);
        let dispatches = Expansion {
            instance,
            recordings: &self.processes[instance.process].recordings,
            placement,
            reason,
            timing,
            sampled: self.mode != SamplingMode::CommandBuffer,
            kernels: &mut self.kernels,
            labels: &mut self.labels,
            spanning,
            ledger: &mut self.ledger,
            tables,
            state: State::default(),
        }
        .run();
        self.ids.dispatches += u64::from(dispatches);
        if let Some((family, values)) = &instance.counted {
            let device = self.queues[instance.queue].facts.device;
            let row = tables.command_buffers.len() - 1;
            let rows = &tables.command_buffers;
            let span = rows.start_ns.at(row).zip(rows.duration_ns.at(row));
            let known = span.is_some_and(|span| {
                (self.counters).counted((device, *family), values, span, tables)
            });
            if !known {
                let reason = "their command buffer has no times";
                self.ledger
                    .add(LossKind::CounterSamples, values.len() as u64, reason);
            }
        }
        self.processes[instance.process].release(instance.recording);
    }
}

impl Instance {
    /// Returns the raw ticks of the start and the end: those of the bracket that the hook wrote around the instance,
    /// or else those of the queries `ends`, or the outermost ones.
    fn extent(&self, ends: Option<QueryPair>) -> Result<RawInterval, NoPosition> {
        let valid = |tick: &u64| *tick != NO_TICKS && *tick != 0;
        if let Some(bracket) = self.bracket {
            return match (bracket.start, bracket.end) {
                (NO_TICKS, _) | (_, NO_TICKS) => Err(NoPosition::NotDelivered),
                (0, _) | (_, 0) => Err(NoPosition::Invalid),
                _ => Ok(bracket),
            };
        }
        let ticks = self.ticks(self.recording);
        let tick = |query: u32| ticks.get(query as usize).copied().filter(valid);
        let start = ends.and_then(|ends| tick(ends.start));
        let end = ends.and_then(|ends| tick(ends.end));
        let start = start.or_else(|| ticks.iter().copied().find(valid));
        let end = end.or_else(|| ticks.iter().rev().copied().find(valid));
        match start.zip(end) {
            Some((start, end)) => Ok(RawInterval { start, end }),
            None if ticks.contains(&0) => Err(NoPosition::Invalid),
            None if self.outcome.is_none() => Err(NoPosition::NotTimed),
            None => Err(NoPosition::NotDelivered),
        }
    }
}

/// Returns the number of rows of the longest table that grows with each command.
fn rows(tables: &Tables) -> usize {
    let (dispatches, transfers) = (tables.dispatches.len(), tables.transfers.len());
    let (barriers, markers) = (tables.barriers.len(), tables.markers.len());
    dispatches.max(transfers).max(barriers).max(markers)
}

/// Returns the maximum time inside an instance in ticks. A device cannot run longer than the host saw it run. If that
/// is longer than the clock's period, backward times must still be distinguished from long ones.
fn longest(host: i64, bits: u32) -> i64 {
    let period = if bits >= 63 { i64::MAX } else { 1 << bits };
    let host = host.saturating_add(host / 1000);
    let slack = (host / 16).max(1 << 20).min(period / 8);
    let host = host.saturating_add(slack);
    if host < period { host } else { period / 2 }
}

/// Returns the timing of an instance for the trace, and the reason for the ledger if the times are unknown.
fn timing(instance: &Instance, bits: u32) -> (Timing, &'static str) {
    match instance.position {
        ClockPosition::Known { .. } if instance.bracket.is_some() => (
            Timing::Bracketed,
            "the command buffer may run twice at once",
        ),
        ClockPosition::Known { .. } => (Timing::Measured, ""),
        ClockPosition::Pending => (Timing::Unknown, NO_CLOCK),
        ClockPosition::Unknown(why) => match why {
            NoPosition::NotTimed => timing_of_untimed(instance.outcome, bits),
            NoPosition::NotDelivered => (Timing::Unknown, "the device wrote no timestamp"),
            NoPosition::Invalid => (Timing::Unknown, "invalid device timestamps"),
            NoPosition::Unplaced(Unplaced::Ambiguous) => (
                Timing::Unknown,
                "the device's clock wrapped more often than the host times around it can tell",
            ),
            NoPosition::Unplaced(Unplaced::Contradiction) => (
                Timing::Unknown,
                "device timestamps outside the host times around them",
            ),
            NoPosition::Unplaced(Unplaced::NoSamples) => (Timing::Unknown, NO_CLOCK),
        },
    }
}

/// Returns the same for an instance without timestamps, by its outcome.
fn timing_of_untimed(outcome: Option<Outcome>, bits: u32) -> (Timing, &'static str) {
    match outcome.unwrap_or(Outcome::NotSeen) {
        Outcome::DeviceLost => (Timing::DeviceLost, "the device was lost"),
        Outcome::NotInstrumented => (Timing::NotInstrumented, "recorded while recording was off"),
        Outcome::NoQueries => (Timing::NoQueries, "timestamps could not be added to it"),
        Outcome::SuspendedRendering => (
            Timing::NoQueries,
            "a rendering is suspended across the start or end of the command buffer, where no timestamp may be",
        ),
        Outcome::NotSeen => (
            Timing::NotSeen,
            "the program ended, reset or freed the command buffer before it was seen finished",
        ),
        Outcome::Timed if bits > 0 => (Timing::Unknown, NO_CLOCK),
        Outcome::NoTimestamps | Outcome::Timed => {
            (Timing::NoTimestamps, "the queue family has no timestamps")
        }
    }
}
