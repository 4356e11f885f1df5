//! Tests reports and exports of folders with several ranks.

use crate::{Workplace, assert_contains, assert_status, exists, text, words};

const RANKS: [&str; 2] = [
    include_str!("../../../report/tests/traces/rank_0.txt"),
    include_str!("../../../report/tests/traces/rank_1.txt"),
];

/// Writes a recording of two ranks and of a launcher with a trace of its own.
fn recording(workplace: &Workplace) {
    workplace.trace_of(
        "run.gapscope",
        "manifest ranks=0 ranks=1 end_ns=1ms\nprocess id=1 pid=5 hook=cuda",
    );
    for (rank, text) in RANKS.iter().enumerate() {
        workplace.trace_of(&format!("run.gapscope/rank={rank}"), text);
    }
}

#[test]
fn a_folder_of_ranks_is_reported_side_by_side() {
    let workplace = Workplace::new();
    recording(&workplace);
    let output = workplace.run(&["report", "--full", "--all", "run.gapscope"]);
    assert_status(&output, 0);
    let page = text(&output.stdout);
    for part in [
        "Both ranks are host-bound",
        "Rank 1 arrived last at 9 of 9 collectives",
        "host late",
        "Bandwidth of collectives",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let output = workplace.run(&["report", "--json", "run.gapscope"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["straggler"]["rank"], 1);
    assert_eq!(json["straggler"]["cause"]["what"], "host-late");
}

#[test]
fn an_explanation_of_a_folder_of_ranks_says_what_its_report_says() {
    let workplace = Workplace::new();
    recording(&workplace);
    let output = workplace.run(&["explain", "run.gapscope"]);
    assert_status(&output, 0);
    // Sentences are broken into lines, with spaces before each.
    let explanation = text(&output.stdout);
    let explanation: Vec<&str> = explanation.split_whitespace().collect();
    let explanation = explanation.join(" ");
    let output = workplace.run(&["report", "--json", "run.gapscope"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut sentences: Vec<&str> = (report["sentences"].as_array().unwrap().iter())
        .map(|sentence| sentence.as_str().unwrap())
        .collect();
    sentences.extend(report["verdict_sentence"].as_str());
    sentences.extend(report["first_step"].as_str());
    assert!(sentences.len() > 3, "{sentences:?}");
    for sentence in sentences {
        assert!(explanation.contains(sentence), "{sentence}: {explanation}");
    }
    let output = workplace.run(&["explain", "--json", "run.gapscope"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["verdict"], report["verdict"]);
    let claims = json["claims"].as_array().unwrap().iter();
    let kinds: std::collections::HashSet<&str> = claims
        .map(|claim| claim["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains("figures"), "{kinds:?}");
}

#[test]
fn ranks_of_which_one_has_a_kernel_of_its_own_are_compared() {
    let workplace = Workplace::new();
    recording(&workplace);
    let own: String = (0..8)
        .map(|at| {
            let start_us = 38_000 + at * 100;
            format!(
                "\ndispatch queue=1 kernel=77 submission=21 start_ns={start_us}us duration_ns=20us"
            )
        })
        .collect();
    workplace.trace_of(
        "other.gapscope",
        "manifest ranks=0 ranks=1 end_ns=1ms\nprocess id=1 pid=5 hook=cuda",
    );
    workplace.trace_of("other.gapscope/rank=0", RANKS[0]);
    let with_own = format!("{}\nkernel id=77 process=1 name=only_here{own}", RANKS[1]);
    workplace.trace_of("other.gapscope/rank=1", &with_own);
    for traces in [
        ["other.gapscope", "other.gapscope"],
        ["run.gapscope", "other.gapscope"],
    ] {
        let output = workplace.run(&[&["diff", "--json"], &traces[..]].concat());
        assert_status(&output, 0);
    }
}

/// Returns the events of work in a file of Chrome's format, with the rank of their process.
fn drawn(json: &[u8]) -> Vec<(String, String)> {
    let file: serde_json::Value = serde_json::from_slice(json).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let processes = events
        .iter()
        .filter(|event| event["name"] == "process_name");
    let processes: std::collections::BTreeMap<u64, &str> = processes
        .map(|event| {
            let name = event["args"]["name"].as_str().unwrap();
            let rank = name.split_once(" · ").map_or("", |(rank, _)| rank);
            (event["pid"].as_u64().unwrap(), rank)
        })
        .collect();
    let work = events.iter().filter(|event| event["cat"] == "dispatch");
    let mut work: Vec<_> = work
        .map(|event| {
            let rank = processes[&event["pid"].as_u64().unwrap()];
            (rank.to_owned(), event["name"].as_str().unwrap().to_owned())
        })
        .collect();
    work.sort();
    work
}

#[test]
fn an_export_of_ranks_is_one_file_with_all_of_them() {
    let workplace = Workplace::new();
    recording(&workplace);
    let run = |format: &str, output: &str| {
        workplace.run(&["export", "--format", format, "-o", output, "run.gapscope"])
    };
    let output = run("chrome", "out.json");
    assert_status(&output, 0);
    let file = std::fs::read(workplace.path("out.json")).unwrap();
    let ranks: std::collections::BTreeSet<String> =
        drawn(&file).into_iter().map(|(rank, _)| rank).collect();
    assert_eq!(Vec::from_iter(ranks), ["rank 0", "rank 1"]);
    assert!(!exists(&workplace.path("out.rank=0.json")));
    // The export goes to stdout, too.
    let piped = run("chrome", "-");
    assert!(piped.status.success() && piped.stdout == file);
    assert_eq!(run("chrome", "out.json").status.code(), Some(1));
    for format in ["perfetto", "firefox", "speedscope"] {
        let output = run(format, format);
        assert_status(&output, 0);
        assert!(workplace.path(format).metadata().unwrap().len() > 1000);
    }
    let output = run("csv", "tables");
    assert_status(&output, 0);
    let dispatches = std::fs::read_to_string(workplace.path("tables/dispatches.csv")).unwrap();
    assert!(dispatches.starts_with("rank,"));
    assert!(dispatches.contains("\n0,") && dispatches.contains("\n1,"));
    assert_eq!(run("csv", "tables").status.code(), Some(1));
}

#[test]
fn an_export_of_ranks_is_a_file_for_each_where_it_must_be() {
    let workplace = Workplace::new();
    recording(&workplace);
    for (format, name, files) in [
        ("chrome", "out.json", ["out.rank=0.json", "out.rank=1.json"]),
        ("csv", "tables", ["tables.rank=0", "tables.rank=1"]),
        (
            "firefox",
            "fire.json",
            ["fire.rank=0.json", "fire.rank=1.json"],
        ),
    ] {
        let mut arguments = vec!["export", "--format", format, "-o", name, "run.gapscope"];
        arguments.push("--each-rank");
        let output = workplace.run(&arguments);
        assert_status(&output, 0);
        assert!(!exists(&workplace.path(name)));
        for (rank, file) in files.iter().enumerate() {
            assert!(exists(&workplace.path(file)), "{file}");
            let said = format!("gapscope: run.gapscope/rank={rank} is written to {file}\n");
            assert!(text(&output.stderr).contains(&said), "{said}");
        }
        // Nothing is written over another file.
        let again = workplace.run(&arguments);
        assert_status(&again, 1);
        assert!(text(&again.stderr).contains(files[0]));
    }
    let arguments = words("export --each-rank --format firefox -o - run.gapscope");
    let output = workplace.run(&arguments);
    assert_status(&output, 1);
    assert_contains(text(&output.stderr), "run.gapscope/rank=0");
    // Ranks that were recorded apart have clocks of their own.
    workplace.trace_of("apart.gapscope", "manifest ranks=0 ranks=1 end_ns=1ms");
    workplace.trace_of("apart.gapscope/rank=0", RANKS[0]);
    let later = RANKS[1].replacen("start_ns=0 end_ns", "start_ns=5 end_ns", 1);
    workplace.trace_of("apart.gapscope/rank=1", &later);
    let output = workplace.run(&words(
        "export --format chrome -o apart.json apart.gapscope",
    ));
    assert_status(&output, 0);
    assert_contains(text(&output.stderr), "recorded apart");
    assert!(exists(&workplace.path("apart.rank=1.json")));
}

#[test]
fn an_export_of_ranks_has_what_has_no_rank_where_it_used_a_gpu() {
    let workplace = Workplace::new();
    recording(&workplace);
    workplace.trace_of(
        "other.gapscope",
        "manifest ranks=0 end_ns=1ms\nprocess id=1 pid=5 hook=cuda\ndevice id=1 process=1 uuid=aa\nqueue id=1 device=1
         kernel id=1 process=1 name=warm_up\ndispatch queue=1 kernel=1 start_ns=1us duration_ns=5us",
    );
    workplace.trace_of("other.gapscope/rank=0", RANKS[0]);
    let output = workplace.run(&words("export --format chrome -o all.json other.gapscope"));
    assert_status(&output, 0);
    let work = drawn(&std::fs::read(workplace.path("all.json")).unwrap());
    assert!(
        work.contains(&("no rank".to_owned(), "warm_up".to_owned())),
        "{work:?}"
    );
    assert!(work.iter().any(|(rank, _)| rank == "rank 0"));
}

#[test]
fn ranks_in_one_trace_are_said_and_compared() {
    let workplace = Workplace::new();
    // The trace has two processes without a launcher's variables.
    let number = |text: &str, from: &str, to: &str| text.replace(from, to);
    let second = RANKS[1].replace(" rank.rank=1 rank.world_size=2 rank.local_rank=1", "");
    let mut other = String::new();
    for line in second
        .lines()
        .filter(|line| !line.starts_with("manifest") && !line.starts_with("label"))
    {
        let mut line = number(line, "process=1", "process=2");
        line = number(&line, "device=1", "device=2");
        for queue in [2, 1] {
            line = number(
                &line,
                &format!("queue={queue} "),
                &format!("queue={} ", queue + 2),
            );
            line = number(
                &line,
                &format!("queue id={queue} "),
                &format!("queue id={} ", queue + 2),
            );
        }
        for kind in ["process id=1", "device id=1"] {
            line = number(&line, kind, &kind.replace('1', "2"));
        }
        let words = line.split(' ').map(|word| {
            let id = word.strip_prefix("submission=").or(word
                .strip_prefix("id=")
                .filter(|_| line.starts_with("submission")));
            match id.and_then(|id| id.parse::<u32>().ok()) {
                Some(id) => word.replace(&id.to_string(), &(id + 1000).to_string()),
                None => word.to_owned(),
            }
        });
        let words: Vec<String> = words.collect();
        if !line.starts_with("kernel") {
            other += &(words.join(" ") + "\n");
        }
    }
    let first = RANKS[0].replace(" rank.rank=0 rank.world_size=2 rank.local_rank=0", "");
    workplace.trace_of("run.gapscope", &(first + &other));
    let output = workplace.run(&["report", "--full", "--all", "run.gapscope"]);
    assert_status(&output, 0);
    let page = text(&output.stdout);
    for part in [
        "2 processes ran collectives: they are ranks in one trace",
        "Ranks in this trace",
        "Rank 1 arrived last at 9 of 9 collectives",
    ] {
        assert!(
            page.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(part),
            "{part}: {page}"
        );
    }
    let output = workplace.run(&["report", "--json", "run.gapscope"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ranks"]["straggler"]["rank"], 1);
}

#[test]
fn a_rank_that_is_a_link_is_named_as_missing() {
    let workplace = Workplace::new();
    recording(&workplace);
    let rank = workplace.path("run.gapscope/rank=1");
    std::fs::rename(&rank, workplace.path("other")).unwrap();
    std::os::unix::fs::symlink("../other", rank).unwrap();
    let output = workplace.run(&["report", "--full", "--all", "run.gapscope"]);
    assert_status(&output, 3);
    let page = text(&output.stdout);
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_contains(
        &page,
        "Rank 1 is missing: run.gapscope/rank=1 is a symbolic link",
    );
}
