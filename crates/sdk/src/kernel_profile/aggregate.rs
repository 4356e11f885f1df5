//! Aggregates many times into a few numbers: count, sum, extremes and percentiles.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The significant decimal digits of the histograms: percentiles are within 1 %.
const DIGITS: u8 = 2;

/// The times of a label, a kernel or a pass.
///
/// ```
/// let profile = gapscope_sdk::kernel_profile::Profile::new();
/// for ns in [10, 20, 30] {
///     profile.record("step", ns);
/// }
/// let (_, times) = profile.dump().remove(0);
/// assert_eq!((times.count, times.total_ns, times.min_ns, times.p50_ns, times.max_ns), (3, 60, 10, 20, 30));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProfileEntry {
    /// The number of known times.
    pub count: u64,
    /// The sum in nanoseconds, which saturates at `u64::MAX`.
    pub total_ns: u64,
    /// The minimum.
    pub min_ns: u64,
    /// The maximum.
    pub max_ns: u64,
    /// The median, within 1 % of the true value, as all percentiles here.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
}

impl ProfileEntry {
    /// Returns the mean; `None` if there are no times.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::ProfileEntry;
    /// assert_eq!(ProfileEntry::default().mean_ns(), None);
    /// ```
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total_ns as f64 / self.count as f64)
    }
}

/// The times that have been added so far.
#[derive(Debug, Clone)]
pub(super) struct Aggregate {
    /// As in [`ProfileEntry`], but `min_ns` is `u64::MAX` while there are no times.
    count: u64,
    total_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// For the percentiles.
    times: Histogram<u32>,
}

impl Aggregate {
    pub fn new() -> Aggregate {
        // The histogram grows with the greatest value: 10 KiB for milliseconds.
        let mut times = Histogram::new(DIGITS).expect("two digits are in its range");
        times.auto(true);
        Aggregate {
            count: 0,
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            times,
        }
    }

    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        // A histogram that resizes itself accepts every value.
        let _ = self.times.record(ns);
    }

    /// Adds the times of another aggregate.
    pub fn merge(&mut self, other: &Aggregate) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        let _ = self.times.add(&other.times);
    }

    /// Returns the numbers; `None` if there are no times.
    pub fn entry(&self) -> Option<ProfileEntry> {
        let at = |quantile| {
            self.times
                .value_at_quantile(quantile)
                .clamp(self.min_ns, self.max_ns)
        };
        (self.count > 0).then(|| ProfileEntry {
            count: self.count,
            total_ns: self.total_ns,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
        })
    }
}
