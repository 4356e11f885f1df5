//! Samples of a device's timestamp counter.

use crate::kernel_profile::{ClockPair, host_now_ns};

/// Samples that one buffer holds: Metal allows 32 768 bytes, and a timestamp has 8.
///
/// ```
/// assert_eq!(gapscope_sdk::metal::SAMPLES_PER_BUFFER * 8, 32_768);
/// ```
pub const SAMPLES_PER_BUFFER: u32 = 4096;

/// What Metal writes where a sample failed (`MTLCounterErrorValue`).
const ERROR_VALUE: u64 = u64::MAX;

/// A device's timestamp counters. `Device` has Metal's; an implementation for another clock:
///
/// ```
/// use gapscope_sdk::{kernel_profile::host_now_ns, metal::Counters};
///
/// /// Ticks of 24 MHz, by the host's clock.
/// struct Ticks;
///
/// impl Counters for Ticks {
///     type Buffer = ();
///     fn allocate(&self) -> Result<(), String> { Err("it samples nothing".to_owned()) }
///     fn resolve(&self, _: &(), _: u32) -> Result<Vec<u64>, String> { Ok(Vec::new()) }
///     fn clocks(&self) -> (u64, u64) {
///         let now = host_now_ns();
///         (now, now * 3 / 125)
///     }
/// }
/// let pair = Ticks.clock_pair();
/// assert!(pair.error_ns.is_some());
/// ```
pub trait Counters: Send + Sync {
    /// A buffer of samples.
    type Buffer: Clone + Send + Sync;

    /// Makes a buffer of [`SAMPLES_PER_BUFFER`] samples. Devices have few of them.
    ///
    /// # Errors
    /// What Metal said.
    fn allocate(&self) -> Result<Self::Buffer, String>;

    /// The first `count` samples of a buffer, after its command buffer has ended.
    ///
    /// # Errors
    /// What is wrong with them.
    fn resolve(&self, buffer: &Self::Buffer, count: u32) -> Result<Vec<u64>, String>;

    /// The host's clock and the device's at one moment (`sampleTimestamps`), nanoseconds and ticks.
    fn clocks(&self) -> (u64, u64);

    /// Both clocks, with how far apart the two readings may lie.
    fn clock_pair(&self) -> ClockPair {
        let before = host_now_ns();
        let (cpu_ns, gpu_ticks) = self.clocks();
        let after = host_now_ns();
        // The host's reading lies in between, if it is of the clock and in the unit that it should be. What is sure is
        // that the device's reading was taken in between.
        let cpu_ns = match (before..=after).contains(&cpu_ns) {
            true => cpu_ns,
            false => before + (after - before) / 2,
        };
        ClockPair {
            cpu_ns,
            gpu_ticks,
            error_ns: Some((cpu_ns - before).max(after - cpu_ns)),
        }
    }
}

/// Where the two samples of a piece of work go.
///
/// ```
/// use gapscope_sdk::metal::{Counters, Samples};
///
/// fn one<C: Counters>(counters: &C) {
///     let mut samples = Samples::<C>::default();
///     let Ok((place, _buffer)) = samples.take(counters) else { return };
///     // … the GPU samples at place.begin() and place.end() of the buffer …
///     match samples.resolve(counters).at(place) {
///         Ok(sampled) => println!("{} ticks", sampled.end - sampled.begin),
///         Err(why) => println!("{why}"),
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    buffer: usize,
    first: u32,
}

impl Place {
    /// The sample at the begin.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, Place, Samples};
    /// # fn example(place: Place) {
    /// assert_eq!(place.begin() + 1, place.end());
    /// # }
    /// ```
    pub fn begin(self) -> u32 {
        self.first
    }

    /// The sample at the end.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, Place, Samples};
    /// # fn example(place: Place) {
    /// println!("the end's sample is number {}", place.end());
    /// # }
    /// ```
    pub fn end(self) -> u32 {
        self.first + 1
    }
}

/// The begin and end of a piece of work in the device's ticks.
///
/// ```
/// # use gapscope_sdk::metal::Sampled;
/// let Sampled { begin, end } = Sampled::of(24, 48).unwrap();
/// assert_eq!(end - begin, 24);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
}

/// Why a piece of work has no times.
///
/// ```
/// # use gapscope_sdk::metal::{Sampled, Unsampled};
/// assert_eq!(Sampled::of(48, 24), Err(Unsampled::Backwards));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsampled {
    /// No buffer could be had for its samples.
    #[error("no buffer for counter samples could be had ({0})")]
    NoBuffer(String),
    /// The samples could not be read.
    #[error("the counter samples could not be read ({0})")]
    NotResolved(String),
    /// Metal marked a sample as failed.
    #[error("the GPU failed to sample its counter (MTLCounterErrorValue)")]
    ErrorValue,
    /// A sample is zero.
    #[error("the GPU delivered zero for its clock, as on macOS 26")]
    Zero,
    /// The end is before the begin.
    #[error("the GPU's clock ran backwards between the two samples")]
    Backwards,
    /// Metal gave fewer samples than were asked for.
    #[error("Metal gave fewer counter samples than it took")]
    Missing,
}

impl Sampled {
    /// What two samples say.
    ///
    /// # Errors
    /// Why they say nothing.
    ///
    /// ```
    /// use gapscope_sdk::metal::{Sampled, Unsampled};
    ///
    /// assert_eq!(Sampled::of(24, 48), Ok(Sampled { begin: 24, end: 48 }));
    /// assert_eq!(Sampled::of(0, 0), Err(Unsampled::Zero));
    /// assert_eq!(Sampled::of(24, u64::MAX), Err(Unsampled::ErrorValue));
    /// ```
    pub fn of(begin: u64, end: u64) -> Result<Sampled, Unsampled> {
        match (begin, end) {
            (ERROR_VALUE, _) | (_, ERROR_VALUE) => Err(Unsampled::ErrorValue),
            (0, _) | (_, 0) => Err(Unsampled::Zero),
            (begin, end) if end < begin => Err(Unsampled::Backwards),
            (begin, end) => Ok(Sampled { begin, end }),
        }
    }
}

/// The samples of one command buffer: as many buffers as it needs.
///
/// ```
/// use gapscope_sdk::metal::{Counters, Samples};
///
/// fn one<C: Counters>(counters: &C) {
///     let mut samples = Samples::<C>::default();
///     let Ok((place, _buffer)) = samples.take(counters) else { return };
///     // … the GPU samples at place.begin() and place.end() of the buffer …
///     match samples.resolve(counters).at(place) {
///         Ok(sampled) => println!("{} ticks", sampled.end - sampled.begin),
///         Err(why) => println!("{why}"),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Samples<C: Counters> {
    buffers: Vec<(C::Buffer, u32)>,
    refused: Option<String>,
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
    /// Two samples for a piece of work, and the buffer that they are in.
    ///
    /// # Errors
    /// No buffer can be had. It is not tried again for this command buffer.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, Place, Samples};
    /// # fn example<C: Counters>(samples: &mut Samples<C>, counters: &C) {
    /// if let Err(why) = samples.take(counters) {
    ///     println!("not sampled: {why}");
    /// }
    /// # }
    /// ```
    pub fn take(&mut self, counters: &C) -> Result<(Place, C::Buffer), Unsampled> {
        if let Some(reason) = &self.refused {
            return Err(Unsampled::NoBuffer(reason.clone()));
        }
        let full = |(_, used): &(C::Buffer, u32)| used + 2 > SAMPLES_PER_BUFFER;
        if self.buffers.last().is_none_or(full) {
            match counters.allocate() {
                Ok(buffer) => self.buffers.push((buffer, 0)),
                Err(reason) => {
                    self.refused = Some(reason.clone());
                    return Err(Unsampled::NoBuffer(reason));
                }
            }
        }
        let index = self.buffers.len() - 1;
        let (buffer, used) = &mut self.buffers[index];
        let place = Place {
            buffer: index,
            first: *used,
        };
        *used += 2;
        Ok((place, buffer.clone()))
    }

    /// Reads all samples, once the command buffer has ended.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, Place, Samples};
    /// # fn example<C: Counters>(samples: &Samples<C>, counters: &C) {
    /// let resolved = samples.resolve(counters);
    /// # }
    /// ```
    pub fn resolve(&self, counters: &C) -> Resolved {
        let values = self
            .buffers
            .iter()
            .map(|(buffer, used)| counters.resolve(buffer, *used));
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
///     let Ok((place, _buffer)) = samples.take(counters) else { return };
///     // … the GPU samples at place.begin() and place.end() of the buffer …
///     match samples.resolve(counters).at(place) {
///         Ok(sampled) => println!("{} ticks", sampled.end - sampled.begin),
///         Err(why) => println!("{why}"),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Resolved {
    values: Vec<Result<Vec<u64>, String>>,
}

impl Resolved {
    /// The times of a piece of work.
    ///
    /// # Errors
    /// Why it has none.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Counters, Resolved, Place, Samples};
    /// # fn example(resolved: &Resolved, place: Place) {
    /// if let Ok(sampled) = resolved.at(place) {
    ///     println!("{} ticks", sampled.end - sampled.begin);
    /// }
    /// # }
    /// ```
    pub fn at(&self, place: Place) -> Result<Sampled, Unsampled> {
        let values = match self.values.get(place.buffer) {
            Some(Ok(values)) => values,
            Some(Err(reason)) => return Err(Unsampled::NotResolved(reason.clone())),
            None => return Err(Unsampled::Missing),
        };
        let value = |index: u32| values.get(index as usize).copied();
        match value(place.begin()).zip(value(place.end())) {
            Some((begin, end)) => Sampled::of(begin, end),
            None => Err(Unsampled::Missing),
        }
    }
}
