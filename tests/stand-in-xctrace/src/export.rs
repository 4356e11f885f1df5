//! Exports a scene as xctrace does.

use crate::document::{Cell, EMPTY, escaped, write};
use crate::quirks::Quirks;
use crate::scene::{CommandBuffer, Encoder, EncoderKind, GpuRow, Process, Scene};
use crate::schemas::SCHEMAS;
use std::fmt::Write;

const GPU: &str = "M3 Ultra";
/// The value that stands for a missing id.
const NO_ID: u64 = u64::MAX;

impl Scene {
    /// Returns what `xctrace export --toc` writes.
    pub fn toc(&self) -> String {
        let Scene {
            process, arguments, ..
        } = self;
        let mut text = String::from("<?xml version=\"1.0\"?>\n<trace-toc>\n");
        let _ = write!(
            text,
            "<run number=\"1\"><info><target><device platform=\"macOS\" model=\"Mac Studio\" name=\"somebody's Mac\" os-version=\"27.2 (27C5019j)\" uuid=\"SECRET-UUID\"/>\
             <process type=\"launched\" return-exit-status=\"{}\" termination-reason=\"exit({})\" arguments=\"{}\" name=\"{}\" pid=\"{}\"/></target>\
             <environment><item key=\"TOKEN\" value=\"SECRET-TOKEN\"/></environment>\
             <summary><start-date>2026-09-25T02:18:16.751+03:00</start-date><end-date>2026-09-25T02:18:22.826+03:00</end-date>\
             <duration>{}.{:09}</duration><end-reason>Target app exited</end-reason><instruments-version>27.2 (27B5019j)</instruments-version>\
             <template-name>Metal System Trace</template-name><recording-mode>Deferred</recording-mode><time-limit>2 minutes</time-limit></summary></info>\n<data>\n",
            self.exit_status,
            self.exit_status,
            escaped(arguments),
            escaped(&process.name),
            process.pid,
            self.duration_ns / 1_000_000_000,
            self.duration_ns % 1_000_000_000,
        );
        for (schema, _) in SCHEMAS.iter() {
            let _ = writeln!(text, "<table schema=\"{schema}\" target-pid=\"SINGLE\"/>");
        }
        text.push_str("</data></run></trace-toc>\n");
        text
    }

    /// Returns what `xctrace export --xpath …/table[@schema="SCHEMA"]` writes: an empty result for an unknown schema.
    pub fn table(&self, schema: &str, quirks: &Quirks) -> String {
        let Some((_, columns)) = SCHEMAS.iter().find(|(name, _)| *name == schema) else {
            return EMPTY.to_owned();
        };
        write(schema, columns, &self.rows(schema, quirks), quirks)
    }

    fn rows(&self, schema: &str, quirks: &Quirks) -> Vec<Vec<Cell<'_>>> {
        match schema {
            "time-info" => vec![vec![
                Cell::time(0),
                Cell::number(self.epoch_ticks),
                Cell::number(self.epoch_ticks),
                Cell::text("125/3"),
                Cell::text("25/9/26, 2:18:16 AM"),
            ]],
            "metal-gpu-info" => vec![vec![
                Cell::time(0),
                Cell::text(GPU),
                Cell::number(1),
                Cell::number(1463),
                Cell::text("Yes"),
            ]],
            "metal-gpu-intervals" => self.gpu_intervals(quirks),
            "metal-application-command-buffer-submissions" => self.submissions(),
            "metal-application-encoders-list" => self.encoders_list(),
            "metal-command-buffer-completed" => (self.command_buffers.iter())
                .filter_map(|cb| {
                    Some(vec![
                        Cell::time(cb.completed_ns?),
                        Cell::id(cb.id),
                        Cell::number(0),
                    ])
                })
                .collect(),
            "metal-application-event-interval" => (self.debug_groups.iter())
                .map(|group| {
                    vec![
                        Cell::time(group.start_ns),
                        Cell::duration(group.duration_ns),
                        Cell::number(0),
                        Cell::text(GPU),
                        Cell::text("Debug Groups"),
                        Cell::Process(&self.process),
                        Cell::Thread(&self.thread, &self.process),
                        Cell::Label(group.text.clone(), &self.process),
                        Cell::id(1),
                        Cell::number(0),
                        Cell::number(57119),
                    ]
                })
                .collect(),
            "os-signpost" => self.signpost_rows(),
            "metal-shader-profiler-shader-list" => (self.shaders.iter().zip(1u64..))
                .map(|(name, id)| {
                    vec![
                        Cell::time(0),
                        Cell::text(format!("{name} ({id})")),
                        Cell::Null,
                        Cell::text(format!("{name} ({id})")),
                        Cell::number(id),
                        Cell::number(1 << 40),
                        Cell::number((1 << 40) + 90),
                        Cell::text("Compute"),
                        Cell::Process(&self.process),
                        Cell::text(GPU),
                    ]
                })
                .collect(),
            "metal-resource-allocations" => self.resource_allocations(),
            "metal-gpu-state-intervals" => self.states(),
            "metal-gpu-execution-points" if quirks.no_points => Vec::new(),
            "metal-gpu-execution-points" => self.points(),
            "metal-gpu-submission-to-command-buffer-id" => self.gpu_submissions(),
            "device-thermal-state-intervals" => vec![vec![
                Cell::time(0),
                Cell::duration(self.duration_ns),
                Cell::time(self.duration_ns),
                Cell::text("Nominal"),
                Cell::text("Current"),
                Cell::text("No"),
                Cell::text("Nominal thermal state"),
            ]],
            _ => Vec::new(),
        }
    }

    /// Returns the encoders, each with its command buffer and its position there.
    fn encoders(&self) -> impl Iterator<Item = (&CommandBuffer, usize, &Encoder)> {
        self.command_buffers.iter().flat_map(|cb| {
            let numbered = cb.encoders.iter().enumerate();
            numbered.map(move |(n, encoder)| (cb, n, encoder))
        })
    }

    fn gpu_intervals(&self, quirks: &Quirks) -> Vec<Vec<Cell<'_>>> {
        let mut rows = Vec::new();
        for (cb, n, encoder) in self.encoders().filter(|_| !quirks.no_gpu_rows) {
            let label = format!("{}:{}", cb.shown(), encoder.shown(n));
            for run in &encoder.gpu {
                let interval = GpuInterval {
                    run: *run,
                    committed_ns: cb.committed_ns,
                    label: &label,
                    process: &self.process,
                    channel: encoder.channel(),
                    command_buffer: cb.id,
                    encoder: encoder.id,
                };
                rows.push(interval.row());
            }
        }
        for other in &self.others {
            let interval = GpuInterval {
                run: GpuRow {
                    start_ns: other.start_ns,
                    duration_ns: other.duration_ns,
                    depth: 0,
                },
                committed_ns: other.start_ns,
                label: "Compositor:Render",
                process: &other.process,
                channel: "Fragment",
                command_buffer: 1,
                encoder: 2,
            };
            rows.push(interval.row());
        }
        rows
    }

    fn submissions(&self) -> Vec<Vec<Cell<'_>>> {
        (self.command_buffers.iter().zip(1u64..))
            .map(|(cb, frame)| {
                let duration = cb.committed_ns - cb.created_ns;
                let count = cb.encoders.len();
                vec![
                    Cell::time(cb.created_ns),
                    Cell::duration(duration),
                    Cell::text("CommandBufferSubmission"),
                    Cell::text(GPU),
                    Cell::Null,
                    Cell::number(count as u64),
                    Cell::duration(duration / 2),
                    Cell::Process(&self.process),
                    Cell::Thread(&self.thread, &self.process),
                    Cell::text("Green"),
                    Cell::text(format!(
                        "Committed \"{}\" with {count} encoders",
                        cb.shown()
                    )),
                    Cell::text("Metal Encoder duration"),
                    Cell::number(frame),
                    Cell::number(0),
                    Cell::id(cb.id),
                ]
            })
            .collect()
    }

    fn encoders_list(&self) -> Vec<Vec<Cell<'_>>> {
        self.encoders()
            .map(|(cb, n, encoder)| {
                vec![
                    Cell::time(cb.created_ns + 10),
                    Cell::duration((cb.committed_ns - cb.created_ns) / 2),
                    Cell::Thread(&self.thread, &self.process),
                    Cell::Process(&self.process),
                    Cell::text(GPU),
                    Cell::text("Frame 1"),
                    Cell::text(cb.shown()),
                    Cell::text(format!("[0] {}", cb.shown())),
                    Cell::text(encoder.shown(n)),
                    Cell::text(format!("[{n}] {}", encoder.shown(n))),
                    Cell::text("Encoding"),
                    Cell::id(cb.id),
                    Cell::id(encoder.id),
                ]
            })
            .collect()
    }

    fn signpost_rows(&self) -> Vec<Vec<Cell<'_>>> {
        let rows = self.signposts.iter().map(|signpost| {
            vec![
                Cell::time(signpost.at_ns),
                Cell::Thread(&self.thread, &self.process),
                Cell::Process(&self.process),
                Cell::text(signpost.event_type),
                Cell::text("Process"),
                Cell::number(signpost.id),
                Cell::text("label"),
                Cell::text("%{public}s"),
                Cell::Null,
                Cell::text(signpost.subsystem),
                Cell::text("PointsOfInterest"),
                match signpost.message.as_str() {
                    "" => Cell::Null,
                    message => Cell::Metadata(message.to_owned()),
                },
                Cell::Null,
            ]
        });
        rows.collect()
    }

    fn resource_allocations(&self) -> Vec<Vec<Cell<'_>>> {
        (self.allocations.iter().zip(0x15_4d18_0000u64..))
            .map(|(allocation, id)| {
                vec![
                    Cell::time(allocation.at_ns),
                    allocation.lifetime_ns.map_or(Cell::Null, Cell::duration),
                    Cell::Process(&self.process),
                    Cell::Thread(&self.thread, &self.process),
                    Cell::id(id),
                    Cell::id(NO_ID),
                    Cell::text(format!("Resource {id:#x}")),
                    Cell::Null,
                    Cell::number(allocation.bytes),
                    Cell::number(allocation.bytes),
                    Cell::text("Resource"),
                    Cell::text(GPU),
                    Cell::text("Buffer"),
                    Cell::text("Allocation"),
                    Cell::Null,
                    Cell::text("Buffer"),
                ]
            })
            .collect()
    }

    fn gpu_runs(&self) -> impl Iterator<Item = GpuRun> {
        let runs = self.encoders().flat_map(|(cb, _, encoder)| {
            let rows = encoder.gpu.iter();
            rows.map(move |row| (cb.id, encoder.id, *row))
        });
        let numbered = runs.zip(0x4e18_9059u64..);
        numbered.map(|((command_buffer, encoder, row), submission)| GpuRun {
            submission,
            command_buffer,
            encoder,
            row,
        })
    }

    fn points(&self) -> Vec<Vec<Cell<'_>>> {
        let point = |at: i64, function: u64, id: u64| {
            vec![
                Cell::time(at),
                Cell::id(0x12_3459),
                Cell::number(function),
                Cell::number(id),
                Cell::id(id),
                Cell::number(NO_ID),
                Cell::Null,
            ]
        };
        self.gpu_runs()
            .flat_map(
                |GpuRun {
                     submission, row, ..
                 }| {
                    [
                        point(row.start_ns, 1, submission),
                        point(row.start_ns + row.duration_ns, 2, submission),
                    ]
                },
            )
            .collect()
    }

    fn gpu_submissions(&self) -> Vec<Vec<Cell<'_>>> {
        self.gpu_runs()
            .map(|run| {
                vec![
                    Cell::time(run.row.start_ns - 1000),
                    Cell::id(run.command_buffer),
                    Cell::id(run.submission),
                    Cell::id(run.submission + (21 << 32)),
                    Cell::id(0),
                    Cell::id(run.encoder),
                    Cell::number(1463),
                    Cell::id(NO_ID),
                    Cell::number(0),
                    Cell::number(0),
                    Cell::number(0),
                    Cell::number(u64::from(self.process.pid)),
                    Cell::Process(&self.process),
                    Cell::number(1),
                    Cell::number(0),
                    Cell::number(0),
                ]
            })
            .collect()
    }

    fn states(&self) -> Vec<Vec<Cell<'_>>> {
        let active = |start_ns, duration_ns| {
            vec![
                Cell::time(start_ns),
                Cell::duration(duration_ns),
                Cell::text("Active"),
                Cell::text("1 channels active"),
                Cell::number(3),
                Cell::number(1),
                Cell::text(GPU),
            ]
        };
        let own = self.gpu_runs().map(|run| run.row);
        let own = own.map(|row| active(row.start_ns, row.duration_ns));
        let others = self.others.iter();
        let others = others.map(|other| active(other.start_ns, other.duration_ns));
        own.chain(others).collect()
    }
}

/// A run of an encoder on the GPU.
struct GpuRun {
    submission: u64,
    command_buffer: u64,
    encoder: u64,
    row: GpuRow,
}

/// A row of `metal-gpu-intervals`.
struct GpuInterval<'a, 'label> {
    run: GpuRow,
    committed_ns: i64,
    label: &'label str,
    process: &'a Process,
    channel: &'static str,
    command_buffer: u64,
    encoder: u64,
}

impl<'a> GpuInterval<'a, '_> {
    fn row(self) -> Vec<Cell<'a>> {
        vec![
            Cell::time(self.run.start_ns),
            Cell::duration(self.run.duration_ns),
            Cell::text(self.channel),
            Cell::text("Frame 1"),
            Cell::duration(self.run.start_ns - self.committed_ns),
            Cell::number(self.run.depth),
            Cell::Label(self.label.to_owned(), self.process),
            Cell::text("Active"),
            Cell::number(1),
            Cell::number(0),
            Cell::Process(self.process),
            Cell::text(GPU),
            Cell::Null,
            Cell::Null,
            Cell::number(0),
            Cell::id(self.command_buffer),
            Cell::id(self.encoder),
            Cell::number(1_310_232_665),
        ]
    }
}

impl CommandBuffer {
    /// Returns its label, or Instruments' name for a command buffer without one.
    fn shown(&self) -> String {
        match self.label.as_str() {
            "" => "Command Buffer 0".to_owned(),
            label => label.to_owned(),
        }
    }
}

impl Encoder {
    fn shown(&self, index: usize) -> String {
        let kind = match self.kind {
            EncoderKind::Compute => "Compute",
            EncoderKind::Blit => "Blit",
            EncoderKind::Render => "Render",
        };
        match self.label.as_str() {
            "" => format!("{kind} Command {index}"),
            label => label.to_owned(),
        }
    }

    /// Returns the channel; Apple's GPUs run blits on the compute channel.
    fn channel(&self) -> &'static str {
        match self.kind {
            EncoderKind::Compute | EncoderKind::Blit => "Compute",
            EncoderKind::Render => "Fragment",
        }
    }
}
