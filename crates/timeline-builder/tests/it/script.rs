//! Reads a script of events, hands them to builders, and writes their rows as lines that do not depend on ids or order.
//!
//! | line | event |
//! |---|---|
//! | `process P` | the lines that follow are of this process; the first is 1 |
//! | `call tT cC FUNCTION A..B [=RESULT] [graphG]` | a call returned; `c-` has no correlation, `t-` no thread; it launched executable graph G |
//! | `queue cC qQ` | the call waits for this queue, or puts something on it |
//! | `event cC eE` | the call waits for the latest occurrence of the event |
//! | `kernel qQ cC A..B [graph]` | a kernel ran; `?` instead of times where they are not known; `graph3` is of executable graph 3 |
//! | `copy qQ cC A..B KIND [MEMORY]` | a copy ran |
//! | `run qQ cC` | a call on thread 1 at ten times C launched a kernel, which ran |
//! | `graph qQ cC A..B` | a graph ran, which is timed as a whole |
//! | `record qQ cC eE` | the call recorded an event on the queue |
//! | `wait qQ cC eE` | the call let the queue wait for the latest occurrence of the event |
//! | `label tT A..B TEXT [in DOMAIN]` | a label of a thread; `A..` never ended |
//! | `overhead tT A..B NAME` | time that is no call's |
//! | `profiled cC` | the launch was profiled |
//! | `sudden` | the process was gone before all records came |

// Two crates share this file, and neither uses all of it.
#![allow(dead_code)]

use gapscope_model::cuda::FunctionClass;
use gapscope_model::{Ledger, Loss, MemoryPlace, OverheadKind, Span, TransferKind};
use gapscope_timeline_builder::*;
use gapscope_trace::build::{Interner, Labels};
use gapscope_trace::ids::*;
use gapscope_trace::lookup::LabelPaths;
use gapscope_trace::tables::{Table, Tables};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One event, with its process.
#[derive(Debug, Clone)]
pub struct Event {
    process: ProcessId,
    kind: EventKind,
}

#[derive(Debug, Clone)]
enum EventKind {
    Call(ApiCall),
    QueueOfCall(Correlation, QueueId),
    EventOfCall(Correlation, u64),
    Work(Option<Correlation>, DeviceWork),
    Record(StreamEvent),
    Wait(StreamEvent),
    Label(Label),
    Overhead(Overhead),
    Profiled(Correlation),
}

#[derive(Debug, Clone)]
struct Label {
    thread: Option<ThreadId>,
    span: (i64, Option<i64>),
    text: String,
    domain: String,
}

/// A script: its events, in the order in which they come.
#[derive(Debug, Default)]
pub struct Script {
    pub events: Vec<Event>,
    functions: Interner<String, FunctionId>,
    is_sudden: bool,
}

fn number(text: &str, prefix: char) -> Option<u64> {
    let digits = text.strip_prefix(prefix);
    let digits = digits.unwrap_or_else(|| panic!("{text} does not begin with {prefix}"));
    (digits != "-").then(|| digits.parse().unwrap())
}

fn times(text: &str) -> (i64, Option<i64>) {
    let (start, end) = text.split_once("..").unwrap();
    (start.parse().unwrap(), end.parse().ok())
}

fn span(text: &str) -> Option<Span> {
    (text != "?").then(|| {
        let (start_ns, end_ns) = times(text);
        Span::between(start_ns, end_ns.unwrap())
    })
}

/// Writes a line `run qQ cC` as the two lines of its call and its kernel.
fn expand(line: &str) -> String {
    let run = line.trim().strip_prefix("run ");
    let Some((queue, correlation)) = run.and_then(|run| run.split_once(' ')) else {
        return format!("{line}\n");
    };
    let at_ns = 10 * number(correlation, 'c').unwrap();
    let (start_ns, end_ns) = (at_ns + 100_000, at_ns + 100_005);
    format!(
        "call t1 {correlation} cudaLaunchKernel {at_ns}..{at_ns}\n\
         kernel {queue} {correlation} {start_ns}..{end_ns}\n"
    )
}

impl Script {
    pub fn parse(text: &str) -> Script {
        let mut script = Script::default();
        let mut process = ProcessId(1);
        let text: String = text.lines().map(expand).collect();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let thread = |at: usize| number(words[at], 't').map(|tid| ThreadId(tid as u32));
            let correlation = |at: usize| number(words[at], 'c').map(Correlation);
            let queue = |at: usize| QueueId(number(words[at], 'q').unwrap() as u32);
            let stream_event = || StreamEvent {
                process,
                place: StreamPlace {
                    queue: queue(1),
                    correlation: correlation(2).unwrap(),
                },
                event: number(words[3], 'e').unwrap(),
            };
            let mut graphs = words.iter().filter_map(|word| word.strip_prefix("graph"));
            let graph = graphs.find_map(|number| number.parse().ok()).map(GraphId);
            let work = |of_graph, kind| {
                let work = DeviceWork {
                    queue: queue(1),
                    span: span(words[3]),
                    of_graph: of_graph || graph.is_some(),
                    graph,
                    graph_node: None,
                    label: None,
                    kind,
                };
                EventKind::Work(correlation(2), work)
            };
            let kind = match words[0] {
                "process" => {
                    process = ProcessId(words[1].parse().unwrap());
                    continue;
                }
                "sudden" => {
                    script.is_sudden = true;
                    continue;
                }
                "call" => EventKind::Call(ApiCall {
                    function: script.functions.id(words[3].to_owned()),
                    thread: thread(1),
                    correlation: correlation(2),
                    span: span(words[4]).unwrap(),
                    result: (words.iter().find_map(|word| word.strip_prefix('=')))
                        .map_or(0, |result| result.parse().unwrap()),
                    queue: CallQueue::ComesLater,
                    host_functions: None,
                    graph,
                }),
                "queue" => EventKind::QueueOfCall(correlation(1).unwrap(), queue(2)),
                "event" => {
                    EventKind::EventOfCall(correlation(1).unwrap(), number(words[2], 'e').unwrap())
                }
                "kernel" => work(
                    words.contains(&"graph"),
                    DeviceWorkKind::Kernel {
                        kernel: KernelId(0),
                        groups: [None; 3],
                    },
                ),
                "copy" => work(
                    words.contains(&"graph"),
                    DeviceWorkKind::Transfer {
                        kind: TransferKind::from_text_or_unknown(words[4]),
                        bytes: None,
                        host_memory: (words.get(5))
                            .map(|place| MemoryPlace::from_text_or_unknown(place)),
                    },
                ),
                "graph" => work(true, DeviceWorkKind::Graph),
                "record" => EventKind::Record(stream_event()),
                "wait" => EventKind::Wait(stream_event()),
                "label" => EventKind::Label(Label {
                    thread: thread(1),
                    span: times(words[2]),
                    text: words[3].to_owned(),
                    domain: words.get(5).copied().unwrap_or_default().to_owned(),
                }),
                "overhead" => EventKind::Overhead(Overhead {
                    thread: thread(1),
                    span: span(words[2]).unwrap(),
                    kind: OverheadKind::from_tool_name(words[3]),
                    tool: "CUPTI",
                }),
                "profiled" => EventKind::Profiled(correlation(1).unwrap()),
                other => panic!("no event is called {other}"),
            };
            script.events.push(Event { process, kind });
        }
        script
    }

    /// Tells whether an event is a call, which comes from its thread in order.
    pub fn is_call(&self, at: usize) -> bool {
        matches!(self.events[at].kind, EventKind::Call(_))
    }

    fn functions(&self) -> Vec<Function> {
        let function = |(_, name): (FunctionId, &String)| Function {
            class: FunctionClass::from_function(name).unwrap_or_default(),
            name: Arc::from(name.as_str()),
        };
        self.functions.iter().map(function).collect()
    }

    /// Hands the events over one by one, as while a program runs. Labels come before the calls that return after them.
    pub fn live(&self, order: &[usize]) -> Vec<String> {
        let mut rows = Rows::default();
        let mut builders: BTreeMap<ProcessId, TimelineBuilder> = BTreeMap::new();
        let mut domains: Interner<String, FunctionId> = Interner::default();
        for event in &self.events {
            let builder = builders.entry(event.process).or_default();
            for (id, function) in (0..).map(FunctionId).zip(self.functions()) {
                builder.add_function(id, function);
            }
        }
        // One thread writes its labels and calls in order, whatever else comes between.
        let mut edges = Vec::new();
        for (at, Event { process, kind }) in self.events.iter().enumerate() {
            if let EventKind::Label(label) = kind {
                let (start_ns, end_ns) = label.span;
                edges.push((start_ns, true, at, *process, label));
                edges.extend(end_ns.map(|end_ns| (end_ns, false, at, *process, label)));
            }
        }
        edges.sort_unstable_by_key(|(at_ns, begins, at, ..)| (*at_ns, *begins, *at));
        let mut keys = BTreeMap::new();
        for (at_ns, begins, at, process, label) in edges {
            let labels = &mut builders.get_mut(&process).unwrap().labels;
            let (out, key) = (&mut rows.output(process), keys.get(&at).copied());
            let out = &mut out.label_rows();
            if let (false, Some(key)) = (begins, key) {
                labels.end(label.thread, LabelScope::Key(key), at_ns, out);
                continue;
            }
            let start = LabelStart {
                thread: label.thread,
                domain: match label.domain.as_str() {
                    "modules" => LabelDomain::Module,
                    "operators" => LabelDomain::Operator,
                    "" => LabelDomain::Program(0),
                    name => LabelDomain::Program(domains.id(name.to_owned()).0 + 1),
                },
                text: out.labels.text(&label.text),
                at_ns,
                category: CategoryId::default(),
                payload: None,
                labels_work: true,
                has_row: true,
            };
            keys.insert(at, labels.begin(start, out));
        }
        for at in order {
            let Event { process, kind } = &self.events[*at];
            let builder = builders.get_mut(process).unwrap();
            let mut out = rows.output(*process);
            let occurrence = |event| self.occurrence(event, *at);
            match kind {
                EventKind::Call(call) => builder.call(*call, &mut out),
                EventKind::QueueOfCall(correlation, queue) => {
                    builder.queue_of_call(*correlation, *queue, &mut out);
                }
                EventKind::EventOfCall(correlation, event) => {
                    builder.event_of_call(*correlation, occurrence(*event), &mut out);
                }
                EventKind::Work(correlation, work) => builder.work(*correlation, *work, &mut out),
                EventKind::Record(record) => {
                    builder.event_recorded(occurrence(record.event), record.place);
                }
                EventKind::Wait(wait) => {
                    builder.stream_waits(wait.place, occurrence(wait.event), 0)
                }
                EventKind::Label(_) => {}
                EventKind::Overhead(overhead) => builder.overhead(overhead, &mut out),
                EventKind::Profiled(correlation) => builder.mark_profiled(*correlation),
            }
        }
        let missing = self.is_sudden.then_some("never came");
        for (process, builder) in &mut builders {
            builder.finish(missing, &mut rows.output(*process));
        }
        rows.lines()
    }

    /// The occurrence of an event that an event of the script names, as a hook counts them.
    fn occurrence(&self, event: u64, at: usize) -> EventOccurrence {
        let is_record =
            |e: &&Event| matches!(&e.kind, EventKind::Record(record) if record.event == event);
        let number = self.events[..=at].iter().filter(is_record).count() as u64;
        EventOccurrence { event, number }
    }

    /// Hands everything over at once, as an importer does.
    pub fn imported(&self) -> Vec<String> {
        self.built(false)
    }

    /// Hands everything over at once, and says that the numbers of calls do not ascend.
    pub fn unordered(&self) -> Vec<String> {
        self.built(true)
    }

    fn built(&self, is_unordered: bool) -> Vec<String> {
        let mut rows = Rows::default();
        let mut recorded = Recorded {
            functions: self.functions(),
            is_unordered,
            ..Recorded::default()
        };
        let queue_of = |process: ProcessId, correlation: Option<Correlation>| {
            let mut queues = self.events.iter().filter_map(|event| match &event.kind {
                EventKind::QueueOfCall(of, queue) if event.process == process => {
                    (Some(*of) == correlation).then_some(*queue)
                }
                _ => None,
            });
            queues.next().map_or(CallQueue::Unknown, CallQueue::Known)
        };
        for Event { process, kind } in &self.events {
            let process = *process;
            match kind {
                EventKind::Call(call) => {
                    let queue = queue_of(process, call.correlation);
                    recorded.calls.push((process, ApiCall { queue, ..*call }));
                }
                EventKind::QueueOfCall(..) | EventKind::Profiled(_) => {}
                EventKind::EventOfCall(correlation, event) => {
                    recorded.host_waits.push(HostEventWait {
                        process,
                        correlation: *correlation,
                        event: *event,
                    });
                }
                EventKind::Work(correlation, work) => {
                    recorded.work.push((process, *correlation, *work));
                }
                EventKind::Record(event) => recorded.events.push(*event),
                EventKind::Wait(event) => recorded.waits.push(*event),
                EventKind::Label(label) => {
                    let domain = Some(label.domain.as_str()).filter(|name| !name.is_empty());
                    recorded.ranges.push(HostRange {
                        process,
                        thread: label.thread,
                        of_process: false,
                        text: rows.labels.text(&label.text),
                        domain: domain.map(|name| rows.labels.text(name)),
                        category: None,
                        payload: None,
                        start_ns: label.span.0,
                        end_ns: label.span.1,
                        labels_work: true,
                        has_row: true,
                    });
                }
                EventKind::Overhead(overhead) => recorded.overheads.push((process, *overhead)),
            }
        }
        let shared = Shared {
            labels: &mut rows.labels,
            ledger: &mut rows.ledger,
            ids: &mut rows.ids,
            reasons: FileReasons {
                never_came: "never came",
                ..FileReasons::default()
            },
        };
        let Ok(()) = recorded.build(shared, &mut rows.tables);
        rows.lines()
    }
}

/// The rows of all processes.
#[derive(Default)]
struct Rows {
    tables: Tables,
    labels: Labels,
    ledger: Ledger,
    ids: Ids,
    observer: Nothing,
}

#[derive(Default)]
struct Nothing;
impl Observer for Nothing {}

fn interval(start_ns: Option<i64>, duration_ns: Option<i64>) -> String {
    match (start_ns, duration_ns) {
        (Some(start_ns), Some(duration_ns)) => format!("{start_ns}..{}", start_ns + duration_ns),
        (Some(start_ns), None) => format!("{start_ns}.."),
        _ => "?".to_owned(),
    }
}

impl Rows {
    fn output(&mut self, process: ProcessId) -> Output<'_> {
        Output {
            process,
            tables: &mut self.tables,
            labels: &mut self.labels,
            ledger: &mut self.ledger,
            ids: &mut self.ids,
            observer: &mut self.observer,
            now_ns: 0,
            reasons: FileReasons::default().work,
        }
    }

    fn lines(mut self) -> Vec<String> {
        self.labels.push_into(&mut self.tables.labels);
        let numbers: (&dyn Fn(ProcessId) -> u32, &dyn Fn(QueueId) -> u32) =
            (&|process| process.0, &|queue| queue.0);
        lines(&self.tables, &self.ledger.losses(), numbers)
    }
}

/// Writes every row as a line, sorted: submissions are named by their calls, labels by their paths, processes and queues by the numbers
/// that `number` gives.
pub fn lines(
    t: &Tables,
    losses: &[Loss],
    (process_number, queue_number): (&dyn Fn(ProcessId) -> u32, &dyn Fn(QueueId) -> u32),
) -> Vec<String> {
    let paths = LabelPaths::new(&t.labels);
    let path = |label: Option<LabelId>| {
        let path = label.and_then(|label| paths.get(label));
        path.map_or(String::new(), |path| {
            format!(" [{}]", path.replace(" / ", "/"))
        })
    };
    let submissions: Vec<_> = rows_of(&t.submissions).collect();
    let call = |id: SubmissionId| {
        let Some(row) = submissions.iter().find(|row| row.id == id) else {
            return "nothing".to_owned();
        };
        let process = match process_number(row.process) {
            1 => String::new(),
            process => format!("process {process} "),
        };
        let function = row.function.as_deref().unwrap_or("?");
        format!("{process}{function}@{}", row.start_ns)
    };
    let buffers: Vec<_> = rows_of(&t.command_buffers).collect();
    let owner = |submission: Option<SubmissionId>, buffer: Option<CommandBufferId>| {
        let buffer = buffer.map(|id| buffers.iter().find(|row| row.id == id).unwrap());
        match (buffer, submission) {
            (Some(buffer), _) => format!("graph of {}", call(buffer.submission)),
            (None, Some(submission)) => call(submission),
            (None, None) => "nothing".to_owned(),
        }
    };
    let mut lines = Vec::new();
    for s in &submissions {
        let graphs = match s.command_buffers {
            0 => String::new(),
            count => format!(" with {count} graph"),
        };
        let (call, queue) = (call(s.id), queue_number(s.queue));
        lines.push(format!(
            "submission {call} of {} to q{queue}{graphs}",
            s.kind
        ));
    }
    let work = |what: String, place: WorkPlace| {
        let span = interval(place.start_ns, place.duration_ns);
        let owner = owner(place.submission, place.command_buffer);
        let (queue, position, path) =
            (queue_number(place.queue), place.position, path(place.label));
        format!("{what} {span} on q{queue} #{position} by {owner}{path}")
    };
    macro_rules! place {
        ($row:ident) => {
            WorkPlace {
                command_buffer: $row.command_buffer,
                submission: $row.submission,
                position: $row.position,
                queue: $row.queue,
                start_ns: $row.start_ns,
                duration_ns: $row.duration_ns,
                label: $row.label,
                graph_node: None,
            }
        };
    }
    lines.extend(rows_of(&t.dispatches).map(|row| work("kernel".to_owned(), place!(row))));
    lines.extend(rows_of(&t.transfers).map(|row| work(row.kind.to_string(), place!(row))));
    lines.extend(rows_of(&t.opaque_work).map(|row| work("whole".to_owned(), place!(row))));
    for c in &buffers {
        let span = interval(c.start_ns, c.duration_ns);
        let (call, queue, path) = (call(c.submission), queue_number(c.queue), path(c.label));
        let (kernels, transfers) = (c.dispatches, c.transfers);
        lines.push(format!(
            "graph of {call} {span} on q{queue}: {kernels} kernels, {transfers} transfers{path}"
        ));
    }
    for d in rows_of(&t.dependencies) {
        let waits_for = d.waits_for.map_or("unknown".to_owned(), call);
        lines.push(format!("{} waits for {waits_for}", call(d.submission)));
    }
    for h in rows_of(&t.host_calls) {
        let part = |is: bool, text: String| if is { text } else { String::new() };
        let queue = h
            .queue
            .map(|queue| format!(" for q{}", queue_number(queue)));
        lines.push(format!(
            "{} {} {}{}{}{}{}",
            h.call,
            h.function.as_deref().unwrap_or("?"),
            interval(Some(h.start_ns), Some(h.duration_ns)),
            part(h.count != 1, format!(" x{} in {}", h.count, h.busy_ns)),
            queue.unwrap_or_default(),
            (h.waits_for).map_or(String::new(), |id| format!(" until {}", call(id))),
            part(h.result != 0, format!(" ={}", h.result)),
        ));
    }
    for m in rows_of(&t.markers) {
        let span = interval(m.start_ns, m.duration_ns);
        lines.push(format!("label {span}{}", path(Some(m.label))));
    }
    for loss in losses {
        lines.push(format!("lost {} {}", loss.count, loss.kind));
    }
    lines.sort();
    lines
}

fn rows_of<T: Table>(table: &T) -> impl Iterator<Item = T::Row> + '_ {
    (0..table.len()).map(|row| table.row(row))
}
