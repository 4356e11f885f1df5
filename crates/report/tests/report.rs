//! Tests reports: traces as text go in, pages come out.

use gapscope_analysis::{Findings, Options, activity};
use gapscope_comparison::ranks::{RankDigest, ranks};
use gapscope_report::ranks::RanksReport;
use gapscope_report::{Document, Report, Terminal, fit, info, json, markdown, slices};
use gapscope_timeline::Timeline;
use gapscope_trace::tables::Table;
use gapscope_trace::{Trace, UnreadTable};

#[path = "report/code.rs"]
mod code;
#[path = "report/counters.rs"]
mod counters;
#[path = "report/explanation.rs"]
mod explanation;
#[path = "report/headline.rs"]
mod headline;
#[path = "report/instructions.rs"]
mod instructions;
#[path = "report/kernel_bytes.rs"]
mod kernel_bytes;
#[path = "report/kernel_names.rs"]
mod kernel_names;
#[path = "report/launches.rs"]
mod launches;
#[path = "report/limits.rs"]
mod limits;

const HOST_BOUND: &str = include_str!("traces/host_bound.txt");

fn read(text: &str) -> Trace {
    Trace::from_text(text).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn assert_says(text: &str, part: &str) {
    assert!(text.contains(part), "{part} is not in: {text}");
}

#[track_caller]
fn assert_lacks(text: &str, part: &str) {
    assert!(!text.contains(part), "{part} is in: {text}");
}

fn with_report<R>(trace: &Trace, options: &Options, show: impl FnOnce(&Report) -> R) -> R {
    show(&Report {
        trace: "example.gapscope",
        manifest: &trace.manifest,
        findings: &Findings::new(trace, options),
        activity: &activity(&Timeline::new(trace), slices(80)),
        label: None,
        remarks: &[],
        top: 10,
        each_layer: false,
        ranks: None,
    })
}

fn terminal(trace: &Trace) -> String {
    with_report(trace, &Options::default(), |report| {
        drawn(&report.document())
    })
}

fn first_screen(trace: &Trace) -> String {
    with_report(trace, &Options::default(), |report| {
        drawn(&report.first_screen())
    })
}

/// Draws a page for a terminal, which it must fit.
fn drawn(document: &Document) -> String {
    let page = Terminal::default().draw(document);
    for line in page.lines() {
        assert!(fit::width(line) <= 80, "wider than 80 columns: {line}");
    }
    page
}

/// Returns a text with single spaces between words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

macro_rules! snapshots {
    ($($name:ident),+) => {$(
        #[test]
        fn $name() {
            let trace = read(include_str!(concat!("traces/", stringify!($name), ".txt")));
            let page = terminal(&trace);
            insta::assert_snapshot!(concat!(stringify!($name), "-terminal"), page);
            let page = first_screen(&trace);
            assert!(page.lines().count() <= 40, "more than 40 lines:\n{page}");
            insta::assert_snapshot!(concat!(stringify!($name), "-first"), page);
            with_report(&trace, &Options::default(), |report| {
                let page = markdown::draw(&report.document());
                insta::assert_snapshot!(concat!(stringify!($name), "-markdown"), page);
                let page = json::text(report).unwrap();
                insta::assert_snapshot!(concat!(stringify!($name), "-json"), page);
            });
        }
    )+};
}
snapshots!(
    host_bound,
    command_buffers_only,
    two_queues,
    two_gpus,
    other_threads,
    cuda_waits,
    nothing
);

#[test]
fn each_section_has_a_name_by_which_it_is_asked_for() {
    let trace = read(HOST_BOUND);
    with_report(&trace, &Options::default(), |report| {
        let whole = drawn(&report.document());
        let page = |name: &str| drawn(&report.some_sections(&[name.to_owned()]));
        for name in gapscope_report::SECTIONS {
            let page = page(name);
            let is_part = page.lines().all(|line| whole.contains(line));
            let is_empty = page.contains(&format!("The trace has nothing for the section {name}."));
            assert!(is_part != is_empty, "{name}: {page}");
        }
        assert_says(&page("kernels"), "matmul");
        assert_lacks(&page("kernels"), "HOST-BOUND");
        assert_says(&page("counters"), "nothing for the section counters");
    });
}

#[test]
fn advice_begins_at_its_share() {
    let page = |gap: i64| {
        terminal(&read(&format!(
            "manifest sampling_mode=dispatch
             device id=1 api=cuda name=GPU uuid=aa clock.error_ns=0 limits.multiprocessors=100
             queue id=1 device=1
             kernel id=1 name=large\nkernel id=2 name=small
             submission id=1 process=1 queue=1 start_ns=-20us duration_ns=10us kind=kernel
             dispatch submission=1 queue=1 kernel=1 groups_x=500 groups_y=1 groups_z=1 start_ns=0us duration_ns={}us
             dispatch submission=1 queue=1 kernel=2 groups_x=1 groups_y=1 groups_z=1 start_ns=1000us duration_ns={gap}us",
            1000 - gap,
        )))
    };
    // The gap takes its share of the window, and so does the small kernel after it.
    let (with, without) = (page(11), page(10));
    for text in [
        "  → ",
        "Kernels that filled little of the GPU: small (1 block, 11.0 µs).",
    ] {
        assert!(with.contains(text), "{with}");
    }
    for text in ["  → ", "filled little of the GPU"] {
        assert!(!without.contains(text), "{without}");
    }
    assert!(!with.contains("graph launches"), "{with}");
}

#[test]
fn the_keys_that_scripts_rely_on_are_there() {
    let trace = read(HOST_BOUND);
    let json = json_of(&trace);
    for key in [
        "wall_ns",
        "gpu_busy_ns",
        "dispatch_count",
        "command_buffer_count",
        "transfer_bytes",
        "clock_error_ns",
    ] {
        assert!(json[key].is_u64(), "{key}: {}", json[key]);
    }
    for key in ["verdict", "sampling_mode"] {
        assert!(json[key].is_string(), "{key}");
    }
    for key in [
        "devices",
        "kernels",
        "labels",
        "gaps",
        "losses",
        "verdict_evidence",
    ] {
        assert!(json[key].is_array(), "{key}");
    }
    for key in [
        "name", "count", "total_ns", "mean_ns", "p50_ns", "p99_ns", "min_ns", "max_ns",
    ] {
        assert!(!json["kernels"][0][key].is_null(), "kernels[].{key}");
    }
    for key in ["cause", "count", "total_ns"] {
        assert!(!json["gaps"][0][key].is_null(), "gaps[].{key}");
    }
}

/// The start of the recording, from which times in the report are counted.
#[test]
fn a_recording_may_claim_any_start() {
    for start_ns in [i64::MIN, i64::MAX] {
        for text in [HOST_BOUND, include_str!("traces/rank_0.txt")] {
            let mut trace = read(text);
            trace.manifest.start_ns = start_ns;
            with_report(&trace, &Options::default(), |report| {
                // Times since such a start are wider than the terminal.
                let page = Terminal::default().draw(&report.document());
                assert!(page.contains("Timeline"));
            });
        }
    }
}

#[test]
fn what_is_unknown_is_null_with_a_reason() {
    let trace = read(include_str!("traces/nothing.txt"));
    let json = json_of(&trace);
    assert!(json["gpu_busy_ns"].is_null());
    assert!(json["gpu_busy_unknown_because"].is_string());
    assert!(json["clock_error_ns"].is_null());
    assert!(json["clock_error_unknown_because"].is_string());
    assert_eq!(json["verdict"], "unknown");
}

/// Makes a trace of which rows of a table are missing.
fn cut(
    text: &str,
    table: &'static str,
    missing: Option<u64>,
    cut: fn(&mut Trace) -> usize,
) -> Trace {
    let mut trace = read(text);
    let rows_read = cut(&mut trace) as u64;
    trace.unread.push(UnreadTable {
        table,
        file: format!("{table}.parquet"),
        column: missing.map(|_| "kernel"),
        reason: "its end is missing".to_owned(),
        rows_read,
        rows_missing: missing,
    });
    trace
}

#[test]
fn what_rests_on_a_table_that_cannot_be_read_is_unknown_and_that_is_said_first() {
    let trace = cut(HOST_BOUND, "dispatches", None, |trace| {
        trace.tables.dispatches.clear();
        0
    });
    let page = terminal(&trace);
    insta::assert_snapshot!("unread-terminal", page);
    let said = page.find("dispatches.parquet cannot be read").unwrap();
    assert!(said < page.find("UNKNOWN").unwrap(), "{page}");
    for untrue in ["BOUND", " 0 dispatches", "nothing was lost", "never idle"] {
        assert!(!page.contains(untrue), "{untrue} in {page}");
    }
    let json = json_of(&trace);
    assert_eq!(json["verdict"], "unknown");
    for key in [
        "dispatch_count",
        "timed_dispatch_count",
        "gpu_busy_ns",
        "analysed_window",
        "gaps",
        "idle_time",
        "kernels",
        "labels",
        "launch_latency",
        "drift",
    ] {
        assert!(json[key].is_null(), "{key}: {}", json[key]);
    }
    for key in ["busy_ns", "analysed", "work_window"] {
        assert!(json["devices"][0][key].is_null(), "{key}");
    }
    assert_eq!(json["submission_count"], 4);
    assert_eq!(json["unread"][0]["table"], "dispatches");
    assert_eq!(json["unread"][0]["reason"], "its end is missing");
    assert!(json["gpu_busy_unknown_because"].is_string());
}

#[test]
fn counts_of_a_table_that_ends_early_are_at_least() {
    let trace = cut(HOST_BOUND, "dispatches", Some(4), |trace| {
        let rows = &mut trace.tables.dispatches;
        let keep: Vec<bool> = (0..rows.len()).map(|row| row < 4).collect();
        *rows = rows.select(&keep);
        rows.len()
    });
    let page = terminal(&trace);
    insta::assert_snapshot!("partly-read-terminal", page);
    let words = words(&page);
    assert_says(&words, "4 of 8 rows are missing");
    assert_says(&words, "at least 4 dispatches");
    let json = json_of(&trace);
    assert!(json["dispatch_count"].is_null());
    assert_eq!(json["unread"][0]["rows_read"], 4);
    assert_eq!(json["verdict"], "unknown");
}

#[test]
fn a_table_that_the_verdict_does_not_need_takes_only_its_own_figures() {
    let text = include_str!("traces/host_bound.txt");
    let trace = cut(text, "memory", None, |trace| {
        trace.tables.memory.clear();
        0
    });
    let page = terminal(&trace);
    assert!(page.contains("memory.parquet cannot be read"), "{page}");
    assert!(page.contains("HOST-BOUND"), "{page}");
    let json = json_of(&trace);
    assert_eq!(json["verdict"], "host-bound");
    assert_eq!(json["dispatch_count"], 8);
    assert!(json["memory"].is_null() && json["counters"].is_null());
}

fn json_of(trace: &Trace) -> serde_json::Value {
    let text = with_report(trace, &Options::default(), json::text);
    serde_json::from_str(&text.unwrap()).unwrap()
}

#[test]
fn a_report_on_cuda_has_cudas_words() {
    let text = include_str!("traces/two_queues.txt").replace("api=vulkan", "api=cuda");
    let page = terminal(&read(&text));
    for words in [
        "3 graph launches",
        "3 launches",
        "Graph launches",
        "launch call",
        "stream 0",
    ] {
        assert!(page.contains(words), "{words} in {page}");
    }
    assert!(page.contains("work of another stream"), "{page}");
    assert!(!page.contains("another queue"), "{page}");
}

#[test]
fn bytes_that_are_not_known_are_not_0() {
    let text = include_str!("traces/two_queues.txt");
    let none = terminal(&read(&text.replace(" bytes=67108864 start", " start")));
    assert!(none.contains("1 transfer of unknown size."), "{none}");
    assert!(!none.contains("0 B"), "{none}");
    let more =
        "\ntransfer command_buffer=2 position=1 queue=2 kind=copy start_ns=1.8ms duration_ns=1us\n";
    let some = terminal(&read(&format!("{text}{more}")));
    assert!(some.contains("2 transfers of ≥64.0 MiB."), "{some}");
    assert!(some.contains(" ≥64.0 MiB written"), "{some}");
}

#[test]
fn the_advice_for_a_late_host_says_when_its_thread_is_not_known() {
    let text = include_str!("traces/host_bound.txt");
    let words = |text: &str| words(&terminal(&read(text)));
    let known = "→ the submitting thread was outside of GPU calls: prepare work ahead";
    let unknown = "it is not known which thread submits, or what it did";
    let page = words(text);
    assert!(page.contains(known) && !page.contains(unknown), "{page}");
    let page = words(&text.replace(" thread=4242 start_ns", " start_ns"));
    assert!(
        page.contains(&format!("→ {unknown}: prepare work ahead")) && !page.contains(known),
        "{page}"
    );
}

#[test]
fn every_page_with_numbers_states_sampling_mode_and_clock_error() {
    let trace = read(HOST_BOUND);
    let options = Options {
        equal_work: Some(("step".into(), "attention".into())),
        ..Options::default()
    };
    for options in [Options::default(), options] {
        with_report(&trace, &options, |report| {
            let document = report.document();
            for page in [
                Terminal::default().draw(&document),
                markdown::draw(&document),
            ] {
                assert!(
                    page.contains("each dispatch timed, times ±1.20 µs"),
                    "{page}"
                );
            }
        });
    }
}

#[test]
fn a_comparison_fits_whatever_the_labels_are_called() {
    let [eager, compiled] = ["eager", "compiled"]
        .map(|way| format!("evaluation of all layers, {way}, in half precision"));
    let mut text = format!(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=10s exit.code=0 command=fusion\n\
         process id=1 pid=10\n\
         device id=1 process=1 name=GPU uuid=aa\nqueue id=1 device=1\nkernel id=1 process=1 name=work\n\
         label id=1 text=\"{eager}\"\nlabel id=2 text=\"{compiled}\"\n"
    );
    for (label, turn) in (0..40).map(|n| (1 + n / 20, i64::from(n))) {
        let (t, duration) = (
            turn * 1_300_017,
            1_012_345 / i64::from(label) + turn * 37 % 101,
        );
        text += &format!(
            "submission id={turn} process=1 queue=1 start_ns={t} duration_ns=5000 command_buffers=1\n\
             command_buffer id={turn} process=1 queue=1 submission={turn} start_ns={t} duration_ns={duration}\n\
             marker process=1 label={label} scope=command-buffer command_buffer={turn} queue=1 start_ns={t} duration_ns={duration}\n\
             dispatch command_buffer={turn} queue=1 kernel=1 label={label} start_ns={t} duration_ns={duration}\n"
        );
    }
    let options = Options {
        equal_work: Some((eager, compiled)),
        ..Options::default()
    };
    with_report(&read(&text), &options, |report| {
        let page = drawn(&report.document());
        for words in [
            "0.50 × as much",
            "evaluations",
            "start to start",
            "command buffers",
            "Spread",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
    });
}

#[test]
fn a_label_under_which_nothing_ran_has_no_times_and_none_is_unknown() {
    let text = "manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
        process id=1 pid=10
        device id=1 process=1 uuid=aa
        queue id=1 device=1
        kernel id=1 process=1 name=work
        label id=1 text=waits
        label id=2 text=works
        label id=3 text=untimed
        marker process=1 label=1 scope=thread thread=7 start_ns=1us duration_ns=2us
        marker process=1 label=2 scope=thread thread=7 start_ns=5us duration_ns=2us
        marker process=1 label=3 scope=thread thread=7 start_ns=9us duration_ns=2us
        dispatch queue=1 kernel=1 label=2 start_ns=6us duration_ns=80us
        dispatch queue=1 kernel=1 label=3";
    let page = terminal(&read(text));
    let cells = |label: &str| -> Vec<String> {
        let row = page.lines().find(|line| line.trim().starts_with(label));
        let row = row.unwrap_or_else(|| panic!("{page}"));
        row.split_whitespace().skip(2).map(str::to_owned).collect()
    };
    assert_eq!(cells("waits "), ["0", "0", "–", "–", "–"], "{page}");
    assert_eq!(
        cells("untimed "),
        ["1", "0", "unknown", "unknown", "unknown"],
        "{page}"
    );
    assert_eq!(cells("works ")[2..4], ["80.0", "µs"], "{page}");
}

#[test]
fn kernels_that_fill_little_have_the_names_and_workgroups_of_the_launches_that_do() {
    let mut text = String::from(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
        process id=1 pid=10
        device id=1 process=1 uuid=aa api=cuda limits.multiprocessors=100
        queue id=1 device=1
        kernel id=1 process=1 name=\"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>>(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)\"
",
    );
    for (at, blocks) in [4, 256, 256, 256].into_iter().enumerate() {
        text += &format!(
            "dispatch queue=1 kernel=1 groups_x={blocks} groups_y=1 groups_z=1 start_ns={}us duration_ns=100us\n",
            at * 100
        );
    }
    let page = markdown_of(&read(&text));
    let mut lines = page.lines();
    let line = lines.find(|line| line.contains("filled little of the GPU: "));
    let line = line.unwrap_or_else(|| panic!("{page}"));
    assert_says(line, "(4 blocks, 100 µs)");
    assert_lacks(line, "256");
    assert_lacks(line, "void at::native");
}

#[test]
fn places_in_a_short_window_that_begins_late_are_told_apart() {
    let mut text = String::from(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=101ms
        process id=1 pid=10
        device id=1 process=1 uuid=aa
        queue id=1 device=1
        kernel id=1 process=1 name=work
",
    );
    for at in [0, 30, 70] {
        text += &format!(
            "dispatch queue=1 kernel=1 start_ns={}us duration_ns=10us\n",
            100_000 + at
        );
    }
    let page = terminal(&read(&text));
    let axis = page.lines().find(|line| line.matches("100.0").count() == 3);
    let axis = axis.unwrap_or_else(|| panic!("{page}"));
    let marks = axis.split_whitespace().filter(|word| *word != "ms");
    let marks: Vec<&str> = marks.collect();
    assert_eq!(marks, ["100.0000", "100.0400", "100.0800"], "{page}");
    for gap in ["100.0100 ms", "100.0400 ms"] {
        let row = page.lines().any(|line| line.contains(gap) && line != axis);
        assert!(row, "{gap}: {page}");
    }
}

#[test]
fn a_label_cannot_steer_the_terminal() {
    let text = HOST_BOUND.replace("text=step", r#"text="\u{1b}[2Jstep""#);
    let page = terminal(&read(&text));
    assert!(!page.contains('\x1b'), "{page}");
    assert!(page.contains("·[2Jstep"), "{page}");
}

fn markdown_of(trace: &Trace) -> String {
    with_report(trace, &Options::default(), |report| {
        markdown::draw(&report.document())
    })
}

#[test]
fn what_another_tool_does_not_record_of_an_end_is_unknown() {
    let page = |hook: &str| {
        let text = format!(
            "manifest start_ns=0 end_ns=1ms\nprocess id=1 pid=10 hook={hook} executable=/opt/worker"
        );
        let trace = read(&text);
        drawn(&info::document(
            "run.gapscope",
            &trace.manifest,
            &[],
            None,
            &[],
        ))
    };
    let imported = page("kineto");
    assert_says(&imported, "unknown: kineto does not record it");
    assert_lacks(&imported, "cut off");
    assert_lacks(&imported, "in a way");
    let own = page("vulkan");
    assert_says(&own, "cut off");
    assert_says(&own, "in a way that is not known");
}

#[test]
fn info_says_that_a_parent_is_not_known() {
    let manifest = read("process id=1 pid=7 hook=made").manifest;
    let document = info::document("example.gapscope", &manifest, &[], None, &[]);
    let shown = markdown::draw(&document);
    assert!(shown.contains("| 7 | unknown | 0 | made |"), "{shown}");
}

#[test]
fn info_shows_the_manifest() {
    let sizes =
        [("dispatches", Some(8), 1200), ("kernels", None, 64)].map(|(table, rows, bytes)| {
            gapscope_trace::TableSize {
                table,
                rows,
                unread: None,
                bytes,
            }
        });
    let mut pages = String::new();
    for text in [HOST_BOUND, include_str!("traces/command_buffers_only.txt")] {
        let document = info::document("example.gapscope", &read(text).manifest, &sizes, None, &[]);
        pages.push_str(&drawn(&document));
        pages.push('\n');
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn ranks_side_by_side() {
    let traces = [
        read(include_str!("traces/rank_0.txt")),
        read(include_str!("traces/rank_1.txt")),
    ];
    let options = Options {
        exclude_warm_up: false,
        ..Options::default()
    };
    let digests: Vec<RankDigest> = (traces.iter())
        .flat_map(|trace| {
            RankDigest::from_timeline(&Timeline::new(trace), &Findings::new(trace, &options), 0)
        })
        .collect();
    let report = RanksReport {
        folder: "run.gapscope",
        manifest: &traces[0].manifest,
        findings: &ranks(&digests, 5),
        remarks: &["Rank 1: 3 dispatch times were lost: of a test.".to_owned()],
        top: 10,
    };
    let page = drawn(&report.document());
    insta::assert_snapshot!("ranks-terminal", page);
    insta::assert_snapshot!("ranks-json", report.json().unwrap());
    insta::assert_snapshot!("ranks-first", drawn(&report.first_screen()));
    let trace = &traces[0];
    with_report(trace, &Options::default(), |of_trace| {
        let with_ranks = Report {
            ranks: Some(report),
            ..*of_trace
        };
        let page = drawn(&with_ranks.document());
        assert_says(&page, "Ranks in this trace");
        let within = json::text_with_ranks(of_trace, report.findings).unwrap();
        let [within, alone] = [within, report.json().unwrap()]
            .map(|text| serde_json::from_str::<serde_json::Value>(&text).unwrap());
        let step = &within["ranks"]["first_step"];
        assert!(
            step.as_str()
                .is_some_and(|text| text.contains("rank 1 is late"))
        );
        assert_eq!(step, &alone["first_step"]);
        assert_eq!(within["ranks"]["sentences"], alone["sentences"]);
        // The sentences on how ranks hold each other up come right behind the verdict.
        let first = words(&drawn(&with_ranks.first_screen()));
        let said = first.find("2 ranks are in this trace");
        assert!(said < first.find("Timeline"), "{first}");
        assert!(said.is_some(), "{first}");
    });
}

#[test]
fn what_the_clocks_leave_open_is_said_for_each_cause_where_it_matters() {
    let mut text = String::from(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=9us
         queue id=1 device=1
         kernel id=1 process=1 name=work
         host_call process=1 thread=7 call=present start_ns=0us duration_ns=1us\n",
    );
    for turn in 1..100 {
        let (call, start) = (turn * 100 + 96, turn * 100 + 100);
        text += &format!(
            "submission id={turn} process=1 queue=1 thread=7 start_ns={call}us duration_ns=3us kind=kernel
             dispatch submission={turn} queue=1 kernel=1 start_ns={start}us duration_ns=25us\n"
        );
    }
    let page = terminal(&read(&text));
    insta::assert_snapshot!("uncertain", section(&page, "Idle time by cause"));
}

/// Returns a section of a page without its heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let from = page.find(heading).expect("it is there");
    let rest = &page[from..];
    let from = rest.find('\n').unwrap_or(0);
    let to = rest.find("\n\n  longest").unwrap_or(rest.len());
    &rest[from..to]
}
