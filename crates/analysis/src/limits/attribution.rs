//! Attributes samples of a GPU's hardware counters to the kernels that ran in them.
//!
//! A sample is the value of a counter over a short time. It belongs to a kernel when it lies wholly inside a stretch
//! of the kernel (a time in which nothing else ran, `stretches.rs`), and its dispatches ran for [`SAMPLE_RAN_SHARE`]
//! of the sample or more. All other samples belong to no kernel. The work and the samples of each GPU are walked over
//! once.

use super::reading::Reading;
use super::stretches::{RunTimes, Stretches};
use gapscope_timeline::counters::{Counter, CounterOwner, Sample};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{KERNEL_COVERED_SHARE, KERNEL_SAMPLES, SAMPLE_RAN_SHARE};
use gapscope_timeline::{Gpu, Timeline, Work, WorkKind};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HardwareCounter;

/// The samples of hardware counters by kernel.
#[derive(Debug)]
pub(super) struct Attribution<'c> {
    /// The GPUs with hardware counters.
    pub(super) sampled: Vec<SampledGpu<'c>>,
    /// The run times of each kernel over all GPUs, by its number in
    /// [`KernelNames::all`](gapscope_timeline::vocabulary::KernelNames::all).
    pub(super) kernels: Vec<RunTimes>,
    /// The median length of the samples.
    pub(super) sample_ns: i64,
    /// The number of samples of the counter that has the most, summed over the GPUs.
    pub(super) sample_count: u64,
    /// The samples of each counter of each GPU.
    counters: Vec<GpuCounter>,
}

/// A GPU with hardware counters.
#[derive(Debug)]
pub(super) struct SampledGpu<'c> {
    /// The GPU's index.
    pub(super) gpu: usize,
    /// Its counters.
    pub(super) counters: Vec<(HardwareCounter, &'c Counter)>,
    /// The counter that has the most samples.
    pub(super) longest: &'c Counter,
    /// The kernels that the samples of that counter belong to.
    pub(super) owners: SampleOwners,
}

/// A counter of a GPU, with its samples by kernel.
#[derive(Debug)]
struct GpuCounter {
    gpu: usize,
    counter: HardwareCounter,
    /// The sums of each kernel, by its number.
    kernels: Vec<SampleSums>,
}

/// Sums over the samples of a counter that belong to a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SampleSums {
    pub(super) count: u64,
    /// The sum of the lengths of the samples.
    pub(super) ns: f64,
    /// The sum of the squares of these lengths.
    squares_ns: f64,
    /// The sum of values times length.
    sum: f64,
    /// The sum of the squares of the values times length.
    squares: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// The time for which the kernel ran in the samples.
    pub(super) covered_ns: i64,
}

impl Default for SampleSums {
    fn default() -> SampleSums {
        SampleSums {
            count: 0,
            ns: 0.0,
            squares_ns: 0.0,
            sum: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            covered_ns: 0,
        }
    }
}

impl<'c> Attribution<'c> {
    /// Attributes samples to the work that starts in `window`. Returns `None` where no GPU has hardware counters
    /// whose samples have a duration.
    pub(super) fn new(
        timeline: &Timeline,
        recorded: &'c [Counter],
        window: Option<Interval>,
    ) -> Option<Attribution<'c>> {
        let by_gpu: Vec<Vec<(HardwareCounter, &'c Counter)>> = (0..timeline.gpus.len())
            .map(|gpu| hardware(recorded, gpu))
            .collect();
        let longest = |counters: &[(HardwareCounter, &'c Counter)]| {
            let counters = counters.iter().map(|(_, counter)| *counter);
            counters.max_by_key(|counter| counter.samples.len())
        };
        let mut lengths: Vec<i64> = (by_gpu.iter())
            .filter_map(|counters| longest(counters))
            .flat_map(|longest| &longest.samples)
            .filter_map(|sample| sample.duration_ns)
            .collect();
        // Without samples, `?` returns before the walk over all work.
        let middle = lengths.len().checked_sub(1)? / 2;
        let sample_ns = *lengths.select_nth_unstable(middle).1;
        let count = timeline.kernel_names.all().len();
        let mut attribution = Attribution {
            sampled: Vec::new(),
            kernels: vec![RunTimes::default(); count],
            sample_ns,
            sample_count: 0,
            counters: Vec::new(),
        };
        for (gpu, counters) in by_gpu.into_iter().enumerate() {
            let durations = || {
                let samples = counters.iter().flat_map(|(_, counter)| &counter.samples);
                samples.filter_map(|sample| sample.duration_ns.filter(|ns| *ns > 0))
            };
            let least_ns = durations().min().unwrap_or(i64::MAX);
            let stretches = stretches(timeline, &timeline.gpus[gpu], window, count, least_ns);
            for (all, here) in attribution.kernels.iter_mut().zip(&stretches.kernels) {
                all.ran_ns = all.ran_ns.saturating_add(here.ran_ns);
                all.alone_ns = all.alone_ns.saturating_add(here.alone_ns);
            }
            let Some(longest) = longest(&counters) else {
                continue;
            };
            let owners = SampleOwners::new(&stretches, longest);
            for (hardware, counter) in &counters {
                // Counters that were sampled together have their samples at the same times, and so the same owners.
                let kernels = match same_times(longest, counter) {
                    true => owners.sums(counter, count),
                    false => SampleOwners::new(&stretches, counter).sums(counter, count),
                };
                attribution.counters.push(GpuCounter {
                    gpu,
                    counter: *hardware,
                    kernels,
                });
            }
            attribution.sample_count += longest.samples.len() as u64;
            attribution.sampled.push(SampledGpu {
                gpu,
                counters,
                longest,
                owners,
            });
        }
        Some(attribution)
    }

    /// Returns the samples of a kernel over all GPUs, or `None` where they are fewer than `KERNEL_SAMPLES` or cover
    /// less than `KERNEL_COVERED_SHARE` of its time.
    pub(super) fn samples(&self, kernel: usize, counter: HardwareCounter) -> Option<SampleSums> {
        let mut sum = SampleSums::default();
        for (_, one) in self.by_gpu(kernel, counter) {
            sum.merge(&one);
        }
        let covered = ratio(sum.covered_ns, self.kernels[kernel].ran_ns);
        (sum.count >= KERNEL_SAMPLES && covered >= KERNEL_COVERED_SHARE).then_some(sum)
    }

    /// Returns the samples of a kernel by GPU, however few they are.
    pub(super) fn by_gpu(
        &self,
        kernel: usize,
        counter: HardwareCounter,
    ) -> impl Iterator<Item = (usize, SampleSums)> + '_ {
        let counters = self.counters.iter().filter(move |of| of.counter == counter);
        counters.map(move |of| (of.gpu, of.kernels[kernel]))
    }

    /// Returns the means of these counters in a kernel's samples of one GPU, and the time of the samples; `None` where
    /// one of the counters has none.
    pub(super) fn mean_reading(
        &self,
        kernel: usize,
        gpu: usize,
        counters: &[HardwareCounter],
    ) -> Option<(Reading, f64)> {
        let mut reading = Reading::default();
        let mut ns = None;
        for counter in counters {
            let mut each = self.by_gpu(kernel, *counter);
            let (_, samples) = each.find(|(of, samples)| *of == gpu && samples.count > 0)?;
            reading.set(*counter, samples.mean());
            ns.get_or_insert(samples.ns);
        }
        Some((reading, ns?))
    }

    /// Returns the time that samples of a kernel cover, and their number, by the counter that covers most of the
    /// kernel.
    pub(super) fn most_covered(&self, kernel: usize) -> (i64, u64) {
        let of = |counter: &HardwareCounter| {
            let each = self.by_gpu(kernel, *counter);
            each.fold((0, 0), |(ns, count), (_, one)| {
                (ns + one.covered_ns, count + one.count)
            })
        };
        let all = HardwareCounter::ALL.iter().map(of);
        all.max().unwrap_or_default()
    }
}

impl SampleSums {
    /// Adds a sample, of which the kernel ran for `covered_ns`.
    pub(super) fn add(&mut self, value: f64, sample_ns: i64, covered_ns: i64) {
        let ns = sample_ns as f64;
        self.count += 1;
        self.ns += ns;
        self.squares_ns += ns * ns;
        self.sum += value * ns;
        self.squares += value * value * ns;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.covered_ns = self.covered_ns.saturating_add(covered_ns);
    }

    pub(super) fn merge(&mut self, other: &SampleSums) {
        self.count += other.count;
        self.ns += other.ns;
        self.squares_ns += other.squares_ns;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.covered_ns = self.covered_ns.saturating_add(other.covered_ns);
    }

    /// Returns the mean over the time of the samples.
    pub(super) fn mean(&self) -> f64 {
        self.sum / self.ns
    }

    /// Returns the standard error of the mean, weighted by time. For samples of equal length it is the standard
    /// deviation over √count.
    pub(super) fn standard_error(&self) -> f64 {
        let variance = (self.squares / self.ns - self.mean() * self.mean()).max(0.0);
        let effective = self.ns * self.ns / self.squares_ns;
        match effective > 1.0 {
            true => (variance / (effective - 1.0)).sqrt(),
            false => f64::INFINITY,
        }
    }

    /// Returns the standard error, and how much the mean over `ran_ns` may differ if the rest lies between the least
    /// and the greatest sample.
    pub(super) fn error(&self, ran_ns: i64) -> f64 {
        let rest = 1.0 - ratio(self.covered_ns, ran_ns).min(1.0);
        let mean = self.mean();
        self.standard_error() + rest * (mean - self.min).max(self.max - mean).max(0.0)
    }
}

/// Returns the hardware counters of a GPU. Where there are several of one kind, the one with the most samples counts.
fn hardware(recorded: &[Counter], gpu: usize) -> Vec<(HardwareCounter, &Counter)> {
    let lasting = |sample: &Sample| sample.duration_ns.is_some_and(|ns| ns > 0);
    let of = |hardware: &HardwareCounter| {
        let named = recorded.iter().filter(|counter| {
            counter.owner == CounterOwner::Gpu(gpu)
                && counter.name == hardware.as_str()
                && counter.unit == hardware.unit()
                && counter.samples.iter().any(lasting)
        });
        Some((*hardware, named.max_by_key(|of| of.samples.len())?))
    };
    HardwareCounter::ALL.iter().filter_map(of).collect()
}

/// Finds the stretches of a GPU's dispatches that start in `window`. All other work has the number `kernels`, the
/// count of kernels.
fn stretches(
    timeline: &Timeline,
    gpu: &Gpu,
    window: Option<Interval>,
    kernels: usize,
    least_ns: i64,
) -> Stretches {
    let number = |work: &Work| {
        let is_dispatch = work.kind() == WorkKind::Dispatch;
        if !is_dispatch || !Interval::counts(window, Some(work.interval.start_ns)) {
            return None;
        }
        let names = &timeline.kernel_names;
        names.index_of_row(timeline.kernel_row(work.row())?)
    };
    let kernel = |work: &Work| number(work).unwrap_or(kernels) as u32;
    let works = match window {
        None => gpu.works.iter(),
        // Earlier work may reach into the window.
        Some(window) => {
            let first_ns = window.start_ns.saturating_sub(timeline.longest_ns());
            let works = &gpu.works;
            let at = |ns: i64| works.partition_point(|work| work.interval.start_ns < ns);
            let (from, to) = (at(first_ns), at(window.end_ns));
            gpu.works.range(from..to.max(from))
        }
    };
    let works = works.map(|work| (work.interval, kernel(&work)));
    Stretches::new(works, kernels, least_ns)
}

/// Returns true where two counters have samples of the same times.
fn same_times(a: &Counter, b: &Counter) -> bool {
    let times = |sample: &Sample| (sample.start_ns, sample.duration_ns);
    a.samples.len() == b.samples.len()
        && a.samples.iter().map(times).eq(b.samples.iter().map(times))
}

/// The kernels that the samples of a counter belong to.
#[derive(Debug)]
pub(super) struct SampleOwners {
    /// The number of the kernel that each sample belongs to, or [`NONE`].
    pub(super) kernels: Vec<u32>,
    /// The time for which the kernel ran in each sample.
    pub(super) covered_ns: Vec<i64>,
}

impl SampleOwners {
    /// Finds the owner of each sample of a counter. A sample that overlaps an earlier one has none.
    fn new(stretches: &Stretches, counter: &Counter) -> SampleOwners {
        let count = counter.samples.len();
        let mut owners = SampleOwners {
            kernels: vec![NONE; count],
            covered_ns: vec![0; count],
        };
        let (mut next, mut seen) = (0, 0);
        let mut until_ns = i64::MIN;
        for (at, sample) in counter.samples.iter().enumerate() {
            let Some(interval) = Interval::from_row(Some(sample.start_ns), sample.duration_ns)
            else {
                continue;
            };
            // A sample that overlaps an earlier one would count twice.
            if interval.is_empty() || interval.start_ns < until_ns {
                continue;
            }
            until_ns = interval.end_ns;
            while (stretches.all.get(next)).is_some_and(|s| s.interval.end_ns <= interval.start_ns)
            {
                next += 1;
            }
            let Some(stretch) = stretches.all.get(next) else {
                break;
            };
            if interval.intersection(stretch.interval) != interval {
                continue;
            }
            let ns = interval.length_ns();
            let ran_ns = ns - stretches.idle_ns(stretch, interval, &mut seen);
            if ran_ns as f64 >= SAMPLE_RAN_SHARE * ns as f64 {
                owners.kernels[at] = stretch.kernel;
                owners.covered_ns[at] = ran_ns;
            }
        }
        owners
    }

    /// Adds up the samples of a counter with these owners, by kernel.
    fn sums(&self, counter: &Counter, kernels: usize) -> Vec<SampleSums> {
        let mut sums = vec![SampleSums::default(); kernels];
        let owners = self.kernels.iter().zip(&self.covered_ns);
        for (sample, (kernel, covered_ns)) in counter.samples.iter().zip(owners) {
            if let (Some(sum), Some(ns)) = (sums.get_mut(*kernel as usize), sample.duration_ns) {
                sum.add(sample.value, ns, *covered_ns);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests;
