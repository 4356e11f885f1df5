//! From calls and work to the rows of a trace.

use super::collect::Collector;
use super::facts::{Call, Correlation, Work, WorkKind};
use super::nesting::{Nesting, is_step, label_of};
use super::polls::Polls;
use super::queues::Queues;
use super::texts::TextId;
use crate::Error;
use crate::functions::class_of;
use gapscope_model::LossKind;
use gapscope_model::cuda::FunctionClass;
use gapscope_trace::ids::{
    CommandBufferId, KernelId, LabelId, ProcessId, QueueId, SubmissionId, ThreadId,
};
use gapscope_trace::tables::{
    CommandBuffer, Dispatch, HostCall, Marker, MarkerScope, Submission, SubmissionKind, Table,
    Timing, Transfer,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Rows between two looks at whether a table has enough to be written.
const ROWS_BETWEEN_FLUSHES: usize = 1 << 10;

/// What assembling needs besides what was collected.
pub(super) struct Assembly {
    pub(super) queues: Queues,
    /// Kernels by shape and process.
    pub(super) kernels: FxHashMap<(u32, ProcessId), KernelId>,
    classes: Vec<Option<FunctionClass>>,
    nestings: Vec<Nesting>,
    submissions: u64,
    command_buffers: u64,
    /// Submissions of each queue, in order of time.
    pub(super) on_queue: FxHashMap<QueueId, Vec<(i64, SubmissionId)>>,
    /// The process of what no call launched.
    pub(super) main: ProcessId,
    pub(super) early: u64,
    polls: Polls,
}

/// The launch that work belongs to.
#[derive(Clone, Copy)]
struct Launch {
    process: ProcessId,
    submission: Option<SubmissionId>,
    start_ns: i64,
    label: Option<LabelId>,
    of_graph: bool,
}

impl Assembly {
    /// Makes rows of all that a collector kept.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn run(found: &mut Collector) -> Result<Assembly, Error> {
        found.lanes.name_all();
        let main = main_process(found);
        let mut assembly = Assembly {
            queues: Queues::default(),
            kernels: FxHashMap::default(),
            classes: Vec::new(),
            nestings: Vec::new(),
            submissions: 0,
            command_buffers: 0,
            on_queue: FxHashMap::default(),
            main,
            early: 0,
            polls: Polls::default(),
        };
        assembly.annotations(found)?;
        assembly.calls(found)?;
        assembly.overheads(found);
        assembly.dependencies(found);
        Ok(assembly)
    }

    /// Markers and labels of the ranges that label work.
    fn annotations(&mut self, found: &mut Collector) -> Result<(), Error> {
        // A step is of the whole process: work that another thread launches in it, such as that of a backward pass, is its too.
        let mut steps = FxHashMap::<ProcessId, Vec<_>>::default();
        for lane in &found.lanes.all {
            let own = lane.annotations.iter();
            let of_step = own.filter(|range| is_step(range.name, &found.texts));
            steps
                .entry(lane.process)
                .or_default()
                .extend(of_step.copied());
        }
        for at in 0..found.lanes.all.len() {
            let lane = &mut found.lanes.all[at];
            let (process, thread) = (lane.process, lane.thread);
            let mut ranges = std::mem::take(&mut lane.annotations);
            let own = ranges.len();
            if !ranges.iter().any(|range| is_step(range.name, &found.texts)) {
                ranges.extend(steps.get(&process).into_iter().flatten().copied());
            }
            let is_own: FxHashMap<(i64, i64, TextId), ()> = ranges[..own]
                .iter()
                .map(|range| ((range.start_ns, range.end_ns, range.name), ()))
                .collect();
            let nesting = Nesting::of(ranges, &found.texts, &mut found.labels);
            for (index, labelled) in nesting.ranges.iter().enumerate() {
                let range = labelled.range;
                if !is_own.contains_key(&(range.start_ns, range.end_ns, range.name)) {
                    continue;
                }
                let payload = label_of(found.texts.get(range.name)).1.map(Arc::from);
                found.new.tables_mut().markers.push(Marker {
                    process,
                    scope: MarkerScope::Thread,
                    label: labelled.label,
                    queue: None,
                    thread: Some(thread),
                    command_buffer: None,
                    start_ns: Some(range.start_ns),
                    duration_ns: Some(range.end_ns - range.start_ns),
                    domain: None,
                    category: None,
                    payload,
                });
                if index % ROWS_BETWEEN_FLUSHES == 0 {
                    found.new.flush()?;
                }
            }
            self.nestings.push(nesting);
        }
        Ok(())
    }

    fn class(&mut self, function: TextId, found: &Collector) -> FunctionClass {
        let at = function.0 as usize;
        if let Some(Some(class)) = self.classes.get(at) {
            return *class;
        }
        let class = class_of(found.texts.get(function)).unwrap_or_default();
        if self.classes.len() <= at {
            self.classes.resize(at + 1, None);
        }
        self.classes[at] = Some(class);
        class
    }

    fn calls(&mut self, found: &mut Collector) -> Result<(), Error> {
        let mut calls = std::mem::take(&mut found.calls);
        calls.sort_by_key(|call| (call.start_ns, call.correlation));
        let works = std::mem::take(&mut found.works);
        let mut order: Vec<u32> = (0..works.len() as u32).collect();
        order.sort_by_key(|at| {
            let work = &works[*at as usize];
            (work.correlation, work.start_ns)
        });
        // Where the work of a correlation begins in that order.
        let mut first: FxHashMap<Correlation, u32> = FxHashMap::default();
        for (at, index) in order.iter().enumerate() {
            let correlation = works[*index as usize].correlation;
            first.entry(correlation).or_insert(at as u32);
        }
        first.remove(&Correlation::NONE);
        let owners = self.owners(&calls, &first, found);
        let collectives: FxHashMap<usize, String> =
            std::mem::take(&mut found.collectives).into_iter().collect();
        let waits: FxHashMap<Correlation, u32> = (found.synchronisations.iter())
            .filter_map(|wait| Some((wait.correlation, wait.stream?)))
            .collect();
        let mut done = vec![false; order.len()];
        for (index, call) in calls.iter().enumerate() {
            let own = owners.get(&call.correlation) == Some(&(index as u32));
            let works_of = own.then(|| first[&call.correlation] as usize);
            match works_of {
                Some(from) => {
                    let mine = order[from..]
                        .iter()
                        .take_while(|at| works[**at as usize].correlation == call.correlation);
                    let mine: Vec<u32> = mine.copied().collect();
                    done[from..from + mine.len()].fill(true);
                    self.launch(found, call, &mine, &works, &collectives);
                }
                None => {
                    let queue = waits.get(&call.correlation).map(|stream| {
                        let process = found.lanes.all[call.lane as usize].process;
                        self.queues.of(process, *stream, found.streams.all())
                    });
                    self.host_call(found, call, queue);
                }
            }
            if index % ROWS_BETWEEN_FLUSHES == 0 {
                found.new.flush()?;
            }
        }
        self.polls.end(found.new.tables_mut());
        let rest: Vec<u32> = (order.iter().zip(&done))
            .filter(|(_, done)| !**done)
            .map(|(at, _)| *at)
            .collect();
        found.calls = calls;
        self.without_call(found, &rest, &works)
    }

    /// Which call launched the work of a correlation: one that launches, if there are several.
    fn owners(
        &mut self,
        calls: &[Call],
        first: &FxHashMap<Correlation, u32>,
        found: &Collector,
    ) -> FxHashMap<Correlation, u32> {
        let mut owners: FxHashMap<Correlation, u32> = FxHashMap::default();
        for (index, call) in calls.iter().enumerate() {
            if !first.contains_key(&call.correlation) {
                continue;
            }
            let launches =
                |this: &mut Self, call: &Call| this.class(call.function, found).submission_kind();
            let before = owners.get(&call.correlation).copied();
            let better = before.is_none_or(|before| {
                launches(self, &calls[before as usize]).is_none() && launches(self, call).is_some()
            });
            if better {
                owners.insert(call.correlation, index as u32);
            }
        }
        owners
    }

    /// A call that launched work.
    fn launch(
        &mut self,
        found: &mut Collector,
        call: &Call,
        mine: &[u32],
        works: &[Work],
        collectives: &FxHashMap<usize, String>,
    ) {
        let class = self.class(call.function, found);
        let lane = &found.lanes.all[call.lane as usize];
        let (process, thread) = (lane.process, lane.thread);
        let (first, count) = (&works[mine[0] as usize], mine.len());
        let queue = self.queues.of(process, first.stream, found.streams.all());
        let of_graph = class == FunctionClass::LaunchGraph
            || (class == FunctionClass::Unknown && first.of_graph);
        let kind = class.submission_kind().unwrap_or(match first.kind {
            _ if of_graph => SubmissionKind::Graph,
            WorkKind::Kernel { .. } => SubmissionKind::Kernel,
            WorkKind::Transfer { .. } => SubmissionKind::Transfer,
        });
        self.submissions += 1;
        let submission = SubmissionId(self.submissions);
        let on_queue = self.on_queue.entry(queue).or_default();
        on_queue.push((call.start_ns, submission));
        let function = found.texts.get(call.function).clone();
        found.new.tables_mut().submissions.push(Submission {
            id: submission,
            process,
            queue,
            kind,
            thread: Some(thread),
            start_ns: call.start_ns,
            duration_ns: call.duration_ns,
            command_buffers: u32::from(of_graph),
            function: Some(function),
        });
        if class == FunctionClass::CopyAndWait {
            self.host_call(found, call, Some(queue));
        }
        let launch = Launch {
            process,
            submission: Some(submission),
            start_ns: call.start_ns,
            label: self.nestings[call.lane as usize].at(call.start_ns),
            of_graph,
        };
        if let Some(payload) = mine.iter().find_map(|at| collectives.get(&(*at as usize))) {
            collective(found, call, (process, thread), payload);
        }
        debug_assert!(count > 0);
        self.write(found, launch, mine, works);
    }

    /// Work whose call is not in the file.
    fn without_call(
        &mut self,
        found: &mut Collector,
        rest: &[u32],
        works: &[Work],
    ) -> Result<(), Error> {
        let reason = match found.calls.is_empty() {
            true => "the file has no calls of a runtime",
            false => "the file has no call with their correlation",
        };
        found
            .ledger
            .add(LossKind::HostCallsOfWork, rest.len() as u64, reason);
        let same = |a: &u32, b: &u32| {
            let (a, b) = (&works[*a as usize], &works[*b as usize]);
            a.of_graph && b.of_graph && a.correlation == b.correlation
        };
        for (index, group) in rest.chunk_by(same).enumerate() {
            let first = &works[group[0] as usize];
            let launch = Launch {
                process: self.main,
                submission: None,
                start_ns: i64::MIN,
                label: first.label,
                of_graph: first.of_graph && first.correlation != Correlation::NONE,
            };
            self.write(found, launch, group, works);
            if index % ROWS_BETWEEN_FLUSHES == 0 {
                found.new.flush()?;
            }
        }
        Ok(())
    }

    /// The rows of a launch's work.
    fn write(&mut self, found: &mut Collector, launch: Launch, mine: &[u32], works: &[Work]) {
        let command_buffer = launch.of_graph.then(|| {
            self.command_buffers += 1;
            CommandBufferId(self.command_buffers)
        });
        let (mut dispatches, mut transfers) = (0, 0);
        let (mut start_ns, mut end_ns) = (i64::MAX, i64::MIN);
        let submission = launch.submission.filter(|_| command_buffer.is_none());
        for (position, at) in mine.iter().enumerate() {
            let work = &works[*at as usize];
            let queue = self
                .queues
                .of(launch.process, work.stream, found.streams.all());
            self.early += u64::from(work.start_ns < launch.start_ns);
            start_ns = start_ns.min(work.start_ns);
            end_ns = end_ns.max(work.start_ns + work.duration_ns);
            let label = work.label.or(launch.label);
            let position = position as u32;
            let tables = found.new.tables_mut();
            match work.kind {
                WorkKind::Kernel { shape, groups } => {
                    dispatches += 1;
                    let next = KernelId(self.kernels.len() as u32 + 1);
                    let kernel = *(self.kernels)
                        .entry((shape, launch.process))
                        .or_insert(next);
                    let [groups_x, groups_y, groups_z] = groups.map(|g| Some(g).filter(|g| *g > 0));
                    tables.dispatches.push(Dispatch {
                        command_buffer,
                        position,
                        queue,
                        kernel,
                        start_ns: Some(work.start_ns),
                        duration_ns: Some(work.duration_ns),
                        groups_x,
                        groups_y,
                        groups_z,
                        bindings: None,
                        label,
                        submission,
                    });
                }
                WorkKind::Transfer {
                    kind,
                    bytes,
                    host_memory,
                } => {
                    transfers += 1;
                    tables.transfers.push(Transfer {
                        command_buffer,
                        position,
                        queue,
                        kind,
                        bytes,
                        start_ns: Some(work.start_ns),
                        duration_ns: Some(work.duration_ns),
                        source: None,
                        destination: None,
                        label,
                        submission,
                        host_memory,
                    });
                }
            }
        }
        if let Some(id) = command_buffer {
            let first = &works[mine[0] as usize];
            let queue = self
                .queues
                .of(launch.process, first.stream, found.streams.all());
            found.new.tables_mut().command_buffers.push(CommandBuffer {
                id,
                process: launch.process,
                queue,
                submission: launch.submission.unwrap_or(SubmissionId(u64::MAX)),
                start_ns: Some(start_ns),
                duration_ns: Some(end_ns - start_ns),
                seen_ns: None,
                timing: Timing::Measured,
                dispatches,
                transfers,
                label: launch.label,
                name: None,
                host_functions: None,
            });
        }
    }

    /// A call that launched nothing that is in the file.
    fn host_call(&mut self, found: &mut Collector, call: &Call, queue: Option<QueueId>) {
        let class = self.class(call.function, found);
        let lane = &found.lanes.all[call.lane as usize];
        let row = HostCall {
            process: lane.process,
            thread: Some(lane.thread),
            call: class.host_call_kind(),
            start_ns: call.start_ns,
            duration_ns: call.duration_ns,
            count: 1,
            busy_ns: call.duration_ns,
            queue,
            bytes: None,
            result: 0,
            function: Some(found.texts.get(call.function).clone()),
        };
        let tables = found.new.tables_mut();
        match class.is_poll() {
            true => self.polls.poll(row, tables),
            false => {
                self.polls.end_of(row.process, row.thread, tables);
                tables.host_calls.push(row);
            }
        }
    }
}

/// The process that made most calls, or the only one.
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

/// The range around a collective, as NCCL's own would be.
fn collective(
    found: &mut Collector,
    call: &Call,
    (process, thread): (ProcessId, ThreadId),
    payload: &str,
) {
    let Some(function) = super::collectives::function_of_payload(payload) else {
        return;
    };
    let label = found.labels.named(None, function);
    found.new.tables_mut().markers.push(Marker {
        process,
        scope: MarkerScope::Thread,
        label,
        queue: None,
        thread: Some(thread),
        command_buffer: None,
        start_ns: Some(call.start_ns),
        duration_ns: Some(call.duration_ns),
        domain: Some(super::collectives::DOMAIN.into()),
        category: None,
        payload: Some(payload.into()),
    });
}
