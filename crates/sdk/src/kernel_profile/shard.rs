//! The shards in which threads record, so that they do not wait for each other. A result merges all of them.

use super::aggregate::Aggregate;
use super::entry::DispatchEntry;
use super::rows::{CommandBufferRow, DispatchRow, PassRow, ScopeRow};
use super::sequence::Block;
use gapscope_model::{Ledger, LossKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of shards of a profile.
pub(super) const SHARDS: usize = 64;

/// The name for entries beyond the limit of names.
const OTHERS: &str = "(others)";

thread_local! {
    /// The index of this thread's shard; the greatest number before the first use.
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Returns the index of the shard of the calling thread. Threads take the shards in turn.
#[inline]
pub(super) fn place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // A thread that is ending may no longer have a place of its own.
    PLACE
        .try_with(|place| {
            if place.get() == usize::MAX {
                place.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
            }
            place.get()
        })
        .unwrap_or(0)
}

/// The kind of entry that a time belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimedKind {
    Label,
    Kernel,
    Pass,
    Scope,
}

impl TimedKind {
    const ALL: usize = 4;

    /// Returns what a name beyond the limit is counted as.
    fn loss_kind(self) -> LossKind {
        match self {
            TimedKind::Label => LossKind::Labels,
            TimedKind::Kernel => LossKind::Kernels,
            TimedKind::Pass => LossKind::Passes,
            TimedKind::Scope => LossKind::Scopes,
        }
    }
}

/// The number of names that may still get times of their own, over all shards.
#[derive(Debug)]
pub(super) struct Names(AtomicUsize);

impl Names {
    pub fn at_most(names: usize) -> Names {
        Names(AtomicUsize::new(names))
    }

    pub fn reset(&self, names: usize) {
        self.0.store(names, Relaxed);
    }

    /// Takes a name, and returns false where none is left.
    fn take(&self) -> bool {
        let taken = self
            .0
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        taken.is_ok()
    }
}

/// The times of each name.
pub(super) type Times = FxHashMap<Arc<str>, Aggregate>;

/// The entries of some threads.
#[derive(Debug, Default)]
pub(super) struct Shard {
    times: [Times; TimedKind::ALL],
    pub command_buffers: Vec<CommandBufferRow>,
    pub passes: Vec<PassRow>,
    pub dispatches: Vec<DispatchRow>,
    pub scopes: Vec<ScopeRow>,
    /// What was not recorded, and why.
    pub ledger: Ledger,
    /// The reserved numbers for the next command buffers, and those for the next dispatches and passes.
    pub command_buffer_numbers: Block,
    pub dispatch_numbers: Block,
    /// The texts of rows and names, each once.
    texts: FxHashSet<Arc<str>>,
}

impl Shard {
    /// Adds a time under a name.
    #[inline]
    pub fn add(&mut self, kind: TimedKind, name: &str, ns: u64, names: &Names) {
        match self.times[kind as usize].get_mut(name) {
            Some(times) => times.add(ns),
            None => self.add_new(kind, name, ns, names),
        }
    }

    /// Adds a time under a new name or, where there are too many, under [`OTHERS`].
    #[cold]
    fn add_new(&mut self, kind: TimedKind, name: &str, ns: u64, names: &Names) {
        let name = if names.take() {
            self.text(name)
        } else {
            let reason = "more different ones than the limit; their times are together";
            self.ledger.add(kind.loss_kind(), 1, reason);
            self.text(OTHERS)
        };
        let times = self.times[kind as usize].entry(name);
        times.or_insert_with(Aggregate::new).add(ns);
    }

    pub fn times(&self, kind: TimedKind) -> &Times {
        &self.times[kind as usize]
    }

    /// Adds the content of another shard, but for its numbers and texts.
    pub fn merge(&mut self, other: &Shard) {
        for (into, from) in self.times.iter_mut().zip(&other.times) {
            for (name, times) in from {
                match into.get_mut(name) {
                    Some(known) => known.merge(times),
                    None => {
                        into.insert(Arc::clone(name), times.clone());
                    }
                }
            }
        }
        self.command_buffers
            .extend_from_slice(&other.command_buffers);
        self.passes.extend_from_slice(&other.passes);
        self.dispatches.extend_from_slice(&other.dispatches);
        self.scopes.extend_from_slice(&other.scopes);
        self.ledger.merge(&other.ledger);
    }

    /// Sorts the rows by the order in which they were recorded, which is approximate between threads.
    pub fn sort(&mut self) {
        self.command_buffers.sort_unstable_by_key(|r| r.sequence);
        self.passes.sort_unstable_by_key(|r| r.sequence);
        self.dispatches.sort_unstable_by_key(|r| r.sequence);
        self.scopes.sort_unstable_by_key(|r| r.sequence);
    }

    /// Returns the shared copy of a text.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&new));
        new
    }

    /// Keeps a dispatch as a row; `sequence` is its number in the order of rows.
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
}
