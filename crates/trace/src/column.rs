//! Maps Rust types to columns of a table, in Parquet and in the text form. A type that implements [`Column`] is the
//! type of one value; its [`Values`] hold a column in memory. Parquet files are read and written as Arrow arrays.

use crate::kinds::*;
use crate::optional::Optional;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::DataType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// The least number of rows by which a column grows.
const GROWTH_ROWS: usize = 1 << 20;

/// A type that can be a column.
pub trait Column: Sized + Clone + Default + PartialEq + std::fmt::Debug {
    /// The values of many rows.
    type Values: Values<Value = Self>;
    /// Returns the Arrow type.
    fn data_type() -> DataType;
    /// True when rows may lack a value.
    const NULLABLE: bool;
    /// The texts that the column may hold, each with its meaning; empty when any value of the type is allowed.
    const VALUES: &'static [(&'static str, &'static str)] = &[];
    /// Converts the column to an Arrow array.
    fn to_array(values: &Self::Values) -> ArrayRef;
    /// Appends an Arrow array of [`Self::data_type`]. Returns `None` when the array has another type or lacks values;
    /// the values that were appended until then stay.
    fn append_array(array: &dyn Array, values: &mut Self::Values, texts: &mut Texts) -> Option<()>;
    /// Appends the value in the text form. Returns false when there is no value.
    fn write_text(&self, to: &mut String) -> bool;
    /// Returns the value in the text form; `None` where there is no value.
    fn to_text(&self) -> Option<String> {
        let mut text = String::new();
        self.write_text(&mut text).then_some(text)
    }
    /// Parses the text form.
    fn from_text(text: &str) -> Option<Self>;
}

/// The values of a column of any type.
pub trait ColumnValues: Send {
    /// Returns true when rows may lack a value.
    fn nullable(&self) -> bool;
    /// Reserves space for `more` rows and some spare ones, but for no more than `all` in total. Returns false when
    /// memory is exhausted.
    fn reserve(&mut self, more: usize, all: usize) -> bool;
    /// Appends an Arrow array. Returns false when it has another type or lacks values; the values that were appended
    /// until then stay.
    fn append_array(&mut self, array: &dyn Array, texts: &mut Texts) -> bool;
    /// Truncates the column, or fills it up with defaults, to `rows`.
    fn resize(&mut self, rows: usize);
    /// Inserts defaults in front of row `at`.
    fn insert(&mut self, at: usize, rows: usize);
    /// Truncates the column if it is longer.
    fn truncate(&mut self, rows: usize);
    /// Removes a range of rows.
    fn remove(&mut self, rows: Range<usize>);
    /// Returns the number of rows.
    fn rows(&self) -> usize;
}

/// The values of a column whose type is known.
pub trait Values: ColumnValues + Default + Clone + PartialEq + std::fmt::Debug {
    /// The type of one value.
    type Value;
    /// Returns the value of a row.
    ///
    /// # Panics
    /// There is no such row.
    fn value(&self, row: usize) -> Self::Value;
    /// Appends the text of a row's value ([`Column::write_text`]). Returns false when there is no value.
    ///
    /// # Panics
    /// There is no such row.
    fn write_text(&self, row: usize, to: &mut String) -> bool;
    /// Appends a row.
    fn push(&mut self, value: Self::Value);
    /// Returns the rows whose entry in `keep` is true.
    #[must_use]
    fn select(&self, keep: &[bool]) -> Self;
    /// Removes all rows and keeps the allocation.
    fn clear(&mut self);
    /// Moves all rows of `other` to the end of this column.
    fn append(&mut self, other: &mut Self);
}

/// Returns the capacity for a column of `held` rows that gets `more`, and ends with `all` according to its file.
pub(crate) fn capacity_for(held: usize, more: usize, all: usize) -> usize {
    let needed = held.saturating_add(more);
    // A file may claim more rows than it has, so capacity grows with the rows that were read.
    let step = GROWTH_ROWS.max(held / 2);
    held.saturating_add(step).min(all).max(needed)
}

/// Returns the values whose entry in `keep` is true.
fn selected<'a, T: 'a>(
    values: impl Iterator<Item = T> + Clone + 'a,
    keep: &'a [bool],
) -> impl Iterator<Item = T> + Clone + 'a {
    let kept = values.zip(keep).filter(|(_, keep)| **keep);
    kept.map(|(value, _)| value)
}

impl<T> Values for Vec<T>
where
    T: Column<Values = Vec<T>> + Send,
{
    type Value = T;
    fn value(&self, row: usize) -> T {
        self[row].clone()
    }
    fn write_text(&self, row: usize, to: &mut String) -> bool {
        self[row].write_text(to)
    }
    fn push(&mut self, value: T) {
        Vec::push(self, value);
    }
    fn select(&self, keep: &[bool]) -> Self {
        let kept = selected(self.iter(), keep);
        let mut selected = Vec::with_capacity(kept.clone().count());
        selected.extend(kept.cloned());
        selected
    }
    fn clear(&mut self) {
        Vec::clear(self);
    }
    fn append(&mut self, other: &mut Self) {
        Vec::append(self, other);
    }
}

impl<T> Values for Optional<T>
where
    T: Copy + Default + PartialEq + std::fmt::Debug + Send,
    Option<T>: Column<Values = Optional<T>>,
{
    type Value = Option<T>;
    fn value(&self, row: usize) -> Option<T> {
        self.at(row)
    }
    fn write_text(&self, row: usize, to: &mut String) -> bool {
        self.at(row).write_text(to)
    }
    fn push(&mut self, value: Option<T>) {
        Optional::push(self, value);
    }
    fn select(&self, keep: &[bool]) -> Self {
        selected(self.iter(), keep).collect()
    }
    fn clear(&mut self) {
        Optional::clear(self);
    }
    fn append(&mut self, other: &mut Self) {
        Optional::append(self, other);
    }
}

impl<T> ColumnValues for Optional<T>
where
    T: Copy + Default + PartialEq + std::fmt::Debug + Send,
    Option<T>: Column<Values = Optional<T>>,
{
    fn nullable(&self) -> bool {
        true
    }
    fn reserve(&mut self, more: usize, all: usize) -> bool {
        let space = capacity_for(self.len(), more, all);
        self.len().saturating_add(more) <= self.capacity() || Optional::reserve(self, space)
    }
    fn append_array(&mut self, array: &dyn Array, texts: &mut Texts) -> bool {
        Option::<T>::append_array(array, self, texts).is_some()
    }
    fn resize(&mut self, rows: usize) {
        Optional::truncate(self, rows);
        self.extend_absent(rows - self.len());
    }
    fn insert(&mut self, at: usize, rows: usize) {
        if rows > 0 {
            let behind: Self = self.range(at..self.len()).collect();
            Optional::truncate(self, at);
            self.extend_absent(rows);
            self.extend(&behind);
        }
    }
    fn truncate(&mut self, rows: usize) {
        Optional::truncate(self, rows);
    }
    fn remove(&mut self, rows: Range<usize>) {
        if !rows.is_empty() {
            let behind: Self = self.range(rows.end..self.len()).collect();
            Optional::truncate(self, rows.start);
            self.extend(&behind);
        }
    }
    fn rows(&self) -> usize {
        self.len()
    }
}

impl<T> ColumnValues for Vec<T>
where
    T: Column<Values = Vec<T>> + Send,
{
    fn nullable(&self) -> bool {
        T::NULLABLE
    }
    fn reserve(&mut self, more: usize, all: usize) -> bool {
        let space = capacity_for(self.len(), more, all);
        self.len().saturating_add(more) <= self.capacity()
            || self.try_reserve_exact(space - self.len()).is_ok()
    }
    fn append_array(&mut self, array: &dyn Array, texts: &mut Texts) -> bool {
        T::append_array(array, self, texts).is_some()
    }
    fn resize(&mut self, rows: usize) {
        Vec::resize(self, rows, T::default());
    }
    fn insert(&mut self, at: usize, rows: usize) {
        self.splice(at..at, std::iter::repeat_n(T::default(), rows));
    }
    fn truncate(&mut self, rows: usize) {
        Vec::truncate(self, rows);
    }
    fn remove(&mut self, rows: Range<usize>) {
        self.drain(rows);
    }
    fn rows(&self) -> usize {
        self.len()
    }
}

/// Implements [`Column`] for an integer type and for an option of it. Its parameters are the type, the Arrow type
/// with its name, and the functions from a number of the Arrow type to a value and back.
macro_rules! integer_column {
    ($type:ty, $arrow:ty, $data_type:ident, $wrap:expr, $unwrap:expr) => {
        impl Column for $type {
            type Values = Vec<Self>;
            fn data_type() -> arrow_schema::DataType {
                arrow_schema::DataType::$data_type
            }
            const NULLABLE: bool = false;
            fn to_array(values: &Vec<Self>) -> arrow_array::ArrayRef {
                let values = values.iter().map($unwrap);
                std::sync::Arc::new(arrow_array::PrimitiveArray::<$arrow>::from_iter_values(
                    values,
                ))
            }
            fn append_array(
                array: &dyn arrow_array::Array,
                values: &mut Vec<Self>,
                _: &mut $crate::column::Texts,
            ) -> Option<()> {
                let array = arrow_array::cast::AsArray::as_primitive_opt::<$arrow>(array)?;
                if arrow_array::Array::null_count(array) != 0 {
                    return None;
                }
                values.extend(array.values().iter().map(|value| $wrap(*value)));
                Some(())
            }
            fn write_text(&self, to: &mut String) -> bool {
                // Writing to a `String` never fails.
                std::fmt::Write::write_fmt(to, format_args!("{self}")).is_ok()
            }
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }

        impl Column for Option<$type> {
            type Values = $crate::optional::Optional<$type>;
            fn data_type() -> arrow_schema::DataType {
                <$type as Column>::data_type()
            }
            const NULLABLE: bool = true;
            fn to_array(values: &Self::Values) -> arrow_array::ArrayRef {
                // Rows behind the last value have no entry in the values, but need one in the array.
                let absent =
                    std::iter::repeat_n(Default::default(), values.len() - values.values().len());
                let numbers = values.values().iter().map($unwrap).chain(absent).collect();
                let array = arrow_array::PrimitiveArray::<$arrow>::new(numbers, values.present());
                std::sync::Arc::new(array)
            }
            fn append_array(
                array: &dyn arrow_array::Array,
                values: &mut Self::Values,
                _: &mut $crate::column::Texts,
            ) -> Option<()> {
                let array = arrow_array::cast::AsArray::as_primitive_opt::<$arrow>(array)?;
                let numbers = array.values().iter().map(|value| $wrap(*value));
                match arrow_array::Array::nulls(array).filter(|nulls| nulls.null_count() != 0) {
                    Some(present) => values.extend_some(numbers, present),
                    None => values.extend_present(numbers),
                }
                Some(())
            }
            fn write_text(&self, to: &mut String) -> bool {
                self.as_ref().is_some_and(|value| value.write_text(to))
            }
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok().map(Some)
            }
        }
    };
}
pub(crate) use integer_column;

integer_column!(u32, UInt32Type, UInt32, u32::from, |value: &u32| *value);
integer_column!(u64, UInt64Type, UInt64, u64::from, |value: &u64| *value);
integer_column!(i64, Int64Type, Int64, i64::from, |value: &i64| *value);
integer_column!(i32, Int32Type, Int32, i32::from, |value: &i32| *value);
integer_column!(f64, Float64Type, Float64, f64::from, |value: &f64| *value);

/// Returns the Arrow type of columns of texts: each distinct text once, and its number for each row.
pub(crate) fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The distinct texts of a column that is being read. Each is in memory once, however many rows and files have it.
#[derive(Debug, Default)]
pub struct Texts(FxHashSet<Arc<str>>);

impl Texts {
    pub(crate) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = Arc::from(text);
        self.0.insert(new.clone());
        new
    }
}

/// Passes the result of `read` for each row's text to `take`; each distinct text of a dictionary is read once.
/// Returns `None` when the array holds no texts, or `read` rejects one.
pub(crate) fn for_each_text<T: Copy>(
    array: &dyn Array,
    mut read: impl FnMut(Option<&str>) -> Option<T>,
    mut take: impl FnMut(T),
) -> Option<()> {
    if let Some(plain) = array.as_string_opt::<i32>() {
        return plain.iter().try_for_each(|text| read(text).map(&mut take));
    }
    if let Some(views) = array.as_string_view_opt() {
        return views.iter().try_for_each(|text| read(text).map(&mut take));
    }
    let array = array.as_dictionary_opt::<Int32Type>()?;
    let texts = array.values().as_string_opt::<i32>()?;
    // One entry for each text of the dictionary, and a last one for an absent text.
    let mut known: Vec<Option<T>> = vec![None; texts.len() + 1];
    for key in array.keys() {
        let at = match key {
            Some(key) => usize::try_from(key).ok().filter(|at| *at < texts.len())?,
            None => texts.len(),
        };
        let is_text = at < texts.len() && texts.is_valid(at);
        let value = match known[at] {
            Some(value) => value,
            None => *known[at].insert(read(is_text.then(|| texts.value(at)))?),
        };
        take(value);
    }
    Some(())
}

/// Returns the Arrow array of texts, `None` for absent ones.
fn texts_to_array<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut ids: FxHashMap<&str, i32> = FxHashMap::default();
    let mut distinct = Vec::new();
    // Neighbouring rows mostly share a text, which is then the same allocation.
    let mut before: Option<(&str, i32)> = None;
    let mut id = |text: &'a str| {
        if let Some((same, id)) = before
            && std::ptr::eq(text, same)
        {
            return id;
        }
        let id = *ids.entry(text).or_insert_with(|| {
            distinct.push(text);
            distinct.len() as i32 - 1
        });
        before = Some((text, id));
        id
    };
    let keys: Int32Array = texts.map(|text| text.map(&mut id)).collect();
    let distinct = StringArray::from_iter_values(distinct);
    Arc::new(DictionaryArray::new(keys, Arc::new(distinct)))
}

/// Implements [`Column`] for kinds of the model, as columns of texts. A text that this version does not know is
/// `Unknown`.
macro_rules! kind_columns {
    ($($name:ident),+ $(,)?) => {$(
        impl Column for $name {
            type Values = Vec<Self>;
            fn data_type() -> DataType { dictionary_type() }
            const NULLABLE: bool = false;
            const VALUES: &'static [(&'static str, &'static str)] = $name::TEXTS;
            fn to_array(values: &Vec<Self>) -> ArrayRef {
                texts_to_array(values.iter().map(|value| Some(value.as_str())))
            }
            fn append_array(array: &dyn Array, values: &mut Vec<Self>, _: &mut Texts) -> Option<()> {
                for_each_text(array, |text| text.map($name::from_text_or_unknown), |value| values.push(value))
            }
            fn write_text(&self, to: &mut String) -> bool {
                to.push_str(self.as_str());
                true
            }
            fn from_text(text: &str) -> Option<Self> {
                Some($name::from_text_or_unknown(text)).filter(|value| value.as_str() == text)
            }
        }

        impl Column for Option<$name> {
            type Values = Vec<Self>;
            fn data_type() -> DataType { dictionary_type() }
            const NULLABLE: bool = true;
            const VALUES: &'static [(&'static str, &'static str)] = $name::TEXTS;
            fn to_array(values: &Vec<Self>) -> ArrayRef {
                texts_to_array(values.iter().map(|value| value.map($name::as_str)))
            }
            fn append_array(array: &dyn Array, values: &mut Vec<Self>, _: &mut Texts) -> Option<()> {
                for_each_text(array, |text| Some(text.map($name::from_text_or_unknown)), |value| values.push(value))
            }
            fn write_text(&self, to: &mut String) -> bool { self.is_some_and(|value| value.write_text(to)) }
            fn from_text(text: &str) -> Option<Self> { <$name as Column>::from_text(text).map(Some) }
        }
    )+};
}

kind_columns!(
    Access,
    AllocatorMemoryKind,
    CounterUnit,
    FrameKind,
    HostCallKind,
    MarkerScope,
    MemoryEvent,
    MemoryPlace,
    MetricSection,
    MetricUnit,
    NameSource,
    NoLine,
    OpaqueWorkKind,
    SampleSource,
    ThreadState,
    SubmissionKind,
    Timing,
    TransferKind,
);
