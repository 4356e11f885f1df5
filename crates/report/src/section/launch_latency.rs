//! Launch latency and queue depth.

use super::{count, duration, mean, or_unknown};
use crate::document::{Block, Column, Table, Text};
use crate::{fit, number};
use gapscope_analysis::durations::Durations;
use gapscope_analysis::{Findings, Vocabulary};

pub(crate) fn blocks(findings: &Findings, names: &Vocabulary) -> Vec<Block> {
    let words = names.words();
    let queues = findings.latency.iter().filter(|q| q.submission_count > 0);
    let mut blocks = Vec::new();
    let several = findings.latency.len() > 1;
    for queue in queues {
        let mut table = Table::new([
            Column::text(&if several {
                fit::clean(&names.queue(queue.queue_id))
            } else {
                words.submission.many.to_owned()
            }),
            Column::number("count"),
            Column::number("mean"),
            Column::number("p50"),
            Column::number("p99"),
            Column::number("max"),
        ]);
        let mut row = |name: &str, times: &Durations| {
            table.row([
                name.into(),
                count(times.timed_count),
                mean(times.mean_ns),
                duration(times.p50_ns),
                duration(times.p99_ns),
                duration(times.max_ns),
            ]);
        };
        // Where only the moments of calls are known, nothing is to be said of how long they took.
        if queue.submit_calls.timed_count > 0 {
            row(&format!("{} call", words.submit), &queue.submit_calls);
        }
        row(
            &format!("call → start, {} idle", words.queue.one),
            &queue.submit_to_start_idle,
        );
        row("call → start, all", &queue.submit_to_start);
        blocks.push(Block::Table(table));
        let depth = or_unknown(queue.mean_depth, |mean| format!("{mean:.1}")).plain_text();
        let most = or_unknown(queue.max_depth, |max| number::count(max.into())).plain_text();
        let in_flight = words.submission.title();
        let mut text = format!("{in_flight} in flight: {depth} on average, at most {most}");
        if let Some(zero) = queue.depth_zero_ns.filter(|ns| *ns > 0) {
            text.push_str(&format!("; none for {}", number::duration(zero)));
        }
        text.push('.');
        blocks.push(Block::Sentence(text.into()));
        if let Some(early @ 1..) = queue.started_before_submission_count {
            let text = format!(
                "{} seem to start before they were submitted, by more than the clocks' error: \
                 do not trust times across host and device here.",
                number::of(early, "submission", "submissions"),
            );
            blocks.push(Block::Sentence(
                Text::new().with(crate::document::Tone::Warning, text),
            ));
        }
    }
    if !blocks.is_empty() {
        let aside = format!("from the start of the {} call", words.submit);
        blocks.insert(0, Block::Heading("Launch latency".into(), aside));
    }
    blocks
}
