//! Columns: how a Rust type is kept in a table, in Parquet and in the text form.

use crate::kinds::*;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::DataType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// The space that a column gets at least when it grows.
const GROWTH_ROWS: usize = 1 << 20;

/// A type that can be a column.
pub trait Column: Sized + Clone + Default + PartialEq + std::fmt::Debug {
    /// Its Arrow type.
    fn data_type() -> DataType;
    /// True when rows may lack a value.
    const NULLABLE: bool;
    /// The texts that the column may hold, each with its meaning; none when it may hold any value of its type.
    const VALUES: &'static [(&'static str, &'static str)] = &[];
    /// The column as an Arrow array.
    fn to_array(values: &[Self]) -> ArrayRef;
    /// Appends an Arrow array of [`Self::data_type`]. `None`: the array has another type, or lacks values; what was
    /// appended until then stays.
    fn append_array(array: &dyn Array, values: &mut Vec<Self>, texts: &mut Texts) -> Option<()>;
    /// The value in the text form; `None` where there is no value.
    fn to_text(&self) -> Option<String>;
    /// Appends [`Self::to_text`]. False: there is no value.
    fn write_text(&self, to: &mut String) -> bool {
        let text = self.to_text();
        to.push_str(text.as_deref().unwrap_or_default());
        text.is_some()
    }
    /// Reads [`Self::to_text`].
    fn from_text(text: &str) -> Option<Self>;
}

/// A column of any type.
pub trait ColumnValues: Send {
    /// True when rows may lack a value.
    fn nullable(&self) -> bool;
    /// Makes space for `more` rows and then some, but for no more than `all` in all. False when there is none.
    fn reserve(&mut self, more: usize, all: usize) -> bool;
    /// Appends an Arrow array. False: it has another type, or lacks values; what was appended until then stays.
    fn append_array(&mut self, array: &dyn Array, texts: &mut Texts) -> bool;
    /// Cuts the column, or fills it up with defaults, to `rows`.
    fn resize(&mut self, rows: usize);
    /// Puts defaults in front of row `at`.
    fn insert(&mut self, at: usize, rows: usize);
    /// Cuts the column if it is longer.
    fn truncate(&mut self, rows: usize);
    /// Removes some rows.
    fn remove(&mut self, rows: Range<usize>);
    /// Number of rows.
    fn rows(&self) -> usize;
}

impl<T: Column + Send> ColumnValues for Vec<T> {
    fn nullable(&self) -> bool {
        T::NULLABLE
    }
    fn reserve(&mut self, more: usize, all: usize) -> bool {
        let needed = self.len().saturating_add(more);
        if needed <= self.capacity() {
            return true;
        }
        // A file may say that it has more rows than it has: space grows with what was read.
        let step = GROWTH_ROWS.max(self.len() / 2);
        let space = self.len().saturating_add(step).min(all).max(needed);
        self.try_reserve_exact(space - self.len()).is_ok()
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

/// Makes a type a column of numbers, with and without lacking values.
macro_rules! integer_column {
    ($type:ty, $arrow:ty, $data_type:ident, $wrap:expr, $unwrap:expr) => {
        impl Column for $type {
            fn data_type() -> arrow_schema::DataType {
                arrow_schema::DataType::$data_type
            }
            const NULLABLE: bool = false;
            fn to_array(values: &[Self]) -> arrow_array::ArrayRef {
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
            fn to_text(&self) -> Option<String> {
                Some(self.to_string())
            }
            fn write_text(&self, to: &mut String) -> bool {
                // A String takes all that is written to it.
                std::fmt::Write::write_fmt(to, format_args!("{self}")).is_ok()
            }
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }

        impl Column for Option<$type> {
            fn data_type() -> arrow_schema::DataType {
                <$type as Column>::data_type()
            }
            const NULLABLE: bool = true;
            fn to_array(values: &[Self]) -> arrow_array::ArrayRef {
                let values = values.iter().map(|value| value.as_ref().map($unwrap));
                std::sync::Arc::new(arrow_array::PrimitiveArray::<$arrow>::from_iter(values))
            }
            fn append_array(
                array: &dyn arrow_array::Array,
                values: &mut Vec<Self>,
                _: &mut $crate::column::Texts,
            ) -> Option<()> {
                let array = arrow_array::cast::AsArray::as_primitive_opt::<$arrow>(array)?;
                if arrow_array::Array::null_count(array) == 0 {
                    values.extend(array.values().iter().map(|value| Some($wrap(*value))));
                } else {
                    values.extend(array.iter().map(|value| value.map($wrap)));
                }
                Some(())
            }
            fn to_text(&self) -> Option<String> {
                self.map(|value| value.to_string())
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

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The distinct texts of a column that is being read: each is in memory once, however many rows and files have it.
#[derive(Debug, Default)]
pub struct Texts(FxHashSet<Arc<str>>);

impl Texts {
    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = Arc::from(text);
        self.0.insert(new.clone());
        new
    }
}

/// Appends the texts of an array as `read` understands them, each distinct one read once.
fn read_texts<T: Clone>(
    array: &dyn Array,
    out: &mut Vec<T>,
    null: Option<T>,
    mut read: impl FnMut(&str) -> T,
) -> Option<()> {
    if let Some(plain) = array.as_string_opt::<i32>() {
        for text in plain {
            out.push(text.map(&mut read).or_else(|| null.clone())?);
        }
        return Some(());
    }
    if let Some(views) = array.as_string_view_opt() {
        for text in views {
            out.push(text.map(&mut read).or_else(|| null.clone())?);
        }
        return Some(());
    }
    let array = array.as_dictionary_opt::<Int32Type>()?;
    let texts = array.values().as_string_opt::<i32>()?;
    let texts: Vec<Option<T>> = texts.iter().map(|text| text.map(&mut read)).collect();
    for key in array.keys() {
        let text = match key {
            Some(key) => texts.get(usize::try_from(key).ok()?)?.clone(),
            None => None,
        };
        out.push(text.or_else(|| null.clone())?);
    }
    Some(())
}

fn write_texts<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut ids: FxHashMap<&str, i32> = FxHashMap::default();
    let mut distinct = Vec::new();
    // Rows that follow each other mostly share a text, which is the same bytes in memory.
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

impl Column for Arc<str> {
    fn data_type() -> DataType {
        dictionary()
    }
    const NULLABLE: bool = false;
    fn to_array(values: &[Self]) -> ArrayRef {
        write_texts(values.iter().map(|v| Some(&**v)))
    }
    fn append_array(array: &dyn Array, values: &mut Vec<Self>, texts: &mut Texts) -> Option<()> {
        read_texts(array, values, None, |text| texts.shared(text))
    }
    fn to_text(&self) -> Option<String> {
        Some(self.to_string())
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(Arc::from(text))
    }
}

impl Column for Option<Arc<str>> {
    fn data_type() -> DataType {
        dictionary()
    }
    const NULLABLE: bool = true;
    fn to_array(values: &[Self]) -> ArrayRef {
        write_texts(values.iter().map(|v| v.as_deref()))
    }
    fn append_array(array: &dyn Array, values: &mut Vec<Self>, texts: &mut Texts) -> Option<()> {
        read_texts(array, values, Some(None), |text| Some(texts.shared(text)))
    }
    fn to_text(&self) -> Option<String> {
        self.as_deref().map(str::to_owned)
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(Some(Arc::from(text)))
    }
}

/// Makes kinds of the model columns of texts. A text that this version does not know is `Unknown`.
macro_rules! kind_columns {
    ($($name:ident),+ $(,)?) => {$(
        impl Column for $name {
            fn data_type() -> DataType { dictionary() }
            const NULLABLE: bool = false;
            const VALUES: &'static [(&'static str, &'static str)] = $name::TEXTS;
            fn to_array(values: &[Self]) -> ArrayRef {
                write_texts(values.iter().map(|value| Some(value.as_str())))
            }
            fn append_array(array: &dyn Array, values: &mut Vec<Self>, _: &mut Texts) -> Option<()> {
                read_texts(array, values, None, $name::of)
            }
            fn to_text(&self) -> Option<String> { Some(self.as_str().to_owned()) }
            fn write_text(&self, to: &mut String) -> bool {
                to.push_str(self.as_str());
                true
            }
            fn from_text(text: &str) -> Option<Self> {
                Some($name::of(text)).filter(|value| value.as_str() == text)
            }
        }

        impl Column for Option<$name> {
            fn data_type() -> DataType { dictionary() }
            const NULLABLE: bool = true;
            const VALUES: &'static [(&'static str, &'static str)] = $name::TEXTS;
            fn to_array(values: &[Self]) -> ArrayRef {
                write_texts(values.iter().map(|value| value.map($name::as_str)))
            }
            fn append_array(array: &dyn Array, values: &mut Vec<Self>, _: &mut Texts) -> Option<()> {
                read_texts(array, values, Some(None), |text| Some($name::of(text)))
            }
            fn to_text(&self) -> Option<String> { self.map(|value| value.as_str().to_owned()) }
            fn from_text(text: &str) -> Option<Self> { $name::from_text(text).map(Some) }
        }
    )+};
}

kind_columns!(
    Access,
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
