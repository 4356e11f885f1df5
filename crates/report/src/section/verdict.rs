//! The verdict and its evidence.

use super::transfers::all_written;
use super::{dispatches, rows};
use crate::document::{Block, Text, Tone};
use crate::{fit, number};
use gapscope_analysis::Findings;
use gapscope_analysis::verdict::Bound;
use gapscope_analysis::vocabulary::Words;
use gapscope_trace::tables::{CommandBuffers, Dispatches, Submissions, Table, Transfers};

pub(crate) fn blocks(findings: &Findings, words: &Words) -> Vec<Block> {
    let bound = findings.verdict;
    let tone = match bound {
        Bound::DeviceBound => Tone::Good,
        _ => Tone::Warning,
    };
    let evidence = &findings.verdict_evidence;
    let mut text = Text::new().with(tone, bound.as_str().to_uppercase());
    if !evidence.sentence.is_empty() {
        text = text.and("  ").strong(fit::clean(&evidence.sentence));
    }
    let mut blocks = vec![Block::Sentence(text)];
    for part in &evidence.parts {
        blocks.push(Block::Item(Text::new().and(fit::clean(&part.sentence))));
    }
    blocks.push(Block::Sentence(totals(findings, words)));
    if !findings.warm_up.reason.is_empty() {
        let reason = fit::clean(&findings.warm_up.reason);
        blocks.push(Block::Sentence(Text::new().faint(reason)));
    }
    blocks
}

/// Wall, busy and counts in one line.
fn totals(findings: &Findings, words: &Words) -> Text {
    let known = |ns: Option<i64>| ns.map_or("unknown".to_owned(), number::duration);
    let mut text = Text::new().and("Recorded ").strong(known(findings.wall_ns));
    if let Some(window) = findings.work_window {
        let work = number::duration(window.length_ns());
        text = text.and(format!(", {work} from the first GPU work to the last"));
    }
    text = text.and("; GPU busy ").strong(known(findings.gpu_busy_ns));
    if let (Some(busy), Some(wall)) = (findings.gpu_busy_ns, findings.wall_ns) {
        text = text.and(format!(
            " ({} of the recording)",
            number::share_of(busy, wall)
        ));
    }
    text.and(format!(
        ": {} in {} and {}, {}.",
        match dispatches(findings, findings.dispatch_count) {
            Some(count) => rows(
                findings,
                Dispatches::NAME,
                number::of(count, "dispatch", "dispatches")
            ),
            None => "an unknown number of dispatches".to_owned(),
        },
        rows(
            findings,
            CommandBuffers::NAME,
            words.command_buffer.count(findings.command_buffer_count)
        ),
        rows(
            findings,
            Submissions::NAME,
            words.submission.count(findings.submission_count)
        ),
        match findings.transfer_count {
            0 if findings.knows_rows(Transfers::NAME) => "no transfers".to_owned(),
            count => rows(
                findings,
                Transfers::NAME,
                format!(
                    "{} of {}",
                    number::of(count, "transfer", "transfers"),
                    all_written(findings).unwrap_or("unknown size".to_owned())
                )
            ),
        },
    ))
}
