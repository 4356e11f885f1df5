//! Tests files that do not say their ranks, which the user names.

use gapscope_import::{Error, Options, import};
use gapscope_trace::{Selection, Trace, read};
use std::path::PathBuf;

/// Returns a document of PyTorch's profiler with a kernel that starts at a time.
fn document(start_us: u32, more: &str) -> String {
    format!(
        r#"{{"baseTimeNanoseconds": 1000, {more} "traceEvents": [
        {{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {start_us}, "dur": 5, "args": {{"correlation": 7}}}},
        {{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": {}, "dur": 20, "args": {{"device": 0, "stream": 7, "correlation": 7}}}}]}}"#,
        start_us + 10
    )
}

const LOG: &str = "Vulkan Timings:\nADD: 2 x 10 us\nTotal time: 20 us.\n";

/// Imports files as those of ranks, and returns the trace of the whole and those of its ranks.
fn traces(files: &[(&str, &str)], ranks: &[u32]) -> Result<(Trace, Vec<Trace>), Error> {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, content): &(&str, &str)| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let files: Vec<_> = files.iter().map(write).collect();
    let output = folder.path().join("ranks.gapscope");
    let options = Options {
        ranks: ranks.to_vec(),
        ..Options::default()
    };
    import(&files, &output, &options, &|_, _| {}).inspect_err(|_| assert!(!output.exists()))?;
    let trace = |path: PathBuf| read(&path, &Selection::all()).unwrap().0;
    let whole = trace(output.clone());
    let ranks = whole.manifest.ranks.iter();
    let of_ranks = ranks.map(|rank| trace(output.join(format!("rank={rank}"))));
    let of_ranks = of_ranks.collect();
    Ok((whole, of_ranks))
}

#[test]
fn files_of_pytorch_get_the_ranks_that_are_named_and_keep_one_clock() {
    let (first, second) = (document(100, ""), document(400, ""));
    let files = [("a.json", &*first), ("b.json", &*second)];
    let (whole, ranks) = traces(&files, &[3, 1]).unwrap();
    assert_eq!(whole.manifest.ranks, [1, 3]);
    let ranks_of = ranks.iter().map(|trace| trace.manifest.rank.unwrap().rank);
    assert_eq!(ranks_of.collect::<Vec<_>>(), [1, 3]);
    assert_eq!(ranks[0].manifest.rank.unwrap().world_size, 4);
    let start_ns = |trace: &Trace| trace.tables.dispatches.start_ns.get(0).unwrap();
    assert_eq!(start_ns(&ranks[0]) - start_ns(&ranks[1]), 300_000);
}

#[test]
fn one_file_can_be_of_a_rank_too() {
    let text = document(100, "");
    let (whole, ranks) = traces(&[("a.json", &text)], &[5]).unwrap();
    assert_eq!(whole.manifest.ranks, [5]);
    assert_eq!(ranks[0].manifest.rank.unwrap().rank, 5);
}

#[test]
fn files_of_any_format_get_the_ranks_that_are_named() {
    let (whole, ranks) = traces(&[("a.log", LOG), ("b.log", LOG)], &[0, 1]).unwrap();
    assert_eq!(whole.manifest.ranks, [0, 1]);
    for (number, trace) in (0..).zip(&ranks) {
        assert_eq!(trace.manifest.rank.unwrap().rank, number);
        assert!(!trace.tables.dispatches.kernel.is_empty());
    }
}

#[test]
fn ranks_that_do_not_fit_the_files_are_refused() {
    let own = document(
        100,
        r#""distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},"#,
    );
    let other = document(100, "");
    let files = [("a.json", &*own), ("b.json", &*other)];
    for (ranks, words) in [
        (&[0][..], "ranks named: 1, files: 2"),
        (&[1, 1], "rank 1 is named for two files"),
        (
            &[1, 0],
            "a.json is not a file of the rank that was named for it",
        ),
    ] {
        let error = traces(&files, ranks).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(traces(&files, &[0, 1]).is_ok());
    let logs = [("a.log", LOG), ("b.log", LOG)];
    assert!(traces(&logs, &[0]).is_err());
}
