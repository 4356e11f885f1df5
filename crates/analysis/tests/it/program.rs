//! Small programs as traces: times are in microseconds.

use gapscope_analysis::gaps::{Cause, CauseSummary, GapTotal};
use gapscope_analysis::{Findings, Options};
use gapscope_trace::Trace;
use std::fmt::Write;

pub const US: i64 = 1_000;

/// A trace being written. Thread 7 of process 1 makes the calls.
#[derive(Default)]
pub struct Program {
    text: String,
    next: u64,
}

impl Program {
    /// One device with the queues 1 and 2, and the kernel `work`.
    pub fn new() -> Program {
        Program::of(
            "manifest sampling_mode=dispatch
             process id=1 pid=10
             thread process=1 thread=7 name=main
             device id=1 process=1 name=GPU uuid=aa clock.error_ns=0
             queue id=1 device=1
             queue id=2 device=1
             kernel id=1 process=1 name=work",
        )
    }

    pub fn of(text: &str) -> Program {
        Program {
            text: format!("{text}\n"),
            next: 1,
        }
    }

    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A submission of one command buffer with one dispatch; gives the submission's id.
    pub fn dispatch(&mut self, queue: u32, call: [i64; 2], start: i64, duration: i64) -> u64 {
        let id = self.submit(queue, call);
        let text = &mut self.text;
        writeln!(
            text,
            "command_buffer id={id} process=1 queue={queue} submission={id} dispatches=1 start_ns={start}us duration_ns={duration}us\n\
             dispatch command_buffer={id} queue={queue} kernel=1 start_ns={start}us duration_ns={duration}us"
        )
        .unwrap();
        id
    }

    /// A kernel that a call launches by itself (CUDA); gives the submission's id.
    pub fn launch(&mut self, queue: u32, call: [i64; 2], start: i64, duration: i64) -> u64 {
        let id = self.mark(queue, "kernel", call);
        writeln!(
            self.text,
            "dispatch submission={id} queue={queue} kernel=1 start_ns={start}us duration_ns={duration}us"
        )
        .unwrap();
        id
    }

    /// The launch of a graph with such kernels, each with its start and duration; gives the submission's id.
    pub fn graph(
        &mut self,
        queue: u32,
        call: [i64; 2],
        kernels: &[[i64; 2]],
        columns: &str,
    ) -> u64 {
        let id = self.mark(queue, "graph", call);
        let text = &mut self.text;
        let count = kernels.len();
        writeln!(
            text,
            "command_buffer id={id} process=1 queue={queue} submission={id} dispatches={count} {columns}"
        )
        .unwrap();
        for (position, [start, duration]) in kernels.iter().enumerate() {
            writeln!(
                text,
                "dispatch command_buffer={id} position={position} queue={queue} kernel=1 start_ns={start}us duration_ns={duration}us"
            )
            .unwrap();
        }
        id
    }

    /// A submission of some kind by itself (CUDA); gives its id.
    pub fn mark(&mut self, queue: u32, kind: &str, [start, end]: [i64; 2]) -> u64 {
        let id = self.next;
        let duration = end - start;
        let graphs = u32::from(kind == "graph");
        self.next += 1;
        writeln!(
            self.text,
            "submission id={id} process=1 queue={queue} thread=7 start_ns={start}us duration_ns={duration}us command_buffers={graphs} kind={kind}"
        )
        .unwrap();
        id
    }

    /// A submission without work; gives its id.
    pub fn submit(&mut self, queue: u32, [start, end]: [i64; 2]) -> u64 {
        let id = self.next;
        let duration = end - start;
        self.next += 1;
        writeln!(
            self.text,
            "submission id={id} process=1 queue={queue} thread=7 start_ns={start}us duration_ns={duration}us command_buffers=1"
        )
        .unwrap();
        self.call("submit", [start, end]);
        id
    }

    pub fn call(&mut self, call: &str, span: [i64; 2]) {
        self.call_on(7, call, span);
    }

    pub fn call_on(&mut self, thread: u32, call: &str, [start, end]: [i64; 2]) {
        let duration = end - start;
        writeln!(
            self.text,
            "host_call process=1 thread={thread} call={call} start_ns={start}us duration_ns={duration}us"
        )
        .unwrap();
    }

    pub fn depends(&mut self, submission: u64, on: u64) {
        writeln!(
            self.text,
            "dependency submission={submission} waits_for={on}"
        )
        .unwrap();
    }

    pub fn trace(&self) -> Trace {
        Trace::from_text(&self.text).unwrap_or_else(|error| panic!("{error}\n{}", self.text))
    }

    pub fn findings(&self) -> Findings {
        findings(&self.trace())
    }
}

/// Findings over the whole work window.
pub fn findings(trace: &Trace) -> Findings {
    let options = Options {
        exclude_warm_up: false,
        ..Options::default()
    };
    Findings::new(trace, &options)
}

/// A cause and its nanoseconds.
pub trait CauseTime {
    fn cause_time(&self) -> (Cause, i64);
}

impl CauseTime for GapTotal {
    fn cause_time(&self) -> (Cause, i64) {
        (self.cause, self.total_ns)
    }
}

impl CauseTime for CauseSummary {
    fn cause_time(&self) -> (Cause, i64) {
        (self.cause, self.total_ns)
    }
}

/// Causes with their microseconds, the greatest first.
pub fn causes<T: CauseTime>(totals: &[T]) -> Vec<(Cause, i64)> {
    let times = totals.iter().map(CauseTime::cause_time);
    times.map(|(cause, ns)| (cause, ns / US)).collect()
}
