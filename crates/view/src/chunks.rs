//! Splits a number of rows into ranges (chunks) that cores work on in parallel. The last chunk may be shorter than
//! the others.

use std::ops::Range;

/// Number of rows of a chunk.
pub const CHUNK_ROWS: usize = 1 << 17;

/// Returns the ranges of the chunks of `rows` rows.
pub fn chunks(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows)
        .step_by(CHUNK_ROWS)
        .map(move |from| from..rows.min(from + CHUNK_ROWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_of_all_rows() {
        let of = |rows| chunks(rows).collect::<Vec<_>>();
        assert!(of(0).is_empty());
        assert_eq!(of(7), vec![0..7]);
        assert_eq!(
            of(CHUNK_ROWS * 2 + 1),
            vec![
                0..CHUNK_ROWS,
                CHUNK_ROWS..CHUNK_ROWS * 2,
                CHUNK_ROWS * 2..CHUNK_ROWS * 2 + 1
            ]
        );
    }
}
