//! Which samples of hardware counters are of which kernel.
//!
//! A sample is of a kernel when it lies wholly inside a stretch of it, and its dispatches ran for [`SAMPLE_RAN_SHARE`] of the
//! sample or more. All other samples are of nothing. One pass over the work and one over the samples of each GPU.

use super::stretches::{Ran, Stretches};
use crate::counters::{Counter, CounterOwner, Sample};
use crate::intervals::Interval;
use crate::quantity::ratio;
use crate::thresholds::{KERNEL_COVERED_SHARE, KERNEL_SAMPLES, SAMPLE_RAN_SHARE};
use crate::timeline::{Gpu, Timeline, Work, WorkKind};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HardwareCounter;

/// The samples of hardware counters by kernel.
#[derive(Debug)]
pub(super) struct Attribution {
    /// GPUs with hardware counters.
    pub(super) sampled: Vec<usize>,
    /// By number in [`KernelNames::all`](crate::vocabulary::KernelNames::all), over all GPUs.
    pub(super) kernels: Vec<Ran>,
    /// Length of a sample: median.
    pub(super) sample_ns: i64,
    /// Samples of the counter with the most of each GPU.
    pub(super) sample_count: u64,
    counters: Vec<OfGpu>,
}

/// A counter of a GPU.
#[derive(Debug)]
struct OfGpu {
    gpu: usize,
    counter: HardwareCounter,
    /// By number of the kernel.
    kernels: Vec<Samples>,
}

/// The samples of a counter that are of a kernel, summed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Samples {
    pub(super) count: u64,
    /// Time of the samples, and its squares.
    pub(super) ns: f64,
    squares_ns: f64,
    /// Values times time, and their squares times time.
    sum: f64,
    squares: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// Time of the kernel in them.
    pub(super) covered_ns: i64,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples {
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

impl Attribution {
    /// Of the work that starts in `window`; `None` where no GPU has hardware counters whose samples have a duration.
    pub(super) fn of<'c>(
        timeline: &Timeline,
        recorded: &'c [Counter],
        window: Option<Interval>,
    ) -> Option<Attribution> {
        let of_gpus: Vec<Vec<(HardwareCounter, &'c Counter)>> = (0..timeline.gpus.len())
            .map(|gpu| hardware(recorded, gpu))
            .collect();
        let longest = |counters: &[(HardwareCounter, &'c Counter)]| {
            let counters = counters.iter().map(|(_, counter)| *counter);
            counters.max_by_key(|counter| counter.samples.len())
        };
        let mut lengths: Vec<i64> = (of_gpus.iter())
            .filter_map(|counters| longest(counters))
            .flat_map(|longest| &longest.samples)
            .filter_map(|sample| sample.duration_ns)
            .collect();
        // Before all work is walked over.
        let middle = lengths.len().checked_sub(1)? / 2;
        let sample_ns = *lengths.select_nth_unstable(middle).1;
        let count = timeline.kernel_names.all().len();
        let mut attribution = Attribution {
            sampled: Vec::new(),
            kernels: vec![Ran::default(); count],
            sample_ns,
            sample_count: 0,
            counters: Vec::new(),
        };
        for (gpu, counters) in of_gpus.iter().enumerate() {
            let durations = || {
                let samples = counters.iter().flat_map(|(_, counter)| &counter.samples);
                samples.filter_map(|sample| sample.duration_ns.filter(|ns| *ns > 0))
            };
            let least_ns = durations().min().unwrap_or(i64::MAX);
            if let Some(longest) = longest(counters) {
                attribution.sampled.push(gpu);
                attribution.sample_count += longest.samples.len() as u64;
            }
            let stretches = stretches(timeline, &timeline.gpus[gpu], window, count, least_ns);
            for (all, here) in attribution.kernels.iter_mut().zip(&stretches.kernels) {
                all.ran_ns = all.ran_ns.saturating_add(here.ran_ns);
                all.alone_ns = all.alone_ns.saturating_add(here.alone_ns);
            }
            let mut places: Option<(&Counter, Places)> = None;
            for (hardware, counter) in counters {
                // Counters of one pass have their samples at the same times.
                let places = match &mut places {
                    Some((of, places)) if same_times(of, counter) => places,
                    other => &mut other.insert((counter, Places::of(&stretches, counter))).1,
                };
                attribution.counters.push(OfGpu {
                    gpu,
                    counter: *hardware,
                    kernels: places.sums(counter, count),
                });
            }
        }
        Some(attribution)
    }

    /// The samples of a kernel over all GPUs, where they are enough to speak of it.
    pub(super) fn samples(&self, kernel: usize, counter: HardwareCounter) -> Option<Samples> {
        let mut sum = Samples::default();
        for (_, one) in self.of_gpus(kernel, counter) {
            sum.take(&one);
        }
        let covered = ratio(sum.covered_ns, self.kernels[kernel].ran_ns);
        (sum.count >= KERNEL_SAMPLES && covered >= KERNEL_COVERED_SHARE).then_some(sum)
    }

    /// The same by GPU, however few they are.
    pub(super) fn of_gpus(
        &self,
        kernel: usize,
        counter: HardwareCounter,
    ) -> impl Iterator<Item = (usize, Samples)> + '_ {
        let counters = self.counters.iter().filter(move |of| of.counter == counter);
        counters.map(move |of| (of.gpu, of.kernels[kernel]))
    }

    /// Time and samples of the counter that covers most of a kernel.
    pub(super) fn most_covered(&self, kernel: usize) -> (i64, u64) {
        let of = |counter: &HardwareCounter| {
            let each = self.of_gpus(kernel, *counter);
            each.fold((0, 0), |(ns, count), (_, one)| {
                (ns + one.covered_ns, count + one.count)
            })
        };
        let all = HardwareCounter::ALL.iter().map(of);
        all.max().unwrap_or_default()
    }
}

impl Samples {
    fn add(&mut self, value: f64, sample_ns: i64, covered_ns: i64) {
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

    fn take(&mut self, other: &Samples) {
        self.count += other.count;
        self.ns += other.ns;
        self.squares_ns += other.squares_ns;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.covered_ns = self.covered_ns.saturating_add(other.covered_ns);
    }

    /// Mean over the time of the samples.
    pub(super) fn mean(&self) -> f64 {
        self.sum / self.ns
    }

    /// Standard error of the mean, weighted by time: of samples of equal length, standard deviation over √count.
    pub(super) fn standard_error(&self) -> f64 {
        let variance = (self.squares / self.ns - self.mean() * self.mean()).max(0.0);
        let effective = self.ns * self.ns / self.squares_ns;
        match effective > 1.0 {
            true => (variance / (effective - 1.0)).sqrt(),
            false => f64::INFINITY,
        }
    }

    /// The standard error, and what the mean over `ran_ns` may differ by if the rest lies between the least and the greatest
    /// sample.
    pub(super) fn error(&self, ran_ns: i64) -> f64 {
        let rest = 1.0 - ratio(self.covered_ns, ran_ns).min(1.0);
        let mean = self.mean();
        self.standard_error() + rest * (mean - self.min).max(self.max - mean).max(0.0)
    }
}

/// The hardware counters of a GPU: of each, where there are several, the one with the most samples.
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

fn stretches(
    timeline: &Timeline,
    gpu: &Gpu,
    window: Option<Interval>,
    kernels: usize,
    least_ns: i64,
) -> Stretches {
    let kernel = |work: &Work| {
        let named = || {
            timeline
                .kernel_names
                .of_row(timeline.kernel_row(work.row())?)
        };
        let is_dispatch = work.kind() == WorkKind::Dispatch;
        let counts = is_dispatch && Interval::counts(window, Some(work.interval.start_ns));
        let named = if counts { named() } else { None };
        named.unwrap_or(kernels) as u32
    };
    let works = match window {
        None => gpu.works.iter(),
        // And what may reach into it.
        Some(window) => {
            let first_ns = window.start_ns.saturating_sub(timeline.longest_ns());
            let at = |ns: i64| {
                gpu.works
                    .partition_point(|work| work.interval.start_ns < ns)
            };
            let (from, to) = (at(first_ns), at(window.end_ns));
            gpu.works.range(from..to.max(from))
        }
    };
    let works = works.map(|work| (work.interval, kernel(&work)));
    Stretches::of(works, kernels, least_ns)
}

fn same_times(a: &Counter, b: &Counter) -> bool {
    let times = |sample: &Sample| (sample.start_ns, sample.duration_ns);
    a.samples.len() == b.samples.len()
        && a.samples.iter().map(times).eq(b.samples.iter().map(times))
}

/// Which kernel each sample of a counter is of.
struct Places {
    /// Number of the kernel, or [`NONE`].
    kernels: Vec<u32>,
    /// Time of the kernel in the sample.
    covered_ns: Vec<i64>,
}

impl Places {
    fn of(stretches: &Stretches, counter: &Counter) -> Places {
        let count = counter.samples.len();
        let mut places = Places {
            kernels: vec![NONE; count],
            covered_ns: vec![0; count],
        };
        let (mut next, mut seen) = (0, 0);
        let mut until_ns = i64::MIN;
        for (at, sample) in counter.samples.iter().enumerate() {
            let Some(interval) = Interval::of_row(Some(sample.start_ns), sample.duration_ns) else {
                continue;
            };
            // What overlaps an earlier sample would count twice.
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
                places.kernels[at] = stretch.kernel;
                places.covered_ns[at] = ran_ns;
            }
        }
        places
    }

    fn sums(&self, counter: &Counter, kernels: usize) -> Vec<Samples> {
        let mut sums = vec![Samples::default(); kernels];
        let places = self.kernels.iter().zip(&self.covered_ns);
        for (sample, (kernel, covered_ns)) in counter.samples.iter().zip(places) {
            if let (Some(sum), Some(ns)) = (sums.get_mut(*kernel as usize), sample.duration_ns) {
                sum.add(sample.value, ns, *covered_ns);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests;
