//! Tests that times since 1970 are read from every format that has them, and that the stray times of another clock
//! take none of them away.

use crate::database::database;
use crate::imported::{import_bytes, loss};
use crate::perfetto_times::{self, Message};
use gapscope_import::{Options, import};
use gapscope_trace::{Selection, Trace, read};

/// In November 2025, two hours after midnight.
const NOW: i64 = 1_764_036_000_000_000_000 - 16 * 3_600_000_000_000 + 2 * 3_600_000_000_000;
const DAY_NS: i64 = 86_400_000_000_000;

/// Checks that all work has times that are possible on the clock of a trace, and that this clock is related to the
/// time since 1970.
fn assert_timed(trace: &Trace, starts_ns: &[i64]) {
    let starts = trace.tables.dispatches.start_ns.iter();
    let shift_ns = NOW % DAY_NS - NOW;
    let expected = starts_ns.iter().map(|ns| Some(ns + shift_ns));
    assert_eq!(Vec::from_iter(starts), Vec::from_iter(expected));
    let manifest = &trace.manifest;
    assert!((0..DAY_NS).contains(&manifest.start_ns), "{manifest:?}");
    let start_unix_ns = manifest.start_unix_ns.unwrap();
    assert_eq!(start_unix_ns, manifest.start_ns - shift_ns);
}

/// An export of Nsight Systems with a kernel 100 ns after a moment.
fn export(zero_ns: i64, rest: &str) -> Vec<u8> {
    let at = |ns: i64| zero_ns + ns;
    database(&format!(
        "StringIds id value\n[1, \"scale\"]\n[2, \"cudaLaunchKernel\"]\n\
         CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName\n\
         [{}, {}, 0, 1, 7, 5, 117440512, 1]\n\
         CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue\n\
         [{}, {}, 117440513, 5, 2, 0]\n\
         TARGET_INFO_GPU_METRICS typeId metricId metricName\n[1, 1, \"SMs Active [Throughput %]\"]\n\
         GPU_METRICS timestamp typeId metricId value\n[{}, 1, 1, 50]\n{rest}",
        at(100),
        at(150),
        at(90),
        at(95),
        at(110),
    ))
}

const NORMALIZED: &str =
    "META_DATA_EXPORT name value\n[\"EXPORT_PARAM_TIME_NORMALIZE\", \"true\"]\n";

#[test]
fn exports_of_nsight_systems_whose_times_are_normalised_have_times() {
    let trace = import_bytes("run.sqlite", &export(NOW, NORMALIZED)).unwrap();
    assert_timed(&trace.trace, &[NOW + 100]);
    let counters = &trace.trace.tables.counter_values;
    assert_eq!(counters.start_ns, [NOW % DAY_NS + 110]);
}

#[test]
fn exports_of_which_some_have_normalised_times_share_an_axis() {
    let session = format!("TARGET_INFO_SESSION_START_TIME utcEpochNs\n[{NOW}]\n");
    let normalised = export(NOW + 500, NORMALIZED);
    let folder = tempfile::tempdir().unwrap();
    for order in [[0, 1], [1, 0]] {
        let files = [export(0, &session), normalised.clone()];
        let paths = order.map(|index| {
            let path = folder.path().join(format!("{index}.sqlite"));
            std::fs::write(&path, &files[index]).unwrap();
            path
        });
        let output = folder.path().join(format!("{}.gapscope", order[0]));
        import(&paths, &output, &Options::default(), &|_, _| {}).unwrap();
        for (rank, index) in (0..).zip(order) {
            let (trace, _) = read(&output.join(format!("rank={rank}")), &Selection::all()).unwrap();
            let start_ns = NOW + 100 + [0, 500][index];
            assert_timed(&trace, &[start_ns]);
        }
    }
}

#[test]
fn traces_of_perfetto_without_snapshots_of_clocks_have_times() {
    let now = NOW.cast_unsigned();
    let spans: Vec<(u64, u64)> = (0..4)
        .map(|at| (now + at * 100, now + at * 100 + 50))
        .collect();
    let trace = perfetto_times::file(&spans, &spans);
    assert_timed(&trace, &[NOW, NOW + 100, NOW + 200, NOW + 300]);
    assert_eq!(trace.tables.markers.start_ns.at(0), Some(NOW % DAY_NS));
    // A time from the start of the machine is of another clock.
    let odd = [spans.clone(), vec![(7, 9)]].concat();
    let trace = perfetto_times::file(&odd, &odd);
    let starts = trace.tables.dispatches.start_ns.iter();
    assert_eq!(starts.flatten().count(), 4);
    assert!(loss(&trace, "they have no time on the trace's clock") > 0);
}

#[test]
fn profiles_of_xspace_have_times() {
    let metadata = Message::default()
        .number(1, 1)
        .message(2, Message::default().number(1, 1).bytes(2, b"gemm"));
    let event = |at_ps: u64| {
        Message::default()
            .number(1, 1)
            .number(2, at_ps)
            .number(3, 50_000)
    };
    let line = Message::default()
        .number(1, 20)
        .bytes(2, b"Stream #20(Compute)")
        .number(3, NOW.cast_unsigned())
        .message(4, event(0))
        .message(4, event(100_000));
    let plane = Message::default()
        .bytes(2, b"/device:GPU:0")
        .message(3, line)
        .message(4, metadata);
    let space = Message::default().message(1, plane);
    let trace = import_bytes("run.xplane.pb", &space.0).unwrap().trace;
    assert_timed(&trace, &[NOW, NOW + 100]);
}

/// A kernel of Chrome's JSON, in microseconds.
fn kernel(at_us: i64) -> String {
    format!(
        r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{at_us},"dur":5,"args":{{"device":0,"stream":7}}}}"#
    )
}

#[test]
fn a_first_event_with_another_clock_costs_itself_only() {
    let counter = r#"{"ph":"C","name":"mem","pid":9,"ts":1,"args":{"a":1}}"#.to_owned();
    let instant = r#"{"ph":"i","cat":"mark","name":"start","pid":9,"tid":9,"ts":5,"s":"t"}"#;
    let now_us = NOW / 1000;
    for first in [counter, instant.to_owned(), kernel(5)] {
        let kernels = [kernel(now_us), kernel(now_us + 100)];
        let events = [std::slice::from_ref(&first), &kernels].concat().join(",");
        for document in [
            format!("[{events}]"),
            format!(r#"{{"traceEvents":[{events}]}}"#),
        ] {
            let trace = import_bytes("run.json", document.as_bytes()).unwrap().trace;
            let timed = trace.tables.dispatches.start_ns.iter().flatten();
            let day_ns = NOW % DAY_NS;
            assert_eq!(Vec::from_iter(timed), [day_ns, day_ns + 100_000], "{first}");
            let lost = loss(&trace, "times");
            assert_eq!(lost, 1, "{first}: {:?}", trace.manifest.losses);
        }
    }
    // The late one is the odd one here.
    let events = [kernel(now_us), kernel(5), kernel(15)].join(",");
    let document = format!(r#"{{"traceEvents":[{events}]}}"#);
    let trace = import_bytes("run.json", document.as_bytes()).unwrap().trace;
    let timed = trace.tables.dispatches.start_ns.iter().flatten();
    assert_eq!(Vec::from_iter(timed), [5_000, 15_000]);
    assert_eq!(loss(&trace, "impossible"), 1, "{:?}", trace.manifest.losses);
}
