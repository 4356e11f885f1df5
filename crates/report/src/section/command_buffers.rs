//! Makes the section on command buffers: counts, durations, times from one start to the next, and the longest ones.

use super::{Places, count, dispatches, duration, mean, or_unknown};
use crate::document::{Block, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::command_buffers::CommandBufferRow;
use gapscope_timeline::vocabulary::Words;
use gapscope_trace::tables::Timing;

/// Makes the section; none without command buffers. Of the longest, at most `top` and at most three are listed.
pub(crate) fn blocks(findings: &Findings, words: &Words, top: usize, places: Places) -> Vec<Block> {
    let all = &findings.command_buffers;
    if all.count == 0 {
        return Vec::new();
    }
    let aside = format!(
        "{} in {}",
        number::count(all.count),
        words.submission.count(all.submission_count)
    );
    let mut blocks = vec![Block::Heading(words.command_buffer.title(), aside)];
    let rows = [
        ("on the device", all.durations),
        ("from start to start", all.start_to_start),
    ];
    let table = Table::with_rows(&rows)
        .text("time", |(name, _)| *name)
        .number("count", |(_, times)| count(times.timed_count))
        .number("mean", |(_, times)| mean(times.mean_ns))
        .number("p50", |(_, times)| duration(times.p50_ns))
        .number("p99", |(_, times)| duration(times.p99_ns))
        .number("min", |(_, times)| duration(times.min_ns))
        .spare(2)
        .number("max", |(_, times)| duration(times.max_ns))
        .spare(1)
        .build();
    blocks.push(Block::Table(table));
    let dispatches = dispatches(findings, *findings.dispatch_count);
    if let (Some(_), Some(mean), Some(most)) = (dispatches, all.mean_dispatches, all.max_dispatches)
    {
        let mut text = format!(
            "Dispatches in each: {mean:.1} on average, at most {}.",
            number::count(most.into())
        );
        if all.empty_count > 0 {
            text.push_str(&format!(
                " {} hold no work.",
                number::count(all.empty_count)
            ));
        }
        blocks.push(Block::Sentence(text.into()));
    }
    let unknown = all.timings.iter().filter(|t| t.timing != Timing::Measured);
    let unknown: Vec<_> = unknown
        .map(|t| format!("{} {}", number::count(t.count), t.timing))
        .collect();
    if !unknown.is_empty() {
        let text = format!("Not measured from inside: {}.", unknown.join(", "));
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    let longest = &all.longest[..all.longest.len().min(top.min(3))];
    if all.count > 1 && !longest.is_empty() {
        blocks.push(longest_table(findings, longest, places));
    }
    blocks
}

/// Returns the table of the longest command buffers.
fn longest_table(findings: &Findings, rows: &[CommandBufferRow], places: Places) -> Block {
    let table = Table::with_rows(rows)
        .number("longest", |row| duration(row.duration_ns))
        .number("at", |row| or_unknown(row.start_ns, |ns| places.at(ns)))
        .number("dispatches", |row| {
            let dispatches = dispatches(findings, row.dispatch_count.into());
            or_unknown(dispatches, number::count)
        })
        .number("transfers", |row| count(row.transfer_count.into()))
        .name("label or name", |row| {
            let name = row.label.as_deref().or(row.name.as_deref());
            name.map_or(Text::new(), |name| name.into())
        })
        .build();
    Block::Table(table)
}
