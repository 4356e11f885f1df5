//! Answers to queries on one trace, in every format.

use crate::{TEXT, TestFolder, count, csv, one};
use gapscope_query::{Format, RowCount};
use gapscope_trace::Trace;

#[test]
fn rows_have_the_names_behind_their_ids() {
    let (_place, session) = one();
    let sql = "select position, kernel, kernel_name, label_path, queue_name, device_name from dispatches order by position";
    assert_eq!(
        csv(&session, sql),
        "position,kernel,kernel_name,label_path,queue_name,device_name\n\
         0,1,matmul,step / attention,compute,Some GPU\n\
         1,2,softmax,,compute,Some GPU\n\
         2,1,matmul,,queue 1.0,Some GPU\n\
         3,77,,,compute,Some GPU\n"
    );
    let sql = "select call, thread_name, program, count from host_calls order by start_ns";
    assert_eq!(
        csv(&session, sql),
        "call,thread_name,program,count\nsubmit,worker (101),program,1\npoll-fence,worker (101),program,5\n"
    );
}

#[test]
fn unknown_times_are_null_and_count_is_of_all_rows() {
    let (_place, session) = one();
    let sql = "select count(*) as rows, count(duration_ns) as timed, sum(duration_ns) as ns from dispatches";
    assert_eq!(csv(&session, sql), "rows,timed,ns\n4,3,70000\n");
    let sql = "select count(*) from dispatches where duration_ns is null";
    assert_eq!(csv(&session, sql), "count(*)\n1\n");
}

#[test]
fn a_thread_that_an_old_trace_does_not_know_is_null() {
    let folder = TestFolder::new();
    let old = TEXT.replace("thread=101 start_ns", "thread=0 start_ns");
    let old = old.replace("thread=101 call=submit", "thread=0 call=submit");
    assert_eq!(old.matches("thread=0").count(), 2);
    folder.trace("t.gapscope", &old);
    let session = folder.session(&["t.gapscope"]);
    let sql = "select thread, thread_name from submissions";
    assert_eq!(csv(&session, sql), "thread,thread_name\n,\n");
    assert_eq!(count(&session, "submissions where thread is null"), 1);
    let sql = "select thread, count(*) as n from host_calls group by thread order by thread";
    assert_eq!(csv(&session, sql), "thread,n\n101,1\n,1\n");
    assert_eq!(count(&session, "host_calls where thread = 0"), 0);
}

#[test]
fn the_submission_of_a_command_buffer_is_null_where_it_is_not_known() {
    let folder = TestFolder::new();
    let text = TEXT.replace(
        "command_buffer id=1 process=1 queue=1 submission=1",
        "command_buffer id=1 process=1 queue=1 submission=18446744073709551615",
    );
    folder.trace("t.gapscope", &text);
    let session = folder.session(&["t.gapscope"]);
    let sql = "select id, submission from command_buffers";
    assert_eq!(csv(&session, sql), "id,submission\n1,\n");
    for (filter, rows) in [("is null", 1), ("is not null", 0), ("> 5", 0)] {
        let table = format!("command_buffers where submission {filter}");
        assert_eq!(count(&session, &table), rows, "{filter}");
    }
}

#[test]
fn filters_limits_and_joins_agree_with_the_rows() {
    let (_place, session) = one();
    let ask = |sql: &str| {
        let answer = csv(&session, sql);
        answer.lines().skip(1).collect::<Vec<_>>().join(";")
    };
    for (filter, positions) in [
        ("start_ns >= 150000", "1;2"),
        ("kernel_name = 'matmul'", "0;2"),
        ("start_ns < 0", ""),
        ("start_ns is null", "3"),
        ("label is null", "1;2;3"),
    ] {
        let sql = format!("select position from dispatches where {filter} order by 1");
        assert_eq!(ask(&sql), positions);
    }
    let limited = "select count(*) from (select * from dispatches limit 2)";
    assert_eq!(ask(limited), "2");
    let joined = "select k.name, sum(d.duration_ns) from dispatches d join kernels k on k.id = d.kernel group by 1 order by 1";
    assert_eq!(ask(joined), "matmul,60000;softmax,10000");
    let modes = ask("select command, sampling_mode from traces");
    assert_eq!(modes, "\"\",dispatch");
    assert_eq!(ask("select name, api from devices"), "Some GPU,vulkan");
}

#[test]
fn every_form_says_the_same() {
    let folder = TestFolder::new();
    let mut trace = Trace::from_text(TEXT).unwrap();
    let names = &mut trace.tables.kernels.name;
    names.set(0, "a,\"b\"\n\u{1b}[31mc".into());
    names.set(1, "".into());
    folder.write("t.gapscope", trace);
    let session = folder.session(&["t.gapscope"]);
    let sql = "select k.name, position, duration_ns / 1e3 as us
        from dispatches left join kernels k on k.id = kernel order by position";
    let ask = |format| {
        let mut out = Vec::new();
        assert_eq!(session.run(sql, format, &mut out).unwrap(), RowCount(4));
        out
    };
    let text = |format| String::from_utf8(ask(format)).unwrap();
    assert_eq!(
        text(Format::Csv),
        "name,position,us\n\"a,\"\"b\"\"\n\u{1b}[31mc\",0,40.0\n\"\",1,10.0\n\"a,\"\"b\"\"\n\u{1b}[31mc\",2,20.0\n,3,\n"
    );
    let json: serde_json::Value = serde_json::from_str(&text(Format::Json)).unwrap();
    assert_eq!(
        json,
        serde_json::json!([
            {"name": "a,\"b\"\n\u{1b}[31mc", "position": 0, "us": 40.0},
            {"name": "", "position": 1, "us": 10.0},
            {"name": "a,\"b\"\n\u{1b}[31mc", "position": 2, "us": 20.0},
            {"name": null, "position": 3, "us": null},
        ])
    );
    let table = text(Format::Table);
    assert!(!table.contains('\u{1b}'), "{table}");
    assert_eq!(table.lines().count(), 6);
    let last = "NULL                       3  NULL";
    assert_eq!(table.lines().last(), Some(last));

    // Parquet output is as readable as that of other tools.
    let path = folder.path("answer.parquet");
    std::fs::write(&path, ask(Format::Parquet)).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = reader.schema().clone();
    let names = schema.fields().iter().map(|field| field.name());
    assert!(names.eq(["name", "position", "us"]));
    let batches: Vec<_> = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!((rows, batches[0].column(0).null_count()), (4, 1));
}

#[test]
fn kernels_are_called_as_in_reports_and_their_whole_names_are_beside() {
    let folder = TestFolder::new();
    let mut trace = Trace::from_text(TEXT).unwrap();
    let whole = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)";
    let kernels = &mut trace.tables.kernels;
    kernels.name.set(0, "vectorized_elementwise_kernel".into());
    kernels.full_name.set(0, Some(whole.into()));
    folder.write("t.gapscope", trace);
    let session = folder.session(&["t.gapscope"]);
    let sql = "select kernel_name, kernel_full_name from dispatches where position = 0";
    let names = format!("kernel_name,kernel_full_name\nfill<float> (vec4),\"{whole}\"\n");
    assert_eq!(csv(&session, sql), names);
    let sql = "select readable_name, name from kernels order by id limit 1";
    let names = "readable_name,name\nfill<float> (vec4),vectorized_elementwise_kernel\n";
    assert_eq!(csv(&session, sql), names);
    let filled = "dispatches where kernel_name = 'fill<float> (vec4)'";
    assert_eq!(count(&session, filled), 2);
}

#[test]
fn an_answer_without_rows_has_its_columns() {
    let (_place, session) = one();
    let sql = "select position from dispatches where position > 100";
    let ask = |format| {
        let mut out = Vec::new();
        session.run(sql, format, &mut out).unwrap();
        String::from_utf8_lossy(&out).into_owned()
    };
    assert_eq!(ask(Format::Csv), "position\n");
    assert_eq!(ask(Format::Json), "[\n]\n");
    assert_eq!(ask(Format::Table), "position\n────────\n");
    assert!(ask(Format::Parquet).starts_with("PAR1"));
}

#[test]
fn the_schema_names_every_table_and_column() {
    let (_place, session) = one();
    let all = session.schema(None).unwrap();
    for text in [
        "dispatches: ",
        "traces: ",
        "  kernel_name ",
        "  duration_ns ",
    ] {
        assert!(all.contains(text), "{text}");
    }
    let one = session.schema(Some("queues")).unwrap();
    assert!(one.starts_with("queues: Queues.\n  trace "), "{one}");
    let wrong = session.schema(Some("dispatch")).unwrap_err().to_string();
    let expected = "there is no table dispatch: did you mean dispatches?";
    assert_eq!(wrong, expected);
}
