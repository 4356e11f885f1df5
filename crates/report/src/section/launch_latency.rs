//! Makes the section on launch latency (from a submission call to the start of its work) and queue depth.

use super::{count, duration, mean, most, or_unknown, rest};
use crate::document::{Block, Table, Text, Tone};
use crate::{fit, number};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause;
use gapscope_analysis::latency::{QueueLatency, Waited};
use gapscope_timeline::Vocabulary;
use gapscope_timeline::busy;
use gapscope_timeline::vocabulary::Words;

/// The maximum number of columns for the names of a device and its queue above a table.
const TITLE_COLUMNS: usize = 48;

/// Makes the section, with a table for each of the `top` queues that got most submissions; none without any.
pub(crate) fn blocks(findings: &Findings, names: &Vocabulary, top: usize) -> Vec<Block> {
    let words = names.words();
    let queues = findings.latency.iter().filter(|q| q.submission_count > 0);
    let queues: Vec<&QueueLatency> = queues.collect();
    let shown = most(&queues, top, |queue| queue.submission_count as i64);
    let all = queues.len();
    let queues = shown.iter().map(|at| queues[*at]);
    let mut blocks = Vec::new();
    let several = findings.latency.len() > 1;
    let devices = busy::names(&findings.devices);
    let of_device = |queue: &QueueLatency| match devices.get(queue.device as usize) {
        Some(device) if devices.len() > 1 => format!("{device}, "),
        _ => String::new(),
    };
    for queue in queues {
        let title = match several {
            true => {
                let queue = of_device(queue) + &names.queue(queue.queue_id);
                fit::clip(&fit::clean(&queue), TITLE_COLUMNS)
            }
            false => words.submission.many.to_owned(),
        };
        let mut rows = vec![
            (format!("{} call", words.submit), queue.submit_calls),
            (
                format!("call → start, {} idle", words.queue.one),
                queue.submit_to_start_idle,
            ),
            ("… or behind its own work".to_owned(), queue.submit_to_start),
        ];
        // Where only the moments of calls are known, there is no row on their length, and none without samples.
        rows.retain(|(_, times)| times.timed_count > 0);
        let table = Table::with_rows(&rows)
            .text(&title, |(name, _)| name.as_str())
            .number("count", |(_, times)| count(times.timed_count))
            .number("mean", |(_, times)| mean(times.mean_ns))
            .number("p50", |(_, times)| duration(times.p50_ns))
            .number("p99", |(_, times)| duration(times.p99_ns))
            .number("max", |(_, times)| duration(times.max_ns));
        blocks.push(Block::Table(table.build()));
        if let Some(text) = left_out(queue, words) {
            blocks.push(Block::Sentence(text.into()));
        }
        blocks.push(Block::Sentence(in_flight(queue, words).into()));
        if let Some(early @ 1..) = queue.started_before_submission_count {
            let text = format!(
                "{} seem to start before they were submitted, by more than the clocks' error: \
                 do not trust times across host and device here.",
                number::count_of(early, "submission", "submissions"),
            );
            blocks.push(Block::Sentence(Text::new().with(Tone::Warning, text)));
        }
    }
    rest(&mut blocks, all, shown.len(), words.queue.many);
    if !blocks.is_empty() {
        let aside = "of work that waited for nothing else";
        blocks.insert(0, Block::Heading("Launch latency".into(), aside.into()));
    }
    blocks
}

/// Returns a sentence on how many submissions are in no figure of latency, and why.
fn left_out(queue: &QueueLatency, words: &Words) -> Option<String> {
    let reason = |waited: &Waited| {
        let other = format!("for work of another {}", words.queue.one);
        let what = match waited.cause {
            Cause::OtherQueue => other.as_str(),
            Cause::HostSignal => "for a signal of the host",
            Cause::HostFunction => "for a function of the host",
            Cause::ExternalWait => "for a value in memory or an external semaphore",
            _ => "for what the trace does not say",
        };
        match queue.waited.len() {
            1 => what.to_owned(),
            _ => format!("{} {what}", number::count(waited.count)),
        }
    };
    let reasons: Vec<String> = queue.waited.iter().map(reason).collect();
    let left_out = words.submission.count(queue.waited_count);
    match queue.waited_count {
        0 => None,
        1 => Some(format!(
            "Left out: {left_out} that waited {}.",
            reasons.join(", ")
        )),
        _ => Some(format!(
            "Left out: {left_out} that waited, {}.",
            reasons.join(", ")
        )),
    }
}

/// Says how many submissions were on their way or running at a time.
fn in_flight(queue: &QueueLatency, words: &Words) -> String {
    let depth = or_unknown(queue.mean_depth, |mean| format!("{mean:.1}")).plain_text();
    let most = or_unknown(queue.max_depth, |max| number::count(max.into())).plain_text();
    let title = words.submission.title();
    let mut text = format!("{title} in flight: {depth} on average, at most {most}");
    if let Some(zero) = queue.depth_zero_ns.filter(|ns| *ns > 0) {
        text.push_str(&format!("; none for {}", number::duration(zero)));
    }
    text.push('.');
    text
}
