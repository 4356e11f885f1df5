//! One event at a time.

use super::Assembler;
use super::host::host_call;
use super::kernels::{self, Kernel};
use super::objects::capabilities;
use super::process::Allocation;
use super::submit::SubmitCall;
use crate::clock::DeviceClock;
use gapscope_spool::event::{Event, Outcome};
use gapscope_trace::manifest;
use gapscope_trace::tables::{HostCall, MemoryEvent, Table, Tables};

impl Assembler {
    /// One event of a process, in sequence. Rows that it completes are appended to `tables`.
    ///
    /// # Panics
    /// `process` is not one of [`Self::add_process`].
    pub fn apply(&mut self, process: u32, thread: u32, event: Event<'_>, tables: &mut Tables) {
        let state = &mut self.processes[process as usize];
        match event {
            Event::Process {
                pid,
                parent,
                executable,
                arguments,
                hook,
            } => {
                let facts = &mut state.facts;
                facts.pid = pid;
                // The system says 0 of a parent in another namespace.
                facts.parent_pid = Some(parent).filter(|pid| *pid != 0);
                facts.executable = executable.into_owned();
                facts.arguments = arguments.into_iter().map(|a| a.into_owned()).collect();
                facts.hook = hook.into_owned();
            }
            Event::ProcessEnd { at_ns } => {
                state.facts.end_ns = Some(at_ns);
                self.saw(at_ns);
            }
            Event::Thread { thread, name } => {
                if !state.threads.iter().any(|t| t.thread == thread) {
                    let name = name.to_owned();
                    state.threads.push(manifest::Thread {
                        process,
                        thread,
                        name,
                    });
                }
            }
            Event::Device {
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
                let known = &mut self.devices[id as usize];
                known.facts.api = api.into_owned();
                known.facts.name = name.into_owned();
                known.facts.driver = driver.into_owned();
                known.facts.uuid = kernels::hex(uuid);
                known.facts.heaps = heaps;
                known.clock = Some(DeviceClock::new(clock, nanoseconds_per_tick));
            }
            Event::DeviceEnd {
                device,
                lost,
                at_ns,
            } => {
                let id = self.device(process, device);
                let known = &mut self.devices[id as usize];
                known.facts.lost |= lost;
                known.ended = true;
                self.saw(at_ns);
                self.settle(id, false, tables);
            }
            Event::Queue {
                queue,
                device,
                family,
                index,
                flags,
                timestamp_bits,
            } => {
                let device = self.device(process, device);
                let id = self.queue(process, queue);
                let facts = &mut self.queues[id as usize].facts;
                facts.device = device;
                facts.family = family;
                facts.index = index;
                facts.capabilities = capabilities(flags);
                facts.timestamp_bits = timestamp_bits.min(64);
                if let Some(clock) = &mut self.devices[device as usize].clock {
                    clock.queue_bits(timestamp_bits);
                }
            }
            Event::ClockSample {
                device,
                ticks,
                host_ns,
                error_ns,
            } => {
                let id = self.device(process, device);
                let used = match &mut self.devices[id as usize].clock {
                    Some(clock) => clock.sample(ticks, host_ns, error_ns),
                    None => true,
                };
                self.ledger.add(
                    "clock samples",
                    u64::from(!used),
                    "the device's clock went back",
                );
                self.saw(host_ns);
                self.settle(id, false, tables);
            }
            Event::Source {
                hash,
                format,
                bytes,
            } => self.source(hash, format, bytes),
            Event::Kernel {
                kernel,
                device: _,
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
            Event::Name { object, id, name } => self.name(process, object, id, name),
            Event::Text { text, value } => {
                state.texts.insert(text, self.labels.text(value));
            }
            Event::Allocate {
                memory,
                device,
                heap,
                flags: _,
                bytes,
                at_ns,
            } => {
                let device = self.device(process, device);
                let allocation = Allocation {
                    id: self.allocations,
                    device,
                    heap,
                    bytes,
                };
                self.allocations += 1;
                self.processes[process as usize]
                    .allocations
                    .insert(memory, allocation);
                self.memory(process, allocation, MemoryEvent::Allocate, at_ns, tables);
            }
            Event::Free { memory, at_ns } => match state.allocations.remove(&memory) {
                Some(allocation) => {
                    self.memory(process, allocation, MemoryEvent::Free, at_ns, tables)
                }
                None => self.ledger.add(
                    "memory frees",
                    1,
                    "the record of their allocation is missing",
                ),
            },
            Event::Buffer {
                buffer,
                device,
                bytes,
                at_ns,
            } => {
                let device = self.device(process, device);
                let id = self.buffers.add(process, device, bytes);
                self.processes[process as usize].buffers.insert(buffer, id);
                self.saw(at_ns);
            }
            Event::BufferMemory {
                buffer,
                memory,
                offset,
            } => {
                if let Some(id) = state.buffers.get(&buffer) {
                    let allocation = state.allocations.get(&memory).map(|a| a.id);
                    self.buffers.bind(*id, allocation, offset);
                }
            }
            Event::BufferEnd { buffer, at_ns } => {
                if let Some(id) = state.buffers.remove(&buffer) {
                    self.buffers.end(id, tables);
                }
                self.saw(at_ns);
            }
            Event::Bindings { content, entries } => self.bindings(process, content, &entries),
            Event::Commands {
                recording,
                commands,
            } => self.commands(process, recording, commands, tables),
            Event::RecordingEnd { recording } => {
                if let Some(found) = state.recordings.get_mut(&recording) {
                    found.ended = true;
                }
                state.drop_if_unused(recording);
            }
            Event::Submit {
                submission: _,
                queue,
                begin_ns,
                end_ns,
                instances,
                waits,
                signals,
            } => {
                let call = SubmitCall {
                    thread,
                    queue,
                    begin_ns,
                    end_ns,
                };
                self.submit(process, call, &instances, &waits, &signals, tables);
            }
            Event::Timestamps {
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
                self.ledger
                    .add("timestamps", lost, "the record of their command is missing");
            }
            Event::Bracket {
                instance,
                begin_ticks,
                end_ticks,
            } => match state.instances.get_mut(&instance) {
                Some(instance) => instance.bracket = Some((begin_ticks, end_ticks)),
                None => self
                    .ledger
                    .add("timestamps", 2, "the record of their command is missing"),
            },
            Event::InstanceEnd {
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
            Event::HostCall {
                call,
                begin_ns,
                end_ns,
                count,
                busy_ns,
                queue,
                bytes,
                result,
            } => {
                let queue = queue.map(|q| self.queue(process, q));
                tables.host_calls.push(HostCall {
                    process,
                    thread: Some(thread),
                    call: host_call(call),
                    start_ns: begin_ns,
                    duration_ns: end_ns.saturating_sub(begin_ns),
                    count,
                    busy_ns,
                    queue,
                    bytes,
                    result,
                    function: None,
                });
                self.saw(end_ns);
            }
            Event::Label {
                scope,
                edge,
                text,
                at_ns,
            } => {
                self.label(process, thread, scope, edge, text, at_ns, tables);
            }
            Event::HostSignal { semaphore, at_ns } => {
                state.semaphores.host_signal(semaphore, at_ns, tables);
                self.saw(at_ns);
            }
            Event::Loss {
                what,
                count,
                reason,
            } => self.ledger.add(&what, count, &reason),
            Event::Capture {
                capture,
                edge,
                path,
                at_ns,
            } => self.capture((process, thread), capture, edge, &path, at_ns, tables),
            Event::Activities {
                first,
                count,
                bytes,
            } => self.activities(process, first, count, bytes, tables),
            Event::Function {
                function,
                interface: _,
                name,
            } => self.cuda_function(process, function, &name),
            Event::Called {
                function,
                span,
                correlation,
                result,
            } => self.called(
                process,
                thread,
                (function, result),
                span,
                correlation,
                tables,
            ),
            Event::Polled {
                function,
                thread,
                span,
                count,
                busy_ns,
                result,
            } => {
                let (function, polls) = ((function, result), (count, busy_ns));
                self.polled(process, thread, function, span, polls, tables);
            }
            Event::Launch { launch, shape } => self.cuda_launch(process, launch, &shape),
            Event::LaunchesEnd { below } => self.cuda_launches_end(process, below),
            Event::Route {
                route,
                queue,
                kind,
                source,
                destination,
                devices: _,
            } => self.cuda_route(process, route, queue, kind, [source, destination]),
            Event::Stream {
                queue,
                kind,
                priority,
            } => self.stream(process, queue, kind, priority),
            event @ Event::DeviceLimits { .. } => self.device_limits(process, event),
            Event::Pool {
                pool,
                device,
                edge,
                bytes,
                used_bytes: _,
                at_ns,
            } => {
                let device = self.device(process, device);
                self.pool(process, pool, device, edge, bytes, at_ns, tables);
            }
            Event::LabelDetail {
                category,
                color: _,
                payload,
            } => self.label_detail(process, thread, category, payload),
            Event::LabelPayload { ending, text } => {
                self.label_payload(process, thread, ending, text);
            }
            Event::Note { text } => self.note(&text),
        }
    }
}
