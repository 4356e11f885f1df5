//! What a comparison keeps of a run: figures, and of each kernel under each label what it took.

use super::contamination::Surroundings;
use super::metric::Metric;
use super::samples::{Blocks, Lengths};
use super::works::Works;
use crate::bound_bytes::BindingSets;
use crate::conditions;
use crate::counters;
use crate::findings::Findings;
use crate::gaps;
use crate::intervals::Interval;
use crate::labels::LabelTree;
use crate::memory_timeline::memory_timeline;
use crate::timeline::{Gpu, Timeline};
use crate::vocabulary::Vocabulary;
use gapscope_trace::Selection;
use gapscope_trace::manifest::{Manifest, SamplingMode};
use gapscope_trace::tables::Table;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A run: one trace, or those of its ranks. Baselines keep it in files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDigest {
    /// What it is called.
    pub name: String,
    /// When it began on the wall clock; absent when it is not known.
    pub started_unix_ns: Option<i64>,
    /// Where and how it was recorded.
    pub machine: Machine,
    /// Why figures are not of the whole run, or not of it alone; sentences.
    pub flaws: Vec<String>,
    /// What is told where the other side had it otherwise.
    #[serde(default)]
    pub(super) surroundings: Surroundings,
    pub(super) figures: BTreeMap<Metric, Reading>,
    pub(super) kernels: Vec<KernelDigest>,
    /// Labels that most dispatches lie under and that were set several times, the outermost first.
    pub(super) evaluations: Vec<Evaluations>,
    pub(super) idle_known: bool,
}

/// Where and how a run was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system, processor and cores.
    pub host: BTreeSet<String>,
    /// Names of the GPUs, one for each, sorted.
    pub devices: Vec<String>,
    /// Drivers with their versions.
    pub drivers: BTreeSet<String>,
    /// How GPUs were sampled.
    #[serde(deserialize_with = "sampling_modes")]
    pub sampling: BTreeSet<&'static str>,
    /// Versions of gapscope.
    pub versions: BTreeSet<String>,
    /// Greatest clocks of the GPUs, kHz, where they are known.
    pub clocks: BTreeSet<u32>,
    /// Ranks.
    pub ranks: usize,
}

/// A figure of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Reading {
    pub value: Option<f64>,
    pub blocks: Vec<f64>,
}

/// A label under which most of the work lies, set again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Evaluations {
    /// Its path without numbers.
    pub path: String,
    pub count: u64,
}

/// A kernel under a label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct KernelDigest {
    pub name: String,
    /// Label path without numbers; empty outside of labels.
    pub path: String,
    pub count: u64,
    pub timed: u64,
    pub total_ns: i64,
    pub blocks: Blocks,
    pub lengths: Lengths,
}

fn sampling_modes<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeSet<&'static str>, D::Error> {
    let modes = [
        SamplingMode::CommandBuffer,
        SamplingMode::Pass,
        SamplingMode::Dispatch,
        SamplingMode::DispatchSerialised,
    ];
    let words = BTreeSet::<String>::deserialize(from)?;
    let known = words.iter().map(|word| {
        let found = modes.into_iter().map(SamplingMode::as_str);
        let mut found = found.filter(|known| known == word);
        found
            .next()
            .ok_or_else(|| D::Error::custom(format!("no sampling mode is called {word}")))
    });
    known.collect()
}

impl RunDigest {
    /// What of a trace it is made of.
    pub fn selection() -> Selection {
        Findings::selection_of_times()
    }

    /// The digest of a trace. `remarks` are what reading it said.
    pub fn of(timeline: &Timeline, name: &str, remarks: &[String]) -> RunDigest {
        let trace = timeline.trace;
        let manifest = &trace.manifest;
        let tree = LabelTree::of(trace);
        let mut digest = RunDigest {
            name: name.to_owned(),
            started_unix_ns: manifest.start_unix_ns,
            machine: Machine::of(manifest),
            flaws: flaws(timeline, remarks),
            ..RunDigest::default()
        };
        digest.add_times(timeline);
        digest.add_counts(timeline);
        let works = Works::of(timeline, &tree);
        digest.evaluations = works.evaluations(timeline, &tree);
        for (metric, blocks) in [
            (Metric::GpuTime, works.busy.whole()),
            (Metric::WallTime, works.wall.whole()),
            (Metric::IdleTime, works.idle.whole()),
        ] {
            digest.figures.entry(metric).or_default().blocks = blocks.to_vec();
        }
        digest.kernels = works.kernels;
        digest
    }

    fn set(&mut self, metric: Metric, value: Option<f64>) {
        self.figures.entry(metric).or_default().value = value;
    }

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
            let times = times.map(|(start, took)| Interval::of_row(start, took));
            let total: Option<i64> = times.map(|time| Some(time?.length_ns())).sum();
            self.set(Metric::TransferTime, total.map(|ns| ns as f64));
        }
    }

    fn add_counts(&mut self, timeline: &Timeline) {
        let trace = timeline.trace;
        let tables = &trace.tables;
        let count = |count: usize| Some(count as f64);
        self.set(Metric::Dispatches, count(timeline.dispatches.len()));
        self.set(
            Metric::Submissions,
            Some(timeline.submission_count() as f64),
        );
        self.set(Metric::CommandBuffers, count(tables.command_buffers.len()));
        self.set(Metric::Transfers, count(tables.transfers.len()));
        let bytes: Option<f64> = (tables.transfers.bytes.iter())
            .map(|bytes| bytes.map(|bytes| bytes as f64))
            .sum();
        self.set(Metric::TransferBytes, bytes);
        self.set(Metric::BoundBytes, bound_bytes(timeline));
        let memory = memory_timeline(timeline);
        let devices = memory.iter().filter(|row| row.heap.is_none());
        let peak: u64 = devices.map(|row| row.peak_bytes).sum();
        self.set(
            Metric::MemoryPeak,
            (!tables.memory.is_empty()).then_some(peak as f64),
        );
        for table in &trace.unread {
            for metric in Metric::WHOLE {
                if rests_on(metric, table.table) {
                    self.set(metric, None);
                }
            }
        }
    }

    /// Index of the run whose time from the start of its first work to the end of its last is the median of those that are known; of
    /// two in the middle, the shorter one's.
    pub fn median(runs: &[RunDigest]) -> usize {
        let time = |run: &RunDigest| run.figures.get(&Metric::WallTime)?.value;
        let times = runs.iter().enumerate();
        let mut times: Vec<(f64, usize)> = times
            .filter_map(|(at, run)| Some((time(run)?, at)))
            .collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let middle = times.get(times.len().saturating_sub(1) / 2);
        middle.map_or(0, |(_, at)| *at)
    }

    /// The run of several ranks, of which this is one and `other` another.
    pub fn and_rank(mut self, other: RunDigest) -> RunDigest {
        self.started_unix_ns = self.started_unix_ns.min(other.started_unix_ns);
        self.machine.add(other.machine);
        self.flaws.extend(other.flaws);
        self.surroundings.add(&other.surroundings);
        let metrics: BTreeSet<Metric> = self
            .figures
            .keys()
            .chain(other.figures.keys())
            .copied()
            .collect();
        for metric in metrics {
            let theirs = other.figures.get(&metric).cloned().unwrap_or_default();
            let is_part = matches!(metric, Metric::IdleOf(_));
            let mine = self.figures.entry(metric).or_insert_with(|| Reading {
                value: is_part.then_some(0.0),
                blocks: Vec::new(),
            });
            let theirs_value = theirs.value.or(is_part.then_some(0.0));
            mine.value = mine.value.zip(theirs_value).map(|(a, b)| match metric {
                // Ranks run at the same time.
                Metric::WallTime => a.max(b),
                _ => a + b,
            });
            mine.blocks = match mine.blocks.len() == theirs.blocks.len() {
                true => mine
                    .blocks
                    .iter()
                    .zip(&theirs.blocks)
                    .map(|(a, b)| a + b)
                    .collect(),
                false => Vec::new(),
            };
        }
        for kernel in other.kernels {
            let same = |own: &&mut KernelDigest| own.name == kernel.name && own.path == kernel.path;
            match self.kernels.iter_mut().find(same) {
                Some(own) => own.add(&kernel),
                None => self.kernels.push(kernel),
            }
        }
        // An evaluation of all ranks is one.
        self.evaluations
            .retain(|own| other.evaluations.contains(own));
        self.idle_known &= other.idle_known;
        self
    }
}

impl KernelDigest {
    fn add(&mut self, other: &KernelDigest) {
        self.count += other.count;
        self.timed += other.timed;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.lengths.add(&other.lengths);
        // Blocks of other places in time do not add up.
        self.blocks = Blocks::default();
    }
}

impl Machine {
    fn of(manifest: &Manifest) -> Machine {
        let host = &manifest.host;
        let cores = host.cores.map(|cores| format!(", {cores} cores"));
        let names = Vocabulary::of(manifest);
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
            sampling: BTreeSet::from([manifest.sampling_mode.as_str()]),
            versions: BTreeSet::from([manifest.gapscope_version.clone()]),
            clocks: manifest.devices.iter().filter_map(clock).collect(),
            ranks: 1,
        }
    }

    fn add(&mut self, other: Machine) {
        self.host.extend(other.host);
        self.devices.extend(other.devices);
        self.devices.sort();
        self.drivers.extend(other.drivers);
        self.sampling.extend(other.sampling);
        self.versions.extend(other.versions);
        self.clocks.extend(other.clocks);
        self.ranks += other.ranks;
    }
}

/// True where a figure is unknown without all of a table.
fn rests_on(metric: Metric, table: &str) -> bool {
    match metric {
        Metric::WallTime | Metric::GpuTime | Metric::IdleTime | Metric::IdleOf(_) => {
            matches!(
                table,
                "dispatches" | "transfers" | "command_buffers" | "opaque_work"
            )
        }
        Metric::TransferTime | Metric::Transfers | Metric::TransferBytes => table == "transfers",
        Metric::Dispatches => table == "dispatches",
        Metric::Submissions => table == "submissions",
        Metric::CommandBuffers => table == "command_buffers",
        Metric::BoundBytes => matches!(table, "dispatches" | "bindings" | "buffers"),
        Metric::MemoryPeak => table == "memory",
    }
}

/// Bytes bound, summed over dispatches; `None` unless each has known bindings.
fn bound_bytes(timeline: &Timeline) -> Option<f64> {
    let sets = BindingSets::of(timeline.trace);
    let dispatches = &timeline.dispatches;
    let mut sum = 0;
    for row in 0..dispatches.len() {
        let bytes = sets.bytes(dispatches.binding_set(row))?;
        sum += u128::from(bytes.read_bytes) + u128::from(bytes.written_bytes);
    }
    (dispatches.len() > 0).then_some(sum as f64)
}

fn flaws(timeline: &Timeline, remarks: &[String]) -> Vec<String> {
    let manifest = &timeline.trace.manifest;
    let mut flaws = remarks.to_vec();
    for loss in &manifest.losses {
        flaws.push(format!(
            "{} {} were lost: {}.",
            loss.count, loss.kind, loss.reason
        ));
    }
    if !timeline.dispatches.untimed.is_empty() && manifest.sampling_mode == SamplingMode::Dispatch {
        flaws.push(format!(
            "{} dispatches have no known times.",
            timeline.dispatches.untimed.len()
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
