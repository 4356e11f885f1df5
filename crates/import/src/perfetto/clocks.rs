//! Converts times of all clocks of a file to the clock of the trace, by way of snapshots (readings of several clocks
//! at one moment). The first pass adds the snapshots and calls [`Clocks::complete`]; the second converts times.

use crate::since_1970::{self, Times};
use rustc_hash::{FxHashMap, FxHashSet};

/// The identity of a clock: of the whole system, or of one sequence of packets (the packets of one writer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ClockId {
    /// The number of the sequence; 0 for clocks of all sequences.
    sequence: u32,
    id: u32,
}

// Clocks of the whole system, by their numbers in Perfetto's BuiltinClock.
const REALTIME: ClockId = ClockId::system(1);
pub(super) const MONOTONIC: ClockId = ClockId::system(3);
const BOOTTIME: ClockId = ClockId::system(6);
/// The clock of packets that name none: that of the trace.
const NO_CLOCK: ClockId = ClockId::system(0);

impl ClockId {
    /// Returns a clock of the whole system.
    const fn system(id: u32) -> ClockId {
        ClockId { sequence: 0, id }
    }

    /// Returns the clock that a packet of a sequence means by an id. The ids 64 to 127 are clocks of the sequence.
    pub fn new(id: u64, sequence: u32) -> ClockId {
        let id = u32::try_from(id).unwrap_or(u32::MAX);
        ClockId {
            sequence: if (64..128).contains(&id) { sequence } else { 0 },
            id,
        }
    }

    /// Returns the name of the clock.
    pub fn name(self) -> String {
        match self.id {
            1 => "REALTIME".to_owned(),
            2 => "REALTIME_COARSE".to_owned(),
            3 => "MONOTONIC".to_owned(),
            4 => "MONOTONIC_COARSE".to_owned(),
            5 => "MONOTONIC_RAW".to_owned(),
            6 => "BOOTTIME".to_owned(),
            id => format!("number {id}"),
        }
    }
}

/// The time that one clock showed in a snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub clock: ClockId,
    /// The time in the clock's own unit.
    pub time: u64,
    /// Whether the times of packets on this clock count from the packet before.
    pub incremental: bool,
    /// The number of nanoseconds in a unit.
    pub unit_ns: u64,
}

/// The clocks of a file and the snapshots that relate them.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// For two clocks, the times that they showed at the same moment, in the order of the first clock's times.
    pairs: FxHashMap<(ClockId, ClockId), Vec<(i64, i64)>>,
    /// The clocks that some snapshot has beside a clock.
    neighbours: FxHashMap<ClockId, Vec<ClockId>>,
    /// The clock of the trace: the first that a snapshot names.
    trace: Option<ClockId>,
    /// What is added to times of the trace's clock, which may count from 1970.
    shift_ns: i64,
    /// The units of clocks that do not count nanoseconds.
    units_ns: FxHashMap<ClockId, u64>,
    /// The last times of incremental clocks. The time of a packet on such a clock counts from the packet before it.
    incremental: FxHashMap<ClockId, i64>,
    /// The results of [`Self::route`] so far.
    routes: FxHashMap<ClockId, Option<Vec<ClockId>>>,
}

/// The maximum number of clocks of a snapshot that are used; further clocks are ignored. Real snapshots hold a
/// handful.
const MAX_CLOCKS: usize = 16;

impl Clocks {
    /// Adds a snapshot. `primary` is the clock of the trace, if the snapshot names it.
    pub fn add(&mut self, readings: &[Reading], primary: Option<ClockId>) {
        self.trace = self.trace.or(primary);
        let readings = &readings[..readings.len().min(MAX_CLOCKS)];
        for reading in readings {
            if reading.unit_ns > 1 {
                self.units_ns.insert(reading.clock, reading.unit_ns);
            }
        }
        for from in readings {
            for to in readings.iter().filter(|to| to.clock != from.clock) {
                let (Some(from_ns), Some(to_ns)) = (nanoseconds(from), nanoseconds(to)) else {
                    continue;
                };
                let pairs = self.pairs.entry((from.clock, to.clock)).or_default();
                if pairs.is_empty() {
                    let neighbours = self.neighbours.entry(from.clock).or_default();
                    neighbours.push(to.clock);
                }
                pairs.push((from_ns, to_ns));
            }
        }
    }

    /// Sorts the snapshots after the last one was added. `times` are those of events on each of the system's clocks.
    pub fn complete<'a>(&mut self, times: impl Iterator<Item = (ClockId, &'a Times)>) {
        for pairs in self.pairs.values_mut() {
            pairs.sort_unstable();
        }
        let mut on_clock = Times::default();
        for (clock, times) in times {
            on_clock.add_converted(times, |ns| match clock {
                NO_CLOCK => Some(ns),
                _ => self.convert(clock, ns),
            });
        }
        self.shift_ns = on_clock.shift_ns();
    }

    /// Returns what is added to times of the trace's clock, so that they are those of the trace.
    pub fn shift_ns(&self) -> i64 {
        self.shift_ns
    }

    /// Returns the clock of the trace; BOOTTIME if no snapshot names one.
    pub fn trace_clock(&self) -> ClockId {
        self.trace.unwrap_or(BOOTTIME)
    }

    /// Sets the times of a snapshot from which incremental clocks continue.
    pub fn restart(&mut self, readings: &[Reading]) {
        for reading in readings.iter().filter(|reading| reading.incremental) {
            let at_ns = nanoseconds(reading).unwrap_or_default();
            self.incremental.insert(reading.clock, at_ns);
        }
    }

    /// Converts a packet's time to the clock of the trace. Returns `None` if no snapshot relates the clocks, or if
    /// the time is out of range. `clock` is absent if the packet names none. A time of 0 may stand for an unknown one.
    pub fn at(&mut self, clock: Option<ClockId>, time: u64) -> Option<i64> {
        let at_ns = self.unshifted(clock, time)?.checked_add(self.shift_ns)?;
        (time == 0 || since_1970::checked(at_ns, at_ns).is_some()).then_some(at_ns)
    }

    /// Converts a packet's time to the clock of the trace, which may count from 1970.
    fn unshifted(&mut self, clock: Option<ClockId>, time: u64) -> Option<i64> {
        let Some(clock) = clock else {
            return i64::try_from(time).ok();
        };
        let unit_ns = self.units_ns.get(&clock).copied().unwrap_or(1);
        let mut at_ns = i64::try_from(time.checked_mul(unit_ns)?).ok()?;
        if let Some(standing) = self.incremental.get_mut(&clock) {
            at_ns = standing.checked_add(at_ns)?;
            *standing = at_ns;
        }
        self.convert(clock, at_ns)
    }

    /// Converts the time `at_ns` of a clock to the clock of the trace, from clock to clock by the last snapshot
    /// before it, or else the first one. `None` if no snapshots connect the clocks.
    pub fn convert(&mut self, clock: ClockId, mut at_ns: i64) -> Option<i64> {
        if clock == self.trace_clock() {
            return Some(at_ns);
        }
        if !self.routes.contains_key(&clock) {
            let route = self.route(clock);
            self.routes.insert(clock, route);
        }
        let route = self.routes.get(&clock)?.as_ref()?;
        let mut from = clock;
        for to in route {
            let pairs = self.pairs.get(&(from, *to))?;
            let after = pairs.partition_point(|(from_ns, _)| *from_ns <= at_ns);
            let (from_ns, to_ns) = *pairs.get(after.saturating_sub(1))?;
            at_ns = to_ns.checked_add(at_ns.checked_sub(from_ns)?)?;
            from = *to;
        }
        Some(at_ns)
    }

    /// Returns the first time of the trace that a snapshot relates to the time since 1970, and that time at the same
    /// moment; `None` where nothing relates them.
    pub fn since_1970(&self) -> Option<(i64, i64)> {
        if self.shift_ns != 0 {
            return Some((0, self.shift_ns.saturating_neg()));
        }
        let pairs = self.pairs.get(&(self.trace_clock(), REALTIME))?;
        pairs.first().copied()
    }

    /// Returns the clocks on the shortest path from a clock, which is left out, to the trace's clock; `None` if no
    /// snapshots connect them.
    fn route(&self, from: ClockId) -> Option<Vec<ClockId>> {
        let goal = self.trace_clock();
        let mut before: FxHashMap<ClockId, ClockId> = FxHashMap::default();
        let mut seen: FxHashSet<ClockId> = [from].into_iter().collect();
        let mut next = std::collections::VecDeque::from([from]);
        while let Some(clock) = next.pop_front() {
            if clock == goal {
                let mut route = vec![goal];
                let mut place = goal;
                while let Some(earlier) = before.get(&place).filter(|earlier| **earlier != from) {
                    route.push(*earlier);
                    place = *earlier;
                }
                route.reverse();
                return Some(route);
            }
            for neighbour in self.neighbours.get(&clock).into_iter().flatten() {
                if seen.insert(*neighbour) {
                    before.insert(*neighbour, clock);
                    next.push_back(*neighbour);
                }
            }
        }
        None
    }
}

/// Returns the time of a reading in nanoseconds; `None` if it is out of range.
fn nanoseconds(reading: &Reading) -> Option<i64> {
    i64::try_from(reading.time.checked_mul(reading.unit_ns)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(clock: ClockId, time: u64) -> Reading {
        Reading {
            clock,
            time,
            incremental: false,
            unit_ns: 1,
        }
    }

    #[test]
    fn times_go_the_shortest_way_over_the_latest_snapshot_before_them() {
        let mut clocks = Clocks::default();
        let own = ClockId::new(64, 7);
        clocks.add(&[reading(BOOTTIME, 1000), reading(MONOTONIC, 100)], None);
        clocks.add(&[reading(MONOTONIC, 200), reading(own, 5)], None);
        clocks.add(&[reading(BOOTTIME, 3000), reading(MONOTONIC, 500)], None);
        clocks.complete(std::iter::empty());
        assert_eq!(clocks.trace_clock(), BOOTTIME);
        assert_eq!(clocks.at(Some(MONOTONIC), 90), Some(990));
        assert_eq!(clocks.at(Some(MONOTONIC), 499), Some(1399));
        assert_eq!(clocks.at(Some(MONOTONIC), 500), Some(3000));
        // The time 5 of the own clock is 200 of MONOTONIC, which is 1100 of BOOTTIME.
        assert_eq!(clocks.at(Some(own), 6), Some(1101));
        assert_eq!(clocks.at(Some(ClockId::new(64, 8)), 6), None);
        assert_eq!(clocks.at(None, 6), Some(6));
        assert_eq!(clocks.at(None, u64::MAX), None);
    }

    #[test]
    fn incremental_clocks_count_on_in_their_unit() {
        let mut clocks = Clocks::default();
        let own = ClockId::new(65, 1);
        let start = Reading {
            clock: own,
            time: 10,
            incremental: true,
            unit_ns: 1000,
        };
        let readings = [reading(BOOTTIME, 50_000), start];
        clocks.add(&readings, Some(BOOTTIME));
        clocks.complete(std::iter::empty());
        clocks.restart(&readings);
        assert_eq!(clocks.at(Some(own), 2), Some(52_000));
        assert_eq!(clocks.at(Some(own), 3), Some(55_000));
    }
}
