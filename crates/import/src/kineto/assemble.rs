//! Joins the collected calls, work and labels of a document: gives work and waits the queues of the processes that
//! use them, and adds the labels that the file does not write as ranges. A correlation is the number that the
//! profiler gives a call and the work that it launched.

use super::collect::Collector;
use super::collectives::{DOMAIN, function_of_payload};
use super::described_calls::DescribedCalls;
use super::facts::STEP;
use super::join::{CollectedWork, Joined, Launches, SourceProcesses};
use crate::inventory::{KernelFacts, UNKNOWN_GPU, UNKNOWN_PROCESS};
use crate::profile::{
    ApiCall, CallQueue, DeviceWorkKind, FileReasons, FileTimes, HostEventWait, HostRange,
    StreamEvent, StreamPlace,
};
use gapscope_model::LossKind;
use gapscope_model::cuda::FunctionClass;
use gapscope_timeline_builder::Reasons;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId};
use gapscope_trace::manifest::Api;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

impl Collector<'_, '_> {
    /// Completes the collected rows in the profile. Returns why facts are missing in them.
    pub(super) fn assemble(&mut self) -> FileReasons {
        self.take_open_work();
        self.lanes.name_all();
        self.join_producers();
        self.main = self.main_process();
        for process in &self.lanes.processes {
            let name = process.name.as_deref().unwrap_or_default();
            self.profile.inventory.add_process(process.pid, name);
        }
        let is_amd = |name: &str| name.contains("AMD") || name.contains("Instinct");
        let mut devices = self.metadata.devices.iter();
        let uses_hip = self.uses_hip || devices.any(|device| is_amd(&device.name));
        self.profile.api = match uses_hip {
            _ if self.uses_vulkan => Api::Vulkan,
            true => Api::Hip,
            false => Api::Cuda,
        };
        self.forget_zero_times();
        let recorded = &mut self.profile.recorded;
        let calls = &mut recorded.calls;
        calls.sort_by_key(|(_, call)| (call.span.start_ns, call.correlation));
        let has_calls = !calls.is_empty();
        let launches = Launches::new(calls, &recorded.functions);
        let pids = self.lanes.pids();
        let (works, sources) = (&self.works, &self.sources);
        let sources = SourceProcesses::new(&launches, works, sources, &pids, calls, self.main);
        let unknown = self.lanes.unknown_process();
        let functions = &recorded.functions;
        let (joined, collisions) = launches.join(works, &sources, calls, functions, unknown);
        if joined.iter().any(|joined| joined.process == unknown)
            && unknown.0 as usize == self.lanes.processes.len()
        {
            self.lanes.process(b"");
            self.profile.inventory.add_process(0, UNKNOWN_PROCESS);
        }
        self.add_copied_bytes(&joined);
        let inventory = &mut self.profile.inventory;
        let reason = "several calls of their process have their correlation: the nearest one before them is taken";
        inventory.lose(
            LossKind::UnambiguousCallsOfWork,
            collisions.in_process,
            reason,
        );
        let reason = "calls of several processes have their correlation, and all of them came before the work: the first call gets the work that ran first";
        inventory.lose(
            LossKind::UnambiguousCallsOfWork,
            collisions.of_processes,
            reason,
        );
        let reason = "calls of several processes have their correlation, and work of some of them is missing: nothing tells whose work this is";
        inventory.lose("processes of GPU work", collisions.of_nobody, reason);
        if sources.by_order {
            inventory.note("The file has several processes that used the same correlations at the same time: devices are given to them in the order of their numbers.");
        }
        self.add_steps_of_other_threads();
        self.add_labels_of_backward_passes();
        self.add_collectives(&joined);
        self.note_unknown_stream_waits();
        self.place_work(&joined, &sources);
        self.write_drawn_rows(&sources);
        self.join_shared_devices();
        let overheads = std::mem::take(&mut self.overheads).into_iter();
        let overheads = overheads.map(|overhead| (self.main, overhead));
        self.profile.recorded.overheads.extend(overheads);
        let reasons = FileReasons::default();
        FileReasons {
            work: Reasons {
                untimed: reasons.work.untimed,
                without_call: match has_calls {
                    true if collisions.of_nobody > 0 => {
                        "the file has no call with their correlation, or calls of several processes"
                    }
                    true => "the file has no call with their correlation",
                    false => "the file has no calls of a runtime",
                },
            },
            unknown_waits: "the calls that recorded their events are not in the file",
            ..reasons
        }
    }

    /// Takes the times of 0 away before calls and work are joined by their times.
    fn forget_zero_times(&mut self) {
        let shift_ns = self.shift_ns.unwrap_or(0);
        self.profile.times = FileTimes {
            zero_ns: 0,
            end_ns: self.end_ns,
            streams_are_queues: self.metadata.is_kineto,
        };
        let mut forget = |zero_ns, clock_begins| {
            self.profile.times.zero_ns = zero_ns;
            let works = &mut self.works;
            (self.profile).forget_zero_times(works, |one| &mut one.work, clock_begins);
        };
        forget(shift_ns, true);
        // Events before the first time that is not 0 have not been shifted.
        if shift_ns != 0 {
            forget(0, false);
        }
        self.profile.times.zero_ns = shift_ns;
    }

    /// Gives copies of unknown size the bytes that their calls say. Of a call with several copies, none is known.
    fn add_copied_bytes(&mut self, joined: &[Joined]) {
        if self.copied_bytes.is_empty() {
            return;
        }
        let keys = |works: &[CollectedWork], index: usize| {
            joined[index].call?;
            Some((joined[index].process, works[index].correlation?))
        };
        let mut copies: FxHashMap<_, u32> = FxHashMap::default();
        for key in (0..self.works.len()).filter_map(|index| keys(&self.works, index)) {
            *copies.entry(key).or_default() += 1;
        }
        for index in 0..self.works.len() {
            let key = keys(&self.works, index).filter(|key| copies.get(key) == Some(&1));
            if let DeviceWorkKind::Transfer { bytes, .. } = &mut self.works[index].work.kind {
                let of_call = key.and_then(|key| self.copied_bytes.get(&key).copied().flatten());
                *bytes = bytes.or(of_call);
            }
        }
    }

    /// Adds steps to the threads that have none of their own: a step belongs to the whole process, so that it also
    /// labels work that other threads launch in it, such as a backward pass.
    pub(super) fn add_steps_of_other_threads(&mut self) {
        let step = self.profile.text(STEP);
        let ranges = &mut self.profile.recorded.ranges;
        let is_step = |range: &&HostRange| range.text == step && range.payload.is_some();
        let steps: Vec<HostRange> = ranges.iter().filter(is_step).cloned().collect();
        let threads = steps.iter().map(|step| (step.process, step.thread));
        let with_steps: FxHashSet<_> = threads.collect();
        for lane in &self.lanes.all {
            let thread = Some(lane.thread);
            if !with_steps.contains(&(lane.process, thread)) {
                let of_process = steps.iter().filter(|step| step.process == lane.process);
                ranges.extend(of_process.map(|step| HostRange {
                    thread,
                    has_row: false,
                    ..step.clone()
                }));
            }
        }
    }

    /// Adds a range around each call that launched a collective (an operation of several ranks, such as an
    /// all-reduce), with the names that NCCL's own ranges have.
    fn add_collectives(&mut self, joined: &[Joined]) {
        let mut done = FxHashSet::default();
        let mut collectives = std::mem::take(&mut self.collectives);
        let described = self.described_collectives(joined);
        collectives.extend(described);
        for (work, payload) in collectives {
            if let Some(launch) = joined[work as usize].call
                && done.insert(launch)
            {
                let (process, call) = self.profile.recorded.calls[launch as usize];
                self.add_collective(process, call, &payload);
            }
        }
    }

    /// Adds a range around a call that launched a collective with this description.
    pub(super) fn add_collective(&mut self, process: ProcessId, call: ApiCall, payload: &str) {
        if let Some(function) = function_of_payload(payload) {
            let range = HostRange {
                process,
                thread: call.thread,
                of_process: false,
                text: self.profile.text(function),
                domain: Some(self.profile.text(DOMAIN)),
                category: None,
                payload: Some(self.profile.text(payload)),
                start_ns: call.span.start_ns,
                end_ns: Some(call.span.end_ns()),
                labels_work: false,
                has_row: true,
            };
            self.profile.recorded.ranges.push(range);
        }
    }

    /// Returns the descriptions of the kernels of NCCL that have none of their own: those of the innermost operator
    /// around the call.
    fn described_collectives(&mut self, joined: &[Joined]) -> Vec<(u32, String)> {
        let described = DescribedCalls::take(self);
        let of_work = |work: &u32| {
            let call = joined[*work as usize].call?;
            let (process, call) = self.profile.recorded.calls[call as usize];
            let payload = described.around(process, &call)?;
            Some((*work, payload.to_owned()))
        };
        self.nccl_works.iter().filter_map(of_work).collect()
    }

    /// Gives work and calls their queues. Queues and devices are numbered in the order in which calls first use them.
    fn place_work(&mut self, joined: &[Joined], sources: &SourceProcesses) {
        let works = std::mem::take(&mut self.works);
        let mut works: Vec<(Joined, CollectedWork)> = joined.iter().copied().zip(works).collect();
        let place = |(joined, collected): &(Joined, CollectedWork)| {
            let start_ns = collected.work.span.map(|span| span.start_ns);
            (joined.call.unwrap_or(u32::MAX), start_ns)
        };
        works.sort_by_key(place);
        let waits: FxHashMap<_, _> = (self.synchronisations.iter())
            .filter_map(|wait| {
                let process = sources.process(wait.source);
                Some(((process, wait.correlation?), wait.stream?))
            })
            .collect();
        let mut works = works.into_iter().peekable();
        for index in 0..self.profile.recorded.calls.len() {
            let (process, call) = self.profile.recorded.calls[index];
            while let Some((joined, collected)) =
                works.next_if(|(joined, _)| joined.call == Some(index as u32))
            {
                // A call whose correlation was used before has another one.
                let collected = CollectedWork {
                    correlation: call.correlation,
                    ..collected
                };
                self.add_work(joined.process, collected);
            }
            let stream = call.correlation.and_then(|id| waits.get(&(process, id)));
            if let Some(queue) = stream.and_then(|stream| self.queue(process, *stream)) {
                self.profile.recorded.calls[index].1.queue = CallQueue::Known(queue);
            }
        }
        works.for_each(|(joined, collected)| self.add_work(joined.process, collected));
        self.add_stream_events(sources);
    }

    /// Adds a piece of work of a process. Its queue and its kernel have the ids of the file until then.
    fn add_work(&mut self, process: ProcessId, collected: CollectedWork) {
        let CollectedWork {
            correlation,
            mut work,
            ..
        } = collected;
        let Some(queue) = self.queue(process, work.queue) else {
            return;
        };
        work.queue = queue;
        if let DeviceWorkKind::Kernel { kernel, .. } = &mut work.kind
            && let Some(shape) = self.shapes.get(*kernel)
        {
            let facts = KernelFacts { process, ..*shape };
            *kernel = self.profile.inventory.kernel(facts);
        }
        let work = (process, correlation, work);
        self.profile.recorded.work.push(work);
    }

    /// Returns the queue that stands for a stream of the file in a process.
    pub(super) fn queue(&mut self, process: ProcessId, stream: QueueId) -> Option<QueueId> {
        let stream = self.streams.get(stream)?;
        let device = self.device(process, stream.device);
        let inventory = &mut self.profile.inventory;
        Some(inventory.stream(device, Some(stream.context), stream.stream))
    }

    /// Returns the device with a number in a process. A new device gets what the document says of that number.
    fn device(&mut self, process: ProcessId, number: Option<u32>) -> DeviceId {
        let api = self.profile.api;
        let mut known = self.metadata.devices.iter();
        let inventory = &mut self.profile.inventory;
        inventory.device(process, number, |device| {
            device.api = api;
            if let Some(number) = number {
                let named = self.producers.device_pid(number);
                let named = named.and_then(|pid| self.lanes.process_name(pid));
                device.name = match named {
                    Some(name) => name.to_owned(),
                    None => format!("{UNKNOWN_GPU} {number}"),
                };
                if let Some(own) = known.find(|own| own.id == Some(number)) {
                    device.name.clone_from(&own.name);
                    device.heaps.extend(own.memory_bytes);
                    device.limits = Some(own.limits.clone());
                }
            }
        })
    }

    /// Says how PyTorch's profiler records what streams waited for, where they did and the file does not say it.
    fn note_unknown_stream_waits(&mut self) {
        let recorded = &self.profile.recorded;
        let waits = |(_, call): &(ProcessId, ApiCall)| {
            let function = recorded.functions.get(call.function.0 as usize);
            function.is_some_and(|function| function.class == FunctionClass::StreamWaitEvent)
        };
        if self.profile.api == Api::Cuda
            && self.synchronisations.is_empty()
            && recorded.calls.iter().any(waits)
        {
            self.profile.inventory.note(
                "Streams waited for events of other streams, and the file does not say for which work. PyTorch's profiler records it with \
                 experimental_config=torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True).",
            );
        }
    }

    /// Adds the waits of streams and of the host for events, and the recording of these events. A wait names
    /// the call that recorded its event, which therefore identifies the event; 0 stands for an unknown one.
    fn add_stream_events(&mut self, sources: &SourceProcesses) {
        for wait in std::mem::take(&mut self.synchronisations) {
            let (Some(waits_on), Some(waiting)) = (wait.waits_on, wait.correlation) else {
                continue;
            };
            let process = sources.process(wait.source);
            let event = wait.recorded_by.map_or(0, |recording| recording.0);
            let mut stream_event = |stream, correlation| {
                let queue = self.queue(process, stream)?;
                Some(StreamEvent {
                    process,
                    place: StreamPlace { queue, correlation },
                    event,
                })
            };
            let record = (wait.recorded_by).and_then(|recording| stream_event(waits_on, recording));
            match wait.stream {
                Some(stream) => {
                    let wait = stream_event(stream, waiting);
                    self.profile.recorded.waits.extend(wait);
                }
                None => self.profile.recorded.host_waits.push(HostEventWait {
                    process,
                    correlation: waiting,
                    event,
                }),
            }
            self.profile.recorded.events.extend(record);
        }
    }

    /// Returns the id of the process that made most calls, and of those with equally many the first; without any
    /// thread, a new process with pid 0.
    fn main_process(&mut self) -> ProcessId {
        let mut calls: FxHashMap<ProcessId, u64> = FxHashMap::default();
        for lane in &self.lanes.all {
            calls.entry(lane.process).or_default();
        }
        for (process, _) in &self.profile.recorded.calls {
            *calls.entry(*process).or_default() += 1;
        }
        let most = calls
            .into_iter()
            .max_by_key(|(id, calls)| (*calls, Reverse(*id)));
        most.map_or_else(|| self.lanes.process(b"0"), |(id, _)| id)
    }
}
