//! From an id of a table to the row that has it.

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// Rows by id. Ids are mostly a counter, so a plain table serves; scattered ids are searched. Of rows with one id the
/// first counts.
#[derive(Debug, Default)]
pub(crate) enum Ids {
    #[default]
    Empty,
    /// Row of `id - first`.
    Dense { first: u64, rows: Vec<u32> },
    /// Sorted by id, then by row.
    Sparse(Vec<(u64, u32)>),
}

impl Ids {
    pub(crate) fn new(ids: impl ExactSizeIterator<Item = u64> + Clone) -> Ids {
        let count = ids.len();
        let (Some(first), Some(last)) = (ids.clone().min(), ids.clone().max()) else {
            return Ids::Empty;
        };
        let span = last - first;
        if span / 8 <= count as u64 {
            let mut rows = vec![NONE; span as usize + 1];
            for (row, id) in ids.enumerate() {
                let slot = &mut rows[(id - first) as usize];
                if *slot == NONE {
                    *slot = row as u32;
                }
            }
            return Ids::Dense { first, rows };
        }
        let mut pairs: Vec<(u64, u32)> =
            ids.enumerate().map(|(row, id)| (id, row as u32)).collect();
        pairs.sort();
        Ids::Sparse(pairs)
    }

    /// The row of `id`, or [`NONE`].
    #[inline]
    pub(crate) fn row(&self, id: u64) -> u32 {
        match self {
            Ids::Empty => NONE,
            Ids::Dense { first, rows } => id
                .checked_sub(*first)
                .and_then(|at| rows.get(usize::try_from(at).ok()?))
                .copied()
                .unwrap_or(NONE),
            Ids::Sparse(pairs) => {
                let at = pairs.partition_point(|(other, _)| *other < id);
                match pairs.get(at) {
                    Some((other, row)) if *other == id => *row,
                    _ => NONE,
                }
            }
        }
    }

    /// The row of `id` as an index.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<usize> {
        match self.row(id) {
            NONE => None,
            row => Some(row as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_and_counted_ids_find_their_first_row() {
        for ids in [vec![5, 6, 7, 6], vec![1, u64::MAX, 40, u64::MAX]] {
            let map = Ids::new(ids.iter().copied());
            for id in &ids {
                let first = ids.iter().position(|other| other == id);
                assert_eq!(map.get(*id), first, "{ids:?}");
            }
            assert_eq!(map.get(4), None);
            assert_eq!(map.get(41), None);
        }
        assert_eq!(Ids::new([].into_iter()).get(0), None);
    }
}
