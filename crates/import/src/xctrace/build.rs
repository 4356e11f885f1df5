//! Builds the trace of one process from the facts of all exports of one recording of Instruments (tables that
//! `xctrace export` writes): command buffers, GPU work, labels, host activity. An instance is one commit of a command buffer. [`build`] calls the parts in order; facts have times from the start
//! of the recording, rows have times on the machine's clock.

mod audit;
mod host;
mod manifest;
mod signposts;

use super::facts::{Channel, Encoder, Facts};
use super::intervals::{Piece, Pieces, from_points, pieces};
use super::labels::{default_kind, given_by_program};
use crate::{Error, Options};
use gapscope_model::Span;
use gapscope_timeline_builder::{LabelRows, TransferFacts, WorkPlace, rows};
use gapscope_trace::build::Labels;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::Thread;
use gapscope_trace::tables::{Marker, MarkerScope, OpaqueWorkKind, Submission, SubmissionKind};
use gapscope_trace::{LossKind, Trace};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The ids of the only process, device and queue.
const PROCESS: ProcessId = ProcessId(1);
const DEVICE: DeviceId = DeviceId(1);
const QUEUE: QueueId = QueueId(1);

/// Builds the trace of the wanted process, or returns an error if it has no Metal work.
pub(super) fn build(mut facts: Facts, options: &Options) -> Result<Trace, Error> {
    facts.finish();
    let pid = target(&facts, options)?;
    let run = facts.toc.as_ref().and_then(|toc| toc.metal_run()).cloned();
    let mut builder = Builder {
        pid,
        name: facts
            .processes
            .get(&pid)
            .map(|name| name.to_string())
            .unwrap_or_default(),
        base_ns: facts.epoch_ns.unwrap_or(0),
        instances: Vec::new(),
        by_id: FxHashMap::default(),
        labels: Labels::default(),
        trace: Trace::default(),
        facts,
    };
    builder.note_missing_tables(run.as_ref());
    builder.replace_missing_intervals();
    builder.command_buffers();
    if builder.instances.is_empty() && builder.own_intervals() == 0 {
        return Err(Error::nothing(builder.why_nothing()));
    }
    builder.gpu_work();
    builder.host_work();
    builder.kernels();
    builder.memory();
    builder.thermal_states();
    builder.note_other_influences();
    Ok(builder.finish(run, options))
}

/// Returns the pid of the process whose work is wanted: that of the options, that of the table of contents, or the
/// only one with Metal work.
fn target(facts: &Facts, options: &Options) -> Result<u32, Error> {
    let named = facts.toc.as_ref().and_then(|toc| toc.metal_run()?.pid);
    if let Some(pid) = options.pid.or(named) {
        return Ok(pid);
    }
    let mut rows: BTreeMap<u32, u64> = BTreeMap::new();
    let work = facts.intervals.iter().map(|interval| interval.pid);
    for pid in work
        .chain(facts.submissions.iter().map(|s| s.pid))
        .flatten()
    {
        *rows.entry(pid).or_default() += 1;
    }
    let mut found: Vec<(u32, u64)> = rows.into_iter().collect();
    found.sort_by_key(|(pid, rows)| (std::cmp::Reverse(*rows), *pid));
    match found.as_slice() {
        [(pid, _)] => Ok(*pid),
        [] => Err(Error::nothing(
            "the exports have no Metal work of any process: export the tables metal-gpu-intervals and metal-application-command-buffer-submissions",
        )),
        _ => Err(Error::ManyProcesses {
            count: found.len(),
            processes: (found.iter().take(8))
                .map(|(pid, _)| match facts.processes.get(pid) {
                    Some(name) => format!("{name} ({pid})"),
                    None => pid.to_string(),
                })
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// A commit of a command buffer. In Metal 4, one command buffer can be committed several times.
struct Instance {
    id: CommandBufferId,
    /// The moment of the commit; `None` if the exports lack it.
    committed_ns: Option<i64>,
    /// The first moment at which the instance was seen finished; `None` if the exports do not say.
    seen_ns: Option<i64>,
    /// The first start and the last end of its GPU work; `i64::MAX` and `i64::MIN` before the first piece.
    start_ns: i64,
    end_ns: i64,
    /// The numbers of transfers and of all pieces of GPU work so far.
    transfers: u32,
    pieces: u32,
    label: Option<LabelId>,
    name: Option<String>,
}

impl Instance {
    /// Returns the id of the submission, of which there is one for each commit.
    fn submission(&self) -> SubmissionId {
        SubmissionId(self.id.0)
    }
}

/// The trace that is built from the facts of one process.
struct Builder {
    pid: u32,
    /// The name of the process; empty if it is not known.
    name: String,
    /// The start of the trace on the machine's clock.
    base_ns: i64,
    facts: Facts,
    /// The instances in the order of their ids, which count from 1.
    instances: Vec<Instance>,
    /// Indices of `instances` by Metal's id, in the order of commits.
    by_id: FxHashMap<u64, Vec<usize>>,
    labels: Labels,
    trace: Trace,
}

impl Builder {
    /// Returns a time of the facts on the machine's clock.
    fn at(&self, ns: i64) -> i64 {
        self.base_ns.saturating_add(ns)
    }

    /// Returns whether a row is of the wanted process.
    fn is_target(&self, pid: Option<u32>) -> bool {
        pid == Some(self.pid)
    }

    /// Returns the number of GPU intervals of the wanted process.
    fn own_intervals(&self) -> usize {
        self.facts
            .intervals
            .iter()
            .filter(|i| self.is_target(i.pid))
            .count()
    }

    /// Returns the number of rows of a table in all exports.
    fn rows(&self, table: &str) -> u64 {
        self.facts.rows.get(table).copied().unwrap_or(0)
    }

    /// Makes intervals from the starts and ends of GPU work if the exports have no intervals of the process.
    fn replace_missing_intervals(&mut self) {
        if self.own_intervals() > 0 || self.facts.points.is_empty() {
            return;
        }
        let mut points = std::mem::take(&mut self.facts.points);
        let made = from_points(&mut points, &self.facts.gpu_submissions);
        let own = made.iter().filter(|i| self.is_target(i.pid)).count();
        if own > 0 {
            self.facts.notes.push(format!(
                "GPU times are made of {own} starts and ends of work (metal-gpu-execution-points), as metal-gpu-intervals has no rows of this process: kinds of work are not known."
            ));
            self.facts.intervals.extend(made);
        }
    }

    /// Adds the commits of the process as submissions, in order of time, with their encoding (a marker from the
    /// creation of a command buffer to its commit) and labels.
    fn command_buffers(&mut self) {
        let mut submissions = std::mem::take(&mut self.facts.submissions);
        submissions.retain(|submission| self.is_target(submission.pid));
        submissions.sort_by_key(|s| (s.committed_ns, s.created_ns, s.command_buffer));
        let mut threads: BTreeMap<ThreadId, String> = BTreeMap::new();
        let encoding = (!submissions.is_empty()).then(|| self.labels.named(None, "Encoding"));
        let labels = self.command_buffer_labels();
        let mut thread_labels = self.program_labels();
        let mut forgotten = 0;
        for submission in &submissions {
            let index = self.add_instance(submission.command_buffer, Some(submission.committed_ns));
            let thread = submission.thread.as_ref().map(|thread| {
                let id = thread_id(thread.tid);
                threads.entry(id).or_insert_with(|| thread.name.to_string());
                id
            });
            let at = self.at(submission.committed_ns);
            // The exports have only the moment of the commit, not the duration of the call.
            let row = Submission {
                id: self.instances[index].submission(),
                process: PROCESS,
                queue: QUEUE,
                kind: SubmissionKind::CommandBuffers,
                thread,
                start_ns: at,
                duration_ns: 0,
                command_buffers: 1,
                function: None,
            };
            rows::submission(&mut self.trace.tables, row);
            let label = labels.get(&submission.command_buffer).map(|label| &**label);
            let shown = label.unwrap_or("command buffer");
            let encoding = self.labels.named(encoding, shown);
            let duration_ns = submission.committed_ns - submission.created_ns;
            let row = rows::marker_row(
                PROCESS,
                MarkerScope::Thread,
                encoding,
                Some(self.at(submission.created_ns)),
                Some(duration_ns),
            );
            let row = Marker {
                thread,
                command_buffer: Some(self.instances[index].id),
                ..row
            };
            rows::marker(&mut self.trace.tables, row);
            self.name_instance(index, label);
            // The command buffer's own label takes precedence, as in recordings.
            let instance = &mut self.instances[index];
            if instance.label.is_none() {
                let label = thread_labels.at(thread, at);
                forgotten += u64::from(label.is_err());
                instance.label = label.unwrap_or_default();
            }
        }
        self.facts.losses.add(
            LossKind::LabelsOfWork,
            forgotten,
            "their threads had too many later labels to remember those of the commit",
        );
        thread_labels.finish(&mut LabelRows {
            process: PROCESS,
            labels: &mut self.labels,
            tables: &mut self.trace.tables,
        });
        self.trace.manifest.threads = (threads.into_iter())
            .map(|(thread, name)| Thread {
                process: PROCESS,
                thread,
                name,
            })
            .collect();
    }

    /// Returns the labels that the program gave command buffers, by Metal's id.
    fn command_buffer_labels(&self) -> FxHashMap<u64, Box<str>> {
        let own = self.facts.encoders.iter().filter(|e| self.is_target(e.pid));
        own.filter_map(|encoder| {
            let label = given_by_program(encoder.command_buffer_label.as_deref())?;
            Some((encoder.command_buffer?, Box::from(label)))
        })
        .collect()
    }

    /// Gives an instance its own label, if it has one.
    fn name_instance(&mut self, index: usize, label: Option<&str>) {
        let Some(label) = label else { return };
        let id = self.labels.named(None, label);
        self.instances[index].label = Some(id);
        self.instances[index].name = Some(label.to_owned());
    }

    /// Adds an instance of the command buffer with an id of Metal, and returns its index.
    fn add_instance(&mut self, metal_id: u64, committed_ns: Option<i64>) -> usize {
        let index = self.instances.len();
        self.instances.push(Instance {
            id: CommandBufferId(index as u64 + 1),
            committed_ns,
            seen_ns: None,
            start_ns: i64::MAX,
            end_ns: i64::MIN,
            transfers: 0,
            pieces: 0,
            label: None,
            name: None,
        });
        self.by_id.entry(metal_id).or_default().push(index);
        index
    }

    /// Returns the index of the last instance of a command buffer that was committed at or before `ns`, or else of
    /// its first instance; `None` if the command buffer was never committed.
    fn instance_at(&self, metal_id: u64, ns: i64) -> Option<usize> {
        let indices = self.by_id.get(&metal_id)?;
        let before = |index: &&usize| self.instances[**index].committed_ns.is_none_or(|c| c <= ns);
        indices.iter().rfind(before).or(indices.first()).copied()
    }

    /// Adds the pieces of GPU work, and counts those without a commit or a command buffer as losses. A command buffer
    /// without a commit gets an instance of its own.
    fn gpu_work(&mut self) {
        let Pieces { pieces, refused } = pieces(&self.facts.intervals, self.pid);
        let reason = "their times are impossible";
        self.facts
            .losses
            .add(LossKind::GpuIntervals, refused, reason);
        let encoders: FxHashMap<u64, Encoder> = (self.facts.encoders.iter())
            .filter(|encoder| self.is_target(encoder.pid))
            .map(|encoder| (encoder.encoder, encoder.clone()))
            .collect();
        let labels = self.command_buffer_labels();
        let (mut uncommitted, mut unowned, mut unlabelled) = (0, 0, 0);
        for piece in &pieces {
            let encoder = piece.encoder.and_then(|id| encoders.get(&id));
            let metal_id = piece
                .command_buffer
                .or(encoder.and_then(|e| e.command_buffer));
            let instance = metal_id.map(|metal_id| {
                self.instance_at(metal_id, piece.start_ns)
                    .unwrap_or_else(|| {
                        uncommitted += 1;
                        let index = self.add_instance(metal_id, None);
                        self.name_instance(index, labels.get(&metal_id).map(|label| &**label));
                        index
                    })
            });
            unowned += u64::from(instance.is_none());
            unlabelled += u64::from(!self.push_piece(piece, encoder, instance));
        }
        self.facts.losses.add(
            LossKind::CommandBufferCommits,
            uncommitted,
            "they ran on the GPU and have no row of their commit: they were committed before the recording started, or the table was not exported",
        );
        self.facts.losses.add(
            LossKind::CommandBuffersOfWork,
            unowned,
            "Instruments does not say which command buffer they belong to",
        );
        if unlabelled > 0 && unlabelled == pieces.len() as u64 {
            self.facts.notes.push(
                "No command buffer or encoder has a label, so GPU time cannot be attributed to parts of the program: set the labels of command buffers and encoders before endEncoding (MLX does when it is built with MLX_METAL_DEBUG), or use the labels of gapscope's SDK.".to_owned(),
            );
        }
    }

    /// Adds the row of a piece of GPU work: a transfer if it is a blit, opaque work otherwise. Returns false if the
    /// piece has no label.
    fn push_piece(
        &mut self,
        piece: &Piece,
        encoder: Option<&Encoder>,
        instance: Option<usize>,
    ) -> bool {
        let encoder_text = encoder.and_then(|e| e.label.as_deref());
        let around = instance.and_then(|index| self.instances[index].label);
        let label = match given_by_program(encoder_text) {
            Some(text) => Some(self.labels.named(around, text)),
            None => around,
        };
        // Apple's GPUs run blits on the compute channel; the name that Instruments gives identifies them.
        let blit_by_name = encoder_text.and_then(default_kind) == Some("Blit Command");
        let (command_buffer, position) = match instance.map(|index| &mut self.instances[index]) {
            Some(instance) => {
                instance.start_ns = instance.start_ns.min(piece.start_ns);
                instance.end_ns = instance.end_ns.max(piece.end_ns);
                instance.pieces += 1;
                (Some(instance.id), instance.pieces - 1)
            }
            None => (None, 0),
        };
        let span = Span {
            start_ns: self.at(piece.start_ns),
            duration_ns: piece.end_ns - piece.start_ns,
        };
        let place = WorkPlace {
            command_buffer,
            position,
            label,
            ..WorkPlace::new(QUEUE, Some(span))
        };
        if piece.channel == Channel::Blit || blit_by_name {
            if let Some(index) = instance {
                self.instances[index].transfers += 1;
            }
            rows::transfer(&mut self.trace.tables, place, TransferFacts::default());
        } else {
            let kind = match piece.channel {
                Channel::Compute => OpaqueWorkKind::ComputePass,
                Channel::Render => OpaqueWorkKind::RenderPass,
                Channel::Blit | Channel::Other => OpaqueWorkKind::Other,
            };
            rows::opaque_work(&mut self.trace.tables, place, kind);
        }
        label.is_some()
    }
}

/// Returns a thread id in 32 bits. Mach counts thread ids from the machine's start, so that they fit in practice.
fn thread_id(tid: u64) -> ThreadId {
    ThreadId(u32::try_from(tid).unwrap_or(u32::MAX))
}
