//! Draws the section on the bytes that commands must move at least, and the share of the device's bandwidth that they
//! reach.

use super::Page;
use gapscope_dependencies::{Bandwidth, Node};
use gapscope_report::document::{Block, Column, Table, Text};
use gapscope_timeline::quantity as number;

impl Page<'_> {
    /// Returns the blocks about bytes: against the bandwidth if it is known, else the bytes alone and the reason.
    pub(super) fn traffic(&self) -> Vec<Block> {
        match &self.found.bandwidth {
            Ok(bandwidth) => self.bandwidth_shares(bandwidth),
            Err(reason) => {
                let mut blocks = self.bytes();
                let text = format!(
                    "What they take at the device's bandwidth is unknown, since {reason}: `gapscope deps --measure CAPTURE` times commands and measures it."
                );
                blocks.push(Block::Item(text.into()));
                blocks
            }
        }
    }

    /// Returns the blocks that list commands by the bytes that they read and write, the most first.
    fn bytes(&self) -> Vec<Block> {
        let mut sizes: Vec<(u64, u64, usize)> = (self.nodes().iter().enumerate())
            .map(|(id, node)| {
                let (read, written) = node.bytes();
                (read, written, id)
            })
            .collect();
        sizes.sort_by_key(|(read, written, id)| {
            (std::cmp::Reverse(read.saturating_add(*written)), *id)
        });
        let mut table = Table::new([
            Column::word("command"),
            Column::number("reads"),
            Column::number("writes"),
        ]);
        for (read, written, id) in sizes.iter().take(self.top) {
            let mark = if self.nodes()[*id].is_exact() {
                ""
            } else {
                "~ "
            };
            table.row([
                self.called(*id).into(),
                format!("{mark}{}", number::bytes(*read)).into(),
                format!("{mark}{}", number::bytes(*written)).into(),
            ]);
        }
        vec![
            Block::Heading(
                "Bytes that commands must move at least".to_owned(),
                "~ at most".to_owned(),
            ),
            Block::Table(table),
        ]
    }

    /// Returns the blocks that list commands by their times, the longest first.
    fn bandwidth_shares(&self, bandwidth: &Bandwidth) -> Vec<Block> {
        let mut order: Vec<usize> = (0..self.nodes().len()).collect();
        order.sort_by_key(|id| (std::cmp::Reverse(self.nodes()[*id].duration_ns), *id));
        let mut table = Table::new([
            Column::word("command"),
            Column::number("bytes"),
            Column::number("take"),
            Column::number("took"),
            Column::number("share"),
        ]);
        for id in order.iter().take(self.top) {
            let node = &self.nodes()[*id];
            let least = node.least_bytes();
            let at_least = if node.is_exact() { "" } else { "≥ " };
            let known = |text: Option<String>| match text {
                Some(text) => Text::from(format!("{at_least}{text}")),
                None => Text::new().faint("unknown"),
            };
            let took = node.duration_ns.map(|ns| time(ns as f64));
            table.row([
                self.called(*id).into(),
                known(least.map(number::bytes)),
                known(least.map(|bytes| time(bandwidth.time_ns(bytes)))),
                took.map_or_else(|| Text::new().faint("unknown"), Text::from),
                known(
                    (node.bandwidth_share(bandwidth))
                        .map(|share| format!("{:.1} %", 100.0 * share)),
                ),
            ]);
        }
        let mut blocks = vec![
            Block::Heading(
                "Bytes against bandwidth".to_owned(),
                "≥ some of the bytes may not be moved".to_owned(),
            ),
            Block::Table(table),
        ];
        blocks.extend(self.rest(order.len(), "commands"));
        let speed = number::bytes(bandwidth.bytes_per_s as u64);
        let text = Text::new()
            .and("The device moves ")
            .strong(format!("{speed} a second"))
            .and(format!(
                ", read and written: {}. Commands ran one after the other.",
                bandwidth.source
            ));
        blocks.push(Block::Sentence(text));
        let is_cached = |node: &Node| {
            node.bandwidth_share(bandwidth)
                .is_some_and(|share| share > 1.0)
        };
        let cached = self.nodes().iter().filter(|node| is_cached(node)).count();
        if cached > 0 {
            let commands = number::count_of(cached as u64, "command reaches", "commands reach");
            let text = format!(
                "{commands} more than 100 %: caches serve a part of the bytes, so that memory does not move all of them then."
            );
            blocks.push(Block::Item(text.into()));
        }
        blocks
    }
}

/// Returns a time as text, with a decimal place below 10 ns.
fn time(ns: f64) -> String {
    match ns {
        ..10.0 => format!("{ns:.1} ns"),
        _ => number::duration(ns as i64),
    }
}
