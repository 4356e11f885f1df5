//! Idle time added up by cause.

use super::{Cause, GapBin, GapPart, GapTotal};
use crate::intervals::Interval;

/// Idle time by cause.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    causes: [Total; Cause::ALL.len()],
    pub(crate) gap_count: u64,
    pub(crate) total_ns: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    count: u64,
    total_ns: i64,
    main_count: u64,
    main_ns: i64,
}

impl Totals {
    /// Adds the parts of a gap that are in `window`. Gives the cause of the most time.
    pub(crate) fn add(&mut self, parts: &[GapPart], window: Interval) -> Cause {
        let mut spent = [0i64; Cause::ALL.len()];
        for part in parts {
            spent[part.cause as usize] += part.interval().intersection(window).length_ns();
        }
        let mut main = (0, Cause::Unknown);
        let mut gap_ns = 0i64;
        for (cause, ns) in Cause::ALL.into_iter().zip(spent) {
            if ns > 0 {
                let total = &mut self.causes[cause as usize];
                total.count += 1;
                total.total_ns = total.total_ns.saturating_add(ns);
                gap_ns = gap_ns.saturating_add(ns);
                if ns > main.0 {
                    main = (ns, cause);
                }
            }
        }
        let total = &mut self.causes[main.1 as usize];
        total.main_count += 1;
        total.main_ns = total.main_ns.saturating_add(gap_ns);
        self.gap_count += 1;
        self.total_ns = self.total_ns.saturating_add(gap_ns);
        main.1
    }

    pub(crate) fn add_all(&mut self, other: &Totals) {
        for (mine, theirs) in self.causes.iter_mut().zip(&other.causes) {
            mine.count += theirs.count;
            mine.total_ns = mine.total_ns.saturating_add(theirs.total_ns);
            mine.main_count += theirs.main_count;
            mine.main_ns = mine.main_ns.saturating_add(theirs.main_ns);
        }
        self.gap_count += other.gap_count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }

    /// Causes that occur, the greatest first.
    pub(crate) fn rows(&self) -> Vec<GapTotal> {
        let mut rows: Vec<GapTotal> = Cause::ALL
            .into_iter()
            .zip(&self.causes)
            .filter(|(_, total)| total.count > 0)
            .map(|(cause, total)| GapTotal {
                cause,
                count: total.count,
                total_ns: total.total_ns,
                main_count: total.main_count,
                main_ns: total.main_ns,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        rows
    }
}

/// Gaps by length: a bin for each power of ten from a microsecond to a second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram([Bin; 8]);

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    count: u64,
    total_ns: i64,
}

impl Histogram {
    const FIRST_NS: i64 = 1_000;

    pub(crate) fn add(&mut self, gap_ns: i64) {
        let decades = (gap_ns / Self::FIRST_NS).max(0).checked_ilog10();
        let bin = decades.map_or(0, |d| d as usize + 1).min(self.0.len() - 1);
        self.0[bin].count += 1;
        self.0[bin].total_ns = self.0[bin].total_ns.saturating_add(gap_ns);
    }

    pub(crate) fn rows(&self) -> Vec<GapBin> {
        let edge = |bin: usize| match bin {
            0 => 0,
            bin => Self::FIRST_NS * 10i64.pow(bin as u32 - 1),
        };
        let last = self.0.len() - 1;
        (self.0.iter().enumerate())
            .map(|(bin, gaps)| GapBin {
                from_ns: edge(bin),
                to_ns: (bin < last).then(|| edge(bin + 1)),
                count: gaps.count,
                total_ns: gaps.total_ns,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_powers_of_ten_from_a_microsecond_to_a_second() {
        let mut histogram = Histogram::default();
        for ns in [
            0,
            999,
            1_000,
            9_999,
            10_000,
            999_999_999,
            1_000_000_000,
            i64::MAX,
        ] {
            histogram.add(ns);
        }
        let rows = histogram.rows();
        let counts: Vec<u64> = rows.iter().map(|row| row.count).collect();
        assert_eq!(counts, [2, 2, 1, 0, 0, 0, 1, 2]);
        assert_eq!(
            (rows[6].from_ns, rows[6].to_ns),
            (100_000_000, Some(1_000_000_000))
        );
        assert_eq!((rows[7].from_ns, rows[7].to_ns), (1_000_000_000, None));
    }
}
