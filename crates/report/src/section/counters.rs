//! Makes the section on counters that the recording measured.

use super::{count, or_unknown, rest};
use crate::document::{Block, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_timeline::Vocabulary;
use gapscope_timeline::counters::CounterRow;
use gapscope_trace::tables::CounterUnit;

/// Makes the section; none without counters. Here a `top` of 0 shows all.
pub(crate) fn blocks(findings: &Findings, names: &Vocabulary, top: usize) -> Vec<Block> {
    if findings.counters.is_empty() {
        return Vec::new();
    }
    let shown = if top == 0 { usize::MAX } else { top };
    // Counters of GPUs and queues come first: they say more about the program than those of the host.
    let mut rows: Vec<&CounterRow> = findings.counters.iter().collect();
    rows.sort_by_key(|row| row.device.is_none() && row.queue_id.is_none());
    rows.truncate(shown);
    let value = |row: &CounterRow, value| or_unknown(value, |value| with_unit(value, row.unit));
    let mut blocks = Table::with_rows(&rows)
        .name("counter", |row| Text::new().strong(row.name.as_str()))
        .text("of", |row| owner(row, names))
        .spare(1)
        .number("values", |row| count(row.value_count))
        .spare(3)
        .number("mean", |row| value(row, row.mean))
        .number("min", |row| value(row, row.min))
        .number("max", |row| value(row, row.max))
        .text("from", |row| read_by(&row.source))
        .spare(2)
        .under("Counters", "mean: over time");
    let all = findings.counters.len();
    rest(&mut blocks, all, shown.min(all), "counters");
    blocks
}

/// Returns a counter's source without the metric's name in its middle, which JSON has.
fn read_by(source: &str) -> String {
    match source.split(", ").collect::<Vec<_>>()[..] {
        [reader, _, rate] => format!("{reader}, {rate}"),
        _ => source.to_owned(),
    }
}

/// Names the queue, the device or the host that a counter describes.
fn owner(row: &CounterRow, names: &Vocabulary) -> String {
    match (row.queue_id, row.device) {
        (Some(queue), _) => names.queue(queue),
        (None, Some(gpu)) => names.gpus().name(gpu as usize).to_owned(),
        (None, None) => "host".to_owned(),
    }
}

/// Formats a value with its unit.
fn with_unit(value: f64, unit: CounterUnit) -> String {
    match unit {
        CounterUnit::Bytes => number::bytes(value.max(0.0).round() as u64),
        CounterUnit::BytesPerSecond => {
            format!("{}/s", number::bytes(value.max(0.0).round() as u64))
        }
        CounterUnit::Percent => format!("{value:.1} %"),
        CounterUnit::Hertz => format!("{:.1} MHz", value / 1e6),
        CounterUnit::Watts => format!("{value:.1} W"),
        CounterUnit::Celsius => format!("{value:.1} °C"),
        CounterUnit::Count | CounterUnit::Unknown => plain(value),
    }
}

/// Formats a value without a unit: whole numbers as counts, others with two digits.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        number::count(value as u64)
    } else {
        format!("{value:.2}")
    }
}
