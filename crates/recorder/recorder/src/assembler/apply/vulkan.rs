//! Applies the events that only the Vulkan layer writes, such as those of commands, submissions and timestamps. A
//! recording is the content of a command buffer, an instance one submitted execution of it.

use super::super::Assembler;
use super::super::instance::RawInterval;
use super::super::submit::{SubmitCall, function_name};
use crate::counters::{NOT_SAMPLED, WHAT};
use gapscope_spool::event::{LossKind, Outcome, VulkanEvent};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::rows;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::{HostCall, Tables};

impl Assembler {
    /// Applies an event of the Vulkan layer; `thread` wrote the event.
    pub(super) fn apply_vulkan(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        event: VulkanEvent<'_>,
        tables: &mut Tables,
    ) {
        if matches!(
            event,
            VulkanEvent::Submit { .. } | VulkanEvent::HostCall { .. }
        ) {
            self.called_by(process, thread);
        }
        let state = &mut self.processes[process];
        match event {
            VulkanEvent::Buffer {
                buffer,
                device,
                bytes,
                at_ns,
            } => {
                let device = self.device(process, device);
                let id = self.buffers.add(process, device, bytes);
                self.processes[process].buffers.insert(buffer, id);
                self.saw(at_ns);
            }
            VulkanEvent::BufferMemory {
                buffer,
                memory,
                offset,
            } => {
                if let Some(id) = state.buffers.get(&buffer) {
                    let allocation = state.allocations.get(&memory).map(|a| a.id);
                    self.buffers.bind(*id, allocation, offset);
                }
            }
            VulkanEvent::BufferEnd { buffer, at_ns } => {
                if let Some(id) = state.buffers.remove(&buffer) {
                    self.buffers.end(id, tables);
                }
                self.saw(at_ns);
            }
            VulkanEvent::Bindings { content, entries } => self.bindings(process, content, &entries),
            VulkanEvent::Commands {
                recording,
                commands,
            } => self.commands(process, recording, commands, tables),
            VulkanEvent::CommandRecordingEnd { recording } => {
                if let Some(found) = state.recordings.get_mut(&recording) {
                    found.ended = true;
                }
                state.drop_if_unused(recording);
            }
            VulkanEvent::Submit {
                submission,
                function,
                queue,
                span,
                instances,
                waits,
                signals,
            } => {
                let call = SubmitCall {
                    submission,
                    function,
                    thread,
                    queue,
                    span,
                };
                self.submit(process, call, &instances, &waits, &signals, tables);
            }
            VulkanEvent::Timestamps {
                instance,
                recording,
                first_query,
                ticks,
            } => {
                let most = state.recordings.get(&recording).map_or(0, |r| r.queries);
                let lost = match state.instances.get_mut(&instance) {
                    Some(instance) => instance.add(recording, first_query, ticks, most),
                    None => ticks.len() as u64 / 8,
                };
                self.ledger.add(
                    LossKind::Timestamps,
                    lost,
                    "the record of their command is missing",
                );
            }
            VulkanEvent::Bracket {
                instance,
                begin_ticks,
                end_ticks,
            } => match state.instances.get_mut(&instance) {
                Some(instance) => {
                    instance.bracket = Some(RawInterval {
                        start: begin_ticks,
                        end: end_ticks,
                    });
                }
                None => self.ledger.add(
                    LossKind::Timestamps,
                    2,
                    "the record of their command is missing",
                ),
            },
            VulkanEvent::InstanceEnd {
                instance,
                outcome,
                seen_ns,
            } => {
                if let Some(mut instance) = state.instances.remove(&instance) {
                    instance.outcome = Some(outcome);
                    instance.seen_ns = Some(seen_ns).filter(|_| outcome == Outcome::Timed);
                    self.saw(seen_ns);
                    self.finished(instance, tables);
                }
            }
            VulkanEvent::HostCall {
                call,
                function,
                span,
                count,
                busy_ns,
                queue,
                bytes,
                result,
                waits_for,
            } => {
                let waits_for = waits_for.and_then(|id| state.submissions.get(&id).copied());
                let queue = queue.map(|q| self.queue(process, q));
                let thread = Some(ThreadId(thread.0));
                let function = function.map(function_name);
                let row = rows::one_host_call(process, thread, call, span, function);
                let row = HostCall {
                    count,
                    busy_ns,
                    queue,
                    bytes,
                    result,
                    waits_for,
                    ..row
                };
                rows::host_call(tables, row);
                self.saw(span.end_ns());
            }
            VulkanEvent::DeviceProperties { device, limits } => {
                self.device_limits(process, device, limits)
            }
            VulkanEvent::CounterSet {
                device,
                family,
                counters,
            } => {
                let device = self.device(process, device);
                self.counters.count(device, family, &counters, tables);
            }
            VulkanEvent::CountersRefused { device, reason } => {
                let device = self.device(process, device);
                let name = &self.devices[device].facts.name;
                let note = format!("{NOT_SAMPLED}: {WHAT} of {name}: {reason}.");
                self.note(&note);
            }
            VulkanEvent::Counted {
                instance,
                family,
                values,
            } => match state.instances.get_mut(&instance) {
                Some(instance) => instance.counted = Some((family, values.into_owned())),
                None => self.ledger.add(
                    LossKind::CounterSamples,
                    values.len() as u64,
                    "the record of their command buffer is missing",
                ),
            },
            VulkanEvent::HostSignal { semaphore, at_ns } => {
                state.semaphores.host_signal(semaphore, at_ns, tables);
                self.saw(at_ns);
            }
            VulkanEvent::SemaphoreEnd { semaphore } => state.semaphores.end(semaphore, tables),
        }
    }
}
