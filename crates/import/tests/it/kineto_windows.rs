//! Tests files of several windows in which a process recorded, as a schedule of torch.profiler writes them.

use gapscope_import::{Error, Options};
use gapscope_trace::tables::{HostCallKind, NOT_RECORDED_CALL};
use gapscope_trace::{Selection, Trace, read};
use std::path::Path;

/// A document of a process: ten launches of a kernel of 40 µs, each 100 µs after the one before.
fn window(pid: u32, rank: Option<u32>, start_us: u64) -> String {
    let event = |at: u64| {
        let (call, correlation) = (start_us + at * 100, start_us + at + 1);
        let work = call + 10;
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{pid},"tid":{pid},"ts":{call},"dur":5,"args":{{"correlation":{correlation}}}}},
            {{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{work},"dur":40,"args":{{"device":0,"context":1,"stream":7,"correlation":{correlation}}}}}"#
        )
    };
    let rank = rank.map_or(String::new(), |rank| {
        format!(r#""distributedInfo":{{"rank":{rank},"world_size":2}},"#)
    });
    let events: Vec<String> = (0..10).map(event).collect();
    format!(
        r#"{{"schemaVersion":1,"baseTimeNanoseconds":1700000000000000000,{rank}"traceEvents":[{}]}}"#,
        events.join(",\n")
    )
}

/// Imports a folder of files, and returns the trace without a rank and those of its ranks.
fn import(files: &[(&str, String)]) -> Result<(Trace, Vec<Trace>), Error> {
    let folder = tempfile::tempdir().unwrap();
    let [input, output] = ["files", "out.gapscope"].map(|name| folder.path().join(name));
    std::fs::create_dir(&input).unwrap();
    for (name, text) in files {
        std::fs::write(input.join(name), text).unwrap();
    }
    gapscope_import::import(&[input], &output, &Options::default(), &|_, _| ())?;
    let of = |path: &Path| read(path, &Selection::all()).unwrap().0;
    let all = of(&output);
    let ranks = all.manifest.ranks.iter();
    let ranks = ranks.map(|rank| of(&output.join(format!("rank={rank}"))));
    let ranks = ranks.collect();
    Ok((all, ranks))
}

/// The number of dispatches, of those with a submission, and the times in which nothing was recorded, in µs.
fn facts(trace: &Trace) -> (usize, usize, Vec<(i64, i64)>) {
    let tables = &trace.tables;
    let calls = &tables.host_calls;
    let paused = (0..calls.call.len()).filter(|row| {
        let function = calls.function.get(*row).cloned().flatten();
        calls.call[*row] == HostCallKind::Recording
            && function.as_deref() == Some(NOT_RECORDED_CALL)
    });
    let us = |ns: i64| ns / 1000;
    let paused = paused.map(|row| (us(calls.start_ns[row]), us(calls.duration_ns[row])));
    let launched = tables.dispatches.submission.iter().flatten().count();
    (tables.dispatches.queue.len(), launched, paused.collect())
}

#[test]
fn windows_of_one_process_are_one_trace_with_the_time_between_them_left_out() {
    let files = [
        ("host_7.17.pt.trace.json", window(7, None, 900_000)),
        ("host_7.18.pt.trace.json", window(7, None, 100_000)),
    ];
    let (trace, ranks) = import(&files).unwrap();
    assert!(ranks.is_empty());
    assert_eq!(facts(&trace), (20, 20, vec![(100_950, 799_050)]));
    // One file with both documents says the same.
    let both = files.map(|(_, text)| text).join("\n");
    let (trace, _) = import(&[("both.json", both)]).unwrap();
    assert_eq!(facts(&trace), (20, 20, vec![(100_950, 799_050)]));
}

#[test]
fn windows_of_ranks_are_traces_of_the_ranks() {
    let said = |rank: u32, start_us| window(10 + rank, Some(rank), start_us);
    let named = |rank: u32, start_us| window(10 + rank, None, start_us);
    for of in [&said as &dyn Fn(u32, u64) -> String, &named] {
        let files = [
            ("rank0_step10.json", of(0, 100_000)),
            ("rank0_step20.json", of(0, 900_000)),
            ("rank1_step10.json", of(1, 100_000)),
            ("rank1_step20.json", of(1, 900_000)),
        ];
        let (all, ranks) = import(&files).unwrap();
        assert_eq!(all.manifest.ranks, [0, 1]);
        for rank in &ranks {
            assert_eq!(facts(rank), (20, 20, vec![(100_950, 799_050)]));
        }
    }
    // One rank alone needs no folder of ranks.
    let files = [("a.json", said(1, 900_000)), ("b.json", said(1, 100_000))];
    let (trace, ranks) = import(&files).unwrap();
    assert!(ranks.is_empty());
    assert_eq!(trace.manifest.rank.map(|rank| rank.rank), Some(1));
    assert_eq!(facts(&trace).0, 20);
}

#[test]
fn files_of_one_rank_that_are_no_windows_are_refused() {
    let of = |pid, start_us| window(pid, Some(0), start_us);
    for (other, reason) in [
        (of(7, 100_500), "recorded the same time"),
        (of(8, 900_000), "is of another process"),
    ] {
        let error = import(&[("a.json", of(7, 100_000)), ("b.json", other)]).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn the_time_of_a_large_hole_in_a_file_is_not_known() {
    let whole = window(7, None, 100_000);
    let holes = [b'\0', b'#'].map(|byte| {
        let mut bytes = whole.clone().into_bytes();
        let (third, length) = (bytes.len() / 3, bytes.len());
        bytes[third..length - third].fill(byte);
        bytes
    });
    for bytes in holes {
        let import = crate::imported::import_bytes("trace.json", &bytes).unwrap();
        let (dispatches, launched, unknown) = facts(&import.trace);
        assert_eq!(import.loss("parts of files"), 1);
        // Of ten launches the middle ones are lost.
        assert!((5..=8).contains(&dispatches), "{dispatches}");
        assert!(launched < 8);
        let [(start, length)] = unknown.as_slice() else {
            panic!("{unknown:?}");
        };
        assert!((100_200..100_400).contains(start), "{unknown:?}");
        assert!((200..500).contains(length), "{unknown:?}");
        assert!(import.notes("could not be read is not known"));
    }
}
