//! Completes a trace with the rows of command buffers (an instance is one commit), the losses and the manifest.

use super::super::clock::{self, Lifetime};
use super::super::date;
use super::super::toc::Run;
use super::{Builder, DEVICE, PROCESS, QUEUE};
use crate::Options;
use gapscope_model::Span;
use gapscope_timeline_builder::rows;
use gapscope_trace::manifest::*;
use gapscope_trace::optional::Optional;
use gapscope_trace::tables::CommandBuffer;
use gapscope_trace::{LossKind, Trace};

impl Builder {
    /// Completes and returns the trace. `run` has the facts of the table of contents; `None` without a table.
    pub(super) fn finish(mut self, run: Option<Run>, options: &Options) -> Trace {
        let lifetimes = self
            .instances
            .iter()
            .filter(|i| i.start_ns <= i.end_ns)
            .filter_map(|i| {
                Some(Lifetime {
                    committed_ns: i.committed_ns?,
                    start_ns: i.start_ns,
                    end_ns: i.end_ns,
                    seen_ns: i.seen_ns,
                })
            });
        let bound = clock::bound(lifetimes);
        let instances = std::mem::take(&mut self.instances);
        let mut untimed = 0;
        for instance in &instances {
            let timed = instance.start_ns <= instance.end_ns;
            untimed += u64::from(!timed);
            let span =
                timed.then(|| Span::between(self.at(instance.start_ns), self.at(instance.end_ns)));
            let submission = Some(instance.submission());
            let counts = (0, instance.transfers);
            let row = rows::graph_launch(instance.id, (PROCESS, QUEUE), submission, span, counts);
            let row = CommandBuffer {
                seen_ns: instance.seen_ns.map(|ns| self.at(ns)),
                label: instance.label,
                name: instance.name.clone().map(Into::into),
                ..row
            };
            rows::command_buffer(&mut self.trace.tables, row);
        }
        let own = self.own_intervals();
        let losses = &mut self.facts.losses;
        losses.add(
            LossKind::ImportedCommandBufferTimes,
            untimed,
            match own {
                0 => "Instruments exported no GPU intervals of this process, as it does on some systems for compute work",
                _ => "no GPU interval names them: they were empty, or ran outside the recording",
            },
        );
        losses.add(
            LossKind::UnlistedDispatches,
            instances.len() as u64,
            "Instruments records encoders, not dispatches",
        );
        losses.add(
            LossKind::ShaderProfilerSamples,
            self.facts.shader_samples,
            "they are not dispatches, and are not imported",
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
        let notes = options.notes.iter().chain(&options.unread_ends);
        self.facts.notes.extend(notes.cloned());
        self.trace.manifest = Manifest {
            format_version: FORMAT_VERSION,
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: true,
            command: command.clone(),
            exit: run.exit(),
            sampling_mode: SamplingMode::Pass,
            start_ns: self.base_ns,
            end_ns: self.at(end_ns),
            start_unix_ns: run.start_date.as_deref().and_then(date::unix_ns),
            host: Host {
                system: run.system.clone().unwrap_or_else(|| "macOS".to_owned()),
                processor: run.model.clone().unwrap_or_default(),
                ..Host::default()
            },
            processes: vec![Process {
                id: PROCESS,
                pid: self.pid,
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
                ..Process::default()
            }],
            threads: std::mem::take(&mut self.trace.manifest.threads),
            devices: vec![Device {
                id: DEVICE,
                process: PROCESS,
                api: Api::Metal,
                name: gpu.map_or_else(|| "unknown GPU".to_owned(), |name| name.to_string()),
                clock: Clock {
                    method: match bound.samples {
                        0 => ClockMethod::None,
                        _ => ClockMethod::Brackets,
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
                timestamp_bits: 64,
                name: Some("all command queues".to_owned()),
                ..Queue::default()
            }],
            losses: self.facts.losses.losses(),
            notes: std::mem::take(&mut self.facts.notes),
            ..Manifest::default()
        };
        self.labels.push_into(&mut self.trace.tables.labels);
        self.trace
    }

    /// Returns the end of the recording, in nanoseconds from its start: the end in the table of contents, or the end
    /// of the last work if that is later.
    fn end_ns(&self, run: &Run) -> i64 {
        let tables = &self.trace.tables;
        let ends = |starts: &Optional<i64>, durations: &Optional<i64>| {
            (starts.iter().zip(durations))
                .filter_map(|(start, duration)| Some(start?.saturating_add(duration?)))
                .max()
        };
        let last = [
            ends(
                &tables.opaque_work.start_ns,
                &tables.opaque_work.duration_ns,
            ),
            ends(&tables.transfers.start_ns, &tables.transfers.duration_ns),
            ends(&tables.markers.start_ns, &tables.markers.duration_ns),
            tables.submissions.start_ns.iter().copied().max(),
        ];
        let last = last.into_iter().flatten().max().unwrap_or(self.base_ns);
        run.duration_ns
            .unwrap_or(0)
            .max(last.saturating_sub(self.base_ns))
    }
}
