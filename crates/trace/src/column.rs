//! Columns: how a Rust type is kept in a table, in Parquet and in the text form.

use arrow_array::builder::{PrimitiveBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::sync::Arc;

/// A type that can be a column.
pub trait Column: Sized + Clone + Default + PartialEq + std::fmt::Debug {
    /// Its Arrow type.
    fn data_type() -> DataType;
    /// True when rows may lack a value.
    const NULLABLE: bool;
    /// The column as an Arrow array.
    fn to_array(values: &[Self]) -> ArrayRef;
    /// An Arrow array, of [`Self::data_type`], as a column. `None`: the array has another type, or lacks values.
    fn from_array(array: &dyn Array) -> Option<Vec<Self>>;
    /// The value in the text form; `None` where there is no value.
    fn to_text(&self) -> Option<String>;
    /// Reads [`Self::to_text`].
    fn from_text(text: &str) -> Option<Self>;
}

macro_rules! integer_column {
    ($($type:ty => $arrow:ty, $name:ident;)+) => {$(
        impl Column for $type {
            fn data_type() -> DataType { DataType::$name }
            const NULLABLE: bool = false;
            fn to_array(values: &[Self]) -> ArrayRef {
                Arc::new(arrow_array::PrimitiveArray::<$arrow>::from_iter_values(values.iter().copied()))
            }
            fn from_array(array: &dyn Array) -> Option<Vec<Self>> {
                let array = array.as_primitive_opt::<$arrow>()?;
                (array.null_count() == 0).then(|| array.values().to_vec())
            }
            fn to_text(&self) -> Option<String> { Some(self.to_string()) }
            fn from_text(text: &str) -> Option<Self> { text.parse().ok() }
        }

        impl Column for Option<$type> {
            fn data_type() -> DataType { DataType::$name }
            const NULLABLE: bool = true;
            fn to_array(values: &[Self]) -> ArrayRef {
                let mut builder = PrimitiveBuilder::<$arrow>::with_capacity(values.len());
                for value in values { builder.append_option(*value); }
                Arc::new(builder.finish())
            }
            fn from_array(array: &dyn Array) -> Option<Vec<Self>> {
                let array = array.as_primitive_opt::<$arrow>()?;
                Some(if array.null_count() == 0 {
                    array.values().iter().map(|v| Some(*v)).collect()
                } else {
                    array.iter().collect()
                })
            }
            fn to_text(&self) -> Option<String> { self.map(|v| v.to_string()) }
            fn from_text(text: &str) -> Option<Self> { text.parse().ok().map(Some) }
        }
    )+};
}

integer_column! {
    u32 => UInt32Type, UInt32;
    u64 => UInt64Type, UInt64;
    i64 => Int64Type, Int64;
    i32 => Int32Type, Int32;
}

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Texts of a column, with one `String` made for each distinct value's first row only where `read` makes none.
fn read_texts<T: Clone>(
    array: &dyn Array,
    null: Option<T>,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Vec<T>> {
    if let Some(plain) = array.as_string_opt::<i32>() {
        return plain
            .iter()
            .map(|v| v.map_or(null.clone(), &read))
            .collect();
    }
    let array = array.as_dictionary_opt::<Int32Type>()?;
    let values = array.values().as_string_opt::<i32>()?;
    let values: Vec<Option<T>> = values.iter().map(|v| v.and_then(&read)).collect();
    array
        .keys()
        .iter()
        .map(|key| match key {
            Some(key) => values.get(usize::try_from(key).ok()?)?.clone(),
            None => null.clone(),
        })
        .collect()
}

fn write_texts<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    for text in texts {
        builder.append_option(text);
    }
    Arc::new(builder.finish())
}

impl Column for String {
    fn data_type() -> DataType {
        dictionary()
    }
    const NULLABLE: bool = false;
    fn to_array(values: &[Self]) -> ArrayRef {
        write_texts(values.iter().map(|v| Some(v.as_str())))
    }
    fn from_array(array: &dyn Array) -> Option<Vec<Self>> {
        read_texts(array, None, |v| Some(v.to_owned()))
    }
    fn to_text(&self) -> Option<String> {
        Some(self.clone())
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Column for Option<String> {
    fn data_type() -> DataType {
        dictionary()
    }
    const NULLABLE: bool = true;
    fn to_array(values: &[Self]) -> ArrayRef {
        write_texts(values.iter().map(|v| v.as_deref()))
    }
    fn from_array(array: &dyn Array) -> Option<Vec<Self>> {
        read_texts(array, Some(None), |v| Some(Some(v.to_owned())))
    }
    fn to_text(&self) -> Option<String> {
        self.clone()
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(Some(text.to_owned()))
    }
}

/// An enum that is kept as text. The first value is the default.
macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$value_doc])* $value,)+
            /// A value that this version does not know.
            #[default]
            Unknown,
        }

        impl $name {
            /// Its text in the trace.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                    Self::Unknown => "unknown",
                }
            }

            /// The value of a text; [`Self::Unknown`] for a text of a later version.
            pub fn of(text: &str) -> Self {
                match text {
                    $($text => Self::$value,)+
                    _ => Self::Unknown,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::column::Column for $name {
            fn data_type() -> arrow_schema::DataType { <String as $crate::column::Column>::data_type() }
            const NULLABLE: bool = false;
            fn to_array(values: &[Self]) -> arrow_array::ArrayRef {
                $crate::column::texts_to_array(values.iter().map(|v| v.as_str()))
            }
            fn from_array(array: &dyn arrow_array::Array) -> Option<Vec<Self>> {
                $crate::column::texts_from_array(array, Self::of)
            }
            fn to_text(&self) -> Option<String> { Some(self.as_str().to_owned()) }
            fn from_text(text: &str) -> Option<Self> {
                Some(Self::of(text)).filter(|value| value.as_str() == text)
            }
        }
    };
}
pub(crate) use text_enum;

pub(crate) fn texts_to_array<'a>(texts: impl Iterator<Item = &'a str>) -> ArrayRef {
    write_texts(texts.map(Some))
}

pub(crate) fn texts_from_array<T: Clone>(
    array: &dyn Array,
    of: impl Fn(&str) -> T,
) -> Option<Vec<T>> {
    read_texts(array, None, |v| Some(of(v)))
}
