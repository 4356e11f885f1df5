//! Applies the events that every hook (gapscope's library in a recorded program) writes, such as those of devices,
//! queues, kernels, memory and labels.

use super::super::Assembler;
use super::super::captures::CaptureRecord;
use super::super::hashes;
use super::super::host::LabelRecord;
use super::super::kernels::Kernel;
use super::super::objects::capabilities;
use super::super::process::Allocation;
use crate::clock::DeviceClock;
use gapscope_model::HostCallKind;
use gapscope_spool::event::{CommonEvent, LabelEdge, LossKind};
use gapscope_spool::ids as hook;
use gapscope_stacks::Frame as StackFrame;
use gapscope_timeline_builder::rows;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::{FrameKind, MemoryEvent, Sample, Tables, ThreadState};

/// The name of a [`HostCallKind::Recording`] call in which a program that captures waited for the device or for us.
const CAPTURE_CALL: &str = "begin or end of a capture";

impl Assembler {
    /// Applies an event that every hook writes; `thread` wrote the event.
    pub(super) fn apply_common(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        event: CommonEvent<'_>,
        tables: &mut Tables,
    ) {
        let state = &mut self.processes[process];
        match event {
            CommonEvent::Process {
                pid,
                parent,
                executable,
                arguments,
                hook,
            } => {
                let facts = &mut state.facts;
                facts.pid = pid;
                // The system reports a parent in another namespace as 0.
                facts.parent_pid = Some(parent).filter(|pid| *pid != 0);
                facts.executable = executable.into_owned();
                facts.arguments = arguments.into_iter().map(|a| a.into_owned()).collect();
                facts.hook = hook.into_owned();
            }
            CommonEvent::ProcessEnd { at_ns } => {
                state.facts.end_ns = Some(at_ns);
                self.saw(at_ns);
            }
            CommonEvent::Thread { thread, name } => {
                let known = state.threads.entry(ThreadId(thread.0));
                known.or_insert_with(|| name.to_owned());
            }
            CommonEvent::Device {
                device,
                api,
                name,
                driver,
                uuid,
                nanoseconds_per_tick,
                clock,
                heaps,
            } => {
                let id = self.device(process, device);
                let known = &mut self.devices[id];
                known.facts.api = api;
                known.facts.name = name.into_owned();
                known.facts.driver = driver.into_owned();
                known.facts.uuid = hashes::hex(uuid);
                known.facts.heaps = heaps;
                known.clock = Some(DeviceClock::new(clock, nanoseconds_per_tick));
            }
            CommonEvent::DeviceEnd {
                device,
                lost,
                at_ns,
            } => {
                let id = self.device(process, device);
                let known = &mut self.devices[id];
                known.facts.lost |= lost;
                known.ended = true;
                self.saw(at_ns);
                self.settle(id, false, tables);
            }
            CommonEvent::Queue {
                queue,
                device,
                family,
                index,
                flags,
                timestamp_bits,
            } => {
                let device = self.device(process, device);
                let id = self.queue(process, queue);
                let facts = &mut self.queues[id].facts;
                facts.device = device;
                facts.family = family;
                facts.index = index;
                facts.capabilities = capabilities(flags);
                facts.timestamp_bits = timestamp_bits.min(64);
                if let Some(clock) = &mut self.devices[device].clock {
                    clock.queue_bits(timestamp_bits);
                }
            }
            CommonEvent::ClockSample {
                device,
                ticks,
                host_ns,
                error_ns,
            } => {
                let id = self.device(process, device);
                let used = match &mut self.devices[id].clock {
                    Some(clock) => clock.sample(ticks, host_ns, error_ns),
                    None => true,
                };
                self.ledger.add(
                    LossKind::ClockSamples,
                    u64::from(!used),
                    "the device's clock went back or leapt, as when the machine sleeps",
                );
                self.saw(host_ns);
                self.settle(id, false, tables);
            }
            CommonEvent::Source {
                hash,
                format,
                bytes,
            } => self.source(process, hash, format, bytes),
            CommonEvent::Kernel {
                kernel,
                source,
                entry_point,
                specialisation,
                source_name,
                local_size,
                accesses,
            } => {
                let id = self.kernels.add(Kernel {
                    process,
                    source: Some(source).filter(|s| *s != [0; 16]),
                    entry_point: entry_point.into_owned(),
                    specialisation: specialisation.into_owned(),
                    source_name: source_name.into_owned(),
                    local_size,
                    accesses,
                    ..Kernel::default()
                });
                state.kernels.insert(kernel, id);
            }
            CommonEvent::Name { object, name } => self.name(process, object, name),
            CommonEvent::Text { text, value } => {
                state.texts.insert(text, self.labels.text(value));
            }
            CommonEvent::Allocate {
                memory,
                device,
                heap,
                bytes,
                at_ns,
            } => {
                let device = self.device(process, device);
                let allocation = Allocation {
                    id: self.next_allocation(),
                    device,
                    heap,
                    bytes,
                };
                self.processes[process]
                    .allocations
                    .insert(memory, allocation);
                self.memory(process, allocation, MemoryEvent::Allocate, at_ns, tables);
            }
            CommonEvent::Free { memory, at_ns } => match state.allocations.remove(&memory) {
                Some(allocation) => {
                    self.memory(process, allocation, MemoryEvent::Free, at_ns, tables)
                }
                None => self.ledger.add(
                    LossKind::MemoryFrees,
                    1,
                    "the record of their allocation is missing",
                ),
            },
            CommonEvent::Label {
                scope,
                edge,
                text,
                at_ns,
            } => {
                let record = LabelRecord { edge, text, at_ns };
                self.label(process, thread, scope, record, tables);
            }
            CommonEvent::Loss {
                kind,
                count,
                reason,
            } => {
                self.processes[process].is_refused |= kind == LossKind::CudaWork;
                self.ledger.add(kind, count, reason.into_owned());
            }
            CommonEvent::Capture {
                capture,
                edge,
                path,
                at_ns,
            } => {
                let record = CaptureRecord {
                    thread,
                    capture,
                    path: &path,
                    at_ns,
                };
                match edge {
                    LabelEdge::Begin => self.start_capture(process, record),
                    _ => self.end_capture(process, record, tables),
                }
            }
            CommonEvent::OwnTime { span } => {
                if let Some(span) = self.checked(Some(span)) {
                    let function = Some(self.shared_text(CAPTURE_CALL));
                    let thread = Some(ThreadId(thread.0));
                    let kind = HostCallKind::Recording;
                    let row = rows::one_host_call(process, thread, kind, span, function);
                    rows::host_call(tables, row);
                }
            }
            CommonEvent::Frame {
                frame,
                function,
                file,
                line,
            } => {
                let facts = StackFrame {
                    kind: FrameKind::Python,
                    function: Some(function.into()),
                    file: Some(file.into()),
                    line: Some(line).filter(|line| *line > 0),
                    library: None,
                    address: None,
                };
                state.frames.insert((thread, frame), facts);
            }
            CommonEvent::Stack {
                at_ns,
                source,
                frames,
            } => {
                let outermost_first = frames.iter().rev();
                let known = outermost_first.map(|id| state.frames.get(&(thread, *id)).cloned());
                let frames: Option<Vec<StackFrame>> = known.collect();
                let sample = Sample {
                    time_ns: at_ns,
                    process,
                    thread: ThreadId(thread.0),
                    stack: None,
                    state: ThreadState::Running,
                    source,
                    period_ns: None,
                    system_call: None,
                    gil_holder: None,
                };
                match frames {
                    Some(frames) => self.sample(sample, Some(frames.into_iter()), tables),
                    None => self.ledger.add(
                        LossKind::StackSamples,
                        1,
                        "the record of a frame is missing",
                    ),
                }
                self.saw(at_ns);
            }
            CommonEvent::Note { text } if self.processes[process].is_refused => self.explain(&text),
            CommonEvent::Note { text } => self.note(&text),
        }
    }
}
