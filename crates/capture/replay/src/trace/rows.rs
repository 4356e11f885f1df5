//! Makes the rows of a replay's trace: [`Rows::new`] adds buffers and kernels, [`Rows::observed`] the rows of one
//! submission that ran (command buffers, dispatches, transfers), and [`Rows::finish`] the labels.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use gapscope_capture::model::{BufferRange, Command, Dispatch, Groups, Label, PipelineId};
use gapscope_model::Span;
use gapscope_timeline_builder::{TransferFacts, WorkPlace, rows};
use gapscope_trace::Tables;
use gapscope_trace::build::Labels;
use gapscope_trace::ids::*;
use gapscope_trace::tables::{self as table, Table};

use crate::clock::signed;
use crate::program::ProgramBuffer;
use crate::recording::{BufferTimestamps, TimestampPair};
use crate::session::{Observation, Session};

/// The only process and queue of the trace.
const PROCESS: ProcessId = ProcessId(0);
const QUEUE: QueueId = QueueId(0);

/// The bindings of a dispatch: set, binding, element, range, and whether the shader may write it.
type BoundBuffers = Vec<(u32, u32, u32, BufferRange, bool)>;

/// The tables of the trace while rows are added.
pub struct Rows {
    pub tables: Tables,
    labels: Labels,
    /// The ids of the bindings that have rows.
    bindings: HashMap<BoundBuffers, BindingSetId>,
    next_submission: u64,
    next_buffer: u64,
    /// Number of runs. If there are several, each has a label.
    runs: u32,
    /// The number of dispatches without times, then that of transfers.
    pub untimed: [u64; 2],
}

/// A label that is open.
struct OpenLabel {
    label: LabelId,
    /// The first start and the last end of the work inside.
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl Rows {
    /// Adds the buffers and kernels of the capture.
    pub fn new(session: &Session<'_>, runs: u32) -> Rows {
        let mut rows = Rows {
            tables: Tables::default(),
            labels: Labels::default(),
            bindings: HashMap::new(),
            next_submission: 0,
            next_buffer: 0,
            runs,
            untimed: [0; 2],
        };
        for buffer in session.capture.buffers.values() {
            rows.tables.buffers.push(table::Buffer {
                id: BufferId(buffer.id.0),
                process: PROCESS,
                device: DeviceId(0),
                bytes: buffer.bytes,
                allocation: None,
                offset_bytes: None,
                name: buffer.name.as_deref().map(Arc::from),
            });
        }
        for id in session.shaders.keys() {
            rows.kernel(session, *id);
        }
        rows
    }

    /// Adds the rows of one submission, with the times that one run of it had.
    pub fn observed(&mut self, session: &mut Session<'_>, of: &Observation) {
        let submission = SubmissionId(self.next_submission);
        self.next_submission += 1;
        let around = (self.runs > 1).then(|| self.labels.named(None, &format!("run {}", of.run)));
        let mut command_buffers = 0;
        let program = Rc::clone(&session.program);
        for (number, marks) in &of.parts {
            let Some(submitted) = program.submissions().nth(*number) else {
                continue;
            };
            for (buffer, timed) in submitted.buffers.iter().zip(&marks.buffers) {
                self.buffer(session, of, submission, buffer, timed, around);
                command_buffers += 1;
            }
        }
        let start_ns = signed(of.called_ns);
        let row = table::Submission {
            id: submission,
            process: PROCESS,
            queue: QUEUE,
            kind: table::SubmissionKind::CommandBuffers,
            thread: None,
            start_ns,
            duration_ns: signed(of.returned_ns - of.called_ns),
            command_buffers,
            function: None,
        };
        rows::submission(&mut self.tables, row);
        let waits_for = Some(submission);
        for (call, from, to, waits_for) in [
            (
                table::HostCallKind::Submit,
                of.called_ns,
                of.returned_ns,
                None,
            ),
            (
                table::HostCallKind::WaitFences,
                of.returned_ns,
                of.seen_ns,
                waits_for,
            ),
        ] {
            let span = Span::between(signed(from), signed(to));
            let row = rows::one_host_call(PROCESS, None, call, span, None);
            let queue = Some(QUEUE);
            rows::host_call(
                &mut self.tables,
                table::HostCall {
                    queue,
                    waits_for,
                    ..row
                },
            );
        }
    }

    /// Adds the rows of labels.
    pub fn finish(&mut self) {
        self.labels.push_into(&mut self.tables.labels);
    }

    /// Adds the rows of one command buffer and of its work. `around` is the label of the run, under which they are.
    fn buffer(
        &mut self,
        session: &mut Session<'_>,
        of: &Observation,
        submission: SubmissionId,
        buffer: &ProgramBuffer<'_>,
        (pair, work): &BufferTimestamps,
        around: Option<LabelId>,
    ) {
        let id = CommandBufferId(self.next_buffer);
        self.next_buffer += 1;
        let times =
            |session: &mut Session<'_>, pair: TimestampPair| -> (Option<i64>, Option<i64>) {
                let Some(ticks) = of.pair(pair) else {
                    return (None, None);
                };
                let duration = signed(session.clock.between_ns(ticks));
                (session.clock.host_ns(ticks.0), Some(duration))
            };
        let mut work = work.iter().peekable();
        let mut open: Vec<OpenLabel> = Vec::new();
        let mut top_level = Vec::new();
        let (mut position, mut dispatches, mut transfers) = (0, 0, 0);
        for (index, command) in buffer.commands.iter().enumerate() {
            let label = open.last().map(|open| open.label).or(around);
            let (start_ns, duration_ns) = match work.next_if(|(at, _)| *at == index) {
                Some((_, pair)) => times(session, *pair),
                None => (None, None),
            };
            if let (Some(start), Some(duration)) = (start_ns, duration_ns) {
                for open in &mut open {
                    open.start_ns = open.start_ns.or(Some(start));
                    open.end_ns = Some(start.saturating_add(duration));
                }
            }
            let place = WorkPlace {
                command_buffer: Some(id),
                position,
                start_ns,
                duration_ns,
                label,
                ..WorkPlace::new(QUEUE, None)
            };
            match command {
                Command::Label(Label::Begin(text)) => {
                    let label = self.labels.named(label, text);
                    if open.is_empty() {
                        top_level.push(label);
                    }
                    open.push(OpenLabel {
                        label,
                        start_ns: None,
                        end_ns: None,
                    });
                    continue;
                }
                Command::Label(Label::End) => {
                    if let Some(ended) = open.pop() {
                        self.marker(id, ended);
                    }
                    continue;
                }
                Command::Label(Label::Instant(_)) => continue,
                Command::Dispatch(dispatch) => {
                    dispatches += 1;
                    self.untimed[0] += u64::from(duration_ns.is_none());
                    let groups = match dispatch.groups {
                        Groups::Direct(groups) => groups.map(Some),
                        Groups::Indirect(_) => [None; 3],
                    };
                    let bindings = self.bindings(dispatch);
                    let kernel = KernelId(dispatch.pipeline.0);
                    rows::dispatch(&mut self.tables, place, kernel, groups, bindings);
                }
                Command::Barrier(barrier) => {
                    let all = barrier
                        .memory
                        .iter()
                        .chain(barrier.buffers.iter().map(|(of, _)| of));
                    let stages = all.fold((0, 0), |(after, before), of| {
                        (after | of.after_stages, before | of.before_stages)
                    });
                    self.tables.barriers.push(table::Barrier {
                        command_buffer: id,
                        position,
                        source_stages: stages.0,
                        destination_stages: stages.1,
                    });
                }
                Command::Copy(_) | Command::Fill(_) | Command::Update(_) => {
                    transfers += 1;
                    self.untimed[1] += u64::from(duration_ns.is_none());
                    self.transfer(place, command);
                }
            }
            position += 1;
        }
        while let Some(left) = open.pop() {
            self.marker(id, left);
        }
        let (start_ns, duration_ns) = match pair {
            Some(pair) => times(session, *pair),
            None => (None, None),
        };
        let row = table::CommandBuffer {
            id,
            process: PROCESS,
            queue: QUEUE,
            submission,
            start_ns,
            duration_ns,
            seen_ns: Some(signed(of.seen_ns)),
            timing: match start_ns {
                Some(_) => table::Timing::Measured,
                None if session.gpu.timestamp_bits == 0 => table::Timing::NoTimestamps,
                None => table::Timing::NoQueries,
            },
            dispatches,
            transfers,
            label: match top_level.as_slice() {
                [label] => Some(*label),
                _ => around,
            },
            name: None,
            host_functions: None,
        };
        rows::command_buffer(&mut self.tables, row);
    }

    /// Adds the row of a copy, fill or update.
    fn transfer(&mut self, place: WorkPlace, command: &Command) {
        let (kind, bytes, source, destination) = match command {
            Command::Copy(copy) => {
                let bytes = copy
                    .regions
                    .iter()
                    .fold(0_u64, |sum, region| sum.saturating_add(region.bytes));
                (table::TransferKind::Copy, bytes, Some(copy.from), copy.to)
            }
            Command::Fill(fill) => (
                table::TransferKind::Fill,
                fill.range.bytes,
                None,
                fill.range.buffer,
            ),
            Command::Update(update) => (
                table::TransferKind::Update,
                update.data.len() as u64,
                None,
                update.buffer,
            ),
            _ => return,
        };
        let facts = TransferFacts {
            kind,
            bytes: Some(bytes),
            source: source.map(|id| BufferId(id.0)),
            destination: Some(BufferId(destination.0)),
            host_memory: None,
        };
        rows::transfer(&mut self.tables, place, facts);
    }

    /// Adds the row of a label that ended, with the time from its first work to its last.
    fn marker(&mut self, command_buffer: CommandBufferId, of: OpenLabel) {
        let duration_ns = (of.end_ns.zip(of.start_ns)).map(|(end, start)| (end - start).max(0));
        let scope = table::MarkerScope::CommandBuffer;
        let row = rows::marker_row(PROCESS, scope, of.label, of.start_ns, duration_ns);
        let row = table::Marker {
            queue: Some(QUEUE),
            command_buffer: Some(command_buffer),
            ..row
        };
        rows::marker(&mut self.tables, row);
    }

    /// Returns the id of a dispatch's bindings; adds their rows where no earlier dispatch had the same.
    fn bindings(&mut self, dispatch: &Dispatch) -> Option<BindingSetId> {
        let bound: BoundBuffers = (dispatch.bindings.iter())
            .filter_map(|binding| {
                let (set, number, element) = (binding.set, binding.binding, binding.element);
                Some((set, number, element, binding.range?, binding.is_writable()))
            })
            .collect();
        if bound.is_empty() {
            return None;
        }
        if let Some(id) = self.bindings.get(&bound) {
            return Some(*id);
        }
        let id = BindingSetId(self.bindings.len() as u32);
        for (set, binding, element, range, is_writable) in &bound {
            self.tables.bindings.push(table::Binding {
                id,
                set: *set,
                binding: *binding,
                element: *element,
                buffer: BufferId(range.buffer.0),
                offset_bytes: range.offset,
                bytes: range.bytes,
                access: match is_writable {
                    true => table::Access::ReadWrite,
                    false => table::Access::Read,
                },
            });
        }
        self.bindings.insert(bound, id);
        Some(id)
    }

    /// Adds the row of a pipeline's kernel.
    fn kernel(&mut self, session: &Session<'_>, id: PipelineId) {
        let pipeline = &session.capture.pipelines[&id];
        let shader = &session.shaders[&id];
        let [local_x, local_y, local_z] =
            shader.local_size.map_or([None; 3], |size| size.map(Some));
        let constants = pipeline.constants.iter().map(|constant| {
            let digits = constant.value.iter().map(|byte| format!("{byte:02x}"));
            format!("{}:{}", constant.id, digits.collect::<String>())
        });
        let specialisation = constants.collect::<Vec<_>>().join(",");
        let code = session.capture.modules[&pipeline.module].code.to_string();
        self.tables.kernels.push(table::Kernel {
            id: KernelId(id.0),
            process: PROCESS,
            name: pipeline.name.as_str().into(),
            name_source: table::NameSource::ObjectName,
            entry_point: Some(pipeline.entry.as_str().into()),
            source: Some(code.into()),
            specialisation: (!specialisation.is_empty()).then(|| specialisation.into()),
            local_x,
            local_y,
            local_z,
            full_name: None,
            source_file: None,
            source_file_hash: None,
            registers: None,
            local_bytes: None,
            static_shared_bytes: None,
            dynamic_shared_bytes: None,
            accesses: None,
        });
    }
}
