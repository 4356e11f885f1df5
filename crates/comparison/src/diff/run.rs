//! The digest of a run, which a comparison needs instead of its trace: figures, and the times of each kernel under
//! each label.

use super::metric::Metric;
use super::parts::{Parts, RunPlace};
use super::samples::{Blocks, Lengths};
use gapscope_timeline::launch_size::{LaunchSize, SizeMoments};
use gapscope_trace::manifest::SamplingMode;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The digest of a run, made from one trace or from those of the run's ranks. Baselines keep it in files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDigest {
    /// The name of the run.
    pub name: String,
    /// The recorded command, without the folder that the program is in; empty where it is not known, as in baselines that
    /// were saved without.
    #[serde(default)]
    pub command: String,
    /// The time on the wall clock at which the run began; `None` when it is not known.
    pub started_unix_ns: Option<i64>,
    /// The machine on which the run was recorded, and the way of recording.
    pub machine: Machine,
    /// Sentences that say why figures are not of the whole run, or not of it alone.
    pub flaws: Vec<String>,
    /// The circumstances of the run that are reported only where they differ from the other side's.
    #[serde(default)]
    pub(super) surroundings: RunEnvironment,
    /// The figures of the whole run.
    pub(super) figures: BTreeMap<Metric, Reading>,
    /// The kernels, each under each label by itself.
    pub(super) kernels: Vec<KernelDigest>,
    /// The end of the run, which tells how its parts are numbered; the start where parts are not known, as in baselines that were saved
    /// without, and of several ranks.
    #[serde(default)]
    pub(super) place: RunPlace,
    /// The labels that most dispatches lie under and that were set several times, the outermost first.
    pub(super) evaluations: Vec<Evaluations>,
    /// The bytes of single transfers by kind; `None` where some are not known, and in baselines that were saved without.
    #[serde(default)]
    pub(super) transfer_sizes: Option<BTreeMap<String, SizeMoments>>,
    /// True if idle time was computed: a cause without a figure then has none.
    pub(super) idle_known: bool,
    /// The figures that are lower bounds, as some of what they count was lost.
    #[serde(default)]
    pub(super) at_least: BTreeSet<Metric>,
    /// The figures that count a part by the way in which the run was recorded, such as kernels where graphs were recorded as a whole; they
    /// compare with those of a run that was recorded alike.
    #[serde(default)]
    pub(super) partial: BTreeSet<Metric>,
}

/// The machine on which a run was recorded, and the way of recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The operating systems, processors and numbers of cores.
    pub host: BTreeSet<String>,
    /// The names of the GPUs, sorted.
    pub devices: Vec<String>,
    /// The drivers of the GPUs, with their versions.
    pub drivers: BTreeSet<String>,
    /// The interfaces by which the program used the GPUs, such as CUDA; empty in baselines that were saved without.
    #[serde(default)]
    pub interfaces: BTreeSet<String>,
    /// The modes in which GPUs were sampled.
    #[serde(deserialize_with = "sampling_modes")]
    pub sampling: BTreeSet<&'static str>,
    /// The versions of gapscope.
    pub versions: BTreeSet<String>,
    /// The greatest clocks of the GPUs in kHz, where they are known.
    pub clocks: BTreeSet<u32>,
    /// The number of ranks.
    pub ranks: usize,
}

/// The normal circumstances of a run, which are reported only where they differ from the other side's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunEnvironment {
    /// The share of the recording in which a GPU was at its power limit, for the GPU with the greatest share; `None`
    /// where clocks were not measured.
    pub(super) power_capped: Option<f64>,
    /// The bytes of GPU memory that were in use all the time and not by allocations in the trace; `None` where this
    /// was not measured.
    pub(super) others_bytes: Option<u64>,
    /// The share of the time from the first GPU work to the last in which tasks of the program, or of the machine where its own are
    /// not known apart, waited for a processor or for memory; `None` where this was not measured.
    #[serde(default)]
    pub(super) waited: Option<f64>,
    /// The clocks in Hz that a GPU reached in the first and in the last third of the time from the first GPU work to the last, the
    /// lowest of all GPUs; `None` where clocks were not measured.
    #[serde(default)]
    pub(super) clocks: Option<[f64; 2]>,
}

/// A figure of a run, with the sums of its blocks of consecutive parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Reading {
    /// The figure; `None` where it is unknown.
    pub value: Option<f64>,
    /// The sums of the blocks in order; empty where there are none.
    pub blocks: Vec<f64>,
}

/// A label that was set repeatedly and under which most of the work lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Evaluations {
    /// The label's path without numbers.
    pub path: String,
    pub count: u64,
}

/// The dispatches of a kernel under a label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct KernelDigest {
    pub name: String,
    /// The label's path without numbers; empty outside of labels.
    pub path: String,
    pub count: u64,
    /// The workgroups and threads of all dispatches; those of baselines that were saved without are unknown.
    #[serde(default = "unknown_size")]
    pub size: LaunchSize,
    /// What identifies the code besides its name, for each code and specialisation; empty where a code is not known.
    #[serde(default)]
    pub codes: BTreeSet<String>,
    /// The number of dispatches with known times.
    pub timed: u64,
    /// The sum of these times.
    pub total_ns: i64,
    /// Sums of the times over blocks of consecutive dispatches; empty where several ranks were added.
    pub blocks: Blocks,
    /// A histogram of the times.
    pub lengths: Lengths,
    /// Sums of the times by parts of the run.
    #[serde(default)]
    pub parts: Parts,
}

/// Reads sampling modes by their names; an unknown name is an error.
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

const fn unknown_size() -> LaunchSize {
    LaunchSize::UNKNOWN
}

impl KernelDigest {
    /// Adds the dispatches of the same kernel on another rank.
    fn add(&mut self, other: &KernelDigest) {
        self.count += other.count;
        self.size.add(other.size);
        match self.codes.is_empty() || other.codes.is_empty() {
            true => self.codes.clear(),
            false => self.codes.extend(other.codes.iter().cloned()),
        }
        self.timed += other.timed;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.lengths.add(&other.lengths);
        // Blocks at different times do not add up.
        self.blocks = Blocks::default();
        self.parts = Parts::default();
    }
}

impl RunDigest {
    /// Returns the index of the run whose time from the start of its first work to the end of its last is the median
    /// of the known times. Of two runs in the middle it is the run with the shorter time.
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

    /// Combines the digests of two ranks of a run.
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
        self.place = RunPlace::default();
        // An evaluation takes place on all ranks together.
        self.evaluations
            .retain(|own| other.evaluations.contains(own));
        self.idle_known &= other.idle_known;
        self.at_least.extend(other.at_least);
        self.partial.extend(other.partial);
        self.transfer_sizes = self.transfer_sizes.zip(other.transfer_sizes).map(add_sizes);
        self
    }
}

/// Adds the sizes of transfers of two ranks or runs, kind by kind.
pub(super) fn add_sizes(
    (mut sum, other): (BTreeMap<String, SizeMoments>, BTreeMap<String, SizeMoments>),
) -> BTreeMap<String, SizeMoments> {
    for (kind, sizes) in other {
        let of_kind = sum.entry(kind).or_default();
        *of_kind = of_kind.plus(sizes);
    }
    sum
}

impl Machine {
    fn add(&mut self, other: Machine) {
        self.host.extend(other.host);
        self.devices.extend(other.devices);
        self.devices.sort();
        self.drivers.extend(other.drivers);
        self.interfaces.extend(other.interfaces);
        self.sampling.extend(other.sampling);
        self.versions.extend(other.versions);
        self.clocks.extend(other.clocks);
        self.ranks += other.ranks;
    }
}

impl RunEnvironment {
    /// Combines the circumstances of two ranks. Memory of one rank's program would count as other memory for the next rank.
    pub(super) fn add(&mut self, other: &RunEnvironment) {
        let capped = self.power_capped.zip(other.power_capped);
        self.power_capped = capped.map(|(a, b)| a.max(b));
        self.others_bytes = None;
        self.clocks = (self.clocks.zip(other.clocks))
            .map(|(a, b)| [0, 1].map(|end| f64::min(a[end], b[end])));
        self.waited = self.waited.into_iter().chain(other.waited).reduce(f64::max);
    }
}

/// Returns true for a device that is the processor.
pub(super) fn is_software(device: &str) -> bool {
    let device = device.to_ascii_lowercase();
    let software = ["llvmpipe", "lavapipe", "swiftshader"];
    software.iter().any(|name| device.contains(name))
}
