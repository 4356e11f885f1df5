//! Tests files that do not say their ranks, which the user names.

use gapscope_import::{Error, Options, import};
use gapscope_trace::{Selection, Trace, read};
use std::fs::{create_dir_all, write};
use std::path::{Path, PathBuf};

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

/// Imports a folder, and returns the trace of the whole.
fn of_folder(folder: &Path) -> Result<Trace, Error> {
    let output = tempfile::tempdir().unwrap();
    let output = output.path().join("out.gapscope");
    import(
        &[folder.to_owned()],
        &output,
        &Options::default(),
        &|_, _| {},
    )?;
    Ok(read(&output, &Selection::all()).unwrap().0)
}

/// Writes files into a new folder.
fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, content).unwrap();
    }
    folder
}

fn has_note(trace: &Trace, text: &str) -> bool {
    trace.manifest.notes.iter().any(|note| note.contains(text))
}

#[test]
fn names_of_files_and_folders_give_the_ranks_that_files_do_not_say() {
    let (first, second) = (document(100, ""), document(400, ""));
    for names in [
        ["rank_3/trace.json", "rank_1/trace.json"],
        ["a-rank3.json", "a-rank1.json"],
        [
            "run/dp0_pp0_tp1_rank3.1.json",
            "run/dp0_pp0_tp0_rank1.1.json",
        ],
    ] {
        let folder = folder_with(&[(names[0], &first), (names[1], &second)]);
        let trace = of_folder(folder.path()).unwrap();
        assert_eq!(trace.manifest.ranks, [1, 3], "{names:?}");
        assert!(has_note(&trace, "The files do not say their ranks"));
    }
    let folder = folder_with(&[("17-TP-0.json", &first), ("17-TP-1.json", &second)]);
    assert_eq!(of_folder(folder.path()).unwrap().manifest.ranks, [0, 1]);
    let folder = folder_with(&[("host_10.json", &first), ("host_11.json", &second)]);
    let error = of_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("--ranks"), "{error}");
}

#[test]
fn folders_inside_of_a_folder_are_looked_into() {
    let (own, part) = (document(100, ""), document(400, ""));
    let folder = folder_with(&[
        ("x_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", &own),
        (
            "x_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json",
            "{}",
        ),
        (
            "x_ascend_pt/PROF_1/mindstudio_profiler_output/msprof_1.json",
            &part,
        ),
    ]);
    let trace = of_folder(folder.path()).unwrap();
    assert_eq!(trace.tables.dispatches.start_ns, [Some(110_000)]);
    assert!(has_note(&trace, "Left out, as files beside them"));
    // Files without events beside a recording are left out.
    let folder = folder_with(&[("trace.json", &own), ("config.json", r#"{"lr": 1}"#)]);
    let trace = of_folder(folder.path()).unwrap();
    assert_eq!(trace.tables.dispatches.start_ns, [Some(110_000)]);
    assert!(has_note(
        &trace,
        "config.json was left out: it has no list of events"
    ));
    let folder = folder_with(&[("a/b/c.txt", "x"), ("a/d.json", "{}")]);
    let error = of_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("does not know what made"), "{error}");
}
