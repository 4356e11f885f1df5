//! `gapscope replay --needed-barriers`: runs a capture with all its barriers and with only those that its
//! dependencies need, and compares outputs and times.

use super::{MAX_LINES, describe, options, refused};
use crate::failure::Failure;
use crate::{args, exit, page, progress};
use gapscope_capture::Capture;
use gapscope_dependencies::{Dependencies, Limits, Need};
use gapscope_replay::{BarrierRuns, FewerBarriers, Schedule, replay_without};
use gapscope_report::Document;
use gapscope_report::document::{Block, Column, Table, Text, Tone};
use gapscope_timeline::quantity;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

/// The reasons for which barriers stay, in the order in which they are listed.
const NEEDS_THAT_STAY: [(Need, &str); 4] = [
    (Need::Needed, "needed by a dependency of the window"),
    (
        Need::Outside,
        "at the edge of a submission, for other work that is not known",
    ),
    (Need::Host, "for the host"),
    (Need::Unknown, "not known"),
];

/// Runs a capture with all barriers and without those that its dependencies do not need, in turn, and prints the
/// comparison. The status is a failure if outputs differ in any run.
pub fn run(
    arguments: &args::Replay,
    capture: &Capture,
    remarks: &[String],
    is_whole: bool,
) -> Result<ExitCode, Failure> {
    let count = capture.executed().count();
    let found = progress::while_counting("commands", count, |done| {
        Dependencies::from_capture(capture, Limits::default(), &mut |at| done(at))
    });
    let needless = found.barriers.iter().filter(|of| of.need == Need::Needless);
    let left_out: BTreeSet<usize> = needless.map(|of| of.executed).collect();
    let options = options(arguments);
    let result = progress::while_running(
        "replaying with all barriers and with fewer, in turn",
        || replay_without(capture, &left_out, &options),
    );
    let ran = match result {
        Ok(ran) => ran,
        Err(error) => return refused(arguments, error),
    };
    let answer = Answer {
        found: &found,
        ran: &ran,
        remarks,
    };
    match arguments.json {
        true => page::write_json(&answer.json())?,
        false => page::print(&answer.document(), &arguments.width)?,
    }
    let differ = ran.all.different() + ran.fewer.different();
    Ok(match differ {
        0 => exit::after_reading(ran.is_equal() && is_whole),
        _ => ExitCode::from(exit::FAILED),
    })
}

/// The dependencies of the capture, the comparison of its two forms, and remarks for the reader.
struct Answer<'a> {
    found: &'a Dependencies,
    ran: &'a FewerBarriers,
    remarks: &'a [String],
}

impl Answer<'_> {
    /// Returns the number of barriers with this need.
    fn count(&self, need: Need) -> u64 {
        let of = self.found.barriers.iter().filter(|of| of.need == need);
        of.count() as u64
    }

    /// Returns the reasons why it is unknown of some barriers whether they are needed, with the number of barriers.
    fn reasons(&self) -> BTreeMap<&str, u64> {
        let mut reasons = BTreeMap::new();
        let barriers = self.found.barriers.iter();
        for reason in barriers.filter_map(|barrier| barrier.reason.as_deref()) {
            *reasons.entry(reason).or_default() += 1;
        }
        reasons
    }

    /// Returns by how many nanoseconds the median is shorter with fewer barriers; negative if it is longer.
    fn saved_ns(&self) -> Option<i64> {
        let (all, fewer) = (self.ran.all.median_ns?, self.ran.fewer.median_ns?);
        i64::try_from(all)
            .ok()?
            .checked_sub(i64::try_from(fewer).ok()?)
    }

    fn json(&self) -> Value {
        let ran = self.ran;
        let stay: serde_json::Map<String, Value> = NEEDS_THAT_STAY
            .iter()
            .map(|(need, _)| (need.as_str().to_owned(), json!(self.count(*need))))
            .collect();
        let reasons: Vec<Value> = (self.reasons().iter())
            .map(|(reason, count)| json!({ "reason": reason, "barriers": count }))
            .collect();
        let notes = [&ran.notes, self.remarks].concat();
        json!({
            "device": ran.device,
            "driver": ran.driver,
            "same_device": ran.same_device,
            "schedule": ran.schedule,
            "dispatch_count": ran.dispatch_count,
            "submission_count": ran.submission_count,
            "outputs_compared": ran.all.outputs_compared + ran.fewer.outputs_compared,
            "outputs_equal": ran.all.outputs_equal + ran.fewer.outputs_equal,
            "outputs_within": ran.all.outputs_within + ran.fewer.outputs_within,
            "equal": ran.is_equal(),
            "needed_barriers": {
                "barrier_count": ran.barrier_count,
                "left_out_count": ran.left_out_count,
                "stay": stay,
                "unknown_reasons": reasons,
                "all": ran.all,
                "needed": ran.fewer,
                "saved_ns": self.saved_ns(),
                "told_apart": self.is_told_apart(),
            },
            "notes": notes,
        })
    }

    /// Returns true if all runs of one form took less time than all runs of the other; `None` if there are too few
    /// runs or their times are unknown.
    fn is_told_apart(&self) -> Option<bool> {
        let (all, fewer) = (&self.ran.all, &self.ran.fewer);
        if all.runs_ns.len() < 2 {
            return None;
        }
        let is_apart = fewer.most_ns? < all.least_ns? || all.most_ns? < fewer.least_ns?;
        Some(is_apart)
    }

    fn document(&self) -> Document {
        let mut blocks = vec![
            Block::Sentence(self.ran()),
            Block::Sentence(self.barriers()),
        ];
        for (need, why) in NEEDS_THAT_STAY {
            if let count @ 1.. = self.count(need) {
                let text = Text::new()
                    .strong(quantity::count_of(count, "stays", "stay"))
                    .and(format!(": {why}"));
                blocks.push(Block::Item(text.and(".")));
            }
        }
        for (reason, count) in self.reasons() {
            let barriers = quantity::count_of(count, "barrier", "barriers");
            blocks.push(Block::Item(
                format!("It is not known of {barriers}: {reason}.").into(),
            ));
        }
        blocks.push(Block::Table(self.table()));
        blocks.push(Block::Sentence(self.saved()));
        let forms = [("with all", &self.ran.all), ("with fewer", &self.ran.fewer)];
        for (name, of) in forms {
            for difference in of.differences.iter().take(MAX_LINES) {
                blocks.push(Block::Item(
                    format!("{name}: {}", describe(difference)).into(),
                ));
            }
        }
        blocks.extend(page::items(self.ran.notes.iter().chain(self.remarks)));
        Document { blocks }
    }

    fn ran(&self) -> Text {
        let ran = self.ran;
        let dispatches = quantity::count_of(ran.dispatch_count, "dispatch", "dispatches");
        let submissions = quantity::count_of(ran.submission_count, "submission", "submissions");
        let how = match ran.schedule {
            Schedule::Tight => ", without the host in between,",
            Schedule::AsCaptured | Schedule::Serialised => "",
        };
        let runs = quantity::count_of(ran.all.runs_ns.len() as u64, "time", "times");
        Text::new()
            .and(format!("Ran {dispatches} in {submissions}{how} on "))
            .strong(&ran.device)
            .and(format!(
                " ({}), {runs} with all barriers and as often with those that are needed, in turn.",
                ran.driver
            ))
    }

    fn barriers(&self) -> Text {
        let ran = self.ran;
        let all = quantity::count_of(ran.barrier_count, "barrier", "barriers");
        match ran.left_out_count {
            0 => Text::new().and(format!(
                "None of {all} was left out: none is known to be needless."
            )),
            count => Text::new()
                .and("Left out ")
                .strong(quantity::count(count))
                .and(format!(" of {all}, which nothing in the window needs.")),
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new([
            Column::word("barriers"),
            Column::number("median"),
            Column::number("shortest"),
            Column::number("longest"),
            Column::word("outputs of at most 64 KiB"),
        ]);
        let shown = |ns: Option<u64>| match ns {
            Some(ns) => quantity::duration(i64::try_from(ns).unwrap_or(i64::MAX)),
            None => "unknown".to_owned(),
        };
        let ran = self.ran;
        let rows = [
            (ran.barrier_count, &ran.all),
            (ran.barrier_count - ran.left_out_count, &ran.fewer),
        ];
        for (count, of) in rows {
            table.row([
                quantity::count(count).into(),
                shown(of.median_ns).into(),
                shown(of.least_ns).into(),
                shown(of.most_ns).into(),
                outputs(of),
            ]);
        }
        table
    }

    /// Returns the sentence about the time that fewer barriers save, and whether it may be chance.
    fn saved(&self) -> Text {
        let Some(saved) = self.saved_ns() else {
            return Text::new().and(
                "What that saves on the device is unknown, because its queue has no timestamps.",
            );
        };
        let all = self.ran.all.median_ns.unwrap_or(0).max(1) as f64;
        let share = 100.0 * saved.unsigned_abs() as f64 / all;
        let time = quantity::duration(saved.saturating_abs());
        if self.ran.left_out_count == 0 {
            return Text::new().and(format!(
                "Both are the same work: that their medians are {time} apart ({share:.1} %) is chance."
            ));
        }
        let word = if saved < 0 { "more" } else { "less" };
        let text = Text::new()
            .and("With fewer barriers the median is ")
            .strong(format!("{time} {word}"))
            .and(format!(" ({share:.1} %)"));
        match self.is_told_apart() {
            Some(true) => text.and(", and no run of one takes as long as any of the other."),
            Some(false) => text.and("; runs of both overlap, so that it may be chance."),
            None => text.and("; with one run each, that may be chance."),
        }
    }
}

/// Returns the cell about the outputs of runs with the same barriers.
fn outputs(of: &BarrierRuns) -> Text {
    let pieces = quantity::count(of.outputs_compared);
    let within = match of.outputs_within {
        0 => String::new(),
        within => format!(", {} within the tolerance", quantity::count(within)),
    };
    match (of.outputs_compared, of.different()) {
        (0, _) => Text::new().with(Tone::Warning, "none was compared"),
        (_, 0) => Text::new().with(Tone::Good, format!("all {pieces} equal{within}")),
        (_, different) => {
            let text = format!("{} of {pieces} differ{within}", quantity::count(different));
            Text::new().with(Tone::Warning, text)
        }
    }
}
