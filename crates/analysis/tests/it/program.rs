//! Small programs as traces: times are in microseconds.

use gapscope_analysis::gaps::{Cause, CauseSummary, GapTotal};
use gapscope_analysis::{Findings, Options};
use gapscope_timeline::{LabelFilter, Timeline};
use gapscope_trace::Trace;
use gapscope_trace::tables::{Dispatches, Table as _};

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
        Program::from_text(
            "manifest sampling_mode=dispatch
             process id=1 pid=10
             thread process=1 thread=7 name=main
             device id=1 process=1 name=GPU uuid=aa clock.error_ns=0
             queue id=1 device=1
             queue id=2 device=1
             kernel id=1 process=1 name=work",
        )
    }

    pub fn from_text(text: &str) -> Program {
        Program {
            text: format!("{text}\n"),
            next: 1,
        }
    }

    /// One device with the queue 1, then what `rows` say.
    pub fn with(rows: &str) -> Program {
        Program::from_text(&format!(
            "manifest sampling_mode=dispatch\ndevice id=1 uuid=aa\nqueue id=1 device=1\n{rows}"
        ))
    }

    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A dispatch of the command buffer 9, which is not in the trace, with these columns.
    pub fn ran(&mut self, columns: &str, start: i64, duration: i64) {
        self.line(&format!(
            "dispatch command_buffer=9 queue=1 {columns} start_ns={start}us duration_ns={duration}us"
        ));
    }

    /// A submission of one command buffer with one dispatch; gives the submission's id.
    pub fn dispatch(&mut self, queue: u32, call: [i64; 2], start: i64, duration: i64) -> u64 {
        let id = self.submit(queue, call);
        self.line(&format!(
            "command_buffer id={id} process=1 queue={queue} submission={id} dispatches=1 start_ns={start}us duration_ns={duration}us\n\
             dispatch command_buffer={id} queue={queue} kernel=1 start_ns={start}us duration_ns={duration}us"
        ));
        id
    }

    /// A kernel that a call launches by itself (CUDA); gives the submission's id.
    pub fn launch(&mut self, queue: u32, call: [i64; 2], start: i64, duration: i64) -> u64 {
        let id = self.mark(queue, "kernel", call);
        self.line(&format!(
            "dispatch submission={id} queue={queue} kernel=1 start_ns={start}us duration_ns={duration}us"
        ));
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
        let count = kernels.len();
        self.line(&format!(
            "command_buffer id={id} process=1 queue={queue} submission={id} dispatches={count} {columns}"
        ));
        for (position, [start, duration]) in kernels.iter().enumerate() {
            self.line(&format!(
                "dispatch command_buffer={id} position={position} queue={queue} kernel=1 start_ns={start}us duration_ns={duration}us"
            ));
        }
        id
    }

    /// A submission of some kind by itself (CUDA); gives its id.
    pub fn mark(&mut self, queue: u32, kind: &str, [start, end]: [i64; 2]) -> u64 {
        let id = self.next;
        let duration = end - start;
        let graphs = u32::from(kind == "graph");
        self.next += 1;
        self.line(&format!(
            "submission id={id} process=1 queue={queue} thread=7 start_ns={start}us duration_ns={duration}us command_buffers={graphs} kind={kind}"
        ));
        id
    }

    /// A submission without work; gives its id.
    pub fn submit(&mut self, queue: u32, [start, end]: [i64; 2]) -> u64 {
        let id = self.next;
        let duration = end - start;
        self.next += 1;
        self.line(&format!(
            "submission id={id} process=1 queue={queue} thread=7 start_ns={start}us duration_ns={duration}us command_buffers=1"
        ));
        self.call("submit", [start, end]);
        id
    }

    pub fn call(&mut self, call: &str, span: [i64; 2]) {
        self.call_on(7, call, span);
    }

    pub fn call_on(&mut self, thread: u32, call: &str, [start, end]: [i64; 2]) {
        let duration = end - start;
        self.line(&format!(
            "host_call process=1 thread={thread} call={call} start_ns={start}us duration_ns={duration}us"
        ));
    }

    pub fn depends(&mut self, submission: u64, on: u64) {
        self.line(&format!(
            "dependency submission={submission} waits_for={on}"
        ));
    }

    pub fn trace(&self) -> Trace {
        Trace::from_text(&self.text).unwrap_or_else(|error| panic!("{error}\n{}", self.text))
    }

    pub fn findings(&self) -> Findings {
        findings(&self.trace())
    }

    /// The causes of all gaps with their microseconds, the greatest first.
    pub fn gaps(&self) -> Vec<(Cause, i64)> {
        causes(&self.findings().gaps)
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

/// Findings of the work whose label contains a text.
pub fn findings_under(trace: &Trace, label: &str) -> Findings {
    let feed = |take: &mut (dyn FnMut(&Dispatches) + Send)| {
        take(&trace.tables.dispatches);
        Some(())
    };
    let filter = LabelFilter::new(trace, label, feed).unwrap();
    let rows = trace.tables.dispatches.len();
    let (timeline, _) = Timeline::from_pieces(trace, Some(&filter), rows, feed).unwrap();
    Findings::from_timeline(&timeline, &Options::default())
}

#[track_caller]
pub fn assert_says(text: &str, part: &str) {
    assert!(text.contains(part), "{part} is not in: {text}");
}

/// Findings of a trace that is written out.
pub fn findings_of(text: &str) -> Findings {
    findings(&Trace::from_text(text).unwrap_or_else(|error| panic!("{error}\n{text}")))
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
