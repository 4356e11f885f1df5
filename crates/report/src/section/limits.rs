//! Makes the section on what limits kernels, by hardware counters where the trace has some and by the shape of their
//! launches: how many workgroups they have. A wave is as many workgroups as the GPU can hold at once; occupancy is
//! the share of a multiprocessor's warps that a launch can use.
//!
//! Listed are kernels that could save, or are at their limit and take, at least the share of time from which advice
//! is given.

use super::{or_unknown, rest};
use crate::document::{Block, Table, TableBuilder, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::limits::{KernelLimit, LimitingUnit};
use gapscope_timeline::thresholds::ADVICE_SHARE;
use gapscope_trace::tables::HardwareCounter;
use std::cmp::Reverse;

/// Makes the section; none where no kernel is to be listed, none is short, and none takes long with an unknown limit.
pub(crate) fn blocks(findings: &Findings, top: usize) -> Vec<Block> {
    let kernels = &findings.kernels;
    let all_ns: i64 = (kernels.iter())
        .filter_map(|kernel| kernel.durations.total_ns)
        .fold(0, i64::saturating_add);
    let counts = |ns: i64| ns as f64 >= ADVICE_SHARE * all_ns as f64;
    let mut won: Vec<(&Kernel, i64)> = (kernels.iter())
        .filter_map(|kernel| Some((kernel, kernel.winnable_ns?)))
        // Kernels at their limit are listed, too.
        .filter(|(kernel, ns)| counts(*ns) || kernel.reached.is_some() && counts(total_ns(kernel)))
        .collect();
    won.sort_by_key(|(_, ns)| Reverse(*ns));
    let short = short(kernels).filter(|short| counts(short.total_ns));
    let unknown = unknown(kernels, counts);
    let mut blocks = Vec::new();
    if won.is_empty() && short.is_none() && unknown.is_none() {
        return blocks;
    }
    let aside = match findings.kernel_limits {
        Some(_) => "by hardware counters, and the shape of their launches",
        None => "by the shape of their launches; no counters",
    };
    blocks.push(Block::Heading("Limits of kernels".into(), aside.into()));
    let shown = &won[..won.len().min(top)];
    if !shown.is_empty() {
        blocks.push(Block::Table(match findings.kernel_limits {
            Some(_) => by_counters(shown),
            None => by_shape(shown),
        }));
        rest(&mut blocks, won.len(), shown.len(), "kernels");
        blocks.extend(phases(shown));
        let text = match findings.kernel_limits {
            Some(_) => {
                "could save: at most, by reaching the limit with the same work. reached: achieved of what is possible."
            }
            None => {
                "could save: at most, if the same work had workgroups for all multiprocessors, or filled its last wave."
            }
        };
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks.extend(short.map(|short| Block::Sentence(short.sentence().into())));
    blocks.extend(unknown.map(|text| Block::Sentence(text.into())));
    let sentences = findings.kernel_limits.iter().flat_map(|of| &of.sentences);
    blocks.extend(sentences.map(|text| Block::Sentence(Text::new().faint(text.as_str()))));
    blocks
}

/// Begins a table with the columns that are the same whatever the limits come from.
fn with_limits<'a>(shown: &'a [(&Kernel, i64)]) -> TableBuilder<'a, (&'a Kernel, i64)> {
    Table::with_rows(shown)
        .name("kernel", |(kernel, _)| {
            Text::new().strong(kernel.name.as_str())
        })
        .number("could save", |(_, ns)| {
            format!("≤ {}", number::duration(*ns))
        })
        .text("limit", |(kernel, _)| limit(kernel))
}

/// Returns the table for a trace without hardware counters.
fn by_shape(shown: &[(&Kernel, i64)]) -> Table {
    with_limits(shown)
        .number("multiprocessors", |(kernel, _)| multiprocessors(kernel))
        .spare(1)
        .number("waves", |(kernel, _)| waves(kernel))
        .spare(2)
        .number("occupancy", |(kernel, _)| occupancy(kernel))
        .spare(3)
        .build()
}

/// Returns the table for a trace with hardware counters.
fn by_counters(shown: &[(&Kernel, i64)]) -> Table {
    with_limits(shown)
        .number("reached", |(kernel, _)| reached(kernel))
        .number("DRAM", |(kernel, _)| share(kernel, LimitingUnit::Dram))
        .spare(1)
        .number("tensor", |(kernel, _)| share(kernel, LimitingUnit::Tensor))
        .spare(2)
        .number("FMA", |(kernel, _)| share(kernel, LimitingUnit::Fma))
        .spare(4)
        .number("SMs", |(kernel, _)| mean(kernel, HardwareCounter::SmActive))
        .spare(5)
        .number("warps", |(kernel, _)| {
            mean(kernel, HardwareCounter::WarpsActive)
        })
        .spare(6)
        .number("covered", |(kernel, _)| {
            let counters = kernel.counters.as_ref();
            or_unknown(counters.map(|of| of.covered_share), percent)
        })
        .spare(3)
        .number("waves", |(kernel, _)| waves(kernel))
        .spare(7)
        .build()
}

/// Returns the limit of a kernel, such as `compute: tensor`; of one with phases that of the longest, such as `memory (60 %)`.
fn limit(kernel: &Kernel) -> String {
    match kernel.phases.first() {
        None => limit_name(kernel.limit, kernel.limited_by),
        Some(longest) => {
            let name = limit_name(longest.limit, longest.limited_by);
            format!("{name} ({})", percent(longest.time_share))
        }
    }
}

/// Lists the phases of the kernels of a table.
fn phases(shown: &[(&Kernel, i64)]) -> Option<Block> {
    let several = shown.iter().filter(|(kernel, _)| !kernel.phases.is_empty());
    let listed = several.map(|(kernel, _)| {
        let phases = kernel.phases.iter().map(|phase| {
            let name = limit_name(phase.limit, phase.limited_by);
            let reached = phase.reached.map_or(String::new(), |share| {
                format!(" ({} reached)", percent(share))
            });
            format!("{name} for {}{reached}", percent(phase.time_share))
        });
        let phases: Vec<String> = phases.collect();
        format!("{}: {}", kernel.name, phases.join(", "))
    });
    let listed: Vec<String> = listed.collect();
    let text = format!(
        "Phases, by the part of a kernel's time: {}.",
        listed.join("; ")
    );
    (!listed.is_empty()).then(|| Block::Sentence(text.into()))
}

/// Returns the name of a limit with its unit; memory is named where it is not the device's.
fn limit_name(limit: Option<KernelLimit>, unit: Option<LimitingUnit>) -> String {
    let Some(limit) = limit else {
        return "unknown".to_owned();
    };
    match (limit, unit) {
        (KernelLimit::Compute | KernelLimit::Link, Some(unit))
        | (KernelLimit::Memory, Some(unit @ LimitingUnit::L2)) => {
            format!("{}: {}", limit.name(), unit.name())
        }
        _ => limit.name().to_owned(),
    }
}

/// Returns a sentence on what limits a kernel, or `None` where that is not known.
pub(crate) fn sentence(kernel: &Kernel) -> Option<String> {
    if kernel.limit.is_none() {
        let because = kernel.counters.as_ref()?.unknown_because.as_ref()?;
        return Some(format!("What limits it is unknown. {because}"));
    }
    let mut text = what_limits(kernel)?;
    if let Some(ns) = kernel.winnable_ns {
        text.push_str(&format!(
            "; {} could be saved at most",
            number::duration(ns)
        ));
    }
    Some(text + ".")
}

/// Returns a sentence, without its full stop, on what limits a kernel; `None` where that is not known.
pub(crate) fn what_limits(kernel: &Kernel) -> Option<String> {
    let limit = kernel.limit?;
    if limit == KernelLimit::Short {
        return Some("It takes hardly longer than the shortest kernel does".to_owned());
    }
    let mut text = match kernel.phases.as_slice() {
        [] => clause(limit, kernel.limited_by, &reached(kernel).plain_text()),
        phases => {
            let told = phases.iter().map(|phase| {
                let clause = match (phase.limit, phase.reached) {
                    (Some(limit), Some(share)) => clause(limit, phase.limited_by, &percent(share)),
                    _ => "its limit is unknown".to_owned(),
                };
                format!("for {} of its time {clause}", percent(phase.time_share))
            });
            format!(
                "it has phases: {}",
                told.collect::<Vec<String>>().join("; ")
            )
        }
    };
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Some(text)
}

/// Says what limits a kernel or a phase of it, and which share of the limit is reached.
fn clause(limit: KernelLimit, unit: Option<LimitingUnit>, reached: &str) -> String {
    let unit = unit.map_or("", LimitingUnit::name);
    match limit {
        KernelLimit::Memory => format!("memory limits it: {unit} is at {reached} of its limit"),
        KernelLimit::Compute => {
            format!("arithmetic limits it: {unit} is at {reached} of its limit")
        }
        KernelLimit::Link => {
            format!(
                "the link to the host or to another device limits it: {unit} is at {reached} of its limit"
            )
        }
        KernelLimit::Short => "it takes hardly longer than the shortest kernel does".to_owned(),
        KernelLimit::TooSmall => "it has too few workgroups for the GPU".to_owned(),
        KernelLimit::Tail => "its last wave of workgroups leaves much of the GPU unused".to_owned(),
        KernelLimit::Idle => format!("multiprocessors were active for {reached} of its time only"),
        KernelLimit::Latency => format!(
            "latency limits it: no unit is near its limit, {unit} the nearest with {reached}"
        ),
    }
}

/// Formats the reached share of the limit, such as `65 % ± 2`.
fn reached(kernel: &Kernel) -> Text {
    or_unknown(kernel.reached, |share| match kernel.reached_error {
        Some(error) if error.is_finite() => {
            format!(
                "{:.0} % ± {:.0}",
                share * 100.0,
                ((error * 1e4).round() / 1e2).ceil()
            )
        }
        _ => percent(share),
    })
}

/// Returns how far a unit is used, of what is possible.
fn share(kernel: &Kernel, unit: LimitingUnit) -> Text {
    let mut shares = kernel.counters.iter().flat_map(|of| &of.shares);
    let share = shares.find(|share| share.unit == unit);
    or_unknown(share.map(|share| share.share), percent)
}

/// Returns the mean of a counter in percent.
fn mean(kernel: &Kernel, counter: HardwareCounter) -> Text {
    let counters = kernel.counters.as_ref();
    let mean = counters.and_then(|of| of.mean_of(counter));
    or_unknown(mean, |of| percent(of.mean / 100.0))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn total_ns(kernel: &Kernel) -> i64 {
    kernel.durations.total_ns.unwrap_or(0)
}

/// Returns how many multiprocessors the launches can fill, of how many.
fn multiprocessors(kernel: &Kernel) -> String {
    kernel.launches.map_or(String::new(), |launches| {
        format!(
            "{:.0} of {}",
            launches.mean_multiprocessors.max(1.0),
            launches.multiprocessors
        )
    })
}

/// Returns how many waves the workgroups of a launch make.
fn waves(kernel: &Kernel) -> Text {
    let waves = kernel.launches.and_then(|launches| launches.waves);
    or_unknown(waves, |waves| match waves < 0.1 {
        true => "< 0.1".to_owned(),
        false => format!("{waves:.1}"),
    })
}

fn occupancy(kernel: &Kernel) -> Text {
    let occupancy = kernel.launches.and_then(|launches| launches.occupancy);
    or_unknown(occupancy, number::share)
}

/// The kernels that take hardly longer than the shortest kernel.
struct ShortKernels {
    kernels: u64,
    dispatches: u64,
    total_ns: i64,
    mean_ns: f64,
}

/// Sums the kernels that take hardly longer than the shortest kernel up; `None` where there are none.
fn short(kernels: &[Kernel]) -> Option<ShortKernels> {
    let of = || (kernels.iter()).filter(|kernel| kernel.limit == Some(KernelLimit::Short));
    let dispatches = of().map(|kernel| kernel.durations.timed_count).sum();
    let total_ns = of()
        .filter_map(|kernel| kernel.durations.total_ns)
        .fold(0, i64::saturating_add);
    (dispatches > 0).then(|| ShortKernels {
        kernels: of().count() as u64,
        dispatches,
        total_ns,
        mean_ns: total_ns as f64 / dispatches as f64,
    })
}

impl ShortKernels {
    fn sentence(&self) -> String {
        format!(
            "{} of {}, {} each on average ({} in all), take hardly longer than the shortest kernel does: fewer of them gain more than better ones.",
            number::count_of(self.dispatches, "dispatch", "dispatches"),
            number::count_of(self.kernels, "kernel", "kernels"),
            number::duration_f64(self.mean_ns),
            number::duration(self.total_ns),
        )
    }
}

/// Returns a sentence that names the first kernel that takes long and whose limit the counters do not tell, and the
/// number of others. `counts` says whether a time is long enough.
fn unknown(kernels: &[Kernel], counts: impl Fn(i64) -> bool) -> Option<String> {
    let because = |kernel: &Kernel| {
        let counters = kernel.counters.as_ref()?;
        counters.unknown_because.clone()
    };
    let of = || kernels.iter().filter(|kernel| counts(total_ns(kernel)));
    let mut unknown = of().filter_map(|kernel| Some((kernel, because(kernel)?)));
    let (first, because) = unknown.next()?;
    let more = match unknown.count() {
        0 => String::new(),
        count => format!(
            " {} more, each with its reason in --json.",
            number::count_of(count as u64, "kernel", "kernels")
        ),
    };
    Some(format!("Limit unknown: {}. {because}{more}", first.name))
}
