//! A column of numbers that some rows lack.

use arrow_buffer::{NullBuffer, NullBufferBuilder};
use std::fmt;
use std::ops::Range;

/// Values that some rows lack, in at most half the memory of `Vec<Option<T>>`: one value per row, and one bit per row
/// as soon as a row lacks its value.
pub struct Optional<T> {
    /// Entries of absent rows are meaningless. Rows behind the last present value have no entry.
    values: Vec<T>,
    /// A bit for each row, 1 where the row has a value. No bits are stored as long as all rows have one.
    present: NullBufferBuilder,
}

impl<T> Optional<T> {
    /// Returns the number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.present.len()
    }

    /// Returns true without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all rows and keeps the allocation.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Truncates the column if it is longer.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.present.truncate(rows);
    }

    /// Returns the stored values for changing in place. Entries of absent rows are among them and are meaningless.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Returns which rows have values; `None` where all have.
    pub(crate) fn present(&self) -> Option<NullBuffer> {
        self.present.finish_cloned()
    }

    /// Returns the stored values. Entries of absent rows are among them, and rows behind the last present value are
    /// not.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// Reserves space for the values of `rows` rows. Returns false when memory is exhausted.
    pub(crate) fn reserve(&mut self, rows: usize) -> bool {
        let more = rows.saturating_sub(self.values.len());
        self.values.try_reserve_exact(more).is_ok()
    }

    /// Returns the number of values for which there is space.
    pub(crate) fn capacity(&self) -> usize {
        self.values.capacity()
    }
}

impl<T: Copy + Default> Optional<T> {
    /// Returns the value of a row.
    ///
    /// # Panics
    /// There is no such row.
    #[inline]
    pub fn at(&self, row: usize) -> Option<T> {
        self.present.is_valid(row).then(|| self.values[row])
    }

    /// Returns the value of a row; `None` where there is no such row.
    pub fn get(&self, row: usize) -> Option<T> {
        if row < self.len() { self.at(row) } else { None }
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        match value {
            Some(value) => {
                self.fill(self.len());
                self.values.push(value);
                self.present.append_non_null();
            }
            None => self.present.append_null(),
        }
    }

    /// Sets or removes the value of a row.
    ///
    /// # Panics
    /// There is no such row.
    pub fn set(&mut self, row: usize, value: Option<T>) {
        assert!(row < self.len(), "there is no row {row}");
        if let Some(value) = value {
            self.fill(self.values.len().max(row + 1));
            self.values[row] = value;
        }
        if self.present.is_valid(row) != value.is_some() {
            self.present.set_bit(row, value.is_some());
        }
    }

    /// Replaces each present value by the result of `to`, which may be `None`.
    pub fn change(&mut self, mut to: impl FnMut(T) -> Option<T>) {
        *self = self.iter().map(|value| value.and_then(&mut to)).collect();
    }

    /// Appends rows that all have values.
    pub fn extend_present(&mut self, values: impl ExactSizeIterator<Item = T>) {
        self.fill(self.len());
        self.present.append_n_non_nulls(values.len());
        self.values.extend(values);
    }

    /// Appends rows without values.
    pub(crate) fn extend_absent(&mut self, rows: usize) {
        if rows > 0 {
            self.present.append_n_nulls(rows);
        }
    }

    /// Appends rows, of which those marked in `present` have values.
    pub(crate) fn extend_some(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        present: &NullBuffer,
    ) {
        if present.null_count() < present.len() {
            self.fill(self.len());
            self.values.extend(values);
        }
        self.present.append_buffer(present);
    }

    /// Moves all rows of `other` to the end of this column.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            std::mem::swap(self, other);
        } else {
            if !other.values.is_empty() {
                self.fill(self.len());
                self.values.append(&mut other.values);
            }
            let rows = other.len();
            match other.present.finish() {
                Some(present) => self.present.append_buffer(&present),
                None => self.present.append_n_non_nulls(rows),
            }
        }
        other.clear();
    }

    /// Returns the values in the order of rows.
    pub fn iter(&self) -> Iter<'_, T> {
        self.range(0..self.len())
    }

    /// Returns the values as options.
    pub fn to_vec(&self) -> Vec<Option<T>> {
        self.iter().collect()
    }

    /// Returns the values of a range of rows.
    ///
    /// # Panics
    /// The iterator panics where there is no such row.
    pub fn range(&self, rows: Range<usize>) -> Iter<'_, T> {
        Iter { column: self, rows }
    }

    /// Adds meaningless entries for absent rows, up to `rows`.
    #[inline]
    fn fill(&mut self, rows: usize) {
        if self.values.len() < rows {
            self.values.resize(rows, T::default());
        }
    }
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Optional {
            values: Vec::new(),
            present: NullBufferBuilder::new(0),
        }
    }
}

impl<T: Clone> Clone for Optional<T> {
    fn clone(&self) -> Self {
        let mut present = NullBufferBuilder::new(0);
        match self.present.finish_cloned() {
            Some(bits) => present.append_buffer(&bits),
            None => present.append_n_non_nulls(self.len()),
        }
        Optional {
            values: self.values.clone(),
            present,
        }
    }
}

impl<T: Copy + Default + PartialEq> PartialEq for Optional<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Copy + Default + PartialEq, const N: usize> PartialEq<[Option<T>; N]> for Optional<T> {
    fn eq(&self, other: &[Option<T>; N]) -> bool {
        self.iter().eq(other.iter().copied())
    }
}

impl<T: Copy + Default + fmt::Debug> fmt::Debug for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Copy + Default> Extend<Option<T>> for Optional<T> {
    fn extend<I: IntoIterator<Item = Option<T>>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Optional<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(values: I) -> Self {
        let values = values.into_iter();
        let mut all = Optional::default();
        all.values.reserve(values.size_hint().0);
        all.extend(values);
        all
    }
}

impl<T: Copy + Default> From<Vec<Option<T>>> for Optional<T> {
    fn from(values: Vec<Option<T>>) -> Self {
        values.into_iter().collect()
    }
}

impl<'a, T: Copy + Default> IntoIterator for &'a Optional<T> {
    type Item = Option<T>;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Values of an [`Optional`] in the order of rows.
pub struct Iter<'a, T> {
    column: &'a Optional<T>,
    rows: Range<usize>,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Iter {
            column: self.column,
            rows: self.rows.clone(),
        }
    }
}

impl<T: Copy + Default> Iterator for Iter<'_, T> {
    type Item = Option<T>;
    #[inline]
    fn next(&mut self) -> Option<Option<T>> {
        self.rows.next().map(|row| self.column.at(row))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
    fn nth(&mut self, n: usize) -> Option<Option<T>> {
        self.rows.nth(n).map(|row| self.column.at(row))
    }
}

impl<T: Copy + Default> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Option<T>> {
        self.rows.next_back().map(|row| self.column.at(row))
    }
}

impl<T: Copy + Default> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::Optional;
    use crate::column::{ColumnValues as _, Values as _};
    use arrow_buffer::NullBuffer;
    use proptest::prelude::*;

    /// A change of a column, which the test makes to a plain vector, too.
    #[derive(Debug, Clone)]
    enum Step {
        Push(Option<u64>),
        Set(usize, Option<u64>),
        Present(Vec<u64>),
        Some(Vec<Option<u64>>),
        Append(Vec<Option<u64>>),
        Resize(usize),
        Insert(usize, usize),
        Remove(usize, usize),
        Select(Vec<bool>),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let value = || proptest::option::of(1..9_u64);
        let values = || proptest::collection::vec(value(), 0..20);
        let step = prop_oneof![
            8 => value().prop_map(Step::Push),
            3 => (0..40_usize, value()).prop_map(|(row, value)| Step::Set(row, value)),
            2 => proptest::collection::vec(1..9_u64, 0..20).prop_map(Step::Present),
            2 => values().prop_map(Step::Some),
            2 => values().prop_map(Step::Append),
            2 => (0..40_usize).prop_map(Step::Resize),
            1 => (0..40_usize, 0..9_usize).prop_map(|(at, rows)| Step::Insert(at, rows)),
            1 => (0..40_usize, 0..9_usize).prop_map(|(at, rows)| Step::Remove(at, rows)),
            1 => proptest::collection::vec(any::<bool>(), 99).prop_map(Step::Select),
            1 => Just(Step::Clear),
        ];
        proptest::collection::vec(step, 0..40)
    }

    proptest! {
        #[test]
        fn it_holds_what_a_list_of_options_holds(steps in steps()) {
            let (mut packed, mut plain) = (Optional::default(), Vec::new());
            for step in steps {
                match step {
                    Step::Push(value) => {
                        packed.push(value);
                        plain.push(value);
                    }
                    Step::Set(row, value) if row < plain.len() => {
                        packed.set(row, value);
                        plain[row] = value;
                    }
                    Step::Set(..) => (),
                    Step::Present(values) => {
                        packed.extend_present(values.iter().copied());
                        plain.extend(values.into_iter().map(Some));
                    }
                    Step::Some(values) => {
                        let present: NullBuffer = values.iter().map(Option::is_some).collect::<Vec<_>>().into();
                        packed.extend_some(values.iter().map(|value| value.unwrap_or(99)), &present);
                        plain.extend(values);
                    }
                    Step::Append(values) => {
                        let mut other: Optional<u64> = values.clone().into();
                        packed.append(&mut other);
                        prop_assert!(other.is_empty());
                        plain.extend(values);
                    }
                    Step::Resize(rows) => {
                        packed.resize(rows);
                        plain.resize(rows, None);
                    }
                    Step::Insert(at, rows) => {
                        let at = at.min(plain.len());
                        packed.insert(at, rows);
                        plain.splice(at..at, vec![None; rows]);
                    }
                    Step::Remove(at, rows) => {
                        let rows = at.min(plain.len())..(at + rows).min(plain.len());
                        packed.remove(rows.clone());
                        plain.drain(rows);
                    }
                    Step::Select(keep) => {
                        let keep = &keep[..plain.len().min(99)];
                        packed.truncate(keep.len());
                        packed = packed.select(keep);
                        let mut keep = keep.iter();
                        plain.truncate(99);
                        plain.retain(|_| *keep.next().unwrap());
                    }
                    Step::Clear => {
                        packed.clear();
                        plain.clear();
                    }
                }
                prop_assert_eq!(packed.len(), plain.len());
                prop_assert_eq!(packed.iter().collect::<Vec<_>>(), plain.clone());
                prop_assert_eq!(packed.get(plain.len()), None);
                prop_assert_eq!(&packed.clone(), &packed);
            }
        }
    }
}
