//! Whatever the rows say, there are findings, and their sums hold.

use crate::any_trace::{CALLS, KINDS, STREAMS, garbage, time};
use gapscope_analysis::gaps::GapFinder;
use gapscope_analysis::what_if::{Change, Extent, WhatIf};
use gapscope_analysis::{Findings, Options, Replays, activity};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{LabelFilter, Timeline};
use gapscope_trace::Trace;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::{Device, Queue};
use gapscope_trace::tables::*;
use proptest::prelude::*;

fn check(findings: &Findings, threshold_ns: i64) -> Result<(), TestCaseError> {
    let idle = &findings.idle_time;
    let by_cause: i64 = findings.gaps.iter().map(|gap| gap.total_ns).sum();
    prop_assert_eq!(by_cause, idle.total_ns);
    let mut idle_ns = 0;
    for device in &findings.devices {
        if let Some(share) = device.analysed {
            prop_assert_eq!(share.busy_ns + share.idle_ns, share.window_ns);
            prop_assert!(share.busy_ns >= 0 && share.idle_ns >= 0);
            idle_ns += share.idle_ns;
        }
        for queue in &device.queues {
            let Some(share) = queue.analysed else {
                continue;
            };
            prop_assert!(share.busy_ns >= 0 && share.idle_ns >= 0, "{:?}", queue);
            let found = idle.queues.iter().find(|q| q.queue_id == queue.queue_id);
            let by_cause: i64 = found.map_or(0, |q| q.causes.iter().map(|c| c.total_ns).sum());
            let whole = threshold_ns <= 1;
            prop_assert!(
                !whole || by_cause == share.idle_ns,
                "{:?} {:?}",
                queue,
                found
            );
        }
    }
    prop_assert_eq!(idle.total_ns + idle.below_threshold_ns, idle_ns);
    let mains: u64 = findings.gaps.iter().map(|gap| gap.main_count).sum();
    prop_assert_eq!(mains, idle.gap_count);
    let binned: i64 = idle.histogram.iter().map(|bin| bin.total_ns).sum();
    prop_assert_eq!(binned, idle.total_ns);
    for gap in &idle.longest {
        let parts: i64 = gap.parts.iter().map(|part| part.duration_ns).sum();
        prop_assert_eq!(parts, gap.duration_ns);
        prop_assert!(
            gap.parts
                .windows(2)
                .all(|p| p[0].start_ns + p[0].duration_ns == p[1].start_ns)
        );
    }
    for fill in &findings.fill {
        let (known, underfilled) = (fill.known_ns.unwrap_or(0), fill.underfilled_ns.unwrap_or(0));
        prop_assert!(
            underfilled <= known && known <= fill.computing_ns,
            "{:?}",
            fill
        );
        for kernel in &fill.kernels {
            prop_assert!(kernel.underfilled_ns <= underfilled, "{:?}", fill);
        }
    }
    for device in &idle.devices {
        let parts: i64 = (device.verdict_evidence.iter())
            .map(|part| part.total_ns)
            .sum();
        prop_assert_eq!(parts, device.verdict_window_ns.unwrap_or(0));
    }
    let evidence = &findings.verdict_evidence;
    let parts: i64 = evidence.parts.iter().map(|part| part.total_ns).sum();
    prop_assert_eq!(parts, evidence.window_ns.unwrap_or(0));
    for kernel in &findings.kernels {
        prop_assert!(kernel.busy_ns <= kernel.durations.total_ns);
        prop_assert_eq!(
            kernel.durations.timed_count + kernel.untimed_count,
            kernel.count
        );
    }
    for profiled in &findings.profiled_kernels {
        let shares: f64 = profiled.stalls.iter().map(|stall| stall.share).sum();
        prop_assert!(
            profiled.stalls.is_empty() || (shares - 1.0).abs() < 1e-6,
            "{:?}",
            profiled
        );
    }
    for sampled in &findings.sampled_kernels {
        let places = sampled.places.iter().map(|place| place.samples);
        let places = places.fold(sampled.other_samples, u64::saturating_add);
        prop_assert!(places >= sampled.samples);
        prop_assert!((0.0..=1.0).contains(&sampled.share));
    }
    for queue in &findings.latency {
        let (all, idle) = (&queue.submit_to_start, &queue.submit_to_start_idle);
        prop_assert!(idle.timed_count <= all.timed_count);
        prop_assert_eq!(all.timed_count + queue.waited_count, queue.submission_count);
        let waited: u64 = queue.waited.iter().map(|waited| waited.count).sum();
        prop_assert_eq!(waited, queue.waited_count);
    }
    let counted: u64 = findings.kernels.iter().map(|kernel| kernel.count).sum();
    prop_assert_eq!(counted, *findings.dispatch_count);
    Ok(())
}

/// Hands over dispatches in pieces of so many rows.
fn feed(
    all: &Dispatches,
    rows: usize,
) -> impl FnOnce(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<()> {
    move |take| {
        for from in (0..all.len()).step_by(rows) {
            let mut piece = Dispatches::default();
            (from..all.len().min(from + rows)).for_each(|row| piece.push(all.row(row)));
            take(&piece);
        }
        Some(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_rows_have_findings_whose_sums_hold(
        trace in garbage(),
        exclude_warm_up in any::<bool>(),
        threshold in prop_oneof![Just(0), 0i64..60, Just(i64::MAX), Just(i64::MIN)],
        window in proptest::option::of((time(), time())),
        longest in 0usize..4,
    ) {
        let options = Options {
            exclude_warm_up,
            window: window.map(|(a, b)| Interval::new(a, b)),
            gap_threshold_ns: threshold,
            longest,
            equal_work: Some(("0".to_owned(), "1".to_owned())),
            replays: Replays::ChangesAndPath,
        };
        let findings = Findings::new(&trace, &options);
        check(&findings, threshold)?;
        let timeline = Timeline::new(&trace);
        if let Some(extent) = Extent::from_steps(&timeline, &findings.steps, findings.analysed_window) {
            let finder = GapFinder::new(&timeline);
            let whole = WhatIf::new(&finder, extent);
            let changes = ["device=0.5x", "host=1000x", "wait=each2", "transfer=overlap"];
            let changes = changes.map(|change| Change::read(change).unwrap());
            // A run without work has nothing that a device could do faster, which is an error.
            let _ = whole.answer(&changes);
            let unchanged = whole.answer(&[]).unwrap();
            if let Some(times) = unchanged.changed_ns {
                prop_assert_eq!(times.mid, unchanged.recorded_ns);
            }
        }
    }

    #[test]
    fn dispatches_in_pieces_give_the_same_findings(
        mut trace in garbage(),
        rows in 1usize..5,
        longest in 0usize..4,
    ) {
        let options = Options {
            longest,
            equal_work: Some(("0".to_owned(), "1".to_owned())),
            replays: Replays::ChangesAndPath,
            ..Options::default()
        };
        let timeline = Timeline::new(&trace);
        let whole = (Findings::from_timeline(&timeline, &options), activity(&timeline, 7));
        let all = std::mem::take(&mut trace.tables.dispatches);
        let timeline = Timeline::from_pieces(&trace, None, all.len(), feed(&all, rows));
        let (timeline, ()) = timeline.unwrap();
        let pieces = (Findings::from_timeline(&timeline, &options), activity(&timeline, 7));
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn work_under_a_label_is_found_in_pieces_too(mut trace in garbage(), rows in 1usize..5) {
        let options = Options::default();
        let under = |trace: &Trace, all: &Dispatches, rows: usize| {
            let filter = LabelFilter::new(trace, "1", feed(all, rows)).unwrap();
            let (timeline, ()) =
                Timeline::from_pieces(trace, Some(&filter), all.len(), feed(all, rows)).unwrap();
            Findings::from_timeline(&timeline, &options)
        };
        let all = std::mem::take(&mut trace.tables.dispatches);
        prop_assert_eq!(under(&trace, &all, rows), under(&trace, &all, usize::MAX));
    }

    #[test]
    fn the_order_of_rows_does_not_matter(
        works in proptest::collection::vec((0i64..300, 0i64..40, 0u32..3, -40i64..300, 0i64..20, 0..KINDS.len()), 1..20),
        calls in proptest::collection::vec((0..CALLS.len(), 0i64..300, 0i64..60), 0..12),
        depends in proptest::collection::vec((0u64..20, 0u64..20), 0..12),
        seed in any::<u64>(),
    ) {
        let build = |order: &dyn Fn(usize) -> Vec<usize>| {
            let mut trace = Trace::default();
            trace.manifest.devices.push(Device::default());
            for id in 0..3 {
                let kind = STREAMS[1 + id as usize].map(Into::into);
                trace.manifest.queues.push(Queue { id: QueueId(id), kind, ..Queue::default() });
            }
            let t = &mut trace.tables;
            for at in order(works.len()) {
                let (start, duration, queue, ..) = works[at];
                let (start_ns, duration_ns) = (Some(start), Some(duration));
                // What is no work has none.
                if KINDS[works[at].5] as u8 >= SubmissionKind::HostFunction as u8 {
                    continue;
                }
                t.dispatches.push(Dispatch {
                    command_buffer: Some(CommandBufferId(at as u64)), queue: QueueId(queue), kernel: KernelId(queue), start_ns, duration_ns,
                    ..Dispatch::default()
                });
            }
            for at in order(works.len()) {
                let (_, _, queue, start_ns, duration_ns, kind) = works[at];
                let (id, queue) = (SubmissionId(at as u64), QueueId(queue));
                t.command_buffers.push(CommandBuffer {
                    id: CommandBufferId(at as u64), queue, submission: id, dispatches: 1, ..CommandBuffer::default()
                });
                t.submissions.push(Submission {
                    id, queue, start_ns, duration_ns, command_buffers: 1, kind: KINDS[kind], ..Submission::default()
                });
            }
            for at in order(calls.len()) {
                let (call, start_ns, duration_ns) = calls[at];
                t.host_calls.push(HostCall { call: CALLS[call], start_ns, duration_ns, thread: Some(ThreadId(0)), count: 2, queue: Some(QueueId(at as u32 % 3)), ..HostCall::default() });
            }
            for at in order(depends.len()) {
                let (submission, on) = depends[at];
                t.dependencies.push(Dependency {
                    submission: SubmissionId(submission), waits_for: Some(SubmissionId(on)), host_signal_ns: None,
                });
            }
            for id in 0..3 {
                t.kernels.push(Kernel { id: KernelId(id), name: id.to_string().into(), ..Kernel::default() });
            }
            trace
        };
        let options = Options::default();
        let sorted = Findings::new(&build(&|n| (0..n).collect()), &options);
        let shuffled = build(&|n| {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|at| (*at as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
            order
        });
        check(&sorted, 0)?;
        prop_assert_eq!(sorted, Findings::new(&shuffled, &options));
    }
}
