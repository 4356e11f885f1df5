//! Columns of texts. Each distinct text of a column is in memory once, and a row holds its number, so that a row
//! takes four bytes.

use crate::column::{
    Column, ColumnValues, Texts, Values, capacity_for, dictionary_type, for_each_text,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::DataType;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::ops::{Index, Range};
use std::sync::Arc;

/// A text, or an optional one.
pub trait Text: Clone + Default + Eq + Hash + Send + std::fmt::Debug {
    /// True when the text may be absent.
    const NULLABLE: bool;
    /// Converts an optional text; `None` where a required text is absent.
    fn from_optional(text: Option<Arc<str>>) -> Option<Self>;
    /// Returns the text.
    fn text(&self) -> Option<&str>;
}

impl Text for Arc<str> {
    const NULLABLE: bool = false;
    fn from_optional(text: Option<Arc<str>>) -> Option<Self> {
        text
    }
    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl Text for Option<Arc<str>> {
    const NULLABLE: bool = true;
    fn from_optional(text: Option<Arc<str>>) -> Option<Self> {
        Some(text)
    }
    fn text(&self) -> Option<&str> {
        self.as_deref()
    }
}

/// The texts of many rows.
#[derive(Debug, Clone, Default)]
pub struct TextColumn<T> {
    /// The number of each row's text.
    numbers: Vec<u32>,
    distinct: DistinctTexts<T>,
}

/// Distinct texts by number. Some may no longer belong to any row.
#[derive(Debug, Clone, Default)]
struct DistinctTexts<T> {
    /// The texts by number.
    texts: Vec<T>,
    /// The number of each text.
    numbers: FxHashMap<T, u32>,
    /// The number that was looked up last: neighbouring rows mostly have the same text.
    last: u32,
}

impl<T: Text> DistinctTexts<T> {
    /// Returns the number of a text, which is added where it is new.
    fn number(&mut self, text: T) -> u32 {
        if self.texts.get(self.last as usize) != Some(&text) {
            self.last = match self.numbers.get(&text) {
                Some(number) => *number,
                None => {
                    // Memory is exhausted long before the numbers are.
                    let number = self.texts.len() as u32;
                    self.texts.push(text.clone());
                    self.numbers.insert(text, number);
                    number
                }
            };
        }
        self.last
    }
}

impl<T: Text> TextColumn<T> {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns true without rows.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the text of a row; `None` where there is no such row.
    pub fn get(&self, row: usize) -> Option<&T> {
        let number = self.numbers.get(row)?;
        Some(&self.distinct.texts[*number as usize])
    }

    /// Returns the number of a row's text among [`TextColumn::distinct`]; `None` where there is no such row.
    #[inline]
    pub fn number(&self, row: usize) -> Option<u32> {
        self.numbers.get(row).copied()
    }

    /// Returns each text once, by its number. Some may no longer belong to any row.
    pub fn distinct(&self) -> &[T] {
        &self.distinct.texts
    }

    /// Returns the texts, row by row.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        let numbers = self.numbers.iter();
        numbers.map(|number| &self.distinct.texts[*number as usize])
    }

    /// Appends a row.
    pub fn push(&mut self, text: T) {
        self.numbers.push(self.distinct.number(text));
    }

    /// Sets the text of a row.
    ///
    /// # Panics
    /// There is no such row.
    pub fn set(&mut self, row: usize, text: T) {
        self.numbers[row] = self.distinct.number(text);
    }

    /// Appends the rows of an Arrow array; `None` where it has another type or lacks required texts.
    fn append_texts(&mut self, array: &dyn Array, texts: &mut Texts) -> Option<()> {
        let TextColumn { numbers, distinct } = self;
        let read = |text: Option<&str>| {
            Some(distinct.number(T::from_optional(text.map(|t| texts.intern(t)))?))
        };
        for_each_text(array, read, |number| numbers.push(number))
    }

    /// Returns the column as an Arrow array.
    fn array(&self) -> ArrayRef {
        // The texts come in the order of rows, without those that no row has.
        const NONE: i32 = -1;
        let mut written: Vec<Option<i32>> = vec![None; self.distinct.texts.len()];
        let mut words = Vec::new();
        let mut key = |number: &u32| {
            let at = *number as usize;
            let key = written[at].get_or_insert_with(|| match self.distinct.texts[at].text() {
                Some(text) => {
                    words.push(text);
                    words.len() as i32 - 1
                }
                None => NONE,
            });
            (*key != NONE).then_some(*key)
        };
        let keys: Int32Array = self.numbers.iter().map(&mut key).collect();
        let words = StringArray::from_iter_values(words);
        Arc::new(DictionaryArray::new(keys, Arc::new(words)))
    }
}

impl<T> Index<usize> for TextColumn<T> {
    type Output = T;

    fn index(&self, row: usize) -> &T {
        &self.distinct.texts[self.numbers[row] as usize]
    }
}

impl<'a, T: Text> IntoIterator for &'a TextColumn<T> {
    type Item = &'a T;
    type IntoIter = Box<dyn Iterator<Item = &'a T> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl<T: Text> PartialEq for TextColumn<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Text, const N: usize> PartialEq<[T; N]> for TextColumn<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        self.iter().eq(other)
    }
}

impl<T: Text> FromIterator<T> for TextColumn<T> {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut column = TextColumn::default();
        texts.into_iter().for_each(|text| column.push(text));
        column
    }
}

impl<T: Text> ColumnValues for TextColumn<T> {
    fn nullable(&self) -> bool {
        T::NULLABLE
    }
    fn reserve(&mut self, more: usize, all: usize) -> bool {
        let space = capacity_for(self.len(), more, all);
        self.len().saturating_add(more) <= self.numbers.capacity()
            || (self.numbers.try_reserve_exact(space - self.len())).is_ok()
    }
    fn append_array(&mut self, array: &dyn Array, texts: &mut Texts) -> bool {
        self.append_texts(array, texts).is_some()
    }
    fn resize(&mut self, rows: usize) {
        let default = self.distinct.number(T::default());
        self.numbers.resize(rows, default);
    }
    fn insert(&mut self, at: usize, rows: usize) {
        let default = self.distinct.number(T::default());
        let defaults = std::iter::repeat_n(default, rows);
        self.numbers.splice(at..at, defaults);
    }
    fn truncate(&mut self, rows: usize) {
        self.numbers.truncate(rows);
    }
    fn remove(&mut self, rows: Range<usize>) {
        self.numbers.drain(rows);
    }
    fn rows(&self) -> usize {
        self.len()
    }
}

impl<T> Values for TextColumn<T>
where
    T: Text + Column<Values = TextColumn<T>>,
{
    type Value = T;
    fn value(&self, row: usize) -> T {
        self[row].clone()
    }
    fn write_text(&self, row: usize, to: &mut String) -> bool {
        self[row].write_text(to)
    }
    fn push(&mut self, value: T) {
        TextColumn::push(self, value);
    }
    fn select(&self, keep: &[bool]) -> Self {
        let numbers = self.numbers.iter().zip(keep);
        TextColumn {
            numbers: numbers
                .filter(|(_, keep)| **keep)
                .map(|(n, _)| *n)
                .collect(),
            distinct: self.distinct.clone(),
        }
    }
    fn clear(&mut self) {
        self.numbers.clear();
        self.distinct = DistinctTexts::default();
    }
    fn append(&mut self, other: &mut Self) {
        let words = std::mem::take(&mut other.distinct).texts.into_iter();
        let numbers: Vec<u32> = words.map(|text| self.distinct.number(text)).collect();
        let rows = other.numbers.drain(..);
        self.numbers
            .extend(rows.map(|number| numbers[number as usize]));
    }
}

/// Implements [`Column`] for types of texts.
macro_rules! text_columns {
    ($($text:ty),+) => {$(
        impl Column for $text {
            type Values = TextColumn<Self>;
            fn data_type() -> DataType {
                dictionary_type()
            }
            const NULLABLE: bool = <Self as Text>::NULLABLE;
            fn to_array(values: &TextColumn<Self>) -> ArrayRef {
                values.array()
            }
            fn append_array(
                array: &dyn Array,
                values: &mut TextColumn<Self>,
                texts: &mut Texts,
            ) -> Option<()> {
                values.append_texts(array, texts)
            }
            fn write_text(&self, to: &mut String) -> bool {
                to.push_str(self.text().unwrap_or_default());
                self.text().is_some()
            }
            fn from_text(text: &str) -> Option<Self> {
                <Self as Text>::from_optional(Some(Arc::from(text)))
            }
        }
    )+};
}

text_columns!(Arc<str>, Option<Arc<str>>);

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    type Maybe = Option<Arc<str>>;

    /// A change of a column, which the test makes to a plain vector, too.
    #[derive(Debug, Clone)]
    enum Change {
        Push(Maybe),
        Set(usize, Maybe),
        Resize(usize),
        Insert(usize, usize),
        Truncate(usize),
        Remove(usize, usize),
        Select(Vec<bool>),
        Append(Vec<Maybe>),
        Clear,
    }

    fn text() -> impl Strategy<Value = Maybe> {
        prop::option::of(prop::sample::select(vec!["", "a", "b", "long name"]).prop_map(Arc::from))
    }

    fn change() -> impl Strategy<Value = Change> {
        let row = 0..12usize;
        prop_oneof![
            text().prop_map(Change::Push),
            prop::collection::vec(text(), 4..12).prop_map(Change::Append),
            (row.clone(), text()).prop_map(|(at, text)| Change::Set(at, text)),
            row.clone().prop_map(Change::Resize),
            (row.clone(), 0..3usize).prop_map(|(at, rows)| Change::Insert(at, rows)),
            row.clone().prop_map(Change::Truncate),
            (row.clone(), row).prop_map(|(from, to)| Change::Remove(from, to)),
            prop::collection::vec(any::<bool>(), 12..20).prop_map(Change::Select),
            prop::collection::vec(text(), 0..4).prop_map(Change::Append),
            Just(Change::Clear),
        ]
    }

    /// Makes a change of the column and of the plain rows; a row beyond the end counts as the end, or nothing
    /// happens.
    fn apply(change: Change, column: &mut TextColumn<Maybe>, rows: &mut Vec<Maybe>) {
        let at = |row: usize, rows: &[Maybe]| row.min(rows.len());
        match change {
            Change::Push(text) => {
                column.push(text.clone());
                rows.push(text);
            }
            Change::Set(row, text) if row < rows.len() => {
                column.set(row, text.clone());
                rows[row] = text;
            }
            Change::Set(..) => {}
            Change::Resize(len) => {
                column.resize(len);
                rows.resize(len, None);
            }
            Change::Insert(row, count) => {
                let row = at(row, rows);
                column.insert(row, count);
                rows.splice(row..row, std::iter::repeat_n(None, count));
            }
            Change::Truncate(len) => {
                column.truncate(len);
                rows.truncate(len);
            }
            Change::Remove(from, to) => {
                let (from, to) = (at(from.min(to), rows), at(from.max(to), rows));
                column.remove(from..to);
                rows.drain(from..to);
            }
            Change::Select(mut keep) => {
                keep.resize(rows.len(), true);
                *column = column.select(&keep);
                let mut keep = keep.into_iter();
                rows.retain(|_| keep.next().unwrap_or_default());
            }
            Change::Append(more) => {
                let mut other: TextColumn<Maybe> = more.iter().cloned().collect();
                Values::append(column, &mut other);
                assert!(other.is_empty());
                rows.extend(more);
            }
            Change::Clear => {
                Values::clear(column);
                rows.clear();
            }
        }
    }

    proptest! {
        #[test]
        fn a_column_is_as_a_list_of_its_texts(changes in prop::collection::vec(change(), 0..40)) {
            let (mut column, mut rows) = (TextColumn::default(), Vec::new());
            for change in changes {
                apply(change, &mut column, &mut rows);
                prop_assert!(column.iter().eq(&rows));
                prop_assert_eq!((column.len(), column.get(rows.len())), (rows.len(), None));
                let same: TextColumn<Maybe> = rows.iter().cloned().collect();
                prop_assert_eq!(&column, &same);
            }
            let array = Maybe::to_array(&column);
            let words = array.as_any_dictionary_opt().map(|array| array.values().len());
            let distinct: std::collections::HashSet<_> = rows.iter().flatten().collect();
            prop_assert_eq!(words, Some(distinct.len()), "what no row has is not written");
            let mut read = TextColumn::default();
            for _ in 0..2 {
                Maybe::append_array(&array, &mut read, &mut Texts::default()).unwrap();
            }
            prop_assert!(read.iter().eq(rows.iter().chain(&rows)));
            let all_there = Arc::<str>::append_array(&array, &mut TextColumn::default(), &mut Texts::default());
            prop_assert_eq!(all_there.is_some(), !rows.contains(&None));
        }
    }
}
