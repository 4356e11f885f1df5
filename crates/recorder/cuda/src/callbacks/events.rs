//! Tracks the last record of each CUDA event (each call that put the event on a stream), so that a wait for the
//! event can name the record that it waits for, and never names a wrong one.
//!
//! The program's threads use the table without a lock. A record that may have been made at the same time as another
//! record of the event, or as the wait, counts as unknown, and so do all records of an event that graphs record,
//! too. (Graphs that get such an event by cuGraphAddNode, or while recording is off, are not noticed.)

use super::handle_table::HandleTable;
use crate::wait_ring::Occurrence;
use gapscope_spool::ids;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// The most handles that are told apart; further events are unknown. The driver reuses the handles of destroyed
/// events.
const MAX_EVENTS: usize = 1 << 16;

/// Flag: the record is known, because it has ended and nothing else happened to the event since its begin.
const KNOWN: u64 = 1 << 63;
/// Flag: another record of the event began before the first one ended.
const MIXED: u64 = 1 << 62;
/// Flag: a graph records the event, too, whenever the graph is launched.
const OF_GRAPH: u64 = 1 << 47;
/// The unit of the count of records that have begun and not ended, which is kept in bits 48 to 61.
const OPEN: u64 = 1 << 48;
/// The bits of that count.
const ALL_OPEN: u64 = MIXED - OPEN;
/// The bits with the number of the last record.
const NUMBER: u64 = u32::MAX as u64;

/// The events of this process.
pub static EVENTS: Events = Events::new();

/// The state of each event, by its handle.
pub struct Events(HandleTable<MAX_EVENTS>);

/// The state of an event at the start of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The event's place in the table.
    slot: usize,
    /// The flags, the count and the number of the last record.
    state: u64,
}

impl Snapshot {
    /// Returns the event's last record at that time.
    pub fn occurrence(self) -> Occurrence {
        Occurrence {
            event: ids::CudaEvent(self.slot as u32 + 1),
            number: (self.state & NUMBER) as u32,
        }
    }
}

impl Events {
    const fn new() -> Events {
        Events(HandleTable::new())
    }

    /// Begins a record and returns the event's state at that time; `None` where there are too many events.
    pub fn record_begins(&self, handle: usize) -> Option<Snapshot> {
        let slot = self.0.find(handle, true)?;
        let mut state = 0;
        self.change(slot, |before| {
            let mixed = if before & ALL_OPEN == 0 { 0 } else { MIXED };
            // Numbers wrap past 0, which means none.
            let number = ((before & NUMBER) as u32).wrapping_add(1).max(1);
            let open = (before & ALL_OPEN).saturating_add(OPEN) & ALL_OPEN;
            state = open | mixed | before & OF_GRAPH | u64::from(number);
            state
        });
        Some(Snapshot { slot, state })
    }

    /// Ends a record; `known` says that the record was passed on.
    pub fn record_ends(&self, record: Snapshot, known: bool) {
        self.change(record.slot, |before| {
            let open = (before & ALL_OPEN).saturating_sub(OPEN);
            let same = before & NUMBER == record.state & NUMBER;
            let known = match known && same && before & MIXED == 0 {
                true => KNOWN,
                false => 0,
            };
            open | before & (MIXED | OF_GRAPH | NUMBER) | known
        });
    }

    /// Returns the last record, where it is known.
    pub fn last_record(&self, handle: usize) -> Option<Snapshot> {
        let slot = self.0.find(handle, false)?;
        let state = self.0.number(slot).load(Acquire);
        let known = state & KNOWN != 0 && state & OF_GRAPH == 0;
        known.then_some(Snapshot { slot, state })
    }

    /// Returns whether nothing has happened to the event since the snapshot.
    pub fn is_still(&self, snapshot: Snapshot) -> bool {
        self.0.number(snapshot.slot).load(Acquire) == snapshot.state
    }

    /// Notes that a graph records the event from now on.
    pub fn graph_records(&self, handle: usize) {
        if let Some(slot) = self.0.find(handle, true) {
            self.0.number(slot).fetch_or(OF_GRAPH, AcqRel);
        }
    }

    /// Notes that the event is destroyed: the next event with its handle starts without a record, and its records are
    /// numbered on.
    pub fn forget(&self, handle: usize) {
        if let Some(slot) = self.0.find(handle, false) {
            self.change(slot, |before| before & NUMBER);
        }
    }

    /// Forgets all records, because recording was off.
    pub fn forget_all(&self) {
        for state in self.0.numbers() {
            state.fetch_and(OF_GRAPH | NUMBER, AcqRel);
        }
    }

    /// Replaces an event's state by `to` of it; `to` runs again where another thread came between.
    fn change(&self, slot: usize, mut to: impl FnMut(u64) -> u64) {
        let state = self.0.number(slot);
        let _ = state.fetch_update(AcqRel, Acquire, |before| Some(to(before)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> &'static Events {
        // SAFETY: all fields are numbers, for which zero is a value. The table is too large for a stack.
        Box::leak(unsafe { Box::<Events>::new_zeroed().assume_init() })
    }

    #[test]
    fn a_wait_is_for_the_last_record_that_was_passed_on() {
        let events = events();
        assert_eq!(events.last_record(64), None, "never recorded");
        let first = events.record_begins(64).expect("a slot");
        assert_eq!(events.last_record(64), None, "it has not ended");
        events.record_ends(first, true);
        let snapshot = events.last_record(64).expect("known");
        assert_eq!(snapshot.occurrence(), first.occurrence());
        let second = events.record_begins(64).expect("a slot");
        assert!(!events.is_still(snapshot), "recorded again");
        events.record_ends(second, true);
        let last = events.last_record(64).map(Snapshot::occurrence);
        let next = Occurrence {
            number: snapshot.occurrence().number + 1,
            ..snapshot.occurrence()
        };
        assert_eq!(last, Some(next));
        let third = events.record_begins(64).expect("a slot");
        events.record_ends(third, false);
        assert_eq!(
            events.last_record(64),
            None,
            "the last one was not passed on"
        );
    }

    #[test]
    fn of_records_at_the_same_time_none_is_the_last() {
        let events = events();
        let first = events.record_begins(64).expect("a slot");
        let second = events.record_begins(64).expect("a slot");
        events.record_ends(second, true);
        assert_eq!(events.last_record(64), None);
        events.record_ends(first, true);
        assert_eq!(events.last_record(64), None);
        let third = events.record_begins(64).expect("a slot");
        events.record_ends(third, true);
        let last = events.last_record(64).map(Snapshot::occurrence);
        assert_eq!(last, Some(third.occurrence()));
    }

    #[test]
    fn an_event_with_the_handle_of_a_destroyed_one_is_another() {
        let events = events();
        for handle in [64, 128] {
            let record = events.record_begins(handle).expect("a slot");
            events.record_ends(record, true);
        }
        events.forget(64);
        assert_eq!(events.last_record(64), None);
        assert!(events.last_record(128).is_some());
        // This record never ends, as when recording is switched off.
        events.record_begins(128);
        events.forget_all();
        let record = events.record_begins(128).expect("a slot");
        events.record_ends(record, true);
        assert!(events.last_record(128).is_some());
    }

    #[test]
    fn an_event_that_a_graph_records_has_no_last_record_until_it_is_destroyed() {
        let events = events();
        let record = || {
            let record = events.record_begins(64).expect("a slot");
            events.record_ends(record, true);
        };
        record();
        events.graph_records(64);
        assert_eq!(events.last_record(64), None);
        record();
        events.forget_all();
        record();
        assert_eq!(events.last_record(64), None);
        events.forget(64);
        record();
        assert!(events.last_record(64).is_some());
    }

    #[test]
    fn events_without_a_slot_are_not_known_and_the_others_are() {
        let events = events();
        let mut without = 0;
        for handle in 1..=MAX_EVENTS + 100 {
            match events.record_begins(handle * 64) {
                Some(record) => events.record_ends(record, true),
                None => without += 1,
            }
        }
        assert!((100..MAX_EVENTS / 4).contains(&without), "{without}");
        assert!(events.last_record(64).is_some());
    }
}
