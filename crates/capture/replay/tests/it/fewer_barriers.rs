//! Runs captures without the barriers that no dependency needs, and checks their outputs.

use std::collections::BTreeSet;

use gapscope_capture::Capture;
use gapscope_capture::model::*;
use gapscope_replay::{FewerBarriers, Options, Schedule, replay_without};

use crate::captured::*;
use crate::on_device;

const COPY: &str = "
@group(0) @binding(0) var<storage, read_write> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> target_: array<u32>;
@compute @workgroup_size(64)
fn copy(@builtin(global_invocation_id) id: vec3u) { target_[id.x] = source[id.x] + 1; }";

/// Makes a window of two equal submissions: from buffer 0 to 1 and from 2 to 3, with a barrier between them that
/// neither needs, then from 1 to 2 behind a barrier that it needs.
fn window(planted: u32) -> (tempfile::TempDir, std::path::PathBuf, Capture) {
    let mut made = Made::new();
    let copy = made.kernel(COPY, "copy", 2, 0);
    let buffers: Vec<BufferId> = (0..4_u32)
        .map(|number| made.buffer(&format!("b{number}"), 4096 * u64::from(number + 1), 256))
        .collect();
    for number in 0..4_u32 {
        let words = [100 * number; 64];
        made.content(4096 * u64::from(number + 1), &words, ContentCause::FirstUse);
    }
    let of = |from: usize, to: usize| {
        dispatch(copy, 1, &[(buffers[from], 256), (buffers[to], 256)], &[])
    };
    for last in [2, 3 + planted] {
        made.submit(vec![of(0, 1), barrier(), of(2, 3), barrier(), of(1, 2)]);
        made.outcome(4096 * 3, &[last; 64]);
        // The host writes the same again before the second submission.
        made.content(4096, &[1; 64], ContentCause::HostWrite);
    }
    made.end()
}

fn run(capture: &Capture, left_out: &[usize], options: &Options) -> Option<FewerBarriers> {
    let left_out: BTreeSet<usize> = left_out.iter().copied().collect();
    on_device(replay_without(capture, &left_out, options)).map(Result::unwrap)
}

#[test]
fn both_forms_run_as_often_and_give_the_same() {
    let (_folder, _, capture) = window(0);
    for schedule in [Schedule::AsCaptured, Schedule::Tight] {
        let options = Options {
            schedule,
            repeat: 3,
            warm_up: 1,
            ..Options::default()
        };
        // The first barrier of each submission is left out; place 0 is a dispatch, which stays.
        let Some(ran) = run(&capture, &[0, 1, 6], &options) else {
            return;
        };
        assert!(ran.is_equal(), "{ran:?}");
        assert_eq!((ran.barrier_count, ran.left_out_count), (4, 2));
        assert_eq!((ran.dispatch_count, ran.submission_count), (6, 2));
        for of in [&ran.all, &ran.fewer] {
            assert_eq!(of.runs_ns.len(), 3);
            // In a single submission only the contents at its end are compared.
            let outcomes = if schedule == Schedule::Tight { 1 } else { 2 };
            assert_eq!(of.outputs_compared, 4 * outcomes);
            assert_eq!(of.outputs_equal, of.outputs_compared);
            assert!(of.least_ns <= of.median_ns && of.median_ns <= of.most_ns);
        }
    }
}

#[test]
fn what_differs_is_said_of_both_forms() {
    let (_folder, _, capture) = window(1);
    let Some(ran) = run(&capture, &[1, 6], &Options::default()) else {
        return;
    };
    assert!(!ran.is_equal());
    for of in [&ran.all, &ran.fewer] {
        assert_eq!(
            (of.outputs_compared, of.outputs_equal, of.different()),
            (2, 1, 1)
        );
        assert_eq!(of.differences[0].buffers[0].name.as_deref(), Some("b2"));
    }
}
