//! Collects device work of other producers than PyTorch's profiler and XLA, and the arrows that join it with calls.

use super::category::Producer;
use super::collect::Collector;
use super::event::Event;
use super::facts::Synchronisation;
use super::join::SourceProcesses;
use super::json::{self, bare, elements};
use super::number::whole;
use super::producers::{
    self, ARROWS, Args, OTHER_CALLS, Shape, copy_kind, decoded, drawn_place, is_function,
    split_shape,
};
use super::work::correlation;
use crate::DRAWING_ALONE;
use crate::inventory::KernelFacts;
use crate::profile::{Correlation, DeviceWork, DeviceWorkKind, Span};
use gapscope_timeline_builder::rows;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::{HostCall, TransferKind};
use rustc_hash::FxHashMap;

impl Collector<'_, '_> {
    /// Collects device work of another producer.
    pub(super) fn work_of_producer(
        &mut self,
        event: &Event,
        producer: Producer,
        span: Option<Span>,
    ) {
        if producer == Producer::Gapscope {
            return self.drawn_work(event, span);
        }
        let args = Args::parse(event.args);
        if args.is_no_work() {
            self.producers.waits += 1;
            return;
        }
        let stream = self.producers.stream(event, producer, &args);
        let Some(queue) = self.stream(stream) else {
            return;
        };
        let written = json::text(event.name);
        let name = decoded(&written);
        let (name, shape) = match producer {
            Producer::Unitrace => split_shape(&name),
            _ => (&*name, Shape::default()),
        };
        let is_copy = args.is_copy()
            || (shape.bytes.is_some() || is_function(name.as_bytes(), b"zeCommandList"))
                && name.contains("Memory");
        let kind = match is_copy {
            true => DeviceWorkKind::Transfer {
                kind: copy_kind(name),
                bytes: shape.bytes,
                host_memory: None,
            },
            false => {
                let name = self.profile.text(name);
                let facts = KernelFacts {
                    local: shape.local,
                    ..KernelFacts::new(ProcessId::default(), name)
                };
                DeviceWorkKind::Kernel {
                    kernel: self.shapes.id(facts),
                    groups: shape.groups,
                }
            }
        };
        let stack = elements(args.call_stack).map(|name| json::text(bare(name)).into_owned());
        let mut stack: Vec<String> = stack.filter(|name| name != "ROOT").collect();
        stack.pop_if(|innermost| **innermost == *written);
        let labels = &mut self.profile.inventory.labels;
        let label = (stack.iter()).fold(None, |around, name| Some(labels.named(around, name)));
        let work = DeviceWork {
            queue,
            span,
            of_graph: false,
            graph: None,
            graph_node: None,
            label,
            kind,
        };
        self.push_work(event, stream.device, args.correlation, work);
    }

    /// Collects work of gapscope's drawings, or notes the submission of a command buffer.
    fn drawn_work(&mut self, event: &Event, span: Option<Span>) {
        let [submission, command_buffer] = drawn_place(event.args);
        self.producers.latest = command_buffer.or(submission);
        if event.category == b"command buffer" {
            let submissions = &mut self.producers.submissions;
            submissions.extend(command_buffer.zip(submission));
            return;
        }
        let stream = self
            .producers
            .stream(event, Producer::Gapscope, &Args::default());
        let Some(queue) = self.stream(stream) else {
            return;
        };
        let (mut groups, mut bytes, mut label) = ([None; 3], None, None);
        for (key, value) in json::members(event.args) {
            let number = || whole(value).and_then(|number| u64::try_from(number).ok());
            let size = || number().and_then(|size| u32::try_from(size).ok());
            match key {
                b"groups_x" => groups[0] = size(),
                b"groups_y" => groups[1] = size(),
                b"groups_z" => groups[2] = size(),
                b"bytes" => bytes = number(),
                b"label" => label = Some(json::text(bare(value))),
                _ => {}
            }
        }
        let name = json::text(event.name);
        let kind = match event.category {
            b"transfer" => DeviceWorkKind::Transfer {
                kind: TransferKind::from_text_or_unknown(&name),
                bytes,
                host_memory: None,
            },
            b"dispatch" => {
                let facts = KernelFacts::new(ProcessId::default(), self.profile.text(&name));
                DeviceWorkKind::Kernel {
                    kernel: self.shapes.id(facts),
                    groups,
                }
            }
            _ => DeviceWorkKind::Graph,
        };
        let labels = &mut self.profile.inventory.labels;
        let label = label.and_then(|path| {
            let mut texts = path.split(" / ").filter(|text| !text.is_empty());
            let first = labels.named(None, texts.next()?);
            Some(texts.fold(first, |around, text| labels.named(Some(around), text)))
        });
        let work = DeviceWork {
            queue,
            span,
            of_graph: command_buffer.is_some(),
            graph: None,
            graph_node: None,
            label,
            kind,
        };
        let correlation = command_buffer.or(submission);
        self.push_work(event, stream.device, correlation, work);
    }

    /// Takes an arrow of gapscope's drawings, which leads from a call to its work or command buffer; returns false for other
    /// arrows.
    fn drawn_arrow(&mut self, event: &Event) -> bool {
        let Some(id) = correlation(event.id).filter(|_| event.category == b"submit") else {
            return false;
        };
        let id = Correlation(id.0.wrapping_add(ARROWS));
        if event.phase == b'f' {
            let latest = self.producers.latest;
            self.producers
                .submissions
                .extend(latest.map(|work| (id, work)));
        } else if event.phase == b's' {
            self.keep_arrow(event, id);
        }
        true
    }

    /// Keeps the start of an arrow and its number, for the call of the thread during which the arrow starts.
    fn keep_arrow(&mut self, event: &Event, id: Correlation) {
        if let Some(at_ns) = self.moment(event)
            && let Some(lane) = self.lane(event)
        {
            let lane = &self.lanes.all[lane as usize];
            let arrows = &mut self.producers.arrows;
            let own = arrows.entry((lane.process, lane.thread)).or_default();
            own.push((at_ns, id));
        }
    }

    /// Joins the calls and the work of gapscope's drawings: gives both the numbers of submissions, and calls that wait their queues.
    fn join_drawn(&mut self) {
        let producers = std::mem::take(&mut self.producers);
        let of = |number: Correlation| producers.submissions.get(&number).copied();
        // The stream and the source of the work of each submission.
        let mut places = FxHashMap::default();
        for work in &mut self.works {
            if let Some(number) = work.correlation {
                let number = of(number).unwrap_or(number);
                work.correlation = Some(number);
                if !producers.drawn_calls.is_empty() {
                    places.insert(number, (work.work.queue, work.source));
                }
            }
        }
        let calls = &mut self.profile.recorded.calls;
        let mut queues = FxHashMap::default();
        for (index, queue) in &producers.drawn_calls {
            // An arrow leads to a command buffer, and that has a submission.
            let (_, call) = &mut calls[*index];
            let end = call.correlation.and_then(of);
            call.correlation = (end.and_then(of)).or(end).or(call.correlation);
            let place = call.correlation.and_then(|number| places.get(&number));
            queues.extend(queue.zip(place.copied()));
        }
        for (index, queue) in &producers.drawn_calls {
            let (_, call) = &mut calls[*index];
            if (call.correlation).is_some_and(|number| places.contains_key(&number)) {
                continue;
            }
            // The drawing has no work for such a call, which may put something else on its queue, such as a function of the host.
            call.correlation = Some(Correlation(OTHER_CALLS + *index as u64));
            if let Some((stream, source)) = queue.and_then(|queue| queues.get(&queue)) {
                self.synchronisations.push(Synchronisation {
                    source: *source,
                    correlation: call.correlation,
                    stream: Some(*stream),
                    waits_on: None,
                    recorded_by: None,
                });
            }
        }
        // The numbers of a drawing are those of its elements, and not of calls in their order.
        self.profile.recorded.is_unordered |= !producers.drawn_calls.is_empty();
        if producers.latest.is_some() || !producers.drawn_calls.is_empty() {
            self.profile.inventory.note(DRAWING_ALONE);
        }
        self.producers = producers;
        self.producers.drawn_queues = queues;
    }

    /// Writes the calls of gapscope's drawings that have a queue, which is known by now.
    pub(super) fn write_drawn_rows(&mut self, sources: &SourceProcesses) {
        for (number, row) in std::mem::take(&mut self.producers.drawn_rows) {
            let place = self.producers.drawn_queues.get(&number).copied();
            let queue = place.and_then(|(stream, source)| {
                let process = sources.process(source);
                self.queue(process, stream)
            });
            rows::host_call(self.new.tables_mut(), HostCall { queue, ..row });
        }
    }

    /// Takes an arrow that unitrace writes from a call to its work; returns false for other arrows.
    pub(super) fn arrow_of_producer(&mut self, event: &Event) -> bool {
        if self.drawn_arrow(event) {
            return true;
        }
        let Some(leads_to_work) = producers::arrow_to_work(event.category) else {
            return false;
        };
        if leads_to_work
            && event.phase == b's'
            && let Some(id) = correlation(event.id)
        {
            self.keep_arrow(event, id);
        }
        true
    }

    /// Gives the calls of unitrace the numbers of the arrows that start inside of them, and says what was left out.
    pub(super) fn join_producers(&mut self) {
        if self.producers.waits > 0 {
            let waits = self.producers.waits;
            self.profile.inventory.note(match waits {
                1 => "A task of Ascend's streams is a wait, an event or a placeholder, and no work.".to_owned(),
                _ => format!("{waits} tasks of Ascend's streams are waits, events and placeholders, and no work."),
            });
        }
        let mut arrows = std::mem::take(&mut self.producers.arrows);
        arrows
            .values_mut()
            .for_each(|arrows| arrows.sort_unstable());
        for (process, call) in &mut self.profile.recorded.calls {
            let own = call
                .thread
                .and_then(|thread| arrows.get(&(*process, thread)));
            let Some(own) = own.filter(|_| call.correlation.is_none()) else {
                continue;
            };
            let first = own.partition_point(|(at_ns, _)| *at_ns < call.span.start_ns);
            let inside = own
                .get(first)
                .filter(|(at_ns, _)| *at_ns <= call.span.end_ns());
            call.correlation = inside.map(|(_, id)| *id);
        }
        self.join_drawn();
    }
}
