//! Checks the results of inspecting single dispatches: searches for infinities, dumps of buffers, and times of one
//! dispatch.

use gapscope_capture::Capture;
use gapscope_capture::model::*;
use gapscope_replay::{Element, Error, Options, dump, find_odd_value};

use crate::captured::*;
use crate::running::run;

/// A kernel that divides by a number; only 0 makes infinities.
const DIVIDE: &str = "
struct Parameters { by: f32 }
var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64)
fn divide(@builtin(global_invocation_id) id: vec3u) { data[id.x] = data[id.x] / parameters.by; }";

/// Makes a capture that divides by 2, by 0 and by 4.
fn divisions() -> (tempfile::TempDir, Capture) {
    let mut made = Made::new();
    let divide = made.kernel(DIVIDE, "divide", 1, 4);
    let buffer = made.buffer("quotients", 256, 256);
    made.content(256, &[12.0_f32.to_bits(); 64], ContentCause::FirstUse);
    let by = |by: f32| dispatch(divide, 1, &[(buffer, 256)], &[by.to_bits()]);
    made.submit(vec![by(2.0), barrier(), by(0.0), barrier(), by(4.0)]);
    let (folder, _, capture) = made.end();
    (folder, capture)
}

fn has_gpu(capture: &Capture) -> bool {
    run(capture, &Options::default()).is_some()
}

#[test]
fn the_first_dispatch_that_wrote_an_infinity_is_named() {
    let (_folder, capture) = divisions();
    if !has_gpu(&capture) {
        return;
    }
    let search = find_odd_value(&capture, None, &Options::default()).unwrap();
    let found = search.found.expect("it is there");
    assert_eq!((found.dispatch, found.kernel.as_str()), (1, "divide"));
    assert_eq!(
        (found.name.as_deref(), found.offset, found.count),
        (Some("quotients"), 0, 64)
    );
    assert_eq!((found.element, found.value.as_str()), (Element::F32, "inf"));
    let until = Options {
        extent: gapscope_replay::Extent::Until(0),
        ..Options::default()
    };
    let search = find_odd_value(&capture, None, &until).unwrap();
    assert_eq!(
        (search.found, search.dispatches, search.ranges),
        (None, 1, 1)
    );
    // Integers are never NaN or infinite, which is an error to ask for.
    let wrong = find_odd_value(&capture, Some(Element::I32), &Options::default());
    assert!(matches!(wrong, Err(Error::Unsupported(_))), "{wrong:?}");
}

#[test]
fn a_buffer_is_written_as_it_is_after_a_dispatch() {
    let (folder, capture) = divisions();
    if !has_gpu(&capture) {
        return;
    }
    for (dispatch, expected) in [(0, 6.0_f32), (1, f32::INFINITY)] {
        let to = folder.path().join(format!("{dispatch}.npy"));
        let dumped = dump(
            &capture,
            "quotients",
            dispatch,
            None,
            &to,
            &Options::default(),
        )
        .unwrap();
        assert_eq!(
            (dumped.bytes, dumped.touched_bytes, dumped.element),
            (256, 256, Element::F32)
        );
        let file = std::fs::read(&to).unwrap();
        assert!(file.starts_with(b"\x93NUMPY\x01\x00"));
        assert_eq!(file[128..], expected.to_le_bytes().repeat(64));
    }
    let to = folder.path().join("raw.bin");
    dump(&capture, "1000", 0, None, &to, &Options::default()).expect_err("no buffer has this name");
    let again = dump(&capture, "quotients", 9, None, &to, &Options::default());
    assert!(matches!(
        again,
        Err(Error::NoSuchDispatch { asked: 9, count: 3 })
    ));
}

#[test]
fn one_dispatch_is_timed_with_the_memory_that_it_found() {
    let (_folder, capture) = divisions();
    let options = Options {
        only: Some(2),
        repeat: 4,
        warm_up: 1,
        ..Options::default()
    };
    let Some(result) = run(&capture, &options) else {
        return;
    };
    let result = result.unwrap();
    assert_eq!((result.dispatch_count, result.runs_ns.len()), (1, 4));
    assert!(
        result.median_ns.is_some() && result.outputs_compared == 0,
        "{result:?}"
    );
}
