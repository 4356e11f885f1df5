//! Keeps the times of a kernel in equal parts of its run, to tell what slowed all kernels of a part alike: the dispatches of a run go in,
//! in their order, and sums over the dispatches of each part come out.

use serde::{Deserialize, Serialize};

/// The maximum number of parts of a run. A run with enough dispatches has at least half as many.
const MAX_PARTS: u64 = 128;

/// A place in a run: the number of dispatches before it, and the size of parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunPlace {
    /// The number of dispatches with known times before this one.
    pub dispatches: u64,
    /// The binary logarithm of the number of dispatches in a part.
    doublings: u32,
}

impl RunPlace {
    /// Goes on to the next dispatch. Parts get twice as large where there would be too many.
    pub fn advance(&mut self) {
        self.dispatches += 1;
        if self.dispatches >> self.doublings == MAX_PARTS {
            self.doublings += 1;
        }
    }

    /// Returns the number of parts before this place, a last one with fewer dispatches included.
    pub fn parts(self) -> usize {
        (self.dispatches.div_ceil(1 << self.doublings)) as usize
    }
}

/// The dispatches of a kernel in one part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "(u32, u64, f64)", from = "(u32, u64, f64)")]
pub(super) struct RunPart {
    /// The number of the part, from 0.
    pub number: u32,
    pub count: u64,
    /// The sum of the times.
    pub ns: f64,
}

impl RunPart {
    /// Returns the mean time of a dispatch.
    pub fn mean(self) -> f64 {
        self.ns / self.count as f64
    }
}

impl From<RunPart> for (u32, u64, f64) {
    fn from(part: RunPart) -> (u32, u64, f64) {
        (part.number, part.count, part.ns)
    }
}

impl From<(u32, u64, f64)> for RunPart {
    fn from((number, count, ns): (u32, u64, f64)) -> RunPart {
        RunPart { number, count, ns }
    }
}

/// The dispatches of a kernel by parts of the run; parts without any are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Parts {
    doublings: u32,
    parts: Vec<RunPart>,
}

impl Parts {
    /// Adds the dispatch at a place, which is behind those of before.
    #[inline]
    pub fn push(&mut self, place: RunPlace, ns: f64) {
        if self.doublings != place.doublings {
            self.coarsen(place);
        }
        let number = (place.dispatches >> place.doublings) as u32;
        match self.parts.last_mut() {
            Some(last) if last.number == number => {
                last.count += 1;
                last.ns += ns;
            }
            _ => self.parts.push(RunPart {
                number,
                count: 1,
                ns,
            }),
        }
    }

    /// Joins neighbours until the parts are as large as those of a place.
    pub fn coarsen(&mut self, place: RunPlace) {
        let shift = place.doublings - self.doublings;
        self.doublings = place.doublings;
        let mut joined: Vec<RunPart> = Vec::new();
        for part in self.parts.drain(..) {
            let number = part.number >> shift;
            match joined.last_mut().filter(|last| last.number == number) {
                Some(last) => {
                    last.count += part.count;
                    last.ns += part.ns;
                }
                None => joined.push(RunPart { number, ..part }),
            }
        }
        self.parts = joined;
    }

    pub fn all(&self) -> &[RunPart] {
        &self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_all_dispatches_and_are_few() {
        for dispatches in [1, 127, 128, 129, 1000, 100_000_u64] {
            let (mut place, mut parts) =
                (RunPlace::default(), [Parts::default(), Parts::default()]);
            for number in 0..dispatches {
                // The second kernel runs at the start alone.
                let kernel = usize::from(number < 3);
                parts[kernel].push(place, 2.0);
                place.advance();
            }
            parts.iter_mut().for_each(|parts| parts.coarsen(place));
            let all = || parts.iter().flat_map(|parts| parts.all());
            assert_eq!(all().map(|part| part.count).sum::<u64>(), dispatches);
            assert_eq!(
                all().map(|part| part.ns).sum::<f64>(),
                2.0 * dispatches as f64
            );
            assert!(all().all(|part| (part.number as usize) < place.parts()));
            assert!(place.parts() as u64 <= MAX_PARTS);
            assert!(place.parts() as u64 >= (MAX_PARTS / 2).min(dispatches));
        }
    }
}
