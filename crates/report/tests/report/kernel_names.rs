//! Tests that kernels of real traces differ in the report's tables, however narrow the terminal is.

use super::*;
use std::collections::HashSet;

const NAMES: [&str; 3] = [
    include_str!("../../../analysis/tests/kernel-names/diff_control_a100.txt"),
    include_str!("../../../analysis/tests/kernel-names/h100_owlv2.txt"),
    include_str!("../../../analysis/tests/kernel-names/h100_2gpu_nsys.txt"),
];

/// Makes a trace in which each of these kernels runs once, the first the longest, followed by a gap.
fn trace(names: &str) -> Trace {
    let mut text = "manifest sampling_mode=dispatch start_ns=0 end_ns=1s
        device id=1 api=cuda name=H100 uuid=aa
        queue id=1 device=1 index=7
        submission id=1 queue=1 start_ns=0 duration_ns=1us kind=kernel
        "
    .to_owned();
    let count = names.lines().count();
    for (at, name) in names.lines().enumerate() {
        let (id, start, duration) = (at + 1, 1000 + at * 1000, 100 + count - at);
        text.push_str(&format!(
            "kernel id={id} name=\"{name}\" name_source=entry-point entry_point=k{id}
             dispatch queue=1 submission=1 kernel={id} start_ns={start}us duration_ns={duration}us\n"
        ));
    }
    read(&text)
}

fn with_top<R>(trace: &Trace, top: usize, show: impl FnOnce(&Report) -> R) -> R {
    with_report(trace, &Options::default(), |report| {
        show(&Report { top, ..*report })
    })
}

/// Returns the section on kernels.
fn section(page: &str) -> String {
    let lines = page.lines().skip_while(|line| !line.contains("Kernels"));
    let section = lines.skip(1).take_while(|line| !line.is_empty());
    section.map(|line| format!("{line}\n")).collect()
}

#[test]
fn no_two_kernels_look_alike_at_any_width() {
    for names in NAMES {
        let trace = trace(names);
        let count = names.lines().count();
        with_top(&trace, usize::MAX, |report| {
            let document = report.document();
            for columns in [40, 60, 80, 120, 200] {
                let terminal = Terminal {
                    columns,
                    colour: false,
                };
                let page = section(&terminal.draw(&document));
                let rows = page.lines().skip(1).take(count);
                let shown: HashSet<&str> = rows
                    .map(|line| line.trim_start().split("  ").next().unwrap())
                    .collect();
                assert_eq!(shown.len(), count, "{columns}:\n{page}");
                for line in page.lines() {
                    assert!(fit::width(line) <= columns, "{columns}: {line}");
                }
            }
            let page = markdown::draw(&document);
            let shown: HashSet<&str> = (page.lines())
                .filter_map(|line| line.strip_prefix("| `")?.split("` |").next())
                .collect();
            assert!(shown.len() >= count, "{page}");
        });
    }
}

#[test]
fn kernels_of_pytorch_can_be_read() {
    let names: Vec<&str> = NAMES[1].lines().step_by(4).collect();
    let trace = trace(&names.join("\n"));
    with_top(&trace, 14, |report| {
        for columns in [80, 40] {
            let terminal = Terminal {
                columns,
                colour: false,
            };
            let page = section(&terminal.draw(&report.document()));
            insta::assert_snapshot!(format!("pytorch-{columns}"), page);
        }
    });
    let kernel = &json_of(&trace)["kernels"][0];
    assert!(kernel["full_name"].as_str().unwrap().contains(names[0]));
    assert_eq!(kernel["codes"], 1);
}
