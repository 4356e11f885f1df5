//! A profile: what the process has one of by default, and may have more of.

use super::clock::{Clock, ClockPair, HostTime, NoTime};
use super::entry::{CommandBufferEntry, CommandBufferId, DeviceInfo, DispatchEntry, Sampling};
use super::rows::{CommandBufferRow, DispatchRow};
use super::shard::{SHARDS, Shard, place};
use super::snapshot::Snapshot;
use super::{ProfileEntry, host_now_ns};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a profile keeps at most. What is past it is still added up where it can be, and counted in the losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Different labels, and different kernels, that one thread records: about 10 KiB each.
    pub labels: usize,
    /// Single dispatches: about 150 bytes each.
    pub dispatches: u64,
    /// Single command buffers: about 200 bytes each.
    pub command_buffers: u64,
}

impl Default for Limits {
    /// 4096 labels, 262 144 dispatches and as many command buffers: below 100 MiB of rows.
    fn default() -> Limits {
        Limits {
            labels: 4096,
            dispatches: 1 << 18,
            command_buffers: 1 << 18,
        }
    }
}

/// On a cache line of its own, so that threads do not slow each other down.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Aligned(Mutex<Shard>);

/// GPU times, gathered by any number of threads. See [the module](super).
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
    shards: Box<[Aligned]>,
    limits: Limits,
    /// Orders rows; also counts those that were recorded.
    sequence: AtomicU64,
    dispatches: AtomicU64,
    command_buffers: AtomicU64,
    ids: AtomicU64,
    about: Mutex<About>,
}

/// What is known of the whole.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    pub clock: Clock,
    pub sampling: Sampling,
    pub device: DeviceInfo,
    pub notes: Vec<String>,
    pub since_ns: u64,
    /// An integration that has no clock samples mapped times by bounds: how many, and the greatest error.
    pub bounds: Option<(u64, Option<u64>)>,
}

impl About {
    /// Samples or bounds by which times were mapped.
    pub fn clock_samples(&self) -> u64 {
        self.bounds.map_or(self.clock.pairs().len() as u64, |b| b.0)
    }

    /// The greatest error of a mapped time.
    pub fn clock_error_ns(&self) -> Option<u64> {
        match self.bounds {
            Some((_, error_ns)) => error_ns,
            None => self.clock.error_ns(),
        }
    }
}

/// Everything that was recorded, merged.
pub(super) struct Gathered {
    pub about: About,
    pub merged: Shard,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile::new()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of the program while it recorded leaves numbers that are whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profile {
    /// An empty profile.
    pub fn new() -> Profile {
        Profile::with_limits(Limits::default())
    }

    /// An empty profile that keeps at most so much.
    pub fn with_limits(limits: Limits) -> Profile {
        Profile {
            shards: (0..SHARDS).map(|_| Aligned::default()).collect(),
            limits,
            sequence: AtomicU64::new(0),
            dispatches: AtomicU64::new(0),
            command_buffers: AtomicU64::new(0),
            ids: AtomicU64::new(1),
            about: Mutex::new(About {
                since_ns: host_now_ns(),
                ..About::default()
            }),
        }
    }

    #[inline]
    fn shard(&self) -> MutexGuard<'_, Shard> {
        lock(&self.shards[place()].0)
    }

    /// Adds the GPU time of one command buffer (or of any piece of work) under a label.
    #[inline]
    pub fn record(&self, label: &str, gpu_ns: u64) {
        self.shard().record(label, gpu_ns, self.limits.labels);
    }

    /// A new command buffer's identity: dispatches that name it are told apart from those of other command buffers
    /// with the same label.
    pub fn command_buffer(&self) -> CommandBufferId {
        CommandBufferId(self.ids.fetch_add(1, Relaxed))
    }

    /// Adds one command buffer: its time counts under its label, and it is kept as a row.
    ///
    /// ```
    /// use gapscope_sdk::kernel_profile::{CommandBufferEntry, Profile};
    ///
    /// let profile = Profile::new();
    /// profile.record_command_buffer(CommandBufferEntry {
    ///     id: Some(profile.command_buffer()),
    ///     label: "layer 3".into(),
    ///     start_ns: Some(1_000),
    ///     end_ns: Some(251_000),
    ///     dispatches: 12,
    ///     ..CommandBufferEntry::default()
    /// });
    /// assert_eq!(profile.dump()[0].1.total_ns, 250_000);
    /// ```
    pub fn record_command_buffer(&self, mut entry: CommandBufferEntry) {
        let mut shard = self.shard();
        match duration(entry.start_ns, entry.end_ns, None) {
            Ok(ns) => shard.record(&entry.label, ns, self.limits.labels),
            Err(reason) => {
                (entry.start_ns, entry.end_ns) = (None, None);
                shard.ledger.add("command-buffer times", 1, reason);
            }
        }
        if self.command_buffers.fetch_add(1, Relaxed) < self.limits.command_buffers {
            let sequence = self.sequence.fetch_add(1, Relaxed);
            shard.keep_command_buffer(sequence, entry);
        } else {
            let reason = "past the limit of rows; their times are added up";
            shard.ledger.add("rows of command buffers", 1, reason);
        }
    }

    /// Adds one dispatch: its time counts under its kernel's name, and it is kept as a row.
    pub fn record_dispatch(&self, entry: DispatchEntry) {
        let mut shard = self.shard();
        let (start_ns, duration_ns) =
            match duration(entry.start_gpu_ns, entry.end_gpu_ns, entry.gpu_ns) {
                Ok(ns) => {
                    let name = if entry.kernel.is_empty() {
                        &entry.op_kind
                    } else {
                        &entry.kernel
                    };
                    shard.record_kernel(name, ns, self.limits.labels);
                    (
                        entry.start_gpu_ns.filter(|_| entry.end_gpu_ns.is_some()),
                        Some(ns),
                    )
                }
                Err(reason) => {
                    shard.ledger.add("dispatch times", 1, reason);
                    (None, None)
                }
            };
        if self.dispatches.fetch_add(1, Relaxed) < self.limits.dispatches {
            let sequence = self.sequence.fetch_add(1, Relaxed);
            shard.keep_dispatch(sequence, &entry, start_ns, duration_ns);
        } else {
            let reason = "past the limit of rows; their times are added up";
            shard.ledger.add("rows of dispatches", 1, reason);
        }
    }

    /// Counts something that was not recorded: `what` in the plural, and why.
    ///
    /// ```
    /// use gapscope_sdk::kernel_profile::Profile;
    ///
    /// let profile = Profile::new();
    /// profile.lose("dispatch times", 48, "the sample buffer was full");
    /// assert_eq!(profile.snapshot().losses[0].count, 48);
    /// ```
    pub fn lose(
        &self,
        what: impl Into<Cow<'static, str>>,
        count: u64,
        reason: impl Into<Cow<'static, str>>,
    ) {
        self.shard().ledger.add(what, count, reason);
    }

    /// Adds a sample of both clocks whose error is not known.
    pub fn record_clock_pair(&self, cpu_ns: u64, gpu_ticks: u64) {
        self.add_clock_pair(ClockPair {
            cpu_ns,
            gpu_ticks,
            error_ns: None,
        });
    }

    /// Adds a sample of both clocks.
    pub fn add_clock_pair(&self, pair: ClockPair) {
        lock(&self.about).clock.add(pair);
    }

    /// The length of a device tick, as the driver says it: then one clock sample is enough.
    pub fn set_nanoseconds_per_tick(&self, nanoseconds: f64) {
        lock(&self.about)
            .clock
            .set_nanoseconds_per_tick(nanoseconds);
    }

    /// The host's time of a device tick, with its error.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn convert(&self, ticks: u64) -> Result<HostTime, NoTime> {
        lock(&self.about).clock.convert(ticks)
    }

    /// Times are mapped by bounds from submissions.
    #[cfg(feature = "wgpu")]
    pub(crate) fn set_bounded_clock(&self, samples: u64, error_ns: Option<u64>) {
        lock(&self.about).bounds = Some((samples, error_ns));
    }

    /// How the GPU is sampled: every result says it.
    pub fn set_sampling(&self, sampling: Sampling) {
        lock(&self.about).sampling = sampling;
    }

    /// The device, for snapshots and traces.
    pub fn set_device(&self, device: DeviceInfo) {
        lock(&self.about).device = device;
    }

    /// A sentence that every result shall print, once.
    pub fn note(&self, sentence: impl Into<String>) {
        let (sentence, mut about) = (sentence.into(), lock(&self.about));
        if !about.notes.contains(&sentence) {
            about.notes.push(sentence);
        }
    }

    /// Forgets all times, rows, losses and clock samples, at one moment for all threads. What was said of the device
    /// stays.
    pub fn reset(&self) {
        let mut shards: Vec<_> = self.shards.iter().map(|s| lock(&s.0)).collect();
        for shard in &mut shards {
            **shard = Shard::default();
        }
        self.dispatches.store(0, Relaxed);
        self.command_buffers.store(0, Relaxed);
        let mut about = lock(&self.about);
        about.clock = Clock::default();
        about.bounds = None;
        about.since_ns = host_now_ns();
    }

    /// The labels with their times, the longest in sum first, equal ones by name. Nothing is forgotten.
    pub fn dump(&self) -> Vec<(String, ProfileEntry)> {
        super::snapshot::entries(&self.gather().merged.labels)
    }

    /// The dispatches by the label of their command buffer; see [`super::dump_dispatches`].
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

    /// Everything at this moment: a table when printed, JSON by [`Snapshot::to_json`]. Nothing is forgotten.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.gather())
    }

    /// All shards as one, of one moment, with rows in the order in which they were recorded.
    pub(super) fn gather(&self) -> Gathered {
        let shards: Vec<_> = self.shards.iter().map(|s| lock(&s.0)).collect();
        let about = lock(&self.about).clone();
        let mut merged = Shard::default();
        for shard in &shards {
            for (label, times) in &shard.labels {
                merge(&mut merged.labels, label, times);
            }
            for (kernel, times) in &shard.kernels {
                merge(&mut merged.kernels, kernel, times);
            }
            merged.dispatches.extend_from_slice(&shard.dispatches);
            merged
                .command_buffers
                .extend_from_slice(&shard.command_buffers);
            merged.ledger.merge(&shard.ledger);
        }
        drop(shards);
        merged
            .dispatches
            .sort_unstable_by_key(|row: &DispatchRow| row.sequence);
        merged
            .command_buffers
            .sort_unstable_by_key(|row: &CommandBufferRow| row.sequence);
        let refused = about.clock.refused();
        merged
            .ledger
            .add("clock samples", refused, "they contradict the others");
        Gathered { about, merged }
    }
}

fn merge(
    into: &mut rustc_hash::FxHashMap<Arc<str>, super::aggregate::Aggregate>,
    name: &Arc<str>,
    times: &super::aggregate::Aggregate,
) {
    match into.get_mut(name) {
        Some(known) => known.merge(times),
        None => {
            into.insert(Arc::clone(name), times.clone());
        }
    }
}

/// How long something took; why that is not known otherwise.
fn duration(
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    said_ns: Option<u64>,
) -> Result<u64, &'static str> {
    match (start_ns, end_ns) {
        (Some(0), Some(0)) => Err("the device delivered zeros"),
        (Some(start), Some(end)) if end < start => Err("it ends before it begins"),
        (Some(start), Some(end)) => Ok(end - start),
        _ => said_ns.ok_or("the device delivered none"),
    }
}
