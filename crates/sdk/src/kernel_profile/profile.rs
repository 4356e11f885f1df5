//! The profile type: it adds up GPU times by name and keeps single command buffers, passes and dispatches as rows,
//! each up to a limit. A process has one by default, and may create more.

mod facts;
mod recording;

use super::contents::ProfileContents;
use super::entry::DispatchEntry;
use super::info::ProfileInfo;
use super::limits::Limits;
use super::sequence::Sequence;
use super::shard::{Names, SHARDS, Shard, TimedKind, place};
use super::snapshot::Snapshot;
use super::{Clock, ProfileEntry, host_now_ns};
use gapscope_model::LossKind;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The reason for command buffers whose results are on their way.
const NOT_ARRIVED: &str = "their results have not arrived yet: they arrive while the program submits work or polls its device, and `Profiler::wait` waits for them";

/// A shard (the entries of some threads) on a cache line of its own, so that threads do not slow each other down.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Aligned(Mutex<Shard>);

/// A profile of GPU times that any number of threads record. See [the module](super).
///
/// ```
/// use gapscope_sdk::kernel_profile::Profile;
///
/// let profile = Profile::new(); // besides the process's own
/// profile.record("prefill", 3_000_000);
/// profile.record("prefill", 5_000_000);
/// let (label, times) = &profile.dump()[0];
/// assert_eq!((label.as_str(), times.count, times.max_ns), ("prefill", 2, 5_000_000));
/// ```
#[derive(Debug)]
pub struct Profile {
    /// The entries, by thread: each thread records to one shard.
    shards: Box<[Aligned]>,
    limits: Limits,
    /// How many more names may get times of their own.
    names: Names,
    /// The numbers that order the rows of dispatches and passes.
    dispatches: Sequence,
    /// The numbers that order the rows of command buffers.
    command_buffers: Sequence,
    /// The id of the next command buffer.
    ids: AtomicU64,
    info: Mutex<ProfileInfo>,
    /// The integrations whose results are taken before the profile shows any.
    sources: Mutex<Vec<Weak<dyn Source>>>,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile::new()
    }
}

/// An integration whose results arrive by themselves, and are recorded when somebody asks for them.
pub(crate) trait Source: std::fmt::Debug + Send + Sync {
    /// Records the results that have arrived.
    fn harvest(&self);

    /// Returns the number of command buffers that were finished and whose results have not arrived.
    fn in_flight(&self) -> u64;
}

/// Locks a mutex, also after a panic under it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of the program while it recorded leaves consistent numbers.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profile {
    /// Creates an empty profile.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// assert!(Profile::new().dump().is_empty());
    /// ```
    pub fn new() -> Profile {
        Profile::with_limits(Limits::default())
    }

    /// Creates an empty profile with other limits.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{Limits, Profile};
    /// let small = Profile::with_limits(Limits { dispatches: 1_000, ..Limits::default() });
    /// ```
    pub fn with_limits(limits: Limits) -> Profile {
        Profile {
            shards: (0..SHARDS).map(|_| Aligned::default()).collect(),
            limits,
            names: Names::at_most(limits.names),
            dispatches: Sequence::default(),
            command_buffers: Sequence::default(),
            ids: AtomicU64::new(1),
            info: Mutex::new(ProfileInfo {
                since_ns: host_now_ns(),
                ..ProfileInfo::default()
            }),
            sources: Mutex::default(),
        }
    }

    /// Locks the shard of the calling thread.
    #[inline]
    fn shard(&self) -> MutexGuard<'_, Shard> {
        lock(&self.shards[place()].0)
    }

    /// Forgets all times, rows, losses and clock samples, at one moment for all threads. The facts about the device
    /// stay.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.record("warm-up", 9_000_000);
    /// profile.reset();
    /// assert!(profile.dump().is_empty());
    /// ```
    pub fn reset(&self) {
        self.harvest();
        let mut shards: Vec<_> = self.shards.iter().map(|s| lock(&s.0)).collect();
        for shard in &mut shards {
            **shard = Shard::default();
        }
        self.names.reset(self.limits.names);
        self.dispatches.reset();
        self.command_buffers.reset();
        let mut info = lock(&self.info);
        info.clock = Clock::default();
        info.bounds = None;
        info.since_ns = host_now_ns();
    }

    /// Returns the labels with their times; the greatest sum is first, and equal sums are ordered by name. Nothing is
    /// forgotten.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.record("embed", 10);
    /// profile.record("attention", 30);
    /// let labels: Vec<String> = profile.dump().into_iter().map(|(label, _)| label).collect();
    /// assert_eq!(labels, ["attention", "embed"]);
    /// ```
    pub fn dump(&self) -> Vec<(String, ProfileEntry)> {
        super::snapshot::entries(self.gather().merged.times(TimedKind::Label))
    }

    /// Returns the dispatches by the label of their command buffer; see [`super::dump_dispatches`].
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{DispatchEntry, Profile};
    /// # let profile = Profile::new();
    /// profile.record_dispatch(DispatchEntry { cb_label: "step".into(), gpu_ns: Some(5), ..DispatchEntry::default() });
    /// let (label, dispatches) = &profile.dump_dispatches()[0];
    /// assert_eq!((label.as_str(), dispatches[0].gpu_ns), ("step", Some(5)));
    /// ```
    pub fn dump_dispatches(&self) -> Vec<(String, Vec<DispatchEntry>)> {
        let merged = self.gather().merged;
        let mut groups: Vec<(Arc<str>, Vec<DispatchEntry>)> = Vec::new();
        let mut places = rustc_hash::FxHashMap::default();
        for row in &merged.dispatches {
            let place = *places.entry(Arc::clone(&row.cb_label)).or_insert_with(|| {
                groups.push((Arc::clone(&row.cb_label), Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(row.entry());
        }
        groups
            .into_iter()
            .map(|(label, entries)| (label.to_string(), entries))
            .collect()
    }

    /// Returns the content at this moment, which prints as a table and converts to JSON with [`Snapshot::to_json`].
    /// Nothing is forgotten.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.record("step", 1_500_000);
    /// print!("{}", profile.snapshot());
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.gather())
    }

    /// Adds an integration.
    #[cfg_attr(not(feature = "wgpu"), allow(dead_code))]
    pub(crate) fn add_source(&self, source: Weak<dyn Source>) {
        let mut sources = lock(&self.sources);
        sources.retain(|source| source.strong_count() > 0);
        sources.push(source);
    }

    /// Records the results that have arrived at integrations; returns the number of command buffers in flight.
    fn harvest(&self) -> u64 {
        // Without the lock, because recording may make and drop integrations.
        let sources = lock(&self.sources).clone();
        let sources = sources.iter().filter_map(Weak::upgrade);
        let in_flight = sources.map(|source| {
            source.harvest();
            source.in_flight()
        });
        in_flight.sum()
    }

    /// Merges all shards at one moment, with rows in their order ([`Shard::sort`]).
    pub(super) fn gather(&self) -> ProfileContents {
        let in_flight = self.harvest();
        let shards: Vec<_> = self.shards.iter().map(|s| lock(&s.0)).collect();
        let info = lock(&self.info).clone();
        let mut merged = Shard::default();
        for shard in &shards {
            merged.merge(shard);
        }
        drop(shards);
        merged.sort();
        let refused = info.clock.refused();
        merged.ledger.add(
            LossKind::ClockSamples,
            refused,
            "they contradict the others",
        );
        merged
            .ledger
            .add(LossKind::CommandBuffers, in_flight, NOT_ARRIVED);
        ProfileContents { info, merged }
    }
}
