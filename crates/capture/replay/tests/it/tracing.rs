//! Checks the traces that replays write.

use gapscope_capture::model::*;
use gapscope_replay::{Options, Schedule};
use gapscope_trace::tables::Table;
use gapscope_trace::{Selection, read};

use crate::captured::*;
use crate::running::run;

const KERNEL: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn fill(@builtin(global_invocation_id) id: vec3u) { data[id.x] = id.x; }";

#[test]
fn all_that_ran_has_its_row_and_its_time() {
    for schedule in [Schedule::AsCaptured, Schedule::Serialised, Schedule::Tight] {
        let mut made = Made::new();
        let fill = made.kernel(KERNEL, "fill", 1, 0);
        let buffer = made.buffer("numbers", 0, 256);
        let range = BufferRange::from_start(buffer, 256);
        for _ in 0..2 {
            made.submit(vec![
                Command::Label(Label::Begin("step".to_owned())),
                dispatch(fill, 1, &[(buffer, 256)], &[]),
                everything(),
                Command::Fill(Fill { range, value: 1 }),
                Command::Label(Label::End),
            ]);
        }
        let (folder, _, capture) = made.end();
        let path = folder.path().join("replay.gapscope");
        let options = Options {
            schedule,
            repeat: 3,
            warm_up: 1,
            trace: Some(path.clone()),
            ..Options::default()
        };
        let Some(result) = run(&capture, &options) else {
            return;
        };
        result.unwrap();
        let (trace, diagnostics) = read(&path, &Selection::all()).unwrap();
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let tables = &trace.tables;
        assert_eq!((tables.dispatches.len(), tables.transfers.len()), (6, 6));
        assert_eq!(tables.command_buffers.len(), 6);
        let submissions = if schedule == Schedule::Tight { 3 } else { 6 };
        assert_eq!(tables.submissions.len(), submissions);
        let times = tables
            .dispatches
            .duration_ns
            .iter()
            .chain(&tables.transfers.duration_ns);
        assert!(times.clone().all(|time| time.is_some()));
        // Device times lie between the call and the moment when the end was seen, within the error of the clock.
        let error = trace.manifest.devices[0]
            .clock
            .error_ns
            .expect("it is known");
        let (start, end) = (
            trace.manifest.start_ns - error,
            trace.manifest.end_ns + error,
        );
        let starts = tables
            .dispatches
            .start_ns
            .iter()
            .map(|start| start.expect("known"));
        for at in starts {
            assert!((start..=end).contains(&at), "{start} {at} {end}");
        }
        let texts: Vec<&str> = tables.labels.text.iter().map(|text| &**text).collect();
        assert!(
            texts.contains(&"step") && texts.contains(&"run 2"),
            "{texts:?}"
        );
        assert_eq!(tables.markers.len(), 6);
        assert_eq!(&*tables.kernels.name[0], "fill");
        assert_eq!(tables.bindings.len(), 1);
        // The code and the bound buffers say what a kernel must write at least.
        let accesses = tables.kernels.accesses[0].as_deref();
        assert!(
            accesses.is_some_and(|text| text.starts_with("threads 64.1.1")),
            "{accesses:?}"
        );
    }
}
