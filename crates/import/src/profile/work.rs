//! Submissions, and the work that they handed to the device.

use super::labels::LabelsOfCalls;
use super::{Call, Correlation, Profile, Work, WorkKind};
use crate::Error;
use crate::output::NewTrace;
use gapscope_model::cuda::FunctionClass;
use gapscope_trace::LossKind;
use gapscope_trace::ids::*;
use gapscope_trace::tables::{
    CommandBuffer, Dispatch, Kernel, NameSource, OpaqueWorkKind, OpaqueWorkRow, Submission, Table,
    Timing, Transfer,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The submission that each call made, by the call's index.
pub(super) type Submissions = Vec<Option<Submitted>>;

/// A submission.
#[derive(Debug, Clone, Copy)]
pub(super) struct Submitted {
    pub id: SubmissionId,
    pub queue: QueueId,
    of_graph: bool,
    /// Pieces of work so far.
    positions: u32,
}

/// The launch of a graph.
struct GraphLaunch {
    id: CommandBufferId,
    process: ProcessId,
    queue: QueueId,
    call: Option<u32>,
    start_ns: i64,
    end_ns: i64,
    positions: u32,
    dispatches: u32,
    transfers: u32,
}

impl Profile {
    /// Writes submissions and work. `by_correlation` has the calls that may have launched something.
    pub(super) fn write_work(
        &mut self,
        by_correlation: &FxHashMap<(ProcessId, Correlation), u32>,
        in_label: &LabelsOfCalls,
        new: &mut NewTrace,
    ) -> Result<Submissions, Error> {
        let calls_of_work: Vec<Option<u32>> = (self.work.iter())
            .map(|work| {
                by_correlation
                    .get(&(work.process, work.correlation?))
                    .copied()
            })
            .collect();
        let mut submissions = self.submissions(&calls_of_work);
        self.write_submissions(&submissions, new)?;
        let (mut uncalled, mut early, mut untimed) = (0, 0, 0);
        let mut graphs: BTreeMap<(ProcessId, Option<Correlation>), GraphLaunch> = BTreeMap::new();
        for (work, call) in std::mem::take(&mut self.work).iter().zip(&calls_of_work) {
            uncalled += u64::from(call.is_none());
            untimed += u64::from(work.span.is_none());
            let label = call.and_then(|call| in_label[call as usize]);
            let submitted = call.and_then(|call| submissions[call as usize].as_mut());
            if let (Some(call), Some(span)) = (call, work.span) {
                let called_ns = self.calls[*call as usize].span.start_ns;
                early += u64::from(span.start_ns < called_ns);
            }
            let place = match (work.of_graph, submitted) {
                (true, _) => {
                    let id = CommandBufferId(graphs.len() as u64);
                    let key = (work.process, work.correlation);
                    let graph = graphs
                        .entry(key)
                        .or_insert_with(|| GraphLaunch::new(id, work, *call));
                    graph.add(work)
                }
                (false, Some(submitted)) => {
                    submitted.positions += 1;
                    Place {
                        command_buffer: None,
                        submission: Some(submitted.id),
                        position: submitted.positions - 1,
                    }
                }
                (false, None) => Place::default(),
            };
            push_work(work, place, label, new);
            new.flush()?;
        }
        let reason = "the record of the call is missing";
        self.ledger.add(LossKind::HostCallsOfWork, uncalled, reason);
        let reason = "the work seems to begin before the call that launched it";
        self.ledger
            .add(LossKind::PlausibleDeviceTimes, early, reason);
        let reason = "the file has impossible times of them";
        self.ledger.add("times of GPU work".into(), untimed, reason);
        for graph in graphs.values() {
            let submission = graph.call.and_then(|call| submissions[call as usize]);
            let label = graph.call.and_then(|call| in_label[call as usize]);
            graph.push(submission, label, new);
            new.flush()?;
        }
        Ok(submissions)
    }

    /// A submission for each call that launched work, in the order of the calls.
    fn submissions(&self, calls_of_work: &[Option<u32>]) -> Submissions {
        let mut submissions: Submissions = vec![None; self.calls.len()];
        for (work, call) in self.work.iter().zip(calls_of_work) {
            let Some(call) = call else { continue };
            submissions[*call as usize].get_or_insert(Submitted {
                id: SubmissionId(0),
                queue: work.queue,
                of_graph: work.of_graph,
                positions: 0,
            });
        }
        // What leaves no record of the device is a submission where its queue is known.
        for (submitted, call) in submissions.iter_mut().zip(&self.calls) {
            let puts = self
                .class(call)
                .is_some_and(FunctionClass::is_put_on_stream);
            if let (None, true, Some(queue)) = (&submitted, puts, self.queue_of(call)) {
                *submitted = Some(Submitted {
                    id: SubmissionId(0),
                    queue,
                    of_graph: false,
                    positions: 0,
                });
            }
        }
        for (id, submitted) in (0..).zip(submissions.iter_mut().flatten()) {
            submitted.id = SubmissionId(id);
        }
        submissions
    }

    /// The queue that a call waited for, or put something on.
    pub(super) fn queue_of(&self, call: &Call) -> Option<QueueId> {
        self.awaited
            .get(&(call.process, call.correlation?))
            .copied()
    }

    fn write_submissions(
        &mut self,
        submissions: &Submissions,
        new: &mut NewTrace,
    ) -> Result<(), Error> {
        for (call, submitted) in self.calls.iter().zip(submissions) {
            let Some(submitted) = submitted else { continue };
            let class = self.class(call);
            new.tables_mut().submissions.push(Submission {
                id: submitted.id,
                process: call.process,
                queue: submitted.queue,
                kind: class
                    .and_then(FunctionClass::submission_kind)
                    .unwrap_or_default(),
                thread: call.thread,
                start_ns: call.span.start_ns,
                duration_ns: call.span.duration_ns,
                command_buffers: u32::from(submitted.of_graph),
                function: self
                    .functions
                    .get(call.function.0 as usize)
                    .map(|f| f.name.clone()),
            });
            if let Some(lost) = class.and_then(FunctionClass::unrecorded_work) {
                let reason = "their calls are recorded, and not what the device did for them";
                self.ledger.add(lost, 1, reason);
            }
            new.flush()?;
        }
        Ok(())
    }

    /// A row for each kernel.
    pub(super) fn write_kernels(&mut self, new: &mut NewTrace) -> Result<(), Error> {
        for (id, shape) in self.kernels.iter() {
            let [local_x, local_y, local_z] = shape.block;
            new.tables_mut().kernels.push(Kernel {
                id,
                process: shape.process,
                name: self.shared(shape.name),
                name_source: NameSource::EntryPoint,
                entry_point: Some(self.shared(shape.mangled.unwrap_or(shape.name))),
                source: None,
                specialisation: None,
                local_x,
                local_y,
                local_z,
                full_name: None,
                source_file: None,
                source_file_hash: None,
                registers: shape.registers,
                local_bytes: shape.local_bytes,
                static_shared_bytes: shape.static_shared_bytes,
                dynamic_shared_bytes: shape.dynamic_shared_bytes,
            });
            new.flush()?;
        }
        Ok(())
    }
}

/// Where a piece of work stands.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    command_buffer: Option<CommandBufferId>,
    submission: Option<SubmissionId>,
    position: u32,
}

impl GraphLaunch {
    fn new(id: CommandBufferId, work: &Work, call: Option<u32>) -> GraphLaunch {
        GraphLaunch {
            id,
            process: work.process,
            queue: work.queue,
            call,
            start_ns: i64::MAX,
            end_ns: i64::MIN,
            positions: 0,
            dispatches: 0,
            transfers: 0,
        }
    }

    fn add(&mut self, work: &Work) -> Place {
        if let Some(span) = work.span {
            self.start_ns = self.start_ns.min(span.start_ns);
            self.end_ns = self.end_ns.max(span.end_ns());
        }
        match work.kind {
            WorkKind::Kernel { .. } => self.dispatches += 1,
            WorkKind::Transfer { .. } => self.transfers += 1,
            WorkKind::Graph => {}
        }
        self.positions += 1;
        Place {
            command_buffer: Some(self.id),
            submission: None,
            position: self.positions - 1,
        }
    }

    fn push(&self, submission: Option<Submitted>, label: Option<LabelId>, new: &mut NewTrace) {
        let timed = self.start_ns <= self.end_ns;
        new.tables_mut().command_buffers.push(CommandBuffer {
            id: self.id,
            process: self.process,
            queue: submission.map_or(self.queue, |submitted| submitted.queue),
            submission: submission.map_or(SubmissionId(u64::MAX), |submitted| submitted.id),
            start_ns: timed.then_some(self.start_ns),
            duration_ns: timed.then(|| self.end_ns - self.start_ns),
            seen_ns: None,
            timing: match timed {
                true => Timing::Measured,
                false => Timing::Unknown,
            },
            dispatches: self.dispatches,
            transfers: self.transfers,
            label,
            name: None,
            host_functions: None,
        });
    }
}

fn push_work(work: &Work, place: Place, label: Option<LabelId>, new: &mut NewTrace) {
    let tables = new.tables_mut();
    let Place {
        command_buffer,
        submission,
        position,
    } = place;
    let start_ns = work.span.map(|span| span.start_ns);
    let duration_ns = work.span.map(|span| span.duration_ns);
    let queue = work.queue;
    match work.kind {
        WorkKind::Kernel { kernel, groups } => tables.dispatches.push(Dispatch {
            command_buffer,
            position,
            queue,
            kernel,
            start_ns,
            duration_ns,
            groups_x: groups[0],
            groups_y: groups[1],
            groups_z: groups[2],
            bindings: None,
            label,
            submission,
        }),
        WorkKind::Transfer {
            kind,
            bytes,
            host_memory,
        } => tables.transfers.push(Transfer {
            command_buffer,
            position,
            queue,
            kind,
            bytes,
            start_ns,
            duration_ns,
            source: None,
            destination: None,
            label,
            submission,
            host_memory,
        }),
        WorkKind::Graph => tables.opaque_work.push(OpaqueWorkRow {
            command_buffer,
            position,
            queue,
            kind: OpaqueWorkKind::Graph,
            start_ns,
            duration_ns,
            label,
            submission,
        }),
    }
}
