//! Answers to queries on one trace, in every format.

use crate::{TEXT, TestFolder, csv, one};
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
    let sql = "select count(*) as n from submissions where thread is null";
    assert_eq!(csv(&session, sql), "n\n1\n");
    let sql = "select thread, count(*) as n from host_calls group by thread order by thread";
    assert_eq!(csv(&session, sql), "thread,n\n101,1\n,1\n");
    let sql = "select count(*) as n from host_calls where thread = 0";
    assert_eq!(csv(&session, sql), "n\n0\n");
}

#[test]
fn filters_limits_and_joins_agree_with_the_rows() {
    let (_place, session) = one();
    let ask = |sql: &str| {
        csv(&session, sql)
            .lines()
            .skip(1)
            .collect::<Vec<_>>()
            .join(";")
    };
    assert_eq!(
        ask("select position from dispatches where start_ns >= 150000 order by 1"),
        "1;2"
    );
    assert_eq!(
        ask("select position from dispatches where kernel_name = 'matmul' order by 1"),
        "0;2"
    );
    assert_eq!(
        ask("select position from dispatches where start_ns < 0"),
        ""
    );
    assert_eq!(
        ask("select position from dispatches where start_ns is null"),
        "3"
    );
    assert_eq!(
        ask("select position from dispatches where label is null order by 1"),
        "1;2;3"
    );
    assert_eq!(
        ask("select count(*) from (select * from dispatches limit 2)"),
        "2"
    );
    assert_eq!(
        ask(
            "select k.name, sum(d.duration_ns) from dispatches d join kernels k on k.id = d.kernel group by 1 order by 1"
        ),
        "matmul,60000;softmax,10000"
    );
    assert_eq!(
        ask("select command, sampling_mode from traces"),
        "\"\",dispatch"
    );
    assert_eq!(ask("select name, api from devices"), "Some GPU,vulkan");
}

#[test]
fn every_form_says_the_same() {
    let folder = TestFolder::new();
    let mut trace = Trace::from_text(TEXT).unwrap();
    trace
        .tables
        .kernels
        .name
        .set(0, "a,\"b\"\n\u{1b}[31mc".into());
    trace.tables.kernels.name.set(1, "".into());
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
    assert_eq!(
        table.lines().last(),
        Some("NULL                       3  NULL")
    );

    // Parquet output is as readable as that of other tools.
    let path = folder.path("answer.parquet");
    std::fs::write(&path, ask(Format::Parquet)).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = reader.schema().clone();
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    assert_eq!(names, ["name", "position", "us"]);
    let batches: Vec<_> = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!((rows, batches[0].column(0).null_count()), (4, 1));
}

#[test]
fn kernels_are_called_as_in_reports_and_their_whole_names_are_beside() {
    let folder = TestFolder::new();
    let mut trace = Trace::from_text(TEXT).unwrap();
    let whole = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)";
    trace
        .tables
        .kernels
        .name
        .set(0, "vectorized_elementwise_kernel".into());
    trace.tables.kernels.full_name.set(0, Some(whole.into()));
    folder.write("t.gapscope", trace);
    let session = folder.session(&["t.gapscope"]);
    let ask = |sql: &str| {
        let mut out = Vec::new();
        session.run(sql, Format::Csv, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        ask("select kernel_name, kernel_full_name from dispatches where position = 0"),
        format!("kernel_name,kernel_full_name\nfill<float> (vec4),\"{whole}\"\n")
    );
    assert_eq!(
        ask("select readable_name, name from kernels order by id limit 1"),
        "readable_name,name\nfill<float> (vec4),vectorized_elementwise_kernel\n"
    );
    assert_eq!(
        ask("select count(*) as n from dispatches where kernel_name = 'fill<float> (vec4)'"),
        "n\n2\n"
    );
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
    assert_eq!(
        wrong,
        "there is no table dispatch: did you mean dispatches?"
    );
}
