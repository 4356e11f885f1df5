//! Traces of every version have the same SQL columns.

use crate::{TestFolder, count, csv};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use gapscope_query::{Session, Traces};
use gapscope_trace::Trace;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::path::Path;
use std::sync::Arc;

/// Opens a session on the committed traces of all versions.
fn fixtures(versions: &[u32]) -> Session {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let folders = versions
        .iter()
        .map(|version| fixtures.join(format!("v{version}.gapscope")).into());
    let traces = Traces::open(&folders.collect::<Vec<_>>()).expect("they open");
    Session::new(traces).expect("a session")
}

const TABLES: [&str; 14] = [
    "dispatches",
    "command_buffers",
    "submissions",
    "dependencies",
    "transfers",
    "opaque_work",
    "barriers",
    "host_calls",
    "markers",
    "labels",
    "memory",
    "buffers",
    "bindings",
    "kernels",
];

#[test]
fn both_versions_give_the_same_rows_in_every_table_that_both_have() {
    let sessions = [1, 2].map(|version| fixtures(&[version]));
    for table in TABLES {
        let sql = format!("select * from {table}");
        let answers = sessions.each_ref().map(|session| {
            let answer = csv(session, &sql);
            // Only the trace's name differs.
            let answer = answer.replace("v1.gapscope", "v2.gapscope");
            let mut rows: Vec<String> = answer.lines().map(str::to_owned).collect();
            rows.sort();
            rows
        });
        assert!(answers[0].len() > 1, "{table} has rows");
        assert_eq!(answers[0], answers[1], "{table}");
    }
    for session in &sessions {
        assert!(session.take_remarks().is_empty());
    }
}

#[test]
fn one_query_takes_both_versions() {
    let session = fixtures(&[1, 2]);
    let sql = "select start_ns, duration_ns, kind, thread_name, count(distinct trace) as traces
        from submissions group by all order by start_ns";
    assert_eq!(
        csv(&session, sql),
        "start_ns,duration_ns,kind,thread_name,traces\n\
         1100000000,20000,command-buffers,python (4711),2\n\
         1200000000,20000,command-buffers,python (4711),2\n"
    );
    assert!(session.take_remarks().is_empty());
}

#[test]
fn tables_that_version_1_lacks_are_empty_and_nothing_is_missing() {
    let sql =
        "select counter_name, start_ns, duration_ns, value from counter_values order by start_ns";
    let header = "counter_name,start_ns,duration_ns,value\n";
    let rows = "memory clock,1100000000,1000000,2619000000.0\nmemory clock,1200000000,,0.5\n";
    for (versions, rows) in [(&[1][..], ""), (&[2], rows), (&[1, 2], rows)] {
        let session = fixtures(versions);
        assert_eq!(csv(&session, sql), format!("{header}{rows}"));
        assert!(session.take_remarks().is_empty());
    }
    let session = fixtures(&[2]);
    let sql = "select name, unit, device_name, queue_name from counters";
    assert_eq!(
        csv(&session, sql),
        "name,unit,device_name,queue_name\nmemory clock,hertz,Some device,main\n"
    );
    // Without its file, a trace whose version has the table is damaged.
    let folder = TestFolder::new();
    folder.trace("t.gapscope", crate::TEXT);
    std::fs::remove_file(folder.path("t.gapscope/counters.parquet")).unwrap();
    let session = folder.session(&["t.gapscope"]);
    assert_eq!(count(&session, "counters"), 0);
    assert_eq!(session.take_remarks().len(), 1);
}

#[test]
fn samples_say_their_code_by_names_and_versions_without_have_none() {
    let sql = "select time_ns, thread_name, state, function, file, line, code, stack_text from samples order by time_ns";
    let header = "time_ns,thread_name,state,function,file,line,code,stack_text\n";
    let rows = "\
1105000000,python (4711),blocked,read,,,data.py:12 Loader.load > read,train.py:41 main;data.py:12 Loader.load;libc.so.6 read
1107000000,python (4711),running,,,,data.py:12 Loader.load > libexample.so,train.py:41 main;data.py:12 Loader.load;libexample.so
1200000000,python (4711),running,main,train.py,41,train.py:41 main,train.py:41 main
";
    for (versions, rows) in [(&[1, 2][..], ""), (&[3], rows), (&[1, 2, 3], rows)] {
        let session = fixtures(versions);
        assert_eq!(csv(&session, sql), format!("{header}{rows}"));
        assert!(session.take_remarks().is_empty());
    }
    let session = fixtures(&[3]);
    let sql = "select id, parent, frame, function, line from stacks order by id";
    let stacks =
        "id,parent,frame,function,line\n0,,0,main,41\n1,0,1,Loader.load,12\n2,1,2,read,\n3,1,3,,\n";
    assert_eq!(csv(&session, sql), stacks);
    let sql = "select count(*) as n, count(distinct library) as libraries from frames";
    assert_eq!(csv(&session, sql), "n,libraries\n4,2\n");
}

#[test]
fn a_circle_of_stacks_ends_and_a_stack_that_is_not_there_has_no_names() {
    let folder = TestFolder::new();
    let text = format!(
        "{}{}stack id=7 parent=8 frame=0\nstack id=8 parent=7 frame=1\n\
         sample time_ns=1us process=1 thread=101 stack=7 state=running source=sampled period_ns=20us\n\
         sample time_ns=2us process=1 thread=101 stack=99 state=running source=sampled period_ns=20us\n",
        crate::TEXT,
        crate::LATE
    );
    folder.trace("t.gapscope", &text);
    let session = folder.session(&["t.gapscope"]);
    let sql = "select function, stack_text like '%;%' as deep from samples where time_ns < 10000 order by time_ns";
    assert_eq!(csv(&session, sql), "function,deep\nmain,false\n,\n");
}

/// Six submissions of version 1, two in a row group: at 0, 100, 200, … ns, for 0, 10, 20, … ns.
fn version_1(folder: &TestFolder, name: &str) {
    let mut trace = Trace::from_text(crate::TEXT).unwrap();
    trace.manifest.format_version = 1;
    folder.write(name, trace);
    let manifest = folder.path(name).join("trace.json");
    let json = std::fs::read_to_string(&manifest).unwrap();
    let json = json.replace("\"format_version\": 3", "\"format_version\": 1");
    std::fs::write(&manifest, json).unwrap();
    let ids = |ids: [u32; 6]| Arc::new(UInt32Array::from(ids.to_vec())) as ArrayRef;
    let ns = |ns: [i64; 6]| Arc::new(Int64Array::from(ns.to_vec())) as ArrayRef;
    let functions = [
        None,
        Some("cuLaunchKernel"),
        Some("cudaMemcpyAsync"),
        Some("cuGraphLaunch"),
        Some("cuLaunchKernel"),
        Some("cuMemsetD8Async"),
    ];
    let batch = RecordBatch::try_from_iter([
        ("queue", ids([1; 6])),
        ("process", ids([1; 6])),
        ("thread", ids([101, 0, 101, 101, 0, 0])),
        ("begin_ns", ns([0, 100, 200, 300, 400, 500])),
        ("end_ns", ns([0, 110, 220, 330, 440, 550])),
        ("function", Arc::new(StringArray::from(functions.to_vec()))),
    ]);
    let batch = batch.unwrap();
    let path = folder.path(name).join("submissions.parquet");
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(2))
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn what_a_submission_of_version_1_is_follows_from_its_function() {
    let folder = TestFolder::new();
    version_1(&folder, "old.gapscope");
    let session = folder.session(&["old.gapscope"]);
    let sql = "select start_ns, duration_ns, kind, function from submissions order by start_ns";
    assert_eq!(
        csv(&session, sql),
        "start_ns,duration_ns,kind,function\n\
         0,0,command-buffers,\n\
         100,10,kernel,cuLaunchKernel\n\
         200,20,transfer,cudaMemcpyAsync\n\
         300,30,graph,cuGraphLaunch\n\
         400,40,kernel,cuLaunchKernel\n\
         500,50,transfer,cuMemsetD8Async\n"
    );
    // The kind alone, without the columns that it is computed from.
    let sql = "select kind, count(*) as n from submissions group by kind order by kind";
    assert_eq!(
        csv(&session, sql),
        "kind,n\ncommand-buffers,1\ngraph,1\nkernel,2\ntransfer,2\n"
    );
}

#[test]
fn row_groups_are_left_out_by_the_times_of_version_1_and_never_by_what_is_computed() {
    let folder = TestFolder::new();
    version_1(&folder, "old.gapscope");
    folder.trace("new.gapscope", crate::TEXT);
    let old = folder.session(&["old.gapscope"]);
    let both = folder.session(&["old.gapscope", "new.gapscope"]);
    // The only submission of the new trace starts at 10000 ns and takes 10000 ns, on a known thread.
    for (filter, groups, of_old, groups_of_both, of_both) in [
        ("start_ns >= 400", 1, 2, 2, 3),
        ("start_ns < 200", 1, 2, 1, 2),
        ("start_ns = 300", 1, 1, 1, 1),
        ("start_ns > 500", 0, 0, 1, 1),
        ("duration_ns = 50", 3, 1, 3, 1),
        ("duration_ns > 30", 3, 2, 4, 3),
        ("duration_ns is null", 3, 0, 3, 0),
        ("kind = 'kernel'", 3, 2, 4, 2),
        ("thread is null", 3, 3, 4, 3),
        ("thread is not null", 3, 3, 4, 4),
        ("thread = 101", 2, 3, 3, 4),
        ("thread = 0", 2, 0, 2, 0),
    ] {
        for (session, groups, rows) in [(&old, groups, of_old), (&both, groups_of_both, of_both)] {
            let filtered = format!("submissions where {filter}");
            assert_eq!(count(session, &filtered), rows, "{filter}");
            let plan = csv(session, &format!("explain select thread from {filtered}"));
            let read = plan.split("row_groups=").nth(1);
            let read = read.map_or(0, |text| text.split(',').next().unwrap().parse().unwrap());
            assert_eq!(read, groups, "{filter}: {plan}");
        }
    }
}
