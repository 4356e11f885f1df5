//! Captures that run, and give what the program had.

use gapscope_capture::Capture;
use gapscope_capture::model::*;
use gapscope_replay::{Error, Options, Replay, Schedule, replay};

use crate::captured::*;

const ADD: &str = "
struct Parameters { value: u32 }
var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3u) {
    data[id.x] = data[id.x] + parameters.value;
}";
const WORDS: u32 = 256;

/// Runs a capture on the software GPU, or whatever there is; none where there is no Vulkan and none is demanded.
pub fn run(capture: &Capture, options: &Options) -> Option<Result<Replay, Error>> {
    let result = replay(capture, options);
    if let Err(Error::NoLoader(_) | Error::NoDevice(_)) = result {
        let required = std::env::var_os("GAPSCOPE_REQUIRE_GPU").is_some_and(|value| value == "1");
        assert!(!required, "there is no Vulkan device");
        eprintln!("skipped: there is no Vulkan device");
        return None;
    }
    Some(result)
}

/// A kernel that adds 1 and then 10 to numbers, with the outcome of that or, planted, another.
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
