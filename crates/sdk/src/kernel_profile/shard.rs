//! One of the places in which threads record, so that they do not wait for each other.

use super::aggregate::Aggregate;
use super::entry::{CommandBufferEntry, DispatchEntry};
use super::ledger::Ledger;
use super::rows::{CommandBufferRow, DispatchRow};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Shards of a profile.
pub(super) const SHARDS: usize = 64;

/// The label of what is past the limit of labels.
pub(super) const OTHERS: &str = "(other labels)";

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The shard of the calling thread.
#[inline]
pub(super) fn place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // A thread that is ending has no place of its own any more.
    PLACE
        .try_with(|place| {
            if place.get() == usize::MAX {
                place.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
            }
            place.get()
        })
        .unwrap_or(0)
}

/// What some threads have recorded.
#[derive(Debug, Default)]
pub(super) struct Shard {
    pub labels: FxHashMap<Arc<str>, Aggregate>,
    pub kernels: FxHashMap<Arc<str>, Aggregate>,
    pub command_buffers: Vec<CommandBufferRow>,
    pub dispatches: Vec<DispatchRow>,
    pub ledger: Ledger,
    texts: FxHashSet<Arc<str>>,
}

impl Shard {
    #[inline]
    pub fn record(&mut self, label: &str, ns: u64, most_labels: usize) {
        match self.labels.get_mut(label) {
            Some(times) => times.add(ns),
            None => self.record_new(label, ns, most_labels),
        }
    }

    #[cold]
    fn record_new(&mut self, label: &str, ns: u64, most_labels: usize) {
        let label = if self.labels.len() < most_labels || label == OTHERS {
            label
        } else {
            self.ledger.add(
                "labels",
                1,
                "more different labels than the limit; their times are together",
            );
            OTHERS
        };
        let label = self.text(label);
        self.labels
            .entry(label)
            .or_insert_with(Aggregate::new)
            .add(ns);
    }

    pub fn record_kernel(&mut self, name: &str, ns: u64, most_labels: usize) {
        if let Some(times) = self.kernels.get_mut(name) {
            times.add(ns);
        } else if self.kernels.len() < most_labels {
            let name = self.text(name);
            self.kernels
                .entry(name)
                .or_insert_with(Aggregate::new)
                .add(ns);
        } else {
            self.ledger
                .add("kernels", 1, "more different kernels than the limit");
        }
    }

    /// The one copy of a text.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&new));
        new
    }

    pub fn keep_dispatch(
        &mut self,
        sequence: u64,
        entry: &DispatchEntry,
        start_ns: Option<u64>,
        duration_ns: Option<u64>,
    ) {
        let texts = [&entry.cb_label, &entry.kernel, &entry.op_kind].map(|text| self.text(text));
        let row = DispatchRow::new(sequence, entry, texts, start_ns, duration_ns);
        self.dispatches.push(row);
    }

    pub fn keep_command_buffer(&mut self, sequence: u64, entry: CommandBufferEntry) {
        self.command_buffers
            .push(CommandBufferRow { sequence, entry });
    }
}
