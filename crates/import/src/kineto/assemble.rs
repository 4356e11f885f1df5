//! Joins the collected calls, work and labels of a document, and writes their rows with
//! `gapscope_timeline_builder`.

use super::collect::Collector;
use super::collectives::{DOMAIN, function_of_payload};
use super::facts::{Annotation, Call, Correlation, DeviceEvent, WorkKind};
use super::queues::Queues;
use super::texts::{TextId, Texts};
use crate::Error;
use crate::functions::class_of;
use gapscope_model::cuda::base_name;
use gapscope_model::{OverheadKind, Span, UNKNOWN_RESULT};
use gapscope_timeline_builder as builder;
use gapscope_timeline_builder::{
    ApiCall, CallQueue, CategoryId, DeviceWork, DeviceWorkKind, FileReasons, Function, FunctionId,
    HostRange, Ids, Overhead, Reasons, Recorded, Shared, StreamEvent, StreamPlace,
};
use gapscope_trace::ids::{KernelId, ProcessId, QueueId};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The start of the name of a step of the profiler's schedule, such as `ProfilerStep#12`. All steps share one label.
const STEP: &str = "ProfilerStep#";
/// The number of the domain (the library or layer that set a label) of collectives. Labels of the profiler have no
/// domain, which is 0.
const COLLECTIVES: u32 = 1;

/// The ids that the manifest needs from the assembly.
pub(super) struct Assembly {
    pub(super) queues: Queues,
    /// The ids of kernels, by the index of their shape and by their process.
    pub(super) kernels: FxHashMap<(u32, ProcessId), KernelId>,
    /// The process to which work belongs that no call launched.
    pub(super) main: ProcessId,
    functions: FxHashMap<TextId, FunctionId>,
    recorded: Recorded,
}

impl Assembly {
    /// Writes the rows of a collector.
    ///
    /// # Errors
    /// The system refuses to write.
    pub(super) fn run(found: &mut Collector) -> Result<Assembly, Error> {
        found.lanes.name_all();
        let main = main_process(found);
        let mut assembly = Assembly {
            queues: Queues::default(),
            kernels: FxHashMap::default(),
            main,
            functions: FxHashMap::default(),
            recorded: Recorded::default(),
        };
        let mut calls = std::mem::take(&mut found.calls);
        calls.sort_by_key(|call| (call.start_ns, call.correlation));
        let launches = assembly.launches(&calls, found);
        assembly.annotations(found);
        assembly.collectives(&calls, &launches, found);
        assembly.calls_and_work(&calls, &launches, found);
        assembly.overheads(found);
        assembly.stream_events(found);
        let without_call = match calls.is_empty() {
            true => "the file has no calls of a runtime",
            false => "the file has no call with their correlation",
        };
        let reasons = FileReasons::default();
        let reasons = FileReasons {
            work: Reasons {
                without_call,
                ..reasons.work
            },
            unknown_waits: "the calls that recorded their events are not in the file",
            ..reasons
        };
        let shared = Shared {
            labels: &mut found.labels,
            ledger: &mut found.ledger,
            ids: &mut Ids::default(),
            reasons,
        };
        std::mem::take(&mut assembly.recorded).build(shared, &mut found.new)?;
        Ok(assembly)
    }

    /// Returns the index of the call that launched the work of each correlation. If several calls have one
    /// correlation, a call of a function that launches work is preferred.
    fn launches(&mut self, calls: &[Call], found: &Collector) -> FxHashMap<Correlation, u32> {
        let mut launches: FxHashMap<Correlation, u32> = FxHashMap::default();
        for (index, call) in (0..).zip(calls) {
            if call.correlation == Correlation::NONE {
                continue;
            }
            let is_launch = |assembly: &mut Self, call: &Call| {
                let function = assembly.function(call.function, &found.texts);
                let functions = &assembly.recorded.functions;
                functions[function.0 as usize]
                    .class
                    .submission_kind()
                    .is_some()
            };
            match launches.entry(call.correlation) {
                Entry::Vacant(entry) => {
                    entry.insert(index);
                }
                Entry::Occupied(mut entry) => {
                    let before = &calls[*entry.get() as usize];
                    if !is_launch(self, before) && is_launch(self, call) {
                        entry.insert(index);
                    }
                }
            }
        }
        launches
    }

    fn function(&mut self, name: TextId, texts: &Texts) -> FunctionId {
        let functions = &mut self.recorded.functions;
        *self.functions.entry(name).or_insert_with(|| {
            let name = texts.get(name);
            functions.push(Function {
                class: class_of(name).unwrap_or_default(),
                name: Arc::from(base_name(name)),
            });
            FunctionId(functions.len() as u32 - 1)
        })
    }

    /// Adds the ranges that label work.
    fn annotations(&mut self, found: &mut Collector) {
        // A step belongs to the whole process, so that it also labels work that other threads launch in it, such as a
        // backward pass.
        let is_step = |range: &Annotation| found.texts.get(range.name).starts_with(STEP);
        let mut steps = FxHashMap::<ProcessId, Vec<Annotation>>::default();
        for lane in &found.lanes.all {
            let of_process = steps.entry(lane.process).or_default();
            of_process.extend(lane.annotations.iter().filter(|range| is_step(range)));
        }
        for lane in &found.lanes.all {
            let of_others = match lane.annotations.iter().any(is_step) {
                true => &[],
                false => steps.get(&lane.process).map_or(&[][..], Vec::as_slice),
            };
            let own = lane.annotations.iter().map(|range| (range, true));
            for (range, has_row) in own.chain(of_others.iter().map(|range| (range, false))) {
                let (text, payload) = label_of(found.texts.get(range.name));
                self.recorded.ranges.push(HostRange {
                    process: lane.process,
                    thread: Some(lane.thread),
                    of_process: false,
                    text: found.labels.text(text),
                    domain: 0,
                    category: CategoryId::default(),
                    payload: payload.map(Arc::from),
                    start_ns: range.start_ns,
                    end_ns: Some(range.end_ns),
                    labels_work: true,
                    has_row,
                });
            }
        }
    }

    /// Adds a range around each call that launched a collective (an operation of several ranks, such as an
    /// all-reduce), with the names that NCCL's own ranges have.
    fn collectives(
        &mut self,
        calls: &[Call],
        launches: &FxHashMap<Correlation, u32>,
        found: &mut Collector,
    ) {
        let mut done = FxHashMap::default();
        for (work, payload) in std::mem::take(&mut found.collectives) {
            let correlation = found.works[work].correlation;
            let (Some(call), Some(function)) = (
                launches.get(&correlation).map(|at| &calls[*at as usize]),
                function_of_payload(&payload),
            ) else {
                continue;
            };
            if done.insert(correlation, ()).is_some() {
                continue;
            }
            let lane = &found.lanes.all[call.lane as usize];
            self.recorded.name_domain(COLLECTIVES, || DOMAIN.into());
            self.recorded.ranges.push(HostRange {
                process: lane.process,
                thread: Some(lane.thread),
                of_process: false,
                text: found.labels.text(function),
                domain: COLLECTIVES,
                category: CategoryId::default(),
                payload: Some(payload.into()),
                start_ns: call.start_ns,
                end_ns: Some(call.start_ns + call.duration_ns),
                labels_work: false,
                has_row: true,
            });
        }
    }

    /// Adds the calls, and the work of devices. Queues and devices are numbered in the order in which calls first
    /// use them.
    fn calls_and_work(
        &mut self,
        calls: &[Call],
        launches: &FxHashMap<Correlation, u32>,
        found: &mut Collector,
    ) {
        let mut works = std::mem::take(&mut found.works);
        let launch =
            |work: &DeviceEvent| launches.get(&work.correlation).copied().unwrap_or(u32::MAX);
        works.sort_by_key(|work| (launch(work), work.start_ns));
        let waits: FxHashMap<Correlation, u32> = (found.synchronisations.iter())
            .filter_map(|wait| Some((wait.correlation, wait.stream?)))
            .collect();
        let mut works = works.iter().peekable();
        for (index, call) in (0u32..).zip(calls) {
            // A device's event does not name its process of the host, which is the process of the call that
            // launched the work.
            let process = found.lanes.all[call.lane as usize].process;
            while let Some(work) = works.next_if(|work| launch(work) == index) {
                self.work(work, process, found);
            }
            self.call(call, waits.get(&call.correlation).copied(), found);
        }
        let main = self.main;
        works.for_each(|work| self.work(work, main, found));
    }

    fn work(&mut self, work: &DeviceEvent, process: ProcessId, found: &Collector) {
        let correlation = wide(work.correlation);
        let work = self.device_work(work, process, found);
        self.recorded.work.push((process, correlation, work));
    }

    /// Returns a piece of work in the form that the builder of traces joins with its call.
    fn device_work(
        &mut self,
        work: &DeviceEvent,
        process: ProcessId,
        found: &Collector,
    ) -> DeviceWork {
        let kind = match work.kind {
            WorkKind::Kernel { shape, groups } => {
                let next = KernelId(self.kernels.len() as u32 + 1);
                let kernel = *self.kernels.entry((shape, process)).or_insert(next);
                let groups = groups.map(|groups| Some(groups).filter(|groups| *groups > 0));
                DeviceWorkKind::Kernel { kernel, groups }
            }
            WorkKind::Transfer {
                kind,
                bytes,
                host_memory,
            } => DeviceWorkKind::Transfer {
                kind,
                bytes,
                host_memory,
            },
        };
        DeviceWork {
            queue: self.queue(process, work.stream, found),
            span: Some(Span {
                start_ns: work.start_ns,
                duration_ns: work.duration_ns,
            }),
            of_graph: work.of_graph && work.correlation != Correlation::NONE,
            label: work.label,
            kind,
        }
    }

    fn queue(&mut self, process: ProcessId, stream: u32, found: &Collector) -> QueueId {
        self.queues.id(process, stream, found.streams.all())
    }

    /// Adds a call. If `stream` is known, the call waited for that stream's queue.
    fn call(&mut self, call: &Call, stream: Option<u32>, found: &Collector) {
        let lane = &found.lanes.all[call.lane as usize];
        let (process, thread) = (lane.process, Some(lane.thread));
        let function = self.function(call.function, &found.texts);
        let is_poll = self.recorded.functions[function.0 as usize].class.is_poll();
        let queue = stream.map(|stream| self.queue(process, stream, found));
        let call = ApiCall {
            function,
            thread,
            correlation: wide(call.correlation),
            span: Span {
                start_ns: call.start_ns,
                duration_ns: call.duration_ns,
            },
            // The file does not have the results of polls.
            result: if is_poll { UNKNOWN_RESULT } else { 0 },
            queue: queue.map_or(CallQueue::Unknown, CallQueue::Known),
            host_functions: None,
        };
        self.recorded.calls.push((process, call));
    }

    /// Adds the time that the driver or the profiler took from the program's threads.
    fn overheads(&mut self, found: &mut Collector) {
        for overhead in std::mem::take(&mut found.overheads) {
            let name = found.texts.get(overhead.function);
            let overhead = Overhead {
                thread: None,
                span: Span {
                    start_ns: overhead.start_ns,
                    duration_ns: overhead.duration_ns,
                },
                kind: match OverheadKind::from_tool_name(name) {
                    OverheadKind::Unknown => OverheadKind::Instrumentation,
                    kind => kind,
                },
                tool: "CUPTI",
            };
            self.recorded.overheads.push((self.main, overhead));
        }
    }

    /// Adds the waits of streams for events. A wait names the call that recorded its event, which therefore
    /// identifies the event.
    fn stream_events(&mut self, found: &mut Collector) {
        for wait in std::mem::take(&mut found.synchronisations) {
            let (Some(stream), Some(waits_on), Some(waiting)) =
                (wait.stream, wait.waits_on, wide(wait.correlation))
            else {
                continue;
            };
            let process = self.main;
            let event = wait.recorded_by.0;
            if let Some(recording) = wide(wait.recorded_by) {
                let place = StreamPlace {
                    queue: self.queue(process, waits_on, found),
                    correlation: recording,
                };
                self.recorded.events.push(StreamEvent {
                    process,
                    place,
                    event,
                });
            }
            let place = StreamPlace {
                queue: self.queue(process, stream, found),
                correlation: waiting,
            };
            self.recorded.waits.push(StreamEvent {
                process,
                place,
                event,
            });
        }
    }
}

fn wide(correlation: Correlation) -> Option<builder::Correlation> {
    (correlation != Correlation::NONE).then_some(builder::Correlation(correlation.0))
}

/// Returns the label of an annotation, and the part of its text that distinguishes its instances, such as a step's
/// number.
fn label_of(name: &str) -> (&str, Option<&str>) {
    match name.strip_prefix(STEP) {
        Some(number) => (&STEP[..STEP.len() - 1], Some(number)),
        None => (name, None),
    }
}

/// Returns the id of the process that made most calls, or of the only process.
fn main_process(found: &mut Collector) -> ProcessId {
    let mut calls: FxHashMap<ProcessId, u64> = FxHashMap::default();
    for lane in &found.lanes.all {
        calls.entry(lane.process).or_default();
    }
    for call in &found.calls {
        let process = found.lanes.all[call.lane as usize].process;
        *calls.entry(process).or_default() += 1;
    }
    let most = calls
        .into_iter()
        .max_by_key(|(id, calls)| (*calls, std::cmp::Reverse(*id)));
    match most {
        Some((id, _)) => id,
        None => found.lanes.process(b"0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_the_schedule_are_one_label() {
        assert_eq!(label_of("ProfilerStep#12"), ("ProfilerStep", Some("12")));
        assert_eq!(label_of("forward"), ("forward", None));
    }
}
