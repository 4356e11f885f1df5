//! From what the rows say to a trace.

use super::Options;
use super::clock::{self, Lived};
use super::facts::{Channel, Encoder, Facts, GpuInterval, HostInterval};
use super::intervals::{Piece, from_points, pieces, union_ns};
use super::labels::{LabelIds, default_kind, given, without_owner};
use super::{TABLES, date, toc::Run};
use crate::Error;
use gapscope_trace::Trace;
use gapscope_trace::manifest::*;
use gapscope_trace::tables::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The ids of the only process, device and queue.
const PROCESS: u32 = 1;
const DEVICE: u32 = 1;
const QUEUE: u32 = 1;

/// Puts a trace together.
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
        labels: LabelIds::default(),
        trace: Trace::default(),
        facts,
    };
    builder.note_missing_tables(run.as_ref());
    builder.replace_missing_intervals();
    builder.command_buffers();
    if builder.instances.is_empty() && builder.own_intervals() == 0 {
        return Err(Error::NothingRecorded {
            reason: builder.why_nothing(),
        });
    }
    builder.gpu_work();
    builder.host_work();
    builder.kernels();
    builder.memory();
    builder.audit();
    Ok(builder.finish(run, options))
}

/// The process whose work is wanted.
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
        [] => Err(Error::NothingRecorded {
            reason: "the exports have no Metal work of any process: export the tables metal-gpu-intervals and metal-application-command-buffer-submissions".to_owned(),
        }),
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

/// A command buffer that was committed. Metal 4 commits one several times.
struct Instance {
    id: u64,
    committed_ns: Option<i64>,
    seen_ns: Option<i64>,
    start_ns: i64,
    end_ns: i64,
    transfers: u32,
    positions: u32,
    label: Option<u32>,
    name: Option<String>,
}

struct Builder {
    pid: u32,
    name: String,
    /// The trace's start on the machine's clock.
    base_ns: i64,
    facts: Facts,
    instances: Vec<Instance>,
    /// Indices of `instances` by Metal's id, by commit.
    by_id: FxHashMap<u64, Vec<usize>>,
    labels: LabelIds,
    trace: Trace,
}

impl Builder {
    fn at(&self, ns: i64) -> i64 {
        self.base_ns.saturating_add(ns)
    }

    fn is_target(&self, pid: Option<u32>) -> bool {
        pid == Some(self.pid)
    }

    fn own_intervals(&self) -> usize {
        self.facts
            .intervals
            .iter()
            .filter(|i| self.is_target(i.pid))
            .count()
    }

    fn rows(&self, table: &str) -> u64 {
        self.facts.rows.get(table).copied().unwrap_or(0)
    }

    fn note_missing_tables(&mut self, run: Option<&Run>) {
        for table in TABLES.iter().filter(|table| table.needed) {
            if self.rows(table.schema) > 0 {
                continue;
            }
            let listed = run.is_some_and(|run| run.tables.iter().any(|t| t == table.schema));
            let why = match (run, listed) {
                (Some(_), true) => "the recording has the table and its export has no rows",
                (Some(_), false) => "the recording does not have the table",
                (None, _) => "the table is not among the exports",
            };
            self.facts
                .notes
                .push(format!("No {}: {why} ({}).", table.gives, table.schema));
        }
    }

    /// Where the intervals of the process are missing, begins and ends of GPU work may be there.
    fn replace_missing_intervals(&mut self) {
        if self.own_intervals() > 0 || self.facts.points.is_empty() {
            return;
        }
        let mut points = std::mem::take(&mut self.facts.points);
        let made = from_points(&mut points, &self.facts.gpu_submissions);
        let own = made.iter().filter(|i| self.is_target(i.pid)).count();
        if own > 0 {
            self.facts.notes.push(format!(
                "GPU times are made of {own} begins and ends of work (metal-gpu-execution-points), as metal-gpu-intervals has no rows of this process: kinds of work are not known."
            ));
            self.facts.intervals.extend(made);
        }
    }

    fn why_nothing(&self) -> String {
        let others = self.facts.intervals.len() + self.facts.submissions.len();
        let name = if self.name.is_empty() {
            "the process"
        } else {
            &self.name
        };
        match others {
            0 => format!(
                "Instruments recorded no Metal work of {name} ({pid}): it used no GPU through Metal, ended before it did, or this version of Instruments exports none of its kind",
                pid = self.pid
            ),
            _ => format!(
                "the exports have no Metal work of {name} ({pid}), only {others} rows of other processes: choose another process with --pid",
                pid = self.pid
            ),
        }
    }

    fn command_buffers(&mut self) {
        let mut submissions = std::mem::take(&mut self.facts.submissions);
        submissions.retain(|submission| self.is_target(submission.pid));
        submissions.sort_by_key(|s| (s.committed_ns, s.created_ns, s.command_buffer));
        let mut threads: BTreeMap<u32, String> = BTreeMap::new();
        let encoding = (!submissions.is_empty()).then(|| {
            self.labels
                .id(None, "Encoding", &mut self.trace.tables.labels)
        });
        let labels = self.command_buffer_labels();
        for submission in &submissions {
            let index = self.add_instance(submission.command_buffer, Some(submission.committed_ns));
            let thread = submission.thread.as_ref().map(|thread| {
                let id = thread_id(thread.tid);
                threads.entry(id).or_insert_with(|| thread.name.to_string());
                id
            });
            let at = self.at(submission.committed_ns);
            // Only the moment of the commit is known, not how long the call took.
            self.trace.tables.submissions.push(Submission {
                id: self.instances[index].id,
                process: PROCESS,
                queue: QUEUE,
                thread: thread.unwrap_or(0),
                begin_ns: at,
                end_ns: at,
                command_buffers: 1,
                ..Submission::default()
            });
            let label = labels.get(&submission.command_buffer).map(|label| &**label);
            let shown = label.unwrap_or("command buffer");
            let encoding = self
                .labels
                .id(encoding, shown, &mut self.trace.tables.labels);
            self.trace.tables.markers.push(Marker {
                process: PROCESS,
                scope: MarkerScope::Thread,
                label: encoding,
                thread,
                command_buffer: Some(self.instances[index].id),
                start_ns: Some(self.at(submission.created_ns)),
                duration_ns: Some(submission.committed_ns - submission.created_ns),
                ..Marker::default()
            });
            self.name_instance(index, label);
        }
        self.trace.manifest.threads = (threads.into_iter())
            .map(|(thread, name)| Thread {
                process: PROCESS,
                thread,
                name,
            })
            .collect();
    }

    /// Labels of command buffers that the program set, by Metal's id.
    fn command_buffer_labels(&self) -> FxHashMap<u64, Box<str>> {
        let own = self.facts.encoders.iter().filter(|e| self.is_target(e.pid));
        own.filter_map(|encoder| {
            let label = given(encoder.command_buffer_label.as_deref())?;
            Some((encoder.command_buffer?, Box::from(label)))
        })
        .collect()
    }

    fn name_instance(&mut self, index: usize, label: Option<&str>) {
        let Some(label) = label else { return };
        let id = self.labels.id(None, label, &mut self.trace.tables.labels);
        self.instances[index].label = Some(id);
        self.instances[index].name = Some(label.to_owned());
    }

    fn add_instance(&mut self, metal_id: u64, committed_ns: Option<i64>) -> usize {
        let index = self.instances.len();
        self.instances.push(Instance {
            id: index as u64 + 1,
            committed_ns,
            seen_ns: None,
            start_ns: i64::MAX,
            end_ns: i64::MIN,
            transfers: 0,
            positions: 0,
            label: None,
            name: None,
        });
        self.by_id.entry(metal_id).or_default().push(index);
        index
    }

    /// The instance of a command buffer that something at `ns` belongs to: the last that was committed before.
    fn instance_at(&self, metal_id: u64, ns: i64) -> Option<usize> {
        let indices = self.by_id.get(&metal_id)?;
        let before = |index: &&usize| self.instances[**index].committed_ns.is_none_or(|c| c <= ns);
        indices.iter().rfind(before).or(indices.first()).copied()
    }

    fn gpu_work(&mut self) {
        let (pieces, refused) = pieces(&self.facts.intervals, self.pid);
        self.facts.lose(
            refused,
            "GPU intervals".to_owned(),
            "their times are impossible".to_owned(),
        );
        let encoders: FxHashMap<u64, Encoder> = (self.facts.encoders.iter())
            .filter(|encoder| self.is_target(encoder.pid))
            .map(|encoder| (encoder.encoder, encoder.clone()))
            .collect();
        let labels = self.command_buffer_labels();
        let (mut adopted, mut homeless, mut unlabelled) = (0, 0, 0);
        for piece in &pieces {
            let encoder = piece.encoder.and_then(|id| encoders.get(&id));
            let metal_id = piece
                .command_buffer
                .or(encoder.and_then(|e| e.command_buffer));
            let instance = metal_id.map(|metal_id| {
                self.instance_at(metal_id, piece.start_ns)
                    .unwrap_or_else(|| {
                        adopted += 1;
                        let index = self.add_instance(metal_id, None);
                        self.name_instance(index, labels.get(&metal_id).map(|label| &**label));
                        index
                    })
            });
            homeless += u64::from(instance.is_none());
            unlabelled += u64::from(!self.push_piece(piece, encoder, instance));
        }
        self.facts.lose(
            adopted,
            "commits of command buffers".to_owned(),
            "they ran on the GPU and have no row of their commit: they were committed before the recording began, or the table was not exported".to_owned(),
        );
        self.facts.lose(
            homeless,
            "command buffers of pieces of GPU work".to_owned(),
            "Instruments does not say which command buffer they belong to".to_owned(),
        );
        if unlabelled > 0 && unlabelled == pieces.len() as u64 {
            self.facts.notes.push(
                "No command buffer or encoder has a label, so GPU time cannot be attributed to parts of the program: set the labels of command buffers and encoders before endEncoding (MLX does when it is built with MLX_METAL_DEBUG).".to_owned(),
            );
        }
    }

    /// Adds the row of a piece. False: it has no label.
    fn push_piece(
        &mut self,
        piece: &Piece,
        encoder: Option<&Encoder>,
        instance: Option<usize>,
    ) -> bool {
        let encoder_text = encoder.and_then(|e| e.label.as_deref());
        let around = instance.and_then(|index| self.instances[index].label);
        let label = match given(encoder_text) {
            Some(text) => Some(self.labels.id(around, text, &mut self.trace.tables.labels)),
            None => around,
        };
        // Apple's GPUs run blits on the compute channel; the name that Instruments gives tells them.
        let blit_by_name = encoder_text.and_then(default_kind) == Some("Blit Command");
        let (command_buffer, position) = match instance.map(|index| &mut self.instances[index]) {
            Some(instance) => {
                instance.start_ns = instance.start_ns.min(piece.start_ns);
                instance.end_ns = instance.end_ns.max(piece.end_ns);
                instance.positions += 1;
                (Some(instance.id), instance.positions - 1)
            }
            None => (None, 0),
        };
        let (start_ns, duration_ns) = (
            Some(self.at(piece.start_ns)),
            Some(piece.end_ns - piece.start_ns),
        );
        if piece.channel == Channel::Blit || blit_by_name {
            if let Some(index) = instance {
                self.instances[index].transfers += 1;
            }
            self.trace.tables.transfers.push(Transfer {
                command_buffer,
                position,
                queue: QUEUE,
                kind: TransferKind::Unknown,
                start_ns,
                duration_ns,
                label,
                ..Transfer::default()
            });
        } else {
            let kind = match piece.channel {
                Channel::Compute => OpaqueWorkKind::ComputePass,
                Channel::Render => OpaqueWorkKind::RenderPass,
                Channel::Blit | Channel::Other => OpaqueWorkKind::Other,
            };
            self.trace.tables.opaque_work.push(OpaqueWorkRow {
                command_buffer,
                position,
                queue: QUEUE,
                kind,
                start_ns,
                duration_ns,
                label,
                ..OpaqueWorkRow::default()
            });
        }
        label.is_some()
    }

    fn host_work(&mut self) {
        let host = std::mem::take(&mut self.facts.host);
        for interval in host
            .iter()
            .filter(|interval| interval.pid == Some(self.pid))
        {
            let HostInterval { group, text, .. } = interval;
            let text = without_owner(text, &self.name, self.pid).to_owned();
            let labels = &mut self.trace.tables.labels;
            let group = self.labels.id(None, group, labels);
            let label = self.labels.id(Some(group), &text, labels);
            self.trace.tables.markers.push(Marker {
                process: PROCESS,
                scope: MarkerScope::Thread,
                label,
                thread: interval.thread.as_ref().map(|thread| thread_id(thread.tid)),
                start_ns: Some(self.at(interval.start_ns)),
                duration_ns: Some(interval.duration_ns),
                ..Marker::default()
            });
        }
        for (at_ns, metal_id) in std::mem::take(&mut self.facts.completions) {
            // A command buffer is seen finished once; of several commits, the one that it follows.
            if let Some(index) = self.instance_at(metal_id, at_ns) {
                let seen = &mut self.instances[index].seen_ns;
                *seen = Some(seen.map_or(at_ns, |seen| seen.min(at_ns)));
            }
        }
        let errors = std::mem::take(&mut self.facts.errors);
        let own: BTreeSet<u64> = (errors.iter())
            .filter(|(_, metal_id, _)| self.by_id.contains_key(metal_id))
            .map(|(.., code)| *code)
            .collect();
        if !own.is_empty() {
            let count = errors
                .iter()
                .filter(|(_, id, _)| self.by_id.contains_key(id))
                .count();
            let codes: Vec<String> = own.iter().map(u64::to_string).collect();
            self.facts.notes.push(format!(
                "{count} command buffers ended with an error (MTLCommandBufferError {}): what they computed is not valid.",
                codes.join(", ")
            ));
        }
    }

    fn kernels(&mut self) {
        let mut seen: BTreeSet<(u64, String)> = BTreeSet::new();
        for shader in std::mem::take(&mut self.facts.shaders) {
            let compute = shader
                .shader_type
                .as_deref()
                .is_none_or(|kind| kind == "Compute");
            if !self.is_target(shader.pid) || !compute {
                continue;
            }
            // Instruments puts its id behind the name.
            let suffix = format!(" ({})", shader.id);
            let entry = shader
                .name
                .strip_suffix(suffix.as_str())
                .unwrap_or(&shader.name);
            if !seen.insert((shader.id, entry.to_owned())) {
                continue;
            }
            let (name, name_source) = match &shader.label {
                Some(label) => (label.to_string(), NameSource::ObjectName),
                None => (entry.to_owned(), NameSource::EntryPoint),
            };
            self.trace.tables.kernels.push(Kernel {
                id: seen.len() as u32,
                process: PROCESS,
                name,
                name_source,
                entry_point: Some(entry.to_owned()),
                ..Kernel::default()
            });
        }
    }

    fn memory(&mut self) {
        let mut allocations = std::mem::take(&mut self.facts.allocations);
        allocations.retain(|allocation| self.is_target(allocation.pid));
        allocations.sort_by_key(|allocation| (allocation.at_ns, allocation.resource));
        let mut rows = Vec::new();
        for (allocation, id) in allocations.iter().zip(1u32..) {
            let row = |at_ns, event| MemoryRow {
                process: PROCESS,
                device: DEVICE,
                at_ns: self.at(at_ns),
                event,
                allocation: id,
                bytes: allocation.bytes,
                heap: 0,
            };
            rows.push(row(allocation.at_ns, MemoryEvent::Allocate));
            if let Some(lifetime_ns) = allocation.lifetime_ns {
                rows.push(row(
                    allocation.at_ns.saturating_add(lifetime_ns),
                    MemoryEvent::Free,
                ));
            }
        }
        rows.sort_by_key(|row| row.at_ns);
        for row in rows {
            self.trace.tables.memory.push(row);
        }
    }

    /// What else may have moved the numbers: other processes, heat, clocks, spills.
    fn audit(&mut self) {
        let times = |intervals: &[&GpuInterval]| {
            union_ns(
                (intervals.iter())
                    .map(|i| (i.start_ns, i.start_ns.saturating_add(i.duration_ns)))
                    .collect(),
            )
        };
        let mut others: BTreeMap<u32, Vec<&GpuInterval>> = BTreeMap::new();
        for interval in &self.facts.intervals {
            if let Some(pid) = interval.pid.filter(|pid| *pid != self.pid) {
                others.entry(pid).or_default().push(interval);
            }
        }
        let mut found: Vec<(i64, u32)> =
            others.iter().map(|(pid, own)| (times(own), *pid)).collect();
        found.sort_by_key(|(ns, pid)| (std::cmp::Reverse(*ns), *pid));
        let mut notes = Vec::new();
        if !found.is_empty() {
            let named: Vec<String> = (found.iter().take(3))
                .map(|(ns, pid)| {
                    let name = self.facts.processes.get(pid).map_or("process", |name| name);
                    format!("{name} ({pid}) {}", milliseconds(*ns))
                })
                .collect();
            notes.push(format!(
                "Other processes used the GPU meanwhile, which may be the cause of gaps: {}; their work is not in this trace.",
                named.join(", ")
            ));
        } else if !self.facts.active.is_empty() {
            let whole = union_ns(
                (self.facts.active.iter())
                    .map(|(s, d)| (*s, s.saturating_add(*d)))
                    .collect(),
            );
            let own: Vec<&GpuInterval> = self.facts.intervals.iter().collect();
            let rest = whole.saturating_sub(times(&own));
            if rest > whole / 100 {
                notes.push(format!(
                    "The GPU was active for {} more than this process's work explains: other processes used it, which may be the cause of gaps.",
                    milliseconds(rest)
                ));
            }
        }
        for (what, states, normal) in [
            ("thermal state", &self.facts.thermal_ns, Some("Nominal")),
            (
                "performance state of the GPU",
                &self.facts.performance_ns,
                None,
            ),
        ] {
            let all: i64 = states.values().fold(0, |sum, ns| sum.saturating_add(*ns));
            let odd = states.keys().any(|state| Some(&**state) != normal);
            if all > 0 && odd {
                let parts: Vec<String> = (states.iter())
                    .map(|(state, ns)| format!("{state} {}", milliseconds(*ns)))
                    .collect();
                notes.push(format!(
                    "The {what} was {} of the recording.",
                    parts.join(", ")
                ));
            }
        }
        let spills = self
            .facts
            .spills
            .iter()
            .filter(|(_, pid)| self.is_target(*pid));
        let (count, most) = spills.fold((0u64, 0u64), |(n, most), (bytes, _)| {
            (n + 1, most.max(*bytes))
        });
        if count > 0 {
            notes.push(format!(
                "Shaders spilled registers to memory in {count} events, up to {most} bytes a thread."
            ));
        }
        self.facts.notes.extend(notes);
    }

    fn finish(mut self, run: Option<Run>, options: &Options) -> Trace {
        let lived = self
            .instances
            .iter()
            .filter(|i| i.start_ns <= i.end_ns)
            .filter_map(|i| {
                Some(Lived {
                    committed_ns: i.committed_ns?,
                    start_ns: i.start_ns,
                    end_ns: i.end_ns,
                    seen_ns: i.seen_ns,
                })
            });
        let bound = clock::bound(lived);
        let instances = std::mem::take(&mut self.instances);
        let mut untimed = 0;
        for instance in &instances {
            let timed = instance.start_ns <= instance.end_ns;
            untimed += u64::from(!timed);
            let row = CommandBuffer {
                id: instance.id,
                process: PROCESS,
                queue: QUEUE,
                submission: instance.id,
                start_ns: timed.then(|| self.at(instance.start_ns)),
                duration_ns: timed.then(|| instance.end_ns - instance.start_ns),
                seen_ns: instance.seen_ns.map(|ns| self.at(ns)),
                timing: if timed {
                    Timing::Measured
                } else {
                    Timing::Unknown
                },
                dispatches: 0,
                transfers: instance.transfers,
                label: instance.label,
                name: instance.name.clone(),
            };
            self.trace.tables.command_buffers.push(row);
        }
        let own = self.own_intervals();
        self.facts.lose(
            untimed,
            "times of command buffers".to_owned(),
            match own {
                0 => "Instruments exported no GPU intervals of this process, as it does on some systems for compute work".to_owned(),
                _ => "no GPU interval names them: they were empty, or ran outside the recording".to_owned(),
            },
        );
        self.facts.lose(
            instances.len() as u64,
            "command buffers whose dispatches are not listed".to_owned(),
            "Instruments records encoders, not dispatches".to_owned(),
        );
        let samples = self.facts.shader_samples;
        self.facts.lose(
            samples,
            "samples of the shader profiler".to_owned(),
            "they are no dispatches, and are not imported".to_owned(),
        );
        if bound.contradictions > 0 {
            self.facts.notes.push(format!(
                "{} command buffers seem to run before their commit or after they were seen finished; the error bound of the GPU's times covers that.",
                bound.contradictions
            ));
        }
        self.facts.notes.push(
            "Instruments does not name command queues: all command buffers are on one queue here."
                .to_owned(),
        );
        if self.facts.epoch_ns.is_none() {
            self.facts.notes.push(
                "Times count from the start of the recording, as the table time-info is not there."
                    .to_owned(),
            );
        }
        let run = run.unwrap_or_default();
        let end_ns = self.end_ns(&run);
        let command = options.command.clone().unwrap_or_else(|| {
            [
                run.process_name.clone().or(Some(self.name.clone())),
                run.arguments.clone(),
            ]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect()
        });
        let gpu = self
            .facts
            .gpu
            .clone()
            .or_else(|| self.facts.gpus.keys().next().cloned());
        if self.facts.gpus.len() > 1 {
            self.facts
                .notes
                .push("Work of several GPUs is on one device here.".to_owned());
        }
        self.facts.notes.extend(options.notes.iter().cloned());
        self.trace.manifest = Manifest {
            format_version: FORMAT_VERSION,
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: true,
            rank: None,
            ranks: Vec::new(),
            command: command.clone(),
            exit: run.exit(),
            sampling_mode: SamplingMode::Pass,
            start_ns: self.base_ns,
            end_ns: self.at(end_ns),
            start_unix_ns: run
                .start_date
                .as_deref()
                .and_then(date::unix_ns)
                .unwrap_or(0),
            host: Host {
                system: run.system.clone().unwrap_or_else(|| "macOS".to_owned()),
                processor: run.model.clone().unwrap_or_default(),
                cores: 0,
            },
            processes: vec![Process {
                id: PROCESS,
                pid: self.pid,
                parent_pid: 0,
                executable: run
                    .process_name
                    .clone()
                    .unwrap_or_else(|| self.name.clone()),
                arguments: command.into_iter().skip(1).collect(),
                hook: match &run.instruments_version {
                    Some(version) => format!("Instruments {version}"),
                    None => "Instruments".to_owned(),
                },
                start_ns: self.base_ns,
                end_ns: None,
            }],
            threads: std::mem::take(&mut self.trace.manifest.threads),
            devices: vec![Device {
                id: DEVICE,
                process: PROCESS,
                api: "metal".to_owned(),
                name: gpu.map_or_else(|| "unknown GPU".to_owned(), |name| name.to_string()),
                clock: Clock {
                    method: if bound.samples > 0 {
                        ClockMethod::Brackets
                    } else {
                        ClockMethod::None
                    },
                    error_ns: bound.error_ns,
                    samples: bound.samples,
                    drift_ppm: None,
                    nanoseconds_per_tick: 1.0,
                },
                ..Device::default()
            }],
            queues: vec![Queue {
                id: QUEUE,
                device: DEVICE,
                capabilities: ["graphics", "compute", "transfer"]
                    .map(str::to_owned)
                    .to_vec(),
                timestamp_bits: 64,
                name: Some("all command queues".to_owned()),
                ..Queue::default()
            }],
            losses: std::mem::take(&mut self.facts.losses),
            notes: std::mem::take(&mut self.facts.notes),
        };
        self.trace
    }

    /// When the recording ended: as the table of contents says, and not before the last work.
    fn end_ns(&self, run: &Run) -> i64 {
        let tables = &self.trace.tables;
        let ends = |starts: &[Option<i64>], durations: &[Option<i64>]| {
            (starts.iter().zip(durations))
                .filter_map(|(start, duration)| Some((*start)?.saturating_add((*duration)?)))
                .max()
        };
        let last = [
            ends(
                &tables.opaque_work.start_ns,
                &tables.opaque_work.duration_ns,
            ),
            ends(&tables.transfers.start_ns, &tables.transfers.duration_ns),
            ends(&tables.markers.start_ns, &tables.markers.duration_ns),
            tables.submissions.end_ns.iter().copied().max(),
        ];
        let last = last.into_iter().flatten().max().unwrap_or(self.base_ns);
        run.duration_ns
            .unwrap_or(0)
            .max(last.saturating_sub(self.base_ns))
    }
}

/// Mach's thread ids are counted from the machine's start and fit in practice.
fn thread_id(tid: u64) -> u32 {
    u32::try_from(tid).unwrap_or(u32::MAX)
}

fn milliseconds(ns: i64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}
