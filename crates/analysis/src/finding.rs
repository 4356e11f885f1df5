//! A finding that may be unknown because tables that it is made from could not be read, or because what it counts was not
//! recorded. It is used like its value;
//! only [`Findings`](crate::findings::Findings) marks it as unknown. Its schema is that of `Option<T>`.

use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

/// A finding whose tables may not have been read whole, or may lack what ran. Its value is then of the rows that were read,
/// and JSON has `null` in its place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finding<T> {
    pub(crate) value: T,
    pub(crate) is_unknown: bool,
}

impl<T> Finding<T> {
    /// Returns the value, or `None` where it is not known.
    pub fn known(&self) -> Option<&T> {
        (!self.is_unknown).then_some(&self.value)
    }

    /// Returns the value, whether or not it is known.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Finding<Vec<T>> {
    /// Returns true where the finding is known and has no rows: JSON then leaves the keys of some findings out.
    pub(crate) fn is_known_empty(&self) -> bool {
        !self.is_unknown && self.value.is_empty()
    }
}

impl<T> From<T> for Finding<T> {
    fn from(value: T) -> Finding<T> {
        Finding {
            value,
            is_unknown: false,
        }
    }
}

impl<T> Deref for Finding<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Finding<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: PartialEq> PartialEq<T> for Finding<T> {
    fn eq(&self, other: &T) -> bool {
        self.value == *other
    }
}

impl<'a, T> IntoIterator for &'a Finding<Vec<T>> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.value.iter()
    }
}

impl<T: Serialize> Serialize for Finding<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (!self.is_unknown)
            .then_some(&self.value)
            .serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Finding<T> {
    fn inline_schema() -> bool {
        Option::<T>::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Option::<T>::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}
