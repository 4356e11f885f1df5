//! The state that a profiler shares with its encoders and passes: chunks of queries, names of pipelines, results.

use super::Capability;
use super::batch::Batch;
use super::chunk::{Chunk, MAX_CHUNKS};
use super::clock::DeviceClock;
use super::names::PipelineNames;
use crate::kernel_profile::Source;
use crate::kernel_profile::{DeviceInfo, Profile, ProfileHandle};
use ::wgpu::{ComputePipeline, Device, Features};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLock};

/// The shared state. Chunks go from the pool to a batch (a command buffer) and come back once its results were read.
#[derive(Debug)]
pub(super) struct Inner {
    pub device: Device,
    /// The work that is timed.
    pub capability: Capability,
    /// The most that the program wants to be timed.
    most: Capability,
    /// The features of the device.
    features: Features,
    /// The nanoseconds of a tick.
    pub period_ns: f64,
    profile: ProfileHandle,
    /// Guards the note about the source of times, which is added once.
    noted: Once,
    pool: Mutex<Pool>,
    /// The batches whose results have arrived and have not been recorded.
    arrived: Mutex<Vec<ArrivedBatch>>,
    pub clock: Mutex<DeviceClock>,
    /// The number of batches that were finished and whose results have not arrived.
    in_flight: AtomicU64,
    shared: Arc<Shared>,
}

/// The state that profilers of one device share, whatever they time.
#[derive(Debug)]
struct Shared {
    /// The names of pipelines, which are those of their kernels.
    names: RwLock<PipelineNames>,
    /// True while anything is timed and listed.
    enabled: AtomicBool,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            names: RwLock::default(),
            enabled: AtomicBool::new(true),
        }
    }
}

/// A batch whose results have arrived.
#[derive(Debug)]
pub(super) struct ArrivedBatch {
    pub batch: Batch,
    /// When the last result arrived, on the host's clock.
    pub seen_ns: u64,
}

/// The unused chunks, and how many chunks there are in all.
#[derive(Debug, Default)]
struct Pool {
    free: Vec<Chunk>,
    /// The number of chunks in all, at most [`MAX_CHUNKS`].
    made: u32,
}

/// Locks a mutex, also after a panic under it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Makes the state of a profiler of all that the device can time.
    pub fn new(device: Device, period_ns: f64, profile: ProfileHandle) -> Arc<Inner> {
        let most = Capability::Dispatches;
        Inner::register(device, period_ns, profile, most, Arc::default())
    }

    /// Makes the state, whose results the profile takes before it shows any.
    fn register(
        device: Device,
        period_ns: f64,
        profile: ProfileHandle,
        most: Capability,
        shared: Arc<Shared>,
    ) -> Arc<Inner> {
        let features = device.features();
        let inner = Arc::new(Inner {
            device,
            capability: Capability::choose(features, most),
            most,
            features,
            period_ns,
            profile,
            noted: Once::new(),
            pool: Mutex::default(),
            arrived: Mutex::default(),
            clock: Mutex::default(),
            in_flight: AtomicU64::new(0),
            shared,
        });
        let source: Arc<dyn Source> = inner.clone();
        inner.profile.add_source(Arc::downgrade(&source));
        inner
    }

    /// Returns the state of a profiler of the same device with at most this detail; the names of pipelines and the
    /// switch are shared.
    pub fn at_most(&self, most: Capability) -> Arc<Inner> {
        let (profile, shared) = (self.profile.clone(), Arc::clone(&self.shared));
        Inner::register(self.device.clone(), self.period_ns, profile, most, shared)
    }

    /// Returns true if the program wants no times although the device has timestamps.
    pub fn wants_nothing(&self) -> bool {
        self.most == Capability::Nothing
    }

    pub fn is_enabled(&self) -> bool {
        self.shared.enabled.load(Relaxed)
    }

    pub fn set_enabled(&self, enabled: bool) {
        self.shared.enabled.store(enabled, Relaxed);
    }

    /// Returns true if the device was made with these features.
    pub fn has(&self, features: Features) -> bool {
        self.features.contains(features)
    }

    /// Returns the sentence about the source of times.
    pub fn sentence(&self) -> &'static str {
        self.capability.sentence(self.times_encoders(), self.most)
    }

    /// Counts a batch whose results are to arrive.
    pub fn expect_results(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// Counts a batch whose results have arrived, or will never arrive.
    pub fn expect_no_more(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    /// Records the results that have arrived; returns the number of batches.
    pub fn record_all_arrived(&self) -> usize {
        let arrived = std::mem::take(&mut *lock(&self.arrived));
        let count = arrived.len();
        for ArrivedBatch { batch, seen_ns } in arrived {
            self.record_arrived(batch, seen_ns);
        }
        count
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns true if a command buffer is timed by timestamps of its own.
    pub fn times_encoders(&self) -> bool {
        self.has(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
            && self.capability != Capability::Nothing
    }

    /// Returns true if passes and dispatches are listed and not only counted.
    pub fn lists_work(&self) -> bool {
        self.capability <= Capability::Passes
    }

    /// Notes the device and the source of times once, before the first result.
    pub fn say(&self) {
        self.noted.call_once(|| {
            let profile = self.profile();
            profile.set_sampling(self.capability.sampling());
            self.say_device();
            profile.note(self.sentence());
            profile.note("A command buffer is taken to be submitted when its encoder is finished: wgpu does not say when it is.");
        });
    }

    /// Notes the device and the source of the times of scopes.
    pub fn say_of_scopes(&self) {
        self.say_device();
        self.profile().note("The program's scopes were timed by timestamps at their starts and ends; a command buffer of scopes is from its first scope to its last.");
    }

    /// Notes the device.
    fn say_device(&self) {
        let info = self.device.adapter_info();
        self.profile().set_device(DeviceInfo {
            api: info.backend.to_string(),
            name: info.name,
            driver: format!("{} {}", info.driver, info.driver_info)
                .trim()
                .to_owned(),
            ..DeviceInfo::default()
        });
    }

    pub fn name_pipeline(&self, pipeline: &ComputePipeline, name: &str) {
        let names = self.shared.names.write();
        let mut names = names.unwrap_or_else(PoisonError::into_inner);
        names.insert(pipeline, name);
    }

    pub fn name_of(&self, pipeline: &ComputePipeline) -> Option<Arc<str>> {
        let names = self.shared.names.read();
        names.unwrap_or_else(PoisonError::into_inner).name(pipeline)
    }

    /// Takes an unused chunk for timestamps, or makes one; `None` at the limit, or if the device refuses.
    pub fn take_chunk(&self) -> Option<Chunk> {
        let mut pool = lock(&self.pool);
        if let Some(chunk) = pool.free.pop() {
            return Some(chunk);
        }
        if pool.made >= MAX_CHUNKS {
            return None;
        }
        let chunk = Chunk::new(&self.device)?;
        pool.made += 1;
        Some(chunk)
    }

    /// Returns chunks whose results were read.
    pub fn give_back(&self, chunks: Vec<Chunk>) {
        let free = chunks.into_iter().map(Chunk::emptied);
        lock(&self.pool).free.extend(free);
    }

    /// Drops chunks that cannot be used again, because it is unknown whether they are still mapped.
    pub fn give_up(&self, chunks: Vec<Chunk>) {
        lock(&self.pool).made -= chunks.len() as u32;
    }

    /// Records that all results of a batch are mapped.
    pub fn arrived(&self, batch: Batch, seen_ns: u64) {
        lock(&self.arrived).push(ArrivedBatch { batch, seen_ns });
    }
}

impl Source for Inner {
    fn harvest(&self) {
        self.record_all_arrived();
    }

    fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }
}

impl Drop for Inner {
    /// Records what arrived and was not asked for.
    fn drop(&mut self) {
        self.record_all_arrived();
    }
}
