//! Runs captures, and checks that their outputs equal those of the program.

use gapscope_capture::Capture;
use gapscope_capture::model::*;
use gapscope_replay::{Error, Options, Replay, Schedule, replay};

use crate::captured::*;
use crate::on_device;

const ADD: &str = "
struct Parameters { value: u32 }
var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3u) {
    data[id.x] = data[id.x] + parameters.value;
}";
const WORDS: u32 = 256;

/// Runs a capture on the first device; none if there is no device, unless one is required.
pub fn run(capture: &Capture, options: &Options) -> Option<Result<Replay, Error>> {
    on_device(replay(capture, options))
}

/// Makes a capture of a kernel that adds 1 and then 10 to numbers. With `planted` its outcome is wrong.
fn two_dispatches(planted: bool) -> (tempfile::TempDir, std::path::PathBuf, Capture) {
    let mut made = Made::new();
    let add = made.kernel(ADD, "add", 1, 4);
    let size = u64::from(WORDS) * 4;
    let buffer = made.buffer("numbers", 4096, size);
    let before: Vec<u32> = (0..WORDS).collect();
    made.content(4096, &before, ContentCause::FirstUse);
    let of = |value| dispatch(add, WORDS / 64, &[(buffer, size)], &[value]);
    made.submit(vec![
        Command::Label(Label::Begin("step".to_owned())),
        of(1),
        barrier(),
        of(10),
        Command::Label(Label::End),
    ]);
    let mut after: Vec<u32> = before.iter().map(|value| value + 11).collect();
    if planted {
        after[17] += 1;
    }
    made.outcome(4096, &after);
    made.end()
}

#[test]
fn a_capture_gives_what_the_program_had() {
    let (_folder, _, capture) = two_dispatches(false);
    let Some(result) = run(&capture, &Options::default()) else {
        return;
    };
    let result = result.unwrap();
    assert!(result.is_equal(), "{result:?}");
    assert_eq!((result.dispatch_count, result.submission_count), (2, 1));
    assert_eq!((result.outputs_compared, result.outputs_equal), (1, 1));
    assert_eq!(result.captured_ns, Some(1_000));
    assert!(result.median_ns.is_some_and(|ns| ns > 0));
}

#[test]
fn a_submission_of_a_fence_took_no_time() {
    let mut made = Made::new();
    made.submit(Vec::new());
    made.record(Record::Submission(Submission::default()));
    let (_folder, _, capture) = made.end();
    let Some(result) = run(&capture, &Options::default()) else {
        return;
    };
    assert_eq!(result.unwrap().captured_ns, Some(1_000));
}

#[test]
fn a_planted_difference_is_found_and_named() {
    let (_folder, _, capture) = two_dispatches(true);
    let Some(result) = run(&capture, &Options::default()) else {
        return;
    };
    let result = result.unwrap();
    assert!(!result.is_equal());
    let [difference] = result.differences.as_slice() else {
        panic!("{result:?}");
    };
    assert_eq!(difference.buffers[0].name.as_deref(), Some("numbers"));
    let writers: Vec<_> = difference
        .writers
        .iter()
        .map(|w| (w.dispatch, w.what.as_str()))
        .collect();
    assert_eq!(writers, [(Some(0), "add"), (Some(1), "add")]);
}

#[test]
fn memory_is_restored_before_each_run() {
    let (_folder, _, capture) = two_dispatches(false);
    for schedule in [Schedule::AsCaptured, Schedule::Serialised] {
        let options = Options {
            schedule,
            repeat: 3,
            warm_up: 1,
            ..Options::default()
        };
        let Some(result) = run(&capture, &options) else {
            return;
        };
        let result = result.unwrap();
        assert!(result.is_equal(), "{result:?}");
        assert_eq!((result.outputs_compared, result.runs_ns.len()), (4, 3));
    }
}

const SCHEDULES: [Schedule; 3] = [Schedule::AsCaptured, Schedule::Serialised, Schedule::Tight];

/// Runs a capture in every schedule, and expects so many outputs, all of them equal.
#[track_caller]
fn equal(capture: &Capture, apart: u64, tight: u64) {
    for schedule in SCHEDULES {
        let options = Options {
            schedule,
            ..Options::default()
        };
        let Some(result) = run(capture, &options) else {
            return;
        };
        let result = result.unwrap();
        assert!(result.is_equal(), "{result:?}");
        let expected = if schedule == Schedule::Tight {
            tight
        } else {
            apart
        };
        assert_eq!(result.outputs_compared, expected, "{result:?}");
    }
}

#[test]
fn what_the_host_writes_in_between_is_there() {
    let mut made = Made::new();
    let add = made.kernel(ADD, "add", 1, 4);
    let size = u64::from(WORDS) * 4;
    // The range crosses a boundary of pieces.
    let at = 65_536 - 512;
    let buffer = made.buffer("numbers", at, size);
    let one = || vec![dispatch(add, WORDS / 64, &[(buffer, size)], &[1])];
    made.content(at, &vec![100; WORDS as usize], ContentCause::FirstUse);
    made.submit(one());
    made.outcome(at, &vec![101; WORDS as usize]);
    // The host overwrites the first half, and the second half keeps the kernel's values.
    let half = WORDS as usize / 2;
    made.content(at, &vec![7; half], ContentCause::HostWrite);
    made.submit(one());
    let after = [vec![8; half], vec![102; half]].concat();
    made.outcome(at, &after);
    let (_folder, _, capture) = made.end();
    equal(&capture, 4, 2);
}

#[test]
fn buffers_over_the_same_memory_share_it() {
    let mut made = Made::new();
    let add = made.kernel(ADD, "add", 1, 4);
    let size = u64::from(WORDS) * 4;
    let whole = made.buffer("whole", 0, size * 2);
    let second = made.buffer("second half", size, size);
    made.submit(vec![
        Command::Fill(Fill {
            range: BufferRange::from_start(whole, size * 2),
            value: 5,
        }),
        everything(),
        dispatch(add, WORDS / 64, &[(second, size)], &[1]),
        everything(),
        Command::Copy(Copy::from_start(second, whole, 16)),
        everything(),
        Command::Update(Update {
            buffer: whole,
            offset: 32,
            data: vec![9; 4],
        }),
    ]);
    let mut after = [vec![5; WORDS as usize], vec![6; WORDS as usize]].concat();
    after[..4].fill(6);
    after[8] = 0x0909_0909;
    made.outcome(0, &after);
    let (_folder, _, capture) = made.end();
    equal(&capture, 1, 1);
}

#[test]
fn the_device_may_say_how_many_workgroups() {
    let mut made = Made::new();
    let add = made.kernel(ADD, "add", 1, 4);
    let size = u64::from(WORDS) * 4;
    let numbers = made.buffer("numbers", 0, size);
    let counts = made.buffer("counts", 1 << 18, 64);
    made.content((1 << 18) + 16, &[2, 1, 1], ContentCause::FirstUse);
    let range = BufferRange {
        buffer: counts,
        offset: 16,
        bytes: 12,
    };
    made.submit(vec![Command::Dispatch(Dispatch {
        pipeline: add,
        groups: Groups::Indirect(range),
        base: [0; 3],
        push_constants: bytes(&[3]),
        bindings: bindings(&[(numbers, size)]),
    })]);
    // Two of four workgroups run; memory that never had content is zero.
    made.outcome(0, &[vec![3; 128], vec![0; 128]].concat());
    let (_folder, _, capture) = made.end();
    equal(&capture, 1, 1);
}

#[test]
fn a_dispatch_may_begin_at_another_workgroup() {
    let mut made = Made::new();
    let add = made.kernel(ADD, "add", 1, 4);
    let size = u64::from(WORDS) * 4;
    let numbers = made.buffer("numbers", 0, size);
    made.submit(vec![Command::Dispatch(Dispatch {
        pipeline: add,
        groups: Groups::Direct([1, 1, 1]),
        base: [2, 0, 0],
        push_constants: bytes(&[3]),
        bindings: bindings(&[(numbers, size)]),
    })]);
    made.outcome(0, &[vec![0; 128], vec![3; 64], vec![0; 64]].concat());
    let (_folder, _, capture) = made.end();
    equal(&capture, 1, 1);
}

#[test]
fn halves_are_computed_with() {
    let mut made = Made::new();
    let wgsl = "
enable f16;
@group(0) @binding(0) var<storage, read_write> data: array<f16>;
@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3u) { data[id.x] = data[id.x] * 2.0h + 1.0h; }";
    let double = made.kernel(wgsl, "double", 1, 0);
    let halves = made.buffer("halves", 0, 512);
    // A word holds the two halves 1.0 and 3.0.
    made.content(0, &[0x3c00_3c00; 128], ContentCause::FirstUse);
    made.submit(vec![dispatch(double, 4, &[(halves, 512)], &[])]);
    made.outcome(0, &[0x4200_4200; 128]);
    let (_folder, _, capture) = made.end();
    equal(&capture, 1, 1);
}

/// The capture has resolved push descriptors and dynamic offsets, so that a replay does without them.
#[test]
fn layouts_for_push_descriptors_and_dynamic_offsets_become_plain_ones() {
    let mut made = Made::new();
    let code = made.compile(ADD);
    let code = made.writer.chunk(&code).unwrap();
    made.record(Record::Module(Module {
        id: ModuleId(50),
        code,
    }));
    let dynamic = 9;
    made.record(Record::SetLayout(SetLayout {
        id: SetLayoutId(50),
        // The layout has push descriptors, and an image that no kernel uses.
        flags: 1,
        bindings: [(0, dynamic), (1, 3)]
            .map(|(binding, descriptor_type)| LayoutBinding {
                flags: 1,
                ..LayoutBinding::for_compute(binding, descriptor_type)
            })
            .to_vec(),
    }));
    made.record(Record::PipelineLayout(PipelineLayout {
        id: PipelineLayoutId(50),
        sets: vec![Some(SetLayoutId(50)), None],
        push_constants: vec![PushConstantRange {
            stages: 0x20,
            offset: 0,
            bytes: 4,
        }],
        ..PipelineLayout::default()
    }));
    made.record(Record::Pipeline(Pipeline {
        id: PipelineId(50),
        layout: PipelineLayoutId(50),
        module: ModuleId(50),
        entry: "add".to_owned(),
        ..Pipeline::default()
    }));
    let buffer = made.buffer("numbers", 0, 4096);
    let mut bound = bindings(&[(buffer, 256)]);
    bound[0].descriptor_type = dynamic;
    bound[0].range = Some(BufferRange {
        buffer,
        offset: 1024,
        bytes: 256,
    });
    made.submit(vec![Command::Dispatch(Dispatch {
        pipeline: PipelineId(50),
        groups: Groups::Direct([1, 1, 1]),
        base: [0; 3],
        push_constants: bytes(&[4]),
        bindings: bound,
    })]);
    made.outcome(0, &[vec![0; 256], vec![4; 64], vec![0; 8]].concat());
    let (_folder, _, capture) = made.end();
    equal(&capture, 1, 1);
}

/// A command buffer that is submitted twice runs twice.
#[test]
fn a_command_buffer_runs_as_often_as_it_was_submitted() {
    let mut made = Made::new();
    let add = made.kernel(ADD, "add", 1, 4);
    let buffer = made.buffer("numbers", 0, 256);
    made.record(Record::Commands(Commands {
        id: CommandsId(99),
        commands: vec![dispatch(add, 1, &[(buffer, 256)], &[2])],
    }));
    for count in 1..=3 {
        made.submit_again(CommandsId(99));
        made.outcome(0, &[2 * count; 64]);
    }
    let (_folder, _, capture) = made.end();
    equal(&capture, 3, 1);
    let until = Options {
        extent: gapscope_replay::Extent::Until(1),
        ..Options::default()
    };
    let Some(result) = run(&capture, &until) else {
        return;
    };
    let result = result.unwrap();
    assert_eq!((result.dispatch_count, result.submission_count), (2, 2));
    // The command buffer has only the dispatch, so that both submissions are complete.
    assert!(
        result.outputs_compared >= 1 && result.is_equal(),
        "{result:?}"
    );
}

#[test]
fn values_are_compared_within_a_tolerance_where_the_capture_has_them() {
    let wgsl = "
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64)
fn half(@builtin(global_invocation_id) id: vec3u) { data[id.x] = data[id.x] * 0.5; }";
    for keeps_bytes in [true, false] {
        let mut made = Made::new();
        let half = made.kernel(wgsl, "half", 1, 0);
        let buffer = made.buffer("values", 0, 256);
        made.content(0, &[8.0_f32.to_bits(); 64], ContentCause::FirstUse);
        made.submit(vec![dispatch(half, 1, &[(buffer, 256)], &[])]);
        let mut after = [4.0_f32.to_bits(); 64];
        after[3] = 4.001_f32.to_bits();
        if keeps_bytes {
            made.writer.chunk(&bytes(&after)).unwrap();
        }
        made.outcome(0, &after);
        let (_folder, _, capture) = made.end();
        for (tolerance, near) in [(None, false), (Some(1e-6), false), (Some(1e-3), true)] {
            let options = Options {
                tolerance,
                ..Options::default()
            };
            let Some(result) = run(&capture, &options) else {
                return;
            };
            let result = result.unwrap();
            assert_eq!(
                result.is_equal(),
                near && keeps_bytes,
                "{tolerance:?} {result:?}"
            );
            assert_eq!(result.outputs_equal, 0);
            if let [difference] = result.differences.as_slice() {
                let first = difference
                    .first
                    .as_ref()
                    .map(|first| (first.element, first.captured.as_str()));
                assert_eq!(first, keeps_bytes.then_some((3, "4.001")));
            }
        }
    }
}
