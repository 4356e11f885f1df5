//! Sorts rows that come nearly in order, as work does: rows are in the order of submissions, of a few queues at a
//! time. A part is a run of rows that is sorted by itself.

use gapscope_trace::parallel;
use std::cmp::Ordering;

/// The number of rows in a chunk. A chunk is sorted by itself, so that its rows and the scratch memory stay in the
/// processor's cache.
const CHUNK: usize = 1 << PLACE_BITS;
/// The number of bits that hold the place of a row in its chunk.
const PLACE_BITS: u32 = 14;

/// The distance from its place, in rows, from which on a row belongs to another part.
const FAR_ROWS: usize = 4 * CHUNK;

/// The maximum number of parts that are merged. Rows in more parts are sorted in the usual way.
const MAX_PARTS: usize = 8;

/// The number of rows that one core sorts, chunk by chunk, before they are joined with those of other cores.
const STRETCH: usize = 64 * CHUNK;

/// Sorts `rows`, which should be nearly in the order of their keys, or consist of few parts that are.
///
/// Chunks are sorted and each is merged with the end of the chunks before it; stretches of chunks are sorted on all cores and
/// then merged alike. Rows in no such order are sorted too, in the usual time. `ties` decides between equal keys; rows that it
/// finds equal come in any order.
pub(super) fn sort<T: Copy + Send>(
    rows: &mut [T],
    key: impl Fn(&T) -> i64 + Sync,
    ties: impl Fn(&T, &T) -> Ordering + Sync,
) {
    let order = |a: &T, b: &T| match key(a) == key(b) {
        true => cold(|| ties(a, b)),
        // The comparison compiles to no branch, which a processor would mispredict.
        false => key(a).cmp(&key(b)),
    };
    if rows.is_sorted_by(|a, b| order(a, b).is_le()) {
        return;
    }
    let stretches = rows.chunks_mut(STRETCH).collect();
    let parts_of = parallel::each(stretches, |stretch: &mut [T]| {
        for chunk in stretch.chunks_mut(CHUNK) {
            sort_chunk(chunk, &key, order);
        }
        let chunks = (0..stretch.len()).step_by(CHUNK).map(|at| (at, vec![at]));
        join(stretch, chunks, order)
    });
    let begins = (0..rows.len()).step_by(STRETCH);
    let stretches = begins.zip(parts_of).map(|(begin, parts)| {
        let parts = parts.into_iter().map(|part| begin + part).collect();
        (begin, parts)
    });
    let parts = join(rows, stretches, order);
    let ends = parts.iter().copied().skip(1).chain([rows.len()]);
    let longest = parts.iter().zip(ends).map(|(begin, end)| end - begin).max();
    match (parts.len(), rows.len() - longest.unwrap_or(0)) {
        (1, _) => {}
        // Merging copies the shorter part.
        (2..=MAX_PARTS, others) if others <= rows.len() / 8 => rows.sort_by(order),
        // Merging would take half as much memory again.
        _ => rows.sort_unstable_by(order),
    }
}

/// Merges neighbouring ranges of rows, given by their begins and those of their sorted parts: the first part of a range with the
/// last part before it, where these belong together. Returns where each sorted part begins.
fn join<T: Copy>(
    rows: &mut [T],
    neighbours: impl Iterator<Item = (usize, Vec<usize>)>,
    order: impl Fn(&T, &T) -> Ordering,
) -> Vec<usize> {
    let mut neighbours = neighbours.peekable();
    let mut parts: Vec<usize> = Vec::new();
    while let Some((begin, own)) = neighbours.next() {
        let all_end = neighbours.peek().map_or(rows.len(), |(next, _)| *next);
        let end = own.get(1).copied().unwrap_or(all_end);
        let joined = parts.last().is_some_and(|part| {
            let (last, first) = (rows[begin - 1], rows[begin]);
            let before = rows[*part..begin].partition_point(|row| order(row, &first).is_le());
            let after = rows[begin..end].partition_point(|row| order(row, &last).is_lt());
            let from = part + before;
            match begin - from {
                FAR_ROWS.. => return false,
                0 => {}
                // The sort is fast, since it finds two sorted parts.
                _ => rows[from..begin + after].sort_by(&order),
            }
            true
        });
        parts.extend(own.into_iter().skip(usize::from(joined)));
    }
    parts
}

/// Sorts a chunk by keys and places alone, which take a third of the memory of the rows, and moves each row once.
fn sort_chunk<T: Copy>(
    rows: &mut [T],
    key: impl Fn(&T) -> i64,
    order: impl Fn(&T, &T) -> Ordering,
) {
    let keys = || rows.iter().map(&key);
    let (Some(least), Some(most)) = (keys().min(), keys().max()) else {
        return;
    };
    if most.abs_diff(least) > u64::MAX >> PLACE_BITS {
        rows.sort_unstable_by(order);
        return;
    }
    let places = keys().zip(0..);
    let mut places: Vec<u64> = places
        .map(|(key, place): (i64, u64)| key.abs_diff(least) << PLACE_BITS | place)
        .collect();
    places.sort_unstable();
    let unsorted = rows.to_vec();
    for (row, place) in rows.iter_mut().zip(&places) {
        *row = unsorted[(place & (CHUNK as u64 - 1)) as usize];
    }
    for equal in rows.chunk_by_mut(|a, b| key(a) == key(b)) {
        if equal.len() > 1 {
            equal.sort_unstable_by(&order);
        }
    }
}

/// Calls `rare`, which the compiler is told to expect seldom.
#[cold]
fn cold<R>(rare: impl FnOnce() -> R) -> R {
    rare()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares the sort with that of the standard library.
    fn check(mut rows: Vec<(i32, u32)>) {
        let mut expected = rows.clone();
        expected.sort_unstable();
        sort(&mut rows, |row| row.0.into(), |a, b| a.1.cmp(&b.1));
        assert!(rows == expected);
    }

    /// Returns numbers that look random and are the same in each run.
    fn scattered(at: u32) -> u32 {
        at.wrapping_mul(2_654_435_761) >> 7
    }

    #[test]
    fn rows_are_sorted_however_far_from_their_places_they_are() {
        let count = 5 * CHUNK as u32 + 77;
        for reach in [0, 1, 50, 3000, 40_000, u32::MAX] {
            let place = |at: u32| at as i32 + (scattered(at) % reach.max(1)).min(1 << 20) as i32;
            check((0..count).map(|at| (place(at), at)).collect());
        }
        check((0..count).rev().map(|at| (at as i32, at)).collect());
        // Queue after queue.
        check((0..count).map(|at| ((at % 20_000) as i32, at)).collect());
        check(vec![(0, 0); 3 * CHUNK]);
        check(Vec::new());
    }

    proptest! {
        #[test]
        fn any_rows_are_sorted(rows in proptest::collection::vec((-9i32..9, 0u32..4), 0..200)) {
            check(rows);
        }
    }
}
