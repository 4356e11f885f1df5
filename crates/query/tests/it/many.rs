//! Many traces: partitions, globs, older versions, sizes.

use crate::{TEXT, TestFolder, count, csv};
use gapscope_trace::Trace;
use gapscope_trace::synthetic::Synthetic;

#[test]
fn folders_are_columns() {
    let folder = TestFolder::new();
    for (model, rank) in [("big%20one", 0), ("big%20one", 10), ("small", 2)] {
        folder.trace(&format!("runs/model={model}/rank={rank}"), TEXT);
    }
    let session = folder.session(&["runs/*/rank=*"]);
    let sql = "select model, rank, count(*) as n from dispatches where rank >= 2 group by model, rank order by rank";
    assert_eq!(
        csv(&session, sql),
        "model,rank,n\nsmall,2,4\nbig one,10,4\n"
    );
    let sql = "select trace, rank from traces order by rank";
    assert_eq!(
        folder.without_folder(&csv(&session, sql)),
        "trace,rank\nruns/model=big%20one/rank=0,0\nruns/model=small/rank=2,2\nruns/model=big%20one/rank=10,10\n"
    );
}

#[test]
fn a_trace_without_a_folder_has_null_there_and_taken_names_are_told_apart() {
    let folder = TestFolder::new();
    folder.trace("plain.gapscope", TEXT);
    folder.trace("queue=7/kernel_name=x/t.gapscope", TEXT);
    let session = folder.session(&["plain.gapscope", "queue=7/kernel_name=x/t.gapscope"]);
    let sql = "select folder_queue, folder_kernel_name, queue, kernel_name from dispatches where position = 0 order by 1";
    assert_eq!(
        csv(&session, sql),
        "folder_queue,folder_kernel_name,queue,kernel_name\n7,x,1,matmul\n,,1,matmul\n"
    );
}

#[test]
fn one_trace_given_twice_counts_once() {
    let folder = TestFolder::new();
    folder.trace("a.gapscope", TEXT);
    std::os::unix::fs::symlink(folder.path("a.gapscope"), folder.path("link.gapscope")).unwrap();
    let session = folder.session(&["a.gapscope", "a.gapscope", "link.gapscope", "*.gapscope"]);
    assert_eq!(count(&session, "dispatches"), 4);
    let session = folder.session(&["*.gapscope"]);
    assert_eq!(
        session.traces().skipped,
        [""; 0],
        "the trace itself is found"
    );
}

/// A folder of traces may be a stranger's, and its links may lead to traces of the reader.
#[test]
fn links_that_nobody_has_named_are_named_and_not_followed() {
    let folder = TestFolder::new();
    let mut trace = Trace::from_text(TEXT).unwrap();
    trace.manifest.ranks = vec![0, 1];
    folder.write("runs/t.gapscope", trace);
    folder.trace("runs/t.gapscope/rank=0", TEXT);
    folder.trace("mine/own.gapscope", TEXT);
    let link = |to: &str, at: &str| {
        std::os::unix::fs::symlink(folder.path(to), folder.path(at)).unwrap();
    };
    link("mine/own.gapscope", "runs/t.gapscope/rank=1");
    link("mine/own.gapscope", "runs/x.gapscope");
    link("mine", "runs/folder");
    link("runs", "named");
    for (given, traces, links) in [
        ("runs/t.gapscope", 2, vec!["runs/t.gapscope/rank=1"]),
        (
            "runs/*.gapscope",
            2,
            vec!["runs/t.gapscope/rank=1", "runs/x.gapscope"],
        ),
        ("named/t*", 2, vec!["named/t.gapscope/rank=1"]),
        ("runs/t.gapscope/rank=*", 1, vec!["runs/t.gapscope/rank=1"]),
        ("named/x.gapscope", 1, vec![]),
    ] {
        let session = folder.session(&[given]);
        assert_eq!(count(&session, "traces"), traces, "{given}");
        let skipped = &session.traces().skipped;
        assert_eq!(skipped.len(), links.len(), "{skipped:?}");
        for (sentence, link) in skipped.iter().zip(links) {
            let begin = format!("{} is a symbolic link", folder.path(link).display());
            assert!(sentence.starts_with(&begin), "{sentence}");
        }
    }
    let refused = folder.open(&["runs/*/own.gapscope"]).unwrap_err();
    assert!(
        refused.to_string().contains("is a symbolic link"),
        "{refused}"
    );
}

#[test]
fn the_ranks_of_a_trace_belong_to_it() {
    let folder = TestFolder::new();
    let mut trace = Trace::from_text(TEXT).unwrap();
    trace.manifest.ranks = vec![0, 1];
    folder.write("t.gapscope", trace);
    folder.trace("t.gapscope/rank=0", TEXT);
    folder.trace("t.gapscope/rank=1", TEXT);
    let session = folder.session(&["t.gapscope"]);
    let sql = "select rank, count(*) as n from dispatches group by rank order by rank";
    assert_eq!(csv(&session, sql), "rank,n\n0,4\n1,4\n,4\n");
}

#[test]
fn a_name_with_characters_of_globs_is_a_name() {
    let folder = TestFolder::new();
    folder.trace("a[1]*.gapscope", TEXT);
    folder.trace("a[1]x.gapscope", TEXT);
    let session = folder.session(&["a[1]*.gapscope"]);
    assert_eq!(count(&session, "traces"), 1);
}

/// An earlier version lacks the column `submission`, which is NULL in its rows.
#[test]
fn columns_that_an_older_trace_lacks_are_null() {
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let folder = TestFolder::new();
    folder.trace("old.gapscope", TEXT);
    folder.trace("new.gapscope", TEXT);
    let path = folder.path("old.gapscope/dispatches.parquet");
    let file = std::fs::File::open(&path).unwrap();
    let mut batches = ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap();
    let batch = batches.next().unwrap().unwrap();
    let schema = batch.schema();
    let kept: Vec<usize> = (0..schema.fields().len())
        .filter(|at| !["label", "bindings"].contains(&schema.field(*at).name().as_str()))
        .collect();
    let batch = batch.project(&kept).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let session = folder.session(&["*.gapscope"]);
    let sql = "select count(*) as n, count(label) as labels, count(label_path) as paths, count(kernel_name) as kernels from dispatches";
    assert_eq!(csv(&session, sql), "n,labels,paths,kernels\n8,1,1,6\n");
    assert_eq!(count(&session, "dispatches where label is null"), 7);
    assert_eq!(count(&session, "dispatches where label = 2"), 1);
    assert!(session.take_remarks().is_empty());
}

#[test]
fn answers_agree_with_the_tables_of_large_traces() {
    let folder = TestFolder::new();
    let traces: Vec<Trace> = (1..=3)
        .map(|seed| {
            let of = Synthetic {
                dispatches: 30_000,
                kernels: 20,
                seed,
                ..Synthetic::default()
            };
            let trace = of.trace();
            folder.write(&format!("rank={seed}"), trace.clone());
            trace
        })
        .collect();
    let session = folder.session(&["rank=*"]);
    let mut expected = "rank,kernel_name,n,ns,longest\n".to_owned();
    for (rank, trace) in (1..).zip(&traces) {
        let (d, k) = (&trace.tables.dispatches, &trace.tables.kernels);
        let mut sums = std::collections::BTreeMap::new();
        for row in 0..d.kernel.len() {
            let name = &k.name[d.kernel[row].0 as usize - 1];
            let ns = d.duration_ns.at(row).unwrap();
            let sum = sums.entry(name).or_insert((0, 0, 0));
            *sum = (sum.0 + 1, sum.1 + ns, ns.max(sum.2));
        }
        for (name, (n, ns, longest)) in sums {
            expected += &format!("{rank},{name},{n},{ns},{longest}\n");
        }
    }
    let sql = "select rank, kernel_name, count(*) as n, sum(duration_ns) as ns, max(duration_ns) as longest
        from dispatches group by rank, kernel_name order by rank, kernel_name";
    assert_eq!(csv(&session, sql), expected);
    assert_eq!(
        count(&session, "dispatches where trace like '%rank=2'"),
        30000
    );
}
