//! Work that overlaps: whether computing waits for copies or collectives beside it, or these for computing.

use crate::program::{assert_says, findings_of};
use gapscope_analysis::Findings;
use gapscope_analysis::verdict::Bound;
use std::fmt::Write;

const KERNEL: &str = "kernel=1";
const ONE_BLOCK: &str = "kernel=1 groups_x=1 groups_y=1 groups_z=1";
const ALL_REDUCE: &str = "kernel=2";
const COPY: &str = "copy";

/// A CUDA program with four streams on a device, two on a second, and one on a third.
struct Streams {
    text: String,
    next: u64,
}

/// How a piece of work was handed to its stream.
#[derive(Clone, Copy)]
enum Call {
    /// The call was made long before.
    Ahead,
    /// The call was made at this microsecond.
    At(i64),
    /// The trace lacks the call.
    NotRecorded,
}

impl Streams {
    fn new() -> Streams {
        Streams {
            text: "manifest sampling_mode=dispatch
                process id=1 pid=10 hook=cuda
                thread process=1 thread=7 name=main
                device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=1000 limits.multiprocessors=100
                device id=2 process=1 api=cuda name=GPU uuid=bb clock.error_ns=1000 limits.multiprocessors=100
                device id=3 process=1 api=cuda name=GPU uuid=cc clock.error_ns=1000 limits.multiprocessors=100
                queue id=1 device=1 index=1\nqueue id=2 device=1 index=2\nqueue id=3 device=1 index=3\nqueue id=4 device=1 index=4
                queue id=5 device=2 index=5\nqueue id=6 device=2 index=6\nqueue id=7 device=3 index=7
                kernel id=1 process=1 name=gemm
                kernel id=2 process=1 name=ncclDevKernel_AllReduce_Sum_f32_RING_LL\n"
                .to_owned(),
            next: 1,
        }
    }

    /// Adds work between two microseconds; returns the id of its submission.
    fn work(&mut self, queue: u32, what: &str, call: Call, [start, end]: [i64; 2]) -> u64 {
        let id = self.next;
        self.next += 1;
        let call = match call {
            Call::Ahead => Some(id as i64 - 1_000_000),
            Call::At(at) => Some(at),
            Call::NotRecorded => None,
        };
        let kind = if what == COPY { "transfer" } else { "kernel" };
        let mut submission = String::new();
        if let Some(at) = call {
            submission = format!("submission={id}");
            self.line(&format!(
                "submission id={id} process=1 queue={queue} thread=7 start_ns={at}us duration_ns=1us kind={kind}"
            ));
        }
        let columns = format!(
            "{submission} queue={queue} start_ns={start}us duration_ns={}us",
            end - start
        );
        self.line(&match what {
            COPY => format!("transfer {columns} kind=host-to-device bytes=1"),
            kernel if kernel == KERNEL => {
                format!("dispatch {columns} {KERNEL} groups_x=900 groups_y=1 groups_z=1")
            }
            kernel => format!("dispatch {columns} {kernel}"),
        });
        id
    }

    fn waits(&mut self, submission: u64, on: u64) {
        self.line(&format!(
            "dependency submission={submission} waits_for={on}"
        ));
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a text can be written");
    }

    fn findings(&self) -> Findings {
        findings_of(&self.text)
    }
}

/// Copies back to back on stream 2, and kernels of `kernel_us` on stream 1 that each start after a copy of 10 ms.
fn copies_and_kernels(kernel_us: i64, call: Call, recorded: bool) -> Findings {
    let mut streams = Streams::new();
    for turn in 0..30 {
        let t = turn * 10_000;
        let copy = streams.work(2, COPY, call, [t, t + 9_990]);
        let start = t + 9_995;
        let kernel = streams.work(1, KERNEL, call, [start, start + kernel_us]);
        if recorded {
            streams.waits(kernel, copy);
        }
    }
    streams.findings()
}

#[test]
fn copies_that_every_kernel_waits_for_bound_the_program_however_much_computes_beside() {
    let findings = copies_and_kernels(6_000, Call::Ahead, true);
    assert_eq!(findings.verdict, Bound::TransferBound);
    let sentence = &findings.verdict_evidence.sentence;
    assert_says(sentence, "Computing waits for transfers on stream 2");
    assert_says(sentence, "faster kernels would win at most");
    let path = &findings.critical_paths[0];
    assert_eq!((path.what, path.queue.as_str()), ("transfer", "stream 2"));
    assert!(path.path_ns as f64 > 0.9 * path.window_ns as f64);
    assert_eq!(path.inferred_ns, 0);
    // The parts keep their meaning.
    let parts = &findings.verdict_evidence.parts;
    assert_eq!(parts[0].what, "compute");
}

#[test]
fn without_recorded_waits_the_sentence_says_that_times_alone_show_it() {
    for call in [Call::Ahead, Call::NotRecorded] {
        let findings = copies_and_kernels(6_000, call, false);
        assert_eq!(findings.verdict, Bound::TransferBound);
        let sentence = &findings.verdict_evidence.sentence;
        assert_says(sentence, "As far as start and end times show");
    }
}

#[test]
fn a_pipeline_in_balance_and_a_saturated_kernel_stream_are_device_bound() {
    for kernel_us in [9_500, 9_900, 9_999] {
        for recorded in [true, false] {
            let findings = copies_and_kernels(kernel_us, Call::Ahead, recorded);
            assert_eq!(findings.verdict, Bound::DeviceBound, "{kernel_us}");
        }
    }
}

#[test]
fn kernels_that_the_host_is_late_with_do_not_wait_for_copies_beside() {
    let mut streams = Streams::new();
    for turn in 0..60 {
        let t = turn * 10_000;
        streams.work(2, COPY, Call::Ahead, [t, t + 9_990]);
        let start = t + 3_700;
        streams.work(1, KERNEL, Call::At(start - 8), [start, start + 6_000]);
    }
    assert_eq!(streams.findings().verdict, Bound::DeviceBound);
}

#[test]
fn a_host_that_waits_for_each_copy_and_then_launches_makes_kernels_wait_for_it() {
    let mut streams = Streams::new();
    for turn in 0..30 {
        let t = turn * 10_000;
        streams.work(2, COPY, Call::Ahead, [t, t + 9_990]);
        streams.line(&format!(
            "host_call process=1 thread=7 call=wait-event start_ns={}us duration_ns=8000us",
            t + 1_994
        ));
        let start = t + 10_004;
        streams.work(1, KERNEL, Call::At(start - 6), [start, start + 6_000]);
    }
    let findings = streams.findings();
    assert_eq!(findings.verdict, Bound::TransferBound);
    assert_says(&findings.verdict_evidence.sentence, "As far as");
}

#[test]
fn a_path_through_kernels_is_not_the_copies_that_hide_behind_them() {
    // To the device, the kernel, and back: the copy back of one turn runs beside the kernel of the next.
    let mut streams = Streams::new();
    let mut before = None;
    for turn in 0..30 {
        let t = turn * 10_000;
        let copy = streams.work(2, COPY, Call::Ahead, [t, t + 3_990]);
        let kernel = streams.work(1, KERNEL, Call::Ahead, [t + 4_000, t + 9_990]);
        streams.waits(kernel, copy);
        let back = streams.work(3, COPY, Call::Ahead, [t + 10_000, t + 15_900]);
        streams.waits(back, kernel);
        if let Some(before) = before {
            streams.waits(copy, before);
        }
        before = Some(kernel);
    }
    assert_eq!(streams.findings().verdict, Bound::DeviceBound);
}

/// Collectives of 1 ms on `streams` in turn, and a kernel of `kernel_us` after each.
fn collectives(queues: &[u32], kernel_us: i64, recorded: bool) -> Findings {
    let mut streams = Streams::new();
    for turn in 0..100 {
        let t = turn * 1_000;
        let queue = queues[turn as usize % queues.len()];
        let gather = streams.work(queue, ALL_REDUCE, Call::Ahead, [t, t + 998]);
        let kernel = streams.work(1, KERNEL, Call::Ahead, [t + 1_003, t + 1_003 + kernel_us]);
        if recorded {
            streams.waits(kernel, gather);
        }
    }
    streams.findings()
}

#[test]
fn collectives_back_to_back_bound_the_program_on_one_stream_or_on_several() {
    for queues in [&[2][..], &[2, 3]] {
        for recorded in [true, false] {
            let findings = collectives(queues, 780, recorded);
            assert_eq!(findings.verdict, Bound::CommunicationBound, "{queues:?}");
            let sentence = &findings.verdict_evidence.sentence;
            assert_says(sentence, "waits for communication on stream");
        }
        assert_eq!(collectives(queues, 960, true).verdict, Bound::DeviceBound);
    }
}

#[test]
fn collectives_beside_kernels_with_a_short_exposed_end_leave_the_device_the_bound() {
    for kernel in [800, 850, 900, 950] {
        let mut streams = Streams::new();
        for turn in 0..100 {
            let t = turn * 1_000;
            streams.work(1, KERNEL, Call::Ahead, [t, t + kernel]);
            streams.work(2, ALL_REDUCE, Call::Ahead, [t + 100, t + 999]);
        }
        assert_eq!(streams.findings().verdict, Bound::DeviceBound, "{kernel}");
    }
}

#[test]
fn short_collectives_that_kernels_start_after_by_chance_do_not_bound_the_program() {
    let mut streams = Streams::new();
    let mut at = 0;
    for turn in 0..2_000 {
        let t = turn * 25;
        streams.work(2, ALL_REDUCE, Call::Ahead, [t, t + 24]);
        if t >= at {
            // Neighbouring starts lie anywhere between the ends of the collectives.
            at = t + 40 + (turn * 7) % 25;
            streams.work(1, KERNEL, Call::NotRecorded, [at, at + 55]);
            at += 55;
        }
    }
    assert_ne!(streams.findings().verdict, Bound::CommunicationBound);
}

#[test]
fn a_kernel_of_one_block_beside_collectives_is_no_computing_device() {
    let mut streams = Streams::new();
    for turn in 0..100 {
        let t = turn * 1_000;
        streams.work(2, ALL_REDUCE, Call::Ahead, [t, t + 990]);
        streams.work(1, ONE_BLOCK, Call::Ahead, [t, t + 999]);
    }
    let findings = streams.findings();
    assert_eq!(findings.verdict, Bound::CommunicationBound);
    let sentence = &findings.verdict_evidence.sentence;
    assert_says(sentence, "could fill less than a quarter of it");
}

#[test]
fn devices_are_judged_together_and_each_alone() {
    let mut streams = Streams::new();
    for turn in 0..30 {
        let t = turn * 10_000;
        for (kernels, copies, length) in [(1, 2, 6_000), (5, 6, 5_000)] {
            let copy = streams.work(copies, COPY, Call::Ahead, [t, t + 9_990]);
            let kernel = streams.work(
                kernels,
                KERNEL,
                Call::Ahead,
                [t + 9_995, t + 9_995 + length],
            );
            streams.waits(kernel, copy);
        }
    }
    let findings = streams.findings();
    assert_eq!(findings.verdict, Bound::TransferBound);
    assert_eq!(findings.critical_paths.len(), 2);
    let each = findings.idle_time.devices.iter();
    assert!(each.clone().count() == 2);
    assert!(
        each.into_iter()
            .all(|device| device.verdict == Bound::TransferBound)
    );
}

/// Copies between devices, back to back on `queue`, and kernels of `kernel_us` on `kernels` that each wait for their copy.
fn peer_copies(queue: u32, kernels: &[u32], kernel_us: i64, call: Call, recorded: bool) -> Streams {
    let mut streams = Streams::new();
    for turn in 0..60 {
        let t = turn * 4_000;
        let copy = streams.work(queue, COPY, call, [t, t + 3_990]);
        for kernels in kernels {
            let start = t + 3_996;
            let kernel = streams.work(*kernels, KERNEL, call, [start, start + kernel_us]);
            if recorded {
                streams.waits(kernel, copy);
            }
        }
    }
    streams
}

#[test]
fn copies_between_devices_that_all_wait_for_bound_the_program_whichever_device_runs_them() {
    let cases: &[(u32, &[u32], &str)] = &[
        // The source's stream pushes; both devices compute.
        (2, &[1, 5], "stream 2 of GPU 0"),
        // The destination's stream pulls.
        (6, &[1, 5], "stream 6 of GPU 1"),
        // The source computes nothing.
        (2, &[5], "stream 2 of GPU 0"),
        // One copy feeds two devices.
        (2, &[5, 7], "stream 2 of GPU 0"),
        (2, &[1, 5, 7], "stream 2 of GPU 0"),
    ];
    for (queue, kernels, stream) in cases {
        for kernel_us in [300, 2_200, 2_800] {
            let findings = peer_copies(*queue, kernels, kernel_us, Call::Ahead, true).findings();
            assert_eq!(findings.verdict, Bound::TransferBound, "{kernels:?}");
            let sentence = &findings.verdict_evidence.sentence;
            assert_says(sentence, &format!("waits for transfers on {stream}, which"));
            assert_says(sentence, "faster kernels would win at most ");
            let path = &findings.joint_critical_paths[0];
            assert!(path.path_ns as f64 > 0.98 * path.window_ns as f64);
            // The device that waits is bound by the transfers, too, wherever they run.
            for device in &findings.idle_time.devices {
                assert_eq!(device.verdict, Bound::TransferBound, "{kernels:?}");
            }
        }
    }
}

#[test]
fn copies_between_devices_behind_saturated_kernels_delay_nothing() {
    for (queue, kernels) in [(2, &[1, 5][..]), (6, &[1, 5]), (2, &[1, 5, 7])] {
        for kernel_us in [3_900, 3_990] {
            let findings = peer_copies(queue, kernels, kernel_us, Call::Ahead, true).findings();
            assert_eq!(findings.verdict, Bound::DeviceBound, "{kernels:?}");
        }
    }
}

#[test]
fn one_saturated_device_bounds_the_program_and_the_others_may_idle() {
    // GPU 0 computes all the time, and hands a result to GPU 1 that computes for a short time.
    for idle_devices in [&[5][..], &[5, 7]] {
        let mut streams = Streams::new();
        for turn in 0..60 {
            let t = turn * 4_000;
            let kernel = streams.work(1, KERNEL, Call::Ahead, [t, t + 3_990]);
            let copy = streams.work(2, COPY, Call::Ahead, [t + 4_000, t + 4_200]);
            streams.waits(copy, kernel);
            for queue in idle_devices {
                let other = streams.work(*queue, KERNEL, Call::Ahead, [t + 4_210, t + 4_500]);
                streams.waits(other, copy);
            }
        }
        let findings = streams.findings();
        assert_eq!(findings.verdict, Bound::DeviceBound);
        let sentence = &findings.verdict_evidence.sentence;
        assert_says(sentence, "Computing on GPU 0 holds up the other devices");
    }
}

#[test]
fn devices_that_compute_in_turns_wait_for_each_other() {
    let mut streams = Streams::new();
    let mut before = None;
    for turn in 0..60 {
        for (part, queue) in [(0, 1), (1, 5)] {
            let t = turn * 8_000 + part * 4_000;
            let kernel = streams.work(queue, KERNEL, Call::Ahead, [t, t + 3_600]);
            if let Some(before) = before {
                streams.waits(kernel, before);
            }
            let copy = streams.work(queue + 1, COPY, Call::Ahead, [t + 3_605, t + 3_990]);
            streams.waits(copy, kernel);
            before = Some(copy);
        }
    }
    let findings = streams.findings();
    assert_eq!(findings.verdict, Bound::Mixed);
    assert_says(&findings.verdict_evidence.sentence, "sync 4");
}

#[test]
fn a_chain_of_long_copies_and_short_kernels_over_devices_is_bound_by_the_copies() {
    // To GPU 1, a kernel there, and back: nothing overlaps.
    let mut streams = Streams::new();
    let mut before = None;
    for turn in 0..60 {
        let t = turn * 10_000;
        let there = streams.work(2, COPY, Call::Ahead, [t, t + 3_490]);
        if let Some(before) = before {
            streams.waits(there, before);
        }
        let kernel = streams.work(5, KERNEL, Call::Ahead, [t + 3_500, t + 6_000]);
        streams.waits(kernel, there);
        let back = streams.work(6, COPY, Call::Ahead, [t + 6_010, t + 9_000]);
        streams.waits(back, kernel);
        let last = streams.work(1, KERNEL, Call::Ahead, [t + 9_010, t + 9_990]);
        streams.waits(last, back);
        before = Some(last);
    }
    let findings = streams.findings();
    assert_eq!(findings.verdict, Bound::TransferBound);
    assert_says(
        &findings.verdict_evidence.sentence,
        "for 64.8 % of the time",
    );
}

#[test]
fn sends_and_receives_that_computing_on_another_device_waits_for_bound_the_program() {
    let mut streams = Streams::new();
    for turn in 0..60 {
        let t = turn * 4_000;
        for (kernels, messages) in [(1, 2), (5, 6)] {
            let message = streams.work(messages, ALL_REDUCE, Call::Ahead, [t, t + 3_990]);
            let kernel = streams.work(kernels, KERNEL, Call::Ahead, [t + 3_996, t + 6_196]);
            streams.waits(kernel, message);
        }
    }
    let findings = streams.findings();
    assert_eq!(findings.verdict, Bound::CommunicationBound);
    assert_says(
        &findings.verdict_evidence.sentence,
        "waits for communication on stream",
    );
}

#[test]
fn a_host_that_is_late_on_one_device_does_not_wait_for_the_copies_of_another() {
    let mut streams = Streams::new();
    for turn in 0..60 {
        let t = turn * 4_000;
        streams.work(2, COPY, Call::Ahead, [t, t + 3_990]);
        let start = t + 1_500;
        streams.work(5, KERNEL, Call::At(start - 8), [start, start + 1_900]);
    }
    let findings = streams.findings();
    assert_ne!(findings.verdict, Bound::TransferBound);
    let device = &findings.idle_time.devices[1];
    assert_eq!(device.verdict, Bound::HostBound);
}

#[test]
fn copies_that_no_wait_is_recorded_for_hold_up_another_device_as_far_as_times_show() {
    let findings = peer_copies(2, &[1, 5], 2_200, Call::Ahead, false).findings();
    assert_eq!(findings.verdict, Bound::TransferBound);
    assert_says(&findings.verdict_evidence.sentence, "As far as start");
}

const SEND_RECV: &str = "kernel=3";

/// One GPU computes for 2000 us while the other spins in a receive, and then the other way round; messages take `message_us`.
fn in_turns(message_us: i64) -> Findings {
    let mut streams = Streams::new();
    streams.line("kernel id=3 process=1 name=ncclDevKernel_SendRecv");
    let turn_us = 2_000 + message_us;
    for turn in 0..80 {
        let t = turn * turn_us;
        let (here, there) = if turn % 2 == 0 { (1, 5) } else { (5, 1) };
        streams.work(here, KERNEL, Call::Ahead, [t, t + 1_998]);
        let until = t + turn_us - 2;
        streams.work(here + 1, SEND_RECV, Call::Ahead, [t + 2_000, until]);
        streams.work(there + 1, SEND_RECV, Call::Ahead, [t + 2, until]);
    }
    streams.findings()
}

#[test]
fn a_receive_that_spins_while_the_sender_computes_is_no_communication() {
    let findings = in_turns(60);
    assert_eq!(findings.verdict, Bound::DeviceBound);
    let sentence = &findings.verdict_evidence.sentence;
    assert_says(
        sentence,
        "The critical path through all devices runs through computing",
    );
    assert_says(
        sentence,
        "As far as start and end times show, devices wait in communication for others",
    );
    let parts = &findings.verdict_evidence.parts;
    let share = |what: &str| {
        parts
            .iter()
            .find(|part| part.what == what)
            .map_or(0.0, |part| part.share)
    };
    assert!(share("peers") > 0.45, "{parts:?}");
    assert!(share("communication") < 0.05, "{parts:?}");
    // Messages that take long are communication all the same.
    assert_eq!(in_turns(6_000).verdict, Bound::CommunicationBound);
}

/// Three GPUs compute for so long and then reduce for `reduce_us` once all have come.
fn reductions(compute_us: [i64; 3], reduce_us: i64) -> Findings {
    let mut streams = Streams::new();
    let longest = compute_us.into_iter().max().unwrap_or(0);
    for turn in 0..60 {
        let t = turn * (longest + reduce_us + 20);
        for ((queue, reduces), us) in [(1, 2), (5, 6), (7, 7)].into_iter().zip(compute_us) {
            streams.work(queue, KERNEL, Call::Ahead, [t, t + us]);
            let end = t + longest + 3 + reduce_us;
            streams.work(reduces, ALL_REDUCE, Call::Ahead, [t + us + 3, end]);
        }
    }
    streams.findings()
}

#[test]
fn devices_that_wait_in_a_collective_for_one_that_computes_are_bound_by_that() {
    let findings = reductions([1_000, 1_000, 6_000], 200);
    assert_eq!(findings.verdict, Bound::DeviceBound);
    assert_says(&findings.verdict_evidence.sentence, "on GPU 2");
    // Where all come together, the collective is what takes the time.
    let findings = reductions([1_000, 1_000, 1_000], 3_000);
    assert_eq!(findings.verdict, Bound::CommunicationBound);
    let parts = &findings.verdict_evidence.parts;
    assert!(parts.iter().all(|part| part.what != "peers"), "{parts:?}");
}

#[test]
fn communication_of_one_device_includes_waiting_that_the_trace_does_not_show() {
    let mut streams = Streams::new();
    for turn in 0..60 {
        let t = turn * 4_000;
        streams.work(1, KERNEL, Call::Ahead, [t, t + 1_000]);
        streams.work(2, ALL_REDUCE, Call::Ahead, [t + 1_003, t + 3_990]);
    }
    let findings = streams.findings();
    assert_eq!(findings.verdict, Bound::CommunicationBound);
    let sentence = &findings.verdict_evidence.sentence;
    assert_says(
        sentence,
        "That includes waiting for other ranks: open the traces of all ranks together",
    );
}
