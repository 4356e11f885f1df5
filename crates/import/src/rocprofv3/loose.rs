//! Reads values whose type is not the one that rocprofv3 writes: a number in quotes is the number, and a value of another
//! kind costs only itself. Such values are counted.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

thread_local! {
    /// The number of values of other types since [`take_odd`].
    static ODD: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of values of other types that this thread has read since the last call.
pub(super) fn take_odd() -> u64 {
    ODD.replace(0)
}

/// Counts a value of another type, in place of which the default stands.
fn odd<T: Default>() -> T {
    ODD.set(ODD.get() + 1);
    T::default()
}

/// Implements those functions of a visitor that take values of other types.
macro_rules! others_are_odd {
    (all_but_lists_and_objects) => {
        others_are_odd!(
            visit_bool(bool),
            visit_u64(u64),
            visit_i64(i64),
            visit_f64(f64),
            visit_str(&str)
        );
    };
    ($($visit:ident($type:ty)),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Self::Value, E> {
            Ok(odd())
        })*
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a value of rocprofv3")
        }
    };
}

/// Reads a list to its end, and counts it.
fn skip_list<'de, S: SeqAccess<'de>, T: Default>(mut list: S) -> Result<T, S::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(odd())
}

/// Reads an object to its end, and counts it.
fn skip_object<'de, M: MapAccess<'de>, T: Default>(mut object: M) -> Result<T, M::Error> {
    while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(odd())
}

/// Reads a number; `None` for `null` and what is no number.
pub(super) fn number<'de, D: Deserializer<'de>, T: TryFrom<i128>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    struct Number;
    impl<'de> Visitor<'de> for Number {
        type Value = Option<i128>;
        fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
            Ok(Some(number.into()))
        }
        fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
            Ok(Some(number.into()))
        }
        fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
            match number.fract() == 0.0 && number.abs() < 1e18 {
                true => Ok(Some(number as i128)),
                false => Ok(odd()),
            }
        }
        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            let text = text.trim();
            let parsed = match text.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16),
                None => text.parse(),
            };
            Ok(parsed.map_or_else(|_| odd(), Some))
        }
        fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<Self::Value, S::Error> {
            skip_list(list)
        }
        fn visit_map<M: MapAccess<'de>>(self, object: M) -> Result<Self::Value, M::Error> {
            skip_object(object)
        }
        others_are_odd!(visit_bool(bool));
    }
    let number = from.deserialize_any(Number)?;
    Ok(number.and_then(|number| T::try_from(number).map_or_else(|_| odd(), Some)))
}

/// Reads a number; 0 for `null` and what is no number.
pub(super) fn number_or_0<'de, D: Deserializer<'de>, T: TryFrom<i128> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(number(from)?.unwrap_or_default())
}

/// A text; empty for `null` and what is no text.
#[derive(Debug, Default)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Text, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text;
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_string<E>(self, text: String) -> Result<Text, E> {
                Ok(Text(text))
            }
            fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<Text, S::Error> {
                skip_list(list)
            }
            fn visit_map<M: MapAccess<'de>>(self, object: M) -> Result<Text, M::Error> {
                skip_object(object)
            }
            others_are_odd!(
                visit_bool(bool),
                visit_u64(u64),
                visit_i64(i64),
                visit_f64(f64)
            );
        }
        from.deserialize_any(Read)
    }
}

/// Reads a text; an empty one for `null` and what is no text.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Text::deserialize(from)?.0)
}

/// An object, or the default for `null` and what is no object.
#[derive(Debug)]
pub(super) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Object<T>, D::Error> {
        Ok(Object(optional(from)?.unwrap_or_default()))
    }
}

/// Reads an object; the default for `null` and what is no object.
pub(super) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(optional(from)?.unwrap_or_default())
}

/// Reads an object; `None` for `null` and what is no object.
pub(super) fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    struct Read<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
        type Value = Option<T>;
        fn visit_map<M: MapAccess<'de>>(self, object: M) -> Result<Option<T>, M::Error> {
            T::deserialize(MapAccessDeserializer::new(object)).map(Some)
        }
        fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<Option<T>, S::Error> {
            skip_list(list)
        }
        others_are_odd!(all_but_lists_and_objects);
    }
    from.deserialize_any(Read(PhantomData))
}

/// Reads a list whose elements keep their places.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Read<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
        type Value = Vec<T>;
        fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Vec<T>, S::Error> {
            let mut elements = Vec::new();
            while let Some(element) = list.next_element()? {
                elements.push(element);
            }
            Ok(elements)
        }
        fn visit_map<M: MapAccess<'de>>(self, object: M) -> Result<Vec<T>, M::Error> {
            skip_object(object)
        }
        others_are_odd!(all_but_lists_and_objects);
    }
    from.deserialize_any(Read(PhantomData))
}

/// Reads a list of objects, with the default in place of what is no object.
pub(super) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let objects: Vec<Object<T>> = list(from)?;
    Ok(objects.into_iter().map(|object| object.0).collect())
}

/// Reads a list of texts, with empty ones in place of what is no text.
pub(super) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts: Vec<Text> = list(from)?;
    Ok(texts.into_iter().map(|text| text.0).collect())
}

/// A list of objects, with the default in place of what is no object.
#[derive(Debug)]
pub(super) struct Objects<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Objects<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Objects<T>, D::Error> {
        objects(from).map(Objects)
    }
}
