//! Splits slices (intervals of work, calls or labels), which may overlap, into lanes in which they follow or contain
//! each other, for tools that show only one slice at a time or nested slices. [`walk`] reads a lane as starts and
//! ends.

use crate::packed::Lane;
use crate::slice::{LaneSlice, Slice};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::lanes::Lanes;

/// The way in which slices may share a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Slices follow each other.
    Apart,
    /// Slices follow or contain each other.
    Nested,
}

/// The most lanes that are searched for a place for a nested slice. A slice without a place there goes to lanes of
/// [`Sharing::Apart`], so that a million crossing calls do not take for ever.
const MAX_NESTED_LANES: usize = 32;

/// Splits slices into lanes, each in order of time with a slice before those inside it. Every slice is in exactly one
/// lane: the first where it has a place.
pub(crate) fn split(mut slices: Vec<Slice>, sharing: Sharing) -> Vec<Vec<Slice>> {
    let order = |slice: &Slice| match sharing {
        Sharing::Apart => (slice.start_ns, slice.end_ns),
        Sharing::Nested => (slice.start_ns, slice.end_ns.saturating_neg()),
    };
    if !slices.is_sorted_by_key(order) {
        // A stable sort keeps the order of rows with equal times.
        slices.sort_by_key(order);
    }
    match sharing {
        Sharing::Apart => apart(slices),
        Sharing::Nested => nested(slices),
    }
}

/// Puts each slice into the first lane that is free at its start.
fn apart(slices: Vec<Slice>) -> Vec<Vec<Slice>> {
    if slices
        .windows(2)
        .all(|two| two[0].end_ns <= two[1].start_ns)
    {
        return if slices.is_empty() {
            Vec::new()
        } else {
            vec![slices]
        };
    }
    let mut split: Vec<Vec<Slice>> = Vec::new();
    let mut lanes = Lanes::default();
    for slice in slices {
        let lane = lanes.place(Interval::new(slice.start_ns, slice.end_ns));
        split.resize_with(lanes.count(), Vec::new);
        split[lane as usize].push(slice);
    }
    split
}

/// Puts each slice into the first lane whose innermost open slice contains it or has ended. Slices for which none of
/// [`MAX_NESTED_LANES`] has a place go to further lanes, in which slices follow each other.
fn nested(slices: Vec<Slice>) -> Vec<Vec<Slice>> {
    let mut lanes: Vec<Vec<Slice>> = Vec::new();
    // For each lane, the ends of the slices that have not ended, the innermost last.
    let mut open: Vec<Vec<i64>> = Vec::new();
    let mut crossing = Vec::new();
    for slice in slices {
        let place = open.iter_mut().position(|ends| {
            while ends.last().is_some_and(|end_ns| *end_ns <= slice.start_ns) {
                ends.pop();
            }
            ends.last().is_none_or(|end_ns| *end_ns >= slice.end_ns)
        });
        let lane = match place {
            Some(lane) => lane,
            None if lanes.len() < MAX_NESTED_LANES => {
                lanes.push(Vec::new());
                open.push(Vec::new());
                lanes.len() - 1
            }
            None => {
                crossing.push(slice);
                continue;
            }
        };
        open[lane].push(slice.end_ns);
        lanes[lane].push(slice);
    }
    lanes.extend(split(crossing, Sharing::Apart));
    lanes
}

/// Returns whether each slice of a lane ends before or when the next one begins.
pub(crate) fn is_flat(lane: &Lane) -> bool {
    let mut before_ns = i64::MIN;
    lane.slices().all(|drawn| {
        let apart = before_ns <= drawn.slice.start_ns;
        before_ns = drawn.slice.end_ns;
        apart
    })
}

/// A start or end in a lane, in an order that a stack can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Start(LaneSlice),
    /// The innermost open slice ends.
    End(LaneSlice),
}

/// Walks a lane of [`split`] and calls `step` for each start and end, never back in time; ends come before starts of
/// the same time. Each end closes the innermost slice. The first error of `step` ends the walk.
pub(crate) fn walk<E>(lane: &Lane, mut step: impl FnMut(Step) -> Result<(), E>) -> Result<(), E> {
    let mut open: Vec<LaneSlice> = Vec::new();
    for drawn in lane.slices() {
        let start_ns = drawn.slice.start_ns;
        while let Some(last) = open.pop_if(|last| last.slice.end_ns <= start_ns) {
            step(Step::End(last))?;
        }
        step(Step::Start(drawn))?;
        open.push(drawn);
    }
    while let Some(last) = open.pop() {
        step(Step::End(last))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice::SliceKind;
    use proptest::prelude::*;

    fn slices() -> impl Strategy<Value = Vec<Slice>> {
        proptest::collection::vec((0i64..60, 0i64..20), 0..80).prop_map(|times| {
            let rows = times.into_iter().enumerate();
            rows.map(|(row, (start_ns, length))| Slice {
                start_ns,
                end_ns: start_ns + length,
                row: row as u32,
                flow: 0,
                kind: SliceKind::HostCall,
            })
            .collect()
        })
    }

    fn rows(lanes: &[Vec<Slice>]) -> Vec<u32> {
        let mut rows: Vec<u32> = lanes.iter().flatten().map(|slice| slice.row).collect();
        rows.sort_unstable();
        rows
    }

    proptest! {
        #[test]
        fn no_two_slices_of_a_lane_overlap(slices in slices()) {
            let count = slices.len();
            let lanes = split(slices, Sharing::Apart);
            prop_assert_eq!(rows(&lanes), (0..count as u32).collect::<Vec<_>>());
            for lane in &lanes {
                prop_assert!(lane.windows(2).all(|two| two[0].end_ns <= two[1].start_ns));
            }
        }

        #[test]
        fn there_are_no_more_lanes_than_slices_at_one_time(slices in slices()) {
            let at = |ns: i64| slices.iter().filter(|s| s.start_ns <= ns && ns < s.end_ns.max(s.start_ns + 1)).count();
            let most = (0..80).map(at).max().unwrap_or(0);
            prop_assert!(split(slices, Sharing::Apart).len() <= most);
        }

        #[test]
        fn slices_of_a_nested_lane_are_apart_or_inside_each_other(slices in slices()) {
            let count = slices.len();
            let lanes = split(slices, Sharing::Nested);
            prop_assert_eq!(rows(&lanes), (0..count as u32).collect::<Vec<_>>());
            for lane in &lanes {
                for (index, a) in lane.iter().enumerate() {
                    for b in &lane[index + 1..] {
                        let apart = a.end_ns <= b.start_ns;
                        let inside = a.start_ns <= b.start_ns && b.end_ns <= a.end_ns;
                        prop_assert!(apart || inside, "{a:?} {b:?}");
                    }
                }
            }
        }

        #[test]
        fn a_walk_never_goes_back_and_ends_all_that_it_starts(slices in slices(), nested: bool) {
            let sharing = if nested { Sharing::Nested } else { Sharing::Apart };
            for lane in split(slices, sharing) {
                let (mut now, mut open, mut started) = (i64::MIN, Vec::new(), 0);
                walk(&Lane::from_slices(lane.iter().copied()), |step| {
                    let at = match step {
                        Step::Start(LaneSlice { slice, .. }) => {
                            open.push(slice.row);
                            started += 1;
                            slice.start_ns
                        }
                        Step::End(LaneSlice { slice, .. }) => {
                            assert_eq!(open.pop(), Some(slice.row));
                            slice.end_ns
                        }
                    };
                    assert!(at >= now);
                    now = at;
                    Ok::<(), ()>(())
                }).unwrap();
                prop_assert_eq!(started, lane.len());
                prop_assert!(open.is_empty());
            }
        }
    }

    #[test]
    fn many_crossing_calls_find_a_place() {
        let slices: Vec<Slice> = (0..1000)
            .map(|row| Slice {
                start_ns: i64::from(row),
                end_ns: i64::from(row) + 5000,
                row,
                flow: 0,
                kind: SliceKind::HostCall,
            })
            .collect();
        assert_eq!(rows(&split(slices, Sharing::Nested)).len(), 1000);
    }
}
