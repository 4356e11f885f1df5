//! Sums of idle time by cause and by length of the gap, and how much of them is certain. Gaps are added one by one
//! with their explanations; sums of devices are then added up, and turned into rows of the findings. A shift is the
//! amount by which causes could change within the clock's error (`certainty.rs`).

use super::certainty::Shift;
use super::{Cause, GapBin, GapPart, GapTotal, Side, SideRange};
use gapscope_timeline::intervals::Interval;

/// Sums of idle time by cause.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    causes: [Total; Cause::ALL.len()],
    sides: [SideTotal; Side::ALL.len()],
    pub(crate) gap_count: u64,
    pub(crate) total_ns: i64,
    /// The time that could have another cause.
    moved_ns: i64,
    /// True where some of the time belongs to a device whose clock error is not known.
    error_unknown: bool,
}

/// The sums of one cause, as in [`GapTotal`].
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    count: u64,
    total_ns: i64,
    main_count: u64,
    main_ns: i64,
    by_other_threads_ns: i64,
    /// The part of a cause's time that could have another cause.
    lost_ns: i64,
    error_unknown: bool,
}

/// The time of one side of the verdict, such as the host's, and what it could lose or win within the clock's error.
#[derive(Debug, Clone, Copy, Default)]
struct SideTotal {
    total_ns: i64,
    lost_ns: i64,
    won_ns: i64,
}

/// The certainty of the explanation of a gap.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be allocated for each gap"
)]
pub(super) enum Certainty {
    /// The explanation rests on times of one clock.
    Whole,
    /// The gap could lie elsewhere on the host's clock.
    Within(Shift),
    /// The distance by which the gap could lie elsewhere is not known.
    Unknown,
}

impl Totals {
    /// Adds the part of a gap that is in `window`, and returns the cause of the most time.
    pub(super) fn add(
        &mut self,
        parts: &[GapPart],
        by_other_threads: &[GapPart],
        certainty: &Certainty,
        window: Interval,
    ) -> Cause {
        if let ([part], [], Certainty::Whole) = (parts, by_other_threads, certainty) {
            let ns = part.interval().intersection(window).length_ns();
            if ns > 0 {
                self.add_one(part.cause, ns);
                return part.cause;
            }
        }
        let mut spent = [0i64; Cause::ALL.len()];
        let mut of_sides = [0i64; Side::ALL.len()];
        for part in parts {
            let ns = part.interval().intersection(window).length_ns();
            spent[part.cause as usize] += ns;
            of_sides[part.cause.side() as usize] += ns;
        }
        let mut main = (0, Cause::Unknown);
        let mut gap_ns = 0i64;
        for (cause, ns) in Cause::ALL.into_iter().zip(spent) {
            if ns > 0 {
                let total = &mut self.causes[cause as usize];
                total.count += 1;
                add(&mut total.total_ns, ns);
                add(&mut gap_ns, ns);
                match certainty {
                    Certainty::Whole => {}
                    Certainty::Within(shift) => {
                        add(&mut total.lost_ns, shift.lost_ns[cause as usize].min(ns));
                    }
                    Certainty::Unknown => total.error_unknown = true,
                }
                if ns > main.0 {
                    main = (ns, cause);
                }
            }
        }
        for (total, ns) in self.sides.iter_mut().zip(of_sides) {
            add(&mut total.total_ns, ns);
        }
        match certainty {
            Certainty::Whole => {}
            Certainty::Within(shift) => {
                add(&mut self.moved_ns, shift.moved_ns.min(gap_ns));
                for (at, total) in self.sides.iter_mut().enumerate() {
                    let won_ns = shift.side_won_ns[at].min(gap_ns - of_sides[at]);
                    add(&mut total.won_ns, won_ns);
                    add(&mut total.lost_ns, shift.side_lost_ns[at].min(of_sides[at]));
                }
            }
            Certainty::Unknown => self.error_unknown = true,
        }
        self.add_by_other_threads(parts, by_other_threads, window);
        let total = &mut self.causes[main.1 as usize];
        total.main_count += 1;
        add(&mut total.main_ns, gap_ns);
        self.gap_count += 1;
        add(&mut self.total_ns, gap_ns);
        main.1
    }

    /// Adds a gap with one cause that rests on times of one clock, which most gaps are.
    #[inline]
    pub(super) fn add_one(&mut self, cause: Cause, ns: i64) {
        let total = &mut self.causes[cause as usize];
        total.count += 1;
        total.main_count += 1;
        add(&mut total.total_ns, ns);
        add(&mut total.main_ns, ns);
        add(&mut self.sides[cause.side() as usize].total_ns, ns);
        self.gap_count += 1;
        add(&mut self.total_ns, ns);
    }

    /// Adds the time that calls of other threads explain and that nothing else explains better. Of two lists in order
    /// of time, `parts` is the explanation and `others` what other threads explain: a part counts where both have the
    /// same cause.
    fn add_by_other_threads(&mut self, parts: &[GapPart], others: &[GapPart], window: Interval) {
        let mut parts = parts.iter().peekable();
        for other in others {
            let theirs = other.interval().intersection(window);
            while let Some(part) = parts.peek().filter(|p| p.start_ns < theirs.end_ns) {
                let part_end_ns = part.interval().end_ns;
                if part.cause == other.cause {
                    let total = &mut self.causes[part.cause as usize];
                    let inside = part.interval().intersection(theirs);
                    add(&mut total.by_other_threads_ns, inside.length_ns());
                }
                // The part may go on after the time that the others explain.
                if part_end_ns > theirs.end_ns {
                    break;
                }
                parts.next();
            }
        }
    }

    pub(crate) fn add_all(&mut self, other: &Totals) {
        for (mine, theirs) in self.causes.iter_mut().zip(&other.causes) {
            mine.count += theirs.count;
            mine.main_count += theirs.main_count;
            mine.error_unknown |= theirs.error_unknown;
            add(&mut mine.total_ns, theirs.total_ns);
            add(&mut mine.main_ns, theirs.main_ns);
            add(&mut mine.by_other_threads_ns, theirs.by_other_threads_ns);
            add(&mut mine.lost_ns, theirs.lost_ns);
        }
        for (mine, theirs) in self.sides.iter_mut().zip(&other.sides) {
            add(&mut mine.total_ns, theirs.total_ns);
            add(&mut mine.lost_ns, theirs.lost_ns);
            add(&mut mine.won_ns, theirs.won_ns);
        }
        self.gap_count += other.gap_count;
        self.error_unknown |= other.error_unknown;
        add(&mut self.total_ns, other.total_ns);
        add(&mut self.moved_ns, other.moved_ns);
    }

    /// Returns the time that could have another cause, or `None` where the clock's error is not known.
    pub(crate) fn uncertain_ns(&self) -> Option<i64> {
        (!self.error_unknown).then_some(self.moved_ns)
    }

    /// Returns the causes that occur, the greatest first.
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
                by_other_threads_ns: total.by_other_threads_ns,
                uncertain_ns: (!total.error_unknown).then_some(total.lost_ns),
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        rows
    }

    /// Returns the sides that have time, or could have.
    pub(crate) fn side_rows(&self) -> Vec<SideRange> {
        let known = |ns: i64| (!self.error_unknown).then_some(ns);
        (Side::ALL.into_iter().zip(&self.sides))
            .map(|(side, total)| SideRange {
                side,
                total_ns: total.total_ns,
                at_least_ns: known(total.total_ns - total.lost_ns),
                at_most_ns: known(total.total_ns.saturating_add(total.won_ns)),
            })
            .filter(|row| row.total_ns > 0 || row.at_most_ns.is_some_and(|ns| ns > 0))
            .collect()
    }
}

fn add(sum: &mut i64, ns: i64) {
    *sum = sum.saturating_add(ns);
}

/// The numbers of gaps by length, with a bin for each power of ten from a microsecond to a second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram([Bin; 8]);

/// The gaps of some range of lengths.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    count: u64,
    total_ns: i64,
}

impl Histogram {
    /// The upper bound of the first bin.
    const FIRST_NS: i64 = 1_000;

    pub(crate) fn add(&mut self, gap_ns: i64) {
        let decades = (gap_ns / Self::FIRST_NS).max(0).checked_ilog10();
        let bin = decades.map_or(0, |d| d as usize + 1).min(self.0.len() - 1);
        self.0[bin].count += 1;
        self.0[bin].total_ns = self.0[bin].total_ns.saturating_add(gap_ns);
    }

    pub(super) fn add_all(&mut self, other: &Histogram) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.count += theirs.count;
            add(&mut mine.total_ns, theirs.total_ns);
        }
    }

    /// Returns all bins, empty ones too, the shortest gaps first.
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
        assert_eq!(rows[6].from_ns, 100_000_000);
        assert_eq!(rows[6].to_ns, Some(1_000_000_000));
        assert_eq!((rows[7].from_ns, rows[7].to_ns), (1_000_000_000, None));
    }
}
