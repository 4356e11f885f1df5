//! Makes from the timeline of a run (its GPU work in order of time) the digest that a comparison needs instead of the
//! trace: figures, each with its blocks (sums of consecutive values), the times of each kernel, and the evaluations
//! (repetitions of a unit of work, such as a training step).

use super::metric::{Metric, Unit};
use super::run::{Machine, RunDigest};
use super::works::WorkTotals;
use gapscope_analysis::Findings;
use gapscope_analysis::conditions;
use gapscope_analysis::copy_sizes::{CopySizes, add_copy, by_name};
use gapscope_analysis::gaps;
use gapscope_analysis::labels::LabelTree;
use gapscope_analysis::memory_timeline::memory_timeline;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::command::short_command;
use gapscope_timeline::counters;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::lost_work::{LostWork, losses_of_work};
use gapscope_timeline::quantity;
use gapscope_timeline::thresholds::MISSING_WORK_SHARE;
use gapscope_timeline::unknown_counts::{Count, unknown_counts};
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_timeline::{Gpu, Timeline};
use gapscope_trace::Selection;
use gapscope_trace::manifest::{Api, Manifest, SamplingMode};
use gapscope_trace::tables::{Dispatches, Table};
use std::collections::{BTreeMap, BTreeSet};

impl RunDigest {
    /// Returns the part of a trace that [`RunDigest::new`] reads.
    pub fn selection() -> Selection {
        Findings::selection_of_times().columns::<Dispatches>(&["groups_x", "groups_y", "groups_z"])
    }

    /// Returns the digest of the run with a timeline. `remarks` are the remarks of the trace's reader.
    pub fn new(timeline: &Timeline, name: &str, remarks: &[String]) -> RunDigest {
        let trace = timeline.trace;
        let manifest = &trace.manifest;
        let tree = LabelTree::new(trace);
        let mut digest = RunDigest {
            name: name.to_owned(),
            command: short_command(manifest),
            started_unix_ns: manifest.start_unix_ns,
            machine: Machine::new(manifest),
            flaws: flaws(timeline, remarks),
            ..RunDigest::default()
        };
        digest.add_times(timeline);
        digest.add_counts(timeline);
        digest.forget_what_is_not_whole(timeline);
        let works = WorkTotals::new(timeline, &tree);
        digest.evaluations = works.evaluations(timeline, &tree);
        for (metric, blocks) in [
            (Metric::GpuTime, works.busy.whole()),
            (Metric::WallTime, works.wall.whole()),
            (Metric::IdleTime, works.idle.whole()),
            (Metric::TransferTime, works.transfers.whole()),
        ] {
            digest.figures.entry(metric).or_default().blocks = blocks.to_vec();
        }
        let number = |number: Option<u64>| {
            let known = !works.kernels.is_empty() && digest.is_counted();
            number.filter(|_| known).map(|number| number as f64)
        };
        let (groups, threads) = (number(works.size.groups), number(works.size.threads));
        digest.set(Metric::Workgroups, groups);
        digest.set(Metric::Threads, threads);
        digest.kernels = works.kernels;
        digest.place = works.place;
        digest
    }

    /// Returns true where the number of dispatches is known.
    pub(super) fn is_counted(&self) -> bool {
        let dispatches = self.figures.get(&Metric::Dispatches);
        dispatches.is_some_and(|reading| reading.value.is_some())
    }

    /// Sets a figure; `None` makes it unknown.
    fn set(&mut self, metric: Metric, value: Option<f64>) {
        self.figures.entry(metric).or_default().value = value;
    }

    /// Sets the figures that are times; none without timed work.
    fn add_times(&mut self, timeline: &Timeline) {
        let Some(window) = timeline.work_window() else {
            return;
        };
        let busy_ns = |gpu: &Gpu| gpu.busy_ns();
        let gpu_ns = timeline
            .gpus
            .iter()
            .map(busy_ns)
            .fold(0, i64::saturating_add);
        self.set(Metric::WallTime, Some(window.length_ns() as f64));
        self.set(Metric::GpuTime, Some(gpu_ns as f64));
        let causes = gaps::idle_by_cause(timeline);
        let idle_ns = (causes.iter()).fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        self.set(Metric::IdleTime, Some(idle_ns as f64));
        for (cause, ns) in causes {
            self.set(Metric::IdleOf(cause), Some(ns as f64));
        }
        self.idle_known = true;
        if timeline.trace.manifest.sampling_mode != SamplingMode::CommandBuffer {
            let rows = &timeline.trace.tables.transfers;
            let times = rows.start_ns.iter().zip(&rows.duration_ns);
            let times = times.map(|(start, took)| Interval::from_row(start, took));
            let total: Option<i64> = times.map(|time| Some(time?.length_ns())).sum();
            self.set(Metric::TransferTime, total.map(|ns| ns as f64));
        }
    }

    /// Makes times unknown where more work than [`MISSING_WORK_SHARE`] has no times or no row: a run of which the
    /// other side has all work would seem slower for it.
    fn forget_what_is_not_whole(&mut self, timeline: &Timeline) {
        let trace = timeline.trace;
        let transfers = &trace.tables.transfers;
        let lost = losses_of_work(&trace.manifest)
            .filter(|(_, lost)| *lost == LostWork::Pieces)
            .fold(0, |sum: u64, (loss, _)| sum.saturating_add(loss.count));
        let rows = timeline.dispatches.count() as u64 + transfers.len() as u64;
        let untimed = match trace.manifest.sampling_mode {
            SamplingMode::Dispatch => {
                let untimed = (transfers.start_ns.iter()).filter(|start_ns| start_ns.is_none());
                timeline.dispatches.untimed.len() as u64 + untimed.count() as u64
            }
            // Other modes have the times of what the work was in.
            _ => 0,
        };
        let is_missing =
            |missing: u64, of: u64| missing as f64 > MISSING_WORK_SHARE * of.max(1) as f64;
        if is_missing(lost.saturating_add(untimed), rows.saturating_add(lost)) {
            for (metric, figure) in &mut self.figures {
                if rests_on(*metric, Dispatches::NAME) && metric.unit() == Unit::Ns {
                    figure.value = None;
                }
            }
            self.idle_known = false;
        }
    }

    /// Sets the figures that are counts and sizes, and unsets those whose tables could not be read.
    fn add_counts(&mut self, timeline: &Timeline) {
        let trace = timeline.trace;
        let tables = &trace.tables;
        let count = |count: usize| Some(count as f64);
        self.set(Metric::Dispatches, count(timeline.dispatches.count()));
        self.set(
            Metric::Submissions,
            Some(timeline.submission_count() as f64),
        );
        self.set(Metric::CommandBuffers, count(tables.command_buffers.len()));
        self.set(Metric::Transfers, count(tables.transfers.len()));
        let bytes: Option<u128> = (tables.transfers.bytes.iter())
            .map(|bytes| bytes.map(u128::from))
            .sum();
        self.set(Metric::TransferBytes, bytes.map(|bytes| bytes as f64));
        self.set(Metric::BoundBytes, bound_bytes(timeline));
        self.transfer_sizes = transfer_sizes(timeline);
        let memory = memory_timeline(timeline);
        let devices = memory.iter().filter(|row| row.heap.is_none());
        let peak: u64 = devices.map(|row| row.peak_bytes).sum();
        self.set(
            Metric::MemoryPeak,
            (!tables.memory.is_empty()).then_some(peak as f64),
        );
        for unknown in unknown_counts(timeline) {
            let metrics: &[Metric] = match unknown.count {
                Count::Dispatches => &[
                    Metric::Dispatches,
                    Metric::Workgroups,
                    Metric::Threads,
                    Metric::BoundBytes,
                ],
                Count::CommandBuffers => &[Metric::CommandBuffers],
                Count::Submissions => &[Metric::Submissions],
                Count::Transfers => &[
                    Metric::Transfers,
                    Metric::TransferBytes,
                    Metric::TransferTime,
                ],
            };
            match (unknown.at_least, unknown.is_lost) {
                (None, _) => metrics.iter().for_each(|metric| self.set(*metric, None)),
                (Some(_), true) => {
                    self.at_least.extend(metrics);
                    // Imports leave out the launches whose work a file lacks.
                    if is_imported(&trace.manifest) {
                        self.at_least.insert(Metric::Submissions);
                    }
                }
                (Some(_), false) => self.partial.extend(metrics),
            }
        }
        for table in &trace.unread {
            for (metric, figure) in &mut self.figures {
                if rests_on(*metric, table.table) {
                    figure.value = None;
                }
            }
            self.idle_known &= !rests_on(Metric::IdleTime, table.table);
            if rests_on(Metric::TransferBytes, table.table) {
                self.transfer_sizes = None;
            }
        }
    }
}

impl Machine {
    fn new(manifest: &Manifest) -> Machine {
        let host = &manifest.host;
        let cores = host.cores.map(|cores| format!(", {cores} cores"));
        let names = Vocabulary::new(manifest);
        let gpus = names.gpus();
        let mut devices: Vec<String> = (0..gpus.count())
            .map(|gpu| gpus.name(gpu).to_owned())
            .collect();
        devices.sort();
        let clock =
            |device: &gapscope_trace::manifest::Device| device.limits.as_ref()?.core_clock_khz;
        Machine {
            host: BTreeSet::from([format!(
                "{} on {}{}",
                host.system,
                host.processor,
                cores.unwrap_or_default()
            )]),
            devices,
            drivers: manifest
                .devices
                .iter()
                .map(|device| device.driver.clone())
                .collect(),
            interfaces: manifest
                .devices
                .iter()
                .filter(|device| device.api != Api::Unknown)
                .map(|device| device.api.as_str().to_owned())
                .collect(),
            sampling: BTreeSet::from([manifest.sampling_mode.as_str()]),
            versions: BTreeSet::from([manifest.gapscope_version.clone()]),
            clocks: manifest.devices.iter().filter_map(clock).collect(),
            ranks: 1,
        }
    }
}

/// Returns true for the file of another tool.
fn is_imported(manifest: &Manifest) -> bool {
    let mut processes = manifest.processes.iter();
    processes.any(|process| process.other_tool().is_some())
}

/// Returns true where a figure is unknown if a table is not complete.
fn rests_on(metric: Metric, table: &str) -> bool {
    match metric {
        Metric::WallTime | Metric::GpuTime | Metric::IdleTime | Metric::IdleOf(_) => {
            matches!(
                table,
                "dispatches" | "transfers" | "command_buffers" | "opaque_work"
            )
        }
        Metric::TransferTime | Metric::Transfers | Metric::TransferBytes => table == "transfers",
        Metric::Dispatches | Metric::Workgroups | Metric::Threads => table == "dispatches",
        Metric::Submissions => table == "submissions",
        Metric::CommandBuffers => table == "command_buffers",
        Metric::BoundBytes => matches!(table, "dispatches" | "bindings" | "buffers"),
        Metric::MemoryPeak => table == "memory",
    }
}

/// Returns the sum over dispatches of the bytes bound to them, or `None` unless all of them have known bindings.
fn bound_bytes(timeline: &Timeline) -> Option<f64> {
    let sets = BindingSets::new(timeline.trace);
    let dispatches = &timeline.dispatches;
    let mut sum = 0;
    for row in 0..dispatches.count() {
        let bytes = sets.bytes(dispatches.binding_set(row))?;
        sum += u128::from(bytes.read_bytes) + u128::from(bytes.written_bytes);
    }
    (dispatches.count() > 0).then_some(sum as f64)
}

/// Returns the bytes of single transfers by kind, or `None` where the bytes of one are not known.
fn transfer_sizes(timeline: &Timeline) -> CopySizes<String> {
    let rows = &timeline.trace.tables.transfers;
    let mut sizes = Some(BTreeMap::new());
    for (kind, bytes) in rows.kind.iter().zip(&rows.bytes) {
        add_copy(&mut sizes, *kind, bytes);
    }
    by_name(&sizes)
}

/// Returns sentences about losses, missing times and unusual conditions, after the remarks.
fn flaws(timeline: &Timeline, remarks: &[String]) -> Vec<String> {
    let manifest = &timeline.trace.manifest;
    let mut flaws = remarks.to_vec();
    for loss in &manifest.losses {
        flaws.push(format!("Lost: {}: {}.", quantity::loss(loss), loss.reason));
    }
    if !timeline.dispatches.untimed.is_empty() && manifest.sampling_mode == SamplingMode::Dispatch {
        let dispatch = Vocabulary::new(manifest).words().dispatch;
        flaws.push(format!(
            "{} have no known times.",
            dispatch.count(timeline.dispatches.untimed.len() as u64)
        ));
    }
    let notes = conditions::conditions(timeline, &counters::recorded(timeline));
    flaws.extend(
        notes
            .into_iter()
            .filter(|note| !note.is_usual)
            .map(|note| note.sentence),
    );
    flaws
}
