//! Makes the section on hot instructions: the places in kernels with the most samples, and what kept warps from
//! issuing there. A warp is a group of threads that run in step; a stall is a reason why a warp waited.

use crate::document::{Block, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::instructions::{SampledKernel, SampledPlace, SampledStall};
use gapscope_timeline::thresholds::{SAMPLES_TOLD, STALL_TOLD};
use gapscope_trace::tables::NoLine;

/// The maximum number of kernels that are listed.
const MAX_KERNELS: usize = 5;
/// The maximum number of reasons that are listed for a place.
const MAX_REASONS: usize = 2;
/// The share of the kernel's samples below which a place is left out.
const MIN_PLACE_SHARE: f64 = 0.01;

/// Makes the section, with a table for each kernel; none without samples.
pub(crate) fn blocks(findings: &Findings, top: usize) -> Vec<Block> {
    let all = &findings.sampled_kernels;
    let told = all.iter().filter(|kernel| kernel.samples > 0);
    let mut blocks: Vec<Block> = told
        .take(MAX_KERNELS.min(top))
        .flat_map(|kernel| of_kernel(kernel, top))
        .collect();
    if blocks.is_empty() {
        return blocks;
    }
    let mut text = "A sample says which instruction is a warp's next one, and why the warp did not issue it yet. Shares are of \
                    samples, over the whole recording."
        .to_owned();
    if let Some(period) = period(all) {
        text += &format!(
            " A multiprocessor gives one every {} cycles, of one of the warps that it has.",
            number::count(period)
        );
    }
    text += " More: sampled_kernels in --json, the table pc_samples in SQL.";
    blocks.push(Block::Sentence(Text::new().faint(text)));
    blocks
}

/// The place in a kernel with the most samples.
pub(crate) struct MostSamples {
    pub sentence: String,
    /// The advice on the most frequent reason.
    pub advice: Option<&'static str>,
    /// The number of samples of the kernel.
    pub samples: u64,
    /// The index of the kernel among the sampled kernels.
    pub place: usize,
}

/// Returns the place with the most samples of a kernel, or `None` where the kernel has too few samples.
pub(crate) fn most_samples(findings: &Findings, kernel: &str) -> Option<MostSamples> {
    let all = &findings.sampled_kernels;
    let told =
        |sampled: &SampledKernel| sampled.kernel == kernel && sampled.samples >= SAMPLES_TOLD;
    let at = all.iter().position(told)?;
    let sampled = &all[at];
    let place = sampled.places.first()?;
    let why = match reasons(&place.stalls) {
        none if none.is_empty() => none,
        some => format!(": {some}"),
    };
    let share = number::share(place.share);
    let samples = number::count_of(sampled.samples, "sample", "samples");
    let sentence = format!(
        "{share} of its {samples} of instructions are at {}{why}.",
        name(place)
    );
    let most = sampled
        .stalls
        .first()
        .filter(|stall| stall.share >= STALL_TOLD);
    Some(MostSamples {
        sentence,
        advice: most.and_then(|most| most.advice),
        samples: sampled.samples,
        place: at,
    })
}

/// Returns the cycles between two samples, if all kernels have the same.
fn period(all: &[SampledKernel]) -> Option<u64> {
    let first = all.first()?.period_cycles;
    let is_same = all.iter().all(|kernel| kernel.period_cycles == first);
    first.filter(|_| is_same)
}

/// Returns the table of a kernel's places, reasons for places without a source line, and what its warps waited for.
fn of_kernel(kernel: &SampledKernel, top: usize) -> Vec<Block> {
    let aside = format!(
        "{}, {} of all",
        number::count_of(kernel.samples, "sample", "samples"),
        number::share(kernel.share)
    );
    let shown: Vec<&SampledPlace> = (kernel.places.iter())
        .filter(|place| place.share >= MIN_PLACE_SHARE)
        .take(top)
        .collect();
    let mut blocks = Table::with_rows(&shown)
        .name("instructions", |place| Text::new().strong(name(place)))
        .number("samples", |place| number::share(place.share))
        .text("why warps waited there", |place| reasons(&place.stalls))
        .under(format!("Instructions of {}", kernel.kernel), aside);
    for why in NoLine::ALL {
        let first = (shown.iter()).find(|place| place.no_line == Some(*why));
        blocks.extend(first.map(|place| {
            let text = format!("{}: {}.", name(place), why.sentence());
            Block::Sentence(text.into())
        }));
    }
    let told = (kernel.stalls.iter()).filter(|stall| stall.share >= STALL_TOLD);
    blocks.extend(told.map(|stall| Block::Item(says(stall))));
    blocks
}

/// Returns the name of a place: `scale.cu:12`, or `+0x1a0` where there is no line.
fn name(place: &SampledPlace) -> String {
    match (&place.file, place.line) {
        (Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{file}:{line}")
        }
        _ => format!("+{:#x}", place.offset_bytes),
    }
}

/// Returns the reason's name in words.
fn in_words(stall: &SampledStall) -> String {
    stall.reason.replace('_', " ")
}

/// Returns the most frequent reasons with their shares.
fn reasons(stalls: &[SampledStall]) -> String {
    let told = (stalls.iter())
        .filter(|stall| stall.share >= STALL_TOLD)
        .take(MAX_REASONS);
    let told = told.map(|stall| format!("{} {}", in_words(stall), number::share(stall.share)));
    told.collect::<Vec<_>>().join(", ")
}

/// Returns a text on what warps of the kernel waited for, and on what to do about it.
fn says(stall: &SampledStall) -> Text {
    let share = number::share(stall.share);
    let text = Text::new().strong(format!("{} {share}", in_words(stall)));
    let text = match stall.meaning {
        Some(meaning) => text.and(format!(": {meaning}")),
        None => text.and(": gapscope does not know this reason."),
    };
    match stall.advice {
        Some(advice) => text.faint(format!(" To do: {advice}.")),
        None => text,
    }
}
