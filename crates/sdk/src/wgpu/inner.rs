//! The state that a profiler shares with its encoders and passes: chunks of queries, names of pipelines, results.

use super::Capability;
use super::batch::Batch;
use super::chunk::{Chunk, MAX_CHUNKS};
use super::clock::DeviceClock;
use crate::kernel_profile::{DeviceInfo, Profile, ProfileHandle};
use ::wgpu::{ComputePipeline, Device, Features};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLock};

/// The shared state. Chunks go from the pool to a batch (a command buffer) and come back once its results were read.
#[derive(Debug)]
pub(super) struct Inner {
    pub device: Device,
    /// The work that is timed.
    pub capability: Capability,
    /// Timestamps may be written between passes.
    encoders: bool,
    /// The nanoseconds of a tick.
    pub period_ns: f64,
    profile: ProfileHandle,
    /// Guards the note about the source of times, which is added once.
    noted: Once,
    pool: Mutex<Pool>,
    /// The batches whose results have arrived and have not been recorded.
    arrived: Mutex<Vec<ArrivedBatch>>,
    pub clock: Mutex<DeviceClock>,
    /// The names of pipelines, which are those of their kernels.
    names: Arc<RwLock<Names>>,
}

/// A batch whose results have arrived.
#[derive(Debug)]
pub(super) struct ArrivedBatch {
    pub batch: Batch,
    /// When the last result arrived, on the host's clock.
    pub seen_ns: u64,
}

/// The names of pipelines, by pipeline.
type Names = HashMap<ComputePipeline, Arc<str>>;

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
    pub fn new(
        device: Device,
        period_ns: f64,
        profile: ProfileHandle,
        most: Capability,
        names: Arc<RwLock<Names>>,
    ) -> Inner {
        let features = device.features();
        Inner {
            device,
            capability: Capability::choose(features, most),
            encoders: features.contains(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS),
            period_ns,
            profile,
            noted: Once::new(),
            pool: Mutex::default(),
            arrived: Mutex::default(),
            clock: Mutex::default(),
            names,
        }
    }

    /// Returns the state of a profiler of the same device with at most this detail; the names of pipelines are shared.
    pub fn at_most(&self, most: Capability) -> Inner {
        let (profile, names) = (self.profile.clone(), Arc::clone(&self.names));
        Inner::new(self.device.clone(), self.period_ns, profile, most, names)
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns true if a command buffer is timed by timestamps of its own.
    pub fn times_encoders(&self) -> bool {
        self.encoders && self.capability != Capability::Nothing
    }

    /// Returns true if passes and dispatches are listed and not only counted.
    pub fn lists_work(&self) -> bool {
        self.capability <= Capability::Passes
    }

    /// Notes the source of times once, before the first result.
    pub fn say(&self) {
        self.noted.call_once(|| {
            let profile = self.profile();
            let info = self.device.adapter_info();
            profile.set_sampling(self.capability.sampling());
            profile.set_device(DeviceInfo {
                api: info.backend.to_string(),
                name: info.name,
                driver: format!("{} {}", info.driver, info.driver_info)
                    .trim()
                    .to_owned(),
            });
            profile.note(self.capability.sentence(self.times_encoders()));
            profile.note("A command buffer is taken to be submitted when its encoder is finished: wgpu does not say when it is.");
        });
    }

    pub fn name_pipeline(&self, pipeline: &ComputePipeline, name: &str) {
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        names.insert(pipeline.clone(), Arc::from(name));
    }

    pub fn name_of(&self, pipeline: &ComputePipeline) -> Option<Arc<str>> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.get(pipeline).cloned()
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

    /// Takes the batches whose results have arrived.
    pub fn take_arrived(&self) -> Vec<ArrivedBatch> {
        std::mem::take(&mut lock(&self.arrived))
    }
}
