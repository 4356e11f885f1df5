//! Collects the facts of the rows of all exports, by table, for the builder of the trace. [`Facts::add`] takes each
//! row, [`Facts::add_summary`] each file, then [`Facts::finish`] counts what was lost. Times are nanoseconds from the
//! start of the recording.

pub(super) mod records;
mod tables;

use super::cell::Process;
use super::intervals::Span;
use super::row::{Row, Schema};
use super::summary::{Ending, Summary};
use super::toc::Toc;
use gapscope_trace::{Ledger, LossKind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use tables::columns;

pub(crate) use records::*;
pub(crate) use tables::TABLES;

/// The facts of the rows of all files.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub toc: Option<Toc>,
    /// Mach's absolute time at the trace's start, in nanoseconds.
    pub epoch_ns: Option<i64>,
    /// The name of the GPU, and the numbers of intervals of each GPU that intervals name.
    pub gpu: Option<Rc<str>>,
    pub gpus: BTreeMap<Rc<str>, u64>,
    pub intervals: Vec<GpuInterval>,
    pub submissions: Vec<Submission>,
    pub encoders: Vec<Encoder>,
    pub completions: Vec<Completion>,
    pub failures: Vec<Failure>,
    pub host: Vec<HostInterval>,
    pub signposts: Vec<Signpost>,
    pub shaders: Vec<Shader>,
    pub allocations: Vec<Allocation>,
    /// The times at which the GPU ran work of any process.
    pub active: Vec<Span>,
    /// The time in each performance state.
    pub performance_ns: BTreeMap<Rc<str>, i64>,
    /// The times in each thermal state.
    pub thermal: BTreeMap<Rc<str>, Vec<Span>>,
    /// Starts and ends of work, and what they belong to, for exports without intervals.
    pub points: Vec<ExecutionPoint>,
    pub gpu_submissions: Vec<GpuSubmission>,
    pub spills: Vec<Spill>,
    /// The number of samples of the shader profiler.
    pub shader_samples: u64,
    /// The names of all processes, by pid.
    pub processes: BTreeMap<u32, Rc<str>>,
    /// The number of rows of each known table.
    pub rows: BTreeMap<&'static str, u64>,
    pub losses: Ledger,
    pub notes: Vec<String>,
    /// Tables that lack a needed column.
    unfit: BTreeMap<String, UnfitTable>,
    /// The number of rows that lack a needed value.
    incomplete: BTreeMap<&'static str, u64>,
}

/// A table that lacks a column.
#[derive(Debug)]
struct UnfitTable {
    /// The name of the first column that it lacks, and the number of its rows.
    missing: &'static str,
    rows: u64,
}

impl Facts {
    /// Adds a row. Rows of tables that no import uses are ignored; those without a needed column or value are
    /// counted.
    pub fn add(&mut self, schema: &Schema, row: Row) {
        let Some(table) = TABLES.iter().find(|table| table.schema == schema.name) else {
            return;
        };
        if let Some(missing) = schema.lacks(columns(table.schema)) {
            let unfit = self.unfit.entry(schema.name.clone());
            unfit.or_insert(UnfitTable { missing, rows: 0 }).rows += 1;
            return;
        }
        *self.rows.entry(table.schema).or_default() += 1;
        if self.take(table.schema, row).is_none() {
            *self.incomplete.entry(table.schema).or_default() += 1;
        }
    }

    /// Adds a row of a known table. Returns `None` if the row lacks a needed value.
    fn take(&mut self, table: &'static str, row: Row) -> Option<()> {
        match table {
            "metal-gpu-intervals" => {
                if row.text("state").is_some_and(|state| &**state == "Idle") {
                    return Some(());
                }
                let gpu = row.text("gpu").cloned();
                if let Some(gpu) = gpu {
                    *self.gpus.entry(gpu).or_default() += 1;
                }
                let interval = GpuInterval {
                    start_ns: row.ns("start")?,
                    duration_ns: row.ns("duration")?,
                    channel: Channel::named(row.text("channel-name").map(|text| &**text)),
                    pid: self.pid(row.process("process")),
                    command_buffer: row.id("cmdbuffer-id"),
                    encoder: row.id("encoder-id"),
                };
                self.intervals.push(interval);
            }
            "metal-application-command-buffer-submissions" => {
                let created_ns = row.ns("start")?;
                let submission = Submission {
                    created_ns,
                    committed_ns: created_ns.checked_add(row.ns("duration")?)?,
                    pid: self.pid(row.process("process")),
                    thread: row.thread("thread").cloned(),
                    command_buffer: row.id("cmdbuffer-id")?,
                };
                self.submissions.push(submission);
            }
            "metal-application-encoders-list" => {
                let encoder = Encoder {
                    pid: self.pid(row.process("process")),
                    command_buffer: row.id("cmdbuffer-id"),
                    encoder: row.id("encoder-id")?,
                    command_buffer_label: row.text("cmdbuffer-label").cloned(),
                    label: row.text("encoder-label").cloned(),
                };
                self.encoders.push(encoder);
            }
            "metal-command-buffer-completed" => {
                self.completions.push(Completion {
                    at_ns: row.ns("timestamp")?,
                    command_buffer: row.id("cmdbuffer-id")?,
                });
            }
            "metal-command-buffer-error" => {
                self.failures.push(Failure {
                    command_buffer: row.id("cmdbuffer-id")?,
                    code: row.number("error-code")?,
                });
            }
            "metal-gpu-info" => self.gpu = Some(row.text("gpu-name")?.clone()),
            "device-gpu-info" => {
                let name = row.text("device-name")?;
                self.gpu.get_or_insert_with(|| name.clone());
            }
            "time-info" => {
                let ticks = row.number("mabs-epoch")?;
                let (numerator, denominator) = row.text("timebase-info")?.split_once('/')?;
                let numerator: u128 = numerator.trim().parse().ok()?;
                let denominator: u128 = denominator.trim().parse().ok().filter(|d| *d > 0)?;
                let ns = u128::from(ticks).checked_mul(numerator)? / denominator;
                self.epoch_ns = Some(i64::try_from(ns).ok()?);
            }
            "metal-application-event-interval" => {
                self.host_interval(row, "event-type", "event-label")?;
            }
            // The table also has the signposts of the system's libraries.
            "os-signpost"
                if row
                    .text("subsystem")
                    .is_some_and(|s| **s == *Signpost::SUBSYSTEM) =>
            {
                let signpost = Signpost {
                    at_ns: row.ns("time")?,
                    mark: Mark::named(row.text("event-type")?)?,
                    pid: self.pid(row.process("process")),
                    tid: row.thread("thread").map(|thread| thread.tid),
                    id: row.id("identifier")?,
                    text: row.text("message").cloned(),
                };
                self.signposts.push(signpost);
            }
            // Encoders are nested inside their command buffers.
            "metal-driver-intervals" if row.number("event-depth") == Some(0) => {
                self.host_interval(row, "gpu-driver-name", "event-label")?;
            }
            "graphics-compiler-activity-intervals" => {
                let interval = HostInterval {
                    start_ns: row.ns("start")?,
                    duration_ns: row.ns("duration")?,
                    pid: self.pid(row.process("process")),
                    thread: None,
                    group: "Shader compiler".into(),
                    text: row.text("program-type")?.clone(),
                };
                self.host.push(interval);
            }
            "metal-shader-profiler-shader-list" => {
                let shader = Shader {
                    pid: self.pid(row.process("process")),
                    id: row.number("id")?,
                    name: row.text("name")?.clone(),
                    label: row.text("label").cloned(),
                    shader_type: row.text("shader-type").cloned(),
                };
                self.shaders.push(shader);
            }
            "metal-resource-allocations" => {
                // The row of a heap includes the resources in it.
                let inside = row.id("parent-resource-id").is_some();
                if inside || row.text("event-type").is_none_or(|e| &**e != "Allocation") {
                    return Some(());
                }
                let allocation = Allocation {
                    at_ns: row.ns("timestamp")?,
                    lifetime_ns: row.ns("duration"),
                    pid: self.pid(row.process("process")),
                    resource: row.id("resource-id")?,
                    bytes: row.number("resource-size")?,
                };
                self.allocations.push(allocation);
            }
            "metal-gpu-state-intervals" if &**row.text("state")? == "Active" => {
                let active = Span::new(row.ns("start")?, row.ns("duration")?);
                self.active.push(active);
            }
            "gpu-performance-state-intervals" => {
                let state = row.text("gpu-performance-state")?.clone();
                let total = self.performance_ns.entry(state).or_default();
                *total = total.saturating_add(row.ns("duration")?);
            }
            "device-thermal-state-intervals" => {
                let state = row.text("thermal-state")?.clone();
                let span = Span::new(row.ns("start")?, row.ns("duration")?);
                self.thermal.entry(state).or_default().push(span);
            }
            "metal-gpu-execution-points" => {
                let is_start = match row.number("function")? {
                    1 => true,
                    2 => false,
                    _ => return Some(()),
                };
                self.points.push(ExecutionPoint {
                    at_ns: row.ns("timestamp")?,
                    is_start,
                    gpu_submission: row.id("gpu-submission-id")?,
                });
            }
            "metal-gpu-submission-to-command-buffer-id" => {
                let submission = GpuSubmission {
                    gpu_submission: row.id("gpu-submission-id")?,
                    command_buffer: row.id("cmdbuffer-id")?,
                    encoder: row.id("encoder-id"),
                    pid: self
                        .pid(row.process("process"))
                        .or(row.number("pid").and_then(|pid| pid.try_into().ok())),
                };
                self.gpu_submissions.push(submission);
            }
            "graphics-compiler-spill-events" => {
                let pid = self.pid(row.process("process"));
                let bytes = row.number("spilled-bytes")?;
                self.spills.push(Spill { bytes, pid });
            }
            "metal-shader-profiler-intervals" => self.shader_samples += 1,
            _ => {}
        }
        Some(())
    }

    /// Adds an interval of a host thread, whose kind and text are in the columns `group` and `text`.
    fn host_interval(&mut self, row: Row, group: &str, text: &str) -> Option<()> {
        let interval = HostInterval {
            start_ns: row.ns("start")?,
            duration_ns: row.ns("duration")?,
            pid: self.pid(row.process("process")),
            thread: row.thread("thread").cloned(),
            group: row.text(group)?.clone(),
            text: row.text(text)?.clone(),
        };
        self.host.push(interval);
        Some(())
    }

    /// Returns the pid of a process, and keeps its name.
    fn pid(&mut self, process: Option<&Rc<Process>>) -> Option<u32> {
        let process = process?;
        let known = self.processes.entry(process.pid);
        known.or_insert_with(|| process.name.clone());
        Some(process.pid)
    }

    /// Adds the losses and notes of one file, from the summary of its reading.
    pub fn add_summary(&mut self, file: &str, summary: &Summary) {
        if summary.nodes == 0 {
            self.notes.push(format!(
                "{file} holds no table: xctrace writes an empty result, and no error, for a table or run that does not exist."
            ));
        }
        for (damage, count) in &summary.damaged {
            self.losses
                .add(rows_of(&damage.table), *count, damage.reason);
        }
        let rows: u64 = summary.rows.values().sum();
        match &summary.ending {
            Ending::Complete => {}
            Ending::AfterRow => self.notes.push(format!(
                "{file} ends without its closing tags after {rows} whole rows, as when xctrace crashes; more rows may be missing."
            )),
            Ending::InRow => self.losses.add(
                rows_of(file),
                1,
                format!("the file ends inside a row after {rows} rows; more may be missing"),
            ),
            Ending::Malformed(error) => self.notes.push(format!(
                "{file} is damaged after {rows} rows ({error}); what follows was not read."
            )),
        }
    }

    /// Adds the losses of all tables after the last row.
    pub fn finish(&mut self) {
        for (table, UnfitTable { missing, rows }) in std::mem::take(&mut self.unfit) {
            let reason = format!("the table has no column {missing}");
            self.losses.add(rows_of(&table), rows, reason);
        }
        for (table, count) in std::mem::take(&mut self.incomplete) {
            let reason = "a value that is needed is missing";
            self.losses.add(rows_of(table), count, reason);
        }
    }
}

/// Returns the kind of loss for rows of a table or file.
fn rows_of(table: &str) -> LossKind {
    LossKind::Other(Cow::Owned(format!("rows of {table}")))
}
