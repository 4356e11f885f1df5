//! Tests imports as they are used: ranks that the user names for files that do not say them, and rows of a GPU.

use crate::{Workplace, assert_status, exists, text};
use std::fs::write;

/// A file of PyTorch's profiler without `distributedInfo`: a launch, and a kernel of so many microseconds.
fn kineto(kernel_us: u64) -> String {
    format!(
        r#"{{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":"H100"}}],"traceEvents":[
        {{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":10,"dur":5,"args":{{"correlation":1}}}},
        {{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":20,"dur":{kernel_us},"args":{{"device":0,"stream":7,"correlation":1}}}}]}}"#
    )
}

#[test]
fn named_ranks_become_the_ranks_of_one_trace() {
    for names in [
        &["--as", "rank=0", "a.json", "--as", "rank=3", "b.json"][..],
        &["--ranks", "0,3", "a.json", "b.json"],
    ] {
        let workplace = Workplace::new();
        write(workplace.path("a.json"), kineto(40)).unwrap();
        write(workplace.path("b.json"), kineto(90)).unwrap();
        let output = workplace.run(&[&["import", "-o", "run.gapscope"], names].concat());
        assert_status(&output, 0);
        assert!(
            exists(&workplace.path("run.gapscope/rank=0"))
                && exists(&workplace.path("run.gapscope/rank=3"))
        );
        // The order of the files is that of the ranks.
        for (rank, kernel_ns) in [(0, 40_000), (3, 90_000)] {
            let folder = format!("run.gapscope/rank={rank}");
            let output = workplace.run(&["report", "--json", &folder]);
            let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(json["kernels"][0]["total_ns"], kernel_ns, "rank {rank}");
        }
        let output = workplace.run(&["report", "--json", "run.gapscope"]);
        assert_status(&output, 0);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let ranks = json["ranks"].as_array().unwrap();
        let ranks: Vec<_> = ranks.iter().map(|rank| rank["rank"].as_u64()).collect();
        assert_eq!(ranks, [Some(0), Some(3)]);
    }
}

#[test]
fn ranks_that_do_not_fit_the_files_are_refused_and_nothing_is_written() {
    for (names, part) in [
        (
            &["--ranks", "0", "a.json", "b.json"][..],
            "ranks named: 1, files: 2",
        ),
        (
            &["--ranks", "1,1", "a.json", "b.json"],
            "rank 1 is named for two files",
        ),
        (
            &["--as", "rank=0", "a.json", "b.json"],
            "ranks named: 1, files: 2",
        ),
    ] {
        let workplace = Workplace::new();
        write(workplace.path("a.json"), kineto(40)).unwrap();
        write(workplace.path("b.json"), kineto(90)).unwrap();
        let output = workplace.run(&[&["import", "-o", "run.gapscope"], names].concat());
        assert_status(&output, 1);
        assert!(
            text(&output.stderr).contains(part),
            "{}",
            text(&output.stderr)
        );
        assert!(!exists(&workplace.path("run.gapscope")));
    }
    let workplace = Workplace::new();
    let output = workplace.run(&["import", "-o", "run.gapscope", "--as", "3", "a.json"]);
    assert_status(&output, 2);
    assert!(text(&output.stderr).contains("write rank=N"));
}

#[test]
fn a_file_whose_gpu_rows_are_not_known_says_what_to_type_and_is_imported_by_it() {
    let workplace = Workplace::new();
    let scopes = r#"{"traceEvents":[
        {"pid":42,"tid":1,"ts":10,"dur":100,"ph":"X","name":"frame"},
        {"pid":42,"tid":1,"ts":20,"dur":30,"ph":"X","name":"blur"}]}"#;
    write(workplace.path("scopes.json"), scopes).unwrap();
    let output = workplace.run(&["import", "-o", "a.gapscope", "scopes.json"]);
    assert_status(&output, 0);
    let page = text(&output.stderr);
    assert!(page.contains("no GPU work is in a.gapscope"), "{page}");
    assert!(
        page.contains("gapscope import --gpu 'pid=…,tid=…'"),
        "{page}"
    );
    assert!(
        page.contains(r#"pid=42,tid=1 (2 ranges, the first is "frame")"#),
        "{page}"
    );
    let output = workplace.run(&[
        "import",
        "-o",
        "b.gapscope",
        "--gpu",
        "pid=42,tid=1",
        "scopes.json",
    ]);
    assert_status(&output, 0);
    let page = text(&output.stderr);
    assert!(page.contains("1 piece of GPU work in b.gapscope"), "{page}");
    let output = workplace.run(&["report", "--full", "b.gapscope"]);
    assert!(
        text(&output.stdout).contains("blur"),
        "{}",
        text(&output.stdout)
    );
    let output = workplace.run(&[
        "import",
        "-o",
        "c.gapscope",
        "--gpu",
        "device=1",
        "scopes.json",
    ]);
    assert_status(&output, 2);
    assert!(text(&output.stderr).contains("no row is named"));
}

/// A folder that a stranger made is imported without the files to which its links lead, unless they are in the folder
/// themselves. The user is told, and may name such a link himself.
#[cfg(unix)]
#[test]
fn links_that_lead_out_of_a_folder_are_named_and_left_out() {
    use std::os::unix::fs::symlink;
    let workplace = Workplace::new();
    std::fs::create_dir(workplace.path("given")).unwrap();
    let theirs = kineto(90).replace("gemm", "planted_secret");
    write(workplace.path("theirs.json"), theirs).unwrap();
    let link = workplace.path("given/stolen.json");
    symlink("../theirs.json", &link).unwrap();
    let import = |input: &str, name: &str| {
        let output = workplace.run(&["import", "-o", name, input]);
        let said = text(&output.stdout) + &text(&output.stderr);
        let report = workplace.run(&["report", "--json", name]);
        (output.status.code(), said, text(&report.stdout))
    };
    let sentence =
        "lead out of the folder were left out: stolen.json. Give such a link itself as an input";
    let (status, said, _) = import("given", "only-link.gapscope");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(sentence), "{said}");
    assert!(!exists(&workplace.path("only-link.gapscope")));

    write(workplace.path("given/own.json"), kineto(40)).unwrap();
    let (status, said, report) = import("given", "folder.gapscope");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains(sentence), "{said}");
    assert!(
        report.contains("gemm") && report.contains(sentence),
        "{report}"
    );
    assert!(!report.contains("planted_secret"), "{report}");

    let (status, said, report) = import("given/stolen.json", "named.gapscope");
    assert_eq!(status, Some(0), "{said}");
    assert!(report.contains("planted_secret"), "{report}");

    std::fs::create_dir(workplace.path("given/more")).unwrap();
    std::fs::rename(
        workplace.path("given/own.json"),
        workplace.path("given/more/own"),
    )
    .unwrap();
    std::fs::remove_file(&link).unwrap();
    symlink("more/own", workplace.path("given/inside.json")).unwrap();
    let (status, said, report) = import("given", "inside.gapscope");
    assert_eq!(status, Some(0), "{said}");
    assert!(
        !said.contains("left out") && report.contains("gemm"),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_import_leaves_nothing_behind() {
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;
    let workplace = Workplace::new();
    let one = kineto(40);
    let (start, events) = one.split_once("\"traceEvents\":[").unwrap();
    let events = events.trim_end_matches("]}");
    let all = vec![events; 150_000].join(",");
    write(
        workplace.path("long.json"),
        format!("{start}\"traceEvents\":[{all}]}}"),
    )
    .unwrap();
    let names = || {
        let entries = std::fs::read_dir(workplace.path(".")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != "long.json").collect();
        names.sort();
        names
    };
    let before = names();
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let mut import = workplace.command(&["import", "-o", "run.gapscope", "long.json"]);
        let mut import = import.spawn().unwrap();
        while names() == before {
            assert_eq!(
                import.try_wait().unwrap(),
                None,
                "the import took too little time"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!exists(&workplace.path("run.gapscope")), "{:?}", names());
        let pid = import.id().to_string();
        let mut kill = std::process::Command::new("kill");
        kill.args(["-s", signal, &pid]);
        assert!(kill.status().unwrap().success());
        assert_eq!(import.wait().unwrap().signal(), Some(number));
        assert_eq!(names(), before, "{signal}");
    }
}
