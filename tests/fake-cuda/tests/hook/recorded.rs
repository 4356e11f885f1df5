//! Reads what a process wrote to its spool, sorted for the tests' questions.

mod rows;

use gapscope_spool::event::{
    Activity, CommonEvent, CudaEvent, GraphChange, LabelEdge, LabelScope, LaunchShape, Object,
    OverheadKind, PoolEdge, SourceFormat, Span, StreamKind, unpack,
};
use gapscope_spool::model::cuda::FunctionClass;
use gapscope_spool::reader::{Damage, DrainUntil};
use gapscope_spool::{Event, SpoolReader, ids};
pub use rows::*;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Default)]
pub struct Recorded {
    pub pid: u32,
    pub hook: String,
    pub ended: bool,
    pub kernels: Vec<Kernel>,
    pub calls: Vec<Call>,
    pub transfers: Vec<Transfer>,
    pub graph_runs: Vec<(Option<Span>, u32)>,
    /// What threads did to graphs.
    pub graph_changes: Vec<(u32, GraphChange)>,
    pub waits: Vec<Wait>,
    pub event_records: Vec<EventRecord>,
    pub overheads: Vec<(OverheadKind, u32)>,
    /// The submissions without a device record: queue and correlation.
    pub submissions: Vec<(u32, u32)>,
    pub host_functions: Vec<HostFunction>,
    /// The latest end in records that came, and the time when they came.
    pub deliveries: Vec<(i64, i64)>,
    /// The host nodes of launched graphs, by the launch's correlation.
    pub host_nodes: Vec<(u32, u32)>,
    /// Correlations and numbers of launched graphs whose host nodes are not known.
    pub loops: Vec<(u32, u32)>,
    pub polls: Vec<Polls>,
    pub labels: Vec<Label>,
    pub losses: Vec<(String, u64, String)>,
    pub notes: Vec<String>,
    pub profiles: Vec<Profile>,
    pub instructions: Instructions,
    pub devices: Vec<(u32, String, Vec<u64>)>,
    /// Device, context and stream of each queue.
    pub queues: BTreeMap<u32, (u32, u32, u32)>,
    pub streams: BTreeMap<u32, (StreamKind, i32)>,
    pub names: Vec<(Object, String)>,
    /// The code that was loaded.
    pub sources: Vec<(SourceFormat, Vec<u8>)>,
    pub threads: BTreeMap<u32, String>,
    pub allocations: BTreeMap<u32, (u32, u64, i64)>,
    pub frees: Vec<(u32, i64)>,
    pub pools: Vec<(PoolEdge, u64)>,
    pub capabilities: Vec<(u32, u32)>,
    pub uuids: Vec<[u8; 16]>,
    pub partitions: Vec<bool>,
    pub shapes: usize,
    pub forgotten: Vec<u32>,
    pub batches: Vec<usize>,
    /// The number of activities that are missing between batches.
    pub holes: u64,
    pub damage: Damage,
    next_activity: u64,
    functions: BTreeMap<ids::Function, String>,
    kernel_names: BTreeMap<ids::Kernel, String>,
    launches: BTreeMap<ids::Launch, LaunchShape>,
    routes: BTreeMap<ids::Route, Route>,
    texts: BTreeMap<ids::Text, String>,
    /// The values of labels that end next, by thread.
    ending: Vec<(u32, LabelScope, String)>,
}

/// Returns all processes of a spool, the oldest first.
pub fn all(spool: &Path) -> Vec<Recorded> {
    let processes = SpoolReader::open(spool).new_processes().expect("readable");
    let read = |mut process: gapscope_spool::ProcessSpool| {
        let mut recorded = Recorded {
            pid: process.pid(),
            ..Recorded::default()
        };
        process
            .drain(DrainUntil::End, |thread, event| recorded.add(thread, event))
            .expect("readable");
        recorded.damage = process.damage();
        recorded
    };
    processes.into_iter().map(read).collect()
}

impl Recorded {
    fn add(&mut self, ids::Thread(thread): ids::Thread, event: Event<'_>) {
        match event {
            Event::Common(event) => self.common(thread, event),
            Event::Cuda(event) => self.cuda(thread, event),
            other => panic!("CUDA does not write {other:?}"),
        }
    }

    fn common(&mut self, thread: u32, event: CommonEvent<'_>) {
        match event {
            CommonEvent::Process { pid, hook, .. } => {
                assert_eq!(pid, self.pid, "each process writes its own spool");
                self.hook = hook.into_owned();
            }
            CommonEvent::ProcessEnd { .. } => {
                assert!(
                    !std::mem::replace(&mut self.ended, true),
                    "a process ends once"
                );
            }
            CommonEvent::Thread { thread, name } => {
                self.threads.insert(thread.0, name.to_owned());
            }
            CommonEvent::Device {
                device,
                name,
                uuid,
                heaps,
                ..
            } => {
                self.devices.push((device.0, name.into_owned(), heaps));
                self.uuids.push(uuid);
            }
            CommonEvent::Queue {
                queue,
                device,
                family,
                index,
                ..
            } => {
                let before = self.queues.insert(queue.0, (device.0, family, index));
                assert_eq!(before, None, "a queue is written once");
            }
            CommonEvent::Kernel {
                kernel,
                entry_point,
                ..
            } => {
                self.kernel_names.insert(kernel, entry_point.into_owned());
            }
            CommonEvent::Text { text, value } => {
                self.texts.insert(text, value.to_owned());
            }
            CommonEvent::Label {
                scope,
                edge,
                text,
                at_ns,
            } => {
                let parts = self.parts_at(thread, scope, edge);
                self.labels.push(Label {
                    thread,
                    scope,
                    edge,
                    text: if text == ids::Text::NONE {
                        String::new()
                    } else {
                        self.texts[&text].clone()
                    },
                    category: 0,
                    payload: None,
                    parts,
                    at_ns,
                });
            }
            CommonEvent::Source {
                format,
                bytes,
                hash,
                ..
            } => {
                assert_eq!(hash, blake3::hash(bytes).as_bytes()[..16]);
                self.sources.push((format, bytes.to_owned()));
            }
            CommonEvent::Name { object, name } => self.names.push((object, name.to_owned())),
            CommonEvent::Allocate {
                memory,
                heap,
                bytes,
                at_ns,
                ..
            } => {
                self.allocations.insert(memory.0, (heap, bytes, at_ns));
            }
            CommonEvent::Free { memory, at_ns } => self.frees.push((memory.0, at_ns)),
            CommonEvent::Loss {
                kind,
                count,
                reason,
            } => self
                .losses
                .push((kind.to_string(), count, reason.into_owned())),
            CommonEvent::Note { text } => self.notes.push(text.into_owned()),
            CommonEvent::Capture { .. } => {}
            other => panic!("CUDA does not write {other:?}"),
        }
    }

    fn cuda(&mut self, thread: u32, event: CudaEvent<'_>) {
        match event {
            CudaEvent::DeviceProperties { limits, .. } => {
                self.capabilities.push(limits.capability);
                self.partitions.push(limits.partition);
            }
            CudaEvent::Stream {
                queue,
                kind,
                priority,
            } => {
                self.streams.insert(queue.0, (kind, priority));
            }
            CudaEvent::Launch { launch, shape } => {
                self.shapes += 1;
                self.launches.insert(launch, shape);
            }
            CudaEvent::LaunchesEnd { below } => {
                self.forgotten.push(below.0);
                self.launches.retain(|launch, _| *launch >= below);
            }
            CudaEvent::Route {
                route, kind, queue, ..
            } => {
                self.routes.insert(route, (kind, queue.0));
            }
            CudaEvent::Function {
                function,
                class,
                name,
            } => {
                assert_eq!(FunctionClass::from_function(&name), Some(class));
                let before = self.functions.insert(function, name.to_string());
                assert!(before.is_none_or(|before| before == name));
            }
            CudaEvent::Called {
                function,
                span,
                correlation,
                result,
            } => {
                self.called(function, thread, span, correlation, result);
            }
            CudaEvent::GraphChanged(change) => self.graph_changes.push((thread, change)),
            CudaEvent::Delivered { end_ns, at_ns, .. } => self.deliveries.push((end_ns, at_ns)),
            CudaEvent::GraphLaunched {
                function,
                span,
                correlation,
                host_functions,
                graph,
            } => {
                self.called(function, thread, span, correlation, 0);
                let launched = (correlation.0, graph.0);
                match host_functions {
                    Some(host_functions) => self.host_nodes.push((correlation.0, host_functions)),
                    None => self.loops.push(launched),
                }
            }
            CudaEvent::Polled {
                function,
                thread,
                span,
                count,
                busy_ns,
                result,
            } => {
                let name = self.functions[&function].clone();
                self.polls.push(Polls {
                    name,
                    thread: thread.0,
                    span,
                    count,
                    busy_ns,
                    result,
                });
            }
            CudaEvent::Activities(batch) => {
                self.holes += batch.first - self.next_activity;
                let activities = unpack(batch.bytes).map(|a| a.expect("whole"));
                let activities: Vec<Activity> = activities.collect();
                assert_eq!(activities.len(), batch.count as usize);
                self.next_activity = batch.first + u64::from(batch.count);
                self.batches.push(batch.bytes.len());
                for activity in activities {
                    self.activity(activity);
                }
            }
            CudaEvent::LabelDetail {
                category, payload, ..
            } => {
                let label = self.last_label(thread);
                (label.category, label.payload) = (category.0, payload);
            }
            CudaEvent::Pool(state) => self.pools.push((state.edge, state.bytes)),
            CudaEvent::LabelPayload {
                ending: Some(scope),
                text,
            } => {
                self.ending.push((thread, scope, text.to_owned()));
            }
            CudaEvent::LabelPayload { ending: None, text } => {
                self.last_label(thread).parts = text.to_owned();
            }
            CudaEvent::KernelProfiled {
                correlation,
                kernel,
                span,
                passes,
                values,
            } => {
                // The profile comes before its call.
                assert!(
                    !self
                        .calls
                        .iter()
                        .any(|call| call.correlation == correlation.0)
                );
                self.profiles.push(Profile {
                    correlation: correlation.0,
                    kernel: kernel.into_owned(),
                    span,
                    passes,
                    values: values.into_owned(),
                });
            }
            CudaEvent::InstructionSampling {
                device,
                period_cycles,
                reasons,
            } => {
                let names = reasons.into_iter().map(|(n, name)| (n, name.into_owned()));
                self.instructions.reasons.extend(names);
                self.instructions.sampling.push((device.0, period_cycles));
            }
            CudaEvent::InstructionSamples(new) => {
                let of = &mut self.instructions;
                assert!(of.sampling.iter().any(|(known, _)| *known == new.device.0));
                for (offset, reason, samples) in new.samples.iter() {
                    let reason = of.reasons[reason].clone();
                    let key = (new.cubin, new.function.to_string(), *offset, reason);
                    *of.samples.entry(key).or_default() += samples;
                }
            }
            CudaEvent::SampledCubin { cubin, bytes } => {
                let before = self.instructions.cubins.insert(cubin, bytes.to_owned());
                assert_eq!(before, None, "a cubin is written once");
            }
        }
    }

    fn called(
        &mut self,
        function: ids::Function,
        thread: u32,
        span: Span,
        correlation: ids::Correlation,
        result: u32,
    ) {
        self.calls.push(Call {
            // A function is defined before its first use.
            name: self.functions[&function].clone(),
            thread,
            span,
            correlation: correlation.0,
            result,
        });
    }

    fn activity(&mut self, activity: Activity) {
        match activity {
            Activity::Kernel {
                launch,
                span,
                correlation,
                node,
            } => {
                // A shape is defined before its first use.
                let shape = self.launches[&launch];
                assert!(self.queues.contains_key(&shape.queue.0));
                self.kernels.push(Kernel {
                    name: self.kernel_names[&shape.kernel].clone(),
                    shape,
                    span,
                    correlation: correlation.0,
                    of_graph: node.some().is_some(),
                    graph: node.graph().0,
                    node,
                });
            }
            Activity::Transfer {
                route,
                bytes,
                span,
                correlation,
                ..
            } => {
                let (kind, queue) = self.routes[&route];
                self.transfers.push(Transfer {
                    kind,
                    queue,
                    bytes,
                    span,
                    correlation: correlation.0,
                });
            }
            Activity::GraphRun {
                span, correlation, ..
            } => self.graph_runs.push((span, correlation.0)),
            Activity::Wait {
                kind,
                queue,
                event,
                occurrence,
                span,
                correlation,
            } => self.waits.push(Wait {
                kind,
                queue: queue.0,
                event: event.0,
                occurrence,
                span,
                correlation: correlation.0,
            }),
            Activity::EventRecord {
                event,
                occurrence,
                queue,
                correlation,
            } => self.event_records.push(EventRecord {
                event: event.0,
                occurrence,
                queue: queue.0,
                correlation: correlation.0,
            }),
            Activity::Overhead { kind, thread, .. } => self.overheads.push((kind, thread.0)),
            Activity::Submission { queue, correlation } => {
                self.submissions.push((queue.0, correlation.0));
            }
            Activity::HostFunction {
                queue,
                thread,
                span,
                correlation,
            } => self.host_functions.push(HostFunction {
                queue: queue.0,
                thread: thread.0,
                span,
                correlation: correlation.0,
            }),
        }
    }

    fn last_label(&mut self, thread: u32) -> &mut Label {
        let mut labels = self.labels.iter_mut();
        labels.rfind(|l| l.thread == thread).expect("a label")
    }

    /// Returns the values that were written for the label that ends with this edge.
    fn parts_at(&mut self, thread: u32, scope: LabelScope, edge: LabelEdge) -> String {
        let mut waiting = self.ending.iter();
        let at = waiting.position(|(of, ends, _)| (*of, *ends) == (thread, scope));
        match at.filter(|_| edge == LabelEdge::End) {
            Some(at) => self.ending.remove(at).2,
            None => String::new(),
        }
    }

    pub fn assert_undamaged(&self) {
        assert_eq!(self.ending, [], "values of labels that did not end");
        assert_eq!(self.damage, Damage::default());
        assert_eq!(self.holes, 0, "activities between batches");
    }

    /// Returns how many things were lost for a reason.
    pub fn lost(&self, what: &str, reason: &str) -> u64 {
        let of = self
            .losses
            .iter()
            .filter(|(w, _, r)| (w.as_str(), r.as_str()) == (what, reason));
        of.map(|(_, count, _)| count).sum()
    }

    /// Checks that no CUDA work of the process was recorded, for this reason.
    pub fn assert_not_recorded(&self, reason: &str) {
        assert_eq!(self.lost("CUDA work of a process", reason), 1);
    }

    /// Returns the calls of a name.
    pub fn calls_of(&self, name: &str) -> Vec<&Call> {
        self.calls.iter().filter(|c| c.name == name).collect()
    }
}
