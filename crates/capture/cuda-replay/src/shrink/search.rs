//! Finds the pages that launches do not need: a function that compares goes in.

use std::ops::Range;

use super::Fill;

/// Answers whether launches compute the same while pages have other bytes.
pub trait Compares {
    /// Why no answer can be had.
    type Error;

    /// Returns whether the launches compute the same. An answer that is not thorough is had sooner, and may be wrong.
    ///
    /// # Errors
    /// No answer can be had.
    fn is_same(
        &mut self,
        fill: Fill,
        pages: &[Range<u64>],
        is_thorough: bool,
    ) -> Result<bool, Self::Error>;
}

/// The most times that all fills are gone through. A second time is needed where pages are spare with one fill, and are not with
/// another one.
const MAX_ROUNDS: usize = 4;
/// Memory is looked at in so many parts first, since each part that is needed takes two runs. Larger memory has larger parts, in
/// which the edges of what is needed are searched.
const MAX_PARTS: u64 = 512;
/// Between the first and the last needed page of a range, each page of so short a range is looked at, and so many of a longer one.
const SHORT: u64 = 64;
const TRIED: u64 = 16;

/// Returns the pages among `count` that launches do not need, in order: with each fill on all of them at once, they compute the same.
/// `None` if that cannot be had, as where launches differ from themselves. Inside of long ranges that are needed, single pages that are
/// not may be missing.
///
/// # Errors
/// A comparison fails.
pub fn find_spare_pages<C: Compares>(
    count: u64,
    comparison: &mut C,
) -> Result<Option<Vec<Range<u64>>>, C::Error> {
    let part = count.div_ceil(MAX_PARTS).max(1);
    let mut halving = Halving {
        fill: Fill::Ones,
        part,
        is_thorough: false,
        spare: Vec::new(),
        comparison,
    };
    if count > 0 {
        halving.add(0..count, false)?;
    }
    halving.refine(count)?;
    let mut spare = halving.spare;
    for _ in 0..MAX_ROUNDS {
        let before = spare.clone();
        for fill in Fill::ALL {
            spare = narrowed(spare, fill, part, comparison)?;
        }
        if spare == before {
            // Each fill has passed on all of them.
            return Ok(Some(spare));
        }
    }
    Ok(None)
}

/// Returns candidates without those that launches need with one fill.
fn narrowed<C: Compares>(
    candidates: Vec<Range<u64>>,
    fill: Fill,
    part: u64,
    comparison: &mut C,
) -> Result<Vec<Range<u64>>, C::Error> {
    if candidates.is_empty() || comparison.is_same(fill, &candidates, true)? {
        return Ok(candidates);
    }
    let mut halving = Halving {
        fill,
        part,
        is_thorough: true,
        spare: Vec::new(),
        comparison,
    };
    // Where there is one range, it has just been compared.
    let is_known = candidates.len() == 1;
    for candidate in candidates {
        halving.add(candidate, is_known)?;
    }
    Ok(halving.spare)
}

/// A search in ever smaller ranges.
struct Halving<'c, C> {
    fill: Fill,
    /// Ranges of so many pages are not divided.
    part: u64,
    is_thorough: bool,
    /// Pages that are spare together, in order.
    spare: Vec<Range<u64>>,
    comparison: &'c mut C,
}

impl<C: Compares> Halving<'_, C> {
    /// Adds the spare pages of a range, of which it may be known that not all are spare. Returns whether all are.
    fn add(&mut self, range: Range<u64>, has_needed: bool) -> Result<bool, C::Error> {
        if !has_needed {
            let with = joined(&self.spare, &range);
            if self.is_same(&with)? {
                self.spare = with;
                return Ok(true);
            }
        }
        let length = range.end - range.start;
        if length > self.part {
            let middle = range.start + (length / 2).next_multiple_of(self.part);
            let is_left_spare = self.add(range.start..middle, false)?;
            // If all of the left half is spare, a page of the right half is needed.
            self.add(middle..range.end, is_left_spare)?;
        }
        Ok(false)
    }

    /// Finds the first and the last page that is needed of each range that is left, and looks between them page by page where the range
    /// is short or has spare pages among some that are tried.
    fn refine(&mut self, count: u64) -> Result<(), C::Error> {
        if self.part == 1 {
            return Ok(());
        }
        self.part = 1;
        let mut needed = Vec::new();
        let mut from = 0;
        for spare in self.spare.iter().chain([&(count..count)]) {
            needed.extend((from < spare.start).then_some(from..spare.start));
            from = spare.end;
        }
        for Range { start, end } in needed {
            let before = self.most(end - start, |pages| start..start + pages)?;
            let start = start + before;
            let after = self.most(end - start, |pages| end - pages..end)?;
            let end = end - after;
            let length = end - start;
            let mut has_spare = length <= SHORT;
            // Numbers without a period: pages may be needed at regular distances.
            for number in 1..=TRIED {
                let page = start + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % length.max(1);
                has_spare = has_spare || self.is_spare(&(page..page + 1))?;
            }
            if has_spare && start < end {
                self.add(start..end, true)?;
            }
        }
        Ok(())
    }

    /// Adds the longest spare range among those of `range`, by the number of its pages, and returns that number.
    fn most(&mut self, pages: u64, range: impl Fn(u64) -> Range<u64>) -> Result<u64, C::Error> {
        let (mut least, mut most) = (0, pages);
        while least < most {
            let middle = (least + most).div_ceil(2);
            match self.is_spare(&range(middle))? {
                true => least = middle,
                false => most = middle - 1,
            }
        }
        if least > 0 {
            self.spare = joined(&self.spare, &range(least));
        }
        Ok(least)
    }

    /// Returns whether a range is spare together with what is.
    fn is_spare(&mut self, range: &Range<u64>) -> Result<bool, C::Error> {
        let with = joined(&self.spare, range);
        self.is_same(&with)
    }

    fn is_same(&mut self, pages: &[Range<u64>]) -> Result<bool, C::Error> {
        self.comparison.is_same(self.fill, pages, self.is_thorough)
    }
}

/// Adds a range to others, which are in order and do not overlap it.
fn joined(spare: &[Range<u64>], range: &Range<u64>) -> Vec<Range<u64>> {
    let at = spare.partition_point(|one| one.end <= range.start);
    let mut all = spare[..at].to_vec();
    for next in std::iter::once(range).chain(&spare[at..]) {
        match all.last_mut() {
            Some(last) if last.end == next.start => last.end = next.end,
            _ => all.push(next.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Launches that need pages, each with one fill.
    struct Needs {
        pages: Vec<(Range<u64>, Fill)>,
        runs: u64,
    }

    fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
        one.start < other.end && other.start < one.end
    }

    impl Compares for Needs {
        type Error = Infallible;

        fn is_same(
            &mut self,
            fill: Fill,
            pages: &[Range<u64>],
            _: bool,
        ) -> Result<bool, Infallible> {
            self.runs += 1;
            let mut needed = self.pages.iter().filter(|(_, of)| *of == fill);
            Ok(!needed.any(|(range, _)| pages.iter().any(|page| overlap(page, range))))
        }
    }

    /// Pseudorandom numbers, the same in each run.
    fn next(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *state >> 33
    }

    #[test]
    fn exactly_the_needed_pages_are_kept() {
        let mut state = 1;
        for _ in 0..300 {
            let count = next(&mut state) % 200;
            let mut pages = Vec::new();
            for _ in 0..next(&mut state) % 12 {
                let (first, length) = (next(&mut state) % 200, next(&mut state) % 20 + 1);
                let fill = Fill::ALL[next(&mut state) as usize % 3];
                pages.push((first..first + length, fill));
            }
            let mut needs = Needs { pages, runs: 0 };
            let spare = find_spare_pages(count, &mut needs);
            let spare = spare.unwrap_or_else(|error| match error {});
            let spare: Vec<u64> = spare.expect("it ends").into_iter().flatten().collect();
            let is_needed = |page: &u64| needs.pages.iter().any(|(range, _)| range.contains(page));
            let expected: Vec<u64> = (0..count).filter(|page| !is_needed(page)).collect();
            assert_eq!(spare, expected);
        }
    }

    /// Returns the pages that are kept of so many, and the number of runs that it took.
    fn kept(count: u64, needed: &[Range<u64>]) -> (u64, u64) {
        let ones = |range: &Range<u64>| (range.clone(), Fill::Ones);
        let mut needs = Needs {
            pages: needed.iter().map(ones).collect(),
            runs: 0,
        };
        let spare = find_spare_pages(count, &mut needs);
        let spare = spare
            .unwrap_or_else(|error| match error {})
            .expect("it ends");
        assert!(
            !spare
                .iter()
                .any(|one| needed.iter().any(|other| overlap(one, other)))
        );
        let left_out: u64 = spare.iter().map(|range| range.end - range.start).sum();
        (count - left_out, needs.runs)
    }

    #[test]
    fn large_memory_takes_few_runs_and_its_edges_are_exact() {
        let places = [70_000..70_001, 300_000..300_002, 900_000..900_001];
        let (pages, runs) = kept(1 << 20, &places);
        assert_eq!(pages, 4);
        assert!(runs < 200, "{runs}");
        let tensors = [1_000..300_123, 500_001..500_011];
        let (pages, runs) = kept(1 << 20, &tensors);
        assert_eq!(pages, 299_123 + 10);
        assert!(runs < 500, "{runs}");
    }

    #[test]
    fn pages_between_needed_ones_are_left_out() {
        let every_other: Vec<Range<u64>> = (100..300).map(|page| 2 * page..2 * page + 1).collect();
        let (pages, _) = kept(1_600, &every_other);
        assert_eq!(pages, 200);
    }
}
