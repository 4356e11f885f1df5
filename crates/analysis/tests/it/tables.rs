//! Kernels, labels, command buffers, memory, drift.

use crate::program::{Program, US, findings};
use gapscope_analysis::{Findings, activity};
use gapscope_timeline::Timeline;
use gapscope_trace::ids::{CommandBufferId, LabelId};
use gapscope_trace::lookup::LabelPaths;
use gapscope_trace::tables::Timing;

#[test]
fn kernels_of_one_name_and_code_are_one_row_and_overlap_counts_once() {
    let mut p = Program::with(
        "kernel id=1 name=sin source=aa specialisation=0:01
         kernel id=2 name=sin source=aa specialisation=0:02
         kernel id=3 name=cos",
    );
    for (kernel, start, duration) in [(1, 0, 100), (2, 50, 100), (3, 200, 30), (4, 300, 1)] {
        p.ran(&format!("kernel={kernel}"), start, duration);
    }
    p.line("dispatch command_buffer=9 queue=1 kernel=3");
    let kernels = p.findings().kernels;
    let rows: Vec<_> = (kernels.iter())
        .map(|k| {
            (
                k.name.as_str(),
                k.count,
                k.untimed_count,
                k.durations.total_ns,
                k.busy_ns,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("sin", 2, 0, Some(200 * US), Some(150 * US)),
            ("cos", 2, 1, Some(30 * US), Some(30 * US)),
            ("unknown kernel", 1, 0, Some(US), Some(US)),
        ]
    );
    assert_eq!((kernels[0].variants, kernels[0].codes), (2, 1));
    assert_eq!(kernels[0].durations.mean_ns, Some(1e5));
    assert_eq!(kernels[0].busy_share, Some(150.0 / 181.0));
}

/// As logs have it that say how long work ran and not when.
#[test]
fn durations_without_starts_are_in_the_kernels_and_not_in_busy_time() {
    let mut p = Program::with("kernel id=1 name=sin");
    for duration in [10, 30] {
        p.line(&format!(
            "dispatch queue=1 kernel=1 duration_ns={duration}us"
        ));
    }
    let findings = p.findings();
    let kernel = &findings.kernels[0];
    assert_eq!((kernel.count, kernel.untimed_count), (2, 0));
    assert_eq!(kernel.durations.total_ns, Some(40 * US));
    assert_eq!((kernel.busy_ns, kernel.first_ns), (None, None));
    assert_eq!(findings.verdict, gapscope_analysis::verdict::Bound::Unknown);
}

#[test]
fn kernels_of_different_code_are_rows_of_their_own_in_every_table() {
    let mut p = Program::with(
        "kernel id=1 name=pipeline source=aaaaaaaa name_source=object-name
         kernel id=2 name=pipeline source=bbbbbbbb name_source=object-name",
    );
    for (kernel, start) in [(1, 0), (2, 200)] {
        p.ran(&format!("kernel={kernel}"), start, 100);
    }
    let found = p.findings();
    let names: Vec<&str> = found.kernels.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(
        names,
        ["pipeline (spv:aaaaaaaa)", "pipeline (spv:bbbbbbbb)"]
    );
    let mut kernels = found.kernels.iter();
    assert!(kernels.all(|kernel| (kernel.codes, kernel.variants) == (1, 1)));
    let gap = &found.idle_time.longest[0];
    assert_eq!([&gap.before.name, &gap.after.name], [names[0], names[1]]);
}

#[test]
fn bytes_bound_count_each_byte_once_and_end_with_the_buffer() {
    let mut p = Program::new();
    p.line("buffer id=1 bytes=100");
    p.line("binding id=5 binding=0 buffer=1 offset_bytes=0 bytes=60 access=read");
    p.line("binding id=5 binding=1 buffer=1 offset_bytes=40 bytes=18446744073709551615 access=read-write");
    p.line("binding id=5 binding=2 buffer=2 offset_bytes=0 bytes=7 access=unknown");
    p.line("dispatch command_buffer=9 queue=1 kernel=1 bindings=5");
    p.line("dispatch command_buffer=9 queue=1 kernel=1 bindings=6");
    let kernel = p.findings().kernels.remove(0);
    assert_eq!(kernel.bound_read_bytes, Some(107));
    assert_eq!(kernel.bound_written_bytes, Some(67));
    assert_eq!((kernel.count, kernel.bound_count), (2, 1));
}

#[test]
fn labels_sum_what_is_inside_and_tell_what_is_their_own() {
    let mut p = Program::new();
    for line in [
        "label id=1 text=layer",
        "label id=2 text=attention parent=1",
        "label id=3 text=mlp parent=1",
        "label id=4 text=attention parent=1",
        "marker label=2 scope=command-buffer",
        "marker label=4 scope=command-buffer",
        "command_buffer id=9 queue=1 label=1 dispatches=5",
        "dispatch command_buffer=9 queue=1 kernel=1 label=2 start_ns=0 duration_ns=10us",
        "dispatch command_buffer=9 queue=1 kernel=1 label=4 start_ns=5us duration_ns=10us",
        "dispatch command_buffer=9 queue=1 kernel=1 label=3 start_ns=10us duration_ns=30us",
        "transfer command_buffer=9 queue=1 kind=copy start_ns=50us duration_ns=5us",
        "dispatch command_buffer=9 queue=1 kernel=1 label=3",
    ] {
        p.line(line);
    }
    let labels = p.findings().labels;
    let rows: Vec<_> = (labels.iter())
        .map(|l| {
            let (i, e) = (&l.inclusive, &l.exclusive);
            (
                l.path.as_str(),
                l.instances,
                i.dispatch_count,
                i.busy_ns,
                e.dispatch_count,
                e.busy_ns,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("layer", None, 4, Some(45 * US), 0, Some(5 * US)),
            ("layer / mlp", None, 2, Some(30 * US), 2, Some(30 * US)),
            (
                "layer / attention",
                Some(2),
                2,
                Some(15 * US),
                2,
                Some(15 * US)
            ),
        ]
    );
    assert_eq!(labels[0].inclusive.transfer_count, 1);
    assert_eq!(labels[0].inclusive.durations.total_ns, Some(50 * US));
    assert_eq!(labels[0].inclusive.durations.max_ns, Some(30 * US));
    assert_eq!(labels[0].exclusive.durations.total_ns, None);
}

#[test]
fn labels_that_are_each_others_parents_end() {
    let mut p = Program::new();
    p.line("label id=1 text=a parent=2");
    p.line("label id=2 text=b parent=1");
    p.line("dispatch command_buffer=9 queue=1 kernel=1 label=1 start_ns=0 duration_ns=10us");
    assert!(!p.findings().labels.is_empty());
}

/// As far as it is read: no trace that is whole nests so deep.
#[test]
fn a_label_has_one_path_however_deep_it_lies() {
    let mut p = Program::new();
    p.line("label id=0 text=0");
    for id in 1..100 {
        p.line(&format!("label id={id} text={id} parent={}", id - 1));
    }
    p.line("dispatch command_buffer=9 queue=1 kernel=1 label=99 start_ns=0 duration_ns=10us");
    let labels = p.findings().labels;
    let innermost = labels.iter().find(|label| label.text == "99").unwrap();
    let paths = LabelPaths::new(&p.trace().tables.labels);
    assert_eq!(Some(innermost.path.as_str()), paths.get(LabelId(99)));
}

#[test]
fn command_buffers_are_counted_and_stepped_by_queue() {
    let mut p = Program::new();
    for (id, queue, start) in [(1, 1, 0), (2, 1, 100), (3, 2, 130), (4, 1, 300)] {
        p.line(&format!(
            "command_buffer id={id} queue={queue} dispatches={id} start_ns={start}us duration_ns={id}us"
        ));
    }
    p.line("command_buffer id=5 queue=1 timing=device-lost");
    let table = p.findings().command_buffers;
    assert_eq!((table.count, table.empty_count), (5, 1));
    assert_eq!(table.max_dispatches, Some(4));
    assert_eq!(table.mean_dispatches, Some(2.0));
    assert_eq!(table.start_to_start.timed_count, 2);
    assert_eq!(table.start_to_start.max_ns, Some(200 * US));
    assert_eq!(table.longest[0].id, CommandBufferId(4));
    assert_eq!(table.longest.len(), 4);
    let timings: Vec<_> = table.timings.iter().map(|t| (t.timing, t.count)).collect();
    assert_eq!(timings, [(Timing::Measured, 4), (Timing::DeviceLost, 1)]);
}

#[test]
fn memory_peaks_where_most_is_live() {
    let mut p = Program::from_text("device id=1 process=1 uuid=aa heaps=1000 heaps=50");
    for line in [
        "memory process=1 device=1 at_ns=10 event=allocate allocation=1 bytes=100 heap=0",
        "memory process=1 device=1 at_ns=20 event=allocate allocation=2 bytes=40 heap=1",
        "memory process=1 device=1 at_ns=30 event=free allocation=1 bytes=100 heap=0",
        "memory process=1 device=1 at_ns=30 event=allocate allocation=3 bytes=90 heap=0",
        "memory process=1 device=1 at_ns=40 event=free allocation=8 bytes=5 heap=0",
    ] {
        p.line(line);
    }
    let memory = p.findings().memory;
    assert_eq!(memory.len(), 3);
    let all = &memory[0];
    assert_eq!((all.heap, all.heap_bytes), (None, Some(1050)));
    assert_eq!((all.peak_bytes, all.peak_at_ns), (140, Some(20)));
    assert_eq!(all.total_bytes, 230);
    assert_eq!(all.live_bytes, 130);
    assert_eq!(all.live_count, 2);
    assert_eq!(all.allocation_count, 3);
    assert_eq!(all.free_count, 1);
    assert_eq!(all.unmatched_free_count, 1);
    assert_eq!((memory[2].heap, memory[2].peak_bytes), (Some(1), 40));
}

/// A command buffer of 100 us with two dispatches.
fn drifting(mode: &str, first: [i64; 2], second: [i64; 2]) -> gapscope_analysis::drift::Drift {
    let mut p = Program::from_text(&format!(
        "manifest sampling_mode={mode}\ndevice id=1 uuid=aa\nqueue id=1 device=1"
    ));
    p.line("command_buffer id=1 queue=1 dispatches=2 start_ns=0us duration_ns=100us");
    for [start, duration] in [first, second] {
        p.line(&format!(
            "dispatch command_buffer=1 queue=1 start_ns={start}us duration_ns={duration}us"
        ));
    }
    p.findings().drift.into_value()
}

#[test]
fn overlap_is_no_drift_in_dispatch_mode_and_is_in_serialised_mode() {
    let drift = drifting("dispatch", [0, 80], [10, 80]);
    assert_eq!((drift.count, drift.violation_count), (1, 0));
    assert_eq!((drift.sum_ratio, drift.union_ratio), (Some(1.6), Some(0.9)));
    let drift = drifting("dispatch-serialised", [0, 80], [10, 80]);
    assert_eq!(drift.violation_count, 1);
    assert!(drift.sentence.contains("do not trust"));
    assert_eq!(drifting("command-buffer", [0, 80], [10, 80]).count, 0);
}

#[test]
fn work_outside_of_its_command_buffer_is_a_violation_from_the_tolerance_on() {
    assert_eq!(drifting("dispatch", [0, 10], [50, 55]).violation_count, 0);
    let drift = drifting("dispatch", [0, 10], [50, 56]);
    assert_eq!(drift.violation_count, 1);
    assert_eq!(drift.worst[0].outside_ns, 6 * US);
    assert_eq!(drifting("dispatch", [-6, 10], [50, 5]).violation_count, 1);
}

#[test]
fn a_cuda_graph_that_is_timed_by_its_nodes_has_no_drift_to_speak_of() {
    let findings = |api: &str, more: &str| {
        let mut p = Program::from_text(&format!(
            "manifest sampling_mode=dispatch\ndevice id=1 uuid=aa api={api}\nqueue id=1 device=1{more}"
        ));
        p.line("command_buffer id=1 queue=1 dispatches=1 start_ns=0us duration_ns=100us");
        p.line("dispatch command_buffer=1 queue=1 start_ns=0us duration_ns=100us");
        p.findings().drift
    };
    assert_eq!(findings("vulkan", "").count, 1);
    let drift = findings("cuda", "");
    assert_eq!((drift.count, drift.sentence.as_str()), (0, ""));
    // Beside Vulkan, only that is compared.
    let drift = findings("cuda", "\ndevice id=2 uuid=bb\nqueue id=2 device=2");
    assert_eq!(drift.count, 0);
    assert!(drift.sentence.contains("No command buffer"));
}

#[test]
fn work_that_starts_before_its_submission_is_counted() {
    let mut p = Program::new();
    p.dispatch(1, [50, 60], 40, 10);
    p.dispatch(1, [100, 110], 120, 10);
    let latency = p.findings().latency.remove(0);
    assert_eq!(latency.started_before_submission_count, Some(1));
    assert_eq!(latency.depth_zero_ns, Some(50 * US));
    assert_eq!(latency.submit_to_start.min_ns, Some(-10 * US));
}

#[test]
fn what_is_not_selected_changes_no_finding() {
    let whole = Program::from_text(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
         process id=1 pid=10
         device id=1 process=1 uuid=aa
         queue id=1 device=1
         kernel id=1 process=1 name=sin
         submission id=1 process=1 queue=1 thread=7 start_ns=0 duration_ns=1000 command_buffers=1
         command_buffer id=1 process=1 queue=1 submission=1 dispatches=2 start_ns=2us duration_ns=90us
         dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=3us duration_ns=40us groups_x=8 groups_y=1
         barrier command_buffer=1 position=1 source_stages=1 destination_stages=1
         dispatch command_buffer=1 position=2 queue=1 kernel=1 start_ns=50us duration_ns=40us groups_x=8",
    )
    .trace();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.gapscope");
    let mut writer = gapscope_trace::TraceWriter::create(&path).unwrap();
    writer.tables_mut().clone_from(&whole.tables);
    writer.finish(&whole.manifest).unwrap();
    let (read, remarks) = gapscope_trace::read(&path, &Findings::selection()).unwrap();
    assert_eq!(remarks, []);
    assert!(read.tables.dispatches.position.is_empty());
    assert!(read.tables.barriers.command_buffer.is_empty());
    assert_eq!(findings(&read), findings(&whole));
    let activity = |trace| activity(&Timeline::new(trace), 10);
    assert_eq!(activity(&read), activity(&whole));
}
