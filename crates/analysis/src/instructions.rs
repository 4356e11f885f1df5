//! Sums up samples of instructions by kernel and by line of source, with the reasons that kept warps from issuing them.
//!
//! A sampler looks at one of a multiprocessor's warps at an interval of cycles: which instruction is its next, and why the warp
//! did not issue it in that cycle, or that it did (`selected`). A kernel's share of the samples is its share of the
//! multiprocessors' time; a line's share tells where the kernel's warps were in that time.
//!
//! Input is the table `pc_samples`, of which a row counts the samples of one instruction with one reason; output is a
//! [`SampledKernel`] for each function of each kernel.

use gapscope_timeline::Timeline;
use gapscope_trace::ids::KernelId;
use gapscope_trace::instructions::{NoLine, stall};
use gapscope_trace::kernel_names::Spellings;
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{PcSamples, Table};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum number of places that are listed for a kernel.
const MAX_PLACES: usize = 50;

/// A kernel whose instructions were sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SampledKernel {
    /// The kernel's name, as in its row in `kernels`, or the function's where no such kernel was recorded.
    pub kernel: String,
    /// The function's name in the code; absent where it is not known.
    pub function: Option<Arc<str>>,
    /// Samples of its instructions, over the whole recording.
    pub samples: u64,
    /// Their share of all recorded samples: 0 to 1.
    pub share: f64,
    /// Cycles between two samples of a multiprocessor; absent where it is not known, or not the same on all devices.
    pub period_cycles: Option<u64>,
    /// The reasons that kept its warps from issuing, those with the most samples first.
    pub stalls: Vec<SampledStall>,
    /// The places of the samples, those with the most samples first; at most 50.
    pub places: Vec<SampledPlace>,
    /// Samples at places that are not listed.
    pub other_samples: u64,
}

/// A line of source, or an instruction that has no line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SampledPlace {
    /// The file, as the code names it.
    pub file: Option<Arc<str>>,
    /// The line in it.
    pub line: Option<u32>,
    /// Why there is no line, as in the table `pc_samples`.
    #[schemars(with = "Option<String>")]
    pub no_line: Option<NoLine>,
    /// The instruction with the most samples, bytes from the function's start.
    pub offset_bytes: u64,
    /// Instructions with samples.
    pub instructions: u64,
    /// Samples of these instructions.
    pub samples: u64,
    /// Their share of the kernel's: 0 to 1.
    pub share: f64,
    /// The reasons that kept warps from issuing them, those with the most samples first.
    pub stalls: Vec<SampledStall>,
}

/// A reason for which warps did not issue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SampledStall {
    /// The reason, as in the table `pc_samples`: `long_scoreboard`, `wait`, …; `selected`: the warp issued.
    pub reason: Arc<str>,
    /// Samples with it.
    pub samples: u64,
    /// The share of the samples of the kernel or of the place: 0 to 1.
    pub share: f64,
    /// Its meaning; absent for reasons that this version does not know.
    pub meaning: Option<&'static str>,
    /// The advice where it takes much of the time; absent where that is no fault.
    pub advice: Option<&'static str>,
}

/// The key of a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PlaceKey {
    Line(Arc<str>, u32),
    /// The checksum of the code (cubin) and the offset in bytes, for an instruction without a line.
    Instruction(u64, u64),
}

/// A number of samples, in all and by reason.
#[derive(Default)]
struct SampleCounts {
    samples: u64,
    /// The samples with each reason.
    stalls: BTreeMap<Arc<str>, u64>,
}

/// The samples at one place.
#[derive(Default)]
struct PlaceCounts {
    counts: SampleCounts,
    /// The samples of each instruction, by the checksum of its code and its offset in bytes.
    instructions: BTreeMap<(u64, u64), u64>,
    no_line: Option<NoLine>,
}

/// The samples of one kernel.
#[derive(Default)]
struct KernelCounts {
    counts: SampleCounts,
    places: BTreeMap<PlaceKey, PlaceCounts>,
    /// `None` before the first row; the inner `None` where the period is not known or differs.
    period_cycles: Option<Option<u64>>,
}

/// Returns all kernels whose instructions were sampled, those with the most samples first.
pub fn sampled_kernels(timeline: &Timeline) -> Vec<SampledKernel> {
    let tables = &timeline.trace.tables;
    let table = &tables.pc_samples;
    if table.is_empty() {
        return Vec::new();
    }
    let kernels = IdIndex::<KernelId>::new(&tables.kernels.id);
    let known = |row: usize| table.kernel.at(row).and_then(|id| kernels.get(id));
    let name = |first: usize| match (known(first), &table.function[first]) {
        (Some(row), _) => timeline.kernel_names.name(row).to_owned(),
        (None, Some(function)) => Spellings::new(function).shown().to_owned(),
        (None, None) => gapscope_trace::kernel_names::UNKNOWN.to_owned(),
    };
    let mut by_kernel: BTreeMap<(String, Option<Arc<str>>), KernelCounts> = BTreeMap::new();
    let rows: Vec<usize> = (0..table.len()).collect();
    // Rows of a function follow each other.
    let of_one = |a: &usize, b: &usize| {
        (table.kernel.at(*a), &table.function[*a]) == (table.kernel.at(*b), &table.function[*b])
    };
    for rows in rows.chunk_by(of_one) {
        let key = (name(rows[0]), table.function[rows[0]].clone());
        let counts = by_kernel.entry(key).or_default();
        for row in rows {
            counts.add(table, *row);
        }
    }
    let all = (table.samples.iter()).fold(0, |sum: u64, samples| sum.saturating_add(*samples));
    let mut found: Vec<SampledKernel> = by_kernel
        .into_iter()
        .map(|((kernel, function), counts)| counts.finish(kernel, function, all))
        .collect();
    found.sort_by_key(|kernel| Reverse(kernel.samples));
    found
}

impl KernelCounts {
    /// Counts a row of the table.
    fn add(&mut self, table: &PcSamples, row: usize) {
        let (samples, reason) = (table.samples[row], &table.stall_reason[row]);
        self.counts.add(samples, reason);
        let instruction = (table.cubin_crc[row], table.offset_bytes[row]);
        let place = match (&table.file[row], table.line.at(row)) {
            (Some(file), Some(line)) => PlaceKey::Line(Arc::clone(file), line),
            _ => PlaceKey::Instruction(instruction.0, instruction.1),
        };
        let place = self.places.entry(place).or_default();
        place.counts.add(samples, reason);
        place.no_line = table.no_line[row];
        let sum = place.instructions.entry(instruction).or_default();
        *sum = sum.saturating_add(samples);
        let period = table.period_cycles.at(row);
        let known = self.period_cycles.get_or_insert(period);
        if *known != period {
            *known = None;
        }
    }

    /// Describes the kernel, with its [`MAX_PLACES`] places of most samples. `all` is the number of recorded samples.
    fn finish(self, kernel: String, function: Option<Arc<str>>, all: u64) -> SampledKernel {
        let samples = self.counts.samples;
        let mut places: Vec<(PlaceKey, PlaceCounts)> = self.places.into_iter().collect();
        places.sort_by_key(|(_, place)| Reverse(place.counts.samples));
        let others = places.split_off(places.len().min(MAX_PLACES));
        SampledKernel {
            kernel,
            function,
            samples,
            share: share(samples, all),
            period_cycles: self.period_cycles.flatten(),
            stalls: self.counts.stalls(),
            places: (places.into_iter())
                .map(|(place, counts)| counts.finish(place, samples))
                .collect(),
            other_samples: (others.iter()).fold(0, |sum, (_, place)| {
                sum.saturating_add(place.counts.samples)
            }),
        }
    }
}

impl PlaceCounts {
    /// Describes the place. `of_kernel` is the number of the kernel's samples.
    fn finish(self, place: PlaceKey, of_kernel: u64) -> SampledPlace {
        let hottest = self
            .instructions
            .iter()
            .max_by_key(|((_, offset), samples)| {
                // The first of equal instructions is taken.
                (**samples, Reverse(*offset))
            });
        let (file, line) = match place {
            PlaceKey::Line(file, line) => (Some(file), Some(line)),
            PlaceKey::Instruction(..) => (None, None),
        };
        SampledPlace {
            no_line: self.no_line.filter(|_| line.is_none()),
            file,
            line,
            offset_bytes: hottest.map_or(0, |((_, offset), _)| *offset),
            instructions: self.instructions.len() as u64,
            samples: self.counts.samples,
            share: share(self.counts.samples, of_kernel),
            stalls: self.counts.stalls(),
        }
    }
}

impl SampleCounts {
    fn add(&mut self, samples: u64, reason: &Arc<str>) {
        self.samples = self.samples.saturating_add(samples);
        let known = self.stalls.entry(Arc::clone(reason)).or_default();
        *known = known.saturating_add(samples);
    }

    /// Returns the reasons that occur, those with the most samples first.
    fn stalls(&self) -> Vec<SampledStall> {
        let mut stalls: Vec<SampledStall> = (self.stalls.iter())
            .filter(|(_, samples)| **samples > 0)
            .map(|(reason, samples)| SampledStall {
                reason: Arc::clone(reason),
                samples: *samples,
                share: share(*samples, self.samples),
                meaning: stall(reason).map(|stall| stall.meaning()),
                advice: stall(reason).and_then(|stall| stall.advice()),
            })
            .collect();
        stalls.sort_by_key(|stall| Reverse(stall.samples));
        stalls
    }
}

fn share(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        _ => part as f64 / all as f64,
    }
}
