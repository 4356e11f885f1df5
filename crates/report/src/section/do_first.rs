//! Makes the section on what to do first: one action, its place, and by how much the judged time could get shorter at most.

use super::actions::{action_and_reason, clipped};
use super::{gains, limits};
use crate::document::{Block, Text};
use crate::number;
use crate::what_if::gain_text;
use gapscope_analysis::Findings;
use gapscope_analysis::code::{Code, WaitedFor, text};
use gapscope_analysis::device_balance::{Turns, Uneven};
use gapscope_analysis::first_step::{Cost, CostPart, FirstStep, first_step};
use gapscope_analysis::gaps::{AdviceSubject, Cause, GapTotal};
use gapscope_analysis::limits::KernelLimit;
use gapscope_analysis::transfers::TransferRow;
use gapscope_analysis::what_if::gains::{GainSubject, PredictedGain};
use gapscope_timeline::busy::{DeviceBusy, names};
use gapscope_timeline::vocabulary::Words;

/// Makes the section; none where there is no first step.
pub(crate) fn blocks(findings: &Findings, words: &Words) -> Vec<Block> {
    let text = sentences(findings, words);
    let next = gains::next(findings).map_or(String::new(), |next| format!(" {next}"));
    let block = text.map(|[action, rest]| {
        let text = Text::new().strong(format!("Do first: {action}"));
        Block::Apart(text.and(rest).and(next))
    });
    block.into_iter().collect()
}

/// Returns what to do first in plain text; `None` where there is no first step.
pub(crate) fn plain_text(findings: &Findings, words: &Words) -> Option<String> {
    let text = sentences(findings, words);
    text.map(|[action, rest]| format!("Do first: {action}{rest}"))
}

/// Returns the action, without a capital and with its full stop, and the sentences behind it, each with a space before it.
fn sentences(findings: &Findings, words: &Words) -> Option<[String; 2]> {
    let first = first_step(findings)?;
    let (action, reason) = match first.cost {
        Cost::Idle(total) => idle(findings, total, first.costs_of.part),
        Cost::BelowLimit(kernel) if kernel.limit == Some(KernelLimit::TooSmall) => (
            more_workgroups(&kernel.name, words),
            Some(format!(
                "It has too few {} for the GPU",
                words.workgroup.many
            )),
        ),
        Cost::BelowLimit(kernel) if kernel.limit == Some(KernelLimit::Tail) => (
            format!(
                "even out the {} of the kernel {}",
                words.workgroup.many,
                clipped(&kernel.name)
            ),
            Some("The last of them leave much of the GPU unused".to_owned()),
        ),
        Cost::BelowLimit(kernel) => (
            format!("bring the kernel {} to its limit", clipped(&kernel.name)),
            limits::what_limits(kernel),
        ),
        Cost::Kernel(kernel) => match kernel.limit {
            Some(KernelLimit::Short) => (
                format!(
                    "run the kernel {} less often, or merge it with others",
                    clipped(&kernel.name)
                ),
                limits::what_limits(kernel),
            ),
            _ => (
                format!(
                    "make the kernel {} faster, or run it less often",
                    clipped(&kernel.name)
                ),
                limits::what_limits(kernel),
            ),
        },
        Cost::Underfilled(kernel) => (
            more_workgroups(&kernel.name, words),
            Some(format!(
                "Its {} can use {} of the GPU at most",
                words.workgroup.count(u64::from(kernel.groups_p50)),
                number::share(kernel.fill),
            )),
        ),
        Cost::Transfers => transfers(findings),
        Cost::Communication if findings.hides_waits_for_ranks => (
            "bring the traces of all ranks into one folder, and report on that".to_owned(),
            Some(
                "The trace of one rank does not tell communication from waiting for the others"
                    .to_owned(),
            ),
        ),
        Cost::Communication => (
            "communicate less, or communicate while kernels compute".to_owned(),
            None,
        ),
        Cost::Uneven(uneven) => self::uneven(findings, &uneven),
        Cost::Turns(turns) => self::turns(&turns),
    };
    let reason = reason.map_or(String::new(), |reason| format!(" {reason}."));
    let bound = match first.gain {
        Some(gain) => Some(gained(findings, gain, &first, words)),
        None => bound(&first, words, findings.hides_waits_for_ranks),
    };
    let bound = bound.map_or(String::new(), |bound| format!(" {bound}."));
    if first.is_small {
        let rest = format!(" The step that could win most: {action}.{reason}{bound}");
        return Some(["no single step would help much.".to_owned(), rest]);
    }
    Some([format!("{action}."), reason + &bound])
}

/// Returns what to do about transfers, with the reason. Where most of them are of one kind that has an advice of its own, such as
/// copies of pageable memory, which cannot run beside kernels, it is that.
fn transfers(findings: &Findings) -> (String, Option<String>) {
    let mut advice = findings.advice.iter();
    let own = advice
        .find(|advice| advice.cause == AdviceSubject::Work("transfer"))
        .filter(|advice| advice.text.starts_with("most of this time"));
    match own {
        Some(advice) => action_and_reason(&advice.text),
        None => (
            match findings.kernels.is_empty() {
                true => "copy less".to_owned(),
                false => "copy less, or copy while kernels run".to_owned(),
            },
            longest_transfers(findings),
        ),
    }
}

/// Returns what to do about a device that has most of the work, with the reason.
fn uneven(findings: &Findings, uneven: &Uneven) -> (String, Option<String>) {
    let names = names(&findings.devices);
    let name = |device: &DeviceBusy| {
        names
            .get(device.index as usize)
            .cloned()
            .unwrap_or_default()
    };
    let most = name(uneven.most);
    let (to, others) = match uneven.others {
        1 => {
            let least = name(uneven.least);
            (least.clone(), format!("{least} for"))
        }
        count => (
            "the other GPUs".to_owned(),
            format!("the other {count} GPUs for a mean of"),
        ),
    };
    if uneven.holding > 1 {
        let holding = uneven.holding;
        return (
            format!("move work from the {holding} busiest GPUs to the others"),
            Some(format!(
                "They hold the run: {most} was busy for {} of the time, {others} {}",
                number::share(uneven.most_share),
                number::share(uneven.others_share)
            )),
        );
    }
    (
        format!("move work from {most} to {to}"),
        Some(format!(
            "{most} holds the run: it was busy for {} of the time, {others} {}",
            number::share(uneven.most_share),
            number::share(uneven.others_share)
        )),
    )
}

/// Returns what to do about devices that take turns, with the reason.
fn turns(turns: &Turns) -> (String, Option<String>) {
    (
        "let the GPUs work at the same time, such as on parts of a batch one after the other"
            .to_owned(),
        Some(format!(
            "The {} GPUs take turns: one of them works for {} of the time, and several do for {} of that",
            turns.devices,
            number::share(turns.any_share),
            number::share(turns.overlap_share)
        )),
    )
}

/// Returns what to do about a kernel that has too few workgroups.
fn more_workgroups(kernel: &str, words: &Words) -> String {
    format!(
        "give the kernel {} more {}, or run others beside it",
        clipped(kernel),
        words.workgroup.many
    )
}

/// Returns what a step would bring by a replay of the run, as a sentence without its full stop.
fn gained(findings: &Findings, gain: &PredictedGain, first: &FirstStep, words: &Words) -> String {
    let changed = match (&gain.subject, first.cost) {
        (_, Cost::Idle(total)) => match total.cause {
            Cause::AfterHostWait => "With only each tenth wait".to_owned(),
            Cause::QueueHandover => format!("With {} that are independent", words.queue.many),
            cause => format!("Without this idle time ({})", cause.facts(words.api).name),
        },
        (GainSubject::Kernel(..), Cost::BelowLimit(_)) => "At that limit".to_owned(),
        (GainSubject::OverlappedTransfers, _) => "With copies beside kernels".to_owned(),
        (GainSubject::HalvedTransfers, _) => "With copies in half their time".to_owned(),
        _ => "At half its time".to_owned(),
    };
    let unit = match findings.gains.gains_of_steps {
        Some(_) => "a step",
        None => "the replayed part of the run",
    };
    format!(
        "{changed}, {unit} would take {} less",
        gain_text(gain.low, gain.mid, gain.high)
    )
}

/// Returns by how much the time that the costs are of gets shorter at most, as a sentence without its full stop.
fn bound(first: &FirstStep, words: &Words, hides_waits: bool) -> Option<String> {
    let saves_ns = first.saves_ns?;
    let without = match first.cost {
        Cost::Idle(total) => format!(
            "Without this idle time ({})",
            total.cause.facts(words.api).name
        ),
        Cost::BelowLimit(_) => "Then, with the same work".to_owned(),
        Cost::Kernel(_) => "Without it".to_owned(),
        Cost::Underfilled(_) => "With the GPU filled".to_owned(),
        Cost::Transfers => "Without copies that nothing runs beside".to_owned(),
        // What is waiting for others goes away with the others' lateness.
        Cost::Communication if hides_waits => return None,
        Cost::Communication => "Without communication that nothing computes beside".to_owned(),
        Cost::Uneven(_) => "With the same work split evenly".to_owned(),
        Cost::Turns(_) => "With the others at work while the busiest one is".to_owned(),
    };
    let whole = match first.costs_of.part {
        CostPart::Run => "the run",
        CostPart::Judged => "the judged time",
        CostPart::OutsideOfLongGap => "the time outside of that gap",
    };
    Some(format!(
        "{without}, {whole} is at most {} ({}) shorter, all else equal",
        number::duration(saves_ns),
        number::share_of(saves_ns, first.costs_of.length_ns)
    ))
}

/// Returns what to do about the idle time of a cause, with the place in the code, and why.
fn idle(findings: &Findings, total: &GapTotal, of: CostPart) -> (String, Option<String>) {
    let advice = findings.advice_on(total.cause).unwrap_or_default();
    let (action, reason) = action_and_reason(advice);
    let place = match of {
        CostPart::OutsideOfLongGap => {
            let code = findings.code.as_ref().map(Code::outside_of_longest);
            place(code.as_ref(), total.cause, None)
        }
        CostPart::Run | CostPart::Judged => {
            place(findings.code.as_ref(), total.cause, Some(total.total_ns))
        }
    };
    let action = match place.filter(|place| !advice.contains(place.as_str())) {
        Some(place) => format!("{action} ({place})"),
        None => action,
    };
    (action, reason)
}

/// Returns the line of code that most of a cause's idle time passed in, or, of a thread that mostly slept for another one, what that other one
/// mostly ran; `None` where the trace does not show it. `total_ns` is all idle time of the cause, where that is more than the idle time of
/// threads that submit.
fn place(all: Option<&Code>, cause: Cause, total_ns: Option<i64>) -> Option<String> {
    let all = all?;
    let code = all.of_cause(cause)?;
    let slept = code.mostly_slept_for().filter(|_| cause == Cause::HostLate);
    if slept.is_some_and(|sleep| sleep.waited_for == WaitedFor::Thread)
        && let Some(ran) = all.ran_meanwhile.first()
        && 2 * ran.samples >= code.samples
    {
        return Some(clipped(&text(&ran.frames)));
    }
    // Of the code that accounts for little of the time nothing is said.
    let shown = code.in_short(total_ns.unwrap_or(code.total_ns))?;
    let line = code.lines().into_iter().next().map(|line| line.text);
    Some(clipped(&line.unwrap_or(shown)))
}

/// Names the transfers that took longest, as a sentence without its full stop.
fn longest_transfers(findings: &Findings) -> Option<String> {
    let transfers = findings.transfers.known()?.iter();
    let timed = transfers.filter_map(|row| Some((row, row.busy_ns?)));
    let (row, ns): (&TransferRow, i64) = timed.rev().max_by_key(|(_, ns)| *ns)?;
    let size = match (row.bytes, row.unknown_bytes_count) {
        (Some(bytes), 0) => format!(", {}", number::bytes(bytes)),
        _ => String::new(),
    };
    Some(format!(
        "Most of the time of transfers went to {} of kind {}{size}: {}",
        number::count_of(row.count, "transfer", "transfers"),
        row.kind.as_str(),
        number::duration(ns)
    ))
}
