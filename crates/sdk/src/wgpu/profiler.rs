//! The profiler of one device.

use super::Capability;
use super::batch::{Batch, Timed, Work};
use super::bounds::{Bounds, Offset};
use super::chunk::{Chunk, MOST_CHUNKS, QUERIES};
use super::encoder::Encoder;
use crate::kernel_profile::{self, CommandBufferEntry, DeviceInfo, DispatchEntry, Profile};
use ::wgpu::{ComputePipeline, ComputePipelineDescriptor, Device, Features, PollType, Queue};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Times the work of one device. Clones share everything. See [the module](super).
#[derive(Debug, Clone)]
pub struct Profiler(pub(super) Arc<Inner>);

/// Where the times go.
#[derive(Debug)]
enum Into {
    Global,
    Own(Arc<Profile>),
}

#[derive(Debug)]
pub(super) struct Inner {
    device: Device,
    pub capability: Capability,
    /// Timestamps may be written between passes.
    pub encoders: bool,
    /// Nanoseconds of a tick.
    period_ns: f64,
    profile: Into,
    pool: Mutex<Pool>,
    arrived: Mutex<Vec<(Batch, u64)>>,
    clock: Mutex<DeviceClock>,
    names: RwLock<HashMap<ComputePipeline, Arc<str>>>,
}

#[derive(Debug, Default)]
struct Pool {
    free: Vec<Chunk>,
    made: u32,
}

#[derive(Debug, Default)]
struct DeviceClock {
    /// The first tick that was seen: later ones are counted from it, so that no precision is lost.
    first: Option<u64>,
    bounds: Bounds,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profiler {
    /// The features to ask for when the device is made, of those that the adapter has.
    ///
    /// ```
    /// use gapscope_sdk::wgpu::Profiler;
    /// use wgpu::Features;
    ///
    /// let has = Features::TIMESTAMP_QUERY | Features::SHADER_F16;
    /// assert_eq!(Profiler::wanted_features(has), Features::TIMESTAMP_QUERY);
    /// ```
    pub fn wanted_features(of_adapter: Features) -> Features {
        of_adapter
            & (Features::TIMESTAMP_QUERY
                | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS
                | Features::TIMESTAMP_QUERY_INSIDE_PASSES)
    }

    /// A profiler that records into the process's own profile ([`kernel_profile::global`]).
    pub fn new(device: &Device, queue: &Queue) -> Profiler {
        Profiler::make(device, queue, Into::Global, Capability::Dispatches)
    }

    /// A profiler that records into `profile`.
    pub fn with_profile(device: &Device, queue: &Queue, profile: Arc<Profile>) -> Profiler {
        Profiler::make(device, queue, Into::Own(profile), Capability::Dispatches)
    }

    /// The same, with no more detail than `most`. Call it before the first encoder is made.
    #[must_use]
    pub fn at_most(&self, most: Capability) -> Profiler {
        let inner = &self.0;
        let profile = match &inner.profile {
            Into::Global => Into::Global,
            Into::Own(profile) => Into::Own(Arc::clone(profile)),
        };
        Profiler::build(&inner.device, inner.period_ns, profile, most)
    }

    fn make(device: &Device, queue: &Queue, profile: Into, most: Capability) -> Profiler {
        Profiler::build(
            device,
            f64::from(queue.get_timestamp_period()),
            profile,
            most,
        )
    }

    fn build(device: &Device, period_ns: f64, profile: Into, most: Capability) -> Profiler {
        let features = device.features();
        let encoders = features
            .contains(Features::TIMESTAMP_QUERY | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);
        let possible = Capability::of(features);
        let capability = match most.max(possible) {
            Capability::CommandBuffers if !encoders => Capability::Nothing,
            capability => capability,
        };
        let info = device.adapter_info();
        let inner = Inner {
            device: device.clone(),
            capability,
            encoders: encoders && capability != Capability::Nothing,
            period_ns,
            profile,
            pool: Mutex::default(),
            arrived: Mutex::default(),
            clock: Mutex::default(),
            names: RwLock::default(),
        };
        let to = inner.profile();
        to.set_sampling(capability.sampling());
        to.set_device(DeviceInfo {
            api: info.backend.to_string(),
            name: info.name,
            driver: format!("{} {}", info.driver, info.driver_info)
                .trim()
                .to_owned(),
        });
        to.note(capability.sentence(inner.encoders));
        to.note("A command buffer is taken to be submitted when its encoder is finished: wgpu does not say when it is.");
        Profiler(Arc::new(inner))
    }

    /// What is timed.
    pub fn capability(&self) -> Capability {
        self.0.capability
    }

    /// Why no more is timed, in a sentence; every result says it too.
    pub fn capability_note(&self) -> &'static str {
        self.0.capability.sentence(self.0.encoders)
    }

    /// The profile that the times go to.
    pub fn profile(&self) -> &Profile {
        self.0.profile()
    }

    /// A command encoder whose compute passes are timed; `label` is that of its command buffer.
    pub fn encoder(&self, label: &str) -> Encoder {
        self.harvest();
        Encoder::new(&self.0, label)
    }

    /// Makes a compute pipeline and remembers its name for its dispatches: its label, else its entry point.
    pub fn create_compute_pipeline(
        &self,
        pipeline: &ComputePipelineDescriptor<'_>,
    ) -> ComputePipeline {
        let made = self.0.device.create_compute_pipeline(pipeline);
        if let Some(name) = pipeline.label.or(pipeline.entry_point) {
            self.name_pipeline(&made, name);
        }
        made
    }

    /// Names the dispatches of a pipeline that was made elsewhere.
    pub fn name_pipeline(&self, pipeline: &ComputePipeline, name: &str) {
        let mut names = self.0.names.write().unwrap_or_else(PoisonError::into_inner);
        names.insert(pipeline.clone(), Arc::from(name));
    }

    /// Records what has arrived; how many command buffers. Nothing is waited for: results arrive while the program
    /// submits to, or polls, its device.
    pub fn harvest(&self) -> usize {
        let arrived = std::mem::take(&mut *lock(&self.0.arrived));
        let count = arrived.len();
        for (batch, seen_ns) in arrived {
            self.0.record(batch, seen_ns);
        }
        count
    }

    /// Waits until everything that was submitted has finished, and records it.
    ///
    /// # Errors
    /// What wgpu said; what has arrived is recorded.
    pub fn wait(&self) -> Result<usize, ::wgpu::PollError> {
        let polled = self.0.device.poll(PollType::wait_indefinitely());
        let harvested = self.harvest();
        polled.map(|_| harvested)
    }
}

impl Inner {
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub fn profile(&self) -> &Profile {
        match &self.profile {
            Into::Global => kernel_profile::global(),
            Into::Own(profile) => profile,
        }
    }

    pub fn name_of(&self, pipeline: &ComputePipeline) -> Option<Arc<str>> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.get(pipeline).cloned()
    }

    /// A chunk to write timestamps to.
    pub fn take_chunk(&self) -> Option<Chunk> {
        let mut pool = lock(&self.pool);
        if let Some(chunk) = pool.free.pop() {
            return Some(chunk);
        }
        if pool.made >= MOST_CHUNKS {
            return None;
        }
        let chunk = Chunk::new(&self.device)?;
        pool.made += 1;
        Some(chunk)
    }

    /// All results of a batch are mapped.
    pub fn arrived(&self, batch: Batch, seen_ns: u64) {
        lock(&self.arrived).push((batch, seen_ns));
    }

    /// The results of a batch will never come.
    pub fn lost(&self, batch: Batch, reason: &'static str) {
        let profile = self.profile();
        profile.lose("command-buffer times", 1, reason);
        profile.lose("dispatch times", batch.dispatches.into(), reason);
        // Whether its buffers are still mapped is not known: they are not used again.
        lock(&self.pool).made -= batch.chunks.len() as u32;
    }

    /// A batch that nothing was timed in.
    pub fn untimed(&self, batch: &Batch) {
        let reason = match self.capability {
            Capability::Nothing => "the device has no timestamps, or was made without them",
            Capability::CommandBuffers => "the program asked for command buffers only",
            _ if batch.work.is_empty() => return,
            _ => "no memory for timestamps could be had",
        };
        let profile = self.profile();
        if self.capability != Capability::CommandBuffers {
            profile.lose("command-buffer times", 1, reason);
        }
        profile.lose("dispatch times", batch.dispatches.into(), reason);
    }

    /// Records what a batch's queries hold.
    fn record(&self, mut batch: Batch, seen_ns: u64) {
        let mut ticks = Vec::with_capacity(batch.chunks.len() * QUERIES as usize);
        let mut readable = true;
        for chunk in &batch.chunks {
            ticks.resize(ticks.len().next_multiple_of(QUERIES as usize), 0);
            match chunk.readable.get_mapped_range(0..chunk.bytes()) {
                Ok(view) => {
                    let (words, _) = view.as_chunks::<8>();
                    ticks.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
                }
                Err(_) => readable = false,
            }
            chunk.readable.unmap();
        }
        let chunks = std::mem::take(&mut batch.chunks);
        lock(&self.pool)
            .free
            .extend(chunks.into_iter().map(|mut chunk| {
                chunk.used = 0;
                chunk
            }));
        if !readable {
            let profile = self.profile();
            let reason = "the results could not be read";
            profile.lose("command-buffer times", 1, reason);
            profile.lose("dispatch times", batch.dispatches.into(), reason);
            return;
        }
        self.record_ticks(&batch, &ticks, seen_ns);
    }

    fn record_ticks(&self, batch: &Batch, ticks: &[u64], seen_ns: u64) {
        let profile = self.profile();
        let mut clock = lock(&self.clock);
        let interval = |clock: &mut DeviceClock, pair: Option<u32>| {
            let first = pair? as usize;
            let start = clock.device_ns(*ticks.get(first)?, self.period_ns)?;
            let end = clock.device_ns(*ticks.get(first + 1)?, self.period_ns)?;
            (start <= end).then_some((start, end))
        };
        let whole = interval(&mut clock, batch.whole);
        let intervals: Vec<_> = batch
            .work
            .iter()
            .map(|work| interval(&mut clock, work.pair))
            .collect();
        // Without timestamps of its own, from the first to the last that is known.
        let hull = intervals.iter().flatten().copied();
        let hull = hull.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
        let extent = whole.or(hull);
        let offset = extent.and_then(|e| clock.bounds.add(e, batch.finished_ns, seen_ns));
        let (samples, error_ns) = (clock.bounds.samples, clock.bounds.worst_ns);
        drop(clock);
        profile.set_bounded_clock(samples, error_ns);
        let host = |(start, end): (u64, u64), offset: Offset| {
            Some((offset.host_ns(start)?, offset.host_ns(end)?))
        };
        let placed = extent.zip(offset).and_then(|(e, o)| host(e, o));
        profile.record_command_buffer(CommandBufferEntry {
            id: Some(batch.id),
            label: Cow::Owned(batch.label.to_string()),
            start_ns: placed.map(|(start, _)| start),
            end_ns: placed.map(|(_, end)| end),
            submitted_ns: Some(batch.finished_ns),
            seen_ns: Some(seen_ns),
            dispatches: batch.dispatches,
            ..CommandBufferEntry::default()
        });
        for (work, device) in batch.work.iter().zip(intervals) {
            let placed = device.zip(offset).and_then(|(d, o)| host(d, o));
            self.record_work(batch, work, device, placed);
        }
    }

    fn record_work(
        &self,
        batch: &Batch,
        timed: &Timed,
        device: Option<(u64, u64)>,
        placed: Option<(u64, u64)>,
    ) {
        let profile = self.profile();
        match &timed.what {
            Work::Pass { label, dispatches } => {
                match device {
                    Some((start, end)) => profile.record(&format!("pass {label}"), end - start),
                    None => profile.lose("pass times", 1, "no timestamps could be had for it"),
                }
                // A pass of one dispatch is that dispatch, and has been recorded as it.
                if *dispatches > 1 {
                    let reason = "only the times of their passes can be had here";
                    profile.lose("dispatch times", (*dispatches).into(), reason);
                }
            }
            Work::Dispatch {
                kernel,
                label,
                groups,
                index,
            } => profile.record_dispatch(DispatchEntry {
                cb_label: Cow::Owned(batch.label.to_string()),
                command_buffer: Some(batch.id),
                op_kind: Cow::Owned(label.to_string()),
                kernel: Cow::Owned(kernel.to_string()),
                dispatch_index: *index,
                groups: *groups,
                group_size: None,
                // How long it took is known even where its place on the host's clock is not.
                gpu_ns: device.map(|(start, end)| end - start),
                start_gpu_ns: placed.map(|(start, _)| start),
                end_gpu_ns: placed.map(|(_, end)| end),
            }),
        }
    }
}

impl DeviceClock {
    /// Nanoseconds of the device's clock. `None` for 0, which drivers deliver for nothing.
    fn device_ns(&mut self, ticks: u64, period_ns: f64) -> Option<u64> {
        if ticks == 0 {
            return None;
        }
        let first = *self.first.get_or_insert(ticks);
        // From a second before the first, so that what ran before it has a place as well.
        let base_ns = 1_000_000_000_i128;
        let since = i128::from(ticks) - i128::from(first);
        let ns = if period_ns == 1.0 {
            since
        } else {
            (since as f64 * period_ns).round() as i128
        };
        u64::try_from(base_ns + ns).ok()
    }
}
