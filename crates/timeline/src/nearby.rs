//! Searches and sorts that are fast where the answer lies near: walks over a trace look up one moment after the other, and rows are
//! mostly in order of time already.

use std::cell::Cell;

/// The number of lists whose last places a thread remembers.
const REMEMBERED: usize = 32;
/// The number of moved rows for each row, on average, from which on another sort is faster: many rows are moved at once.
const MOVES: usize = 64;

thread_local! {
    /// The address of a list and the place that was found in it last. A place is a hint, and may be of another list that was at
    /// the same address.
    static PLACES: [Cell<(usize, usize)>; REMEMBERED] = const { [const { Cell::new((0, 0)) }; REMEMBERED] };
}

/// Returns the index that [`slice::partition_point`] returns. The search begins at the place that this thread found last in the
/// same list.
#[inline]
pub fn partition_point<T>(list: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let address = list.as_ptr() as usize;
    PLACES.with(|places| {
        let place = &places[(address >> 4 ^ address >> 12) % REMEMBERED];
        let hint = match place.get() {
            (of, at) if of == address => at.min(list.len()),
            _ => list.len() / 2,
        };
        let found = search_from(list, hint, is_before);
        place.set((address, found));
        found
    })
}

/// Searches in steps that double, from `hint` on, and then between the last two of them.
#[inline]
fn search_from<T>(list: &[T], hint: usize, is_before: impl Fn(&T) -> bool) -> usize {
    // The answer is in `from..=to`.
    let (mut from, mut to) = (0, list.len());
    let mut step = 1;
    if list.get(hint).is_some_and(&is_before) {
        from = hint + 1;
        while let Some(next) = list.get(from + step) {
            if !is_before(next) {
                to = from + step;
                break;
            }
            from += step + 1;
            step *= 2;
        }
    } else {
        to = hint;
        while let Some(next) = to.checked_sub(step) {
            if is_before(&list[next]) {
                from = next + 1;
                break;
            }
            to = next;
            step *= 2;
        }
    }
    from + list[from..to].partition_point(is_before)
}

/// Sorts rows by a key as [`slice::sort_by_key`] does, in little more than one pass where few rows come too late.
pub fn sort_by_key<T: Copy, K: Ord>(rows: &mut [T], key: impl Fn(&T) -> K) {
    let mut moves = rows.len().saturating_mul(MOVES);
    let Some(mut last) = rows.first().map(&key) else {
        return;
    };
    for at in 1..rows.len() {
        let row = rows[at];
        let own = key(&row);
        if last <= own {
            last = own;
            continue;
        }
        let to = search_from(&rows[..at], at, |row| key(row) <= own);
        match moves.checked_sub(at - to) {
            Some(left) => moves = left,
            None => return rows.sort_by_key(key),
        }
        rows.copy_within(to..at, to + 1);
        rows[to] = row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn searches_find_what_a_search_without_a_hint_finds(
            mut list in prop::collection::vec(0i64..99, 0..80),
            sought in prop::collection::vec((0i64..99, 0usize..90), 0..40),
        ) {
            list.sort_unstable();
            for (value, hint) in sought {
                let expected = list.partition_point(|row| *row < value);
                prop_assert_eq!(partition_point(&list, |row| *row < value), expected);
                prop_assert_eq!(search_from(&list, hint.min(list.len()), |row| *row < value), expected);
                let shorter = &list[..hint.min(list.len())];
                let expected = shorter.partition_point(|row| *row <= value);
                prop_assert_eq!(partition_point(shorter, |row| *row <= value), expected);
            }
        }

        #[test]
        fn rows_are_sorted_as_a_stable_sort_does(rows in prop::collection::vec((0i64..20, 0u8..9), 0..200), reach in 1i64..40) {
            let near = rows.iter().zip(0i64..).map(|(row, at)| (at + row.0 % reach, row.1));
            for mut rows in [rows.clone(), near.collect()] {
                let mut expected = rows.clone();
                expected.sort_by_key(|row| row.0);
                sort_by_key(&mut rows, |row| row.0);
                prop_assert_eq!(rows, expected);
            }
        }
    }
}
