//! Says why a question about a change has no answer: the run and the changes go in; each [`Refusal`] names what the trace lacks and
//! how to record it.

use super::Times;
use super::change::{Change, Target, To, What};
use super::recorded::Recorded;
use crate::gaps::Side;
use gapscope_timeline::Timeline;
use gapscope_timeline::lost_work::losses_of_work;
use gapscope_timeline::quantity::{Percent, count, ratio};
use gapscope_timeline::rank_list::{list, named};
use gapscope_trace::manifest::SamplingMode;
use schemars::JsonSchema;
use serde::Serialize;

/// Without a change, a replay with usual delays may be so far off the recording.
const MAX_POOLED_ERROR: f64 = 0.005;
/// Idle queues without a reason, and waits for unknown work, may have so much of the time.
const MAX_UNKNOWN_SHARE: f64 = 0.05;
/// Kernels that run beside each other for more than this share of their time slow each other by an unknown factor.
const MAX_OVERLAP_SHARE: f64 = 0.1;
/// The interval may be as wide as this share of the gain.
const MAX_WIDTH_OF_GAIN: f64 = 0.5;
/// An interval that is narrower than this share of the recorded time says enough, whatever the gain.
const MAX_WIDTH_OF_TIME: f64 = 0.01;
/// Of communication that is not matched across the ranks the time may have this share: it holds the waiting for other ranks.
const MAX_UNMATCHED_SHARE: f64 = 0.01;
/// For so large a share of the time the host may be outside of calls until the device's work ends.
const MAX_POLLED_SHARE: f64 = 0.5;
/// So large a share of submissions may have work without times.
const MAX_UNTIMED_SHARE: f64 = 0.01;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusal {
    /// The reason, a sentence.
    pub because: String,
    /// What to do about it, a sentence.
    pub instead: String,
}

impl Refusal {
    /// Returns the refusal of ranks whose times do not compare, for a reason that is the end of a sentence.
    pub fn of_clocks(reason: &str) -> Refusal {
        Refusal::new(
            format!("The times of the ranks do not compare: {reason}."),
            "Record all ranks on one machine, with gapscope itself.",
        )
    }

    /// Returns the refusal of a program of `size` ranks of which only some have a trace.
    pub fn of_missing_ranks(size: u32, traced: &[u32]) -> Refusal {
        Refusal::new(
            format!(
                "The program has {size} ranks, and only {} {} a trace.",
                named(traced),
                if traced.len() == 1 { "has" } else { "have" }
            ),
            "Record all ranks.",
        )
    }

    /// Returns the refusal of ranks that have no collective in common.
    pub fn of_no_collective() -> Refusal {
        Refusal::new(
            "No collective of the ranks could be matched, so that nobody knows which rank waits for which."
                .to_owned(),
            "Record a program whose ranks communicate by NCCL; `gapscope report` says what could not be matched.",
        )
    }

    /// Returns the refusal of collectives that were not matched as they ran, for a reason that is a sentence.
    pub(super) fn of_order(problem: String) -> Refusal {
        Refusal::new(problem, FROM_THE_START)
    }

    fn new(because: String, instead: &str) -> Refusal {
        Refusal {
            because,
            instead: instead.to_owned(),
        }
    }
}

/// What to record where collectives could not be matched.
const FROM_THE_START: &str = "Record all ranks from their start, with NCCL 2.25 or newer; `gapscope report` says what could not be matched.";

/// Returns refusals, each with the rank that it is of, or none for a run that is replayed alone. Those of several ranks that differ in nothing
/// but figures are one, with the figures of the first.
pub(super) fn of_each_rank(refusals: Vec<(Option<u32>, Refusal)>) -> Vec<Refusal> {
    let without_figures = |text: &str| -> String {
        let figures =
            |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',' | '<' | '>');
        text.split(figures).collect()
    };
    let mut kinds: Vec<(String, Refusal, Vec<u32>, bool)> = Vec::new();
    for (rank, refusal) in refusals {
        let kind = without_figures(&refusal.because);
        let known = kinds
            .iter_mut()
            .find(|(known, _, ranks, _)| *known == kind && !ranks.is_empty());
        match (known, rank) {
            (Some((_, first, ranks, differ)), Some(rank)) => {
                *differ |= first.because != refusal.because;
                ranks.push(rank);
            }
            (_, rank) => kinds.push((kind, refusal, rank.into_iter().collect(), false)),
        }
    }
    let each = kinds.into_iter().map(|(_, refusal, mut ranks, differ)| {
        ranks.dedup();
        let who = match ranks.as_slice() {
            [] => return refusal,
            [one] => format!("Rank {one}"),
            many => format!("Ranks {}", list(many)),
        };
        let figures = match differ {
            true => format!(" (with the figures of rank {})", ranks[0]),
            false => String::new(),
        };
        Refusal {
            because: format!("{who}{figures}: {}", refusal.because),
            ..refusal
        }
    });
    each.collect()
}

/// Returns the reasons that lie in the trace of a program, or of one of several ranks that are replayed together; `None` for ranks that could
/// not be joined, of which that says it all.
pub(super) fn of_trace(
    timeline: &Timeline,
    recorded: &Recorded,
    is_of_ranks: Option<bool>,
) -> Vec<Refusal> {
    let manifest = &timeline.trace.manifest;
    let mut refused = Vec::new();
    if recorded.works().next().is_none() {
        refused.push(Refusal::new(
            "No GPU work with known times lies in this part of the run.".to_owned(),
            "Record a run that uses the GPU, with times of each dispatch.",
        ));
        return refused;
    }
    if matches!(
        manifest.sampling_mode,
        SamplingMode::CommandBuffer | SamplingMode::Pass
    ) {
        refused.push(Refusal::new(
            "The trace has no times of single dispatches.".to_owned(),
            "Record with `--sampling dispatch`.",
        ));
    }
    let lost: Vec<String> = losses_of_work(manifest)
        .map(|(loss, _)| loss.kind.phrase(loss.count, &count(loss.count)))
        .collect();
    if !lost.is_empty() {
        refused.push(Refusal::new(
            format!(
                "The recording lost {}, and nobody knows what waited for these.",
                lost.join(" and ")
            ),
            "Record again; `gapscope report` says why they were lost.",
        ));
    }
    let untimed = recorded.facts.untimed_submissions;
    if ratio(untimed as i64, recorded.slot_count as i64) > MAX_UNTIMED_SHARE {
        refused.push(Refusal::new(
            format!(
                "{} of {} submissions have no work with known times.",
                count(untimed),
                count(recorded.slot_count as u64)
            ),
            "Record with times of each dispatch; of imports, export the file with all GPU work.",
        ));
    }
    let not_recorded = timeline.host_threads().not_recorded().iter();
    if not_recorded
        .map(|time| time.intersection(recorded.window))
        .any(|time| !time.is_empty())
    {
        refused.push(Refusal::new(
            "Of times in this part of the run the trace has nothing, as between two windows of a profiler."
                .to_owned(),
            "Ask about one window: import its file alone.",
        ));
    }
    refused.extend(is_of_ranks.and_then(|is_of_ranks| of_communication(recorded, is_of_ranks)));
    refused
}

fn of_communication(recorded: &Recorded, is_of_ranks: bool) -> Option<Refusal> {
    let communication_ns = recorded.facts.communication_ns;
    if !is_of_ranks {
        return (communication_ns > 0).then(|| {
            Refusal::new(
                "The program communicates between devices: each piece of communication waits for the others, which the trace of one \
                 process does not have."
                    .to_owned(),
                "Ask about the folder that holds the traces of all ranks.",
            )
        });
    }
    let share = ratio(communication_ns, recorded.length_ns());
    (share > MAX_UNMATCHED_SHARE).then(|| {
        Refusal::new(
            format!(
                "Communication with {} of the time could not be matched with that of the other ranks, or is of a kind that does not wait \
                 for all of them.",
                Percent(share)
            ),
            FROM_THE_START,
        )
    })
}

/// Returns the reason where a replay without changes does not come to the recording.
pub(super) fn of_replay(pooled_error: Option<f64>) -> Option<Refusal> {
    let error = pooled_error.filter(|error| error.abs() > MAX_POOLED_ERROR)?;
    Some(Refusal::new(
        format!(
            "A replay with usual delays and nothing changed is {} off the recording, and at most {} would be believed: the run's \
                 delays differ too much, or something waited for what the trace does not have.",
            more_than(error.abs(), MAX_POOLED_ERROR),
            Percent(MAX_POOLED_ERROR)
        ),
        "Record on a quiet machine, and more steps after the warm-up; `--step` chooses them.",
    ))
}

/// Formats a share with so many digits that it reads as more than a limit.
fn more_than(share: f64, limit: f64) -> String {
    let text = Percent(share).to_string();
    match text == Percent(limit).to_string() {
        true => format!("{:.3} %", (share * 1e5).ceil() / 1e3),
        false => text,
    }
}

/// Returns the reasons that lie in what a trace does not know.
pub(super) fn of_unknown(recorded: &Recorded) -> Vec<Refusal> {
    let mut refused = Vec::new();
    let window_ns = recorded.length_ns();
    let facts = &recorded.facts;
    let unexplained = ratio(facts.unexplained_ns, window_ns);
    if unexplained > MAX_UNKNOWN_SHARE {
        refused.push(Refusal::new(
            format!(
                "Queues idled for {} of the time although their work had been submitted, and the trace does not say why.",
                Percent(unexplained)
            ),
            "Record on a quiet machine; where this is an import, record the waits of streams, too (PyTorch's profiler: `enable_cuda_sync_events`).",
        ));
    }
    let polled = ratio(facts.polled_ns, window_ns);
    if polled > MAX_POLLED_SHARE {
        refused.push(Refusal::new(
            format!(
                "For {} of the time the host was outside of calls until the device's work ended, and called right after: it may have \
                 waited for the device without a call, as by reading mapped memory, or worked.",
                Percent(polled)
            ),
            "Wait with a call of the API, and record again.",
        ));
    }
    let display = ratio(facts.display_ns, window_ns);
    if display > MAX_UNKNOWN_SHARE {
        refused.push(Refusal::new(
            format!(
                "For {} of the time the host was in calls that take images from the display or give them back: where the rest of a frame takes \
                 less, these calls may take longer.",
                Percent(display)
            ),
            "Record without the display, or with a mode of presentation that does not wait for it.",
        ));
    }
    let unknown = ratio(facts.unknown_wait_ns, window_ns);
    if unknown > MAX_UNKNOWN_SHARE {
        refused.push(Refusal::new(
            format!(
                "The host waited for {} of the time for work that the trace does not have.",
                Percent(unknown)
            ),
            "Record from the start of the program, or choose later steps with `--step`.",
        ));
    }
    refused
}

/// Returns the reasons that lie in the changes.
pub(super) fn of_changes(recorded: &Recorded, changes: &[&Change]) -> Vec<Refusal> {
    let facts = &recorded.facts;
    let mut refused = Vec::new();
    let changes_kernels = |change: &&Change| match &change.what {
        What::Time(target, _) => matches!(
            target,
            Target::Kernels(_) | Target::Labels(_) | Target::Device
        ),
        _ => false,
    };
    let overlap = ratio(facts.overlapped_ns, facts.kernel_ns);
    if changes.iter().any(changes_kernels) && overlap > MAX_OVERLAP_SHARE {
        refused.push(Refusal::new(
            format!(
                "Kernels run beside each other for {} of their time: how much faster the others would be alone is not known.",
                Percent(overlap)
            ),
            "Record a run with one queue, or measure the change and compare with `gapscope diff`.",
        ));
    }
    let drops_waits = |change: &&Change| matches!(change.what, What::WaitEach(_));
    if changes.iter().any(drops_waits) && facts.guessed > facts.guessed_hand_overs {
        refused.push(Refusal::new(
            format!(
                "The trace does not say for which work {} of the host's waits are.",
                count(facts.guessed - facts.guessed_hand_overs)
            ),
            "Record with gapscope itself, with waits for a queue or a device.",
        ));
    }
    let window_ns = recorded.length_ns();
    let changes_work = changes.iter().any(|change| change.is_of_work());
    let blocked = ratio(facts.blocked_ns, window_ns);
    if changes_work && blocked > MAX_UNKNOWN_SHARE {
        refused.push(Refusal::new(
            format!(
                "Long calls that hand over work, or allocate and free memory, last for {} of the time, and may have waited for the device.",
                Percent(blocked)
            ),
            "Ask about these calls, with call:FUNCTION; `gapscope report` says what they wait for.",
        ));
    }
    if changes_work && facts.hand_overs == 0 && recorded.threads_at_work() > 1 {
        refused.push(Refusal::new(
            "Several threads use the GPU, and the trace does not say which of them waits for which.".to_owned(),
            "Ask about `host` or calls, or measure the change and compare with `gapscope diff`.",
        ));
    }
    let idles = |change: &&&Change| match &change.what {
        What::Time(Target::Idle(cause), to) => *to != To::Factor(1.0) && cause.side() != Side::Host,
        _ => false,
    };
    if let Some(change) = changes.iter().find(idles) {
        refused.push(Refusal::new(
            format!(
                "`{}` is about idle time that is not the host's own.",
                change.text
            ),
            "Use wait=eachN, launch, transfer=overlap or queues=independent.",
        ));
    }
    refused
}

/// Returns the reason where kernels of one device would run beside each other for longer than they did.
pub(super) fn of_overlap(recorded: &Recorded, overlapped_ns: i64) -> Option<Refusal> {
    let facts = &recorded.facts;
    let more_ns = overlapped_ns.saturating_sub(facts.overlapped_ns);
    let share = ratio(more_ns, facts.kernel_ns);
    (share > MAX_OVERLAP_SHARE).then(|| {
        Refusal::new(
            format!(
                "Kernels of one device would run beside each other for {} more of their time, and how much they would slow each other is \
                 not known.",
                Percent(share)
            ),
            "Measure the change, and compare with `gapscope diff`.",
        )
    })
}

/// Returns the reason why an interval says too little; `None` where it says enough. `hand_overs` is true where some of the guesses are
/// about which thread waited for which.
pub(super) fn of_interval(recorded_ns: i64, times: Times, hand_overs: bool) -> Option<Refusal> {
    let width = times.high.saturating_sub(times.low) as f64;
    let gain = recorded_ns.abs_diff(times.mid) as f64;
    let is_enough = width <= (MAX_WIDTH_OF_GAIN * gain).max(MAX_WIDTH_OF_TIME * recorded_ns as f64);
    (!is_enough).then(|| {
        let share = |ns: i64| Percent(1.0 - ns as f64 / recorded_ns.max(1) as f64);
        Refusal::new(
            format!(
                "The gain lies between {} and {}, by what is only guessed in this trace.",
                share(times.high),
                share(times.low)
            ),
            match hand_overs {
                true => {
                    "Record a longer run, or more stack samples with `--stack-rate`: they tell which thread waited for which."
                }
                false => {
                    "Record with gapscope itself, or with the options that record what waits for what."
                }
            },
        )
    })
}
