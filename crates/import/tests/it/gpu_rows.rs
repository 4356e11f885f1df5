//! Tests files of Chrome's JSON of which the user names the rows of a GPU, as wgpu-profiler writes them.

use crate::imported::{Import, Rows, fixture, import_with, path};
use gapscope_import::{GpuRows, Options};
use gapscope_trace::tables::{MarkerScope, Table};

/// What wgpu-profiler 0.27 writes of two frames: an encoder's scope around two passes and, in the second, a nested scope; a
/// label with quotes is not escaped.
const SCOPES: &str = r#"{
"traceEvents": [
{ "pid":4242, "tid":1, "ts":1000000.25, "dur":300.5, "ph":"X", "name":"frame" },
{ "pid":4242, "tid":1, "ts":1000010.25, "dur":100, "ph":"X", "name":"blur" },
{ "pid":4242, "tid":1, "ts":1000120.25, "dur":180.501, "ph":"X", "name":"draw" },
{ "pid":4242, "tid":1, "ts":1000130.25, "dur":50, "ph":"X", "name":"sky" },
{ "pid":4242, "tid":1, "ts":1000400.25, "dur":20, "ph":"X", "name":"copy" },
{ "pid":4242, "tid":2, "ts":1000410.25, "dur":20, "ph":"X", "name":"upload" }
]
}
"#;

fn options(rows: &[&str]) -> Options {
    Options {
        gpu_rows: rows
            .iter()
            .map(|rows| rows.parse().unwrap())
            .collect::<Vec<GpuRows>>(),
        ..Options::default()
    }
}

fn import(text: &str, rows: &[&str]) -> Import {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scopes.json");
    std::fs::write(&path, text).unwrap();
    import_with(&path, &options(rows)).unwrap()
}

/// Returns start, duration and label path of the work, by start.
fn work(import: &Import) -> Vec<(i64, i64, String)> {
    let mut work: Vec<_> = (import.trace.tables.opaque_work.iter())
        .map(|row| {
            (
                row.start_ns.unwrap(),
                row.duration_ns.unwrap(),
                path(&import.trace, row.label),
            )
        })
        .collect();
    work.sort();
    work
}

#[test]
fn scopes_without_inner_ones_are_work_and_those_around_them_are_labels() {
    let import = import(SCOPES, &["pid=*"]);
    let expected = [
        (1_000_010_250, 100_000, "frame / blur"),
        (1_000_130_250, 50_000, "frame / draw / sky"),
        (1_000_400_250, 20_000, "copy"),
        (1_000_410_250, 20_000, "upload"),
    ];
    let expected = expected.map(|(start_ns, ns, path)| (start_ns, ns, path.to_owned()));
    assert_eq!(work(&import), expected);
    let tables = &import.trace.tables;
    assert_eq!(tables.dispatches.len(), 0);
    let labels = tables
        .markers
        .iter()
        .map(|row| (row.scope, row.duration_ns.unwrap()));
    let mut labels: Vec<_> = labels.collect();
    labels.sort_by_key(|(_, ns)| *ns);
    assert_eq!(
        labels,
        [(MarkerScope::Queue, 180_501), (MarkerScope::Queue, 300_500)]
    );
    // Each row of the file is a queue of one device.
    assert_eq!(
        (
            import.trace.manifest.devices.len(),
            import.trace.manifest.queues.len()
        ),
        (1, 2)
    );
    assert_eq!(import.loss("host calls of GPU work"), 4);
    // 10 us before the first pass, 10 between both, and 10 and 120.5 around the inner scope of the second.
    assert!(
        import.notes("150.501 ms")
            || import.notes("0.151 ms of the outer scopes lie in no inner one")
    );
    assert!(import.notes("the GPU's own"));
}

#[test]
fn files_of_the_writer_of_wgpu_profiler_are_read() {
    // Three frames with three passes each that have times, and a scope of another thread; the second file ends with a comma,
    // because the last scope has no times.
    for (name, passes, rows) in [("wgpu-profiler", 10, 2), ("wgpu-profiler-late", 3, 1)] {
        let text = std::fs::read_to_string(fixture(&format!("{name}.json"))).unwrap();
        let import = import(&text, &["pid=*"]);
        let work = work(&import);
        assert_eq!(work.len(), passes, "{name}");
        assert_eq!(import.trace.manifest.queues.len(), rows, "{name}");
        let sky = work
            .iter()
            .filter(|(_, ns, path)| *ns == 1_943_262 && path == "frame / main pass / sky");
        assert_eq!(sky.count(), passes / 3, "{name}: {work:?}");
        let losses: Vec<_> = (import.trace.manifest.losses.iter())
            .map(|loss| loss.kind.as_str())
            .collect();
        assert_eq!(losses, ["host calls of GPU work"], "{name}");
    }
}

#[test]
fn only_the_named_rows_are_a_gpu_s() {
    let import = import(SCOPES, &["pid=4242,tid=2,device=3"]);
    assert_eq!(
        work(&import),
        [(1_000_410_250, 20_000, "upload".to_owned())]
    );
    assert_eq!(import.trace.tables.markers.len(), 5);
    let names = import
        .trace
        .manifest
        .devices
        .iter()
        .map(|device| device.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["unknown GPU 3"]);
}

#[test]
fn rows_are_named_by_names_categories_and_units_and_may_have_begins_and_ends() {
    let text = r#"[
        {"ph":"M","name":"process_name","pid":9,"tid":0,"args":{"name":"My GPU"}},
        {"ph":"M","name":"thread_name","pid":9,"tid":5,"args":{"name":"Queue 0"}},
        {"ph":"B","pid":9,"tid":5,"ts":1000,"name":"outer","cat":"gpu"},
        {"ph":"X","pid":9,"tid":5,"ts":1100,"dur":500,"name":"inner","cat":"gpu"},
        {"ph":"E","pid":9,"tid":5,"ts":2000},
        {"ph":"X","pid":9,"tid":6,"ts":1100,"dur":700,"name":"other","cat":"host"}]"#;
    for rows in [
        "process=*GPU*,thread=Queue *,unit=ns",
        "pid=9,tid=5,unit=ns",
    ] {
        let import = import(text, &[rows]);
        assert_eq!(
            work(&import),
            [(1100, 500, "outer / inner".to_owned())],
            "{rows}"
        );
        let queue = import.trace.manifest.queues[0].name.as_deref();
        assert_eq!(queue, Some("Queue 0"));
    }
    assert_eq!(
        work(&import(text, &["cat=gpu"])),
        [(1_100_000, 500_000, "outer / inner".to_owned())]
    );
}

#[test]
fn a_file_without_gpu_work_says_which_rows_it_has_and_what_to_write() {
    let import = import(SCOPES, &[]);
    assert!(import.notes("gapscope import --gpu 'pid=…,tid=…'"));
    assert!(import.notes("pid=4242,tid=1 (5 ranges, the first is \"frame\"), pid=4242,tid=2 (1 range, the first is \"upload\")"));
}

#[test]
fn times_in_nanoseconds_are_read_up_to_those_since_1970() {
    for start_ns in [5_184_000_000_000_000_i64, 1_764_000_000_000_000_000] {
        let scope = |at: i64| {
            let ts = start_ns + at;
            format!(r#"{{"ph":"X","name":"pass","pid":7,"tid":1,"ts":{ts},"dur":50001}}"#)
        };
        let text = format!(r#"{{"traceEvents":[{},{}]}}"#, scope(0), scope(100_003));
        let import = import(&text, &["pid=7,unit=ns"]);
        let work = work(&import);
        let times = work
            .iter()
            .map(|(start_ns, ns, _)| (start_ns - work[0].0, *ns));
        assert_eq!(Vec::from_iter(times), [(0, 50_001), (100_003, 50_001)]);
    }
}

#[test]
fn rows_whose_times_are_impossible_in_their_unit_are_said_to_be() {
    let text = r#"[{"ph":"X","name":"pass","pid":7,"tid":1,"ts":1764000000000000000,"dur":50001}]"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scopes.json");
    std::fs::write(&path, text).unwrap();
    let error = import_with(&path, &options(&["pid=7"]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("1 scopes lie on rows that --gpu names"),
        "{error}"
    );
    assert!(error.contains("unit=ns"), "{error}");
}
