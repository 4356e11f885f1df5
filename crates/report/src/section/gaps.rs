//! Idle time by cause, with what to do about it.

use super::{bar, count};
use crate::document::{Block, Column, Table, Text, Tone};
use crate::{fit, number};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::{Gap, HostTime};
use gapscope_analysis::thresholds::ADVICE_SHARE;
use gapscope_analysis::vocabulary::Words;

pub(crate) fn blocks(findings: &Findings, words: &Words, top: usize, origin_ns: i64) -> Vec<Block> {
    let idle = &findings.idle_time;
    // The shares are those of the verdict.
    let window = findings.verdict_evidence.window_ns.unwrap_or(0);
    if window == 0 {
        return Vec::new();
    }
    let aside = format!(
        "{} of {} in {}",
        number::share_of(idle.total_ns, window),
        number::duration(window),
        number::of(idle.gap_count, "gap", "gaps"),
    );
    let mut blocks = vec![Block::Heading("Idle time by cause".into(), aside)];
    if findings.gaps.is_empty() {
        blocks.push(Block::Sentence(
            "The GPU was never idle between its first and its last work.".into(),
        ));
        return blocks;
    }
    let mut table = Table::new([
        Column::word(""),
        Column::text("cause"),
        Column::number("total"),
        Column::number("share"),
        Column::number("gaps"),
        Column::number("main cause"),
        Column::bars(),
    ]);
    table.note_title = "what to do".into();
    for gap in &findings.gaps {
        let facts = gap.cause.facts(words.api);
        let share = gap.total_ns as f64 / window as f64;
        let row = table.row([
            Text::new().with(Tone::Cause(facts.family), facts.letter.to_string()),
            Text::new().strong(facts.name),
            number::duration(gap.total_ns).into(),
            number::share(share).into(),
            count(gap.count),
            count(gap.main_count),
            Text::new().with(Tone::Cause(facts.family), bar(share, 12)),
        ]);
        if share >= ADVICE_SHARE {
            let advice = findings
                .advice
                .iter()
                .find(|advice| advice.cause == gap.cause);
            row.note = advice.map(|advice| Text::new().faint(advice.text.clone()));
        }
    }
    blocks.push(Block::Table(table));
    blocks.extend(host_time(&idle.host_calls));
    let uncertain = match idle.uncertain_ns {
        Some(0) => None,
        Some(ns) => Some(format!(
            "Up to {} of it could have another cause, within the clocks' error.",
            number::duration(ns)
        )),
        None => Some(
            "How much of it could have another cause is not known, because the clocks' error is not."
                .to_owned(),
        ),
    };
    blocks.extend(uncertain.map(|text| Block::Sentence(Text::new().faint(text))));
    if idle.below_threshold_count > 0 {
        let text = format!(
            "{} below the threshold, {} in all, are not in the table.",
            number::of(idle.below_threshold_count, "gap", "gaps"),
            number::duration(idle.below_threshold_ns),
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks.extend(longest(findings, words, top.min(5), origin_ns));
    blocks
}

/// What submitting threads did while the GPU waited for them.
fn host_time(calls: &[HostTime]) -> Option<Block> {
    let mut text = Text::new().and("Meanwhile the submitting threads were in ");
    let listed = calls.iter().filter(|call| call.total_ns > 0).take(4);
    let listed: Vec<String> = listed.map(host_call).collect();
    if listed.is_empty() {
        return None;
    }
    text.push(Default::default(), format!("{}.", listed.join(", ")));
    Some(Block::Sentence(text))
}

fn host_call(call: &HostTime) -> String {
    let name = call.function.as_deref().unwrap_or(call.call);
    let time = number::duration(call.total_ns);
    match call.count {
        0 => format!("code {} ({time})", call.call),
        times => format!(
            "{} ({time}, {})",
            fit::clean(name),
            number::of(times, "call", "calls")
        ),
    }
}

fn longest(findings: &Findings, words: &Words, top: usize, origin_ns: i64) -> Vec<Block> {
    let gaps = &findings.idle_time.longest;
    if gaps.is_empty() || top == 0 {
        return Vec::new();
    }
    let mut table = Table::new([
        Column::number("longest"),
        Column::number("at"),
        Column::word("cause").spare(1),
        Column::name("between"),
    ]);
    for gap in &gaps[..gaps.len().min(top)] {
        let facts = gap.cause.facts(words.api);
        table.row([
            number::duration(gap.duration_ns).into(),
            number::duration(gap.start_ns - origin_ns).into(),
            Text::new().with(Tone::Cause(facts.family), facts.name),
            between(gap).into(),
        ]);
    }
    vec![Block::Table(table)]
}

fn between(gap: &Gap) -> String {
    let [before, after] = [&gap.before.name, &gap.after.name].map(|name| fit::clean(name));
    format!("{before}{}{after}", fit::ARROW)
}
