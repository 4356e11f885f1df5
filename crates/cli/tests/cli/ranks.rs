use crate::{Workplace, exists, text};

const RANKS: [&str; 2] = [
    include_str!("../../../report/tests/traces/rank_0.txt"),
    include_str!("../../../report/tests/traces/rank_1.txt"),
];

/// A recording of two ranks, with a launcher that has a trace of its own.
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
    let output = workplace.run(&["report", "--all", "run.gapscope"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    for part in [
        "Both ranks are host-bound",
        "Rank 1 arrived last at 10 of 10 collectives",
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
fn an_export_of_ranks_is_a_file_for_each_and_says_so() {
    let workplace = Workplace::new();
    recording(&workplace);
    for (format, name, files) in [
        ("chrome", "out.json", ["out.rank=0.json", "out.rank=1.json"]),
        ("csv", "tables", ["tables.rank=0", "tables.rank=1"]),
    ] {
        let arguments = ["export", "--format", format, "-o", name, "run.gapscope"];
        let output = workplace.run(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(!exists(&workplace.path(name)));
        for (rank, file) in files.iter().enumerate() {
            assert!(exists(&workplace.path(file)), "{file}");
            let said = format!("gapscope: run.gapscope/rank={rank} is written to {file}\n");
            assert!(text(&output.stderr).contains(&said), "{said}");
        }
        // And never over another file.
        let again = workplace.run(&arguments);
        assert_eq!(again.status.code(), Some(1));
        assert!(text(&again.stderr).contains(files[0]));
    }
    let output = workplace.run(&["export", "--format", "chrome", "-o", "-", "run.gapscope"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("run.gapscope/rank=0"));
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
    let output = workplace.run(&[
        "export",
        "--format",
        "chrome",
        "-o",
        "all.json",
        "other.gapscope",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("gapscope: other.gapscope is written to all.json\n"));
    let all = std::fs::read_to_string(workplace.path("all.json")).unwrap();
    assert!(all.contains("warm_up") && exists(&workplace.path("all.rank=0.json")));
}

#[test]
fn ranks_in_one_trace_are_said_and_compared() {
    let workplace = Workplace::new();
    // Two processes without a launcher's variables.
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
    let output = workplace.run(&["report", "--all", "run.gapscope"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    for part in [
        "2 processes ran collectives: they are ranks in one trace",
        "Ranks in this trace",
        "Rank 1 arrived last at 10 of 10 collectives",
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
