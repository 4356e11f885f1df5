//! Tests `gapscope baseline`: baselines are saved, listed, replaced and removed, and compared as the traces that they keep.

use crate::{TRACE, Workplace, assert_contains, text};
use serde_json::Value;

fn slower() -> String {
    let longer = TRACE.replace("duration_ns=20us groups", "duration_ns=60us groups");
    longer.replace("bytes=1048576", "bytes=4194304")
}

/// Returns the status, stdout and stderr.
fn run(workplace: &Workplace, arguments: &[&str]) -> (i32, String, String) {
    let output = workplace.run(&[&["baseline"], arguments].concat());
    let said = |bytes: &[u8]| text(bytes).to_string();
    (
        output.status.code().unwrap(),
        said(&output.stdout),
        said(&output.stderr),
    )
}

fn saved() -> Workplace {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    workplace.trace_of("b.gapscope", &slower());
    let (status, _, said) = run(&workplace, &["save", "main", "a.gapscope"]);
    assert_eq!(status, 0, "{said}");
    assert_contains(&said, ".gapscope/baselines/main.json");
    workplace
}

#[test]
fn a_baseline_compares_as_its_traces_do() {
    let workplace = saved();
    let of_traces = workplace.run(&["diff", "--json", "a.gapscope", "b.gapscope"]);
    let mut of_traces: Value = serde_json::from_slice(&of_traces.stdout).unwrap();
    std::fs::remove_dir_all(workplace.path("a.gapscope")).unwrap();
    let (status, json, said) = run(&workplace, &["compare", "main", "--json", "b.gapscope"]);
    assert_eq!(status, 0, "{said}");
    assert_contains(&said, ".gapscope/baselines/main.json");
    let mut diff: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(diff["before"]["runs"][0], "main (run 1)");
    for diff in [&mut diff, &mut of_traces] {
        diff["before"]["runs"] = Value::Null;
        let next = diff["next"].as_array_mut().unwrap();
        next.retain(|sentence| !sentence.as_str().unwrap().contains("gapscope view"));
    }
    assert_eq!(diff, of_traces);
}

#[test]
fn gates_decide_on_the_exit_status() {
    let workplace = saved();
    let gate = ["compare", "main", "--gate", "transfer_bytes > 1MiB"];
    let (status, page, _) = run(&workplace, &[&gate[..], &["a.gapscope"]].concat());
    assert_eq!(status, 0, "{page}");
    let (status, page, _) = run(&workplace, &[&gate[..], &["b.gapscope"]].concat());
    assert_eq!(status, 1, "{page}");
    assert_contains(&page, "BROKEN");
}

#[test]
fn gates_are_not_judged_across_unlike_machines() {
    let workplace = saved();
    let file = "a.gapscope/trace.json";
    let manifest = std::fs::read_to_string(workplace.path(file)).unwrap();
    let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
    manifest["devices"][0]["driver"] = "another driver 2.0".into();
    std::fs::write(workplace.path(file), manifest.to_string()).unwrap();
    let gate = ["compare", "main", "--gate", "dispatches > 0", "a.gapscope"];
    let (status, json, said) = run(&workplace, &[&gate[..], &["--json"]].concat());
    assert_eq!(status, 1, "{said}");
    assert_contains(&said, "--allow-unlike");
    let diff: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(diff["gates"][0]["status"], "unlike");
    for said in [&diff["unlike"][0], &diff["gates"][0]["sentence"]] {
        assert!(said.as_str().unwrap().contains("another driver 2.0"));
    }
    let (_, junit, _) = run(&workplace, &[&gate[..], &["--junit"]].concat());
    assert_contains(&junit, "errors=\"1\"");
    assert_contains(&junit, "type=\"unlike\"");
    let (_, page, _) = run(&workplace, &gate);
    assert_contains(&page, "NOT JUDGED");
    let (_, page, said) = run(&workplace, &[&gate[..], &["--allow-unlike"]].concat());
    assert!(!page.contains("NOT JUDGED"), "{page}{said}");
    assert_contains(&page, "another driver 2.0");
}

#[test]
fn a_name_is_replaced_only_when_asked_for_and_can_be_removed() {
    let workplace = saved();
    let (status, _, said) = run(&workplace, &["save", "main", "b.gapscope"]);
    assert_eq!(status, 1);
    assert_contains(&said, "--replace");
    let all = ["save", "main", "--replace", "a.gapscope", "b.gapscope"];
    assert_eq!(run(&workplace, &all).0, 0);
    let (_, list, _) = run(&workplace, &["list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(
        (&list[0]["name"], &list[0]["runs"]),
        (&"main".into(), &2.into())
    );
    assert!(
        !list[0]["fingerprint"]["gpus"][0]["name"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    let (_, page, _) = run(&workplace, &["list"]);
    assert_contains(&page, "main");
    assert_contains(&page, "UTC");
    assert_eq!(run(&workplace, &["remove", "main"]).0, 0);
    let (status, _, said) = run(&workplace, &["list", "--baselines", "elsewhere"]);
    assert_eq!(status, 0);
    assert_contains(&said, "no baselines in elsewhere");
}

#[test]
fn what_is_no_baseline_is_said_in_a_sentence() {
    let workplace = saved();
    let file = ".gapscope/baselines/main.json";
    let whole = std::fs::read_to_string(workplace.path(file)).unwrap();
    let compare = ["compare", "main", "a.gapscope"];
    let broken = [
        (whole[..whole.len() / 2].to_owned(), "main.json"),
        ("{}".to_owned(), "gapscope_baseline"),
        (
            whole.replace("\"gapscope_baseline\":1", "\"gapscope_baseline\":9"),
            "version 9",
        ),
        (
            whole.replace("\"gpu_time\"", "\"gpu_tide\""),
            "no figure is called gpu_tide",
        ),
    ];
    for (text, expected) in broken {
        std::fs::write(workplace.path(file), text).unwrap();
        let (status, page, said) = run(&workplace, &compare);
        assert_eq!((status, page.as_str()), (1, ""), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_contains(&said, expected);
        assert_eq!(run(&workplace, &["list"]).0, 3);
    }
    let (status, _, said) = run(&workplace, &["compare", "other", "a.gapscope"]);
    assert_eq!(status, 1);
    assert_contains(&said, "there are main");
    let (status, _, said) = run(&workplace, &["save", "../x", "a.gapscope"]);
    assert_eq!(status, 2, "{said}");
    let (status, _, said) = run(&workplace, &["save", "x", "missing.gapscope"]);
    assert_eq!(status, 1, "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn stalls_set_clocks_and_a_busy_machine_are_said_of_the_side_that_had_them() {
    let workplace = saved();
    let counter = |id: u32, name: &str, device: &str| {
        format!(
            "counter id={id} name=\"{name}\" unit=percent {device} source=test\n\
             counter_value counter={id} start_ns=0 value=90\n"
        )
    };
    // The trace is long enough for stalls to count.
    let text = TRACE.replace("end_ns=10ms", "end_ns=10s");
    let text = text
        + "\n"
        + &counter(1, "machine stalled on memory (some)", "")
        + &counter(2, "clock limited: setting", "device=1")
        + &counter(3, "machine stalled on cpu (some)", "");
    workplace.trace_of("stalled.gapscope", &text);
    let notes = [
        "After: The machine stalled on memory for",
        "After: The clock of Example GPU was limited by a setting (application or locked clocks) for 90.0 %",
        "After: Tasks of the machine waited for a processor for 90.0 %",
    ];
    let of_diff = ["diff", "--json", "a.gapscope", "stalled.gapscope"];
    let of_baseline = ["baseline", "compare", "--json", "main", "stalled.gapscope"];
    for command in [&of_diff[..], &of_baseline] {
        let output = workplace.run(command);
        let diff: Value = serde_json::from_slice(&output.stdout).unwrap();
        let unlike = diff["unlike"].as_array().unwrap();
        for note in notes {
            let mut said = unlike.iter().map(|sentence| sentence.as_str().unwrap());
            assert!(
                said.any(|said| said.starts_with(note)),
                "{note}: {unlike:#?}"
            );
        }
        assert_eq!(unlike.len(), 3, "{unlike:#?}");
    }
    // The stalls are kept with the baseline, as the side before.
    run(&workplace, &["save", "stalled", "stalled.gapscope"]);
    let (_, page, _) = run(&workplace, &["compare", "stalled", "a.gapscope"]);
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for note in notes {
        assert!(page.contains(&note.replace("After", "Before")), "{page}");
    }
}

#[test]
fn a_power_cap_and_memory_of_others_on_one_side_alone_are_said() {
    let workplace = Workplace::new();
    let with = |capped: u32, used: &str| {
        let counter = |id: u32, name: &str, unit: &str, value: &str| {
            format!(
                "counter id={id} name=\"{name}\" unit={unit} device=1 source=test\n\
                 counter_value counter={id} start_ns=0 value={value}\n"
            )
        };
        TRACE.to_owned()
            + "\n"
            + &counter(1, "SM clock", "hertz", "1980000000")
            + &counter(
                2,
                "clock limited: power cap",
                "percent",
                &capped.to_string(),
            )
            + &counter(3, "device memory in use by all", "bytes", used)
    };
    // Both have the program's own allocations.
    workplace.trace_of("quiet.gapscope", &with(0, "900000000"));
    workplace.trace_of("alike.gapscope", &with(5, "1000000000"));
    workplace.trace_of("shared.gapscope", &with(80, "9900000000"));
    workplace.trace("unmeasured.gapscope");
    run(&workplace, &["save", "quiet", "quiet.gapscope"]);
    let unlike = |arguments: &[&str]| -> Vec<String> {
        let output = workplace.run(arguments);
        let diff: Value = serde_json::from_slice(&output.stdout).unwrap();
        let unlike = diff["unlike"].as_array().unwrap();
        let sentences = unlike.iter().map(|said| said.as_str().unwrap().to_owned());
        sentences.collect()
    };
    for pair in [
        &["diff", "--json", "quiet.gapscope", "shared.gapscope"][..],
        &["baseline", "compare", "--json", "quiet", "shared.gapscope"],
    ] {
        let said = unlike(pair);
        assert_eq!(said.len(), 2, "{said:#?}");
        let capped =
            "A GPU was at its power limit for 0 % of the recording before and for 80.0 % after:";
        assert!(said[0].starts_with(capped), "{said:#?}");
        let bytes = said[1].contains("GiB after was in use") && said[1].contains("MiB before");
        assert!(bytes, "{said:#?}");
    }
    assert!(unlike(&["diff", "--json", "quiet.gapscope", "alike.gapscope"]).is_empty());
    let said = unlike(&["diff", "--json", "shared.gapscope", "unmeasured.gapscope"]);
    let unmeasured = "A GPU was at its power limit for 80.0 % of the recording before; whether one was so after was not measured.";
    assert_eq!(said, [unmeasured]);
    for format in [&[][..], &["--markdown"]] {
        let output =
            workplace.run(&[&["diff"], format, &["quiet.gapscope", "shared.gapscope"]].concat());
        let page = text(&output.stdout);
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_contains(&page, "at its power limit for 0 %");
        assert_contains(&page, "was in use all the time");
    }
}

#[test]
fn all_flaws_of_a_baseline_are_in_the_json_and_the_page_says_so() {
    let workplace = Workplace::new();
    let losses = (1..=7).map(|at| format!("\nloss what=records count={at} reason=\"reason {at}\""));
    workplace.trace_of(
        "a.gapscope",
        &(TRACE.to_owned() + &losses.collect::<String>()),
    );
    run(&workplace, &["save", "main", "a.gapscope"]);
    std::fs::remove_dir_all(workplace.path("a.gapscope")).unwrap();
    workplace.trace("b.gapscope");
    let (_, page, _) = run(&workplace, &["compare", "main", "b.gapscope"]);
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.contains("reason 4") && !page.contains("reason 5"),
        "{page}"
    );
    assert_contains(
        &page,
        "3 more of the kind; `--json` has them all, as `before.flaws`.",
    );
    let (_, json, _) = run(&workplace, &["compare", "main", "--json", "b.gapscope"]);
    let diff: Value = serde_json::from_str(&json).unwrap();
    let flaws = diff["before"]["flaws"].as_array().unwrap();
    assert_eq!(flaws.len(), 7, "{flaws:#?}");
    assert!(
        flaws[6]["sentence"].as_str().unwrap().contains("reason 7"),
        "{flaws:#?}"
    );
    assert_eq!(diff["after"]["flaws"], serde_json::json!([]));
}

/// A stranger's project may lead elsewhere by a link, and then nothing is read or written there.
#[test]
fn a_link_in_place_of_the_projects_folder_is_followed_only_if_it_is_named() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    std::fs::create_dir(workplace.path("elsewhere")).unwrap();
    std::fs::create_dir(workplace.path(".gapscope")).unwrap();
    let link = workplace.path(".gapscope/baselines");
    std::os::unix::fs::symlink("../elsewhere", link).unwrap();
    for line in [["save", "main", "a.gapscope"].as_slice(), &["list"]] {
        let (status, _, said) = run(&workplace, line);
        assert_eq!(status, 1, "{said}");
        assert_contains(&said, ".gapscope/baselines is a symbolic link");
    }
    let elsewhere = || std::fs::read_dir(workplace.path("elsewhere")).unwrap();
    assert_eq!(elsewhere().count(), 0);
    let named = [
        "save",
        "main",
        "a.gapscope",
        "--baselines",
        ".gapscope/baselines",
    ];
    assert_eq!(run(&workplace, &named).0, 0);
    assert_eq!(elsewhere().count(), 1);
}
