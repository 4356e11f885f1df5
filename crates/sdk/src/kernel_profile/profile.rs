//! The profile type: it adds up GPU times by name and keeps single command buffers, passes and dispatches as rows,
//! each up to a limit. A process has one by default, and may create more.

use super::contents::ProfileContents;
use super::entry::{
    AgreedTimes, CommandBufferEntry, CommandBufferId, DeviceInfo, DispatchEntry, PassEntry,
    Sampling, because,
};
#[cfg(feature = "wgpu")]
use super::info::ClockBounds;
use super::info::ProfileInfo;
use super::rows::{CommandBufferRow, PassRow, ScopeEntry, ScopeRow};
use super::sequence::Sequence;
use super::shard::{Names, SHARDS, Shard, TimedKind, place};
use super::snapshot::Snapshot;
use super::{Clock, ClockPair, HostTime, NoTime, ProfileEntry, host_now_ns};
use gapscope_model::LossKind;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The reason for missing rows.
const NOT_KEPT: &str = "past the limit of rows; their times are added up";

/// The reason for command buffers whose results are on their way.
const NOT_ARRIVED: &str = "their results have not arrived yet: they arrive while the program submits work or polls its device, and `Profiler::wait` waits for them";

/// The limits of a profile. Entries beyond them are still added up if possible, and counted in the losses.
///
/// ```
/// use gapscope_sdk::kernel_profile::{Limits, Profile};
///
/// let sums_only = Profile::with_limits(Limits { dispatches: 0, command_buffers: 0, ..Limits::default() });
/// sums_only.record("step", 5);
/// assert_eq!(sums_only.dump()[0].1.count, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of names with times: labels, kernels and passes, each once for each thread that records it.
    /// A name takes about 10 KiB.
    pub names: usize,
    /// The maximum number of single dispatches and passes, of about 200 bytes each.
    pub dispatches: u64,
    /// The maximum number of single command buffers, of about 200 bytes each.
    pub command_buffers: u64,
    #[doc(hidden)]
    pub more_fields_may_come: (),
}

impl Default for Limits {
    /// Returns 16 384 names (160 MiB at most, and some KiB in most programs), 262 144 dispatches and passes and as
    /// many command buffers (100 MiB at most).
    fn default() -> Limits {
        Limits {
            names: 1 << 14,
            dispatches: 1 << 18,
            command_buffers: 1 << 18,
            more_fields_may_come: (),
        }
    }
}

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

    /// Adds the GPU time of one command buffer (or of any piece of work) under a label.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.record("prefill", 3_000_000); // nanoseconds
    /// ```
    #[inline]
    pub fn record(&self, label: &str, gpu_ns: u64) {
        self.shard()
            .add(TimedKind::Label, label, gpu_ns, &self.names);
    }

    /// Returns the id of a new command buffer. Dispatches that name it are distinguished from those of other command
    /// buffers with the same label.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{DispatchEntry, Profile};
    /// # let profile = Profile::new();
    /// let id = profile.command_buffer();
    /// profile.record_dispatch(DispatchEntry { command_buffer: Some(id), ..DispatchEntry::default() });
    /// ```
    pub fn command_buffer(&self) -> CommandBufferId {
        CommandBufferId(self.ids.fetch_add(1, Relaxed))
    }

    /// Adds a command buffer: its time counts under its label, and it is kept as a row.
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
    pub fn record_command_buffer(&self, entry: CommandBufferEntry) {
        let has_dispatches = entry.dispatches > 0;
        self.record_listed_command_buffer(entry, has_dispatches);
    }

    /// Adds a command buffer as [`Self::record_command_buffer`] does. `has_dispatches` says that it holds dispatches,
    /// listed or not, so that these are compared with its time.
    pub(crate) fn record_listed_command_buffer(
        &self,
        mut entry: CommandBufferEntry,
        has_dispatches: bool,
    ) {
        let mut shard = self.shard();
        match AgreedTimes::new(entry.start_ns, entry.end_ns, None) {
            Ok(times) => {
                let ns = times.duration_ns;
                shard.add(TimedKind::Label, &entry.label, ns, &self.names);
            }
            Err(reason) => {
                (entry.start_ns, entry.end_ns) = (None, None);
                let because = because(&mut entry.unknown_because, reason);
                shard.ledger.add(LossKind::CommandBufferTimes, 1, because);
            }
        }
        let limit = self.limits.command_buffers;
        let numbers = &mut shard.command_buffer_numbers;
        if let Some(sequence) = self.command_buffers.next(numbers, limit) {
            let row = CommandBufferRow {
                sequence,
                entry,
                has_dispatches,
            };
            shard.command_buffers.push(row);
        } else {
            shard.ledger.add(LossKind::CommandBufferRows, 1, NOT_KEPT);
        }
    }

    /// Adds a pass: its time counts under its label, among the passes, and it is kept as a row.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{PassEntry, Profile};
    /// # let profile = Profile::new();
    /// profile.record_pass(PassEntry { label: "attention".into(), gpu_ns: Some(40_000), ..PassEntry::default() });
    /// assert!(profile.dump().is_empty(), "passes are not command buffers");
    /// ```
    pub fn record_pass(&self, mut entry: PassEntry) {
        let mut shard = self.shard();
        match AgreedTimes::new(entry.start_gpu_ns, entry.end_gpu_ns, entry.gpu_ns) {
            Ok(times) => {
                let ns = times.duration_ns;
                entry.gpu_ns = Some(ns);
                (entry.start_gpu_ns, entry.end_gpu_ns) = (times.start_ns, times.end_ns());
                shard.add(TimedKind::Pass, &entry.label, ns, &self.names);
            }
            Err(reason) => {
                (entry.start_gpu_ns, entry.end_gpu_ns) = (None, None);
                entry.gpu_ns = None;
                let because = because(&mut entry.unknown_because, reason);
                shard.ledger.add(LossKind::PassTimes, 1, because);
            }
        }
        let limit = self.limits.dispatches;
        let numbers = &mut shard.dispatch_numbers;
        if let Some(sequence) = self.dispatches.next(numbers, limit) {
            shard.passes.push(PassRow { sequence, entry });
        } else {
            shard.ledger.add(LossKind::PassRows, 1, NOT_KEPT);
        }
    }

    /// Adds a scope: its time counts under its path, and it is kept as a row.
    #[cfg_attr(not(feature = "wgpu"), allow(dead_code))]
    pub(crate) fn record_scope(&self, entry: ScopeEntry) {
        let mut shard = self.shard();
        match entry.gpu_ns {
            Some(ns) => shard.add(TimedKind::Scope, &entry.path.join(" > "), ns, &self.names),
            None => {
                let because = entry.unknown_because.clone();
                shard.ledger.add(LossKind::ScopeTimes, 1, because);
            }
        }
        let limit = self.limits.dispatches;
        let numbers = &mut shard.dispatch_numbers;
        if let Some(sequence) = self.dispatches.next(numbers, limit) {
            shard.scopes.push(ScopeRow { sequence, entry });
        } else {
            shard.ledger.add(LossKind::ScopeRows, 1, NOT_KEPT);
        }
    }

    /// Adds a dispatch: its time counts under its kernel's name, and it is kept as a row.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{DispatchEntry, Profile};
    /// # let profile = Profile::new();
    /// profile.record_dispatch(DispatchEntry { kernel: "gemm".into(), gpu_ns: Some(9_000), ..DispatchEntry::default() });
    /// assert_eq!(profile.snapshot().kernels[0].times.total_ns, 9_000);
    /// ```
    pub fn record_dispatch(&self, mut entry: DispatchEntry) {
        let mut shard = self.shard();
        let (start_ns, duration_ns) =
            match AgreedTimes::new(entry.start_gpu_ns, entry.end_gpu_ns, entry.gpu_ns) {
                Ok(AgreedTimes {
                    start_ns,
                    duration_ns: ns,
                }) => {
                    let name = match entry.kernel.is_empty() {
                        true => &entry.op_kind,
                        false => &entry.kernel,
                    };
                    shard.add(TimedKind::Kernel, name, ns, &self.names);
                    (start_ns, Some(ns))
                }
                Err(reason) => {
                    let because = because(&mut entry.unknown_because, reason);
                    shard.ledger.add(LossKind::DispatchTimes, 1, because);
                    (None, None)
                }
            };
        let limit = self.limits.dispatches;
        let numbers = &mut shard.dispatch_numbers;
        if let Some(sequence) = self.dispatches.next(numbers, limit) {
            shard.keep_dispatch(sequence, &entry, start_ns, duration_ns);
        } else {
            shard.ledger.add(LossKind::DispatchRows, 1, NOT_KEPT);
        }
    }

    /// Counts entries that were not recorded, with their kind as a [`LossKind`] or a text in the plural, and the
    /// reason.
    ///
    /// ```
    /// use gapscope_sdk::kernel_profile::{Loss, LossKind, Profile};
    ///
    /// let profile = Profile::new();
    /// profile.lose("dispatch times", 2, "the sample buffer was full");
    /// let Loss { kind, count, reason } = &profile.snapshot().losses[0];
    /// assert_eq!(*kind, LossKind::DispatchTimes);
    /// assert_eq!(format!("{count} {kind}: {reason}"), "2 dispatch times: the sample buffer was full");
    /// ```
    pub fn lose(
        &self,
        what: impl Into<LossKind>,
        count: u64,
        reason: impl Into<Cow<'static, str>>,
    ) {
        self.shard().ledger.add(what.into(), count, reason);
    }

    /// Adds a sample of both clocks whose error is unknown.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.record_clock_pair(1_000_000, 24);
    /// profile.record_clock_pair(2_000_000, 48);
    /// assert_eq!(profile.convert(24).unwrap().ns, 1_000_000);
    /// ```
    pub fn record_clock_pair(&self, cpu_ns: u64, gpu_ticks: u64) {
        self.add_clock_pair(ClockPair {
            cpu_ns,
            gpu_ticks,
            error_ns: None,
        });
    }

    /// Adds a sample of both clocks.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{ClockPair, Profile};
    /// # let profile = Profile::new();
    /// profile.add_clock_pair(ClockPair { cpu_ns: 5_000, gpu_ticks: 120, error_ns: Some(80) });
    /// ```
    pub fn add_clock_pair(&self, pair: ClockPair) {
        lock(&self.info).clock.add(pair);
    }

    /// Sets the length of a device tick from the driver, with which one clock sample is enough.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.set_nanoseconds_per_tick(1e9 / 24e6);
    /// profile.record_clock_pair(1_000_000, 24);
    /// assert_eq!(profile.convert(48).unwrap().ns, 1_001_000);
    /// ```
    pub fn set_nanoseconds_per_tick(&self, nanoseconds: f64) {
        lock(&self.info).clock.set_nanoseconds_per_tick(nanoseconds);
    }

    /// Converts a device tick to the host's time with its error.
    ///
    /// # Errors
    /// The reason why the time is unknown.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{NoTime, Profile};
    /// assert_eq!(Profile::new().convert(24), Err(NoTime::NoSamples));
    /// ```
    pub fn convert(&self, ticks: u64) -> Result<HostTime, NoTime> {
        lock(&self.info).clock.convert(ticks)
    }

    /// Returns the current clock, to convert many ticks with.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.record_clock_pair(1_000_000, 24);
    /// assert_eq!(profile.clock().pairs().len(), 1);
    /// ```
    pub fn clock(&self) -> Clock {
        lock(&self.info).clock.clone()
    }

    /// Counts a command buffer whose times were mapped by bounds from its submission, with this error; the greatest
    /// error is kept.
    #[cfg(feature = "wgpu")]
    pub(crate) fn add_bound(&self, error_ns: u64) {
        let bounds = &mut lock(&self.info).bounds;
        *bounds = Some(match *bounds {
            None => ClockBounds {
                samples: 1,
                error_ns,
            },
            Some(known) => ClockBounds {
                samples: known.samples + 1,
                error_ns: known.error_ns.max(error_ns),
            },
        });
    }

    /// Sets the sampling mode of the GPU, which every result shows.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{Profile, Sampling};
    /// # let profile = Profile::new();
    /// profile.set_sampling(Sampling::DispatchSerialised);
    /// assert_eq!(profile.snapshot().sampling.as_str(), "dispatch-serialised");
    /// ```
    pub fn set_sampling(&self, sampling: Sampling) {
        lock(&self.info).sampling = sampling;
    }

    /// Sets the device for snapshots and traces.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{DeviceInfo, Profile};
    /// # let profile = Profile::new();
    /// profile.set_device(DeviceInfo { name: "Apple M3 Ultra".into(), ..DeviceInfo::default() });
    /// ```
    pub fn set_device(&self, device: DeviceInfo) {
        lock(&self.info).device = device;
    }

    /// Adds a note that every result shows once.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.note("The first step compiles the kernels.");
    /// profile.note("The first step compiles the kernels.");
    /// assert_eq!(profile.snapshot().notes.len(), 1);
    /// ```
    pub fn note(&self, sentence: impl Into<String>) {
        let (sentence, mut info) = (sentence.into(), lock(&self.info));
        if !info.notes.contains(&sentence) {
            info.notes.push(sentence);
        }
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
