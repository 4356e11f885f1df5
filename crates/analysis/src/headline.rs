//! Makes the notes that stand beside the verdict: what a reader must know before believing it or acting on it.
//!
//! Input are the findings that the verdict rests on; output are sentences in the order in which they are read: times
//! that contradict each other, files that were joined, of how much of the run the verdict speaks, one gap that is most of that, phases whose
//! verdicts differ, lost and unused devices, and conditions that slowed a device down.

use crate::conditions::{ConditionKind, ConditionNote};
use crate::contradictions::Contradiction;
use crate::gaps::waits::{Unmeasured, lost_works};
use crate::verdict::Phase;
use gapscope_timeline::Timeline;
use gapscope_timeline::busy::{self, DeviceBusy};
use gapscope_timeline::intervals::{Interval, union_length_ns};
use gapscope_timeline::quantity::{Nanoseconds, Percent, count_of, ratio};
use gapscope_timeline::thresholds::{
    CAPPED_SHARE, HARDLY_USED_SHARE, MISSING_WORK_SHARE, SLOWED_CLOCK, WHOLE_RUN_SHARE,
};
use gapscope_trace::LossKind;
use gapscope_trace::manifest::Loss;
use gapscope_trace::tables::Table;
use schemars::JsonSchema;
use serde::Serialize;

/// A sentence that belongs to the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeadlineNote {
    /// What the note is about.
    pub kind: HeadlineKind,
    /// The note in a sentence.
    pub sentence: String,
}

/// What a note beside the verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeadlineKind {
    /// Times that contradict each other.
    Contradiction,
    /// A file that was imported and could not be read whole.
    PartOfFile,
    /// Work of an imported file that has no rows, or whose times are unknown, since those in the file cannot be true.
    UntimedWork,
    /// Calls of the host that have no rows, so that its waits may be missing.
    LostCalls,
    /// A file of another profiler that was joined, and how sure the match is.
    JoinedFile,
    /// The part of the run that the verdict is of.
    Scope,
    /// One gap that is most of the time that the verdict is of.
    LongGap,
    /// A device that was lost.
    LostDevice,
    /// A device that ran nothing, or nearly nothing.
    UnusedDevice,
    /// A part of the program whose verdict differs from another part's.
    Phase,
    /// Heat, a power limit, or another condition that slowed a device down.
    Condition,
}

/// The findings that the notes are made from.
pub(crate) struct HeadlineInput<'a> {
    pub(crate) timeline: &'a Timeline<'a>,
    pub(crate) devices: &'a [DeviceBusy],
    pub(crate) conditions: &'a [ConditionNote],
    pub(crate) contradictions: &'a [Contradiction],
    pub(crate) phases: &'a [Phase],
    /// The sentence on a gap that is most of the judged time.
    pub(crate) long_gap: Option<&'a str>,
    /// The times in which work without known times may have run.
    pub(crate) unmeasured: &'a Unmeasured,
    /// The window that the verdict is of.
    pub(crate) window: Option<Interval>,
    /// The length of the recording.
    pub(crate) wall_ns: Option<i64>,
}

/// Returns the notes in the order in which they are read.
pub(crate) fn headline(input: &HeadlineInput) -> Vec<HeadlineNote> {
    let contradictions = input.contradictions.iter();
    let contradictions =
        contradictions.map(|found| (HeadlineKind::Contradiction, found.sentence.clone()));
    let mut notes: Vec<(HeadlineKind, String)> = contradictions.collect();
    notes.extend(input.unread_parts());
    notes.extend(input.untimed_work());
    notes.extend(input.lost_calls());
    let joined = input.timeline.trace.manifest.joined_files.iter();
    notes.extend(joined.map(|file| (HeadlineKind::JoinedFile, format!("Joined with {file}"))));
    notes.extend(input.scope().map(|text| (HeadlineKind::Scope, text)));
    let long_gap = input.long_gap.map(str::to_owned);
    notes.extend(long_gap.map(|text| (HeadlineKind::LongGap, text)));
    let phases = input.phases.iter();
    notes.extend(phases.map(|phase| (HeadlineKind::Phase, phase.sentence.clone())));
    notes.extend(input.lost());
    notes.extend(
        input
            .unused()
            .map(|text| (HeadlineKind::UnusedDevice, text)),
    );
    notes.extend(input.hardly_used());
    notes.extend(input.slowed());
    let notes = notes.into_iter();
    notes
        .map(|(kind, sentence)| HeadlineNote { kind, sentence })
        .collect()
}

impl HeadlineInput<'_> {
    /// Says what of the file that was imported could not be read.
    fn unread_parts(&self) -> impl Iterator<Item = (HeadlineKind, String)> {
        let losses = self.timeline.trace.manifest.losses.iter();
        losses.filter_map(|loss| {
            let what = match (&loss.kind, loss.count) {
                (LossKind::FileParts, 1) => "A part of the file".to_owned(),
                (LossKind::FileParts, count) => format!("{count} parts of the file"),
                (LossKind::FileRests, _) => "The end of the file".to_owned(),
                (LossKind::DatabasePages, 1) => "A page of the database".to_owned(),
                (LossKind::DatabasePages, count) => format!("{count} pages of the database"),
                (LossKind::DatabaseRows, 1) => "A row of the database".to_owned(),
                (LossKind::DatabaseRows, count) => format!("{count} rows of the database"),
                _ => return None,
            };
            let sentence = format!("{what} could not be read: {}.", loss.reason);
            Some((HeadlineKind::PartOfFile, sentence))
        })
    }

    /// Says of how much work an imported file has no times, times that cannot be true, or no rows.
    fn untimed_work(&self) -> impl Iterator<Item = (HeadlineKind, String)> {
        let manifest = &self.timeline.trace.manifest;
        let mut processes = manifest.processes.iter();
        let is_imported = processes.any(|process| process.other_tool().is_some());
        let losses = manifest.losses.iter().filter(move |_| is_imported);
        let losses = losses.cloned().chain(undefined_queues(self.timeline));
        let works = self.timeline.gpus.iter().map(|gpu| gpu.works.len() as u64);
        let works = works.fold(0, u64::saturating_add);
        losses.filter_map(move |loss| {
            let count = loss.count;
            let lost = match loss.kind {
                LossKind::Dispatches => Some(count_of(count, "dispatch is", "dispatches are")),
                LossKind::Transfers => Some(count_of(count, "transfer is", "transfers are")),
                LossKind::CommandBuffers => {
                    Some(count_of(count, "command buffer is", "command buffers are"))
                }
                LossKind::RepeatedEvents => {
                    let sentence = format!(
                        "{}: each counts once.",
                        count_of(
                            count,
                            "event of the file is a repetition",
                            "events of the file are repetitions"
                        )
                    );
                    return Some((HeadlineKind::UntimedWork, sentence));
                }
                _ => None,
            };
            if let Some(lost) = lost {
                // A recording that stops lacks the last work of each queue.
                if count as f64 <= MISSING_WORK_SHARE * works.saturating_add(count) as f64 {
                    return None;
                }
                let reason = loss.reason.trim_start_matches("they were ");
                let sentence = format!("{lost} lost: {reason}.");
                return Some((HeadlineKind::UntimedWork, sentence));
            }
            let works = match loss.kind {
                LossKind::DispatchTimes => count_of(loss.count, "dispatch", "dispatches"),
                LossKind::TransferTimes => count_of(loss.count, "transfer", "transfers"),
                LossKind::OpaqueWorkTimes => {
                    count_of(loss.count, "piece of other work", "pieces of other work")
                }
                _ => return None,
            };
            let sentence = format!(
                "When {works} ran is not known: {}. No figure rests on these times.",
                loss.reason
            );
            Some((HeadlineKind::UntimedWork, sentence))
        })
    }

    /// Says that calls of the host are lost, where they are so many that idle time may have other causes.
    fn lost_calls(&self) -> Option<(HeadlineKind, String)> {
        let trace = self.timeline.trace;
        let losses = trace.manifest.losses.iter();
        let lost = losses.filter(|loss| loss.kind == LossKind::HostCalls);
        let lost = lost.map(|loss| loss.count).fold(0, u64::saturating_add);
        let all = lost.saturating_add(trace.tables.host_calls.len() as u64);
        if lost == 0 || (lost as f64) < MISSING_WORK_SHARE * all as f64 {
            return None;
        }
        let sentence = format!(
            "{} lost: time in which the host seems to be late may have been spent in waits.",
            count_of(lost, "call of the host is", "calls of the host are")
        );
        Some((HeadlineKind::LostCalls, sentence))
    }

    /// Says of how much of the run the verdict speaks, where that is not nearly all.
    fn scope(&self) -> Option<String> {
        let (window, wall_ns) = (self.window?, self.wall_ns?);
        let pauses = self.timeline.host_threads().not_recorded().iter();
        let pauses = pauses.map(|pause| pause.intersection(window));
        let pauses: Vec<Interval> = pauses.filter(|pause| !pause.is_empty()).collect();
        let paused_ns = union_length_ns(pauses.iter().copied());
        let judged_ns = window.length_ns().saturating_sub(paused_ns);
        let share = ratio(judged_ns, wall_ns);
        if wall_ns <= 0 || share >= WHOLE_RUN_SHARE || self.timeline.is_filtered() {
            return None;
        }
        if ratio(paused_ns, wall_ns) >= 1.0 - WHOLE_RUN_SHARE {
            return Some(format!(
                "The verdict is on the {} that were recorded, in {} parts ({} of the {} from the first to the last); what ran between them is not known.",
                Nanoseconds(judged_ns),
                pauses.len() + 1,
                Percent(share),
                Nanoseconds(wall_ns),
            ));
        }
        let start_ns = self.timeline.trace.manifest.start_ns;
        let work = self.timeline.work_window()?;
        let is_whole = self
            .devices
            .iter()
            .all(|device| device.command_buffers_untimed == 0);
        let gpu = match self.timeline.gpus.len() {
            0 | 1 => "the GPU",
            _ => "the GPUs",
        };
        // Up to a hundredth of the run is no time of its own.
        let counts = |ns: i64| ratio(ns, wall_ns) >= (1.0 - WHOLE_RUN_SHARE) / 10.0;
        let before = counts(window.start_ns.saturating_sub(start_ns));
        let end_ns = start_ns.saturating_add(wall_ns);
        let after = counts(end_ns.saturating_sub(window.end_ns));
        let lacks_parts = self.unread_parts().next().is_some();
        let had = |outside: Interval| match (self.may_have_worked(outside), lacks_parts) {
            (true, _) => "work without known times may have run".to_owned(),
            (false, true) => "work that could not be read may have run".to_owned(),
            (false, false) => format!("{gpu} had no work"),
        };
        let had_before = had(Interval::new(start_ns, window.start_ns));
        let had_after = had(Interval::new(window.end_ns, end_ns));
        let outside = match (window == work, before, after) {
            (true, _, _) if !is_whole => "no other work has known times".to_owned(),
            (true, true, false) => format!("before, {had_before}"),
            (true, false, true) => format!("after that, {had_after}"),
            (true, _, _) if had_before != had_after => {
                format!("before, {had_before}, and after that, {had_after}")
            }
            (true, _, _) => format!("before and after, {had_before}"),
            (false, _, _) => "the rest, such as warm-up, is not judged".to_owned(),
        };
        let used = match window == work {
            true => format!(" in which the program used {gpu}"),
            false => String::new(),
        };
        Some(format!(
            "The verdict is on the {}{used} ({} of the run of {}), from {} on; {outside}.",
            Nanoseconds(window.length_ns()),
            Percent(share),
            Nanoseconds(wall_ns),
            Nanoseconds(window.start_ns.saturating_sub(start_ns)),
        ))
    }

    /// Returns true where work without known times may have run in an interval, on any GPU.
    fn may_have_worked(&self, interval: Interval) -> bool {
        let gpus = 0..self.timeline.gpus.len() as u32;
        let mut times = gpus.flat_map(|gpu| self.unmeasured.on_gpu(gpu));
        times.any(|time| !time.intersection(interval).is_empty())
    }

    /// Says which devices were lost, and when their last known work ended.
    fn lost(&self) -> impl Iterator<Item = (HeadlineKind, String)> {
        let names = busy::names(self.devices);
        let is_used = self.is_used();
        let start_ns = self.timeline.trace.manifest.start_ns;
        let devices = self.devices.iter().zip(is_used).zip(names);
        let lost = devices.filter(|((device, _), _)| device.lost);
        lost.map(move |((device, is_used), name)| {
            let untimed = device.command_buffers_untimed;
            let last = match (device.work_window, untimed) {
                (Some(work), untimed) => {
                    let end_ns = work.end_ns.saturating_sub(start_ns);
                    let last = format!(
                        "its last work with known times ended {} after the recording began",
                        Nanoseconds(end_ns)
                    );
                    match untimed {
                        0 => last,
                        1 => format!("{last}, and 1 of its command buffers has no times"),
                        count => {
                            format!("{last}, and {count} of its command buffers have no times")
                        }
                    }
                }
                (None, _) if !is_used => "the program had given it no work".to_owned(),
                (None, _) => "none of its work has known times".to_owned(),
            };
            let text = format!("{name}: the device was lost; {last}.");
            (HeadlineKind::LostDevice, text)
        })
    }

    /// Returns for each device whether it had any work, with or without known times.
    fn is_used(&self) -> Vec<bool> {
        let is_used = |device: &DeviceBusy| {
            device.work_window.is_some() || device.command_buffers_untimed > 0
        };
        let mut is_used: Vec<bool> = self.devices.iter().map(is_used).collect();
        for times in &self.timeline.submissions {
            let gpu = self.timeline.queues[times.queue as usize].gpu as usize;
            is_used[gpu] = true;
        }
        is_used
    }

    /// Says which devices had nothing to do, where others had.
    fn unused(&self) -> Option<String> {
        // Of a lost device its own note says whether it had work.
        let devices = self.devices.iter().zip(self.is_used());
        let unused: Vec<String> = (devices.zip(busy::names(self.devices)))
            .filter(|((device, is_used), _)| !is_used && !device.lost)
            .map(|(_, name)| name)
            .collect();
        let all = self.devices.len();
        if unused.is_empty() || unused.len() == all {
            return None;
        }
        let lost = Some(lost_works(self.timeline)).filter(|lost| *lost > 0);
        let words = ["never used", "no recorded work"];
        Some(little_used(&unused, all, words, "", lost))
    }

    /// Says which devices were busy for next to no time, where another was busy for far longer.
    fn hardly_used(&self) -> Option<(HeadlineKind, String)> {
        let busy_ns = |device: &DeviceBusy| device.analysed.map_or(0, |share| share.busy_ns);
        let most_ns = self.devices.iter().map(busy_ns).max()?;
        let names = busy::names(self.devices);
        let lost = lost_works(self.timeline);
        // Who lacks as much work as other GPUs have may have been used as much.
        let most_works = (self.timeline.gpus.iter())
            .map(|gpu| gpu.works.len())
            .max()?;
        let is_certain = (lost as f64) < HARDLY_USED_SHARE * most_works as f64;
        let hardly: Vec<String> = (self.devices.iter().zip(names))
            .filter(|(device, _)| {
                device.work_window.is_some()
                    && (busy_ns(device) as f64) < HARDLY_USED_SHARE * most_ns as f64
            })
            .map(|(device, name)| format!("{name} ({})", Nanoseconds(busy_ns(device))))
            .collect();
        let busiest = format!("; the busiest was busy for {}", Nanoseconds(most_ns));
        let words = ["hardly used", "little recorded work"];
        let lost = (!is_certain).then_some(lost);
        let text = little_used(&hardly, self.devices.len(), words, &busiest, lost);
        (!hardly.is_empty()).then_some((HeadlineKind::UnusedDevice, text))
    }

    /// Says which devices were slowed down, by heat, power or their supply.
    fn slowed(&self) -> impl Iterator<Item = (HeadlineKind, String)> {
        let window_ns = self.window.map_or(0, Interval::length_ns);
        let slowed = self.conditions.iter().filter(move |note| match note.kind {
            ConditionKind::Heat
            | ConditionKind::PowerBrake
            | ConditionKind::Slowdown
            | ConditionKind::ThermalState => true,
            // A power limit is usual at full load: it counts where it lowered the clocks for long.
            ConditionKind::PowerCap => {
                note.clock_share.is_some_and(|share| share <= SLOWED_CLOCK)
                    && ratio(note.held_ns, window_ns) >= CAPPED_SHARE
            }
            _ => false,
        });
        slowed.map(|note| (HeadlineKind::Condition, note.sentence.clone()))
    }
}

/// Returns the losses of times of work that names a queue which the trace does not define.
pub(crate) fn undefined_queues(timeline: &Timeline) -> impl Iterator<Item = Loss> {
    let undefined = timeline.on_undefined_queues;
    let counts = [
        (LossKind::DispatchTimes, undefined.dispatches),
        (LossKind::TransferTimes, undefined.transfers),
        (LossKind::OpaqueWorkTimes, undefined.opaque_work),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let because = "the trace does not define the queue that they name";
    counts.map(move |(kind, count)| Loss::new(kind, count, because))
}

/// Says that some of `all` GPUs were used little, in the first of two words for that: where `lost` pieces of work may have run there,
/// in the second, which claims of the record alone. `more` follows the names.
fn little_used(
    gpus: &[String],
    all: usize,
    [used, recorded]: [&str; 2],
    more: &str,
    lost: Option<u64>,
) -> String {
    let count = format!("{} of {all} GPUs", gpus.len());
    let [were, have] = match gpus.len() {
        1 => ["was", "has"],
        _ => ["were", "have"],
    };
    let names = some_of(gpus);
    match lost {
        None => format!("{count} {were} {used}: {names}{more}."),
        Some(lost) => format!(
            "{count} {have} {recorded}: {names}{more}. {}, and may have run there.",
            count_of(lost, "piece of work is lost", "pieces of work are lost")
        ),
    }
}

/// Returns a list of names, of which only the first are named where they are many.
fn some_of(names: &[String]) -> String {
    const NAMED: usize = 4;
    match names.len() {
        0..=NAMED => names.join(", "),
        all => format!("{} and {} more", names[..NAMED].join(", "), all - NAMED),
    }
}
