//! What recording costs: one thread, and eight at once.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gapscope_sdk::kernel_profile::{DispatchEntry, Limits, Profile};
use std::hint::black_box;
use std::time::{Duration, Instant};

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

fn record(c: &mut Criterion) {
    let mut group = c.benchmark_group("kernel_profile");
    group.throughput(Throughput::Elements(1));
    let profile = Profile::new();
    group.bench_function("record", |b| {
        let mut n = 0_u64;
        b.iter(|| {
            n += 1;
            profile.record(
                black_box(LABELS[(n % 8) as usize]),
                black_box(40_000 + n % 1_000),
            );
        });
    });
    // The time for one record of each of 8 threads that record at once: as for one thread when they do not disturb
    // each other and the machine has 8 cores.
    group.bench_function("record on 8 threads", |b| {
        b.iter_custom(|iterations| {
            let profile = Profile::new();
            let longest = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|_| {
                        let profile = &profile;
                        scope.spawn(move || {
                            let begun = Instant::now();
                            for n in 0..iterations {
                                profile.record(black_box(LABELS[(n % 8) as usize]), black_box(n));
                            }
                            begun.elapsed()
                        })
                    })
                    .collect();
                threads.into_iter().map(|t| t.join().unwrap()).max()
            });
            longest.unwrap_or(Duration::ZERO)
        });
    });
    group.bench_function("record_dispatch", |b| {
        let profile = Profile::with_limits(Limits {
            dispatches: 1 << 16,
            ..Limits::default()
        });
        let mut n = 0_u64;
        b.iter(|| {
            n += 1;
            profile.record_dispatch(DispatchEntry {
                cb_label: "layer.moe_ffn".into(),
                kernel: "mul_mat_q4_0".into(),
                dispatch_index: n as u32,
                groups: Some([64, 1, 1]),
                start_gpu_ns: Some(n),
                end_gpu_ns: Some(n + 500),
                ..DispatchEntry::default()
            });
        });
    });
    group.finish();
}

criterion_group!(benches, record);
criterion_main!(benches);
