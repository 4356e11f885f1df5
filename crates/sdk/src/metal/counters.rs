//! Samples the timestamp counter of a device: buffers of samples, which are taken in pairs for the start and the end
//! of a piece of work, read when the command buffer has ended.

use crate::kernel_profile::{ClockPair, host_now_ns};

/// The number of samples in a buffer: Metal allows 32 768 bytes, and a timestamp has 8.
///
/// ```
/// assert_eq!(gapscope_sdk::metal::SAMPLES_PER_BUFFER * 8, 32_768);
/// ```
pub const SAMPLES_PER_BUFFER: u32 = 4096;

/// The value that Metal writes for a failed sample (`MTLCounterErrorValue`).
const ERROR_VALUE: u64 = u64::MAX;

/// A device's timestamp counters. `Device` has Metal's; an implementation for another clock:
///
/// ```
/// use gapscope_sdk::{kernel_profile::host_now_ns, metal::{Clocks, CounterError, Counters}};
///
/// /// Ticks of 24 MHz, by the host's clock.
/// struct Ticks;
///
/// impl Counters for Ticks {
///     type Buffer = ();
///     fn allocate(&self) -> Result<(), CounterError> { Err(CounterError::NoTimestamps) }
///     fn resolve(&self, _: &(), _: u32) -> Result<Vec<u64>, CounterError> { Ok(Vec::new()) }
///     fn clocks(&self) -> Clocks {
///         let cpu_ns = host_now_ns();
///         Clocks::new(cpu_ns, cpu_ns * 3 / 125)
///     }
/// }
/// let pair = Ticks.clock_pair();
/// assert!(pair.error_ns.is_some());
/// ```
pub trait Counters: Send + Sync {
    /// A buffer of samples.
    type Buffer: Clone + Send + Sync;

    /// Creates a buffer of [`SAMPLES_PER_BUFFER`] samples. Devices have few of them.
    ///
    /// # Errors
    /// The error of Metal.
    fn allocate(&self) -> Result<Self::Buffer, CounterError>;

    /// Reads the first `count` samples of a buffer after its command buffer has ended.
    ///
    /// # Errors
    /// The reason why they cannot be read.
    fn resolve(&self, buffer: &Self::Buffer, count: u32) -> Result<Vec<u64>, CounterError>;

    /// Reads both clocks at one moment (`sampleTimestamps`).
    fn clocks(&self) -> Clocks;

    /// Reads both clocks, with the maximum distance of the two readings.
    fn clock_pair(&self) -> ClockPair {
        let before = host_now_ns();
        let Clocks { cpu_ns, gpu_ticks } = self.clocks();
        let after = host_now_ns();
        // The host's reading lies in between if it has the right clock and unit. The device's reading was taken in
        // between in any case.
        let cpu_ns = match (before..=after).contains(&cpu_ns) {
            true => cpu_ns,
            false => before + (after - before) / 2,
        };
        ClockPair::new(cpu_ns, gpu_ticks).with_error_ns((cpu_ns - before).max(after - cpu_ns))
    }
}

/// An error of a device's counters.
///
/// ```
/// # use gapscope_sdk::metal::CounterError;
/// assert_eq!(CounterError::PartialSamples(9).to_string(), "Metal gave 9 bytes, which are not whole samples");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CounterError {
    /// The device has no counter set `timestamp`.
    #[error("the device has no timestamp counters")]
    NoTimestamps,
    /// Metal returned no samples.
    #[error("Metal gave no data")]
    NoData,
    /// Metal returned this number of bytes, which is no multiple of a sample's size.
    #[error("Metal gave {0} bytes, which are not whole samples")]
    PartialSamples(usize),
    /// The device or its driver reported this error.
    #[error("{0}")]
    Device(String),
}

/// Readings of the host's clock and the device's at one moment.
///
/// ```
/// # use gapscope_sdk::metal::Clocks;
/// let clocks = Clocks::new(1_000_000_000, 24_000_000);
/// assert_eq!(clocks.gpu_ticks, 24_000_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clocks {
    /// The host's clock in nanoseconds.
    pub cpu_ns: u64,
    /// The device's clock in ticks.
    pub gpu_ticks: u64,
}

impl Clocks {
    /// Makes the readings of the host's clock, in nanoseconds, and of the device's, in ticks.
    ///
    /// ```
    /// # use gapscope_sdk::metal::Clocks;
    /// assert_eq!(Clocks::new(1_000, 24).cpu_ns, 1_000);
    /// ```
    pub const fn new(cpu_ns: u64, gpu_ticks: u64) -> Clocks {
        Clocks { cpu_ns, gpu_ticks }
    }
}

/// The indices in a buffer of the two samples of a piece of work.
///
/// ```
/// use gapscope_sdk::metal::{Counters, Samples};
///
/// fn one<C: Counters>(counters: &C) {
///     let mut samples = Samples::<C>::default();
///     let Ok(slot) = samples.take(counters) else { return };
///     // … the GPU samples at slot.pair.start() and slot.pair.end() of slot.buffer …
///     match samples.resolve(counters).at(slot.pair) {
///         Ok(sampled) => println!("{} ticks", sampled.end - sampled.start),
///         Err(why) => println!("{why}"),
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePair {
    /// The index of the buffer among those of the command buffer.
    buffer: usize,
    /// The index of the first sample in the buffer.
    first: u32,
}

impl SamplePair {
    /// Returns the index of the sample at the start.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, SamplePair, Samples};
    /// # fn example(pair: SamplePair) {
    /// assert_eq!(pair.start() + 1, pair.end());
    /// # }
    /// ```
    pub fn start(self) -> u32 {
        self.first
    }

    /// Returns the index of the sample at the end.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, SamplePair, Samples};
    /// # fn example(pair: SamplePair) {
    /// println!("the end's sample is number {}", pair.end());
    /// # }
    /// ```
    pub fn end(self) -> u32 {
        self.first + 1
    }
}

/// The start and end of a piece of work in the device's ticks.
///
/// ```
/// # use gapscope_sdk::metal::Sampled;
/// let Sampled { start, end, .. } = Sampled::from_ticks(24, 48).unwrap();
/// assert_eq!(end - start, 24);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sampled {
    /// The tick of the start.
    pub start: u64,
    /// The tick of the end.
    pub end: u64,
}

/// A reason why a piece of work has no times.
///
/// ```
/// # use gapscope_sdk::metal::{Sampled, Unsampled};
/// assert_eq!(Sampled::from_ticks(48, 24), Err(Unsampled::Backwards));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsampled {
    /// There was no buffer for the samples.
    #[error("Metal gave no buffer for counter samples ({0})")]
    NoBuffer(CounterError),
    /// The samples could not be read.
    #[error("the counter samples could not be read ({0})")]
    NotResolved(CounterError),
    /// Metal marked a sample as failed.
    #[error("the GPU failed to sample its counter (MTLCounterErrorValue)")]
    ErrorValue,
    /// A sample is zero.
    #[error("the GPU delivered zero for its clock, as on macOS 26")]
    Zero,
    /// The end is before the start.
    #[error("the GPU's clock ran backwards between the two samples")]
    Backwards,
    /// Metal returned fewer samples than were asked for.
    #[error("Metal gave fewer counter samples than it took")]
    Missing,
}

impl Sampled {
    /// Returns the ticks of two samples.
    ///
    /// # Errors
    /// The reason why the samples are not usable.
    ///
    /// ```
    /// use gapscope_sdk::metal::{Sampled, Unsampled};
    ///
    /// assert_eq!(Sampled::from_ticks(24, 48).map(|sampled| sampled.end), Ok(48));
    /// assert_eq!(Sampled::from_ticks(0, 0), Err(Unsampled::Zero));
    /// assert_eq!(Sampled::from_ticks(24, u64::MAX), Err(Unsampled::ErrorValue));
    /// ```
    pub fn from_ticks(start: u64, end: u64) -> Result<Sampled, Unsampled> {
        match (start, end) {
            (ERROR_VALUE, _) | (_, ERROR_VALUE) => Err(Unsampled::ErrorValue),
            (0, _) | (_, 0) => Err(Unsampled::Zero),
            (start, end) if end < start => Err(Unsampled::Backwards),
            (start, end) => Ok(Sampled { start, end }),
        }
    }
}

/// Two samples for a piece of work and their buffer; [`Samples::take`] returns it.
///
/// ```
/// # use gapscope_sdk::metal::SampleSlot;
/// fn indices<B>(slot: &SampleSlot<B>) -> [u32; 2] {
///     [slot.pair.start(), slot.pair.end()]
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleSlot<B> {
    /// The indices of the samples in the buffer.
    pub pair: SamplePair,
    /// The buffer.
    pub buffer: B,
}

/// The samples of one command buffer, in as many buffers as they need.
///
/// ```
/// use gapscope_sdk::metal::{Counters, Samples};
///
/// fn one<C: Counters>(counters: &C) {
///     let mut samples = Samples::<C>::default();
///     let Ok(slot) = samples.take(counters) else { return };
///     // … the GPU samples at slot.pair.start() and slot.pair.end() of slot.buffer …
///     match samples.resolve(counters).at(slot.pair) {
///         Ok(sampled) => println!("{} ticks", sampled.end - sampled.start),
///         Err(why) => println!("{why}"),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Samples<C: Counters> {
    /// The buffers, in the order in which they were taken.
    buffers: Vec<TakenBuffer<C::Buffer>>,
    /// Why no more buffers are asked for; `None` so far.
    refused: Option<CounterError>,
}

/// A buffer of which the first samples are taken.
#[derive(Debug)]
struct TakenBuffer<B> {
    buffer: B,
    /// The number of samples that are taken.
    used: u32,
}

impl<C: Counters> Default for Samples<C> {
    fn default() -> Samples<C> {
        Samples {
            buffers: Vec::new(),
            refused: None,
        }
    }
}

impl<C: Counters> Samples<C> {
    /// Takes two samples for a piece of work.
    ///
    /// # Errors
    /// There is no buffer. No further buffer is asked for in this command buffer.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, SamplePair, Samples};
    /// # fn example<C: Counters>(samples: &mut Samples<C>, counters: &C) {
    /// if let Err(why) = samples.take(counters) {
    ///     println!("not sampled: {why}");
    /// }
    /// # }
    /// ```
    pub fn take(&mut self, counters: &C) -> Result<SampleSlot<C::Buffer>, Unsampled> {
        if let Some(reason) = &self.refused {
            return Err(Unsampled::NoBuffer(reason.clone()));
        }
        let full = |last: &TakenBuffer<C::Buffer>| last.used + 2 > SAMPLES_PER_BUFFER;
        if self.buffers.last().is_none_or(full) {
            match counters.allocate() {
                Ok(buffer) => self.buffers.push(TakenBuffer { buffer, used: 0 }),
                Err(reason) => {
                    self.refused = Some(reason.clone());
                    return Err(Unsampled::NoBuffer(reason));
                }
            }
        }
        let index = self.buffers.len() - 1;
        let last = &mut self.buffers[index];
        let pair = SamplePair {
            buffer: index,
            first: last.used,
        };
        last.used += 2;
        Ok(SampleSlot {
            pair,
            buffer: last.buffer.clone(),
        })
    }

    /// Reads all samples after the command buffer has ended.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, SamplePair, Samples};
    /// # fn example<C: Counters>(samples: &Samples<C>, counters: &C) {
    /// let resolved = samples.resolve(counters);
    /// # }
    /// ```
    pub fn resolve(&self, counters: &C) -> Resolved {
        let values = self
            .buffers
            .iter()
            .map(|taken| counters.resolve(&taken.buffer, taken.used));
        Resolved {
            values: values.collect(),
        }
    }
}

/// Samples that were read.
///
/// ```
/// use gapscope_sdk::metal::{Counters, Samples};
///
/// fn one<C: Counters>(counters: &C) {
///     let mut samples = Samples::<C>::default();
///     let Ok(slot) = samples.take(counters) else { return };
///     // … the GPU samples at slot.pair.start() and slot.pair.end() of slot.buffer …
///     match samples.resolve(counters).at(slot.pair) {
///         Ok(sampled) => println!("{} ticks", sampled.end - sampled.start),
///         Err(why) => println!("{why}"),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Resolved {
    /// The values of each buffer, or why they could not be read.
    values: Vec<Result<Vec<u64>, CounterError>>,
}

impl Resolved {
    /// Returns the times of a piece of work.
    ///
    /// # Errors
    /// The reason why it has none.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, SamplePair, Samples};
    /// # fn example(resolved: &Resolved, pair: SamplePair) {
    /// if let Ok(sampled) = resolved.at(pair) {
    ///     println!("{} ticks", sampled.end - sampled.start);
    /// }
    /// # }
    /// ```
    pub fn at(&self, pair: SamplePair) -> Result<Sampled, Unsampled> {
        let values = match self.values.get(pair.buffer) {
            Some(Ok(values)) => values,
            Some(Err(reason)) => return Err(Unsampled::NotResolved(reason.clone())),
            None => return Err(Unsampled::Missing),
        };
        let value = |index: u32| values.get(index as usize).copied();
        match value(pair.start()).zip(value(pair.end())) {
            Some((start, end)) => Sampled::from_ticks(start, end),
            None => Err(Unsampled::Missing),
        }
    }
}
