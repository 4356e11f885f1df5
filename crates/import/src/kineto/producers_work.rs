//! Collects device work of other producers than PyTorch's profiler and XLA, and the arrows that join it with calls.

use super::category::Producer;
use super::collect::Collector;
use super::event::Event;
use super::json::{self, bare, elements};
use super::producers::{Args, Shape, copy_kind, decoded, is_function, split_shape};
use super::work::correlation;
use crate::inventory::KernelFacts;
use crate::profile::{DeviceWork, DeviceWorkKind, Span};
use gapscope_trace::ids::ProcessId;

impl Collector<'_, '_> {
    /// Collects device work of another producer.
    pub(super) fn work_of_producer(
        &mut self,
        event: &Event,
        producer: Producer,
        span: Option<Span>,
    ) {
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
            Producer::Proton | Producer::Ascend => (&*name, Shape::default()),
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
            label,
            kind,
        };
        self.push_work(event, stream.device, args.correlation, work);
    }

    /// Takes an arrow that unitrace writes from a call to its work; returns false for other arrows.
    pub(super) fn arrow_of_producer(&mut self, event: &Event) -> bool {
        let is_own = matches!(
            event.category,
            b"data_flow" | b"data_flow_sync" | b"cl_data_flow" | b"cl_data_flow_sync"
        );
        let is_start = event.phase == b's' && !event.category.ends_with(b"_sync");
        if is_own
            && is_start
            && let Some(id) = correlation(event.id)
            && let Some(at_ns) = self.moment(event)
            && let Some(lane) = self.lane(event)
        {
            let lane = &self.lanes.all[lane as usize];
            let arrows = &mut self.producers.arrows;
            let own = arrows.entry((lane.process, lane.thread)).or_default();
            own.push((at_ns, id));
        }
        is_own
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
    }
}
