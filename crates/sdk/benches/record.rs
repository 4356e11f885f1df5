//! Measures the cost of recording for a program, on one thread and on several at once, beside mlx-native's method
//! (one mutex around one map, without percentiles) and the same with the histogram that percentiles need.
//!
//! Times are for one record on each thread: they stay as they are with more threads when these do not disturb each
//! other, as far as there are cores.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gapscope_sdk::kernel_profile::{DispatchEntry, Limits, Profile};
use hdrhistogram::Histogram;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

/// The labels under which times are recorded, in turn.
const LABELS: [&str; 8] = [
    "layer.full_attn.ops1-4",
    "layer.attn_moe_ffn",
    "layer.delta_net.ops1-9",
    "layer.moe_ffn",
    "output_head.fused_norm_lm_argmax",
    "fa.prefill_bridge",
    "embed",
    "sample",
];
/// The numbers of threads that record at once.
const THREADS: [usize; 4] = [1, 2, 4, 8];
/// The number of dispatches of a thread between two resets: entries beyond the limit of rows cost less.
const ROWS: u64 = 1 << 14;

/// A copy of mlx-native's `ProfileEntry`.
#[derive(Default)]
struct Sums {
    count: u64,
    total_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Sums {
    fn add(&mut self, ns: u64) {
        self.min_ns = if self.count == 0 {
            ns
        } else {
            self.min_ns.min(ns)
        };
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }
}

/// A map behind one mutex, with the function that makes a new value and the one that adds a time to a value.
struct OneMutex<T>(Mutex<HashMap<String, T>>, fn() -> T, fn(&mut T, u64));

impl<T> OneMutex<T> {
    fn new(make: fn() -> T, add: fn(&mut T, u64)) -> OneMutex<T> {
        OneMutex(Mutex::default(), make, add)
    }

    /// Adds a time under a label.
    fn record(&self, label: &str, ns: u64) {
        let mut map = self.0.lock().unwrap();
        match map.get_mut(label) {
            Some(entry) => (self.2)(entry, ns),
            None => (self.2)(map.entry(label.to_owned()).or_insert_with(self.1), ns),
        }
    }
}

/// Returns an empty histogram of two significant digits, which grows as needed.
fn histogram() -> Histogram<u32> {
    let mut times = Histogram::new(2).unwrap();
    times.auto(true);
    times
}

/// Returns the longest time of any thread when all begin at once.
fn at_once(threads: usize, work: impl Fn() + Sync) -> Duration {
    let ready = Barrier::new(threads);
    let took = || {
        ready.wait();
        let started = Instant::now();
        work();
        started.elapsed()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(took)).collect();
        let took = threads.into_iter().map(|thread| thread.join().unwrap());
        took.max().unwrap_or_default()
    })
}

/// Measures one record of a time, by each of three methods.
fn record(c: &mut Criterion) {
    let mut group = c.benchmark_group("record");
    for threads in THREADS {
        let mut each = |name: &str, record: &(dyn Fn(&str, u64) + Sync)| {
            group.bench_function(BenchmarkId::new(name, threads), |b| {
                b.iter_custom(|iterations| {
                    at_once(threads, || {
                        for n in 0..iterations {
                            let label = LABELS[(n % 8) as usize];
                            record(black_box(label), black_box(40_000 + n % 1_000));
                        }
                    })
                });
            });
        };
        let profile = Profile::new();
        each("gapscope", &|label, ns| profile.record(label, ns));
        let sums = OneMutex::new(Sums::default, Sums::add);
        each("one mutex", &|label, ns| sums.record(label, ns));
        let times = OneMutex::new(histogram, |times, ns| times.record(ns).unwrap());
        each("one mutex with histogram", &|label, ns| {
            times.record(label, ns)
        });
    }
    group.finish();
}

/// Measures one record of a dispatch.
fn record_dispatch(c: &mut Criterion) {
    let mut group = c.benchmark_group("record_dispatch");
    for threads in THREADS {
        let profile = Profile::with_limits(Limits {
            dispatches: ROWS * threads as u64,
            ..Limits::default()
        });
        group.bench_function(BenchmarkId::new("gapscope", threads), |b| {
            b.iter_custom(|iterations| {
                let mut took = Duration::ZERO;
                let mut left = iterations;
                while left > 0 {
                    let now = left.min(ROWS);
                    left -= now;
                    profile.reset();
                    took += at_once(threads, || {
                        for n in 0..now {
                            profile.record_dispatch(DispatchEntry {
                                cb_label: "layer.moe_ffn".into(),
                                kernel: "mul_mat_q4_0".into(),
                                dispatch_index: n as u32,
                                groups: Some([64, 1, 1]),
                                start_gpu_ns: Some(n),
                                end_gpu_ns: Some(n + 500),
                                ..DispatchEntry::default()
                            });
                        }
                    });
                }
                took
            });
        });
    }
    group.finish();
}

/// Returns the settings of a run that takes a few seconds.
fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(50)
}

criterion_group!(name = benches; config = short(); targets = record, record_dispatch);
criterion_main!(benches);
