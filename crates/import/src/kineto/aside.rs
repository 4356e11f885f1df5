//! What is neither work nor the launch of it: overheads, and what streams wait for.

use super::assemble::Assembly;
use super::collect::Collector;
use super::facts::Correlation;
use super::queues::Queues;
use gapscope_model::LossKind;
use gapscope_trace::tables::{Dependency, HostCall, HostCallKind, Table};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Assembly {
    /// Time that the driver or the tracing took.
    pub(super) fn overheads(&mut self, found: &mut Collector) {
        for call in std::mem::take(&mut found.overheads) {
            let name = found.texts.get(call.function).clone();
            let (kind, function): (_, Arc<str>) = match &*name {
                "Lazy Function Loading" => {
                    (HostCallKind::LoadModule, "lazy function loading".into())
                }
                "Runtime Triggered Module Loading" => {
                    (HostCallKind::LoadModule, "lazy module loading".into())
                }
                "Driver Compiler" => (HostCallKind::LoadModule, "driver compiler".into()),
                "Command Buffer Full" => (HostCallKind::QueueFull, "driver queue full".into()),
                _ => (HostCallKind::Recording, name),
            };
            found.new.tables_mut().host_calls.push(HostCall {
                process: self.main,
                thread: None,
                call: kind,
                start_ns: call.start_ns,
                duration_ns: call.duration_ns,
                count: 1,
                busy_ns: call.duration_ns,
                queue: None,
                bytes: None,
                result: 0,
                function: Some(function),
            });
        }
    }

    /// Waits of streams for events: the next submission waits for the last one before the event was recorded.
    pub(super) fn dependencies(&mut self, found: &mut Collector) {
        let waits = std::mem::take(&mut found.synchronisations);
        let mut times: FxHashMap<Correlation, i64> = FxHashMap::default();
        for wait in waits.iter().filter(|wait| wait.waits_on.is_some()) {
            times.insert(wait.correlation, i64::MIN);
            times.insert(wait.recorded_by, i64::MIN);
        }
        for call in &found.calls {
            if let Some(time) = times.get_mut(&call.correlation) {
                *time = call.start_ns;
            }
        }
        let mut unknown = 0;
        for wait in &waits {
            let (Some(stream), Some(waits_on)) = (wait.stream, wait.waits_on) else {
                continue;
            };
            let of =
                |queues: &mut Queues, stream| queues.of(self.main, stream, found.streams.all());
            let (waiting, signalling) =
                (of(&mut self.queues, stream), of(&mut self.queues, waits_on));
            let called = |of: Correlation| times.get(&of).copied().filter(|ns| *ns > i64::MIN);
            let (Some(at_ns), Some(recorded_ns)) =
                (called(wait.correlation), called(wait.recorded_by))
            else {
                unknown += 1;
                continue;
            };
            let on = |queue| self.on_queue.get(&queue).map_or(&[][..], Vec::as_slice);
            let next = on(waiting).partition_point(|(ns, _)| *ns <= at_ns);
            let last = on(signalling).partition_point(|(ns, _)| *ns <= recorded_ns);
            if let (Some((_, submission)), Some((_, waits_for))) = (
                on(waiting).get(next),
                last.checked_sub(1).and_then(|at| on(signalling).get(at)),
            ) {
                found.new.tables_mut().dependencies.push(Dependency {
                    submission: *submission,
                    waits_for: Some(*waits_for),
                    host_signal_ns: None,
                });
            }
        }
        let reason = "the calls that recorded their events are not in the file";
        found.ledger.add(LossKind::Waits, unknown, reason);
    }
}
