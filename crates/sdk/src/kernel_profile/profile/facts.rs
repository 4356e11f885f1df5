//! Adds to a profile what its results say of their clock, their precision and their device.

#[cfg(feature = "wgpu")]
use super::super::info::ClockBounds;
use super::super::{Clock, ClockPair, DeviceInfo, HostTime, NoTime, Sampling};
use super::{Profile, lock};

impl Profile {
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
        self.add_clock_pair(ClockPair::new(cpu_ns, gpu_ticks));
    }

    /// Adds a sample of both clocks.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{ClockPair, Profile};
    /// # let profile = Profile::new();
    /// profile.add_clock_pair(ClockPair::new(5_000, 120).with_error_ns(80));
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
}
