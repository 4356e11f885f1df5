//! Tests that traces have the values that were planted in exports.

use crate::imported::{loss, noted};
use crate::{Exports, plain};
use gapscope_import::xctrace::read;
use gapscope_import::{Error, Options, import};
use gapscope_trace::ids::{CommandBufferId, ThreadId};
use gapscope_trace::lookup::LabelPaths;
use gapscope_trace::manifest::{ClockMethod, Exit, SamplingMode};
use gapscope_trace::tables::{MarkerScope, MemoryEvent, OpaqueWorkKind, Timing};
use stand_in_xctrace::{
    Allocation, DebugGroup, Encoder, EncoderKind, GpuRow, OtherWork, Process, Quirks, Scene,
};
use std::sync::Arc;

/// Mach's absolute time at the start of the stand-in's traces: 2897656234073 ticks of 125/3 ns.
const EPOCH_NS: i64 = 120_735_676_419_708;

fn gpu_row(start_ns: i64, duration_ns: i64, depth: u64) -> GpuRow {
    GpuRow {
        start_ns,
        duration_ns,
        depth,
    }
}

fn other(process: &Process, start_ns: i64, duration_ns: i64) -> OtherWork {
    OtherWork {
        process: process.clone(),
        start_ns,
        duration_ns,
    }
}

#[test]
fn command_buffers_have_their_commits_times_and_notices() {
    let trace = plain(&Scene::chain(3));
    let t = &trace.tables;
    assert_eq!(t.command_buffers.id, [1, 2, 3].map(CommandBufferId));
    for n in 0..3 {
        let committed = EPOCH_NS + n * 1_000_000 + 400_000;
        let row = n as usize;
        assert_eq!(t.submissions.start_ns[row], committed);
        assert_eq!(t.submissions.duration_ns[row], 0);
        assert_eq!(t.submissions.thread.at(row), Some(ThreadId(0x11a_b5b7)));
        assert_eq!(t.command_buffers.start_ns.at(row), Some(committed + 50_000));
        assert_eq!(t.command_buffers.duration_ns.at(row), Some(200_000 + n));
        assert_eq!(
            t.command_buffers.seen_ns.at(row),
            Some(committed + 290_000 + n)
        );
        assert_eq!(t.command_buffers.timing[row], Timing::Measured);
        assert_eq!(t.opaque_work.kind[row], OpaqueWorkKind::ComputePass);
        assert_eq!(t.opaque_work.start_ns.at(row), Some(committed + 50_000));
        assert_eq!(
            t.opaque_work.command_buffer.at(row),
            Some(CommandBufferId(row as u64 + 1))
        );
    }
    assert_eq!(t.markers.scope, [MarkerScope::Thread; 3]);
    assert_eq!(t.markers.duration_ns, [Some(300_000); 3]);
}

#[test]
fn the_manifest_says_what_is_known_and_what_is_not() {
    let trace = plain(&Scene::chain(3));
    let m = &trace.manifest;
    assert_eq!(m.sampling_mode, SamplingMode::Pass);
    assert_eq!(m.start_ns, EPOCH_NS);
    assert_eq!(m.end_ns, EPOCH_NS + 4_000_000);
    assert_eq!(m.start_unix_ns, Some(1_790_291_896_751_000_000));
    assert_eq!(m.exit, Some(Exit::Code(0)));
    assert_eq!(m.command, ["python", "train.py --steps 3"]);
    assert_eq!(m.host.system, "macOS 27.2 (27C5019j)");
    assert_eq!(m.host.processor, "Mac Studio");
    assert_eq!(
        (m.processes[0].pid, m.devices[0].name.as_str()),
        (99926, "M3 Ultra")
    );
    assert_eq!(m.processes[0].parent_pid, None);
    assert_eq!(m.threads[0].name, "Main Thread");
    // The bounds are 50 us from commit to start, and 40 us from end to notice.
    assert_eq!(m.devices[0].clock.method, ClockMethod::Brackets);
    assert_eq!(m.devices[0].clock.error_ns, Some(50_000));
    assert_eq!(m.devices[0].clock.samples, 3);
    assert_eq!(loss(&trace, "dispatches are not listed"), 3);
    assert!(noted(&trace, "does not name command queues"));
    assert!(noted(&trace, "No command buffer or encoder has a label"));
}

#[test]
fn names_of_the_machine_and_the_environment_stay_out() {
    let text = plain(&Scene::chain(1)).to_text();
    for secret in ["SECRET", "somebody"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[test]
fn labels_of_the_program_are_kept_and_instruments_own_are_not() {
    let mut scene = Scene::labelled_chain(2);
    scene.command_buffers[1].encoders[0].label.clear();
    scene.command_buffers[0].label = "a & <b> \"c\"".to_owned();
    let trace = plain(&scene);
    let paths = LabelPaths::new(&trace.tables.labels);
    let of = |row: usize| {
        trace
            .tables
            .opaque_work
            .label
            .at(row)
            .and_then(|id| paths.get(id))
    };
    assert_eq!(of(0), Some("a & <b> \"c\" / matmul 0"));
    assert_eq!(of(1), Some("step 1"));
    let names = &trace.tables.command_buffers.name;
    assert_eq!(names[0].as_deref(), Some("a & <b> \"c\""));
    assert!(!noted(&trace, "has a label"));
    let unnamed = plain(&Scene::chain(1));
    assert_eq!(unnamed.tables.command_buffers.name, [None]);
    assert_eq!(unnamed.tables.opaque_work.label, [None]);
}

#[test]
fn rows_that_overlap_within_an_encoder_are_one_piece_of_work() {
    let mut scene = Scene::chain(1);
    let start = scene.command_buffers[0].encoders[0].gpu[0].start_ns;
    scene.command_buffers[0].encoders[0].gpu = vec![
        gpu_row(start, 100, 0),
        gpu_row(start + 10, 20, 1),
        gpu_row(start + 50, 150, 1),
        gpu_row(start + 500, 10, 0),
    ];
    let trace = plain(&scene);
    let work = &trace.tables.opaque_work;
    assert_eq!(work.duration_ns, [Some(200), Some(10)]);
    assert_eq!(work.position, [0, 1]);
    assert_eq!(trace.tables.command_buffers.duration_ns, [Some(510)]);
}

#[test]
fn blits_are_transfers_and_draws_are_render_passes() {
    let mut scene = Scene::chain(1);
    let cb = &mut scene.command_buffers[0];
    let start = cb.encoders[0].gpu[0].start_ns + 300_000;
    for (id, kind) in [(901, EncoderKind::Blit), (902, EncoderKind::Render)] {
        cb.encoders.push(Encoder {
            id,
            kind,
            label: String::new(),
            gpu: vec![gpu_row(start + id as i64 * 100, 50, 0)],
        });
    }
    cb.completed_ns = Some(start + 1_000_000);
    let trace = plain(&scene);
    assert_eq!(trace.tables.transfers.duration_ns, [Some(50)]);
    assert_eq!(trace.tables.transfers.bytes, [None]);
    assert_eq!(trace.tables.command_buffers.transfers, [1]);
    let kinds = [OpaqueWorkKind::ComputePass, OpaqueWorkKind::RenderPass];
    assert_eq!(trace.tables.opaque_work.kind, kinds);
}

#[test]
fn work_of_other_processes_is_named_and_left_out() {
    let mut scene = Scene::chain(2);
    let server = Process {
        pid: 635,
        name: "WindowServer".to_owned(),
    };
    scene.others = vec![
        other(&server, 700_000, 400_000),
        other(&server, 800_000, 700_000),
    ];
    let trace = plain(&scene);
    assert_eq!(trace.tables.opaque_work.start_ns.len(), 2);
    // The union of both is 0.7 to 1.5 ms.
    assert!(
        noted(&trace, "WindowServer (635) 0.8 ms"),
        "{:?}",
        trace.manifest.notes
    );
}

#[test]
fn the_process_must_be_clear() {
    let mut scene = Scene::chain(1);
    let server = Process {
        pid: 635,
        name: "WindowServer".to_owned(),
    };
    scene.others = vec![other(&server, 0, 10)];
    let exports = Exports::from_scene(&scene, &Quirks::default());
    exports.remove("toc");
    let error = exports.read().unwrap_err();
    assert!(
        matches!(error, Error::ManyProcesses { count: 2, .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("python (99926), WindowServer (635)"),
        "{error}"
    );
    let chosen = Options {
        pid: Some(99926),
        ..Options::default()
    };
    let trace = read(&[exports.folder.path().to_owned()], &chosen).unwrap();
    assert_eq!(trace.tables.command_buffers.id.len(), 1);
    assert_eq!(trace.manifest.start_unix_ns, None);
}

#[test]
fn the_program_around_the_work_is_there() {
    let mut scene = Scene::chain(1);
    scene.debug_groups = vec![DebugGroup {
        start_ns: 100,
        duration_ns: 50,
        text: "layer 3".to_owned(),
    }];
    scene.shaders = vec!["gemm".to_owned(), "softmax".to_owned()];
    let allocation = |at_ns, lifetime_ns, bytes| Allocation {
        at_ns,
        lifetime_ns,
        bytes,
    };
    scene.allocations = vec![allocation(10, Some(90), 4096), allocation(20, None, 8192)];
    let trace = plain(&scene);
    let paths = LabelPaths::new(&trace.tables.labels);
    let markers: Vec<_> = (trace.tables.markers.label.iter())
        .map(|id| paths.get(*id).unwrap())
        .collect();
    assert!(markers.contains(&"Debug Groups / layer 3"), "{markers:?}");
    assert_eq!(
        trace.tables.kernels.name,
        ["gemm", "softmax"].map(Arc::from)
    );
    let memory = &trace.tables.memory;
    assert_eq!(memory.bytes, [4096, 8192, 4096]);
    assert_eq!(
        memory.event,
        [
            MemoryEvent::Allocate,
            MemoryEvent::Allocate,
            MemoryEvent::Free
        ]
    );
}

#[test]
fn without_the_clock_times_count_from_the_start() {
    let exports = Exports::from_scene(&Scene::chain(1), &Quirks::default());
    exports.remove("time-info");
    let trace = exports.trace();
    assert_eq!(trace.tables.submissions.start_ns, [400_000]);
    assert!(noted(&trace, "Times count from the start"));
}

#[test]
fn a_trace_is_written_and_read_back() {
    let exports = Exports::from_scene(&Scene::labelled_chain(5), &Quirks::default());
    let output = exports.folder.path().join("out.gapscope");
    let inputs = [exports.folder.path().to_owned()];
    let imported = import(&inputs, &output, &Options::default(), &|_, _| {}).unwrap();
    assert_eq!((imported.command_buffers, imported.timed_work), (5, 5));
    let (trace, diagnostics) =
        gapscope_trace::read(&output, &gapscope_trace::Selection::all()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert!(trace.manifest.complete);
    assert_eq!(trace.tables.command_buffers.id.len(), 5);
    let again = import(&inputs, &output, &Options::default(), &|_, _| {}).unwrap_err();
    assert!(again.to_string().contains("exists already"), "{again}");
}

#[test]
fn a_thermal_state_is_a_counter_with_its_times_and_the_usual_one_is_none() {
    let scene = Scene::chain(3);
    assert!(plain(&scene).tables.counters.name.is_empty());
    let schema = "device-thermal-state-intervals";
    let exports = Exports::from_scene(&scene, &Quirks::default());
    let table = scene.table(schema, &Quirks::default());
    exports.add(schema, &table.replace(">Nominal<", ">Serious<"));
    let trace = exports.trace();
    assert_eq!(
        trace.tables.counters.name,
        ["thermal state: Serious".into()]
    );
    assert_eq!(trace.tables.counter_values.start_ns, [EPOCH_NS]);
    assert_eq!(trace.tables.counter_values.duration_ns, [Some(4_000_000)]);
    assert!(!noted(&trace, "thermal state"), "analyses say it");
}
