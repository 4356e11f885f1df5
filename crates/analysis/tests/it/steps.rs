//! Steps of planted programs: by ranges, by launches that repeat, and none where nothing tells them.

use crate::program::findings_of;
use gapscope_analysis::steps::{Step, StepsFoundBy};
use gapscope_analysis::{Findings, Options};
use gapscope_trace::Trace;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A program that does 20 steps of 10 ms: it loads for 4 ms, launches three kernels of 1.5 ms, and waits for them. All times are in µs.
struct Program {
    text: String,
    at: i64,
    id: u64,
    steps: Vec<(i64, i64)>,
}

const HEAD: &str = "manifest start_ns=0 sampling_mode=dispatch
    process id=1 pid=10 hook=cuda
    thread process=1 thread=7 name=main
    thread process=1 thread=8 name=other
    device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=1000
    queue id=1 device=1
    kernel id=1 process=1 name=forward\nkernel id=2 process=1 name=backward\nkernel id=3 process=1 name=update\nkernel id=4 process=1 name=check
    label id=1 text=step\nlabel id=2 text=epoch\nlabel id=3 text=load_batch\nlabel id=4 text=layer
    label id=5 text=\"train.py(41): load_batch\"\n";

impl Program {
    fn new() -> Program {
        Program {
            text: HEAD.to_owned(),
            at: 1000,
            id: 0,
            steps: Vec::new(),
        }
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a text can be written");
    }

    fn launch(&mut self, kernel: u32, start_us: i64, duration_us: i64) {
        self.id += 1;
        let (id, call) = (self.id, self.at);
        self.line(&format!(
            "submission id={id} process=1 queue=1 thread=7 start_ns={call}us duration_ns=10us kind=kernel
             host_call process=1 thread=7 call=launch start_ns={call}us duration_ns=10us
             dispatch submission={id} queue=1 kernel={kernel} start_ns={start_us}us duration_ns={duration_us}us"
        ));
        self.at += 15;
    }

    fn wait_until(&mut self, end_us: i64) {
        let (at, length) = (self.at, end_us - self.at);
        self.line(&format!(
            "host_call process=1 thread=7 call=wait-queue-idle start_ns={at}us duration_ns={length}us"
        ));
        self.at = end_us;
    }

    fn range(&mut self, label: u32, thread: u32, start_us: i64, end_us: i64) {
        let length = end_us - start_us;
        self.line(&format!(
            "marker process=1 scope=thread thread={thread} label={label} start_ns={start_us}us duration_ns={length}us"
        ));
    }

    /// Adds a step that loads for so long, allocates for so long, and then computes and waits.
    fn step(&mut self, load_us: i64, allocate_us: i64) {
        let start = self.at;
        self.range(5, 7, start, start + load_us);
        self.at += load_us;
        if allocate_us > 0 {
            let at = self.at;
            self.line(&format!(
                "host_call process=1 thread=7 call=allocate-memory start_ns={at}us duration_ns={allocate_us}us"
            ));
            self.at += allocate_us;
        }
        let mut end = self.at + 20;
        for kernel in 1..=3 {
            self.launch(kernel, end, 1500);
            end += 1500;
        }
        self.wait_until(end + 5);
        self.steps.push((start, self.at));
    }

    /// Adds twenty steps: the loader is late in the 7th and the 13th, and the 16th allocates.
    fn slow_steps(mut self) -> Program {
        for step in 1..=20 {
            match step {
                7 => self.step(26_000, 0),
                13 => self.step(20_000, 0),
                16 => self.step(4000, 9000),
                _ => self.step(4000 + step * 10, 0),
            }
        }
        self
    }

    fn labelled(mut self, label: u32) -> Program {
        for (start, end) in self.steps.clone() {
            self.range(label, 7, start, end);
        }
        self
    }

    fn findings(&self) -> Findings {
        let findings = findings_of(&self.text);
        assert_sums(&findings);
        findings
    }
}

/// Checks that the parts of the steps, and what is outside, sum to the parts of the verdict.
fn assert_sums(findings: &Findings) {
    let Some(summary) = &findings.step_summary else {
        assert!(findings.steps.is_empty());
        return;
    };
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    let judged = findings.steps.iter().filter(|step| !step.is_left_out);
    for part in judged.flat_map(|step| &step.parts).chain(&summary.outside) {
        *sums.entry(part.what).or_default() += part.total_ns;
    }
    let parts = findings.verdict_evidence.parts.iter();
    let verdict: BTreeMap<&str, i64> = parts.map(|part| (part.what, part.total_ns)).collect();
    assert_eq!(sums, verdict);
    for step in findings.steps.iter() {
        let parts = step.parts.iter().map(|part| part.total_ns);
        assert_eq!(step.window_ns, parts.sum::<i64>());
        let idle: i64 = step.idle.iter().map(|idle| idle.total_ns).sum();
        assert!(idle <= step.window_ns);
    }
}

/// Returns the numbers of the slow steps, the slowest first, each with its reason.
fn slow(findings: &Findings) -> Vec<(u64, &str)> {
    let summary = findings.step_summary.as_ref().expect("there are steps");
    let steps = summary.slow.iter().map(|at| &findings.steps[*at]);
    let told = steps.map(|step: &Step| (step.number, step.because.as_deref().unwrap_or("")));
    told.collect()
}

const TOLD: [(u64, &str); 3] = [
    (
        7,
        "21.9 ms more idle because the host was late, loading data (train.py:41 load_batch)",
    ),
    (
        13,
        "15.9 ms more idle because the host was late, loading data (train.py:41 load_batch)",
    ),
    (
        16,
        "9.00 ms more idle because the host was allocating, freeing or mapping memory",
    ),
];

#[test]
fn slow_steps_have_their_reasons() {
    let program = Program::new().slow_steps().labelled(1);
    let findings = program.findings();
    let summary = findings.step_summary.as_ref().unwrap();
    assert_eq!(summary.found_by, StepsFoundBy::Markers);
    assert_eq!(
        summary.found,
        "Steps are the ranges \"step\" of thread main."
    );
    assert_eq!((summary.count, findings.steps.len()), (20, 20));
    for (step, (start, end)) in findings.steps.iter().zip(&program.steps) {
        assert_eq!(
            (step.start_ns, step.duration_ns),
            (start * 1000, (end - start) * 1000)
        );
    }
    let told = slow(&findings);
    assert_eq!(told.len(), 3, "{told:?}");
    for ((number, reason), (right_number, right)) in told.iter().zip(TOLD) {
        assert_eq!(*number, right_number);
        assert_eq!(*reason, right);
    }
    assert_eq!(
        summary.sentences[1],
        "3 take over 1.25 times as long, 46.7 ms longer in all."
    );
}

#[test]
fn repeating_launches_tell_the_same_steps() {
    let program = Program::new().slow_steps();
    let findings = program.findings();
    let summary = findings.step_summary.as_ref().unwrap();
    assert_eq!(summary.found_by, StepsFoundBy::Launches);
    assert!(
        summary
            .found
            .contains("all 20 turns have the same 3 pieces of work, and the host waits"),
        "{}",
        summary.found
    );
    assert_eq!(findings.steps.len(), 20);
    let numbers: Vec<u64> = slow(&findings).iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [7, 13, 16]);
    // A step goes from the end of the work before to the end of its own.
    let (before, own) = (program.steps[5].1 - 5, program.steps[6].1 - 5);
    let step = &findings.steps[6];
    assert_eq!(
        (step.start_ns, step.duration_ns),
        (before * 1000, (own - before) * 1000)
    );
}

#[test]
fn steps_inside_of_epochs_are_the_steps() {
    let mut program = Program::new().slow_steps().labelled(1);
    let steps = program.steps.clone();
    for five in steps.chunks(5) {
        program.range(2, 7, five[0].0, five[4].1);
    }
    let findings = program.findings();
    assert_eq!(
        findings.step_summary.as_ref().unwrap().label.as_deref(),
        Some("step")
    );
    assert_eq!(findings.steps.len(), 20);
}

#[test]
fn numbers_that_labels_have_as_their_value_are_those_of_steps() {
    // PyTorch's steps have one label, and their numbers as its value; the trace may begin with any of them.
    let mut program = Program::new().slow_steps();
    program.line("label id=60 text=ProfilerStep");
    for (at, (start, end)) in program.steps.clone().into_iter().enumerate() {
        let (number, length) = (at + 31, end - start);
        program.line(&format!(
            "marker process=1 scope=thread thread=7 label=60 payload={number} start_ns={start}us duration_ns={length}us"
        ));
    }
    let findings = program.findings();
    let numbers: Vec<u64> = slow(&findings).iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [37, 43, 46]);
    assert_eq!(findings.steps[0].number, 31);
}

#[test]
fn numbers_of_labels_are_those_of_steps() {
    let mut program = Program::new().slow_steps();
    for (at, (start, end)) in program.steps.clone().into_iter().enumerate() {
        let number = at + 101;
        program.line(&format!("label id={number} text=\"iteration {number}\""));
        program.range(number as u32, 7, start, end);
    }
    let findings = program.findings();
    assert_eq!(
        findings.step_summary.as_ref().unwrap().label.as_deref(),
        Some("iteration *")
    );
    let numbers: Vec<u64> = slow(&findings).iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [107, 113, 116]);
}

#[test]
fn ranges_of_the_thread_that_has_the_work_are_the_steps() {
    let mut program = Program::new().slow_steps().labelled(1);
    for at in 0..30 {
        program.range(1, 8, 2000 + at * 500, 2400 + at * 500);
    }
    let findings = program.findings();
    let summary = findings.step_summary.as_ref().unwrap();
    assert_eq!(
        summary.thread.map(|thread| thread.to_string()).as_deref(),
        Some("7")
    );
    assert_eq!(findings.steps.len(), 20);
}

#[test]
fn layers_and_loaders_are_no_steps() {
    let mut program = Program::new();
    for _ in 0..40 {
        let start = program.at;
        program.launch(1, start + 20, 100);
        program.launch(2, start + 120, 100);
        program.at = start + 200;
        program.range(4, 7, start, program.at);
    }
    program.wait_until(program.at + 200);
    let findings = program.findings();
    assert!(findings.steps.is_empty(), "{:?}", findings.step_summary);
    // A range that is called like a step and holds no launches is none.
    let mut program = Program::new();
    for step in 0..20 {
        let start = program.at;
        program.range(1, 7, start, start + 100);
        program.at += 200;
        program.launch(1 + step % 2, program.at + 20, 100 + step as i64 * 7);
        program.at += 300;
    }
    assert!(program.findings().steps.is_empty());
}

#[test]
fn overlapping_ranges_are_no_steps() {
    let mut program = Program::new();
    for step in 0..20 {
        let start = program.at;
        program.launch(1 + (step * step) as u32 % 3, start + 20, 100);
        program.at = start + 200;
        program.range(1, 7, start, start + 300);
    }
    assert!(program.findings().steps.is_empty());
}

#[test]
fn layers_inside_of_repeating_steps_are_told_apart() {
    // Each step has twelve layers of two kernels, then an update; the host waits once a step.
    let mut program = Program::new();
    for _ in 0..10 {
        let mut end = program.at + 20;
        for _ in 0..12 {
            program.launch(1, end, 50);
            program.launch(2, end + 50, 50);
            end += 100;
        }
        program.launch(3, end, 80);
        program.wait_until(end + 100);
        program.at += 200;
    }
    let findings = program.findings();
    let summary = findings.step_summary.as_ref().unwrap();
    assert!(
        summary.found.contains("the same 25 pieces of work"),
        "{}",
        summary.found
    );
    assert_eq!(findings.steps.len(), 10);
    assert!(summary.slow.is_empty());
}

#[test]
fn the_parts_of_a_turn_at_both_ends_count_as_one() {
    // The kernel that comes once in each turn is in its middle, and there are five turns.
    let mut program = Program::new();
    for _ in 0..5 {
        let end = program.at + 520;
        for (place, kernel) in [1, 1, 2, 1, 1].into_iter().enumerate() {
            program.launch(kernel, end - 500 + place as i64 * 100, 100);
        }
        program.wait_until(end + 5);
        program.at += 3000;
    }
    let findings = program.findings();
    let summary = findings.step_summary.as_ref().unwrap();
    assert!(
        summary
            .found
            .contains("all 5 turns have the same 5 pieces of work"),
        "{}",
        summary.found
    );
    assert_eq!(findings.steps.len(), 5);
}

#[test]
fn layers_in_which_the_host_waits_leave_it_open() {
    let mut program = Program::new();
    for _ in 0..10 {
        for _ in 0..12 {
            let end = program.at + 120;
            program.launch(1, end - 100, 50);
            program.launch(2, end - 50, 50);
            program.wait_until(end + 5);
        }
        let end = program.at + 100;
        program.launch(3, end - 80, 80);
        program.wait_until(end + 5);
    }
    assert!(program.findings().steps.is_empty());
}

#[test]
fn warm_up_is_left_out() {
    let mut program = Program::new();
    // The first step compiles for 50 ms.
    program.launch(1, program.at + 20, 1500);
    program.line(&format!(
        "host_call process=1 thread=7 call=load-module start_ns={}us duration_ns=50ms",
        program.at
    ));
    program.at += 50_000;
    let start = 1000;
    program.wait_until(program.at + 10);
    program.steps.push((start, program.at));
    for _ in 0..100 {
        program.step(4000, 0);
    }
    let program = program.labelled(1);
    let trace = Trace::from_text(&program.text).unwrap();
    let findings = Findings::new(&trace, &Options::default());
    assert_sums(&findings);
    assert!(
        findings.warm_up.excluded.is_some(),
        "{}",
        findings.warm_up.reason
    );
    // The judged window begins with the work of the second step, after its load.
    let left_out = findings.steps.iter().filter(|step| step.is_left_out);
    let numbers: Vec<u64> = left_out.map(|step| step.number).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(findings.step_summary.as_ref().unwrap().count, 99);
    assert!(slow(&findings).is_empty());
}

#[test]
fn frames_in_command_buffers_are_steps() {
    let mut text = "manifest start_ns=0 sampling_mode=dispatch
        process id=1 pid=10 hook=vulkan
        thread process=1 thread=7 name=main
        device id=1 process=1 api=vulkan name=GPU uuid=aa clock.error_ns=1000
        queue id=1 device=1
        kernel id=1 process=1 name=draw\n"
        .to_owned();
    let mut at = 1000;
    for frame in 1..=12 {
        let late = if frame == 7 { 9000 } else { 0 };
        at += late;
        // Two submissions for each frame.
        for part in 0..2 {
            let id = frame * 2 + part;
            let (call, start) = (at + part * 2000, at + part * 2000 + 100);
            writeln!(
                text,
                "label id={id} text=\"frame {frame}\"
                 submission id={id} process=1 queue=1 thread=7 start_ns={call}us duration_ns=20us command_buffers=1
                 host_call process=1 thread=7 call=submit start_ns={call}us duration_ns=20us queue=1
                 command_buffer id={id} process=1 queue=1 submission={id} start_ns={start}us duration_ns=1900us dispatches=1 label={label}
                 marker process=1 scope=command-buffer label={label} queue=1 command_buffer={id} start_ns={start}us duration_ns=1900us
                 dispatch command_buffer={id} queue=1 kernel=1 start_ns={start}us duration_ns=1900us label={label}",
                label = frame * 2
            )
            .unwrap();
        }
        at += 5000;
    }
    let findings = findings_of(&text);
    assert_sums(&findings);
    let summary = findings.step_summary.as_ref().unwrap();
    assert_eq!(summary.label.as_deref(), Some("frame *"));
    assert_eq!(summary.median_ns, 5_000_000);
    assert_eq!(findings.steps.len(), 12);
    assert_eq!(
        slow(&findings),
        [(7, "9.00 ms more idle because the host was late")]
    );
}
