//! Tests files whose times cannot be true, whose texts are missing, whose devices have numbers of their own, and inputs that are no files.

use crate::database::database;
use crate::imported::{import_bytes, import_with, kernel, loss, noted};
use gapscope_import::Options;
use gapscope_timeline::Timeline;
use gapscope_timeline::busy::{busy, names};
use gapscope_trace::Trace;

fn kineto(events: &[String], members: &str) -> Trace {
    let text = format!(r#"{{{members}"traceEvents":[{}]}}"#, events.join(","));
    import_bytes("strange.json", text.as_bytes()).unwrap().trace
}

/// Returns a call with a kernel 10 µs later, on a device of a process.
fn launch(pid: u32, device: u32, number: u32, at: i64) -> [String; 2] {
    // The correlation 0 stands for none.
    let correlation = number + 1;
    [
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{pid},"tid":{pid},"ts":{at},"dur":5,"args":{{"correlation":{correlation}}}}}"#
        ),
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":{device},"tid":7,"ts":{},"dur":50,"args":{{"device":{device},"stream":7,"correlation":{correlation}}}}}"#,
            at + 10
        ),
    ]
}

fn untimed(trace: &Trace) -> usize {
    let starts = trace.tables.dispatches.start_ns.iter();
    starts.filter(|start| start.is_none()).count()
}

#[test]
fn a_time_before_the_clock_began_is_unknown() {
    let events = |first: i64, odd: i64| -> Vec<String> {
        let mut events: Vec<String> = (0..10)
            .flat_map(|at| launch(1, 0, at, first + i64::from(at) * 100))
            .collect();
        events.extend(launch(1, 0, 99, odd));
        events
    };
    let trace = kineto(&events(1000, -5000), "");
    assert_eq!(untimed(&trace), 1);
    assert_eq!(loss(&trace, "dispatch time"), 1);
    assert!(trace.manifest.end_ns - trace.manifest.start_ns < 1_100_000);
    // Where most times are before 0, somebody chose a moment to count from.
    let trace = kineto(&events(-5000, 3000), "");
    assert_eq!(untimed(&trace), 0);
}

/// Returns an export with kernels of one stream at these times in nanoseconds, with and without texts.
fn nsys(kernels: &[(i64, i64)], has_texts: bool) -> Trace {
    let texts = "StringIds id value\n[1, \"scale\"]\n[2, \"cudaLaunchKernel_v7000\"]\n[3, \"cudaStreamSynchronize_v3020\"]\n";
    let mut text = String::from(if has_texts { texts } else { "" });
    text += "CUPTI_ACTIVITY_KIND_RUNTIME start end correlationId nameId globalTid\n";
    for at in 0..kernels.len() as i64 + 1 {
        let start = 2_000_000_000 + at * 100_000;
        text += &format!("[{start}, {}, {at}, 2, 117440519]\n", start + 5000);
    }
    text += "[2900000000, 2900001000, 500, 3, 117440519]\n";
    text += "CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName\n";
    for (at, (start, end)) in kernels.iter().enumerate() {
        text += &format!("[{start}, {end}, 0, 1, 7, {at}, 117440512, 1]\n");
    }
    text += "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start end globalPid deviceId contextId streamId correlationId syncType\n";
    text += "[2900000000, 2900001000, 117440512, 0, 1, 7, 500, 3]\n";
    import_bytes("export.sqlite", &database(&text))
        .unwrap()
        .trace
}

#[test]
fn many_short_kernels_at_one_nanosecond_have_no_times() {
    for length_ns in [1, 1000, 5000] {
        let trace = nsys(&[(2_100_000_000, 2_100_000_000 + length_ns); 20], true);
        assert_eq!(untimed(&trace), 20, "{length_ns}");
        assert!(noted(&trace, "start in the same nanosecond"));
    }
    // Short kernels one behind the other are possible.
    let kernels: Vec<(i64, i64)> = (0..20)
        .map(|at| (2_100_000_000 + at * 1000, 2_100_000_900 + at * 1000))
        .collect();
    assert_eq!(untimed(&nsys(&kernels, true)), 0);
}

#[test]
fn an_export_without_texts_keeps_its_launches() {
    let kernels: Vec<(i64, i64)> = (0..20)
        .map(|at| (2_000_010_000 + at * 100_000, 2_000_060_000 + at * 100_000))
        .collect();
    let whole = nsys(&kernels, true);
    let trace = nsys(&kernels, false);
    let tables = |trace: &Trace| {
        let tables = &trace.tables;
        let calls = tables.host_calls.call.clone();
        (
            tables.submissions.kind.clone(),
            tables.dispatches.submission.iter().collect::<Vec<_>>(),
            calls,
        )
    };
    assert_eq!(tables(&trace), tables(&whole));
    // One launch has no kernel, in either.
    assert_eq!(loss(&whole, "dispatch"), 1);
    let losses = trace.manifest.losses.iter();
    let of = |kind: &str| {
        let mut found = losses.clone().filter(|loss| loss.kind.as_str() == kind);
        found.next().map_or(0, |loss| loss.count)
    };
    assert_eq!(of("dispatches"), 1);
    assert_eq!(of("names of host calls"), 22);
    assert_eq!(of("kernels of dispatches"), 20);
    let name = kernel(&trace, trace.tables.dispatches.kernel[0]).name;
    assert_eq!(&*name, "unknown kernel 1");
}

#[test]
fn the_profilers_log_says_what_lies_outside_of_its_window() {
    let log = r#""INFO":["Record counts: Out-of-range = 3829, Blocklisted runtime = 7, Unexpected CUDA events = 0, CUPTI stopped early? = 0"],"WARNING":["Dropped 5 activity records"],"#;
    let mut events: Vec<String> = (0..10)
        .flat_map(|at| launch(1, 0, at, 1000 + i64::from(at) * 100))
        .collect();
    // A launch without its kernel.
    events.push(launch(1, 0, 99, 1990)[0].clone());
    let trace = kineto(
        &events,
        &log.replace(r#""WARNING":["Dropped 5 activity records"],"#, ""),
    );
    assert_eq!(loss(&trace, "CUDA activities"), 3829);
    assert_eq!(loss(&trace, "block list"), 7);
    let timeline = Timeline::new(&trace);
    let unknown = gapscope_timeline::unknown_counts::unknown_counts(&timeline);
    let because: Vec<&str> = unknown.iter().map(|one| one.because.as_str()).collect();
    assert_eq!(
        because,
        ["they were launched, and the file has no rows of what the device did"]
    );
    let trace = kineto(&events[..20], log);
    assert_eq!(loss(&trace, "dropped CUDA activities"), 5);
    let timeline = Timeline::new(&trace);
    let unknown = gapscope_timeline::unknown_counts::unknown_counts(&timeline);
    assert!(
        unknown
            .iter()
            .all(|one| one.because.contains("CUPTI had no room"))
    );
    assert!(!unknown.is_empty());
}

#[test]
fn devices_are_called_by_the_numbers_of_their_file() {
    let named = |trace: &Trace| names(&busy(&Timeline::new(trace), None));
    let both = |first: [u32; 2], second: [u32; 2]| {
        let mut events = Vec::new();
        for at in 0..10 {
            let [pid, device] = first;
            events.extend(launch(pid, device, at, 1000 + i64::from(at) * 100));
            let [pid, device] = second;
            events.extend(launch(pid, device, 100 + at, 1005 + i64::from(at) * 100));
        }
        let devices = r#""deviceProperties":[{"id":0,"name":"H100"},{"id":3,"name":"H100"},{"id":5,"name":"H100"}],"#;
        kineto(&events, devices)
    };
    // Whoever is called first, the number of the file is the device's name.
    assert_eq!(named(&both([1, 5], [1, 3])), ["GPU 3", "GPU 5"]);
    assert_eq!(named(&both([1, 0], [1, 5])), ["GPU 0", "GPU 5"]);
    // Two processes that use a GPU of their own under one number, at the same time.
    let of_processes = named(&both([100, 0], [200, 0]));
    assert_eq!(
        of_processes,
        ["GPU 0 of process 100", "GPU 0 of process 200"]
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("trace.json");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [pipe.as_path(), std::path::Path::new("/dev/zero")] {
        let Err(error) = import_with(path, &Options::default()) else {
            panic!("{} was imported", path.display());
        };
        assert!(error.to_string().contains("neither a file nor a folder"));
    }
}

#[test]
fn files_of_different_formats_are_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let text =
        r#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":5}]}"#;
    std::fs::write(&json, text).unwrap();
    let database = crate::imported::fixture("rocpd.db");
    for inputs in [[json.clone(), database.clone()], [database, json]] {
        let output = folder.path().join("out.gapscope");
        let options = gapscope_import::Options::default();
        let error = gapscope_import::import(&inputs, &output, &options, &|_, _| ());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("different formats"), "{error}");
        assert!(
            error.contains("rocpd.db") && error.contains("run.json"),
            "{error}"
        );
    }
}

#[test]
fn a_process_that_is_not_in_the_file_is_named() {
    let call = |pid: u32| {
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{pid},"tid":1,"ts":5,"dur":5}}"#
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, pids: &[u32]| {
        let path = folder.path().join(name);
        let events: Vec<String> = pids.iter().map(|pid| call(*pid)).collect();
        std::fs::write(&path, format!("[{}]", events.join(","))).unwrap();
        path
    };
    let (one, two) = (write("one.json", &[100]), write("two.json", &[100, 200]));
    let import = |path: &std::path::Path, pid: u32| {
        let options = gapscope_import::Options {
            pid: Some(pid),
            ..gapscope_import::Options::default()
        };
        let import = crate::imported::import_with(path, &options);
        import.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(import(&one, 100), Ok(()));
    for path in [
        one,
        two.clone(),
        crate::imported::fixture("rocpd.db"),
        crate::imported::fixture("rocprofv3.json"),
        "tests/perfetto/vulkan_api_events.pftrace".into(),
    ] {
        let error = import(&path, 4_000_999).unwrap_err();
        assert!(error.contains("of process 4000999"), "{error}");
    }
    let error = import(&two, 100).unwrap_err();
    assert!(error.contains("several processes (100, 200)"), "{error}");
}
