//! Finds the pages that launches do not need: a function that compares goes in.

use std::ops::Range;

use super::Fill;

/// Answers whether launches compute the same while pages have other bytes.
pub trait Compares {
    /// Why no answer can be had.
    type Error;

    /// Returns whether the launches compute the same.
    ///
    /// # Errors
    /// No answer can be had.
    fn is_same(&mut self, fill: Fill, pages: &[Range<u64>]) -> Result<bool, Self::Error>;
}

/// The most times that all fills are gone through. A second time is needed where pages are spare with one fill, and are not with
/// another one.
const MAX_ROUNDS: usize = 4;

/// Returns the pages among `count` that launches do not need, in order: with each fill on all of them at once, they compute the same.
/// `None` if that cannot be had, as where launches differ from themselves.
///
/// # Errors
/// A comparison fails.
pub fn find_spare_pages<C: Compares>(
    count: u64,
    comparison: &mut C,
) -> Result<Option<Vec<Range<u64>>>, C::Error> {
    let mut candidates = Vec::from_iter((count > 0).then_some(0..count));
    for _ in 0..MAX_ROUNDS {
        let before = candidates.clone();
        for fill in Fill::ALL {
            candidates = narrowed(&candidates, fill, comparison)?;
        }
        if candidates == before {
            // Each fill has passed on all of them.
            return Ok(Some(candidates));
        }
    }
    Ok(None)
}

/// Returns the candidates without those that launches need with one fill.
fn narrowed<C: Compares>(
    candidates: &[Range<u64>],
    fill: Fill,
    comparison: &mut C,
) -> Result<Vec<Range<u64>>, C::Error> {
    if candidates.is_empty() || comparison.is_same(fill, candidates)? {
        return Ok(candidates.to_vec());
    }
    let mut halving = Halving {
        fill,
        comparison,
        spare: Vec::new(),
    };
    // Where there is one range, it has just been compared.
    let is_known = candidates.len() == 1;
    for candidate in candidates {
        halving.add(candidate.clone(), is_known)?;
    }
    Ok(halving.spare)
}

/// A search in ever smaller ranges.
struct Halving<'c, C> {
    fill: Fill,
    comparison: &'c mut C,
    /// Pages that are spare together.
    spare: Vec<Range<u64>>,
}

impl<C: Compares> Halving<'_, C> {
    /// Adds the spare pages of a range behind all others, of which it may be known that not all are spare. Returns whether all are.
    fn add(&mut self, range: Range<u64>, has_needed: bool) -> Result<bool, C::Error> {
        if !has_needed {
            let with = joined(&self.spare, &range);
            if self.comparison.is_same(self.fill, &with)? {
                self.spare = with;
                return Ok(true);
            }
        }
        if range.end - range.start > 1 {
            let middle = range.start + (range.end - range.start) / 2;
            let is_left_spare = self.add(range.start..middle, false)?;
            // If all of the left half is spare, a page of the right half is needed.
            self.add(middle..range.end, is_left_spare)?;
        }
        Ok(false)
    }
}

/// Adds a range behind others.
fn joined(spare: &[Range<u64>], range: &Range<u64>) -> Vec<Range<u64>> {
    let mut all = spare.to_vec();
    match all.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => all.push(range.clone()),
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    /// Launches that need pages, each with some fills only.
    struct Needs {
        pages: BTreeSet<(u64, u8)>,
        runs: u64,
    }

    impl Compares for Needs {
        type Error = Infallible;

        fn is_same(&mut self, fill: Fill, pages: &[Range<u64>]) -> Result<bool, Infallible> {
            self.runs += 1;
            let mut needed = self.pages.iter().filter(|(_, of)| *of == fill as u8);
            let is_needed = |page: &u64| pages.iter().any(|range| range.contains(page));
            Ok(!needed.any(|(page, _)| is_needed(page)))
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
            let mut pages = BTreeSet::new();
            for _ in 0..next(&mut state) % 12 {
                let (first, length) = (next(&mut state), next(&mut state) % 20 + 1);
                let fill = (next(&mut state) % 3) as u8;
                pages.extend((first % 200..first % 200 + length).map(|page| (page, fill)));
            }
            let mut needs = Needs { pages, runs: 0 };
            let spare = find_spare_pages(count, &mut needs);
            let spare = spare.unwrap_or_else(|error| match error {});
            let spare: Vec<u64> = spare.expect("it ends").into_iter().flatten().collect();
            let needed = |page: &u64| (0..3).any(|fill| needs.pages.contains(&(*page, fill)));
            let expected: Vec<u64> = (0..count).filter(|page| !needed(page)).collect();
            assert_eq!(spare, expected);
        }
    }

    #[test]
    fn a_few_places_among_many_pages_take_few_runs() {
        let pages = [70_000, 300_000, 300_001, 900_000];
        let mut needs = Needs {
            pages: pages.map(|page| (page, Fill::Ones as u8)).into(),
            runs: 0,
        };
        let spare = find_spare_pages(1 << 20, &mut needs);
        let spare = spare.unwrap_or_else(|error| match error {});
        assert_eq!(spare.expect("it ends").len(), 4);
        assert!(needs.runs < 170, "{}", needs.runs);
    }
}
